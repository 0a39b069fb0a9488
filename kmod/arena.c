// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Arena: objects of one size, named by u32 indices, in blocks.
 */
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/minmax.h>

#include "arena.h"

/*
 * Returns log2 of the objects in a block: as many as fit, or half as many if no more is wasted
 * then.
 */
static u32 tw_block_shift(u32 size, u32 max)
{
	u32 shift = ilog2(min_t(u32, TW_BLOCK_MAX / size,
				roundup_pow_of_two(max)));

	if (shift && ALIGN(size << (shift - 1), TW_BLOCK_UNIT) * 2 ==
		     ALIGN(size << shift, TW_BLOCK_UNIT))
		shift--;

	return shift;
}

/*
 * Makes an empty arena, for at most @max objects of @size bytes, at most TW_BLOCK_MAX. Nothing
 * is left of it when its blocks have gone. Returns 0 or -ENOMEM.
 */
int tw_arena_init(struct tw_arena *arena, u32 size, u32 max)
{
	u32 shift = tw_block_shift(size, max);

	*arena = (struct tw_arena) {
		.size	= size,
		.shift	= shift,
		.mask	= (1U << shift) - 1,
	};

	return tw_blocks_init(&arena->blocks, ((max - 1) >> shift) + 1,
			      ALIGN(size << shift, TW_BLOCK_UNIT));
}
