// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs that are about queues as a whole.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "allow.h"
#include "keep.h"
#include "verbs.h"

#define LEASE		(60 * MSEC_PER_SEC)
#define TRIES		10
#define MAX_JOBS	100000
#define MOST_JOBS	(1 << 28)
#define MAX_BYTES	(1ULL << 30)
#define MOST_BYTES	(1ULL << 50)
/* These are the highest limits of jobs at once, and of jobs in a time. */
#define MOST_LIMIT	65536
#define MOST_RATE	1000000

static bool is_name(struct bytes name)
{
	static const char * const words[] = { "COUNT", "BLOCK", "BOUND" };

	if (!arg_is_name(name))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (arg_is(name, words[i]))
			return false;
	return true;
}

static bool parse_keep_done(struct request *request, struct bytes value, int64_t *keep)
{
	uint64_t ms;

	if (!arg_seconds(request, value, &ms))
		return false;
	*keep = ms || !*keep ? (int64_t)ms : KEEP_NO_MORE;
	return true;
}

static bool parse_setting(struct request *request, int i, struct queue_row *row)
{
	struct bytes value = request->argv[i + 1];

	if (arg_is(request->argv[i], "TRIES"))
		return arg_number(request, value, 0, MAX_TRIES, &row->tries);
	if (arg_is(request->argv[i], "MAXJOBS"))
		return arg_number(request, value, 1, MOST_JOBS, &row->max_jobs);
	if (arg_is(request->argv[i], "MAXBYTES"))
		return arg_number(request, value, 1, MOST_BYTES, &row->max_bytes);
	if (arg_is(request->argv[i], "LEASE"))
		return arg_span(request, value, "a lease", &row->lease);
	if (arg_is(request->argv[i], "LIMIT"))
		return arg_number(request, value, 0, MOST_LIMIT, &row->limit);
	if (arg_is(request->argv[i], "GROUPLIMIT"))
		return arg_number(request, value, 0, MOST_LIMIT, &row->group_limit);
	if (arg_is(request->argv[i], "KEEPBURIED"))
		return arg_seconds(request, value, &row->keep_buried);
	if (arg_is(request->argv[i], "KEEPDONE"))
		return parse_keep_done(request, value, &row->keep_done);
	reply_error(request->reply,
		    "ERR expected LEASE, TRIES, MAXJOBS, MAXBYTES, BACKOFF, KEEPBURIED, KEEPDONE, LIMIT, RATE, GROUPLIMIT, GROUPRATE or IFNEW");
	return false;
}

/* BACKOFF has two values. After "0 0" the queue has no backoff. */
static bool parse_backoff(struct request *request, int i, struct queue_row *row)
{
	if (!arg_seconds(request, request->argv[i + 1], &row->backoff) ||
	    !arg_seconds(request, request->argv[i + 2], &row->backoff_most))
		return false;
	return (!row->backoff && !row->backoff_most) ||
	       arg_backoff(request, i, &row->backoff, &row->backoff_most);
}

/* A rate has two values. After "0 0" the queue has no rate. */
static bool parse_rate(struct request *request, int i, struct rate *rate)
{
	if (!arg_number(request, request->argv[i + 1], 0, MOST_RATE, &rate->jobs) ||
	    !arg_seconds(request, request->argv[i + 2], &rate->per))
		return false;
	if (!rate->jobs == !rate->per && rate->per <= MAX_SPAN)
		return true;
	reply_error(request->reply,
		    "ERR a rate is 1 to %d jobs in 0.001 to %llu seconds, or 0 0 for none",
		    MOST_RATE, MAX_SPAN / MSEC_PER_SEC);
	return false;
}

static bool has_two_values(struct bytes setting)
{
	return arg_is(setting, "BACKOFF") || arg_is(setting, "RATE") ||
	       arg_is(setting, "GROUPRATE");
}

static bool parse_two(struct request *request, int i, struct queue_row *row)
{
	if (arg_is(request->argv[i], "BACKOFF"))
		return parse_backoff(request, i, row);
	return parse_rate(request, i, arg_is(request->argv[i], "RATE") ? &row->rate :
			  &row->group_rate);
}

/* Limits are refused with a shared store, because each daemon would have a limit of its own. */
static bool may_limit(struct request *request, const struct queue_row *row)
{
	if (!store->shared || !(row->limit || row->rate.jobs || row->group_limit ||
				row->group_rate.jobs))
		return true;
	answer_no_limit(request->reply);
	return false;
}

/* @if_new tells that a queue which exists stays as it is. */
static bool parse_settings(struct request *request, struct queue_row *row, bool *if_new)
{
	*if_new = false;
	for (int i = 2; i < request->argc; i++) {
		if (arg_is(request->argv[i], "IFNEW")) {
			*if_new = true;
			continue;
		}
		bool two = has_two_values(request->argv[i]);

		if (i + 1 + two >= request->argc) {
			reply_error(request->reply, "ERR a setting has no value");
			return false;
		}
		if (!(two ? parse_two : parse_setting)(request, i, row))
			return false;
		i += 1 + two;
	}
	return may_limit(request, row);
}

/*
 * Saves the row in a turn of its own, so that the queue is durable before its wheel changes.
 * After an error this function has answered.
 */
static bool save_alone(struct request *request, struct queue_row *row)
{
	int error = turn_end() ?: turn_begin() ?:
		    turn_result(store->save_queue(row)) ?: turn_end();

	if (!error)
		return true;
	turn_end();
	answer_failure(request, error);
	return false;
}

