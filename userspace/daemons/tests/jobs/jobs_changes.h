/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * These functions change jobs by chance, and know what each job has to be after each change. They
 * are for tests that put the store into an earlier state. A mark in the log of the disk follows
 * each change that was answered.
 */
#ifndef JOBS_CHANGES_H
#define JOBS_CHANGES_H

#include "jobs_disk.h"

#define JOBS		500
#define RATES		50
#define VERSIONS	12
#define BATCH		6
#define MAX_BODY	30000
#define HOUR_MS		3600000
/* TW.GET tells so many names and values more of a job with these options. */
#define OPTIONS		"LEASE 99 TRIES 9 BACKOFF 1 2 GROUP g"
#define TOLD_OPTIONS	10

enum command {
	NONE, PUT, MOVE, CANCEL
};

/*
 * A version tells what a job is after the change of this number. @by is the command of the
 * change, or NONE. @together: all changes of the batch are there, or none. @done: a worker has
 * done the job, which the daemon tells. @unique: its key stays known then.
 */
struct version {
	int change;
	enum command by;
	bool gone, buried, failed, together, options, done, unique;
	long long due;		/* ms, 0: not known */
	unsigned int body;
};

static struct job {
	long long id;
	int count;
	struct version versions[VERSIONS];
} jobs[JOBS];

static int job_count, changes, wrong;

/* Some changes give the queue a RATE, which is the number of the change. */
static int rates[RATES], rate_count;

