// SPDX-License-Identifier: GPL-2.0-only
/*
 * Deliveries: TW.TAKE, and those who wait for one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "keep.h"
#include "rule.h"
#include "verbs.h"

#define READ_AT_ONCE	16
#define MAX_COUNT	1000
#define MAX_BLOCK	(86400 * MSEC_PER_SEC)
/* No further jobs are read for an answer that has so many bytes. */
#define MAX_ANSWER	(1 << 20)
/* A job that cannot be looked at now comes again after so many ms. */
#define LATER		1000
/* So many ms after it a take without BLOCK is expected to come again. */
#define ASKED		1000

/* @queues are asked in this order. */
struct waiter {
	TAILQ_ENTRY(waiter) next;
	struct client *client;
	sd_event_source *timer;
	uint64_t count;
	uint64_t block;		/* ms */
	bool waits, bound;
	int nr_queues;
	struct queue *queues[];
};

static TAILQ_HEAD(, waiter) waiters = TAILQ_HEAD_INITIALIZER(waiters);

/* The jobs of one answer, which is put together before their number is known. */
struct taken {
	const struct waiter *waiter;
	struct reply jobs;
	struct buffer buffer;
	uint64_t count;
	bool in_turn;		/* the answer is true only when the turn has been committed */
};

/* All that tells one delivery from all others: see verbs_answer.c. */
static void add_receipt(struct reply *reply, struct queue *queue,
			const struct timewheel_event *event, const struct job *job)
{
	uint64_t second = store->shared ? job->version : queue->row.epoch;
	uint64_t third = store->shared ? (uint64_t)job->queue : event->handle;
	char receipt[96];

	snprintf(receipt, sizeof(receipt), "%llx-%llx-%llx-%x",
		 (unsigned long long)event->cookie, (unsigned long long)second,
		 (unsigned long long)third, event->delivery);
	reply_text(reply, receipt);
}

static void add_body(void *reply, struct bytes body)
{
	reply_bytes(reply, body);
}

/* queue, id, receipt, attempt, due, key, body */
static int add_job(struct taken *taken, struct queue *queue,
		   const struct timewheel_event *event, const struct job *job,
		   uint64_t attempt)
{
	size_t length = taken->buffer.length;
	int result;

	reply_array(&taken->jobs, 7);
	reply_text(&taken->jobs, queue->row.name);
	reply_integer(&taken->jobs, job->id);
	add_receipt(&taken->jobs, queue, event, job);
	reply_integer(&taken->jobs, attempt);
	reply_integer(&taken->jobs, job->due);
	if (job->key_length)
		reply_bytes(&taken->jobs, (struct bytes) { job->key,
			    job->key_length });
	else
		reply_null(&taken->jobs);
	result = store->body(job->id, add_body, &taken->jobs);
	if (result)
		taken->buffer.length = length;
	return result;
}

/* A first delivery is not written: the wheel counts it until it is answered. */
static uint64_t next_attempt(const struct job *job,
			     const struct timewheel_event *event)
{
	return job->attempts ? job->attempts + 1 : event->delivery;
}

static int bury_job(struct queue *queue, struct job *job,
		    const struct timewheel_event *event)
{
	const struct timewheel_token token = {
		.id = event->id,
		.handle = event->handle,
	};
	int result;

	job->buried = true;
	job->held_until = 0;
	if (job->rule) {
		result = rule_end(queue, job, &token, event->delivery);
		if (result != -ENOENT)
			return result;
	}
	result = turn_begin() ?:
		 turn_result(store->change(job, (struct bytes) { }));
	if (!result)
		turn_changed(queue, job, &token, event->delivery,
			     CHANGE_TO_BURIED);
	return result;
}

