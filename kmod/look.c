// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Look: going through what is due, in the order of ticks.
 *
 * A look takes the list that comes first, see levels.c, and its last entry, which
 * is the cheapest to take off. If the token's word says that it is due later, as
 * of one that was touched, the look files it again: that is all the work that a
 * touch costs, once per timeout. If the token is due, it is found, or taken.
 *
 * What cannot be done in one go is left for the next look, so that the lock is
 * held for a bounded number of tokens. All of it is under the ring's lock.
 */
#include <linux/lockdep.h>
#include <linux/minmax.h>

#include "look.h"

/*
 * Raises a token to where its touch word says, and returns what the word says then. A word
 * that makes no sense becomes a touch of now, or it would be one for ever. A stamp that adds
 * nothing is cleared, or it would grow so old that it looks like one of the future. A stamp
 * that is ahead of now stays, because it may add something when now gets there. A touch that
 * comes meanwhile is left for the next look: the returned value is then no longer the word,
 * and no take succeeds with it. A program that touches without pause keeps no look from its
 * end.
 */
static u64 tw_look_apply_word(struct tw_ring *ring, struct tw_token *token,
			      u64 *touch_word, u64 now)
{
	u64 word = READ_ONCE(token->word);
	u32 generation = tw_generation(token, word);
	const u64 read = READ_ONCE(*touch_word);
	u64 seen = read, said = read;
	u64 timeout, due;

	if (read == tw_stamp_none(generation))
		return read;
	timeout = (token->timeout - 1) / ring->tick + 1;
	if (!tw_stamp_sane(read, generation, now, ring->max_ahead))
		said = tw_stamp(generation, now);
	due = min(tw_stamp_due(said, now, timeout), ring->max_due);
	if (due > tw_word_due(word))
		WRITE_ONCE(token->word, tw_word_with_due(word, due));
	else if (!tw_stamp_is_ahead(said, now))
		said = tw_stamp_none(generation);

	return said == read || try_cmpxchg64(touch_word, &seen, said) ?
	       said : read;
}

/* Raises a token, in any state, to where its touch word says, and reads its word again. */
void tw_look_apply_stamp(struct tw_ring *ring, struct tw_found *found, u64 now)
{
	u64 *touch_word;

	lockdep_assert_held(&ring->lock);
	if (tw_word_state(found->word) != TW_ARMED)
		return;
	touch_word = tw_ring_touch_word(ring, found->token,
					tw_ring_index(ring, found->token));
	if (!touch_word)
		return;
	tw_look_apply_word(ring, found->token, touch_word, now);
	found->word = READ_ONCE(found->token->word);
}

/*
 * Returns how many tokens can be taken. On a ring with leases there must be room for as many
 * deliveries. Leases that are over end first.
 */
static u32 tw_look_room(struct tw_ring *ring, u64 now, unsigned int *work)
{
	lockdep_assert_held(&ring->lock);
	if (!ring->delivery.lease)
		return U32_MAX;
	tw_delivery_end_leases(ring, now, work);

	return tw_held_room(&ring->delivery.held);
}

/* Files the last entry of a list again, which is on another list then. */
static void tw_look_refile(struct tw_ring *ring,
			   const struct tw_earliest *earliest, u64 now,
			   u32 index, struct tw_token *token, u64 due)
{
	lockdep_assert_held(&ring->lock);
	tw_levels_pop(&ring->levels, earliest->list);
	if (earliest->back && due <= now)
		tw_levels_file_back(&ring->levels, index, token, due,
				    earliest->origin);
	else
		tw_levels_file(&ring->levels, index, token, due,
			       earliest->origin);
	ring->refiled++;
}

/*
 * Finds the earliest expired token and leaves it there. @work: how many tokens may still be
 * filed again on the way; counted down. Returns its index, or TW_NIL: then none can be taken,
 * unless @work has run out.
 */
u32 tw_look_find_due(struct tw_ring *ring, u64 now, unsigned int *work)
{
	struct tw_earliest earliest;

	lockdep_assert_held(&ring->lock);
	if (!tw_look_room(ring, now, work))
		return TW_NIL;
	for (; *work && tw_levels_earliest(&ring->levels, now, &earliest);
	     --*work) {
		u32 index = tw_ring_last(ring,
					 &ring->levels.lists.list[earliest.list]);
		struct tw_token *token = tw_arena_at(&ring->tokens, index);
		u64 *touch_word = tw_ring_touch_word(ring, token, index);
		u64 due;

		if (touch_word)
			tw_look_apply_word(ring, token, touch_word, now);
		due = tw_word_due(READ_ONCE(token->word));
		if (due <= earliest.limit)
			return index;
		tw_look_refile(ring, &earliest, now, index, token, due);
	}

	return TW_NIL;
}

/*
 * Does for one list what tw_look_take() does. @extras: the ring has touch words or deliveries
 * to look after. The function is compiled for each of both: without extras a full read takes
 * 149 instead of 159 instructions an event (selftests/counts.c, gcc 12).
 */
