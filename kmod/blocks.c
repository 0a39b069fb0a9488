// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocks of memory by number, one after the other.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "blocks.h"

/* The caches of blocks that are not whole pages, by their size in units; constant. */
static struct kmem_cache *tw_block_caches[TW_BLOCK_MAX / TW_BLOCK_UNIT + 1];

/* Destroys the caches. All blocks have gone. May sleep. */
void tw_blocks_stop(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tw_block_caches); i++) {
		kmem_cache_destroy(tw_block_caches[i]);
		tw_block_caches[i] = NULL;
	}
}

/* Makes the caches, or none of them where pages are small. Returns 0 or -ENOMEM. */
int tw_blocks_start(void)
{
	char name[32];
	u32 i;

	for (i = 1; i < ARRAY_SIZE(tw_block_caches); i++) {
		u32 bytes = i * TW_BLOCK_UNIT;

		if (IS_ALIGNED(bytes, PAGE_SIZE))
			continue;
		snprintf(name, sizeof(name), "timewheel-%u", bytes);
		tw_block_caches[i] = kmem_cache_create(name, bytes, 0,
						       SLAB_NO_MERGE, NULL);
		if (!tw_block_caches[i]) {
			tw_blocks_stop();
			return -ENOMEM;
		}
	}

	return 0;
}

static void *tw_block_alloc(u32 bytes)
{
	if (IS_ALIGNED(bytes, PAGE_SIZE))
		return alloc_pages_exact(bytes, TW_GFP);

	return kmem_cache_alloc(tw_block_caches[bytes / TW_BLOCK_UNIT], TW_GFP);
}

static void tw_block_free(void *block, u32 bytes)
{
	if (IS_ALIGNED(bytes, PAGE_SIZE))
		free_pages_exact(block, bytes);
	else
		kmem_cache_free(tw_block_caches[bytes / TW_BLOCK_UNIT], block);
}

/*
 * Returns an empty directory, which kvfree() frees, or NULL. One of a few pages is not taken in
 * one piece: it is freed after many blocks, and some kernels (6.1) then free all pages that the
 * CPU has kept, in one go and with interrupts off: see nr_pcp_free() in mm/page_alloc.c.
 */
static void **tw_directory_alloc(u32 nr)
{
	size_t bytes = nr * sizeof(void *);

	if (bytes > PAGE_SIZE)
		return __vmalloc(bytes, TW_GFP);

	return kzalloc(bytes, TW_GFP);
}

/*
 * Makes an empty directory of @nr blocks. @bytes: size of a block: whole pages, or a multiple
 * of TW_BLOCK_UNIT, at most TW_BLOCK_MAX. Returns 0 or -ENOMEM.
 */
int tw_blocks_init(struct tw_blocks *blocks, u32 nr, u32 bytes)
{
	*blocks = (struct tw_blocks) {
		.block	= tw_directory_alloc(nr),
		.nr	= nr,
		.bytes	= bytes,
	};

	return blocks->block ? 0 : -ENOMEM;
}

/*
 * Lets go of all blocks: a mapped page goes with its last mapping. The caller knows that no
 * thread looks any more. May sleep.
 */
void tw_blocks_destroy(struct tw_blocks *blocks)
{
	u32 i;

	for (i = 0; i < blocks->allocated; i++) {
		tw_block_free(blocks->block[i], blocks->bytes);
		cond_resched();
	}
	kvfree(blocks->block);
}

/*
 * Adds a block, unless another thread was faster. @lock: the owner's, not held by the caller.
 * May sleep. Returns 0 when there was room to use or a block to add, else -ENOMEM.
 */
int tw_blocks_grow(struct tw_blocks *blocks, spinlock_t *lock)
{
	u32 before = READ_ONCE(blocks->allocated);
	void *block;

	block = tw_block_alloc(blocks->bytes);
	if (!block)
		return -ENOMEM;

	spin_lock(lock);
	if (blocks->allocated == before && before < blocks->nr) {
		blocks->block[before] = block;
		/* Pairs with the acquire in tw_blocks_find(). */
		smp_store_release(&blocks->allocated, before + 1);
		block = NULL;
	}
	spin_unlock(lock);
	if (block)
		tw_block_free(block, blocks->bytes);

	return 0;
}

size_t tw_blocks_bytes(const struct tw_blocks *blocks)
{
	return blocks->nr * sizeof(*blocks->block) +
	       (size_t)blocks->allocated * blocks->bytes;
}
