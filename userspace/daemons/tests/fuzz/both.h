/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A store of two stores: each change is made in SQLite and in memory, and both must give the same
 * answer, or the program aborts.
 */
#ifndef FUZZ_BOTH_H
#define FUZZ_BOTH_H

#include "../../twjobd/store.h"

extern const struct store store_both;

/* Makes turns of changes by chance, and rolls some of the turns back. */
void both_try_turns(int count);

#endif /* FUZZ_BOTH_H */
