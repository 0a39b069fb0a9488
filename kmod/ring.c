// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ring: the timing wheel itself.
 *
 * Level 0 is the user's ring of N slots of one tick, and the slot that the hand
 * is on, so that a whole lap ahead is still on it: a timeout as long as the ring
 * needs no filing again. Each level k >= 1 has 64 slots, a slot being a block of
 * G(k) ticks:
 *
 *	G(1) = max(1, N / 2), G(k + 1) = 32 G(k)
 *
 *	level	for N = 3600, tick 1 s		reaches
 *	0	1 s				1 h
 *	1	30 min				31 h
 *	2	16 h				42 d
 *	3	21 d 8 h			3.7 years
 *	...	and so on up to 2^46 ticks
 *
 * A token is filed at the lowest level that reaches its due tick from the frame,
 * which is now, or the earliest tick that still waits to be looked at if that is
 * before now. Block b of a level is opened when block b - 1 begins: its tokens
 * are then filed again from there, further in, so each is filed at most once
 * per level, and whoever does it has a whole block of time.
 *
 * Ticks are looked at in their order, whatever now is by then: each look takes
 * the level whose next block comes first, and that tick is the frame. So a
 * stall shifts nothing. What was touched is found not to be due on its list's
 * tick and is filed again. The one rule that all rests on:
 *
 *	A token's list is looked at no later than its due tick.
 *
 * A level's blocks are known by its earliest one, from which its slots are
 * counted. A clock that is stepped back brings an earlier one: lists beyond its
 * lap are then looked at a lap or more too soon, once, and filed further out.
 *
 * There is no hand to keep: it is the time that the caller says it is.
 */
#include <linux/bitmap.h>
#include <linux/bug.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "ids.h"
#include "ring.h"

#define TW_OUTER_SLOTS	64	/* of each level but the user's: one word of bits */
#define TW_OUTER_SHIFT	5	/* log2 of the ratio of two levels' widths */

/*
 * Levels: arithmetic.
 */

/* The tick on which a level is next to be looked at. */
static u64 tw_level_tick(const struct tw_ring *ring, u32 nr)
{
	const struct tw_level *level = &ring->level[nr];

	if (!nr || level->next == TW_NEVER)
		return level->next;

	return (level->next - 1) * level->width;
}

/* The lowest level that reaches a tick from the frame, and the block there. */
static u32 tw_level_for(const struct tw_ring *ring, u64 due, u64 frame,
			u64 *block)
{
	u32 nr = 1;

	*block = due;
	if (due - frame < ring->level[0].slots)
		return 0;

	due /= ring->level[1].width;
	frame /= ring->level[1].width;
	while (due - frame >= TW_OUTER_SLOTS) {
		due >>= TW_OUTER_SHIFT;
		frame >>= TW_OUTER_SHIFT;
		nr++;
	}
	*block = due;

	return nr;
}

static u32 tw_level_of_list(const struct tw_ring *ring, u32 list)
{
	if (list < ring->level[0].slots)
		return 0;

	return 1 + (list - ring->level[0].slots) / TW_OUTER_SLOTS;
}

/* Moves on from the block whose slot has just become empty. */
static void tw_level_advance(struct tw_level *level)
{
	u32 from = level->at;

	if (!level->count) {
		level->next = TW_NEVER;
		return;
	}
	level->at = find_next_bit(level->occupied, level->slots, from);
	if (level->at < level->slots) {
		level->next += level->at - from;
	} else {
		level->at = find_first_bit(level->occupied, from);
		level->next += level->slots + level->at - from;
	}
}

static void tw_ring_find_next(struct tw_ring *ring)
{
	u32 nr;

	ring->next = TW_NEVER;
	for (nr = 0; nr < ring->nr_levels; nr++) {
		u64 tick = tw_level_tick(ring, nr);

		if (tick < ring->next) {
			ring->next = tick;
			ring->next_level = nr;
		}
	}
}

/*
 * Filing. All under the lock.
 */

