// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Ring: a wheel's tokens, and how one is registered, touched, moved and cancelled.
 *
 * A touch is in ring.h, because a wheel does nothing more often. The functions here change
 * tokens under the ring's lock. Other files add what happens to a token that expires (look.c)
 * and that has been read (delivery.c).
 */
#include <linux/bug.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/string.h>
#include <linux/timewheel.h>

#include "ring.h"

/* This part sets rings up. */

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
	if (setup->periods) {
		ring->delivery.repeat_at = size;
		size += sizeof(struct tw_repeat);
	}

	return tw_arena_init(&ring->tokens, size, setup->max_tokens);
}

/*
 * Makes an empty ring. The caller has checked the ranges. May sleep. Returns 0, or -ENOMEM
 * with nothing left behind.
 */
int tw_ring_init(struct tw_ring *ring, const struct tw_ring_setup *setup)
{
	int err;

	memset(ring, 0, sizeof(*ring));
	spin_lock_init(&ring->lock);
	ring->tick = setup->tick;
	ring->max_due = min(TW_MAX_TICK, (u64)S64_MAX / setup->tick);
	ring->max_ahead = tw_words_max_ahead(setup->tick);
	ring->slots = setup->slots;
	ring->max_tokens = setup->max_tokens;
	ring->room = setup->max_tokens;
	ring->first_generation = setup->first_generation;
	ring->has_extras = setup->words || setup->lease || setup->periods;
	ring->delivery.lease = setup->lease;

	err = tw_ring_init_tokens(ring, setup);
	if (err)
		return err;
	if (setup->words)
		err = tw_words_init(&ring->words, setup->max_tokens);
	if (err)
		goto free_tokens;
	err = tw_levels_init(&ring->levels, &ring->tokens, setup->slots,
			     setup->max_tokens);
	if (err)
		goto free_words;
	if (setup->lease)
		err = tw_held_init(&ring->delivery.held, setup->max_held);
	if (!err && setup->ids)
		err = tw_ids_init(&ring->ids, setup->max_tokens);
	if (err)
		goto free_held;
	ring->has_ids = setup->ids;

	return 0;

free_held:
	tw_held_destroy(&ring->delivery.held);
	tw_levels_destroy(&ring->levels);
free_words:
	tw_blocks_destroy(&ring->words);
free_tokens:
	tw_blocks_destroy(&ring->tokens.blocks);
	return err;
}

/*
 * Frees everything of a ring that nobody uses any more. What may be a few pages in one piece
 * comes before what is many pages: see tw_directory_alloc(). May sleep.
 */
void tw_ring_destroy(struct tw_ring *ring)
{
	tw_held_destroy(&ring->delivery.held);
	tw_levels_destroy(&ring->levels);
	if (ring->has_ids)
		tw_ids_destroy(&ring->ids);
	tw_blocks_destroy(&ring->words);
	tw_blocks_destroy(&ring->tokens.blocks);
}

/* Whether so many tokens have touch words, if there are words. */
static bool tw_ring_has_words_for(const struct tw_ring *ring, u32 tokens)
{
	return !tw_ring_has_words(ring) ||
	       tokens <= tw_words_capacity(&ring->words);
}

/*
 * Takes memory, with no lock held, for the registration that met -EAGAIN. Others may use it up
 * first: register again until it does not say -EAGAIN. May sleep. Returns 0 or -ENOMEM.
 */
int tw_ring_grow(struct tw_ring *ring)
{
	bool token, words, places;
	int err = 0;
	u32 used;

	spin_lock(&ring->lock);
	used = ring->tokens.used;
	token = used < tw_arena_capacity(&ring->tokens);
	words = tw_ring_has_words_for(ring, used + 1);
	places = used < tw_lists_room(&ring->levels.lists);
	spin_unlock(&ring->lock);

	if (!token)
		err = tw_blocks_grow(&ring->tokens.blocks, &ring->lock);
	if (!err && !words)
		err = tw_blocks_grow(&ring->words, &ring->lock);
	if (!err && !places)
		err = tw_blocks_grow(&ring->levels.lists.chunks, &ring->lock);

	return err;
}

