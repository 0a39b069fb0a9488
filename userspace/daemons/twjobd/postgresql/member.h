/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This daemon among the daemons that use the same database: its number, and its epoch, by which
 * another daemon can end its work. This part knows no job.
 */
#ifndef TWJOBD_MEMBER_H
#define TWJOBD_MEMBER_H

#include "pg.h"

/*
 * Another node takes the jobs over when this many ms have passed since the last renewal of the
 * lease.
 */
#define MEMBER_LEASE	8000

/*
 * Connects if there is no connection, and then commits something first. All data that can be read
 * after this commit is on as many machines as it has to be.
 */
int member_attach(void);
int member_begin(void);
int64_t member_id(void);
/* Returns how often another node has taken over the jobs of this node. */
uint64_t member_fenced(void);
/* Returns for how many ms this node has been attached. */
uint64_t member_age(void);
/*
 * The database's clock was @now at some moment between @asked and the present, by this machine's
 * clock.
 */
void member_set_clock(uint64_t now, uint64_t asked);
/* Returns by how many ms the clock has been set forward since the last call. */
int64_t member_set_forward(void);
/*
 * The two functions keep how many ms the last takeover of another node's jobs took, or 0 if there
 * was none.
 */
void member_note_takeover(uint64_t ms);
uint64_t member_takeover(void);
/* Begins a transaction in which the node's lease ends at once. */
void member_leave(void);

#endif /* TWJOBD_MEMBER_H */
