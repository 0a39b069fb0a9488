/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One job, in the store and in its wheel: where it is, and the changes of it that a turn makes.
 * This part knows no verb and no connection.
 */
#ifndef TWJOBD_JOB_H
#define TWJOBD_JOB_H

#include "queue.h"

/* A job counts this many bytes besides its body and its key. */
#define JOB_OVERHEAD	64

/*
 * Finds a job of the queue and its token, by the job's number or by its key. Changes of the job
 * by the turn are committed first. A job that is found for a @change stays as it is until the
 * turn ends. -ENOENT: there is no such job. -EAGAIN: the queue is being loaded, and the answer is
 * not known yet.
 */
int job_find(struct queue *queue, int64_t id, bool change, struct job *job,
	     struct timewheel_token *token);
int job_find_key(struct queue *queue, struct bytes key, struct job *job,
		 struct timewheel_token *token);

/*
 * Changes or removes a job, in the store now, and in the wheel after the commit. @delivery is the
 * number of the delivery that the change ends, or 0 if it ends none.
 */
int job_change(struct queue *queue, const struct job *job,
	       const struct timewheel_token *token, uint32_t delivery, enum change_to to);
int job_remove(struct queue *queue, const struct job *job,
	       const struct timewheel_token *token, uint32_t delivery);

/*
 * Ends a job that a worker has done: it is removed, or kept as done while its key has to be
 * unique.
 */
int job_finish(struct queue *queue, struct job *job, const struct timewheel_token *token,
	       uint32_t delivery);

/* Notes a job that a worker has done, if its queue keeps done jobs for TW.DONE. */
int job_note_done(struct queue *queue, const struct job *job);
/* Returns a time in ms. Done jobs that ended before this time are not kept any more. */
uint64_t job_done_since(const struct queue *queue);

/*
 * Saves the reason of a failure. If @reason has no data, nobody gave a reason: the last reason
 * stays, and a job that is to be buried gets the time.
 */
int job_note_failure(struct job *job, struct bytes reason);
/* Gets the job's settings: its own options and, where it has none, the queue's settings. */
int job_settings(const struct queue *queue, const struct job *job, struct options *settings);
/* Returns how many ms after its last try, which failed, the job is due again. */
uint64_t job_backoff(const struct job *job, const struct options *settings);
/* Lets the job wait for its group, and saves the job. */
int job_wait(struct queue *queue, struct job *job, const struct options *group);
/* Ends the wait of a job that may wait. The caller then changes the job, and saves it. */
int job_end_wait(struct queue *queue, struct job *job);
/* Gives a job that is being added the options and the failure that the store has of another job. */
int job_copy_more(const struct job *from, const struct job *to);

#endif /* TWJOBD_JOB_H */