/* What was read against the row: 0, or it is not for the client. */
static int check_job(struct queue *queue, struct job *job,
		     const struct timewheel_event *event)
{
	int result = store->get(event->cookie, true, job);

	if (!result && job->queue != queue->row.id)
		result = -ENOENT;
	if (result == -ENOENT) {
		keep_count_mended();
		queue_unregister(queue, event->handle);
	} else if (result) {
		queue_give_back(queue, event->handle, event->delivery,
				now_ms() + LATER);
	} else if (job->due > now_ms()) {
		queue_give_back(queue, event->handle, event->delivery, job->due);
		result = -EAGAIN;
	} else if (job->buried || (queue->row.tries &&
		   next_attempt(job, event) > queue->row.tries)) {
		bury_job(queue, job, event);
		result = -EAGAIN;
	}
	return result;
}

static void count_taken(struct taken *taken, struct queue *queue,
			const struct timewheel_event *event, const struct job *job)
{
	taken->count++;
	histogram_add(&queue->lateness, event->taken - event->deadline);
	client_delivered(taken->waiter->client, queue, event, job->version,
			 taken->waiter->bound);
}

static void take_event(struct taken *taken, struct queue *queue,
		       const struct timewheel_event *event)
{
	const struct timewheel_token token = {
		.id = event->id,
		.handle = event->handle,
	};
	uint64_t attempt;
	struct job job;
	int result = check_job(queue, &job, event);

	if (result)
		return;
	attempt = next_attempt(&job, event);
	if (job.rule)
		result = rule_take(queue, &job, &token, event->delivery, attempt == 1);
	if (result == -EAGAIN)
		return;
	if (!result && attempt > 1) {
		job.attempts = attempt;
		result = turn_begin() ?:
			 turn_result(store->change(&job, (struct bytes) { }));
	}
	if (!result)
		result = add_job(taken, queue, event, &job, attempt);
	if (result) {
		queue_give_back(queue, event->handle, event->delivery,
				now_ms() + LATER);
		return;
	}
	taken->in_turn |= job.rule || attempt > 1 ||
			  turn_has_added(queue, event->handle);
	count_taken(taken, queue, event, &job);
}

/* What has been claimed, or has not, with a shared store. */
static void take_claimed(struct taken *taken, struct queue *queue,
			 const struct timewheel_event *event, struct job *job,
			 int result)
{
	const struct timewheel_token token = {
		.id = event->id,
		.handle = event->handle,
	};
	uint64_t later = now_ms() + LATER;

	/* The token of a job that has ended, or that another owner has. */
	if (result == -ENOENT) {
		queue_unregister(queue, event->handle);
		return;
	}
	if (result == -EAGAIN && !job->buried)
		later = job_next_due(job);
	if ((result == -EAGAIN && job->buried) ||
	    (!result && queue->row.tries && job->attempts > queue->row.tries)) {
		bury_job(queue, job, event);
		return;
	}
	if (!result && job->rule) {
		result = rule_take(queue, job, &token, event->delivery, job->attempts == 1);
		if (result == -EAGAIN)
			return;
		/* Nothing has been delivered. */
		if (result) {
			job->attempts--;
			turn_result(store->change(job, (struct bytes) { }));
		}
	}
	if (!result)
		result = add_job(taken, queue, event, job, job->attempts);
	if (result)
		queue_give_back(queue, event->handle, event->delivery, later);
	else
		count_taken(taken, queue, event, job);
}

/* The rows decide whether what was read is for the client. */
static void claim(struct taken *taken, struct queue *queue,
		  const struct timewheel_event *events, int count)
{
	static struct job jobs[READ_AT_ONCE];
	int results[READ_AT_ONCE], error;
	int64_t ids[READ_AT_ONCE];

	for (int i = 0; i < count; i++)
		ids[i] = events[i].cookie;
	taken->in_turn = true;
	error = turn_begin() ?:
		turn_result(store->claim(&queue->row, ids, count, jobs, results));
	for (int i = 0; i < count; i++)
		take_claimed(taken, queue, &events[i], &jobs[i],
			     error ?: results[i]);
}

