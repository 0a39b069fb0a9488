/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One job, in the store and in its wheel: where it is, and the changes of it that a turn
 * makes. This knows no verb and no connection.
 */
#ifndef TWJOBD_JOB_H
#define TWJOBD_JOB_H

#include "queue.h"

/* So many bytes are counted for a job beside its body and its key. */
#define JOB_OVERHEAD	64

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

/* A worker has done the job: it is removed, or is done as long as its key is to be unique. */
int job_finish(struct queue *queue, struct job *job, const struct timewheel_token *token,
	       uint32_t delivery);

/* A worker has done the job: its queue may keep what TW.DONE tells of the job. */
int job_note_done(struct queue *queue, const struct job *job);
/* Done jobs that ended before are not kept any more: ms. */
uint64_t job_done_since(const struct queue *queue);

/*
 * Saves what has failed. No data: nobody told. The reason before stays then, and a job that is
 * to be buried gets the time.
 */
int job_note_failure(struct job *job, struct bytes reason);
/* What counts for the job: its own options, and the queue's settings in place of others. */
int job_settings(const struct queue *queue, const struct job *job, struct options *settings);
/* How long after its last try, which failed, the job is due again by its settings: ms. */
uint64_t job_backoff(const struct job *job, const struct options *settings);
/* The job waits for its group from now on, and is saved. */
int job_wait(struct queue *queue, struct job *job, const struct options *group);
/* Before a change of the job: it does not wait any more, if it did. The caller saves the job. */
int job_end_wait(struct queue *queue, struct job *job);
/* Gives a job that is being added what the store has of another one. */
int job_copy_more(const struct job *from, const struct job *to);

#endif /* TWJOBD_JOB_H */