/* Returns the bytes that the ring holds, with the lock or without. */
size_t tw_ring_bytes(struct tw_ring *ring)
{
	return sizeof(*ring) + tw_levels_bytes(&ring->levels) +
	       tw_blocks_bytes(&ring->tokens.blocks) +
	       tw_blocks_bytes(&ring->words) +
	       tw_held_bytes(&ring->delivery.held) +
	       (ring->has_ids ? tw_ids_bytes(&ring->ids) : 0);
}

/* Fills in all figures of tokens. The caller holds the lock. */
void tw_ring_info(const struct tw_ring *ring, struct timewheel_info *info)
{
	lockdep_assert_held(&ring->lock);
	info->slots = ring->slots;
	info->tick = ring->tick;
	info->max_tokens = ring->max_tokens;
	info->pending = ring->pending;
	info->taken = ring->tokens.used - ring->pending -
		      ring->delivery.held.count;
	info->registered = ring->registered;
	info->cancelled = ring->cancelled;
	info->moved = ring->moved;
	info->delivered = ring->delivered;
	info->put_back = ring->put_back;
	info->refiled = ring->refiled;
}

/* This part looks tokens up, with or without the lock. */

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

/*
 * Finds the next token by its place in memory, from index *@next on, which is moved beyond
 * what was looked at. @work: how many places may still be looked at; counted down. A token
 * keeps its index as long as it lives. A caller that goes through all tokens meets each
 * exactly once, however often it lets go of the lock.
 *
 * Returns the index of a token that is not FREE, and its word; or TW_NIL: then there is none
 * any more, unless @work has run out.
 */
u32 tw_ring_scan(const struct tw_ring *ring, u32 *next, unsigned int *work,
		 u64 *word)
{
	lockdep_assert_held(&ring->lock);
	while (*work && *next < ring->tokens.fresh) {
		u32 index = array_index_nospec(*next, ring->tokens.fresh);
		const struct tw_token *token =
			tw_arena_at(&ring->tokens, index);

		++*next;
		--*work;
		*word = READ_ONCE(token->word);
		if (tw_word_state(*word) != TW_FREE)
			return index;
	}

	return TW_NIL;
}

/* This part changes tokens, under the lock. */

/* Ends the id that a token has: see tw_ring_unname(). */
void tw_ring_end_name(struct tw_ring *ring, struct tw_token *token)
{
	lockdep_assert_held(&ring->lock);
	token->named = false;
	tw_ids_remove(&ring->ids, (struct tw_id_token *)token);
}

/* Enters the id: see tw_ring_name(). */
int tw_ring_begin_name(struct tw_ring *ring, struct tw_token *token)
{
	int err;

	lockdep_assert_held(&ring->lock);
	err = tw_ids_insert(&ring->ids, (struct tw_id_token *)token);
	token->named = !err;

	return err;
}

/* Fetches tokens of a list that come soon, with their touch words. */
void tw_ring_fetch(const struct tw_ring *ring, const struct tw_list *list)
{
	const u32 *ahead = tw_list_ahead(&ring->levels.lists, list);
	unsigned int i;

	for (i = 0; ahead && i < TW_AHEAD; i++)
		tw_arena_fetch(&ring->tokens,
			       (unsigned long)tw_ring_token(ring, ahead[i]));
	for (i = 0; ahead && tw_ring_has_words(ring) && i < TW_AHEAD; i++)
		prefetchw(tw_words_at(&ring->words, ahead[i]));
}

/* Ends a token's life; it is not ARMED, not filed and has no id. */
void tw_ring_free(struct tw_ring *ring, struct tw_token *token, u32 index)
{
	lockdep_assert_held(&ring->lock);
	WRITE_ONCE(token->word, tw_ring_next_life(token));
	tw_ring_put(ring, index);
}

/*
 * Ends the lives of the first tokens of a batch that are due on a tick, and writes
 * their indices to @entry. Returns how many.
 */
static inline unsigned int tw_ring_end_lives(const struct tw_taken *batch,
					     unsigned int n, u64 due, u32 *entry)
{
	unsigned int i;

	for (i = 0; i < n && tw_token_due(batch[i].token) == due; i++) {
		struct tw_token *token = batch[i].token;

		WRITE_ONCE(token->word, tw_ring_next_life(token));
		entry[i] = batch[i].index;
	}

	return i;
}