void tw_file(struct tw_ring *ring, u32 index, u64 due, u64 frame)
{
	u64 block;
	u32 nr = tw_level_for(ring, due, frame, &block);
	struct tw_level *level = &ring->level[nr];
	u32 slot = block % level->slots;

	if (tw_lists_add(&ring->lists, level->first + slot, index)) {
		__set_bit(slot, level->occupied);
		level->count++;
	}
	if (block < level->next) {
		u64 tick;

		level->next = block;
		level->at = slot;
		tick = tw_level_tick(ring, nr);
		if (tick < ring->next) {
			ring->next = tick;
			ring->next_level = nr;
		}
	}
}

/* A list's last token has left it. */
static void tw_list_emptied(struct tw_ring *ring, u32 list)
{
	struct tw_level *level;
	u32 slot, nr;

	if (list >= ring->front)
		return;

	nr = tw_level_of_list(ring, list);
	level = &ring->level[nr];
	slot = list - level->first;
	__clear_bit(slot, level->occupied);
	level->count--;
	if (slot != level->at)
		return;

	tw_level_advance(level);
	if (ring->next_level == nr)
		tw_ring_find_next(ring);
}

void tw_unfile(struct tw_ring *ring, u32 index)
{
	bool empty;
	u32 list = tw_lists_remove(&ring->lists, index, &empty);

	if (empty)
		tw_list_emptied(ring, list);
}

/*
 * Setting up.
 */

static int tw_ring_init_levels(struct tw_ring *ring)
{
	u64 width = max(ring->slots / 2, 1U);
	u32 slots = ring->slots + 1;
	u32 first = slots;
	u32 nr;

	ring->occupied = kvcalloc(BITS_TO_LONGS(slots) + TW_LEVELS - 1,
				  sizeof(long), TW_GFP);
	if (!ring->occupied)
		return -ENOMEM;

	ring->level[0] = (struct tw_level) {
		.next = TW_NEVER, .width = 1, .slots = slots,
		.occupied = ring->occupied,
	};
	for (nr = 1; ; nr++) {
		ring->level[nr] = (struct tw_level) {
			.next = TW_NEVER, .width = width,
			.slots = TW_OUTER_SLOTS, .first = first,
			.occupied = ring->occupied + BITS_TO_LONGS(slots) +
				    nr - 1,
		};
		first += TW_OUTER_SLOTS;
		if (TW_MAX_TICK / width < TW_OUTER_SLOTS)
			break;
		width <<= TW_OUTER_SHIFT;
	}
	ring->nr_levels = nr + 1;
	ring->next = TW_NEVER;
	ring->front = first;
	ring->delivery.aside = first + 1;

	return 0;
}

static int tw_ring_init_tokens(struct tw_ring *ring,
			       const struct tw_ring_setup *setup)
{
	u32 size = sizeof(struct tw_token);

	if (setup->ids)
		size = sizeof(struct tw_id_token);
	if (setup->cookies) {
		ring->cookie_at = size;
		size += sizeof(u64);
	}

	if (setup->lease || setup->periods) {
		ring->delivery.at = size;
		size += sizeof(struct tw_delivery);
	}

	return tw_arena_init(&ring->tokens, size,
			     offsetof(struct tw_token, place),
			     setup->max_tokens);
}

/**
 * tw_ring_init() - make an empty ring
 * @ring: memory for it
 * @setup: how it is to be; the caller has checked the ranges
 *
 * May sleep.
 *
 * Return: 0, or -ENOMEM with nothing left behind.
 */
