// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs that put a job, or that change or end a job that no worker has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "job.h"
#include "rule.h"
#include "verbs.h"

#define KICK_SLICE	100
#define MAX_KICKS	10000

/* Tells whether the put has a key, if an option needs a key. */
static bool has_key(struct request *request, const struct put *put)
{
	if (put->key.length || !(put->replace || put->options.unique))
		return true;
	reply_error(request->reply, "ERR %s needs a KEY", put->replace ? "REPLACE" : "UNIQUE");
	return false;
}

static bool parse_put(struct request *request, struct put *put)
{
	*put = (struct put) {
		.body = request->argv[2],
		.due = now_ms(),
		.options = NO_OPTIONS,
	};
	for (int i = 3; i < request->argc; i++) {
		int n = arg_option(request, i, request->argc, &put->options);

		if (n < 0)
			return false;
		if (n) {
			i += n - 1;
			continue;
		}
		if (arg_is(request->argv[i], "REPLACE")) {
			put->replace = true;
		} else if (arg_is(request->argv[i], "KEY") &&
			   i + 1 < request->argc) {
			if (!arg_key(request, request->argv[++i], &put->key))
				return false;
		} else if (arg_is(request->argv[i], "UNIQUE") &&
			   i + 1 < request->argc) {
			if (!arg_span(request, request->argv[++i], "UNIQUE",
				      &put->options.unique))
				return false;
		} else {
			if (!arg_due(request, i++, &put->due))
				return false;
		}
	}
	return has_key(request, put);
}

static uint64_t size_of(const struct put *put)
{
	return put->body.length + put->key.length + JOB_OVERHEAD +
	       (put->rule ? rule_size(put->rule) : 0);
}

static void refuse_job(struct reply *reply, const struct queue_row *row)
{
	unsigned long long most = row->max_jobs, done = row->done;

	if (done)
		reply_error(reply, "FULL the queue has its %llu jobs, %llu of them done", most,
			    done);
	else
		reply_error(reply, "FULL the queue has its %llu jobs", most);
}

/*
 * Tells whether the queue has room for a job of @size bytes in place of a job of @old bytes. @old
 * is 0 for a new job.
 */
static bool has_room(struct request *request, uint64_t size, uint64_t old)
{
	const struct queue_row *row = &request->queue->row;

	if (store->is_full())
		reply_error(request->reply, "FULL the disk is full");
	else if (row->draining)
		reply_error(request->reply, "DRAINING the queue takes no new jobs");
	else if (!old && (int64_t)row->jobs >= (int64_t)row->max_jobs)
		refuse_job(request->reply, row);
	else if ((int64_t)(row->bytes - old + size) > (int64_t)row->max_bytes)
		reply_error(request->reply, "FULL the queue has its %llu bytes",
			    (unsigned long long)row->max_bytes);
	else
		return true;
	return false;
}

static bool has_options(const struct put *put)
{
	return memcmp(&put->options, &NO_OPTIONS, sizeof(put->options));
}

/* Saves the rule and the options, instead of the options that the job @had. */
static int save_more(const struct put *put, const struct job *job, bool had)
{
	int result = 0;

	if (put->rule)
		result = turn_result(store->save_rule(job->id, put->rule));
	if (!result && (had || has_options(put)))
		result = turn_result(store->save_options(job->id, &put->options));
	return result;
}

static int add_job(struct queue *queue, const struct put *put, struct job *job)
{
	*job = (struct job) {
		.queue = queue->row.id,
		.due = put->due,
		.size = size_of(put),
		.rule = put->rule,
		.options = has_options(put),
		.unique = put->options.unique,
		.key_length = put->key.length,
	};
	if (put->key.length)
		memcpy(job->key, put->key.data, put->key.length);
	return turn_add(queue, job, put->body) ?: save_more(put, job, false);
}

static void answer_key(struct request *request, const struct job *job,
		       const char *mark)
{
	reply_array(request->reply, 2);
	reply_integer(request->reply, job->id);
	reply_text(request->reply, mark);
}

/* Makes the job due at @due, with all its tries, also if it was buried. */
static int renew(struct queue *queue, struct job *job, uint64_t due)
{
	int result = job_end_wait(queue, job);

	if (result)
		return result;
	queue->row.buried -= job->buried;
	job->due = due;
	job->attempts = 0;
	job->buried = false;
	return 0;
}

/* Gives the job of the key another body, another time, another rule and other options. */
static void replace(struct request *request, const struct put *put,
		    struct job *job, const struct timewheel_token *token)
{
	uint64_t old = job->size;
	bool had = job->options;
	int result;

