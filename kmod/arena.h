/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arena: objects of one size, named by u32 indices, in blocks of pages.
 *
 * Blocks come as they are needed and stay until the arena goes, so that an
 * object may be looked at without a lock as long as the arena exists: what it
 * says must then be checked against its generation. The arena knows nothing of
 * the objects but where each keeps a u32 for the list of free ones.
 */
#ifndef TW_ARENA_H
#define TW_ARENA_H

#include <linux/gfp.h>
#include <linux/nospec.h>
#include <linux/prefetch.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#define TW_NIL	U32_MAX

/*
 * How users' memory is asked for: charged to their cgroup, zeroed, and refused
 * with an error, neither killing anybody nor filling the log.
 */
#define TW_GFP	(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_RETRY_MAYFAIL | \
		 __GFP_NOWARN)

/**
 * struct tw_arena - objects by index
 * @blocks: directory of @nr_blocks pointers, of which @allocated are set
 * @nr_blocks: size of the directory; constant
 * @size: bytes per object; constant
 * @link: offset in an object of the u32 that links free ones; constant
 * @shift: log2 of the objects per block; constant
 * @mask: objects per block, less one; constant
 * @allocated: blocks in the directory; set under the owner's lock, read anywhere
 * @fresh: objects below this index have been in use; owner's lock
 * @used: objects in use; owner's lock
 * @free: first of the free objects below @fresh, or TW_NIL; owner's lock
 */
struct tw_arena {
	void		**blocks;
	u32		nr_blocks;
	u32		size;
	u32		link;
	u32		shift;
	u32		mask;
	u32		allocated;
	u32		fresh;
	u32		used;
	u32		free;
};

int tw_arena_init(struct tw_arena *arena, u32 size, u32 link, u32 max);
void tw_arena_destroy(struct tw_arena *arena);
int tw_arena_grow(struct tw_arena *arena, spinlock_t *lock);
u32 tw_arena_get(struct tw_arena *arena);
size_t tw_arena_bytes(const struct tw_arena *arena);

/* How many objects there is memory for. Under the owner's lock. */
static inline u32 tw_arena_capacity(const struct tw_arena *arena)
{
	return arena->allocated << arena->shift;
}

/* An object by an index that the arena gave. */
static inline void *tw_arena_at(const struct tw_arena *arena, u32 index)
{
	u32 in_block = index & arena->mask;

	return READ_ONCE(arena->blocks[index >> arena->shift]) +
	       (size_t)in_block * arena->size;
}

/* An object by an index from outside: NULL if there is no memory behind it. */
static inline void *tw_arena_find(const struct tw_arena *arena, u32 index)
{
	/* Pairs with the release in tw_arena_grow(): each block is there. */
	u32 blocks = smp_load_acquire(&arena->allocated);
	u32 block = index >> arena->shift;
	u32 in_block = index & arena->mask;

	if (block >= blocks)
		return NULL;

	return arena->blocks[array_index_nospec(block, blocks)] +
	       (size_t)in_block * arena->size;
}

/*
 * Fetches an object that is about to be found, by any index: what this works out
 * for a wrong one is an address all the same, and need be no more.
 */
static inline void tw_arena_prefetch(const struct tw_arena *arena, u32 index)
{
	u32 block = array_index_nospec(index >> arena->shift, arena->nr_blocks);
	u32 in_block = index & arena->mask;

	prefetchw((void *)((unsigned long)READ_ONCE(arena->blocks[block]) +
			   (size_t)in_block * arena->size));
}

/* Gives back an object, which is at @index. */
static inline void tw_arena_put(struct tw_arena *arena, u32 index, void *object)
{
	*(u32 *)(object + arena->link) = arena->free;
	arena->free = index;
	arena->used--;
}

#endif /* TW_ARENA_H */
