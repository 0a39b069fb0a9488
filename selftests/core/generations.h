/* SPDX-License-Identifier: GPL-2.0-only */
/* Generations of tokens: tests begin close to their end, and know the next one. */
#ifndef GENERATIONS_H
#define GENERATIONS_H

#include <linux/limits.h>

#include "dice.h"
#include "ring.h"

/* A ring's first generation: 0, or soon to have a new bit, or to wrap. */
static inline u32 pick_generation(void)
{
	if (once(2))
		return 0;

	return (once(2) ? U32_MAX : U16_MAX) - below(4);
}

/*
 * P3: each life has the next generation, and none has 0. @handle: of the token's
 * life before, 0 if it had none.
 */
static inline u32 next_generation(const struct tw_ring *ring, u64 handle)
{
	u32 next = handle ? (handle >> 32) + 1 : ring->first_generation;

	return next ?: 1;
}

#endif /* GENERATIONS_H */