	job->size = size_of(put);
	job->options = has_options(put);
	job->unique = put->options.unique;
	if (!has_room(request, job->size, old))
		return;
	result = renew(request->queue, job, put->due) ?:
		 turn_begin() ?: turn_result(store->change(job, put->body)) ?:
		 save_more(put, job, had);
	if (result) {
		answer_failure(request, result);
		return;
	}
	request->queue->row.bytes += job->size - old;
	turn_changed(request->queue, job, token, 0, CHANGE_TO_NEW);
	answer_key(request, job, "REPLACED");
}

struct comparison {
	struct bytes body;
	bool same;
};

static void compare_body(void *arg, struct bytes body)
{
	struct comparison *comparison = arg;

	comparison->same = body.length == comparison->body.length &&
			   !memcmp(body.data ?: "", comparison->body.data, body.length);
}

static bool has_same_options(const struct put *put, const struct job *job)
{
	struct options options = NO_OPTIONS;

	if (job->options && store->get_options(job->id, &options))
		return false;
	return !memcmp(&options, &put->options, sizeof(options));
}

/*
 * Tells whether the job has the rule, the options and the body of the put. It may be any
 * occurrence.
 */
static bool is_same_rule(const struct put *put, const struct job *job)
{
	struct comparison comparison = { .body = put->body };
	struct rule rule;

	return !store->get_rule(job->id, &rule) &&
	       !strcmp(rule.text, put->rule->text) &&
	       !strcmp(rule.zone, put->rule->zone) &&
	       rule.missed == put->rule->missed &&
	       rule.overlap == put->rule->overlap && has_same_options(put, job) &&
	       !store->body(job->id, compare_body, &comparison) && comparison.same;
}

/*
 * Handles a put with a key that a job may have. Returns whether there was such a job, or an
 * error, and the put is answered.
 */
static bool put_again(struct request *request, const struct put *put)
{
	struct timewheel_token token;
	struct job job;
	int result = job_find_key(request->queue, put->key, &job, &token);

	if (result == -ENOENT)
		return false;
	/* The put replaces a done job whose key need not be unique any more. */
	if (!result && job.done && job.due <= now_ms()) {
		result = job_remove(request->queue, &job, &token, 0);
		if (!result)
			return false;
	}
	if (result)
		answer_failure(request, result);
	else if (put->replace && job.rule != !!put->rule)
		reply_error(request->reply, job.rule ?
			    "ERR the key is that of a rule, see TW.EVERY" :
			    "ERR the key is that of a job without a rule");
	else if (job.done)
		answer_key(request, &job, "DONE");
	else if (put->rule && is_same_rule(put, &job))
		answer_key(request, &job, "EXISTS");
	else if (token.state == TIMEWHEEL_STATE_HELD)
		answer_failure(request, -EBUSY);
	else if (put->replace)
		replace(request, put, &job, &token);
	else
		answer_key(request, &job, job.buried ? "BURIED" : "EXISTS");
	return true;
}

void put_job(struct request *request, const struct put *put)
{
	struct job job;
	int result;

	do {
		if (put->key.length && put_again(request, put))
			return;
		if (!has_room(request, size_of(put), 0))
			return;
		result = add_job(request->queue, put, &job);
	} while (result == -EEXIST);
	if (result)
		answer_failure(request, result);
	else if (put->key.length)
		answer_key(request, &job, "NEW");
	else
		reply_integer(request->reply, job.id);
}

/*
 * TW.PUT queue body [IN seconds | AT time] [KEY key [REPLACE] [UNIQUE s]] [LEASE s] [TRIES n]
 * [BACKOFF s s]
 */
void verb_put(struct request *request)
{
	struct put put;

	/* The turn may connect to another server, whose clock then counts for IN. */
	if (store->shared)
		turn_begin();
	if (!parse_put(request, &put))
		return;
	/* A client that replaces a job cancels the job's old content. */
	if (!put.replace || request_may(request, MAY_CANCEL, &request->argv[1]))
		put_job(request, &put);
}

/*
 * The job that a verb below names, by its number or by its key. @error is the error of
 * job_find(). -EINVAL: the argument is wrong, and the client has got an error.
 */
struct found {
	int error;
	struct job job;
	struct timewheel_token token;
};

static struct found find(struct request *request)
{
	struct found found = { .error = -EINVAL };
	struct bytes key;
	uint64_t id;

	if (request->by_key) {
		if (arg_key(request, request->argv[2], &key))
			found.error = job_find_key(request->queue, key, &found.job,
						   &found.token);
	} else if (arg_number(request, request->argv[2], 1, MAX_ID, &id)) {
		found.error = job_find(request->queue, id, true, &found.job,
				       &found.token);
	}
	return found;
}

/*
 * Returns the error with which the job was found. -ENOENT: the job is done. -EBUSY: a worker has
 * it.
 */
