// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Delivery: a token's life after it has been read, on a ring with leases or
 * periods. Everything here is under the ring's lock.
 */
#include <linux/bug.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/timewheel.h>

#include "delivery.h"

/*
 * Files a token. No deadline is beyond the last tick, but a clock may get there: a token that
 * is due at once then has a due tick before now.
 */
static void tw_delivery_file(struct tw_ring *ring, u32 index, u64 due, u64 now)
{
	lockdep_assert_held(&ring->lock);
	tw_levels_file(&ring->levels, index, tw_ring_token(ring, index), due,
		       min(due, tw_levels_origin(&ring->levels, now)));
}

/* Makes a token ARMED that is filed, or will be filed before the lock is let go. */
static void tw_delivery_arm(struct tw_ring *ring, struct tw_token *token,
			    u32 index, u64 due)
{
	u64 word = READ_ONCE(token->word);

	tw_stamp_set(ring, index, tw_stamp_none(tw_generation(token, word)));
	/* Pairs with the acquire in tw_found_armed(). */
	smp_store_release(&token->word, tw_word(due, TW_ARMED, word));
	ring->pending++;
}

/* No reader holds a token any more. Returns the token's index. */
static u32 tw_delivery_let_go(struct tw_ring *ring, const struct tw_token *token)
{
	struct tw_held *held = &ring->delivery.held;
	u32 index = held->place[token->place].token;

	tw_held_end(held, token->place);

	return index;
}

/* Makes a token pending again whose delivery was in vain, and which nobody holds any more. */
static void tw_delivery_again(struct tw_ring *ring, u32 index,
			      const struct tw_now *now, u64 due)
{
	lockdep_assert_held(&ring->lock);
	tw_delivery_arm(ring, tw_ring_token(ring, index), index, due);
	tw_delivery_file(ring, index, due, now->tick);
}

/* Lets a periodic token, which is not filed, go on. */
static void tw_delivery_next(struct tw_ring *ring, struct tw_token *token,
			     u32 index, const struct tw_now *now)
{
	struct tw_repeat *repeat = tw_repeat_at(ring, token);
	u64 due;

	tw_repeat_start_over(repeat, min_t(u64, repeat->base + repeat->period,
					   S64_MAX));
	tw_delivery_of(ring, token)->attempts = 0;

	/* A deadline that has passed within the hand's tick waits for the next tick, as
	 * if it had been registered in time.
	 */
	due = repeat->base / ring->tick + !!(repeat->base % ring->tick);
	tw_delivery_again(ring, index, now, min(max(due, now->tick), ring->max_due));
}

/* Ends a token that is neither filed nor ARMED. */
static void tw_delivery_end(struct tw_ring *ring, struct tw_token *token,
			    u32 index)
{
	lockdep_assert_held(&ring->lock);
	tw_stamp_set(ring, index, 0);
	tw_ring_unname(ring, token);
	tw_ring_free(ring, token, index);
}

/* The functions below are for look.c. */

/*
 * Makes tokens pending whose leases are over, at most @work, which is counted down. Each is
 * due on the tick on which its lease has ended, and filed so that it comes in this order.
 */
void tw_delivery_end_leases(struct tw_ring *ring, u64 now, unsigned int *work)
{
	struct tw_held *held = &ring->delivery.held;

	lockdep_assert_held(&ring->lock);
	for (; *work && held->count && tw_held_first(held)->end <= now; --*work) {
		u64 due = tw_held_first(held)->end;
		u32 index = tw_held_first(held)->token;
		struct tw_token *token = tw_ring_token(ring, index);

		tw_delivery_let_go(ring, token);
		tw_delivery_arm(ring, token, index, due);
		tw_levels_file_back(&ring->levels, index, token, due,
				    tw_levels_origin(&ring->levels, due));
		ring->delivery.lapsed++;
	}
}

/*
 * Counts the periods that a due token has missed. The token's event is for the last
 * period; all periods before the last one are missed.
 */
static void tw_delivery_count_missed(struct tw_ring *ring,
				     struct tw_repeat *repeat, u64 now)
{
	u64 periods;

