// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocks: whole pages of memory by number, one after the other.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "blocks.h"

/**
 * tw_blocks_init() - make an empty directory
 * @blocks: to be set up
 * @nr: how many blocks there may be
 * @bytes: size of each, whole pages
 *
 * Return: 0 or -ENOMEM.
 */
int tw_blocks_init(struct tw_blocks *blocks, u32 nr, u32 bytes)
{
	*blocks = (struct tw_blocks) {
		.block	= kvcalloc(nr, sizeof(*blocks->block), TW_GFP),
		.nr	= nr,
		.bytes	= bytes,
	};

	return blocks->block ? 0 : -ENOMEM;
}

/*
 * Lets go of all: a page that is mapped goes with its last mapping. No thread looks
 * any more. May sleep.
 */
void tw_blocks_destroy(struct tw_blocks *blocks)
{
	u32 i;

	for (i = 0; i < blocks->allocated; i++) {
		free_pages_exact(blocks->block[i], blocks->bytes);
		cond_resched();
	}
	kvfree(blocks->block);
}

/**
 * tw_blocks_grow() - add a block, unless another thread was faster
 * @blocks: the blocks
 * @lock: their owner's lock, not held by the caller
 *
 * Return: 0 when there was room to use or a block to add, else -ENOMEM.
 */
int tw_blocks_grow(struct tw_blocks *blocks, spinlock_t *lock)
{
	u32 before = READ_ONCE(blocks->allocated);
	void *block;

	block = alloc_pages_exact(blocks->bytes, TW_GFP);
	if (!block)
		return -ENOMEM;

	spin_lock(lock);
	if (blocks->allocated == before && before < blocks->nr) {
		/* A thread that prefetches may look already. */
		WRITE_ONCE(blocks->block[before], block);
		/* Pairs with the acquire in tw_blocks_find(). */
		smp_store_release(&blocks->allocated, before + 1);
		block = NULL;
	}
	spin_unlock(lock);
	if (block)
		free_pages_exact(block, blocks->bytes);

	return 0;
}

size_t tw_blocks_bytes(const struct tw_blocks *blocks)
{
	return blocks->nr * sizeof(*blocks->block) +
	       (size_t)blocks->allocated * blocks->bytes;
}
