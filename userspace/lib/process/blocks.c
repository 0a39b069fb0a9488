// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Blocks of memory by number, in place of the module's blocks.c. The blocks lie in a row:
 * touch words can be used where they are, and nothing has to be mapped a second time.
 */
#include "blocks.h"
#include "core.h"
#include "row.h"

static size_t row_bytes(const struct tw_blocks *blocks)
{
	return (size_t)blocks->nr * blocks->bytes;
}

/* The directory has one entry behind the entries of all blocks: the row. */
static inline void *tw_blocks_row(const struct tw_blocks *blocks)
{
	return blocks->block[blocks->nr];
}

int tw_blocks_init(struct tw_blocks *blocks, u32 nr, u32 bytes)
{
	*blocks = (struct tw_blocks) {
		.block	= kvcalloc((size_t)nr + 1, sizeof(*blocks->block), TW_GFP),
		.nr	= nr,
		.bytes	= bytes,
	};
	if (!blocks->block)
		return -ENOMEM;
	blocks->block[nr] = tw_row_new(row_bytes(blocks));
	if (blocks->block[nr])
		return 0;
	kvfree(blocks->block);
	blocks->block = NULL;

	return -ENOMEM;
}

void tw_blocks_destroy(struct tw_blocks *blocks)
{
	if (blocks->block)
		tw_row_free(tw_blocks_row(blocks), row_bytes(blocks),
			    (size_t)blocks->allocated * blocks->bytes);
	kvfree(blocks->block);
}

int tw_blocks_grow(struct tw_blocks *blocks, spinlock_t *lock)
{
	u32 before = READ_ONCE(blocks->allocated);
	size_t from = (size_t)before * blocks->bytes;
	char *row = tw_blocks_row(blocks);

	if (before >= blocks->nr)
		return 0;
	if (!tw_row_use(row, from, from + blocks->bytes))
		return -ENOMEM;

	spin_lock(lock);
	if (blocks->allocated == before) {
		WRITE_ONCE(blocks->block[before], row + from);
		/* Pairs with the acquire in tw_blocks_find(). */
		smp_store_release(&blocks->allocated, before + 1);
	}
	spin_unlock(lock);

	return 0;
}

size_t tw_blocks_bytes(const struct tw_blocks *blocks)
{
	return blocks->nr * sizeof(*blocks->block) +
	       (size_t)blocks->allocated * blocks->bytes;
}
