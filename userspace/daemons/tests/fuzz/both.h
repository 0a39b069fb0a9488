/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A store that is two: each change is made in SQLite and in memory, and each answer
 * must be the same of both, or the program aborts.
 */
#ifndef FUZZ_BOTH_H
#define FUZZ_BOTH_H

#include "../../twjobd/store.h"

extern const struct store store_both;

/* Turns of changes by chance, of which some are rolled back. */
void both_try_turns(int count);

#endif /* FUZZ_BOTH_H */
