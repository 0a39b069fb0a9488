// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arena: objects of one size, named by u32 indices, in blocks of pages.
 *
 * Allocation and use are apart: tw_blocks_grow() sleeps for memory with no lock
 * held, tw_arena_get() takes an object under the owner's lock and cannot fail
 * while there is capacity.
 */
#include <linux/log2.h>
#include <linux/mm.h>

#include "arena.h"

/* Largest block: of an order that the page allocator gives without effort. */
#define TW_BLOCK_BYTES	16384

/**
 * tw_arena_init() - make an empty arena
 * @arena: to be set up
 * @size: bytes per object, at most TW_BLOCK_BYTES
 * @link: offset in an object of a u32 that is the arena's while it is free
 * @max: most objects ever in use at once
 *
 * Nothing is left of it when its blocks have gone.
 *
 * Return: 0 or -ENOMEM.
 */
int tw_arena_init(struct tw_arena *arena, u32 size, u32 link, u32 max)
{
	u32 per_block = min_t(u32, TW_BLOCK_BYTES / size,
			      roundup_pow_of_two(max));

	*arena = (struct tw_arena) {
		.size	= size,
		.link	= link,
		.shift	= ilog2(per_block),
		.mask	= (1U << ilog2(per_block)) - 1,
		.free	= TW_NIL,
	};

	return tw_blocks_init(&arena->blocks, ((max - 1) >> arena->shift) + 1,
			      PAGE_ALIGN(size << arena->shift));
}

/* Takes an object; there is capacity. Its fields are as they were put. */
u32 tw_arena_get(struct tw_arena *arena)
{
	u32 index = arena->free;

	if (index == TW_NIL)
		index = arena->fresh++;
	else
		arena->free = *(u32 *)(tw_arena_at(arena, index) + arena->link);
	arena->used++;

	return index;
}