/* Says what is wrong, but says it for a few jobs only. */
__attribute__((__format__(printf, 1, 2)))
static inline void complain(const char *format, ...)
{
	va_list args;

	if (wrong++ >= 5)
		return;
	va_start(args, format);
	printf("# ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

/* Returns a body of its own for each number. */
static inline const char *body_of(unsigned int number)
{
	static char body[MAX_BODY + 16];
	int start = snprintf(body, sizeof(body), "%u ", number);
	int length = number * 7919 % MAX_BODY;

	memset(body + start, 'a' + number % 26, length);
	body[start + length] = '\0';
	return body;
}

static inline long long later(void)
{
	return now_ms(CLOCK_REALTIME) + HOUR_MS + rand() % HOUR_MS;
}

static inline struct job *new_job(void)
{
	struct job *job = &jobs[job_count++];

	need(job_count <= JOBS, "too many jobs");
	job->versions[job->count++].gone = true;
	return job;
}

static inline struct version *latest(struct job *job)
{
	return &job->versions[job->count - 1];
}

/* Adds a version for the next change. The caller sets what the change makes of the job. */
static inline struct version *new_version(struct job *job, enum command by)
{
	struct version *version = latest(job) + 1;

	need(job->count++ < VERSIONS, "too many changes");
	*version = version[-1];
	version->change = ++changes;
	version->by = by;
	version->together = false;
	return version;
}

static inline void new_body(struct version *version)
{
	version->gone = false;
	version->body = changes;
	version->due = later();
}

/* A batch has a few changes at once, each of another job. @together: a batch is a transaction. */
struct batch {
	int count;
	bool together;
	struct job *jobs[BATCH];
};

static inline bool is_in(const struct batch *batch, const struct job *job)
{
	for (int i = 0; i < batch->count; i++)
		if (batch->jobs[i] == job)
			return true;
	return false;
}

/* Returns a job that can still be changed, or a new job. */
static inline struct job *pick_job(const struct batch *batch)
{
	for (int tries = 0; tries < 3 && job_count; tries++) {
		struct job *job = &jobs[rand() % job_count];
		struct version *last = latest(job);

		if (!last->gone && last->by && job->count < VERSIONS - 1 &&
		    !is_in(batch, job))
			return job;
	}
	return new_job();
}

static inline void decide(struct job *job)
{
	int what = latest(job)->gone ? 0 : rand() % 100;
	struct version *version;

	version = new_version(job, what < 50 ? PUT : what < 80 ? MOVE : CANCEL);
	if (version->by == PUT) {
		new_body(version);
		version->options = rand() % 2;
	} else if (version->by == MOVE) {
		version->due = later();
	} else {
		version->gone = true;
	}
}

/* Sends a change. All these commands may be repeated. */
static inline void send_change(redisContext *client, struct job *job)
{
	const struct version *version = latest(job);

	if (version->by == PUT)
		redisAppendCommand(client, version->options ?
				   "TW.PUT q %s KEY key-%d AT %lld REPLACE " OPTIONS :
				   "TW.PUT q %s KEY key-%d AT %lld REPLACE",
				   body_of(version->body), (int)(job - jobs),
				   version->due);
	else if (version->by == MOVE)
		redisAppendCommand(client, "TW.MOVE q %lld AT %lld", job->id,
				   version->due);
	else
		redisAppendCommand(client, "TW.CANCEL q %lld", job->id);
}

static inline void take_answer(struct job *job, const redisReply *reply, bool repeated)
{
	const struct version *version = latest(job);
	bool right;

	if (version->by == PUT) {
		right = reply->type == REDIS_REPLY_ARRAY;
		if (right)
			job->id = reply->element[0]->integer;
	} else {
		right = reply->type == REDIS_REPLY_INTEGER &&
			(reply->integer == 1 ||
			 (repeated && version->by == CANCEL && !reply->integer));
	}
	if (!right)
		complain("the change %d was answered %s", version->change,
			 as_text(reply));
}

static inline struct batch decide_batch(int count)
{
	struct batch batch = { .together = rand() % 2 };

	while (batch.count < count) {
		struct job *job = pick_job(&batch);

		decide(job);
		latest(job)->together = batch.together;
		batch.jobs[batch.count++] = job;
	}
	return batch;
}

/* Returns how many changes were answered: all changes of a transaction, or none. */
static inline int take_answers(redisContext *client, const struct batch *batch, bool repeated)
{
	redisReply *reply = NULL;
	int answered = 0;

	/* The answers to MULTI and to what it gathers say nothing. */
	for (int i = 0; batch->together && i <= batch->count; i++) {
		if (redisGetReply(client, (void **)&reply) != REDIS_OK)
			return 0;
		freeReplyObject(reply);
	}
	if (batch->together) {
		if (redisGetReply(client, (void **)&reply) != REDIS_OK)
			return 0;
		if (reply->elements != (size_t)batch->count)
			complain("a transaction was answered %s", as_text(reply));
		for (; answered < (int)reply->elements; answered++)
			take_answer(batch->jobs[answered], reply->element[answered], repeated);
		freeReplyObject(reply);
		return answered;
	}
	for (; answered < batch->count; answered++) {
		if (redisGetReply(client, (void **)&reply) != REDIS_OK)
			break;
		take_answer(batch->jobs[answered], reply, repeated);
		freeReplyObject(reply);
	}
	return answered;
}

/* Returns how many changes were answered. */
static inline int send_batch(redisContext *client, const struct batch *batch, bool repeated)
{
	int answered;

	if (batch->together)
		redisAppendCommand(client, "MULTI");
	for (int i = 0; i < batch->count; i++)
		send_change(client, batch->jobs[i]);
	if (batch->together)
		redisAppendCommand(client, "EXEC");
	answered = take_answers(client, batch, repeated);
	if (answered == batch->count)
		disk_mark(changes);
	return answered;
}

/* Sends a command about one job, and checks its answer. */
__attribute__((__format__(printf, 3, 4)))
static inline void answers(redisContext *client, const char *answer, const char *format, ...)
{
	redisReply *reply;
	va_list args;

	va_start(args, format);
	reply = redisvCommand(client, format, args);
	va_end(args);
	if (strcmp(as_text(reply), answer))
		complain("\"%s\" was answered %s", format, as_text(reply));
	if (reply)
		freeReplyObject(reply);
	disk_mark(changes);
}

static inline void take_it(redisContext *client, const struct job *job, struct taken *taken)
{
	if (!take(client, taken, "TW.TAKE q BLOCK 20000") || taken->id != job->id)
		complain("took %lld, not %lld", taken->id, job->id);
}

/* Puts a job and works on it. In the end the job is gone, put off, or buried. */
static inline void work_on_one(redisContext *client, int how)
{
	struct job *job = new_job();
	struct version *version = new_version(job, NONE);
	struct taken taken;
	redisReply *reply;

	new_body(version);
	version->due = now_ms(CLOCK_REALTIME) - 10;
	version->unique = how % 3 == 2;
	reply = say(client, version->unique ? "TW.PUT q %s KEY key-%d AT %lld UNIQUE 604800" :
		    "TW.PUT q %s KEY key-%d AT %lld", body_of(version->body),
		    (int)(job - jobs), version->due);
	need(reply && reply->type == REDIS_REPLY_ARRAY, "a put");
	job->id = reply->element[0]->integer;
	freeReplyObject(reply);
	disk_mark(changes);
	take_it(client, job, &taken);
	version = new_version(job, NONE);
	if (how % 3 == 0) {
		version->due = later();
		version->failed = true;
		answers(client, "OK", "TW.NACK q %s AT %lld REASON why", taken.receipt,
			version->due);
		return;
	}
	if (how % 3 == 1) {
		version->buried = true;
		version->failed = true;
		answers(client, "OK", "TW.BURY q %s REASON why", taken.receipt);
		if (how % 2)
			return;
		version = new_version(job, NONE);
		version->buried = false;
		version->due = 0;
		answers(client, "1", "TW.KICK q %lld", job->id);
		take_it(client, job, &taken);
		version = new_version(job, NONE);
	}
	version->gone = !version->unique;
	version->due = 0;
	version->done = true;
	answers(client, "1", "TW.ACK q %s", taken.receipt);
}

static inline void set_rate(redisContext *client)
{
	need(rate_count < RATES, "too many rates");
	rates[rate_count++] = ++changes;
	answers(client, "OK", "TW.CREATE q RATE %d 604800", changes);
}

/* Tells whether the answer of TW.GETKEY shows this version. */
static inline bool is_version(const redisReply *reply, const struct version *version)
{
	const char *body = version->done ? "" : body_of(version->body);
	redisReply **field = reply->element;

	if (reply->type == REDIS_REPLY_NIL || version->gone)
		return reply->type == REDIS_REPLY_NIL && version->gone;
	return reply->type == REDIS_REPLY_ARRAY &&
	       reply->elements == (version->failed ? 16 : 12) + (version->unique ? 2 : 0) +
				  (version->options ? TOLD_OPTIONS : 0UL) &&
	       (!version->failed || !strcmp(field[15]->str, "why")) &&
	       field[11]->str && !strcmp(field[3]->str, "buried") == version->buried &&
	       !strcmp(field[3]->str, "done") == version->done &&
	       (!version->due || field[5]->integer == version->due) &&
	       !strcmp(field[11]->str, body);
}

/*
 * Returns the version that the job has: the one after the change @from, or after a change up to
 * @to, which was under way. NULL: the job has none of these versions.
 */
static inline const struct version *found(const struct job *job, const redisReply *reply,
					  int from, int to)
{
	int i = job->count - 1;

	while (job->versions[i].change > to)
		i--;
	for (; job->versions[i].change > from; i--)
		if (is_version(reply, &job->versions[i]))
			return &job->versions[i];
	return is_version(reply, &job->versions[i]) ? &job->versions[i] : NULL;
}

/* Counts a change that was under way and is a part of a transaction, as done or as not done. */
static inline void count_together(const struct job *job, const struct version *version,
				  int from, int to, int together[2])
{
	for (int i = 0; i < job->count; i++)
		if (job->versions[i].together && job->versions[i].change > from &&
		    job->versions[i].change <= to)
			together[version == &job->versions[i]]++;
}

static inline int done_by(int change)
{
	int count = 0;

	for (int i = 0; i < job_count; i++)
		count += latest(&jobs[i])->done && latest(&jobs[i])->change <= change;
	return count;
}

/* Checks that the jobs that the daemon calls done were done by then, or were under way. */
static inline void check_done(redisContext *client, int from, int to, const char *when)
{
	redisReply *reply = say(client, "TW.DONE q COUNT 1000");
	int told = reply && reply->type == REDIS_REPLY_ARRAY ? reply->element[1]->elements : -1;

	if (told < done_by(from) || told > done_by(to))
		complain("%s: %d jobs are done, and %d to %d should be", when, told,
			 done_by(from), done_by(to));
	if (reply)
		freeReplyObject(reply);
}

/* Checks that the queue has the rate that it had at that time, or one that was under way. */
static inline void check_rate(redisContext *client, int from, int to, const char *when)
{
	int rate = figure(client, "q", "rate"), least = 0;

	for (int i = 0; i < rate_count && rates[i] <= from; i++)
		least = rates[i];
	if (rate < least || rate > to)
		complain("%s: the rate is %d, not %d to %d", when, rate, least, to);
}

/* Checks that all jobs are as they were at that time, and that there are no other jobs. */
static inline void check_jobs(redisContext *client, int from, int to, const char *when)
{
	int there = 0, together[2] = { };

	need(comes_to(client, NULL, "loading", 0), "the load of the jobs");
	for (int i = 0; i < job_count; i++)
		redisAppendCommand(client, "TW.GETKEY q key-%d", i);
	for (int i = 0; i < job_count; i++) {
		const struct version *version;
		redisReply *reply = NULL;

		if (redisGetReply(client, (void **)&reply) != REDIS_OK)
			break;
		version = found(&jobs[i], reply, from, to);
		count_together(&jobs[i], version, from, to, together);
		if (!version)
			complain("%s: the job %lld is %s", when, jobs[i].id,
				 as_text(reply));
		there += reply->type == REDIS_REPLY_ARRAY;
		freeReplyObject(reply);
	}
	check_done(client, from, to, when);
	check_rate(client, from, to, when);
	if (together[false] && together[true])
		complain("%s: a transaction has %d of its changes, and lacks %d", when,
			 together[true], together[false]);
	if (figure(client, "q", "jobs") != there)
		complain("%s: %d jobs, counted as %lld", when, there,
			 figure(client, "q", "jobs"));
	if (figure(client, NULL, "mended"))
		complain("%s: wheel and store differed", when);
}

#endif /* JOBS_CHANGES_H */
