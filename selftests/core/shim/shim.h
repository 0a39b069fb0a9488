/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests may ask of the stand-ins for the kernel, and have them do.
 */
#ifndef SHIM_H
#define SHIM_H

#include <stddef.h>

/* Bytes that are allocated now. */
size_t shim_bytes(void);

/*
 * Counts down with every allocation; the one that reaches 0 fails. Set to 0,
 * none fails. Not for tests with threads.
 */
extern unsigned int shim_fail_alloc;

/* What the next insertion into an rhashtable returns instead, if not 0. */
extern int shim_fail_insert;

/*
 * Called where others may come between: before a swap, and after a look-up without
 * a lock. A test of races lets them.
 */
#ifdef SHIM_RACE
void shim_race(void);
#define tw_race()	shim_race()
#endif

/* Prints what went wrong and where, and ends the program. */
void shim_bug(const char *what, const char *file, int line)
	__attribute__((noreturn));

#endif /* SHIM_H */
