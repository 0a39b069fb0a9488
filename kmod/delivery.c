// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delivery: a token's life after it has been read, on a ring with leases or
 * periods. Everything here is under the ring's lock.
 *
 *	ARMED --take--> TAKEN --delivered--> HELD --ack--> FREE, or ARMED anew
 *	  ^                                   |
 *	  +--nack, lapse, return--------------+--> buried
 *	  +--kick--------------------------------------+
 *
 * Without leases a periodic token goes from TAKEN to ARMED, any other to FREE.
 */
#include <linux/bug.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/timewheel.h>

#include "delivery.h"

/* Whether a token that is not out has been delivered in vain too often. */
static bool tw_delivery_exhausted(const struct tw_ring *ring,
				  const struct tw_token *token)
{
	return ring->delivery.max_attempts &&
	       tw_delivery_of(ring, token)->attempts >=
	       ring->delivery.max_attempts;
}

static struct tw_out *tw_out_at(const struct tw_ring *ring, u32 at)
{
	return tw_arena_at(&ring->delivery.outs, at);
}

/* The delivery of a token that is out. */
static struct tw_out *tw_out_of(const struct tw_ring *ring,
				const struct tw_token *token)
{
	return tw_out_at(ring, tw_delivery_of(ring, token)->at);
}

/* A token that is taken has a delivery under way; there is memory for it. */
static void tw_out_begin(struct tw_ring *ring, struct tw_token *token, u32 index)
{
	struct tw_delivery *delivery = tw_delivery_of(ring, token);
	struct tw_out *out;
	u32 at;

	lockdep_assert_held(&ring->lock);
	out = tw_arena_get(&ring->delivery.outs, &at);
	*out = (struct tw_out) {
		.token = index, .attempts = delivery->attempts,
	};
	delivery->at = at;
	token->out = true;
}

/* It is over, and no taker holds it. */
static void tw_out_end(struct tw_ring *ring, struct tw_token *token)
{
	struct tw_delivery *delivery = tw_delivery_of(ring, token);
	struct tw_out *out = tw_out_of(ring, token);
	u32 at = delivery->at;

	lockdep_assert_held(&ring->lock);
	delivery->attempts = out->attempts;
	token->out = false;
	tw_arena_put(&ring->delivery.outs, at, out);
}

/* A taker holds a token. What it holds is linked, so that its end finds that. */
static void tw_delivery_hold(struct tw_ring *ring, const struct tw_token *token,
			     struct tw_taker *taker)
{
	struct tw_out *out = tw_out_of(ring, token);
	u32 at = tw_delivery_of(ring, token)->at;

	lockdep_assert_held(&ring->lock);
	out->taker = taker;
	out->prev = TW_NIL;
	out->next = taker->out ? taker->first : TW_NIL;
	if (out->next != TW_NIL)
		tw_out_at(ring, out->next)->prev = at;
	taker->first = at;
	taker->out++;
	ring->delivery.held++;
}

/* No taker holds it any more, and its delivery is over. */
static void tw_delivery_let_go(struct tw_ring *ring, struct tw_token *token)
{
	struct tw_out *out = tw_out_of(ring, token);

	lockdep_assert_held(&ring->lock);
	if (out->prev != TW_NIL)
		tw_out_at(ring, out->prev)->next = out->next;
	else
		out->taker->first = out->next;
	if (out->next != TW_NIL)
		tw_out_at(ring, out->next)->prev = out->prev;
	out->taker->out--;
	out->taker = NULL;
	ring->delivery.held--;
	tw_out_end(ring, token);
}

/* The tick of a time, at most the last one, and not before the hand. */
static u64 tw_delivery_tick(const struct tw_ring *ring,
			    const struct tw_now *now, u64 time)
{
	u64 due;

	return tw_ring_due(ring, now, time, &due) ? ring->max_due : due;
}

/*
 * Files a token. Beyond the last tick there are no deadlines, but a clock may get
 * there: then what is due now is due before.
 */
static void tw_delivery_file(struct tw_ring *ring, u32 index, u64 due, u64 now)
{
	lockdep_assert_held(&ring->lock);
	tw_levels_file(&ring->levels, index, tw_ring_token(ring, index), due,
		       min(due, tw_levels_origin(&ring->levels, now)));
}