void take_release(struct queue *queue, const struct delivery *delivery)
{
	struct job job = {
		.id = delivery->job,
		.due = now_ms(),
	};
	struct timewheel_token token = { .id = job.id };

	if (!queue_holds(queue, delivery->handle, delivery->number))
		return;
	if (!turn_begin() &&
	    !turn_result(store->release(job.id, delivery->version)))
		turn_changed(queue, &job, &token, 0, CHANGE_TO_PENDING);
}

/* Returns whether the answer takes no more. */
static bool is_enough(const struct taken *taken)
{
	return taken->count == taken->waiter->count ||
	       taken->buffer.length > MAX_ANSWER;
}

static void take_from(struct taken *taken, struct queue *queue)
{
	struct timewheel_event events[READ_AT_ONCE];
	int n;

	queue->asked = now_ms();
	if (queue->row.paused)
		return;
	do {
		uint64_t want = taken->waiter->count - taken->count;

		/* All that is read is handed out: a delivery counts as a try. */
		if (want > READ_AT_ONCE)
			want = READ_AT_ONCE;
		n = queue_read(queue, taken->waiter->bound, events, want);
		if (n == -ENODEV)
			keep_lost(queue);
		if (n > 0 && store->shared)
			claim(taken, queue, events, n);
		for (int i = 0; i < n && !store->shared; i++)
			take_event(taken, queue, &events[i]);
	} while (n > 0 && !is_enough(taken));
}

/* Answers if there is a job. */
static bool serve(struct waiter *waiter)
{
	struct taken taken = { .waiter = waiter };
	struct reply *reply = &waiter->client->reply;

	taken.jobs = (struct reply) { &taken.buffer, reply->version };
	/* What this turn has moved or ended is not to be read at its old time. */
	for (int i = 0; i < waiter->nr_queues; i++) {
		if (waiter->queues[i]->unsettled) {
			turn_end();
			break;
		}
	}
	for (int i = 0; i < waiter->nr_queues && !is_enough(&taken); i++)
		take_from(&taken, waiter->queues[i]);
	if (taken.count) {
		reply_array(reply, taken.count);
		buffer_add(reply->out, taken.buffer.data, taken.buffer.length);
		waiter->client->final = !taken.in_turn;
	}
	buffer_free(&taken.buffer);
	return taken.count;
}

static void free_waiter(struct waiter *waiter)
{
	if (waiter->waits) {
		TAILQ_REMOVE(&waiters, waiter, next);
		waiter->client->waiter = NULL;
	}
	sd_event_source_disable_unref(waiter->timer);
	free(waiter);
}

static bool has_waiter(struct queue *queue)
{
	struct waiter *waiter;

	TAILQ_FOREACH(waiter, &waiters, next)
		for (int i = 0; i < waiter->nr_queues; i++)
			if (waiter->queues[i] == queue)
				return true;
	return false;
}

bool take_is_wanted(struct queue *queue)
{
	return has_waiter(queue) || queue->asked + ASKED > now_ms();
}

static void end_wait(struct waiter *waiter)
{
	struct client *client = waiter->client;

	free_waiter(waiter);
	client->resume(client);
}

static bool waits_for(const struct waiter *waiter, const struct queue *queue)
{
	for (int i = 0; i < waiter->nr_queues; i++)
		if (waiter->queues[i] == queue)
			return true;
	return false;
}

/* As long as something is due, and a client waits for it. */
static int on_due(sd_event_source *source, int fd, uint32_t events, void *data)
{
	struct queue *queue = data;
	struct waiter *waiter, *next;

	(void)source;
	(void)fd;
	if (events & (EPOLLHUP | EPOLLERR)) {
		keep_lost(queue);
		return 0;
	}
	for (waiter = TAILQ_FIRST(&waiters); waiter; waiter = next) {
		next = TAILQ_NEXT(waiter, next);
		if (!waits_for(waiter, queue))
			continue;
		if (!serve(waiter))
			break;
		end_wait(waiter);
		turn_limit();
	}
	take_listen(queue);
	return 0;
}

