/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps wheels and store in step: loads a wheel that does not have all jobs, and compares jobs
 * with tokens all the time, some in each second. This part knows no connection and no verb.
 */
#ifndef TWJOBD_KEEP_H
#define TWJOBD_KEEP_H

#include "queue.h"

/* Opens the wheels of all queues of the store. */
void keep_start(void);
/* Opens a queue's wheel, and begins to load the wheel if it does not have all jobs. */
int keep_open(struct queue *queue);
/*
 * Gives a queue this row and, if some settings have changed, another wheel. Returns 0, or an
 * error of keep_open(). After an error the queue may have no wheel.
 */
int keep_set(struct queue *queue, const struct queue_row *row);
/* Tells in the log, once, what is wrong with the queue's wheel, and what helps. */
void keep_complain(struct queue *queue, int error);
/* The wheel has been destroyed. keep.c makes it again. */
void keep_lost(struct queue *queue);
/* Removes the jobs of queues that have been dropped, and then the queues. */
void keep_remove_jobs(void);

bool keep_is_loading(void);

#endif /* TWJOBD_KEEP_H */