static __always_inline unsigned int
tw_look_take_list(struct tw_ring *ring, const struct tw_earliest *earliest,
		  u64 now, unsigned int *work, struct tw_taken *batch,
		  unsigned int max, const bool extras)
{
	const bool words = extras && tw_ring_has_words(ring);
	const bool deliveries = extras && tw_ring_has_deliveries(ring);
	const u32 list = earliest->list;
	const struct tw_list *from = &ring->levels.lists.list[list];
	const unsigned int tries = min(*work, max);
	struct tw_taken *to = batch;
	unsigned int left;

	for (left = tries; from->fill && left; left--) {
		struct tw_token *token;
		u64 *touch_word;
		u64 seen, word, due;
		u32 index;

		index = tw_ring_last(ring, from);
		token = tw_arena_at(&ring->tokens, index);
		touch_word = words ? tw_ring_touch_word(ring, token, index) :
				     NULL;
		seen = touch_word ? tw_look_apply_word(ring, token, touch_word,
						       now) : 0;
		word = READ_ONCE(token->word);
		due = tw_word_due(word);
		if (due > earliest->limit) {
			tw_look_refile(ring, earliest, now, index, token, due);
			continue;
		}
		/* A token that was touched meanwhile is looked at again. A
		 * touch word decides where there is one: under the lock the
		 * token's own word cannot have changed then.
		 */
		if (touch_word && !try_cmpxchg64(touch_word, &seen, 0))
			continue;
		if (!try_cmpxchg64(&token->word, &word,
				   tw_word(due, TW_TAKEN, word)))
			continue;
		if (words && !touch_word)
			tw_stamp_set(ring, index, 0);
		tw_levels_pop(&ring->levels, list);
		if (deliveries)
			tw_delivery_begin(ring, token, index, now);
		else
			tw_ring_unname(ring, token);
		*to++ = (struct tw_taken) { token, index };
	}
	*work -= tries - left;

	return to - batch;
}

/*
 * Takes at most @max expired tokens, in the order of their due ticks, into @batch. @work: how
 * many tokens may still be looked at; counted down. Taken tokens are the caller's alone, until
 * it has given each to tw_look_delivered() or tw_look_put_back().
 *
 * Returns how many. If fewer than @max, and there is @work left, no more are due, or no
 * more can be out.
 */
unsigned int tw_look_take(struct tw_ring *ring, u64 now, unsigned int *work,
			  struct tw_taken *batch, unsigned int max)
{
	struct tw_earliest earliest;
	unsigned int n = 0;

	lockdep_assert_held(&ring->lock);
	max = min(max, tw_look_room(ring, now, work));
	while (n < max && *work &&
	       tw_levels_earliest(&ring->levels, now, &earliest))
		n += ring->has_extras ?
		     tw_look_take_list(ring, &earliest, now, work, batch + n,
				       max - n, true) :
		     tw_look_take_list(ring, &earliest, now, work, batch + n,
				       max - n, false);
	ring->pending -= n;

	return n;
}

/*
 * Tokens that could not be delivered are pending again. Each is filed by its due tick, which
 * has passed, so that it comes in order. A token whose id has been registered anew meanwhile
 * goes on without the id, and so does a token for whose id the table has no memory.
 */
void tw_look_put_back(struct tw_ring *ring, const struct tw_taken *batch,
		      unsigned int n)
{
	unsigned int i;

	lockdep_assert_held(&ring->lock);
	ring->put_back += n;
	ring->pending += n;
	for (i = 0; i < n; i++) {
		struct tw_token *token = batch[i].token;
		u64 word = READ_ONCE(token->word);
		u64 due = tw_word_due(word);

		if (tw_ring_has_deliveries(ring))
			tw_delivery_undo(ring, token);
		else
			tw_ring_name(ring, token);
		tw_stamp_set(ring, batch[i].index,
			     tw_stamp_none(tw_generation(token, word)));
		tw_levels_file_back(&ring->levels, batch[i].index, token, due,
				    tw_levels_origin(&ring->levels, due));
		/* Pairs with the acquire in tw_found_armed(). */
		smp_store_release(&token->word, tw_word(due, TW_ARMED, word));
	}
}

/* Tokens that were due on tick @due go on, up to one that was not. Returns how many. */
static unsigned int
tw_look_go_on(struct tw_ring *ring, const struct tw_taken *batch, unsigned int n,
	      u64 due, const struct tw_now *now, struct tw_holder *holder)
{
	unsigned int i;

	for (i = 0; i < n && tw_token_due(batch[i].token) == due; i++)
		tw_delivery_done(ring, batch[i].token, batch[i].index, now, holder);

	return i;
}

/*
 * Tokens that the caller took have been delivered to @holder: their life is over, or goes on,
 * as tw_delivery_done() says. Deals with tokens that were due on the first one's tick, which
 * is told by @due, up to one that was not. Returns how many; of @n there is at least one.
 */
unsigned int tw_look_delivered(struct tw_ring *ring, const struct tw_taken *batch,
			       unsigned int n, u64 *due,
			       const struct tw_now *now,
			       struct tw_holder *holder)
{
	unsigned int done;

	lockdep_assert_held(&ring->lock);
	*due = tw_token_due(batch->token);
	done = tw_ring_has_deliveries(ring) ?
	       tw_look_go_on(ring, batch, n, *due, now, holder) :
	       tw_ring_free_due(ring, batch, n, *due);
	ring->delivered += done;

	return done;
}
