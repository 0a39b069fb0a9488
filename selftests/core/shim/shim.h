/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This header is included first. It has the interface of the stand-ins for the kernel to the
 * tests, and the stand-ins.
 */
#ifndef SHIM_H
#define SHIM_H

#include <stddef.h>

/* Returns the number of bytes that are allocated now. */
size_t shim_bytes(void);

/*
 * Each allocation counts this value down, and the allocation that reaches 0 fails.
 * With 0 no allocation fails. Tests with threads cannot use this value.
 */
extern unsigned int shim_fail_alloc;

/* The next insertion into an rhashtable returns this error, if not 0. */
extern int shim_fail_insert;

/*
 * The core calls this function where other threads may come between: before a swap,
 * and after a look-up without a lock. A test of races lets other threads run there.
 */
#ifdef SHIM_RACE
void shim_race(void);
#define tw_race()	shim_race()
#endif

/* Prints the error and its place, and ends the program. */
void shim_bug(const char *what, const char *file, int line)
	__attribute__((noreturn));

#include "core.h"

static inline int shim_insert(struct rhashtable *ht, struct rhash_head *node,
			      const struct rhashtable_params params)
{
	int err = shim_fail_insert;

	shim_fail_insert = 0;

	return err ?: rhashtable_lookup_insert_fast(ht, node, params);
}

#define rhashtable_lookup_insert_fast	shim_insert

#endif /* SHIM_H */