int tw_ring_init(struct tw_ring *ring, const struct tw_ring_setup *setup)
{
	int err;

	BUILD_BUG_ON(BITS_PER_LONG != TW_OUTER_SLOTS);
	memset(ring, 0, sizeof(*ring));
	spin_lock_init(&ring->lock);
	ring->tick = setup->tick;
	ring->max_due = min(TW_MAX_TICK, (u64)S64_MAX / setup->tick);
	ring->slots = setup->slots;
	ring->max_tokens = setup->max_tokens;
	ring->room = setup->max_tokens;
	ring->rich = setup->words || setup->lease || setup->periods;
	ring->delivery.lease = setup->lease;
	ring->delivery.max_attempts = setup->max_attempts;

	err = tw_ring_init_levels(ring);
	if (err)
		return err;
	err = tw_ring_init_tokens(ring, setup);
	if (err)
		goto free_levels;
	if (setup->words)
		err = tw_words_init(&ring->words, setup->max_tokens);
	if (err)
		goto free_tokens;
	err = tw_lists_init(&ring->lists, &ring->tokens,
			    tw_ring_has_deliveries(ring) ?
			    ring->delivery.aside + 1 : ring->front + 1,
			    setup->max_tokens);
	if (err)
		goto free_words;
	if (setup->ids)
		err = tw_ids_init(&ring->ids, setup->max_tokens);
	if (err)
		goto free_lists;
	ring->has_ids = setup->ids;

	return 0;

free_lists:
	tw_lists_destroy(&ring->lists);
free_words:
	tw_blocks_destroy(&ring->words);
free_tokens:
	tw_blocks_destroy(&ring->tokens.blocks);
free_levels:
	kvfree(ring->occupied);
	return err;
}

/* Frees everything; nobody uses the ring any more. May sleep. */
void tw_ring_destroy(struct tw_ring *ring)
{
	if (ring->has_ids)
		tw_ids_destroy(&ring->ids);
	tw_lists_destroy(&ring->lists);
	tw_blocks_destroy(&ring->words);
	tw_blocks_destroy(&ring->tokens.blocks);
	kvfree(ring->occupied);
}

/* A registration needs a token, and places wherever tokens may come to lie. */
static bool tw_ring_has_token(const struct tw_ring *ring)
{
	return ring->tokens.used < tw_arena_capacity(&ring->tokens);
}

/* Each token that there is memory for has a word, if there are words. */
static bool tw_ring_has_all_words(const struct tw_ring *ring)
{
	return !tw_ring_has_words(ring) ||
	       tw_words_capacity(&ring->words) >=
	       min(tw_arena_capacity(&ring->tokens), ring->max_tokens);
}

static bool tw_ring_has_places(const struct tw_ring *ring)
{
	return tw_lists_chunks(&ring->lists, ring->tokens.used + 1) <=
	       tw_arena_capacity(&ring->lists.chunks);
}

/**
 * tw_ring_grow() - take memory for the registration that met -EAGAIN
 * @ring: the ring, its lock not held
 *
 * Others may use it up first: register again until it does not say -EAGAIN.
 * May sleep.
 *
 * Return: 0 or -ENOMEM.
 */
int tw_ring_grow(struct tw_ring *ring)
{
	bool token, words, places;
	int err = 0;

	spin_lock(&ring->lock);
	token = tw_ring_has_token(ring);
	words = tw_ring_has_all_words(ring);
	places = tw_ring_has_places(ring);
	spin_unlock(&ring->lock);

	if (!token)
		err = tw_blocks_grow(&ring->tokens.blocks, &ring->lock);
	if (!err && !words)
		err = tw_blocks_grow(&ring->words, &ring->lock);
	if (!err && !places)
		err = tw_blocks_grow(&ring->lists.chunks.blocks,
				     &ring->lock);

	return err;
}

/* Bytes that the ring holds. Under the lock. */
size_t tw_ring_bytes(struct tw_ring *ring)
{
	return sizeof(*ring) +
	       (BITS_TO_LONGS(ring->level[0].slots) + TW_LEVELS - 1) *
	       sizeof(long) +
	       ring->lists.nr * sizeof(struct tw_list) +
	       tw_blocks_bytes(&ring->lists.chunks.blocks) +
	       tw_blocks_bytes(&ring->tokens.blocks) +
	       tw_blocks_bytes(&ring->words) +
	       (ring->has_ids ? tw_ids_bytes(&ring->ids) : 0);
}

/* The tick on which the ring is next to be looked at, or TW_NEVER. */
u64 tw_ring_next(const struct tw_ring *ring)
{
	return tw_lists_empty(&ring->lists, ring->front) ? ring->next : 0;
}

/*
 * Looking up: with or without the lock.
 */

