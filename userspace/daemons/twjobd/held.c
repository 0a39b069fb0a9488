// SPDX-License-Identifier: GPL-2.0-only
/*
 * Deliveries over a planned restart: see held.h.
 *
 * A new wheel cannot give a delivery the handle and the number that it had. The wheel has another
 * delivery in place of the old one, and this part knows which receipt the worker has.
 */
#include <stdlib.h>
#include <string.h>

#include "held.h"
#include "resp.h"
#include "turn.h"

/*
 * @now is the receipt of the delivery that replaces the old one. @now is all zeros if there is
 * none.
 */
struct going_on {
	struct held before;
	struct receipt now;
};

/* The buffer has structures going_on, in the order of the jobs' numbers. */
static struct buffer all;

static int by_job(const void *key, const void *of)
{
	uint64_t job = *(const uint64_t *)key;
	const struct going_on *one = of;

	return job < one->before.receipt.job ? -1 : job > one->before.receipt.job;
}

static struct going_on *find(uint64_t job)
{
	return all.length ? bsearch(&job, all.data, all.length / sizeof(struct going_on),
				    sizeof(struct going_on), by_job) : NULL;
}

/* Both receipts must belong to one job. */
static bool is_same(const struct receipt *a, const struct receipt *b)
{
	return a->epoch == b->epoch && a->handle == b->handle && a->delivery == b->delivery;
}

void held_translate(struct receipt *receipt)
{
	const struct going_on *one = find(receipt->job);

	if (one && is_same(receipt, &one->before.receipt))
		*receipt = one->now;
}

static void save_delivery(struct queue *queue, const struct timewheel_token *token)
{
	const struct going_on *one = find(token->cookie);
	struct held held = {
		.receipt = {
			.job = token->cookie,
			.epoch = queue->row.epoch,
			.handle = token->handle,
			.delivery = token->delivery,
		},
		.lease_end = token->lease_end,
	};

	if (one && is_same(&held.receipt, &one->now))
		held.receipt = one->before.receipt;
	if (!turn_begin())
		turn_result(store->save_held(&held));
}

/* A worker has had the job, and only the wheel has counted this try. */
static void save_first_try(const struct timewheel_token *token)
{
	struct job job;

	if (store->get(token->cookie, true, &job) || job.attempts)
		return;
	job.attempts = 1;
	if (!turn_begin())
		turn_result(store->change(&job, SAME_BODY));
}

static void save(struct queue *queue, const struct timewheel_token *token, void *unused)
{
	if (token->state == TIMEWHEEL_STATE_HELD)
		save_delivery(queue, token);
	else if (token->delivery)
		save_first_try(token);
}

void held_save(void)
{
	struct queue *queue;
	int error;

	if (!wheels_in_process() || !store->save_held)
		return;
	LIST_FOREACH(queue, &queues, next)
		queue_each_token(queue, save, NULL);
	error = turn_end();
	if (error)
		say("what workers have is handed out again at the next start: %s",
		    strerror(-error));
}

static void add(const struct held *held)
{
	const struct going_on one = { .before = *held };

	buffer_add(&all, &one, sizeof(one));
}

static void go_on(struct going_on *one)
{
	struct timewheel_event event;
	struct queue *queue;
	struct job job;

	if (store->get(one->before.receipt.job, false, &job) || job.buried)
		return;
	queue = queue_by_id(job.queue);
	if (!queue || queue_hold(queue, &job, one->before.lease_end, &event))
		return;
	one->now = (struct receipt) {
		.job = job.id,
		.epoch = queue->row.epoch,
		.handle = event.handle,
		.delivery = event.delivery,
	};
}

void held_go_on(void)
{
	/*
	 * The store forgets the deliveries at this call, because a start after a kill must not
	 * find them.
	 */
	if (store->take_held && store->take_held(add))
		die(0, "the store does not tell what workers have");
	for (size_t at = 0; at < all.length; at += sizeof(struct going_on))
		go_on((struct going_on *)(all.data + at));
}
