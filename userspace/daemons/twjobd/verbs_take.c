// SPDX-License-Identifier: GPL-2.0-only
/*
 * TW.TAKE, and clients that wait for a job.
 */
#include <errno.h>
#include <stdlib.h>

#include "allow.h"
#include "keep.h"
#include "take.h"

#define MAX_COUNT	1000
#define MAX_BLOCK	(86400 * MSEC_PER_SEC)
/* A worker that asks without BLOCK is expected to ask again within this many ms. */
#define POLL		1000

static struct waiters waiters = TAILQ_HEAD_INITIALIZER(waiters);
/* Takes that have just come wait here for take_serve(). */
static struct waiters asking = TAILQ_HEAD_INITIALIZER(asking);

static void leave_list(struct waiter *waiter)
{
	if (!waiter->in)
		return;
	TAILQ_REMOVE(waiter->in, waiter, next);
	waiter->in = NULL;
	waiter->client->waiter = NULL;
}

static void join_list(struct waiter *waiter, struct waiters *list)
{
	leave_list(waiter);
	TAILQ_INSERT_TAIL(list, waiter, next);
	waiter->in = list;
	waiter->client->waiter = waiter;
}

static void free_waiter(struct waiter *waiter)
{
	leave_list(waiter);
	sd_event_source_disable_unref(waiter->timer);
	free(waiter);
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

/* Returns NULL if no client waits for a job of this queue. */
static struct waiter *first_waiter(const struct queue *queue)
{
	struct waiter *waiter;

	TAILQ_FOREACH(waiter, &waiters, next)
		if (waits_for(waiter, queue))
			break;
	return waiter;
}

bool take_is_wanted(struct queue *queue)
{
	return first_waiter(queue) || queue->asked + POLL > now_ms();
}

/*
 * Tells whether the client can share a read of this queue with others: it must take one job, and
 * ask this queue first.
 */
static bool can_share(const struct waiter *waiter, const struct queue *queue)
{
	return waiter->count == 1 && !waiter->bound && waiter->queues[0] == queue;
}

/* Finds the first clients that wait for the queue, up to a client that cannot share a read. */
static int find_takers(const struct waiters *list, const struct queue *queue,
		       struct waiter **takers)
{
	struct waiter *waiter;
	int n = 0;

	TAILQ_FOREACH(waiter, list, next) {
		if (!waits_for(waiter, queue))
			continue;
		if (n == MAX_CLAIM || !can_share(waiter, queue))
			break;
		takers[n++] = waiter;
	}
	return n;
}

/* Returns whether one of the clients has got a job. */
static bool serve_takers(const struct waiters *list, struct queue *queue)
{
	struct waiter *takers[MAX_CLAIM];
	int n, served;

	if (queue->unsettled)
		turn_end();
	n = find_takers(list, queue, takers);
	served = take_for_each(queue, takers, n);
	for (int i = 0; i < served; i++)
		end_wait(takers[i]);
	return served;
}

static bool serve_first(struct waiter *waiter, struct queue *queue)
{
	if (can_share(waiter, queue))
		return serve_takers(&waiters, queue);
	if (!take_for(waiter))
		return false;
	end_wait(waiter);
	return true;
}

/* Hands out jobs while a job is due and a client waits for it. */
static int on_due(sd_event_source *source, int fd, uint32_t events, void *data)
{
	struct queue *queue = data;
	struct waiter *waiter;

	if (events & (EPOLLHUP | EPOLLERR)) {
		keep_lost(queue);
		return 0;
	}
	while ((waiter = first_waiter(queue)) && serve_first(waiter, queue))
		turn_limit();
	take_listen(queue);
	return 0;
}

void take_listen(struct queue *queue)
{
	bool on = queue->plain && !queue->row.paused && !queue->limits.shut &&
		  first_waiter(queue);

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

	reply_null_array(&waiter->client->reply);
	end_wait(waiter);
	return 0;
}

void take_forget(struct client *client)
{
	if (client->waiter)
		free_waiter(client->waiter);
}

bool take_unblock(struct client *client)
{
	struct waiter *waiter = client->waiter;

	if (!waiter || waiter->in != &waiters)
		return false;
	reply_null_array(&client->reply);
	end_wait(waiter);
	return true;
}

static void refuse_waiters(struct waiters *list, struct queue *queue)
{
	struct waiter *waiter, *next;

	for (waiter = TAILQ_FIRST(list); waiter; waiter = next) {
		next = TAILQ_NEXT(waiter, next);
		if (!waits_for(waiter, queue))
			continue;
		reply_error(&waiter->client->reply,
			    "NOQUEUE the queue has been dropped");
		end_wait(waiter);
	}
}

void take_end_queue(struct queue *queue)
{
	refuse_waiters(&waiters, queue);
	refuse_waiters(&asking, queue);
}

static void wait_for_job(struct waiter *waiter)
{
	join_list(waiter, &waiters);
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

/* The options are behind the queues. */
static bool parse_options(struct request *request, struct waiter *waiter)
{
	waiter->count = 1;
	for (int i = 1 + waiter->nr_queues; i < request->argc; i++) {
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
			waiter->may_wait = true;
			if (!arg_number(request, request->argv[i], 0, MAX_BLOCK,
					&waiter->block))
				return false;
		}
	}
	return true;
}

/*
 * Answers that there is no job. The answer is an error if a queue has no wheel, because nobody
 * knows its jobs then.
 */
static void answer_none(const struct waiter *waiter)
{
	struct request request = {
		.client = waiter->client,
		.reply = &waiter->client->reply,
	};

	for (int i = 0; i < waiter->nr_queues; i++) {
		if (waiter->queues[i]->plain || waiter->queues[i]->row.paused)
			continue;
		request.queue = waiter->queues[i];
		answer_failure(&request, -ENODEV);
		return;
	}
	reply_null_array(request.reply);
}

/* Returns whether there is an answer now. */
static bool answer_or_wait(struct waiter *waiter)
{
	if (take_for(waiter))
		return true;
	if (waiter->may_wait)
		wait_for_job(waiter);
	else
		answer_none(waiter);
	return !waiter->may_wait;
}

void take_serve(void)
{
	struct queue *empty = NULL;
	struct waiter *waiter;

	while ((waiter = TAILQ_FIRST(&asking))) {
		struct queue *queue = waiter->queues[0];

		if (queue != empty && can_share(waiter, queue)) {
			if (!serve_takers(&asking, queue))
				empty = queue;
		} else if (answer_or_wait(waiter)) {
			end_wait(waiter);
		}
	}
}

static bool parse_queues(struct request *request, struct waiter *waiter)
{
	struct queue *queue;
	int n = 0;

	for (; n + 1 < request->argc && !is_option(request->argv[n + 1]); n++) {
		if (!request_may(request, MAY_TAKE, &request->argv[n + 1]))
			return false;
		waiter->queues[n] = request_queue(request->argv[n + 1]);
	}
	waiter->nr_queues = n;
	if (!n)
		reply_error(request->reply, "ERR TW.TAKE needs a queue");
	/* The search for a later queue may find that another node has dropped an earlier queue. */
	for (int i = 0; i < n; i++) {
		queue = waiter->queues[i];
		if (!queue || queue->row.dropped) {
			answer_no_queue(request->reply);
			return false;
		}
	}
	return n;
}

/* TW.TAKE queue [queue ...] [COUNT n] [BLOCK ms] [BOUND]: BLOCK 0 waits for ever. */
void verb_take(struct request *request)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter) +
				       request->argc * sizeof(struct queue *));

	if (!waiter)
		die(ENOMEM, "a take");
	waiter->client = request->client;
	if (!parse_queues(request, waiter) || !parse_options(request, waiter))
		free_waiter(waiter);
	else
		join_list(waiter, &asking);
}