int tw_ring_by_id(struct tw_ring *ring, u64 id, struct tw_found *found)
{
	struct tw_id_token *token;

	if (!ring->has_ids)
		return -EINVAL;

	token = tw_ids_find(&ring->ids, id);
	if (!token || !tw_found_armed(&token->token, found) ||
	    READ_ONCE(token->id) != id)
		return -ENOENT;

	return 0;
}

/* The index of an ARMED token. Under the lock. */
u32 tw_ring_index(const struct tw_ring *ring, const struct tw_token *token)
{
	return tw_lists_at(&ring->lists, token->place);
}

/**
 * tw_ring_scan() - find the next token by its place in memory
 * @ring: the ring, locked
 * @next: index to begin with; moved beyond what was looked at
 * @work: how many places may still be looked at; counted down
 * @word: the token's word
 *
 * A token keeps its index as long as it lives, so whoever goes through them all,
 * letting go of the lock as often as it likes, meets each exactly once.
 *
 * Return: the index of a token that is not FREE, or TW_NIL: then there is none
 * any more, unless @work has run out.
 */
u32 tw_ring_scan(const struct tw_ring *ring, u32 *next, unsigned int *work,
		 u64 *word)
{
	lockdep_assert_held(&ring->lock);
	while (*work && *next < ring->tokens.fresh) {
		u32 index = (*next)++;
		const struct tw_token *token =
			tw_arena_at(&ring->tokens, index);

		--*work;
		*word = READ_ONCE(token->word);
		if (tw_word_state(*word) != TW_FREE)
			return index;
	}

	return TW_NIL;
}

/*
 * Changing: under the lock.
 */

/* Ends the id: the token is no longer ARMED, nor HELD. */
void tw_unname(struct tw_ring *ring, struct tw_token *token)
{
	if (!token->named)
		return;
	tw_ids_remove(&ring->ids, (struct tw_id_token *)token);
	token->named = false;
}

static int tw_name(struct tw_ring *ring, struct tw_token *token)
{
	int err = 0;

	if (ring->has_ids)
		err = tw_ids_insert(&ring->ids, (struct tw_id_token *)token);
	token->named = ring->has_ids && !err;

	return err;
}

/* Nothing is to be left of a generation when that comes again. */
static void tw_forget_delivery(const struct tw_ring *ring, struct tw_token *token)
{
	struct tw_delivery *delivery = (void *)token + ring->delivery.at;

	if (tw_ring_has_deliveries(ring))
		delivery->generation = 0;
}

/* Ends a token's life; it is not ARMED, not filed and has no id. */
void tw_free(struct tw_ring *ring, struct tw_token *token, u32 index)
{
	u16 generation = READ_ONCE(token->word) + 1;

	if (!generation) {
		WRITE_ONCE(token->generation_hi, token->generation_hi + 1);
		tw_forget_delivery(ring, token);
	}
	WRITE_ONCE(token->word, tw_word(0, TW_FREE, generation));
	tw_arena_put(&ring->tokens, index, token);
}

static int tw_ring_may_register(struct tw_ring *ring, u64 id)
{
	if (ring->tokens.used < ring->room) {
		return tw_ring_has_token(ring) && tw_ring_has_places(ring) &&
		       tw_ring_has_all_words(ring) ? 0 : -EAGAIN;
	}

	if (ring->has_ids && tw_ids_find(&ring->ids, id))
		return -EEXIST;

	return ring->room ? -ENOSPC : -ESHUTDOWN;
}

/* The generation of a token's next life. One that is fresh has had none. */
static u32 tw_next_generation(struct tw_token *token, bool fresh)
{
	u32 generation = tw_generation(token, READ_ONCE(token->word));

	if (fresh && TW_FIRST_GENERATION != 1) {
		generation = TW_FIRST_GENERATION;
		WRITE_ONCE(token->generation_hi, generation >> 16);
	}

	/* No handle is 0: generation 0 is never used. */
	return generation ?: 1;
}