void take_listen(struct queue *queue)
{
	bool on = queue->plain && !queue->row.paused && has_waiter(queue);

	if (on && !queue->due)
		must(sd_event_add_io(event, &queue->due,
				     tw_wheel_fd(queue->plain), EPOLLIN, on_due,
				     queue));
	if (queue->due)
		must(sd_event_source_set_enabled(queue->due, on));
}

static int on_timeout(sd_event_source *source, uint64_t time, void *data)
{
	struct waiter *waiter = data;

	(void)source;
	(void)time;
	reply_null_array(&waiter->client->reply);
	end_wait(waiter);
	return 0;
}

void take_forget(struct client *client)
{
	if (client->waiter)
		free_waiter(client->waiter);
}

void take_end_queue(struct queue *queue)
{
	struct waiter *waiter, *next;

	for (waiter = TAILQ_FIRST(&waiters); waiter; waiter = next) {
		next = TAILQ_NEXT(waiter, next);
		if (!waits_for(waiter, queue))
			continue;
		reply_error(&waiter->client->reply,
			    "NOQUEUE the queue has been dropped");
		end_wait(waiter);
	}
}

static void wait_for_job(struct waiter *waiter)
{
	waiter->waits = true;
	TAILQ_INSERT_TAIL(&waiters, waiter, next);
	waiter->client->waiter = waiter;
	if (waiter->block)
		must(sd_event_add_time_relative(event, &waiter->timer,
						CLOCK_MONOTONIC,
						waiter->block * USEC_PER_MSEC, 1,
						on_timeout, waiter));
	for (int i = 0; i < waiter->nr_queues; i++)
		take_listen(waiter->queues[i]);
}

static bool is_option(struct bytes arg)
{
	return arg_is(arg, "COUNT") || arg_is(arg, "BLOCK") ||
	       arg_is(arg, "BOUND");
}

/* Returns whether the client is to wait, in @wait. */
static bool parse_options(struct request *request, int i,
			  struct waiter *waiter, bool *wait)
{
	*wait = false;
	waiter->count = 1;
	for (; i < request->argc; i++) {
		struct bytes option = request->argv[i];

		if (arg_is(option, "BOUND")) {
			waiter->bound = true;
			continue;
		}
		if (!is_option(option) || ++i == request->argc) {
			reply_error(request->reply, "ERR syntax error in TW.TAKE");
			return false;
		}
		if (arg_is(option, "COUNT")) {
			if (!arg_number(request, request->argv[i], 1, MAX_COUNT,
					&waiter->count))
				return false;
		} else {
			*wait = true;
			if (!arg_number(request, request->argv[i], 0, MAX_BLOCK,
					&waiter->block))
				return false;
		}
	}
	return true;
}

/* There is no job; but without a wheel this is not known. */
static void answer_none(struct request *request, const struct waiter *waiter)
{
	for (int i = 0; i < waiter->nr_queues; i++) {
		if (waiter->queues[i]->plain || waiter->queues[i]->row.paused)
			continue;
		request->queue = waiter->queues[i];
		answer_failure(request, -ENODEV);
		return;
	}
	reply_null_array(request->reply);
}

/* TW.TAKE queue [queue ...] [COUNT n] [BLOCK ms] [BOUND]; BLOCK 0 is for ever. */
void verb_take(struct request *request)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter) +
				       request->argc * sizeof(struct queue *));
	bool wait;
	int i;

	if (!waiter)
		die(ENOMEM, "a take");
	waiter->client = request->client;
	for (i = 1; i < request->argc && !is_option(request->argv[i]); i++) {
		struct queue *queue = verbs_queue(request->argv[i]);

		if (!queue) {
			reply_error(request->reply, "NOQUEUE there is no such queue");
			free_waiter(waiter);
			return;
		}
		waiter->queues[waiter->nr_queues++] = queue;
	}
	if (!parse_options(request, i, waiter, &wait) || serve(waiter)) {
		free_waiter(waiter);
	} else if (wait) {
		wait_for_job(waiter);
	} else {
		answer_none(request, waiter);
		free_waiter(waiter);
	}
}
