/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One job, in the store and in its wheel: where it is, and the changes of it that a turn
 * makes. This knows no verb and no connection.
 */
#ifndef TWJOBD_JOB_H
#define TWJOBD_JOB_H

#include "queue.h"

/*
 * Finds a job of the queue and its token, by the job's number or by its key. What the
 * turn has changed of the job is committed before. A job that is found for a @change
 * stays as it is until the turn ends. -ENOENT: there is no such job. -EAGAIN: the queue
 * is being loaded, and it is not known yet.
 */
int job_find(struct queue *queue, int64_t id, bool change, struct job *job,
	     struct timewheel_token *token);
int job_find_key(struct queue *queue, struct bytes key, struct job *job,
		 struct timewheel_token *token);

/*
 * Changes or removes a job, in the store now, and in the wheel after the commit.
 * @delivery: the one that this ends, 0 for none.
 */
int job_change(struct queue *queue, const struct job *job,
	       const struct timewheel_token *token, uint32_t delivery, enum change_to to);
int job_remove(struct queue *queue, const struct job *job,
	       const struct timewheel_token *token, uint32_t delivery);

/*
 * A delivery ends, and the job stays: it is pending again, or buried. A buried occurrence
 * of a rule is split off, and the job becomes the rule's next occurrence.
 */
int job_end_delivery(struct queue *queue, struct job *job,
		     const struct timewheel_token *token, uint32_t delivery);

#endif /* TWJOBD_JOB_H */