/* Makes a token ARMED that is filed, or will be in the same hold of the lock. */
static void tw_delivery_arm(struct tw_ring *ring, struct tw_token *token,
			    u32 index, u64 due)
{
	u64 word = READ_ONCE(token->word);

	lockdep_assert_held(&ring->lock);
	tw_stamp_set(ring, index, tw_stamp_none(tw_generation(token, word)));
	/* Pairs with the acquire in tw_found_armed(). */
	smp_store_release(&token->word, tw_word(due, TW_ARMED, word));
	ring->pending++;
}

/*
 * Sets aside a token that is neither filed nor ARMED. Its tick tells when it was.
 */
static void tw_delivery_aside(struct tw_ring *ring, struct tw_token *token,
			      u32 index, u64 now)
{
	u64 word = READ_ONCE(token->word);

	lockdep_assert_held(&ring->lock);
	WRITE_ONCE(token->word,
		   tw_word(min(now, ring->max_due), TW_HELD, word));
	tw_lists_add(&ring->levels.lists, ring->levels.aside, index, token);
	ring->delivery.buried++;
}

/*
 * A delivery was in vain: makes the token, which is not filed and which no taker
 * holds any more, pending again, or buries it. Returns whether it has been buried.
 */
static bool tw_delivery_retry(struct tw_ring *ring, struct tw_token *token,
			      u32 index, const struct tw_now *now, u64 due)
{
	lockdep_assert_held(&ring->lock);
	if (tw_delivery_exhausted(ring, token)) {
		tw_delivery_aside(ring, token, index, now->tick);
		return true;
	}
	tw_delivery_arm(ring, token, index, due);
	tw_delivery_file(ring, index, due, now->tick);

	return false;
}

/*
 * The tick on which a period's next deadline is due, not before the hand. One that has
 * passed within the hand's tick waits for the next, as if it had been registered in
 * time.
 */
static u64 tw_delivery_due(const struct tw_ring *ring,
			   const struct tw_now *now, u64 base)
{
	u64 due = base / ring->tick + !!(base % ring->tick);

	return min(max(due, now->tick), ring->max_due);
}

