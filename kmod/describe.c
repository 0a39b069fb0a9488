// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Describe: what there is to say of tokens, by key or one after the other. Changes
 * no token but by its touch word, which is applied first.
 */
#include <linux/limits.h>

#include "describe.h"

/* The most places that one step of a listing looks at under the lock. */
#define TW_LIST_STEP	256

/* Tells what deliveries add. No reader has the token. */
static void tw_describe_delivery(const struct tw_call *call, struct tw_token *token,
				 struct timewheel_token *told)
{
	const struct tw_ring *ring = &call->wheel->ring;
	const struct tw_repeat *repeat = tw_repeat_of(ring, token);

	told->delivery = tw_delivery_of(ring, token)->number;
	told->attempts = tw_delivery_of(ring, token)->attempts;
	if (repeat) {
		told->period = repeat->period;
		told->base = tw_clock_to_user(repeat->base, call->offset);
	}
}

/* @due: the tick on which the token is due, or on which its lease ends. */
static void tw_describe_time(const struct tw_call *call, u64 due,
			     struct timewheel_token *told)
{
	u64 time = tw_tick_shown(call, due);
	u64 shown = tw_clock_to_user(call->now.ns, call->offset);
	u64 hand = call->now.tick;
	u32 slots = call->wheel->ring.slots;

	if (told->state == TIMEWHEEL_STATE_HELD)
		told->lease_end = time;
	else
		told->deadline = time;
	if (time > shown)
		told->left = time - shown;
	if (due > hand)
		told->cycle = (due - hand - 1) / slots;
	told->slot = due % slots;
}

/* Tells all of a token that is not FREE, by its word. */
static void tw_describe(const struct tw_call *call, u32 index, u64 word,
			struct timewheel_token *told)
{
	const struct tw_ring *ring = &call->wheel->ring;
	struct tw_token *token = tw_ring_token(ring, index);
	const struct tw_found found = { token, word };

	BUILD_BUG_ON((int)TIMEWHEEL_STATE_PENDING != (int)TW_ARMED ||
		     (int)TIMEWHEEL_STATE_TAKEN != (int)TW_TAKEN ||
		     (int)TIMEWHEEL_STATE_HELD != (int)TW_HELD);
	*told = (struct timewheel_token) {
		.id		= tw_token_id(ring, token),
		.handle		= tw_token_handle(token, index),
		.cookie		= tw_token_cookie(ring, token),
		.timeout	= token->timeout,
		.state		= tw_word_state(word),
	};
	if (tw_ring_has_deliveries(ring) && told->state != TIMEWHEEL_STATE_TAKEN)
		tw_describe_delivery(call, token, told);
	tw_describe_time(call, tw_delivery_due(ring, &found), told);
}

/* Applies a token's touch word, if it has one. */
static void tw_describe_apply(const struct tw_call *call, struct tw_found *found)
{
	if (tw_ring_has_words(&call->wheel->ring))
		tw_look_apply_stamp(&call->wheel->ring, found, call->now.tick);
}

/* Finds a token that is pending, or on a wheel with leases held. */
static int tw_describe_find(const struct tw_call *call, struct tw_key key,
			    struct tw_found *found)
{
	struct tw_ring *ring = &call->wheel->ring;
	int err = tw_ring_find(ring, key, found);

	if (!err)
		tw_describe_apply(call, found);
	else if (ring->delivery.lease)
		err = tw_delivery_find(ring, key, found);

	return err;
}

/*
 * Tells of the tokens of at most TW_MAX_TOLD keys, with all zeros for a key that names no
 * token.
 */
void tw_describe_keys(struct tw_call *call, bool by_handle, const u64 *keys,
		      struct timewheel_token *tokens, unsigned int n)
{
	struct tw_ring *ring = &call->wheel->ring;
	unsigned int i;

	call->now = tw_wheel_lock(call->wheel);
	for (i = 0; i < n; i++) {
		const struct tw_key key = { .by_handle = by_handle, .value = keys[i] };
		struct tw_found found;

		if (tw_describe_find(call, key, &found))
			tokens[i] = (struct timewheel_token) { };
		else
			tw_describe(call, tw_delivery_index(ring, &found),
				    found.word, &tokens[i]);
	}
	tw_wheel_unlock(call->wheel, &call->now);
}

/* Whether a listing asks for this token. */
static bool tw_describe_wanted(const struct timewheel_list *list,
			       const struct timewheel_token *token)
{
	/* One of both is 0. */
	u64 time = token->deadline | token->lease_end;

	return time >= list->from && time <= list->to;
}

/*
 * Does one step of a listing, and moves its cursor on. Returns how many tokens it has told, at
 * most @max, perhaps none although the cursor is not at the end.
 */
unsigned int tw_describe_next(struct tw_call *call, struct timewheel_list *list,
			      struct timewheel_token *tokens, unsigned int max)
{
	struct tw_ring *ring = &call->wheel->ring;
	unsigned int work = TW_LIST_STEP, n = 0;
	u32 next = list->cursor;

	call->now = tw_wheel_lock(call->wheel);
	while (n < max) {
		struct tw_found found;
		u32 index = tw_ring_scan(ring, &next, &work, &found.word);

		if (index == TW_NIL)
			break;
		found.token = tw_ring_token(ring, index);
		tw_describe_apply(call, &found);
		tw_describe(call, index, found.word, &tokens[n]);
		n += tw_describe_wanted(list, &tokens[n]);
	}
	list->cursor = n < max && work ? TIMEWHEEL_NEVER : next;
	tw_wheel_unlock(call->wheel, &call->now);

	return n;
}