/* Saves the row of the command's queue in a turn of its own, and gives it to the queue. */
static bool save_queue(struct request *request, struct queue_row *row)
{
	if (!save_alone(request, row))
		return false;
	/* A row with the same lease and limits needs no other wheel. */
	keep_set(request->queue, row);
	return true;
}

static size_t count_queues(void)
{
	struct queue *queue;
	size_t count = 0;

	LIST_FOREACH(queue, &queues, next)
		count += !queue->row.dropped;
	return count;
}

/* Tells why the queue gets no wheel with these settings. */
static void answer_no_wheel(struct request *request, struct queue *queue,
			    int error)
{
	switch (-error) {
	case EINVAL:
		reply_error(request->reply,
			    "ERR MAXJOBS is at most %llu, by max_tokens of the kernel's module",
			    (unsigned long long)queue_most_jobs());
		break;
	case EBUSY:
		reply_error(request->reply,
			    "ERR the wheel %s%s is in use by another twjobd: see wheel-prefix in twjobd.conf(5)",
			    config.prefix, queue->row.name);
		break;
	case EDQUOT:
	case ENOMEM:
	case ENOSPC:
		reply_error(request->reply, "FULL the kernel gives no wheel: %s",
			    tw_strerror(-error));
		break;
	default:
		keep_complain(queue, error);
		reply_error(request->reply,
			    "UNAVAILABLE the kernel gives no wheel: see the log");
	}
}

static void change_queue(struct request *request, struct queue *queue,
			 const struct queue_row *row)
{
	struct queue_row old = queue->row, changed = *row;
	int error;

	if (row->max_jobs < old.jobs) {
		reply_error(request->reply, "FULL the queue has %llu jobs",
			    (unsigned long long)old.jobs);
		return;
	}
	if (!save_alone(request, &changed))
		return;
	error = keep_set(queue, &changed);
	if (!error) {
		reply_ok(request->reply);
		return;
	}
	/* A queue without a wheel is of no use, so the queue keeps its old settings. */
	if (!turn_begin() && !turn_result(store->save_queue(&old)))
		keep_set(queue, &old);
	answer_no_wheel(request, queue, error);
}

static void make_queue(struct request *request, struct queue_row *row)
{
	struct queue *queue;
	int error;

	if (count_queues() >= MAX_QUEUES) {
		reply_error(request->reply, "FULL there are %d queues",
			    MAX_QUEUES);
		return;
	}
	memcpy(row->name, request->argv[1].data, request->argv[1].length);
	if (!save_alone(request, row))
		return;
	queue = queue_new(row);
	error = keep_open(queue);
	if (!error) {
		reply_ok(request->reply);
		return;
	}
	/* The queue is refused, because it would be of no use without a wheel. */
	answer_no_wheel(request, queue, error);
	queue_free(queue);
	turn_begin();
	turn_result(store->remove_queue(row->id));
}

/*
 * TW.CREATE queue [LEASE s] [TRIES n] [MAXJOBS n] [MAXBYTES n] [BACKOFF s s] [KEEPBURIED s]
 * [KEEPDONE s] [LIMIT n] [RATE n s] [GROUPLIMIT n] [GROUPRATE n s] [IFNEW]
 */
void verb_create(struct request *request)
{
	struct queue *queue = queue_find(request->argv[1]);
	struct queue_row row = {
		.lease = LEASE,
		.tries = TRIES,
		.max_jobs = MAX_JOBS,
		.max_bytes = MAX_BYTES,
	};
	bool if_new;

	if (!is_name(request->argv[1])) {
		reply_error(request->reply,
			    "ERR a queue's name has 1 to %d letters, digits, \"-\" and \"_\"",
			    NAME_SIZE - 1);
		return;
	}
	if (queue)
		row = queue->row;
	if (!parse_settings(request, &row, &if_new))
		return;
	if (queue && if_new)
		reply_ok(request->reply);
	else if (queue)
		change_queue(request, queue, &row);
	else
		make_queue(request, &row);
}

/* TW.DROP queue */
void verb_drop(struct request *request)
{
	struct queue_row row = request->queue->row;

	row.dropped = true;
	if (!save_queue(request, &row))
		return;
	take_end_queue(request->queue);
	queue_destroy_wheel(request->queue);
	keep_remove_jobs();
	reply_ok(request->reply);
}

/* TW.QUEUES */
void verb_queues(struct request *request)
{
	struct queue *queue;
	size_t count = 0;

	LIST_FOREACH(queue, &queues, next)
		count += allow_look(request->client, queue);
	reply_array(request->reply, count);
	LIST_FOREACH(queue, &queues, next)
		if (allow_look(request->client, queue))
			reply_text(request->reply, queue->row.name);
}

static void set_state(struct request *request, bool paused, bool draining)
{
	struct queue_row row = request->queue->row;

	row.paused = paused;
	row.draining = draining;
	if (!save_queue(request, &row))
		return;
	take_listen(request->queue);
	reply_ok(request->reply);
}

/* TW.PAUSE queue */
void verb_pause(struct request *request)
{
	set_state(request, true, request->queue->row.draining);
}

/* TW.DRAIN queue */
void verb_drain(struct request *request)
{
	set_state(request, request->queue->row.paused, true);
}

/* TW.RESUME queue: the queue is neither paused nor draining any more. */
void verb_resume(struct request *request)
{
	set_state(request, false, false);
}
