/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of a queue's jobs, and their limits. A job of a group that has handed out as many as
 * its rate permits gets a time of its own, at which the wheel wakes the job again: nothing is
 * written, and nothing polls. One of a group of which workers have as many as they may waits,
 * which is written, until one of these ends.
 *
 * A job has its place in the group from when a worker gets it until the job is changed: after a
 * lease that is over it is due, and still has its place.
 */
#ifndef TWJOBD_GROUP_H
#define TWJOBD_GROUP_H

#include "queue.h"

/* Before jobs are read: learns which ones workers have already, as after a start. */
void group_learn(struct queue *queue);
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
/* The queue has other settings, or has ended, or its clock was set back. */
void group_forget(struct queue *queue);
/* Looks whether some waiting jobs need not wait. Returns whether it can go on at once. */
bool group_open_some(struct queue *queue);

/* See @queue_changed. */
void group_release(int64_t job);

#endif /* TWJOBD_GROUP_H */
