// SPDX-License-Identifier: GPL-2.0-only
/*
 * Walks through a whole ring, and checks that all its parts agree: every token has
 * its true place, bits and counts match the lists, and no list is looked at after a
 * deadline of its tokens. The walk knows nothing of the caller's operations on the
 * ring, and everything about the ring's structure.
 */
#include "ids.h"
#include "tap.h"
#include "walk.h"

/*
 * Returns the level of a list. Free tokens count as level 0, because there is no
 * finer level.
 */
u32 list_level(const struct tw_ring *ring, u32 list)
{
	u32 nr;

	for (nr = ring->levels.nr - 1; nr > 0; nr--)
		if (list < ring->levels.free && list >= ring->levels.level[nr].first)
			return nr;

	return 0;
}

/* Returns the tick on which a list is looked at next. */
static u64 look_tick(const struct tw_ring *ring, u32 list)
{
	u32 nr = list_level(ring, list);
	const struct tw_level *level = &ring->levels.level[nr];
	u64 slot = list - level->first, block;

	if (list >= ring->levels.free)
		return 0;

	block = level->next +
		(slot + level->slots - level->next % level->slots) %
		level->slots;

	return (block - level->early) * level->width;
}

/* The counts of the tokens and chunks that a walk has seen on the ring's lists. */
struct walked {
	u32	chunks;
	u32	pending;
	u32	free;
};

static void walk_token(struct tw_ring *ring, u32 list, u32 place, u64 look,
		       struct walked *walked)
{
	u32 index = tw_lists_at(&ring->levels.lists, place);
	struct tw_token *token;

	CHECK(index < ring->tokens.fresh, "list %u has token %u of %u", list,
	      index, ring->tokens.fresh);
	token = tw_arena_at(&ring->tokens, index);
	/* A free token does not know its place. */
	if (list == ring->levels.free) {
		CHECK_EQ(tw_word_state(token->word), TW_FREE);
		walked->free++;
		return;
	}
	CHECK_EQ(token->place, place);
	CHECK_EQ(tw_word_state(token->word), TW_ARMED);
	walked->pending++;
	CHECK_EQ(tw_ring_index(ring, token), index);
	CHECK(tw_word_due(token->word) >= look,
	      "token %u is due on %llu, its list %u is looked at on %llu",
	      index, tw_word_due(token->word), list, look);
	if (token->named)
		CHECK(tw_ids_find(&ring->ids, tw_token_id(ring, token)) ==
		      (struct tw_id_token *)token, "id of token %u", index);
}

static void walk_list(struct tw_ring *ring, u32 list, struct walked *walked)
{
	u32 chunk = ring->levels.lists.list[list].head;
	u32 fill = ring->levels.lists.list[list].fill;
	u64 look = fill ? look_tick(ring, list) : 0;
	u32 i;

	if (!fill)
		return;
	CHECK(fill <= TW_CHUNK_ENTRIES, "list %u: %u in its head", list, fill);
	for (; chunk != TW_NIL; fill = TW_CHUNK_ENTRIES) {
		const struct tw_chunk *part = tw_chunk(&ring->levels.lists, chunk);

		CHECK_EQ(part->list, list);
		for (i = 0; i < fill; i++)
			walk_token(ring, list, chunk << TW_CHUNK_SHIFT | i,
				   look, walked);
		walked->chunks++;
		chunk = part->next;
	}
}

static u64 level_tick(const struct tw_ring *ring, u32 nr)
{
	const struct tw_level *level = &ring->levels.level[nr];

	return level->count ? (level->next - level->early) * level->width :
		level->next;
}

static void walk_level(const struct tw_ring *ring, u32 nr)
{
	const struct tw_level *level = &ring->levels.level[nr];
	u32 slot, occupied = 0;

	for (slot = 0; slot < level->slots; slot++) {
		bool filled = !tw_lists_empty(&ring->levels.lists,
					      level->first + slot);

		CHECK(test_bit(slot, level->occupied) == filled,
		      "level %u slot %u", nr, slot);
		occupied += filled;
	}
	CHECK_EQ(level->count, occupied);
	CHECK((level->next == TW_NEVER) == !occupied, "level %u", nr);
	if (occupied) {
		CHECK_EQ(level->at, level->next % level->slots);
		CHECK(test_bit(level->at, level->occupied),
		      "level %u is to be looked at where nothing is", nr);
	}
	CHECK(level_tick(ring, nr) >= ring->levels.next,
	      "level %u is earlier than the ring", nr);
}