/* A periodic token, which is not filed, goes on. */
static void tw_delivery_next(struct tw_ring *ring, struct tw_token *token,
			     u32 index, const struct tw_now *now)
{
	struct tw_repeat *repeat = tw_repeat_at(ring, token);
	u64 base = repeat->base, due;

	lockdep_assert_held(&ring->lock);
	if (!repeat->kicked)
		base += repeat->period;
	tw_repeat_start_over(repeat, min_t(u64, base, S64_MAX));
	tw_delivery_of(ring, token)->attempts = 0;

	due = tw_delivery_due(ring, now, repeat->base);
	tw_delivery_arm(ring, token, index, due);
	tw_delivery_file(ring, index, due, now->tick);
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

/*
 * For look.c.
 */

/*
 * The lease of a token is over: it is due where it is, or buried.
 */
static void tw_delivery_lapse(struct tw_ring *ring, struct tw_token *token,
			      u32 index, u64 now)
{
	lockdep_assert_held(&ring->lock);
	tw_delivery_let_go(ring, token);
	ring->delivery.lapsed++;
	if (tw_delivery_exhausted(ring, token)) {
		tw_levels_unfile(&ring->levels, token);
		tw_delivery_aside(ring, token, index, now);
	} else {
		tw_delivery_arm(ring, token, index,
				tw_word_due(READ_ONCE(token->word)));
	}
}

/*
 * Counts the periods that a due token has missed: all those before the last one,
 * which its event is then for.
 */
static void tw_delivery_count_missed(struct tw_ring *ring,
				     struct tw_repeat *repeat, u64 now)
{
	u64 periods;

	lockdep_assert_held(&ring->lock);
	if (now < repeat->base)
		return;
	periods = (now - repeat->base) / repeat->period;
	repeat->base += periods * repeat->period;
	repeat->missed = min(repeat->missed + periods, (u64)U32_MAX);
	ring->delivery.missed += periods;
}

/**
 * tw_delivery_before_take() - what a token that is due goes through before a take
 * @ring: the ring, locked
 * @index: the token, last entry of the list that is looked at
 * @now: the tick that the hand is on
 *
 * The lease of a held token ends here; the periods that a periodic one has missed
 * are counted here.
 *
 * Return: false: it can be taken; true: look again at what is there now.
 */
bool tw_delivery_before_take(struct tw_ring *ring, u32 index, u64 now)
{
	struct tw_token *token = tw_arena_at(&ring->tokens, index);
	struct tw_repeat *repeat;

	lockdep_assert_held(&ring->lock);
	if (tw_word_state(READ_ONCE(token->word)) == TW_HELD) {
		tw_delivery_lapse(ring, token, index, now);
		return true;
	}
	repeat = tw_repeat_of(ring, token);
	if (repeat && !repeat->kicked && !tw_delivery_of(ring, token)->attempts)
		tw_delivery_count_missed(ring, repeat, now * ring->tick);

	return false;
}

/* A token has been taken, to be delivered: see tw_ring_outs_left(). */
void tw_delivery_begin(struct tw_ring *ring, struct tw_token *token, u32 index)
{
	struct tw_delivery *delivery = tw_delivery_of(ring, token);

	lockdep_assert_held(&ring->lock);
	if (!ring->delivery.lease)
		return;
	delivery->attempts += delivery->attempts < U32_MAX;
	delivery->number = delivery->number + 1 ?: 1;	/* 0 is none */
	tw_out_begin(ring, token, index);
}

/*
 * It could not be delivered, and will be put back. No reader has been told of this
 * delivery, so the next one has its number.
 */
void tw_delivery_undo(struct tw_ring *ring, struct tw_token *token)
{
	struct tw_delivery *delivery = tw_delivery_of(ring, token);

	lockdep_assert_held(&ring->lock);
	if (!ring->delivery.lease)
		return;
	tw_out_end(ring, token);
	delivery->attempts--;
	delivery->number--;
}

/**
 * tw_delivery_done() - a token has been delivered
 * @ring: the ring, locked
 * @token: the token, TAKEN
 * @index: its index
 * @now: the time
 * @taker: the taker that has got it; not NULL on a ring with leases
 */
void tw_delivery_done(struct tw_ring *ring, struct tw_token *token, u32 index,
		      const struct tw_now *now, struct tw_taker *taker)
{
	u64 word = READ_ONCE(token->word);
	u64 due;

	lockdep_assert_held(&ring->lock);
	if (!ring->delivery.lease) {
		if (tw_repeat_of(ring, token))
			tw_delivery_next(ring, token, index, now);
		else
			tw_delivery_end(ring, token, index);
		return;
	}

	due = tw_delivery_tick(ring, now, now->ns + ring->delivery.lease);
	WRITE_ONCE(token->word, tw_word(due, TW_HELD, word));
	tw_delivery_file(ring, index, due, now->tick);
	tw_out_of(ring, token)->since = now->tick;
	tw_delivery_hold(ring, token, taker);
}

/*
 * For the operations.
 */

/* Makes a token periodic that has just been registered. */
void tw_delivery_repeat(struct tw_ring *ring, u32 index,
			const struct tw_period *period)
{
	struct tw_repeat *repeat = tw_repeat_at(ring, tw_ring_token(ring, index));

	lockdep_assert_held(&ring->lock);
	tw_repeat_start_over(repeat, period->first);
	repeat->period = period->length;
}

/**
 * tw_delivery_find() - find a token that is pending, held or buried
 * @ring: the ring, locked
 * @key: which
 * @found: the token
 *
 * Return: 0; -ENOENT no token has this id; -ESTALE none has this handle, or it
 * is being copied; -EINVAL the ring has no ids.
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

/* Whether a delivery of a token is out; if not, and it is HELD, it is buried. */
bool tw_delivery_is_out(const struct tw_ring *ring,
			const struct tw_found *found)
{
	lockdep_assert_held(&ring->lock);

	return tw_word_state(found->word) == TW_HELD && found->token->out;
}

/**
 * tw_delivery_check() - whether an answer is to a delivery that is out
 * @ring: the ring, locked
 * @found: the token
 * @answer: which delivery, and who answers
 *
 * Return: 0; -ESTALE it is not out; -EPERM another has it.
 */
int tw_delivery_check(struct tw_ring *ring, const struct tw_found *found,
		      const struct tw_answer *answer)
{
	lockdep_assert_held(&ring->lock);
	if (!tw_delivery_is_out(ring, found) ||
	    tw_delivery_of(ring, found->token)->number != answer->delivery)
		return -ESTALE;

	return answer->any ||
	       tw_out_of(ring, found->token)->taker == answer->taker ? 0 : -EPERM;
}

/* Takes a token that is held out of the lists, and from its taker. */
static u32 tw_delivery_back(struct tw_ring *ring, struct tw_token *token)
{
	u32 index = tw_ring_index(ring, token);

	lockdep_assert_held(&ring->lock);
	tw_levels_unfile(&ring->levels, token);
	tw_delivery_let_go(ring, token);

	return index;
}

/* A delivery, which is out, has been dealt with. */
void tw_delivery_ack(struct tw_ring *ring, struct tw_found *found,
		     const struct tw_now *now)
{
	u32 index = tw_delivery_back(ring, found->token);

	if (tw_repeat_of(ring, found->token))
		tw_delivery_next(ring, found->token, index, now);
	else
		tw_delivery_end(ring, found->token, index);
	ring->delivery.acked++;
}

/*
 * A delivery, which is out, has been dealt with, and its token is due again at
 * @deadline, with all its attempts before it. If the token is periodic, its
 * periods are counted from there.
 */
void tw_delivery_rearm(struct tw_ring *ring, struct tw_found *found,
		       const struct tw_now *now,
		       const struct tw_deadline *deadline)
{
	struct tw_repeat *repeat = tw_repeat_of(ring, found->token);
	u32 index = tw_delivery_back(ring, found->token);

	if (repeat)
		tw_repeat_start_over(repeat, tw_ring_base(ring, now, deadline));
	tw_delivery_of(ring, found->token)->attempts = 0;
	tw_delivery_arm(ring, found->token, index, deadline->due);
	tw_delivery_file(ring, index, deadline->due, now->tick);
	ring->delivery.acked++;
}

/*
 * A delivery, which is out, has not been dealt with: it is to come again on tick
 * @due. Returns whether the token has been buried instead.
 */
bool tw_delivery_nack(struct tw_ring *ring, struct tw_found *found,
		      const struct tw_now *now, u64 due)
{
	u32 index = tw_delivery_back(ring, found->token);

	ring->delivery.nacked++;

	return tw_delivery_retry(ring, found->token, index, now, due);
}

/* The lease of a delivery, which is out, ends on tick @due. 0 or -ERANGE. */
int tw_delivery_extend(struct tw_ring *ring, struct tw_found *found,
		       const struct tw_now *now, u64 due)
{
	u64 since = tw_out_of(ring, found->token)->since;
	u64 most = min(ring->delivery.lease, U64_MAX / TW_MAX_LEASES) *
		   TW_MAX_LEASES;
	u32 index = tw_ring_index(ring, found->token);

	lockdep_assert_held(&ring->lock);
	if (due > since &&
	    due - since > most / ring->tick + !!(most % ring->tick))
		return -ERANGE;
	WRITE_ONCE(found->token->word, tw_word_with_due(found->word, due));
	tw_levels_unfile(&ring->levels, found->token);
	tw_delivery_file(ring, index, due, now->tick);

	return 0;
}

/* Sets aside a token that is pending, or of which a delivery is out. */
void tw_delivery_bury(struct tw_ring *ring, struct tw_found *found,
		      const struct tw_now *now)
{
	u32 index = tw_ring_index(ring, found->token);

	lockdep_assert_held(&ring->lock);
	if (tw_word_state(found->word) == TW_ARMED) {
		tw_found_set(found, tw_word_due(found->word), TW_HELD);
		tw_stamp_set(ring, index, 0);
		tw_levels_unfile(&ring->levels, found->token);
		ring->pending--;
	} else {
		tw_delivery_back(ring, found->token);
	}
	tw_delivery_aside(ring, found->token, index, now->tick);
}

/*
 * The event of a kick belongs to no period. After it comes the period that was
 * waiting; if that has been delivered in vain before, the period after it.
 */
static void tw_repeat_kicked(struct tw_repeat *repeat, bool delivered)
{
	if (delivered && !repeat->kicked) {
		repeat->base = min_t(u64, S64_MAX,
				     (u64)repeat->base + repeat->period);
		repeat->missed = 0;
	}
	repeat->kicked = true;
}

/* Makes a token due now that is pending or buried. */
void tw_delivery_kick(struct tw_ring *ring, struct tw_found *found,
		      const struct tw_now *now)
{
	struct tw_delivery *delivery = tw_delivery_of(ring, found->token);
	u32 index = tw_ring_index(ring, found->token);
	struct tw_repeat *repeat = tw_repeat_of(ring, found->token);
	u64 due = min(now->tick, ring->max_due);

	lockdep_assert_held(&ring->lock);
	tw_levels_unfile(&ring->levels, found->token);
	if (repeat)
		tw_repeat_kicked(repeat, delivery->attempts);
	delivery->attempts = 0;
	if (tw_word_state(found->word) == TW_ARMED) {
		/* In one go: it can be touched all the time. */
		tw_found_set(found, due, TW_ARMED);
		tw_stamp_set(ring, index,
			     tw_stamp_none(tw_generation(found->token, found->word)));
	} else {
		ring->delivery.buried--;
		tw_delivery_arm(ring, found->token, index, due);
	}
	tw_delivery_file(ring, index, due, now->tick);
	ring->delivery.kicked++;
}

/* Ends a token that is pending, held or buried. */
void tw_delivery_delete(struct tw_ring *ring, struct tw_found *found)
{
	u32 index = tw_ring_index(ring, found->token);

	lockdep_assert_held(&ring->lock);
	if (tw_word_state(found->word) == TW_ARMED) {
		tw_found_set(found, tw_word_due(found->word), TW_HELD);
		tw_levels_unfile(&ring->levels, found->token);
		ring->pending--;
	} else if (tw_delivery_is_out(ring, found)) {
		tw_delivery_back(ring, found->token);
	} else {
		tw_levels_unfile(&ring->levels, found->token);
		ring->delivery.buried--;
	}
	tw_delivery_end(ring, found->token, index);
	ring->delivery.deleted++;
}

/**
 * tw_delivery_return() - one step of taking back what a taker holds
 * @ring: the ring, locked
 * @taker: the taker, whose file is being released
 * @work: how many tokens to take back at most
 * @now: the time
 *
 * Return: whether there are more.
 */
bool tw_delivery_return(struct tw_ring *ring, struct tw_taker *taker,
			unsigned int work, const struct tw_now *now)
{
	u64 due = min(now->tick, ring->max_due);

	lockdep_assert_held(&ring->lock);
	for (; taker->out && work; work--) {
		u32 index = tw_out_at(ring, taker->first)->token;
		struct tw_token *token = tw_arena_at(&ring->tokens, index);

		tw_delivery_back(ring, token);
		ring->delivery.returned++;
		tw_delivery_retry(ring, token, index, now, due);
	}

	return taker->out;
}

/* How often a token has been delivered in vain, or will have been. Not if TAKEN. */
u32 tw_delivery_attempts(const struct tw_ring *ring, const struct tw_token *token)
{
	return token->out ? tw_out_of(ring, token)->attempts :
			    tw_delivery_of(ring, token)->attempts;
}

/**
 * tw_delivery_end_leases() - end leases that are over, in no order
 * @ring: the ring, locked
 * @next: index of a struct tw_out to begin with; moved beyond what was looked at
 * @work: how many at most
 * @now: the tick that the hand is on
 *
 * Otherwise a look comes to them in the order of ticks. While there is no memory for
 * a delivery it comes no further than to the first token that has to be delivered.
 *
 * Return: whether there are more to look at.
 */
bool tw_delivery_end_leases(struct tw_ring *ring, u32 *next, unsigned int work,
			    u64 now)
{
	lockdep_assert_held(&ring->lock);
	for (; work && *next < ring->delivery.outs.fresh; work--, ++*next) {
		const struct tw_out *out = tw_out_at(ring, *next);

		if (out->taker && tw_ring_due_tick(ring, out->token) <= now)
			tw_delivery_lapse(ring, tw_ring_token(ring, out->token),
					  out->token, now);
	}

	return *next < ring->delivery.outs.fresh;
}

/* Fills in what there is to tell of deliveries. Under the lock. */
void tw_delivery_info(const struct tw_ring *ring, struct timewheel_info *info)
{
	const struct tw_deliveries *delivery = &ring->delivery;

	lockdep_assert_held(&ring->lock);
	info->lease = delivery->lease;
	info->max_attempts = delivery->max_attempts;
	info->held = delivery->held;
	info->buried = delivery->buried;
	info->acked = delivery->acked;
	info->nacked = delivery->nacked;
	info->lapsed = delivery->lapsed;
	info->returned = delivery->returned;
	info->kicked = delivery->kicked;
	info->deleted = delivery->deleted;
	info->missed = delivery->missed;
}
