/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits of a queue: how many of its jobs workers may have at once, and how many are handed out
 * in which time. This part knows the queue's wheel, and no verb.
 *
 * The daemon does not wait for events of a queue at its limit, because its wheel may have due
 * jobs that must not be read. An answer, the end of a lease, or a time at which the rate permits
 * another job reopens the queue.
 */
#ifndef TWJOBD_LIMIT_H
#define TWJOBD_LIMIT_H

#include "queue.h"

/*
 * Returns how many of @want jobs may be read now by the limits. If it returns 0, it has shut the
 * queue: see queue_shut().
 */
int limit_room(struct queue *queue, int want);
/* Counts this delivery, which goes to a worker, and whose lease lasts for @lease ms. */
void limit_count(struct queue *queue, const struct timewheel_event *event, uint64_t lease);

/*
 * A rate is a bucket, which has room for the jobs that the rate permits in its time. It fills
 * evenly, and will be full at @full. Returns how many jobs are in the bucket. @next is when the
 * next job comes. The caller that takes a job adds the interval to @full. Times are ns by the
 * wall clock.
 */
uint64_t limit_bucket(const struct rate *rate, uint64_t *full, uint64_t now, uint64_t *next);
uint64_t limit_interval(const struct rate *rate);
uint64_t limit_now(void);

#endif /* TWJOBD_LIMIT_H */
