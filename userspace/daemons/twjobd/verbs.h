/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The verbs. They know no socket and no SQL: each verb takes a command apart, asks the store and
 * the wheels, and writes one answer.
 */
#ifndef TWJOBD_VERBS_H
#define TWJOBD_VERBS_H

#include "client.h"
#include "turn.h"

/* MAX_SPAN is a time in ms. */
#define MAX_SPAN	(7 * 86400 * MSEC_PER_SEC)
#define MAX_TRIES	1000000

struct request {
	struct client *client;
	struct reply *reply;
	struct queue *queue;	/* the queue that argument 1 names */
	bool by_key;		/* argument 2 is a job's key, otherwise the job's number */
	int argc;
	struct bytes *argv;
	/* EXEC calls this function to carry out a command that MULTI has gathered. */
	void (*carry_out)(struct client *client, struct command *command);
};

/* Carries out a command. If the client then waits, or has steps, there is no answer yet. */
void verbs_run(struct client *client, struct command *command);

/* verbs_take.c: the client has gone, and does not wait any more. */
void take_forget(struct client *client);
/* Ends the wait of the client's take, whose answer is null. Returns whether a take waited. */
bool take_unblock(struct client *client);
/* Answers the takes that have just come, together. */
void take_serve(void);
/* Refuses clients that wait for jobs of this queue, which has been dropped. */
void take_end_queue(struct queue *queue);
/* Looks for due jobs of a queue whose wheel has been opened, or that has been paused or resumed. */
void take_listen(struct queue *queue);
/* Tells whether a client waits for a job of this queue, or has just asked for one. */
bool take_is_wanted(struct queue *queue);

/* args.c reads arguments. A function that returns false has answered with an error. */
bool arg_is(struct bytes arg, const char *word);
/* Tells whether a queue's name may have these bytes. */
bool arg_is_name(struct bytes arg);
/*
 * Copies the argument, and a zero byte. Returns whether the argument is text that fits. Gives no
 * answer.
 */
bool arg_text(struct bytes arg, char *text, size_t size);
bool arg_number(struct request *request, struct bytes arg, uint64_t least,
		uint64_t most, uint64_t *number);
/* Reads seconds, which may have a fraction, as ms. */
bool arg_seconds(struct request *request, struct bytes arg, uint64_t *ms);
/* Reads the options "IN seconds" and "AT time" at argument @i, as a point of time. */
bool arg_due(struct request *request, int i, uint64_t *due);
bool arg_key(struct request *request, struct bytes arg, struct bytes *key);
/* Reads seconds that are neither 0 nor more than MAX_SPAN, as ms. @what names them in an error. */
bool arg_span(struct request *request, struct bytes arg, const char *what, uint64_t *ms);
/* Reads the two values of BACKOFF behind argument @i. */
bool arg_backoff(struct request *request, int i, uint64_t *backoff, uint64_t *most);
/*
 * Reads one of a job's options LEASE, TRIES, BACKOFF and GROUP at argument @i, before argument
 * @end. Returns how many arguments the option has, 0 if it is none of these options, or -1 if it
 * is wrong.
 */
int arg_option(struct request *request, int i, int end, struct options *options);

/* Answers that the store is shared, and has no limits. */
void answer_no_limit(struct reply *reply);

/*
 * request.c: tells whether the client may use verbs of these classes (allow.h) with the queue or,
 * if @queue is NULL, with at least one queue. If the client may not, this function has answered
 * with an error.
 */
bool request_may(struct request *request, unsigned int classes, const struct bytes *queue);
/* Returns the queue of this name, or NULL if there is no such queue. */
struct queue *request_queue(struct bytes name);
/* Answers with an error of the store or of a wheel. */
void answer_failure(struct request *request, int error);
void answer_no_queue(struct reply *reply);
/* Writes a job's key as a part of an answer. */
void reply_key(struct reply *reply, const struct job *job);

/* verbs_client.c */
void verb_hello(struct request *request);
void verb_auth(struct request *request);
void verb_ping(struct request *request);
void verb_echo(struct request *request);
void verb_select(struct request *request);
void verb_info(struct request *request);
void verb_time(struct request *request);
void verb_config(struct request *request);
void verb_client(struct request *request);
void verb_cluster(struct request *request);
void verb_command(struct request *request);
void verb_reset(struct request *request);
void verb_quit(struct request *request);

/* verbs_multi.c: these functions are about a client's transaction, if it has begun one. */
size_t multi_bytes(const struct client *client);
/* Notes that a command has been refused, so that EXEC refuses all commands. */
void multi_fail(struct client *client);
void multi_forget(struct client *client);
void multi_gather(struct request *request);
void verb_multi(struct request *request);
void verb_exec(struct request *request);
void verb_discard(struct request *request);
void verb_watch(struct request *request);
void verb_unwatch(struct request *request);

/* verbs_queue.c */
void verb_create(struct request *request);
void verb_drop(struct request *request);
void verb_queues(struct request *request);
void verb_pause(struct request *request);
void verb_resume(struct request *request);
void verb_drain(struct request *request);

/* verbs_stats.c */
void verb_stats(struct request *request);
void verb_metrics(struct request *request);

/* verbs_job.c */
void verb_put(struct request *request);
void verb_cancel(struct request *request);
void verb_move(struct request *request);
void verb_kick(struct request *request);
void verb_delete(struct request *request);

/* verbs_rule.c */
void verb_every(struct request *request);

/* verbs_list.c */
void verb_get(struct request *request);
void verb_list(struct request *request);

/* verbs_done.c */
void verb_done(struct request *request);
void verb_rules(struct request *request);

/* verbs_take.c */
void verb_take(struct request *request);

/* verbs_answer.c */
void verb_ack(struct request *request);
void verb_nack(struct request *request);
void verb_extend(struct request *request);
void verb_bury(struct request *request);
/* Writes the jobs, at most @room, whose deliveries this command answers. Returns their number. */
int answer_jobs(const struct command *command, int64_t *ids, int room);

/* A verb puts a job or, with a @rule, the job's first occurrence, which is due at @due. */
struct put {
	struct bytes body, key;
	uint64_t due;
	bool replace;
	const struct rule *rule;
	struct options options;
};

/* verbs_job.c: puts the job, or changes the job that has its key, and answers. */
void put_job(struct request *request, const struct put *put);

#endif /* TWJOBD_VERBS_H */