/*
 * Ends the lives of the first of @n tokens that are due on tick @due, as tw_ring_free() does.
 * Many together are cheap: the chunk in which they are entered is found only once. Returns how
 * many.
 */
unsigned int tw_ring_free_due(struct tw_ring *ring, const struct tw_taken *batch,
			      unsigned int n, u64 due)
{
	struct tw_lists *lists = &ring->levels.lists;
	unsigned int done = 0;

	lockdep_assert_held(&ring->lock);
	while (done < n && tw_token_due(batch[done].token) == due) {
		struct tw_list *free = tw_lists_open(lists, ring->levels.free);
		unsigned int some = min(n - done, TW_CHUNK_ENTRIES - free->fill);

		some = tw_ring_end_lives(batch + done, some, due,
					 &free->chunk->entry[free->fill]);
		free->fill += some;
		done += some;
	}
	ring->tokens.used -= done;

	return done;
}

/*
 * Counts anew how many tokens have all that a registration needs: a token, its touch word, and
 * a place wherever it may come to be filed, now and later. Returns whether another can be
 * registered, as tw_ring_register() does.
 */
int tw_ring_make_ready(struct tw_ring *ring, u64 id)
{
	lockdep_assert_held(&ring->lock);
	if (ring->tokens.used < ring->room) {
		u32 ready = min(tw_arena_capacity(&ring->tokens),
				tw_lists_room(&ring->levels.lists));

		if (tw_ring_has_words(ring))
			ready = min(ready, tw_words_capacity(&ring->words));
		ring->ready = min(ready, ring->room);
		return ring->tokens.used < ring->ready ? 0 : -EAGAIN;
	}
	if (ring->has_ids && tw_ids_find(&ring->ids, id))
		return -EEXIST;

	return ring->room ? -ENOSPC : -ESHUTDOWN;
}

/* Begins all else that a token has, with its life. */
void tw_ring_begin_extras(struct tw_ring *ring, struct tw_token *token,
			  u32 index, u32 generation)
{
	const struct tw_deliveries *delivery = &ring->delivery;

	tw_stamp_set(ring, index, tw_stamp_none(generation));
	if (delivery->at)
		*tw_delivery_of(ring, token) = (struct tw_delivery) {
			.number = delivery->lease ? TW_FIRST_DELIVERY - 1 : 0,
		};
	if (delivery->repeat_at)
		tw_repeat_at(ring, token)->period = 0;
}

/* Registers a new token: see __tw_ring_register(). */
int tw_ring_register(struct tw_ring *ring, const struct tw_now *now, u64 id,
		     u64 cookie, const struct tw_deadline *deadline, u64 *handle)
{
	return __tw_ring_register(ring, now, id, cookie, deadline, handle);
}

/* Moves all else that a token has. */
static void tw_ring_moved(struct tw_ring *ring, const struct tw_found *found,
			  u32 index, const struct tw_now *now,
			  const struct tw_deadline *deadline)
{
	u32 generation = tw_generation(found->token, found->word);
	struct tw_repeat *repeat = tw_repeat_of(ring, found->token);

	tw_stamp_set(ring, index, tw_stamp_none(generation));
	if (!repeat)
		return;
	tw_repeat_start_over(repeat, tw_ring_base(ring, now, deadline));
	tw_delivery_of(ring, found->token)->attempts = 0;
}

/*
 * Makes a token due at another time, earlier or later, but no earlier than @now. The token's
 * timeout stays when @deadline has none, as it must if the token is periodic. Afterwards
 * @found has the word from before.
 */
void tw_ring_move(struct tw_ring *ring, struct tw_found *found,
		  const struct tw_now *now, const struct tw_deadline *deadline)
{
	u32 index = tw_ring_index(ring, found->token);

	lockdep_assert_held(&ring->lock);
	if (deadline->timeout)
		WRITE_ONCE(found->token->timeout, deadline->timeout);
	tw_found_set(found, deadline->due, TW_ARMED);
	if (ring->has_extras)
		tw_ring_moved(ring, found, index, now, deadline);
	tw_levels_unfile(&ring->levels, found->token);
	tw_levels_file(&ring->levels, index, found->token, deadline->due,
		       tw_levels_origin(&ring->levels, now->tick));
	ring->moved++;
}