	if (now < repeat->base)
		return;
	periods = (now - repeat->base) / repeat->period;
	repeat->base += periods * repeat->period;
	repeat->missed = min(repeat->missed + periods, (u64)U32_MAX);
	ring->delivery.missed += periods;
}

/*
 * Begins the delivery of a token that has been taken. On a ring with leases there is room for
 * it.
 */
void tw_delivery_begin(struct tw_ring *ring, struct tw_token *token, u32 index,
		       u64 now)
{
	struct tw_delivery *delivery = tw_delivery_of(ring, token);
	struct tw_repeat *repeat = tw_repeat_of(ring, token);

	lockdep_assert_held(&ring->lock);
	if (repeat && !delivery->attempts)
		tw_delivery_count_missed(ring, repeat, now * ring->tick);
	if (!ring->delivery.lease)
		return;
	delivery->attempts += delivery->attempts < U32_MAX;
	delivery->number = delivery->number + 1 ?: 1;	/* 0 means none */
	token->place = tw_held_begin(&ring->delivery.held, index);
}

/*
 * Ends the delivery of a token that could not be delivered and will be put back. No reader has
 * been told of the delivery, and its number is used again.
 */
void tw_delivery_undo(struct tw_ring *ring, struct tw_token *token)
{
	struct tw_delivery *delivery = tw_delivery_of(ring, token);

	lockdep_assert_held(&ring->lock);
	if (!ring->delivery.lease)
		return;
	tw_held_undo(&ring->delivery.held, token->place);
	delivery->attempts--;
	delivery->number--;
}

/* Deals with a TAKEN token that has been delivered to @holder. */
void tw_delivery_done(struct tw_ring *ring, struct tw_token *token, u32 index,
		      const struct tw_now *now, struct tw_holder *holder)
{
	u64 word = READ_ONCE(token->word);
	u64 end;

	lockdep_assert_held(&ring->lock);
	if (!ring->delivery.lease) {
		if (tw_repeat_of(ring, token))
			tw_delivery_next(ring, token, index, now);
		else
			tw_delivery_end(ring, token, index);
		return;
	}

	if (tw_ring_due(ring, now, now->ns + ring->delivery.lease, &end))
		end = ring->max_due;
	WRITE_ONCE(token->word, tw_word(tw_word_due(word), TW_HELD, word));
	tw_held_hold(&ring->delivery.held, token->place, holder, end);
}

/* The functions below are for the operations. */

/*
 * Makes a token periodic that has just been registered. @first: its first deadline in ns.
 * Both are at most S64_MAX.
 */
void tw_delivery_repeat(struct tw_ring *ring, u32 index, u64 first, u64 period)
{
	struct tw_repeat *repeat = tw_repeat_at(ring, tw_ring_token(ring, index));

	lockdep_assert_held(&ring->lock);
	tw_repeat_start_over(repeat, first);
	repeat->period = period;
}

/*
 * Finds a token that is pending or held. Returns 0; -ENOENT if no token has this id; -ESTALE
 * if none has this handle, or it is being copied; -EINVAL if the ring has no ids.
 */
int tw_delivery_find(struct tw_ring *ring, struct tw_key key,
		     struct tw_found *found)
{
	struct tw_id_token *named;

	lockdep_assert_held(&ring->lock);
	if (!key.by_handle && !ring->has_ids)
		return -EINVAL;

	if (key.by_handle) {
		found->token = tw_arena_find(&ring->tokens, (u32)key.value);
		if (!found->token)
			return -ESTALE;
	} else {
		named = tw_ids_find(&ring->ids, key.value);
		if (!named)
			return -ENOENT;
		found->token = &named->token;
	}
	found->word = READ_ONCE(found->token->word);
	if (key.by_handle &&
	    tw_generation(found->token, found->word) != key.value >> 32)
		return -ESTALE;

	return tw_word_state(found->word) == TW_ARMED ||
	       tw_word_state(found->word) == TW_HELD ? 0 : -ESTALE;
}

