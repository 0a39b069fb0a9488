/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of a queue's jobs, and their limits. A job of a group that has handed out as many as its
 * rate permits gets a time of its own, at which the wheel wakes the job again: nothing is
 * written, and nothing polls. A job of a group of which workers have as many jobs as they may
 * waits until a worker's job ends. This wait is written.
 *
 * A job has its place in the group from when a worker gets it until the job is changed: when its
 * lease has ended, the job is due and still has its place.
 */
#ifndef TWJOBD_GROUP_H
#define TWJOBD_GROUP_H

#include "queue.h"

/*
 * Learns which jobs workers already have, as after a start. The caller has not read any jobs yet.
 */
void group_learn(struct queue *queue);
/*
 * Returns 0 if the job of this delivery, which has a group, may be handed out now. -EAGAIN: the
 * job must wait, and the turn or the wheel has been told. Other errors are errors of the store.
 */
int group_check(struct queue *queue, struct job *job, const struct options *options,
		const struct timewheel_event *event);
/* Counts the job, which is being handed out. */
void group_count(struct queue *queue, const struct job *job, const struct options *options,
		 const struct timewheel_event *event);
/*
 * Tells whether a token of a job of this group may be due at @deadline, in ns, instead of the
 * job's time.
 */
bool group_may_wait(struct queue *queue, const struct options *options, uint64_t deadline);
/* Forgets all groups of a queue whose settings or clock have changed, or that has ended. */
void group_forget(struct queue *queue);
/* Ends the wait of some jobs that need not wait. Returns whether to call it again at once. */
bool group_open_some(struct queue *queue);

/* See @queue_changed. */
void group_release(int64_t job);

#endif /* TWJOBD_GROUP_H */
