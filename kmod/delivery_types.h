/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What there is to know of deliveries: of one token's, and of all of a ring's.
 * Types only, so that the ring can hold them and delivery.c can be above it.
 */
#ifndef TW_DELIVERY_TYPES_H
#define TW_DELIVERY_TYPES_H

#include <linux/types.h>

/* The first delivery's number. Tests begin near the end, to see it wrap. */
#ifndef TW_FIRST_DELIVERY
#define TW_FIRST_DELIVERY	1U
#endif

/**
 * struct tw_taker - an open file that reads, as far as the core knows it
 * @out: deliveries that it holds; ring's lock
 * @first: index of a token that it holds, if there is one: its newest; ring's lock
 */
struct tw_taker {
	u32	out;
	u32	first;
};

/**
 * struct tw_delivery - what there is to know of a token's deliveries
 * @taker: the one that holds the token; NULL when none does
 * @since: HELD: on which tick it was delivered
 * @base: periodic: the deadline in ns that comes next, or that this delivery
 *	is of
 * @kicked: periodic: this delivery is of no period, and @base comes next
 * @period: ns, 0 when it is not periodic
 * @generation: of the life that all of this is about: void in another
 * @number: of the last delivery
 * @attempts: deliveries so far that were in vain, and one that is out
 * @missed: periods since the last event that had none
 * @next: HELD by a taker: index of the next token that this one holds, or TW_NIL
 * @prev: HELD by a taker: index of the one before, or TW_NIL
 *
 * All of it is under the ring's lock, or the token is TAKEN and its reader's.
 */
struct tw_delivery {
	struct tw_taker	*taker;
	u64		since;
	u64		base : 63;
	u64		kicked : 1;
	u64		period;
	u32		generation;
	u32		number;
	u32		attempts;
	u32		missed;
	u32		next;
	u32		prev;
};

/**
 * struct tw_deliveries - what a ring knows of deliveries
 * @at: offset of a token's struct tw_delivery, 0 when it has none; constant
 * @max_attempts: after how many a token is buried, 0 for never; constant
 * @lease: ns, 0 for none; constant
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
	u32	at;
	u32	max_attempts;
	u64	lease;
	u32	held;
	u32	buried;
	u64	acked;
	u64	nacked;
	u64	lapsed;
	u64	returned;
	u64	kicked;
	u64	deleted;
	u64	missed;
};

/* Nothing has come of a token so far; if it is periodic, @base is its first deadline. */
static inline void tw_delivery_start_over(struct tw_delivery *delivery, u64 base)
{
	delivery->base = base;
	delivery->kicked = false;
	delivery->attempts = 0;
	delivery->missed = 0;
}

/* Whether a delivery is of its base: that of a period, unless it was kicked. */
static inline bool tw_delivery_is_of_base(const struct tw_delivery *delivery)
{
	return delivery->period && !delivery->kicked;
}

#endif /* TW_DELIVERY_TYPES_H */
