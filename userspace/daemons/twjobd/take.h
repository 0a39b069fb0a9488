/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Deliveries: what is read of wheels becomes an answer. This knows nothing of waiting.
 */
#ifndef TWJOBD_TAKE_H
#define TWJOBD_TAKE_H

#include "verbs.h"

/* Clients that share a claim. */
#define TAKERS		64

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

/* Answers if there is a job. */
bool take_for(struct waiter *waiter);
/*
 * With a shared store: answers the first ones of these clients, one job each. Returns to
 * how many.
 */
int take_for_each(struct queue *queue, struct waiter **takers, int count);

#endif /* TWJOBD_TAKE_H */