/**
 * tw_ring_register() - a new token
 * @ring: the ring, locked
 * @now: the time
 * @id: its id, if the ring has ids
 * @cookie: its cookie, if the ring has cookies
 * @deadline: when it is due, no earlier than @now
 * @handle: its handle
 *
 * Return: 0; -EAGAIN: let go of the lock, tw_ring_grow(), and again; -EEXIST;
 * -ENOSPC; -ENOMEM; -ESHUTDOWN the ring is draining.
 */
int tw_ring_register(struct tw_ring *ring, const struct tw_now *now, u64 id,
		     u64 cookie, const struct tw_deadline *deadline,
		     u64 *handle)
{
	struct tw_token *token;
	u32 fresh = ring->tokens.fresh;
	u32 index, generation;
	int err;

	lockdep_assert_held(&ring->lock);
	err = tw_ring_may_register(ring, id);
	if (err)
		return err;

	index = tw_arena_get(&ring->tokens);
	token = tw_arena_at(&ring->tokens, index);
	if (ring->has_ids)
		WRITE_ONCE(((struct tw_id_token *)token)->id, id);
	err = tw_name(ring, token);
	if (err) {
		tw_arena_put(&ring->tokens, index, token);
		return err;
	}
	if (ring->cookie_at)
		*(u64 *)((void *)token + ring->cookie_at) = cookie;
	WRITE_ONCE(token->timeout, deadline->timeout);

	generation = tw_next_generation(token, index == fresh);
	tw_stamp_set(ring, index, tw_stamp_none(generation));
	/* Pairs with the acquire in tw_found_armed(). */
	smp_store_release(&token->word,
			  tw_word(deadline->due, TW_ARMED, generation));
	tw_file(ring, index, deadline->due, tw_frame(ring, now->tick));
	ring->pending++;
	ring->registered++;
	*handle = (u64)generation << 32 | index;

	return 0;
}

/* What else a move has to see to. */
static void tw_moved_rich(struct tw_ring *ring, const struct tw_found *found,
			  u32 index, u64 due)
{
	u32 generation = tw_generation(found->token, found->word);

	tw_stamp_set(ring, index, tw_stamp_none(generation));
	if (tw_ring_has_deliveries(ring))
		tw_delivery_moved(ring, found->token, due);
}

/**
 * tw_ring_move() - due at another time, earlier or later
 * @ring: the ring, locked
 * @found: the token; afterwards with the word that it had before
 * @now: the time
 * @deadline: when it is due, no earlier than @now; the token's timeout stays
 *	when this has none, or it is periodic
 */
void tw_ring_move(struct tw_ring *ring, struct tw_found *found,
		  const struct tw_now *now, const struct tw_deadline *deadline)
{
	u32 index = tw_ring_index(ring, found->token);

	lockdep_assert_held(&ring->lock);
	if (deadline->timeout && (!tw_ring_has_deliveries(ring) ||
				  tw_delivery_has_timeout(ring, found->token)))
		WRITE_ONCE(found->token->timeout, deadline->timeout);
	tw_found_set(found, deadline->due, TW_ARMED);
	if (ring->rich)
		tw_moved_rich(ring, found, index, deadline->due);
	tw_unfile(ring, index);
	tw_file(ring, index, deadline->due, tw_frame(ring, now->tick));
	ring->moved++;
}

/* Takes a token that is no longer ARMED out of everything. */
static void tw_remove(struct tw_ring *ring, struct tw_token *token, u32 index)
{
	tw_unfile(ring, index);
	tw_unname(ring, token);
	ring->pending--;
}

/**
 * tw_ring_cancel() - no event will come of this token
 * @ring: the ring, locked
 * @found: the token; afterwards with the word that it had before
 */
void tw_ring_cancel(struct tw_ring *ring, struct tw_found *found)
{
	u32 index = tw_ring_index(ring, found->token);

	lockdep_assert_held(&ring->lock);
	tw_found_set(found, 0, TW_TAKEN);
	tw_stamp_set(ring, index, 0);
	tw_remove(ring, found->token, index);
	tw_free(ring, found->token, index);
	ring->cancelled++;
}

/*
 * Expiring: under the lock.
 */

/*
 * Where the touch word of a token is, NULL if it has none or cannot be touched.
 */
