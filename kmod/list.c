// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Lists of tokens, kept as indices in chunks of two cache lines.
 *
 * Everything here but setting up and tearing down is under the ring's lock.
 */
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "list.h"

/*
 * The number of tokens for which there are chunks, however they are spread: see
 * tw_lists_chunks().
 */
u32 tw_lists_room(const struct tw_lists *lists)
{
	u32 chunks = lists->chunks.allocated * TW_BLOCK_CHUNKS;

	if (chunks < lists->nr)
		return chunks;

	return min_t(u64, lists->nr + TW_CHUNK_ENTRIES - 1 +
		     (u64)(chunks - lists->nr) * TW_CHUNK_ENTRIES, U32_MAX);
}

int tw_lists_init(struct tw_lists *lists, struct tw_arena *tokens, u32 nr,
		  u32 max_tokens)
{
	int err;

	BUILD_BUG_ON(TW_CHUNK_ENTRIES > 1 << TW_CHUNK_SHIFT);
	BUILD_BUG_ON(2 * TW_AHEAD != TW_CHUNK_ENTRIES);
	lists->tokens = tokens;
	lists->nr = nr;
	lists->list = kvcalloc(nr, sizeof(*lists->list), TW_GFP);
	if (!lists->list)
		return -ENOMEM;

	lists->free = TW_NIL;
	err = tw_blocks_init(&lists->chunks,
			     (tw_lists_chunks(lists, max_tokens) - 1) / TW_BLOCK_CHUNKS + 1,
			     TW_BLOCK_UNIT);
	if (err)
		kvfree(lists->list);

	return err;
}

void tw_lists_destroy(struct tw_lists *lists)
{
	kvfree(lists->list);
	tw_blocks_destroy(&lists->chunks);
}

/*
 * Returns the TW_AHEAD entries of a list that come after the TW_AHEAD last ones; NULL when
 * there are none. The list's head chunk is full or half full. Fetches the next chunk before
 * its entries are needed.
 */
const u32 *tw_list_ahead(const struct tw_lists *lists, const struct tw_list *list)
{
	const struct tw_chunk *head = list->chunk;
	const struct tw_chunk *next = NULL;

	if (head->next != TW_NIL)
		next = tw_chunk(lists, head->next);
	if (list->fill == TW_AHEAD)
		return next ? &next->entry[TW_AHEAD] : NULL;
	if (next)
		tw_chunk_fetch(next);

	return head->entry;
}

/* Removes the head chunk, which has become empty: the list goes on with the next, if any. */
void tw_list_drop_head(struct tw_lists *lists, struct tw_list *list)
{
	struct tw_chunk *head = list->chunk;
	u32 next = head->next;

	head->next = lists->free;
	lists->free = list->head;
	if (next != TW_NIL) {
		list->chunk = tw_chunk(lists, next);
		list->head = next;
		list->fill = TW_CHUNK_ENTRIES;
	}
}
