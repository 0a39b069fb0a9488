/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns: the changes that one commit makes durable. The store changes at once, in a transaction.
 * The wheels are told when the transaction has been committed. Tokens of new jobs are the
 * exception: they are registered before the commit, because the wheel decides whether there is
 * room. This part knows no connection.
 */
#ifndef TWJOBD_TURN_H
#define TWJOBD_TURN_H

#include "queue.h"

/* Sets a function that is called at the end of each turn with the store's error, or 0. */
void turn_at_end(void (*ended)(int error));

/* A caller calls this function before each change. The first change begins a turn. */
int turn_begin(void);
/* Returns @result. The turn cannot be committed if it is an error. */
int turn_result(int result);

/*
 * Adds a job, which gets a number, and its token. -EEXIST: another user of the store has added a
 * job with this key. -EALREADY: another user is adding a job with this key.
 */
int turn_add(struct queue *queue, struct job *job, struct bytes body);
/*
 * The caller has changed the job in the store. The wheel is told after the commit. @delivery is
 * the number of the delivery that the change ends, or 0.
 */
void turn_changed(struct queue *queue, const struct job *job,
		  const struct timewheel_token *token, uint32_t delivery,
		  enum change_to to);
/* Tells whether the turn has changed this job. */
bool turn_has(int64_t job);
/* Tells whether the turn has added the job of this token. */
bool turn_has_added(const struct queue *queue, uint64_t handle);

/* The histogram tells how long commits took. */
const struct histogram *turn_commits(void);
/* @end is when the last commit ended, by CLOCK_MONOTONIC, and @took how long it took, in ns. */
struct turn_commit {
	uint64_t end, took;
};

struct turn_commit turn_last_commit(void);

/* Tells whether there is something to commit. */
bool turn_is_begun(void);
/*
 * Commits, and tells the wheels. Returns 0 or an error of the store. Between turn_mark() and
 * turn_back() or turn_keep() this function does nothing but note a collision.
 */
int turn_end(void);
/* Ends the turn if it is large. */
void turn_limit(void);

/*
 * Begins a part of the turn that can be undone by itself. In a collision the part looked for a
 * job that the turn has changed, about which the wheel would tell wrong things.
 */
void turn_mark(void);
/*
 * Undoes all changes since turn_mark(). If the store has failed, all changes are undone at the
 * turn's end.
 */
void turn_back(void);
void turn_keep(void);
bool turn_is_marked(void);
bool turn_has_collided(void);
/* Tells whether the turn had changed something before turn_mark(). */
bool turn_is_shared(void);

/* Tells the wheels what has become of changes that were in doubt. */
void turn_settle_doubtful(void);

/* Tells the wheels again what the last turn of the last process has changed. */
void turn_repeat_last(void);

#endif /* TWJOBD_TURN_H */