static u64 *tw_stamp_of(const struct tw_ring *ring,
			const struct tw_token *token, u32 index)
{
	return tw_ring_has_words(ring) && token->timeout &&
	       tw_word_state(READ_ONCE(token->word)) == TW_ARMED ?
		tw_words_at(&ring->words, index) : NULL;
}

/*
 * Raises a token to where its touch word says, and returns what it said. A word
 * that makes no sense becomes a touch of now, or it would be one for ever.
 */
static u64 tw_stamp_apply(struct tw_ring *ring, struct tw_token *token,
			  u64 *stamp, u64 now)
{
	u64 timeout = (token->timeout - 1) / ring->tick + 1;
	u64 word = READ_ONCE(token->word);
	u32 generation = tw_generation(token, word);
	u64 seen = READ_ONCE(*stamp);
	u64 said = seen, due;

	if (!tw_stamp_sane(seen, generation, now)) {
		said = tw_stamp(generation, now);
		if (try_cmpxchg64(stamp, &seen, said))
			seen = said;
	}
	due = min(tw_stamp_due(said, now, timeout), ring->max_due);
	if (due > tw_word_due(word))
		WRITE_ONCE(token->word, tw_word_with_due(word, due));

	return seen;
}

/**
 * tw_ring_judge() - see to it that a token's word knows of its touch word
 * @ring: the ring, locked
 * @found: the token; its word is read again
 * @now: the tick that the hand is on
 */
void tw_ring_judge(struct tw_ring *ring, struct tw_found *found, u64 now)
{
	u64 *stamp = tw_stamp_of(ring, found->token,
				 tw_ring_index(ring, found->token));

	lockdep_assert_held(&ring->lock);
	if (!stamp)
		return;
	tw_stamp_apply(ring, found->token, stamp, now);
	found->word = READ_ONCE(found->token->word);
}

/**
 * struct tw_look - which list comes first
 * @list: the list
 * @frame: from where its tokens are filed again
 * @limit: last due tick of those that are due
 * @now: the tick that the hand is on
 */
struct tw_look {
	u32	list;
	u64	frame;
	u64	limit;
	u64	now;
};

/*
 * Ticks are looked at in their order. A token found on a list of level 0 is due
 * if its list's tick is its due tick: only when nothing earlier is left. Returns
 * whether there is a list to look at.
 */
static bool tw_ring_look(const struct tw_ring *ring, u64 now,
			 struct tw_look *look)
{
	const struct tw_level *level;

	look->frame = tw_frame(ring, now);
	look->limit = now;
	look->now = now;
	look->list = ring->front;
	if (!tw_lists_empty(&ring->lists, look->list))
		return true;
	if (ring->next > now)
		return false;

	level = &ring->level[ring->next_level];
	look->list = level->first + level->at;
	look->limit = ring->next_level ? 0 : look->frame;

	return true;
}

/*
 * Where the touch word of a list's last token is, if it has one; those of the
 * tokens that come soon are fetched.
 */
static inline u64 *tw_look_stamp(const struct tw_ring *ring,
				 const struct tw_look *look,
				 const struct tw_token *token, u32 index)
{
	u32 ahead;

	if (!tw_ring_has_words(ring))
		return NULL;
	ahead = tw_lists_ahead(&ring->lists, look->list);
	if (ahead != TW_NIL)
		prefetchw(tw_words_at(&ring->words, ahead));

	return tw_stamp_of(ring, token, index);
}

/* Takes the last entry off the list. Returns whether there are more. */
static inline bool tw_look_pop(struct tw_ring *ring, const struct tw_look *look)
{
	if (!tw_lists_pop(&ring->lists, look->list))
		return true;
	tw_list_emptied(ring, look->list);

	return false;
}

/* Files the list's last entry again. Returns whether there are more. */
static bool tw_look_refile(struct tw_ring *ring, const struct tw_look *look,
			   u32 index, u64 due)
{
	bool more = tw_look_pop(ring, look);

	tw_file(ring, index, due, look->frame);
	ring->refiled++;

	return more;
}

