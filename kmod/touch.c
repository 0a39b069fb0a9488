// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Touch: the operation that a wheel does most, by key alone, in the fewest
 * instructions.
 */
#include "touch.h"

static_assert(TW_MAX_KEYS <= TW_IDS_AHEAD);

/*
 * Touches tokens from key @done on, up to the first that fails. @tokens: of each key, see
 * struct tw_key, or NULL. Returns what the last one returned.
 */
static __always_inline int
tw_touch_each(struct tw_wheel *wheel, bool by_handle, const u64 *keys, unsigned int n,
	      struct tw_token **tokens, const struct tw_now *now, bool locked, unsigned int *done)
{
	unsigned int i;
	int ret = 0;
	u64 due;

	for (i = *done; i < n; i++) {
		const struct tw_key key = { by_handle, keys[i], tokens ? tokens[i] : NULL };

		ret = tw_touch(wheel, key, now, locked, &due);
		if (ret < 0)
			break;
	}
	*done = i;

	return ret;
}

/* Tries touches again with the lock that did not succeed without it. */
static noinline int tw_touch_locked(struct tw_wheel *wheel, bool by_handle,
				    const u64 *keys, unsigned int n,
				    unsigned int *done)
{
	struct tw_now now = tw_wheel_lock(wheel);
	int ret = tw_touch_each(wheel, by_handle, keys, n, NULL, &now, true, done);

	tw_wheel_unlock(wheel, &now);

	return ret;
}

/* All values of this function are in registers. */
static __always_inline long tw_touch_unlocked(struct tw_wheel *wheel,
					      bool by_handle, u64 value)
{
	const struct tw_key key = { .by_handle = by_handle, .value = value };
	struct tw_now now = tw_wheel_now(wheel);
	u64 due;

	return tw_touch(wheel, key, &now, false, &due);
}

static noinline long tw_touch_id(struct tw_wheel *wheel, u64 id)
{
	long ret = tw_touch_unlocked(wheel, false, id);
	unsigned int done = 0;

	return ret != -ENOENT ? ret :
	       tw_touch_locked(wheel, false, &id, 1, &done);
}

static noinline long tw_touch_word_key(struct tw_wheel *wheel, bool by_handle,
				       u64 value)
{
	unsigned int done = 0;

	return tw_touch_locked(wheel, by_handle, &value, 1, &done);
}

/*
 * Touches one token and tells no more than that it was done: returns as tw_touch() does, but
 * in ioctl(2)'s type, so that the caller can leave the return to it. Never sleeps.
 */
long tw_touch_key(struct tw_wheel *wheel, u32 by_handle, u64 value)
{
	if (tw_ring_has_words(&wheel->ring))
		return tw_touch_word_key(wheel, by_handle, value);

	return by_handle ? tw_touch_unlocked(wheel, true, value) :
			   tw_touch_id(wheel, value);
}

/*
 * Touches the tokens of at most TW_MAX_KEYS keys in order, up to the first that fails: @done
 * says how many. Never sleeps. Returns 0, or why the token of key *@done could not be
 * touched.
 */
int tw_touch_keys(struct tw_wheel *wheel, bool by_handle, const u64 *keys,
		  unsigned int n, unsigned int *done)
{
	struct tw_now now = tw_wheel_now(wheel);
	struct tw_token *tokens[TW_MAX_KEYS];
	int ret = -ENOENT;

	*done = 0;
	tw_ring_prefetch_keys(&wheel->ring, by_handle, keys, n, tokens);
	if (!tw_ring_has_words(&wheel->ring))
		/* There are two calls, so that by handle all values are in registers. */
		ret = by_handle ?
			tw_touch_each(wheel, true, keys, n, tokens, &now, false, done) :
			tw_touch_each(wheel, false, keys, n, NULL, &now, false, done);
	if (ret == -ENOENT)
		ret = tw_touch_locked(wheel, by_handle, keys, n, done);

	return min(ret, 0);
}