static u32 capacity(const struct tw_lists *lists)
{
	return lists->chunks.allocated * TW_BLOCK_CHUNKS;
}

u32 chunks_in_use(const struct tw_lists *lists)
{
	u32 chunk, unused = 0, fresh = lists->fresh;

	for (chunk = lists->free; chunk != TW_NIL; unused++) {
		CHECK(chunk < fresh, "%u is free, %u is fresh", chunk, fresh);
		CHECK(unused < fresh, "free ones in a circle");
		chunk = tw_chunk(lists, chunk)->next;
	}
	CHECK(fresh <= capacity(lists), "%u of %u", fresh,
	      capacity(lists));

	return fresh - unused;
}

/* The chunks have room for exactly @room tokens, and not for one more. */
static void walk_room(const struct tw_lists *lists)
{
	u32 room = tw_lists_room(lists);

	CHECK(tw_lists_chunks(lists, room) <= capacity(lists) &&
	      tw_lists_chunks(lists, room + 1) > capacity(lists),
	      "room for %u tokens", room);
}

/*
 * The places of deliveries: each place is once in their order, the held places are a
 * heap by the end of the lease, and each place in use has a token of its own. All
 * tokens of the ring that are not pending are therefore out, and no two of them have
 * one place.
 */
static void walk_held(const struct tw_ring *ring)
{
	const struct tw_held *held = &ring->delivery.held;
	u32 at;

	CHECK(held->count <= held->used && held->used <= held->max,
	      "%u held, %u used of %u", held->count, held->used, held->max);
	CHECK_EQ(held->used, ring->tokens.used - ring->pending);
	for (at = 0; at < held->max; at++) {
		const struct tw_place *place = &held->place[held->order[at]];
		const struct tw_token *token;

		CHECK_EQ(place->at, at);
		if (at && at < held->count)
			CHECK(held->place[held->order[(at - 1) / 2]].end <= place->end,
			      "a lease ends on %llu, below a later one",
			      place->end);
		if (at >= held->used)
			continue;
		token = tw_arena_at(&ring->tokens, place->token);
		CHECK_EQ(token->place, held->order[at]);
		CHECK_EQ(tw_word_state(token->word),
			 at < held->count ? TW_HELD : TW_TAKEN);
	}
}

/* Walks through the ring. The caller has the lock, or is the only user of the ring. */
void walk(struct tw_ring *ring)
{
	struct walked walked = { 0 };
	u32 list, nr, chunks;

	for (list = 0; list < ring->levels.lists.nr; list++)
		walk_list(ring, list, &walked);
	chunks = walked.chunks;
	CHECK_EQ(walked.pending, ring->pending);
	CHECK_EQ(walked.free + ring->tokens.used, ring->tokens.fresh);
	CHECK(chunks <= tw_lists_chunks(&ring->levels.lists, ring->tokens.fresh) &&
	      tw_lists_chunks(&ring->levels.lists, ring->tokens.fresh) <=
	      capacity(&ring->levels.lists),
	      "%u chunks for %u tokens", chunks, ring->tokens.fresh);
	walk_room(&ring->levels.lists);
	CHECK(ring->tokens.fresh <= tw_arena_capacity(&ring->tokens), "%u of %u",
	      ring->tokens.fresh, tw_arena_capacity(&ring->tokens));
	CHECK(ring->ready <= ring->room, "%u of %u", ring->ready, ring->room);

	for (nr = 0; nr < ring->levels.nr; nr++)
		walk_level(ring, nr);
	if (ring->levels.next != TW_NEVER)
		CHECK_EQ(ring->levels.next, level_tick(ring, ring->levels.next_level));

	CHECK_EQ(chunks_in_use(&ring->levels.lists), chunks);
	if (ring->delivery.lease)
		walk_held(ring);
}
