/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Deliveries: what a client reads from wheels becomes the answer to its take. This does
 * not know that clients wait.
 */
#ifndef TWJOBD_TAKE_H
#define TWJOBD_TAKE_H

#include "verbs.h"

TAILQ_HEAD(waiters, waiter);

/* A client that takes. @queues are asked in this order. */
struct waiter {
	TAILQ_ENTRY(waiter) next;
	struct waiters *in;	/* the list, or NULL */
	struct client *client;
	sd_event_source *timer;
	uint64_t count;
	uint64_t block;		/* ms */
	bool may_wait, bound;
	int nr_queues;
	struct queue *queues[];
};

/* Answers the client if there is a job. Returns whether there is one. */
bool take_for(struct waiter *waiter);
/*
 * With a shared store: these clients share a claim, as each one costs a way to the store
 * and back. The first of them get one job each. Returns how many have got one.
 */
int take_for_each(struct queue *queue, struct waiter **takers, int count);

/*
 * A delivery ends, and the job stays: it is pending again, or buried. A buried occurrence
 * of a rule is split off, and the job becomes the rule's next occurrence. @reason: see
 * job_note_failure().
 */
int take_end_delivery(struct queue *queue, struct job *job,
		      const struct timewheel_token *token, uint32_t delivery,
		      struct bytes reason);

/*
 * The deliveries whose bytes end behind @end of the client's stream have not reached the client,
 * and are given back. @undone: their turn has not been committed.
 */
void take_give_back(struct client *client, uint64_t end, bool undone);
/* See @queue_changed. */
void take_ended(int64_t job);

#endif /* TWJOBD_TAKE_H */