/*
 * Whether a due token, the list's last, was not to be delivered after all, and
 * there may be another in its place.
 */
static bool tw_look_settle(struct tw_ring *ring, const struct tw_look *look,
			   u32 index)
{
	return tw_ring_has_deliveries(ring) &&
	       tw_delivery_settle(ring, index, look->now);
}

/*
 * Sees to it that the word of the list's last token knows all that there is to
 * know. Returns whether it still is the last.
 */
static bool tw_look_prepare(struct tw_ring *ring, const struct tw_look *look,
			    struct tw_token *token, u32 index)
{
	u64 *stamp = tw_look_stamp(ring, look, token, index);

	if (stamp)
		tw_stamp_apply(ring, token, stamp, look->now);

	return tw_word_due(READ_ONCE(token->word)) > look->limit ||
	       !tw_look_settle(ring, look, index);
}

/**
 * tw_ring_find_due() - find the earliest expired token and leave it there
 * @ring: the ring, locked
 * @now: the tick that the hand is on
 * @work: how many tokens may still be filed again on the way; counted down
 *
 * Return: its index, or TW_NIL: then none is due, unless @work has run out.
 */
u32 tw_ring_find_due(struct tw_ring *ring, u64 now, unsigned int *work)
{
	struct tw_look look;

	lockdep_assert_held(&ring->lock);
	for (; *work && tw_ring_look(ring, now, &look); --*work) {
		u32 index = tw_lists_last(&ring->lists, look.list);
		struct tw_token *token = tw_arena_at(&ring->tokens, index);
		u64 due;

		if (ring->rich && !tw_look_prepare(ring, &look, token, index))
			continue;
		due = tw_word_due(READ_ONCE(token->word));
		if (due <= look.limit)
			return index;
		tw_look_refile(ring, &look, index, due);
	}

	return TW_NIL;
}

/*
 * What tw_ring_take() does with one list. @words, @deliveries: the ring may have
 * them.
 */
static __always_inline unsigned int
tw_look_take(struct tw_ring *ring, const struct tw_look *look,
	     unsigned int *work, u32 *batch, unsigned int max,
	     const bool words, const bool deliveries)
{
	unsigned int n = 0;
	bool more = true;

	for (; more && n < max && *work; --*work) {
		u32 index = tw_lists_last(&ring->lists, look->list);
		struct tw_token *token = tw_arena_at(&ring->tokens, index);
		u64 *stamp = words ? tw_look_stamp(ring, look, token, index) :
				     NULL;
		u64 seen = stamp ? tw_stamp_apply(ring, token, stamp,
						  look->now) : 0;
		u64 word = READ_ONCE(token->word);
		u64 due = tw_word_due(word);

		if (due > look->limit) {
			more = tw_look_refile(ring, look, index, due);
			continue;
		}
		if (deliveries && tw_delivery_settle(ring, index, look->now)) {
			more = !tw_lists_empty(&ring->lists, look->list);
			continue;
		}
		/* Not if it was touched meanwhile: then look again. With a
		 * touch word, that decides: under the lock the other cannot
		 * have changed.
		 */
		if (stamp && !try_cmpxchg64(stamp, &seen, 0))
			continue;
		if (!try_cmpxchg64(&token->word, &word,
				   tw_word(due, TW_TAKEN, word)))
			continue;
		if (words && !stamp)
			tw_stamp_set(ring, index, 0);
		more = tw_look_pop(ring, look);
		if (deliveries)
			tw_delivery_taken(ring, token);
		else
			tw_unname(ring, token);
		batch[n++] = index;
	}

	return n;
}

/* Rings without either do not pay for it. */
static __always_inline unsigned int
tw_ring_take_list(struct tw_ring *ring, const struct tw_look *look,
		  unsigned int *work, u32 *batch, unsigned int max)
{
	if (!ring->rich)
		return tw_look_take(ring, look, work, batch, max, false, false);
	if (!tw_ring_has_deliveries(ring))
		return tw_look_take(ring, look, work, batch, max, true, false);

	return tw_look_take(ring, look, work, batch, max, true, true);
}

