/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits of a queue: how many of its jobs workers may have at once, and how many are handed
 * out in which time. This knows the queue's wheel, and no verb.
 *
 * A queue at its limit is not listened to, as its wheel may have jobs that are due and not to
 * be read: an answer, a lease that is over, or a time at which the rate permits another job
 * reopens the queue.
 */
#ifndef TWJOBD_LIMIT_H
#define TWJOBD_LIMIT_H

#include "queue.h"

/*
 * How many of @want jobs the limits permit to be read now. With 0 the queue is shut, see
 * queue_shut().
 */
int limit_room(struct queue *queue, int want);
/* This delivery, whose lease lasts for so many ms, goes to a worker. */
void limit_count(struct queue *queue, const struct timewheel_event *event, uint64_t lease);

/*
 * A rate as a bucket of as many jobs as it permits in its time, which is filled evenly, and
 * will be full at @full. Returns how many jobs there are. @next: when there is the next one.
 * Who takes a job adds the interval to @full. Times are ns, by the wall clock.
 */
uint64_t limit_bucket(const struct rate *rate, uint64_t *full, uint64_t now, uint64_t *next);
uint64_t limit_interval(const struct rate *rate);
uint64_t limit_now(void);

#endif /* TWJOBD_LIMIT_H */
