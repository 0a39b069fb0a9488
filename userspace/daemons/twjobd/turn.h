/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns: the changes that one commit makes durable. The store changes at once, in
 * a transaction; the wheels are told when it has been committed. Tokens of new jobs
 * are the exception: they are registered before, since the wheel decides whether
 * there is room. This knows no connection.
 */
#ifndef TWJOBD_TURN_H
#define TWJOBD_TURN_H

#include "queue.h"

/* Sets what is called at the end of each turn: the store's error, 0 for none. */
void turn_at_end(void (*ended)(int error));

/* Before a change. A turn begins with the first one. */
int turn_begin(void);
/* Returns @result. The turn cannot be committed if it is an error. */
int turn_result(int result);

/*
 * Adds a job, which gets a number, and its token. -EEXIST: another user of the store has
 * added one with this key; -EALREADY: one is doing so.
 */
int turn_add(struct queue *queue, struct job *job, struct bytes body);
/*
 * The job has been changed in the store, and the wheel has yet to be told of it.
 * @delivery: the one that this ends, 0 for none.
 */
void turn_changed(struct queue *queue, const struct job *job,
		  const struct timewheel_token *token, uint32_t delivery,
		  enum change_to to);
/* Whether the turn has changed this job. */
bool turn_has(int64_t job);
/* Whether the turn has added the job of this token. */
bool turn_has_added(const struct queue *queue, uint64_t handle);

/* How long commits took. */
const struct histogram *turn_commits(void);
/* When the last commit ended, CLOCK_MONOTONIC, and how long it took; ns. */
struct turn_commit {
	uint64_t end, took;
};

struct turn_commit turn_last_commit(void);

/* Whether there is something to commit. */
bool turn_is_begun(void);
/*
 * Commits, and tells the wheels. Returns 0 or an error of the store. Between turn_mark() and
 * turn_back() or turn_keep() it does nothing, and there is a collision.
 */
int turn_end(void);
/* Ends the turn if it is large. */
void turn_limit(void);

/*
 * A part of the turn that can be undone by itself. A collision: a job was looked for that
 * the turn has changed, and what the wheel tells of it would be wrong.
 */
void turn_mark(void);
/* Undoes all changes since turn_mark(). If the store has failed, the turn does so at its end. */
void turn_back(void);
void turn_keep(void);
bool turn_is_marked(void);
bool turn_has_collided(void);
/* Whether the turn had changed something before turn_mark(). */
bool turn_is_shared(void);

/* The wheels are told what has become of changes that were in doubt. */
void turn_settle_doubtful(void);

/* Tells the wheels again what the last turn of the process before has changed. */
void turn_repeat_last(void);

#endif /* TWJOBD_TURN_H */
