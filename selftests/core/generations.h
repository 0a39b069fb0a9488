/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generations of tokens: tests begin near the wrap of a generation, and know the next
 * one.
 */
#ifndef GENERATIONS_H
#define GENERATIONS_H

#include "dice.h"
#include "ring.h"

/* Returns a ring's first generation, which is 0 or shortly before a new bit or a wrap. */
static inline u32 pick_generation(void)
{
	if (once(2))
		return 0;

	return (once(2) ? U32_MAX : U16_MAX) - below(4);
}

/*
 * P3: each life has the next generation, and none has generation 0. @handle: the
 * handle of the life before, or 0 if there was none.
 */
static inline u32 next_generation(const struct tw_ring *ring, u64 handle)
{
	u32 next = handle ? (handle >> 32) + 1 : ring->first_generation;

	return next ?: 1;
}

#endif /* GENERATIONS_H */