/* Returns 0 if the delivery of this number is out, else -ESTALE. */
int tw_delivery_check(struct tw_ring *ring, const struct tw_found *found, u32 number)
{
	lockdep_assert_held(&ring->lock);

	return tw_word_state(found->word) == TW_HELD &&
	       tw_delivery_of(ring, found->token)->number == number ? 0 : -ESTALE;
}

/* Returns the index of a token that was found. */
u32 tw_delivery_index(const struct tw_ring *ring, const struct tw_found *found)
{
	return tw_word_state(found->word) == TW_HELD ?
	       ring->delivery.held.place[found->token->place].token :
	       tw_ring_index(ring, found->token);
}

/* Returns the tick on which a token is due, or on which its lease ends. */
u64 tw_delivery_due(const struct tw_ring *ring, const struct tw_found *found)
{
	return tw_word_state(found->word) == TW_HELD ?
	       ring->delivery.held.place[found->token->place].end :
	       tw_word_due(found->word);
}

/* Answers a delivery, which is out, and has been dealt with. */
void tw_delivery_ack(struct tw_ring *ring, struct tw_found *found,
		     const struct tw_now *now)
{
	u32 index = tw_delivery_let_go(ring, found->token);

	if (tw_repeat_of(ring, found->token))
		tw_delivery_next(ring, found->token, index, now);
	else
		tw_delivery_end(ring, found->token, index);
	ring->delivery.acked++;
}

/*
 * Answers a delivery, which is out, and has not been dealt with: it is to come again on tick
 * @due.
 */
void tw_delivery_nack(struct tw_ring *ring, struct tw_found *found,
		      const struct tw_now *now, u64 due)
{
	tw_delivery_again(ring, tw_delivery_let_go(ring, found->token), now, due);
	ring->delivery.nacked++;
}

/* Lets the lease of a delivery, which is out, end on another tick. */
void tw_delivery_extend(struct tw_ring *ring, const struct tw_found *found,
			u64 end)
{
	lockdep_assert_held(&ring->lock);
	tw_held_set_end(&ring->delivery.held, found->token->place, end);
}

/*
 * Ends a token that is pending or held. Returns the tick on which it was due, or on
 * which its lease would have ended.
 */
u64 tw_delivery_delete(struct tw_ring *ring, struct tw_found *found)
{
	u64 due = tw_delivery_due(ring, found);
	u32 index;

	lockdep_assert_held(&ring->lock);
	if (tw_word_state(found->word) == TW_ARMED) {
		tw_found_set(found, due, TW_TAKEN);
		due = tw_word_due(found->word);
		index = tw_levels_unfile(&ring->levels, found->token);
		ring->pending--;
	} else {
		index = tw_delivery_let_go(ring, found->token);
	}
	tw_delivery_end(ring, found->token, index);
	ring->delivery.deleted++;

	return due;
}

/*
 * Takes back at most @work tokens that an open file holds which is being released. Returns
 * whether it holds more.
 */
bool tw_delivery_return(struct tw_ring *ring, struct tw_holder *holder,
			unsigned int work, const struct tw_now *now)
{
	u64 due = min(now->tick, ring->max_due);

	lockdep_assert_held(&ring->lock);
	for (; holder->count && work; work--) {
		u32 index = ring->delivery.held.place[holder->first].token;

		tw_delivery_let_go(ring, tw_ring_token(ring, index));
		tw_delivery_again(ring, index, now, due);
		ring->delivery.returned++;
	}

	return holder->count;
}

/* Fills in all figures of deliveries. The caller holds the lock. */
void tw_delivery_info(const struct tw_ring *ring, struct timewheel_info *info)
{
	const struct tw_deliveries *delivery = &ring->delivery;

	lockdep_assert_held(&ring->lock);
	info->lease = delivery->lease;
	info->max_held = delivery->held.max;
	info->held = delivery->held.count;
	info->acked = delivery->acked;
	info->nacked = delivery->nacked;
	info->lapsed = delivery->lapsed;
	info->returned = delivery->returned;
	info->deleted = delivery->deleted;
	info->missed = delivery->missed;
}
