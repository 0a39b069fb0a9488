/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Blocks of memory by number, one after the other.
 *
 * They come as they are needed and stay until all of them go, so that a thread
 * which has found one may look at it without a lock. They know nothing of what is
 * kept in them.
 */
#ifndef TW_BLOCKS_H
#define TW_BLOCKS_H

#include <linux/gfp.h>
#include <linux/nospec.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/*
 * The flags for users' memory: it is charged to their cgroup, zeroed, and refused with an
 * error, which neither kills a task nor fills the log.
 */
#define TW_GFP	(GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_RETRY_MAYFAIL | \
		 __GFP_NOWARN)

/*
 * Blocks are multiples of this, also where pages are larger. A block that is not whole pages
 * shares its pages with other blocks, of any wheel.
 */
#define TW_BLOCK_UNIT	SZ_4K

/*
 * The largest block that is not whole pages, and the largest block of an arena: its order is
 * one that the page allocator gives without effort.
 */
#define TW_BLOCK_MAX	SZ_32K

/**
 * struct tw_blocks - blocks by number
 * @block: directory of @nr pointers, of which @allocated are set
 * @nr: size of the directory; constant
 * @allocated: blocks in the directory; set under the owner's lock, read anywhere
 * @bytes: size of a block, see tw_blocks_init(); constant
 */
struct tw_blocks {
	void		**block;
	u32		nr;
	u32		allocated;
	u32		bytes;
};

int tw_blocks_start(void);
void tw_blocks_stop(void);
int tw_blocks_init(struct tw_blocks *blocks, u32 nr, u32 bytes);
void tw_blocks_destroy(struct tw_blocks *blocks);
int tw_blocks_grow(struct tw_blocks *blocks, spinlock_t *lock);
size_t tw_blocks_bytes(const struct tw_blocks *blocks);

/* Finds a block by a number from outside. Return: whether it is there (yet). */
static inline bool tw_blocks_find(const struct tw_blocks *blocks, u32 nr,
				  void **block)
{
	/* Pairs with the release in tw_blocks_grow(): each block below the count is there. */
	u32 allocated = smp_load_acquire(&blocks->allocated);

	if (nr >= allocated)
		return false;
	*block = blocks->block[array_index_nospec(nr, allocated)];

	return true;
}

#endif /* TW_BLOCKS_H */
