/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * What there is to know of deliveries: of one token's, and of all of a ring's.
 * Types only, so that the ring can hold them and delivery.c can be above it.
 */
#ifndef TW_DELIVERY_TYPES_H
#define TW_DELIVERY_TYPES_H

#include <linux/types.h>

#include "held.h"

/* The first delivery's number. Tests begin near the end, to see it wrap. */
#ifndef TW_FIRST_DELIVERY
#define TW_FIRST_DELIVERY	1U
#endif

/**
 * struct tw_delivery - what a token knows of its deliveries
 * @number: of the last delivery, 0 for none and on a ring without leases
 * @attempts: deliveries since the token was registered, or since its period began
 *
 * Both are under the ring's lock, or the token is TAKEN and its reader's.
 */
struct tw_delivery {
	u32	number;
	u32	attempts;
};

/**
 * struct tw_repeat - what makes a token periodic
 * @base: the deadline in ns that comes next, or that the delivery under way is of
 * @period: ns, 0 when the token is not periodic: then the rest means nothing
 * @missed: periods since the last event that had none
 *
 * All of it is under the ring's lock, or the token is TAKEN and its reader's.
 */
struct tw_repeat {
	u64	base;
	u64	period;
	u32	missed;
};

/**
 * struct tw_deliveries - what a ring knows of deliveries
 * @at: offset of a token's struct tw_delivery, 0 on a ring with neither leases nor
 *	periods; constant
 * @repeat_at: offset of a token's struct tw_repeat, 0 on a ring without periods;
 *	constant
 * @lease: ns, 0 for none; constant
 * @held: on a ring with leases: the deliveries that are out; ring's lock
 * @acked: count; ring's lock
 * @nacked: count; ring's lock
 * @lapsed: count; ring's lock
 * @returned: count; ring's lock
 * @deleted: count; ring's lock
 * @missed: count; ring's lock
 */
struct tw_deliveries {
	u32		at;
	u32		repeat_at;
	u64		lease;
	struct tw_held	held;
	u64		acked;
	u64		nacked;
	u64		lapsed;
	u64		returned;
	u64		deleted;
	u64		missed;
};

/* Nothing has come so far of a periodic token whose first deadline this is. */
static inline void tw_repeat_start_over(struct tw_repeat *repeat, u64 base)
{
	repeat->base = base;
	repeat->missed = 0;
}

#endif /* TW_DELIVERY_TYPES_H */
