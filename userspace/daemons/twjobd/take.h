/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Deliveries: the jobs that a client reads from wheels become the answer to its take. This part
 * does not know that clients wait.
 */
#ifndef TWJOBD_TAKE_H
#define TWJOBD_TAKE_H

#include "verbs.h"

TAILQ_HEAD(waiters, waiter);

/* A client that takes jobs. @queues are asked in their order. */
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

/* Answers the client if there is a job. Returns whether there is a job. */
bool take_for(struct waiter *waiter);
/*
 * These clients share a read of the wheel, because each read costs a system call in a process,
 * and with a shared store a round trip to the store. The first clients get one job each. Returns
 * how many clients have got a job.
 */
int take_for_each(struct queue *queue, struct waiter **takers, int count);

/*
 * Ends a delivery of a job that stays: the job is pending again, or buried. A buried occurrence
 * of a rule is split off, and the job becomes the rule's next occurrence. @reason: see
 * job_note_failure().
 */
int take_end_delivery(struct queue *queue, struct job *job,
		      const struct timewheel_token *token, uint32_t delivery,
		      struct bytes reason);

/*
 * Gives back deliveries whose bytes end behind @end of the client's stream, because they have not
 * reached the client. @undone: their turn has not been committed.
 */
void take_give_back(struct client *client, uint64_t end, bool undone);
/* See @queue_changed. */
void take_ended(int64_t job);

#endif /* TWJOBD_TAKE_H */