/**
 * tw_ring_take() - take expired tokens, in the order of their due ticks
 * @ring: the ring, locked
 * @now: the tick that the hand is on
 * @work: how many tokens may still be looked at; counted down
 * @batch: where their indices go
 * @max: how many at most
 *
 * They are the caller's alone then, until each is given to tw_ring_delivered()
 * or tw_ring_put_back().
 *
 * Return: how many. If fewer than @max and @work is left, no more are due.
 */
unsigned int tw_ring_take(struct tw_ring *ring, u64 now, unsigned int *work,
			  u32 *batch, unsigned int max)
{
	struct tw_look look;
	unsigned int n = 0;

	lockdep_assert_held(&ring->lock);
	while (n < max && *work && tw_ring_look(ring, now, &look))
		n += tw_ring_take_list(ring, &look, work, batch + n, max - n);
	ring->pending -= n;

	return n;
}

/**
 * tw_ring_put_back() - tokens that could not be delivered are pending again
 * @ring: the ring, locked
 * @batch: tokens that the caller took, in that order
 * @n: how many
 *
 * They come first at the next look, in their order. One whose id has been
 * registered anew meanwhile goes on without it, as does one for whose id the
 * table has no memory.
 */
void tw_ring_put_back(struct tw_ring *ring, const u32 *batch, unsigned int n)
{
	lockdep_assert_held(&ring->lock);
	ring->put_back += n;
	ring->pending += n;
	while (n--) {
		struct tw_token *token = tw_arena_at(&ring->tokens, batch[n]);
		u64 word = READ_ONCE(token->word);

		if (tw_ring_has_deliveries(ring))
			tw_delivery_undo(ring, token);
		else
			tw_name(ring, token);
		tw_stamp_set(ring, batch[n],
			     tw_stamp_none(tw_generation(token, word)));
		tw_lists_add(&ring->lists, ring->front, batch[n]);
		/* Pairs with the acquire in tw_found_armed(). */
		smp_store_release(&token->word,
				  tw_word(tw_word_due(word), TW_ARMED, word));
	}
}

/* @now, @taker: for tw_delivery_done(), @now NULL on rings without deliveries. */
static __always_inline unsigned int
tw_delivered(struct tw_ring *ring, const u32 *batch, unsigned int n, u64 *due,
	     const struct tw_now *now, struct tw_taker *taker)
{
	unsigned int i;

	lockdep_assert_held(&ring->lock);
	*due = tw_ring_due_tick(ring, batch[0]);
	for (i = 0; i < n; i++) {
		struct tw_token *token = tw_arena_at(&ring->tokens, batch[i]);

		if (tw_word_due(READ_ONCE(token->word)) != *due)
			break;
		if (now)
			tw_delivery_done(ring, token, batch[i], now, taker);
		else
			tw_free(ring, token, batch[i]);
	}
	ring->delivered += i;

	return i;
}

/**
 * tw_ring_delivered() - tokens have been delivered: their life is over
 * @ring: the ring, locked, without deliveries to look after
 * @batch: tokens that the caller took
 * @n: how many, 1 and more
 * @due: on which tick the first was due
 *
 * Ends those that were due on the same tick as the first, up to one that was not.
 *
 * Return: how many.
 */
unsigned int tw_ring_delivered(struct tw_ring *ring, const u32 *batch,
			       unsigned int n, u64 *due)
{
	return tw_delivered(ring, batch, n, due, NULL, NULL);
}

/**
 * tw_ring_delivered_to() - tokens have been delivered, and may go on
 * @ring: the ring, locked, with deliveries to look after
 * @batch: tokens that the caller took
 * @n: how many, 1 and more
 * @due: on which tick the first was due
 * @now: the time
 * @taker: who has got them; not NULL on a ring with leases
 *
 * As tw_ring_delivered(), but see tw_delivery_done().
 *
 * Return: how many.
 */
unsigned int tw_ring_delivered_to(struct tw_ring *ring, const u32 *batch,
				  unsigned int n, u64 *due,
				  const struct tw_now *now,
				  struct tw_taker *taker)
{
	return tw_delivered(ring, batch, n, due, now, taker);
}
