// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arena: objects of one size, named by u32 indices, in blocks of pages.
 *
 * Allocation and use are apart: tw_arena_grow() sleeps for memory with no lock
 * held, tw_arena_get() takes an object under the owner's lock and cannot fail
 * while there is capacity.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "arena.h"

/* Largest block: of an order that the page allocator gives without effort. */
#define TW_BLOCK_BYTES	16384

static size_t tw_block_bytes(const struct tw_arena *arena)
{
	return PAGE_ALIGN((size_t)arena->size << arena->shift);
}

/**
 * tw_arena_init() - make an empty arena
 * @arena: to be set up
 * @size: bytes per object, at most TW_BLOCK_BYTES
 * @link: offset in an object of a u32 that is the arena's while it is free
 * @max: most objects ever in use at once
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
	arena->nr_blocks = (((u64)max - 1) >> arena->shift) + 1;
	arena->blocks = kvcalloc(arena->nr_blocks, sizeof(*arena->blocks),
				 TW_GFP);

	return arena->blocks ? 0 : -ENOMEM;
}

/* Frees everything. Nobody looks any more. May sleep. */
void tw_arena_destroy(struct tw_arena *arena)
{
	u32 i;

	for (i = 0; i < arena->allocated; i++) {
		free_pages_exact(arena->blocks[i], tw_block_bytes(arena));
		cond_resched();
	}
	kvfree(arena->blocks);
}

/**
 * tw_arena_grow() - add a block, unless somebody else was faster
 * @arena: the arena
 * @lock: its owner's lock, not held by the caller
 *
 * Return: 0 when there was room to use or a block to add, else -ENOMEM.
 */
int tw_arena_grow(struct tw_arena *arena, spinlock_t *lock)
{
	u32 before = READ_ONCE(arena->allocated);
	void *block;

	block = alloc_pages_exact(tw_block_bytes(arena), TW_GFP);
	if (!block)
		return -ENOMEM;

	spin_lock(lock);
	if (arena->allocated == before && before < arena->nr_blocks) {
		/* Who prefetches may look already. */
		WRITE_ONCE(arena->blocks[before], block);
		/* Pairs with the acquire in tw_arena_find(). */
		smp_store_release(&arena->allocated, before + 1);
		block = NULL;
	}
	spin_unlock(lock);
	if (block)
		free_pages_exact(block, tw_block_bytes(arena));

	return 0;
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

size_t tw_arena_bytes(const struct tw_arena *arena)
{
	return arena->nr_blocks * sizeof(*arena->blocks) +
	       arena->allocated * tw_block_bytes(arena);
}
