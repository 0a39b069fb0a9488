/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Touch: the operation that a wheel does most, by key alone, in the fewest
 * instructions. Knows the wheel; the keys are in kernel memory.
 */
#ifndef TW_TOUCH_H
#define TW_TOUCH_H

#include <linux/percpu.h>
#include <linux/timewheel.h>

#include "trace.h"
#include "wheel.h"

/* The most keys in one hold of the lock. */
#define TW_MAX_KEYS	64

long tw_touch_key(struct tw_wheel *wheel, u32 by_handle, u64 value);
int tw_touch_keys(struct tw_wheel *wheel, bool by_handle, const u64 *keys,
		  unsigned int n, unsigned int *done);

/* Returns what an operation says of a token that it has found pending. */
static inline int tw_was_due(const struct tw_found *found,
			     const struct tw_now *now)
{
	return tw_word_due(found->word) <= now->tick ?
		TIMEWHEEL_RES_WAS_DUE : 0;
}

/*
 * Touches a token of a wheel that is set up. @locked: the caller holds the lock, which a wheel
 * with touch words needs. @due: the tick on which the token is due then.
 *
 * Without the lock -ENOENT may be wrong. A registration that is about to fail with
 * -EEXIST writes the id into a free token. A look-up that just passes there finds
 * that token, not the one that is pending. With the lock -ENOENT is exact.
 *
 * Returns 0 or TIMEWHEEL_RES_WAS_DUE; -EINVAL; -ENOENT; -ESTALE; -ERANGE.
 */
static __always_inline int tw_touch(struct tw_wheel *wheel, struct tw_key key,
				    const struct tw_now *now, bool locked,
				    u64 *due)
{
	struct tw_found found;
	int err = tw_ring_find(&wheel->ring, key, &found);

	if (err)
		return err;
	if (locked && tw_ring_has_words(&wheel->ring))
		tw_look_apply_stamp(&wheel->ring, &found, now->tick);
	err = tw_ring_touch(&wheel->ring, &found, now, due);
	if (err)
		/* The token went meanwhile, and its id went with it. */
		return err == -ESTALE && !key.by_handle ? -ENOENT : err;
	err = tw_was_due(&found, now);
	this_cpu_inc(*wheel->touched);
	trace_touch(wheel->number, key.by_handle, key.value, *due);

	return err;
}

#endif /* TW_TOUCH_H */