static int unless_held(const struct found *found)
{
	if (!found->error && found->job.done)
		return -ENOENT;
	if (!found->error && found->token.state == TIMEWHEEL_STATE_HELD)
		return -EBUSY;
	return found->error;
}

/*
 * Answers 1 if the change is made, 0 if the job is unknown, and nothing after -EINVAL: see struct
 * found.
 */
static void answer_done(struct request *request, int result)
{
	if (!result || result == -ENOENT)
		reply_integer(request->reply, !result);
	else if (result != -EINVAL)
		answer_failure(request, result);
}

/* TW.CANCEL queue id, TW.CANCELKEY queue key */
void verb_cancel(struct request *request)
{
	struct found found = find(request);

	answer_done(request, unless_held(&found) ?:
		    job_remove(request->queue, &found.job, &found.token, 0));
}

/* TW.DELETE queue id */
void verb_delete(struct request *request)
{
	struct found found = find(request);

	answer_done(request, found.error ?:
		    job_remove(request->queue, &found.job, &found.token, 0));
}

/* TW.MOVE queue id IN seconds | AT time, TW.MOVEKEY queue key IN seconds | AT time */
void verb_move(struct request *request)
{
	struct found found = find(request);
	uint64_t due;
	int result;

	if (!found.error && found.job.buried && !found.job.done) {
		reply_error(request->reply, "BURIED the job is buried: see TW.KICK");
		return;
	}
	/* A wrong time is an error even if there is no such job. */
	if (found.error != -EINVAL && !arg_due(request, 3, &due))
		return;
	result = unless_held(&found) ?: job_end_wait(request->queue, &found.job);
	if (!result) {
		found.job.due = due;
		result = job_change(request->queue, &found.job, &found.token, 0,
				    CHANGE_TO_PENDING);
	}
	answer_done(request, result);
}

static int kick(struct queue *queue, struct found *found)
{
	int error = unless_held(found);

	if (error)
		return error;
	return renew(queue, &found->job, now_ms()) ?:
	       job_change(queue, &found->job, &found->token, 0, CHANGE_TO_NEW);
}

/* TW.KICK queue ALL n is carried out in steps. */
struct kicks {
	int64_t queue, after;
	uint64_t left;
	int64_t done;
};

/* Kicks some buried jobs. Returns 1 if there may be more, 0 if there are no more, or an error. */
static int kick_some(struct queue *queue, struct kicks *kicks)
{
	static struct job jobs[KICK_SLICE];
	int count = store->next(kicks->after, queue->row.id, jobs, KICK_SLICE);

	for (int i = 0; i < count && kicks->left; i++) {
		struct found found;
		int result;

		kicks->after = jobs[i].id;
		if (jobs[i].done)
			continue;
		found.error = job_find(queue, jobs[i].id, true, &found.job, &found.token);
		result = kick(queue, &found);
		/* Another client may have changed the job meanwhile. */
		if (result == -ENOENT)
			continue;
		if (result)
			return result;
		kicks->done++;
		kicks->left--;
	}
	return count < 0 ? count : count == KICK_SLICE && kicks->left;
}

static void step_kicks(struct client *client, bool end)
{
	struct kicks *kicks = client->steps;
	struct request request = {
		.client = client,
		.reply = &client->reply,
		.queue = queue_by_id(kicks->queue),
	};
	int result = 0;

	if (!end && request.queue && !request.queue->row.dropped)
		result = kick_some(request.queue, kicks);
	if (result > 0)
		return;
	if (result < 0)
		answer_failure(&request, result);
	else if (!end)
		reply_integer(request.reply, kicks->done);
	free(kicks);
	client->steps = NULL;
	client->step = NULL;
}

static void begin_kicks(struct request *request, uint64_t n)
{
	struct kicks *kicks = calloc(1, sizeof(*kicks));

	if (!kicks)
		die(ENOMEM, "a command");
	*kicks = (struct kicks) { .queue = request->queue->row.id, .left = n };
	request->client->steps = kicks;
	request->client->step = step_kicks;
	step_kicks(request->client, false);
}

/* TW.KICK queue id | ALL n */
void verb_kick(struct request *request)
{
	bool all = arg_is(request->argv[2], "ALL"), how_many = request->argc == 4;
	struct found found;
	uint64_t n;

	if (all != how_many) {
		reply_error(request->reply, all ? "ERR ALL needs a number" :
			    "ERR expected a job's number, or ALL and how many");
	} else if (!all) {
		found = find(request);
		answer_done(request, kick(request->queue, &found));
	} else if (arg_number(request, request->argv[3], 1, MAX_KICKS, &n)) {
		turn_end();
		begin_kicks(request, n);
	}
}
