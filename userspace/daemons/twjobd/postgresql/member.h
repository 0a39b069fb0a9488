/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This daemon among those that use the same database: its number, and its epoch, by which
 * another one can end what it does. This knows no job.
 */
#ifndef TWJOBD_MEMBER_H
#define TWJOBD_MEMBER_H

#include "pg.h"

/* Another node takes the jobs over that long after the lease was renewed last, ms. */
#define MEMBER_LEASE	8000

/*
 * Connects if there is no connection, and then commits something first: what can be read
 * after it is on as many machines as it has to be.
 */
int member_attach(void);
int member_begin(void);
int64_t member_id(void);
/* How often another node has taken the jobs of this one over. */
uint64_t member_fenced(void);
/* How long it has been attached, ms. */
uint64_t member_age(void);
/* The database's clock was @now at some moment between @asked and now by our own. */
void member_set_clock(uint64_t now, uint64_t asked);
/* How far it has been set forward since this was asked last, ms. */
int64_t member_set_forward(void);
/* How long the last takeover of another node's jobs took, ms; 0: there was none. */
void member_note_takeover(uint64_t ms);
uint64_t member_takeover(void);
/* Begins a transaction, and ends the lease at once. */
void member_leave(void);

#endif /* TWJOBD_MEMBER_H */
