/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Lists of tokens, kept as indices in chunks of two cache lines.
 *
 * Only the head chunk of a list is partly filled. Each token knows its exact
 * place, so that it leaves its list by moving the list's last entry into the
 * hole: no stale entries, no compaction, and walking a list reads memory in
 * order. Tokens of a list that is only used at its end need not know their places.
 * All of it is under the ring's lock. A list knows nothing of time.
 */
#ifndef TW_LIST_H
#define TW_LIST_H

#include <linux/minmax.h>
#include <linux/types.h>

#include "arena.h"
#include "token.h"

#define TW_CHUNK_ENTRIES	30
#define TW_CHUNK_SHIFT		5	/* place: chunk << 5 | position */
#define TW_CHUNK_MASK		((1U << TW_CHUNK_SHIFT) - 1)
#define TW_AHEAD		(TW_CHUNK_ENTRIES / 2)	/* tokens to fetch at once */

/**
 * struct tw_chunk - part of a list
 * @next: the next, full, chunk of the list or TW_NIL; next free one when free
 * @list: the list that it is part of
 * @entry: tokens; in the head chunk as many as the list's @fill, else all
 */
struct tw_chunk {
	u32	next;
	u32	list;
	u32	entry[TW_CHUNK_ENTRIES];
};

#define TW_BLOCK_CHUNKS	((u32)(TW_BLOCK_UNIT / sizeof(struct tw_chunk)))

/**
 * struct tw_list - a list of tokens
 * @chunk: its first chunk; valid while @fill is not 0
 * @head: the number of this chunk
 * @fill: entries in this chunk; 0 when the list is empty
 */
struct tw_list {
	struct tw_chunk	*chunk;
	u32		head;
	u32		fill;
};

/**
 * struct tw_lists - the lists of a ring and what they are made of
 * @tokens: the tokens that the entries name; the ring's arena
 * @chunks: memory, in blocks of TW_BLOCK_CHUNKS
 * @fresh: chunks below this number have been in use
 * @free: first of the free chunks, or TW_NIL
 * @list: @nr lists
 * @nr: how many; constant
 */
struct tw_lists {
	struct tw_arena		*tokens;
	struct tw_blocks	chunks;
	u32			fresh;
	u32			free;
	struct tw_list		*list;
	u32			nr;
};

int tw_lists_init(struct tw_lists *lists, struct tw_arena *tokens, u32 nr,
		  u32 max_tokens);
void tw_lists_destroy(struct tw_lists *lists);
u32 tw_lists_room(const struct tw_lists *lists);
const u32 *tw_list_ahead(const struct tw_lists *lists, const struct tw_list *list);
void tw_list_drop_head(struct tw_lists *lists, struct tw_list *list);

static inline struct tw_chunk *tw_chunk(const struct tw_lists *lists, u32 chunk)
{
	struct tw_chunk *block = lists->chunks.block[chunk / TW_BLOCK_CHUNKS];

	return block + chunk % TW_BLOCK_CHUNKS;
}

/* Fetches both cache lines of a chunk. */
static inline void tw_chunk_fetch(const struct tw_chunk *chunk)
{
	prefetchw(chunk);
	prefetchw(&chunk->entry[TW_CHUNK_ENTRIES - 1]);
}

/* Whether the tokens that come soon have to be fetched now: see tw_list_ahead(). */
static inline bool tw_list_is_to_fetch(const struct tw_list *list)
{
	return !(list->fill % TW_AHEAD);
}

/* Returns the last entry of a list that is not empty, which is the cheapest to take. */
static inline u32 tw_list_last(const struct tw_list *list)
{
	return list->chunk->entry[list->fill - 1];
}

/* Takes the last entry off a list. Returns whether the list is empty then. */
static inline bool tw_list_pop(struct tw_lists *lists, struct tw_list *list)
{
	if (--list->fill)
		return false;
	tw_list_drop_head(lists, list);

	return !list->fill;
}

/*
 * Returns how many chunks are enough for any spread of so many tokens over the lists. Chunks
 * are most when as many lists as can be hold one token more than full chunks. A registration
 * takes memory for so many, and filing never allocates.
 */
static inline u32 tw_lists_chunks(const struct tw_lists *lists, u32 tokens)
{
	u32 partial = min(tokens, lists->nr);

	return partial + (tokens - partial) / TW_CHUNK_ENTRIES;
}

/* Whether the head chunk has no room for an entry, or there is none. */
static inline bool tw_list_is_full(const struct tw_list *list)
{
	return !list->fill || list->fill == TW_CHUNK_ENTRIES;
}

/* Gives a list that is full another head chunk, to which at least one entry is added. */
static inline void tw_lists_new_head(struct tw_lists *lists, u32 list)
{
	struct tw_list *to = &lists->list[list];
	u32 chunk = lists->free;
	struct tw_chunk *head;

	if (chunk == TW_NIL)
		chunk = lists->fresh++;
	head = tw_chunk(lists, chunk);
	if (chunk == lists->free)
		lists->free = head->next;

	head->next = to->fill ? to->head : TW_NIL;
	head->list = list;
	to->chunk = head;
	to->head = chunk;
	to->fill = 0;
}

/* Adds an entry to the head chunk, which has room. Returns its place. */
static inline u32 tw_list_push(struct tw_list *list, u32 index)
{
	u32 fill = list->fill;
	u32 place = list->head << TW_CHUNK_SHIFT | fill;

	list->fill = fill + 1;
	list->chunk->entry[fill] = index;

	return place;
}

/* Returns a list whose head chunk has room for at least the one entry that is then added. */
static inline struct tw_list *tw_lists_open(struct tw_lists *lists, u32 list)
{
	struct tw_list *to = &lists->list[list];

	if (unlikely(tw_list_is_full(to)))
		tw_lists_new_head(lists, list);

	return to;
}

static inline bool tw_lists_empty(const struct tw_lists *lists, u32 list)
{
	return !lists->list[list].fill;
}

/* Adds a token, which is at @index. Returns whether the list was empty. */
static inline bool tw_lists_add(struct tw_lists *lists, u32 list, u32 index,
				struct tw_token *token)
{
	bool was_empty = tw_lists_empty(lists, list);

	token->place = tw_list_push(tw_lists_open(lists, list), index);

	return was_empty;
}

/*
 * Takes a token out of its list. Tells its index, and whether the list is empty then. Returns
 * the list.
 */
static inline u32 tw_lists_remove(struct tw_lists *lists,
				  const struct tw_token *token, u32 *index,
				  bool *empty)
{
	u32 place = token->place;
	struct tw_chunk *chunk = tw_chunk(lists, place >> TW_CHUNK_SHIFT);
	u32 list = chunk->list;
	struct tw_list *from = &lists->list[list];
	u32 last = tw_list_last(from);

	*index = chunk->entry[place & TW_CHUNK_MASK];
	if (last != *index) {
		struct tw_token *moved = tw_arena_at(lists->tokens, last);

		chunk->entry[place & TW_CHUNK_MASK] = last;
		moved->place = place;
	}
	*empty = tw_list_pop(lists, from);

	return list;
}

/* Returns the token at a place. */
static inline u32 tw_lists_at(const struct tw_lists *lists, u32 place)
{
	const struct tw_chunk *chunk = tw_chunk(lists, place >> TW_CHUNK_SHIFT);

	return chunk->entry[place & TW_CHUNK_MASK];
}

#endif /* TW_LIST_H */
