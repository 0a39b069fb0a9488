/* SPDX-License-Identifier: GPL-2.0-only */
/* Generations of tokens: tests begin close to their end, and know the next. */
#ifndef GENERATIONS_H
#define GENERATIONS_H

#include <linux/limits.h>

#include "dice.h"
#include "ring.h"

/* Of tokens that have not been in use: 0, or soon to have a new bit, or to wrap. */
static inline u32 pick_generation(void)
{
	if (once(2))
		return 0;

	return (once(2) ? U32_MAX : U16_MAX) - below(4);
}

/* Tokens that have not been in use are as if they had been, that often. */
static inline void age_tokens(struct tw_ring *ring, u32 generation)
{
	u32 index;

	for (index = ring->tokens.fresh;
	     index < tw_arena_capacity(&ring->tokens); index++) {
		struct tw_token *token = tw_arena_at(&ring->tokens, index);

		token->generation_hi = generation >> 16;
		token->word = tw_word(0, TW_FREE, generation);
	}
}

/*
 * P3: each life has the next one, and none has 0. @handle: of the life before, or 0;
 * @first: of those that have not been in use.
 */
static inline u32 next_generation(u64 handle, u32 first)
{
	u32 next = handle ? (handle >> 32) + 1 : first;

	return next ?: 1;
}

#endif /* GENERATIONS_H */
