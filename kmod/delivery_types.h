/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What there is to know of deliveries: of one token's, and of all of a ring's.
 * Types only, so that the ring can hold them and delivery.c can be above it.
 *
 * What must be known as long as a token lives is in its own memory: it is little.
 * What is known only while a delivery is out is a struct tw_out, of which there are
 * as many as have ever been needed at once, and one block from the beginning.
 */
#ifndef TW_DELIVERY_TYPES_H
#define TW_DELIVERY_TYPES_H

#include <linux/types.h>

#include "arena.h"

/* The first delivery's number. Tests begin near the end, to see it wrap. */
#ifndef TW_FIRST_DELIVERY
#define TW_FIRST_DELIVERY	1U
#endif

/**
 * struct tw_taker - an open file that reads, as far as the core knows it
 * @out: deliveries that it holds; ring's lock
 * @first: the newest of them, an index of a struct tw_out, if there is one; ring's
 *	lock
 */
struct tw_taker {
	u32	out;
	u32	first;
};

/**
 * struct tw_delivery - what a token knows of its deliveries as long as it lives
 * @number: of the last delivery, 0 for none and on a ring without leases
 * @attempts: unless the token is @out: deliveries so far that were in vain
 * @at: if it is: the index of its struct tw_out, which has the attempts meanwhile
 *
 * All of it is under the ring's lock, or the token is TAKEN and its reader's.
 */
struct tw_delivery {
	u32	number;
	union {
		u32	attempts;
		u32	at;
	};
};

/**
 * struct tw_out - a delivery that is under way to a taker, or held by it
 * @taker: the taker that holds it; NULL while the token is TAKEN, and when this is
 *	free
 * @since: on which tick it was delivered
 * @token: the token's index
 * @attempts: deliveries so far, with this one
 * @next: index of the next that @taker holds, or TW_NIL; the next free one when
 *	this is free
 * @prev: index of the one before, or TW_NIL
 *
 * All of it is under the ring's lock.
 */
struct tw_out {
	struct tw_taker	*taker;
	u64		since;
	u32		token;
	u32		attempts;
	u32		next;
	u32		prev;
};

/**
 * struct tw_repeat - what makes a token periodic
 * @base: the deadline in ns that comes next, or that the delivery under way is of
 * @kicked: this delivery is of no period, and @base comes next
 * @period: ns, 0 when the token is not periodic: then the rest means nothing
 * @missed: periods since the last event that had none
 *
 * All of it is under the ring's lock, or the token is TAKEN and its reader's.
 */
struct tw_repeat {
	u64	base : 63;
	u64	kicked : 1;
	u64	period;
	u32	missed;
};

/**
 * struct tw_deliveries - what a ring knows of deliveries
 * @at: offset of a token's struct tw_delivery, 0 on a ring with neither leases nor
 *	periods; constant
 * @repeat_at: offset of a token's struct tw_repeat, 0 on a ring without periods;
 *	constant
 * @max_attempts: after how many a token is buried, 0 for never; constant
 * @lease: ns, 0 for none; constant
 * @outs: on a ring with leases: memory of those that are out; ring's lock
 * @held: tokens of which a delivery is out; ring's lock
 * @buried: tokens that are buried; ring's lock
 * @acked: count; ring's lock
 * @nacked: count; ring's lock
 * @lapsed: count; ring's lock
 * @returned: count; ring's lock
 * @kicked: count; ring's lock
 * @deleted: count; ring's lock
 * @missed: count; ring's lock
 */
struct tw_deliveries {
	u32		at;
	u32		repeat_at;
	u32		max_attempts;
	u64		lease;
	struct tw_arena	outs;
	u32		held;
	u32		buried;
	u64		acked;
	u64		nacked;
	u64		lapsed;
	u64		returned;
	u64		kicked;
	u64		deleted;
	u64		missed;
};

/* Nothing has come so far of a periodic token whose first deadline this is. */
static inline void tw_repeat_start_over(struct tw_repeat *repeat, u64 base)
{
	repeat->base = base;
	repeat->kicked = false;
	repeat->missed = 0;
}

#endif /* TW_DELIVERY_TYPES_H */
