/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of a queue's jobs, and their limits. A job of a group that has handed out as many as
 * its rate permits gets a time of its own, at which the wheel wakes the job again: nothing is
 * written, and nothing polls.
 */
#ifndef TWJOBD_GROUP_H
#define TWJOBD_GROUP_H

#include "queue.h"

/*
 * Whether the job of this delivery, which has a group, may be handed out now. -EAGAIN: it may
 * not, and the token has been told; or an error of the store.
 */
int group_check(struct queue *queue, struct job *job, const struct options *options,
		const struct timewheel_event *event);
/* The job is handed out. */
void group_count(struct queue *queue, const struct job *job, const struct options *options,
		 const struct timewheel_event *event);
/* Whether a token of a job of this group may be due then, ns, and not at the job's time. */
bool group_may_wait(struct queue *queue, const struct options *options, uint64_t deadline);
/* The queue has other settings, or has ended. */
void group_forget(struct queue *queue);

#endif /* TWJOBD_GROUP_H */
