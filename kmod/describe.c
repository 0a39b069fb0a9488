// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Describe: what there is to say of tokens, by key or one after the other. Changes
 * no token but by its touch word, which is applied first.
 */
#include <linux/limits.h>

#include "describe.h"

/* Most places that one step of a listing looks at, under the lock. */
#define TW_LIST_STEP	256

/* What deliveries add. Not while a reader has the token. */
static void tw_describe_delivery(const struct tw_ring *ring,
				 const struct tw_caller *caller,
				 struct tw_token *token,
				 struct timewheel_token *told)
{
	const struct tw_repeat *repeat = tw_repeat_of(ring, token);

	told->delivery = tw_delivery_of(ring, token)->number;
	told->attempts = tw_delivery_of(ring, token)->attempts;
	if (repeat) {
		told->period = repeat->period;
		told->base = tw_clock_to_user(repeat->base, caller->offset);
	}
}

/* @due: on which tick the token is due, or on which its lease ends. */
static void tw_describe_time(const struct tw_wheel *wheel,
			     const struct tw_caller *caller, u64 due,
			     const struct tw_now *now, struct timewheel_token *told)
{
	u64 time = tw_tick_shown(wheel, caller, due);
	u64 shown = tw_clock_to_user(now->ns, caller->offset);

	if (told->state == TIMEWHEEL_STATE_HELD)
		told->lease_end = time;
	else
		told->deadline = time;
	if (time > shown)
		told->left = time - shown;
	if (due > now->tick)
		told->cycle = (due - now->tick - 1) / tw_ring_slots(&wheel->ring);
	told->slot = due % tw_ring_slots(&wheel->ring);
}

/* What there is to tell of a token that is not FREE, by its word. */
static void tw_describe(const struct tw_wheel *wheel, const struct tw_caller *caller,
			u32 index, u64 word, const struct tw_now *now,
			struct timewheel_token *told)
{
	const struct tw_ring *ring = &wheel->ring;
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
		tw_describe_delivery(ring, caller, token, told);
	tw_describe_time(wheel, caller, tw_delivery_due(ring, &found), now, told);
}

/* Finds a token that is pending, or on a wheel with leases held. */
static int tw_describe_find(struct tw_wheel *wheel, struct tw_key key,
			    const struct tw_now *now, struct tw_found *found)
{
	int err = tw_ring_find(&wheel->ring, key, found);

	if (!err && tw_ring_has_words(&wheel->ring))
		tw_look_apply_stamp(&wheel->ring, found, now->tick);
	if (err && tw_ring_lease(&wheel->ring))
		err = tw_delivery_find(&wheel->ring, key, found);

	return err;
}

/**
 * tw_describe_keys() - tell of tokens by their keys
 * @wheel: the wheel, set up
 * @caller: the process that asks
 * @by_handle: the keys are handles, else ids
 * @keys: the keys
 * @tokens: where to tell; all zeros for a key that names no token
 * @n: how many, at most TW_MAX_TOLD
 */
void tw_describe_keys(struct tw_wheel *wheel, const struct tw_caller *caller,
		      bool by_handle, const u64 *keys,
		      struct timewheel_token *tokens, unsigned int n)
{
	struct tw_now now = tw_wheel_lock(wheel);
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct tw_key key = { by_handle, keys[i] };
		struct tw_found found;

		if (tw_describe_find(wheel, key, &now, &found))
			tokens[i] = (struct timewheel_token) { };
		else
			tw_describe(wheel, caller,
				    tw_delivery_index(&wheel->ring, &found),
				    found.word, &now, &tokens[i]);
	}
	tw_wheel_unlock(wheel, &now);
}

/* The word of a token after its touch word, if it has one, has been applied. */
static u64 tw_describe_word(struct tw_wheel *wheel, u32 index, u64 word,
			    const struct tw_now *now)
{
	struct tw_found found = {
		.token	= tw_ring_token(&wheel->ring, index),
		.word	= word,
	};

	if (tw_ring_has_words(&wheel->ring))
		tw_look_apply_stamp(&wheel->ring, &found, now->tick);

	return found.word;
}

/* Whether a listing asks for it. */
static bool tw_describe_wanted(const struct timewheel_list *list,
			       const struct timewheel_token *token)
{
	/* One of both: the other is 0. */
	u64 time = token->deadline | token->lease_end;

	return time >= list->from && time <= list->to;
}

/**
 * tw_describe_next() - one step of a listing
 * @wheel: the wheel, set up
 * @caller: the process that asks
 * @list: what is asked for; its cursor is moved on
 * @tokens: where the tokens go
 * @max: how many at most
 *
 * Return: how many, perhaps none although the cursor is not at the end.
 */
unsigned int tw_describe_next(struct tw_wheel *wheel, const struct tw_caller *caller,
			      struct timewheel_list *list,
			      struct timewheel_token *tokens, unsigned int max)
{
	struct tw_now now = tw_wheel_lock(wheel);
	unsigned int work = TW_LIST_STEP, n = 0;
	u32 next = list->cursor;

	while (n < max) {
		u64 word;
		u32 index = tw_ring_scan(&wheel->ring, &next, &work, &word);

		if (index == TW_NIL)
			break;
		word = tw_describe_word(wheel, index, word, &now);
		tw_describe(wheel, caller, index, word, &now, &tokens[n]);
		n += tw_describe_wanted(list, &tokens[n]);
	}
	list->cursor = n < max && work ? TIMEWHEEL_NEVER : next;
	tw_wheel_unlock(wheel, &now);

	return n;
}
