/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Arena: objects of one size, named by u32 indices, in blocks.
 *
 * An object may be looked at without a lock as long as the arena exists: what it
 * says must then be checked against its generation. The arena knows nothing of
 * the objects. Which of them are free is for its owner to know.
 *
 * Allocation and use are apart: tw_blocks_grow() sleeps for memory with no lock
 * held; an object is taken under the owner's lock, while there is capacity.
 */
#ifndef TW_ARENA_H
#define TW_ARENA_H

#include <linux/cache.h>
#include <linux/limits.h>
#include <linux/prefetch.h>

#include "blocks.h"

#define TW_NIL	U32_MAX

/**
 * struct tw_arena - objects by index
 *
 * Look-ups without the lock read what is constant, and what the owner's lock guards
 * begins a cache line of its own: other CPUs would wait for the line at each change.
 *
 * @blocks: the memory of the objects
 * @size: bytes per object; constant
 * @shift: log2 of the objects per block; constant
 * @mask: objects per block, less one; constant
 * @fresh: objects below this index have been in use; owner's lock
 * @used: objects in use, as far as the owner counts them; owner's lock
 */
struct tw_arena {
	struct tw_blocks	blocks;
	u32			size;
	u32			shift;
	u32			mask;
	u32			fresh ____cacheline_aligned_in_smp;
	u32			used;
};

int tw_arena_init(struct tw_arena *arena, u32 size, u32 max);

/* Returns how many objects there is memory for. The caller holds the owner's lock. */
static inline u32 tw_arena_capacity(const struct tw_arena *arena)
{
	return arena->blocks.allocated << arena->shift;
}

/* Returns an object by an index that the arena gave. */
static inline void *tw_arena_at(const struct tw_arena *arena, u32 index)
{
	u32 in_block = index & arena->mask;

	return arena->blocks.block[index >> arena->shift] +
	       (size_t)in_block * arena->size;
}

/* Returns an object by an index from outside: NULL if there is no memory behind it. */
static inline void *tw_arena_find(const struct tw_arena *arena, u32 index)
{
	u32 in_block = index & arena->mask;
	void *block;

	if (!tw_blocks_find(&arena->blocks, index >> arena->shift, &block))
		return NULL;

	return block + (size_t)in_block * arena->size;
}

/* Fetches the cache lines of the first and the last byte at an object's address. */
static inline void tw_arena_fetch(const struct tw_arena *arena,
				  unsigned long object)
{
	prefetchw((void *)object);
	prefetchw((void *)(object + arena->size - 1));
}

#endif /* TW_ARENA_H */
