/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delivery: what becomes of tokens after they have been read, on a ring with
 * leases or periods. Part of the core: it knows the ring, and of those who read
 * only that they differ.
 *
 * A token of which a delivery is out is HELD. It is filed by the end of its lease,
 * which is a deadline like any: whoever comes to it makes it ARMED again. One that
 * is buried is HELD as well, by nobody, on a list of its own. All of it is under
 * the ring's lock.
 */
#ifndef TW_DELIVERY_H
#define TW_DELIVERY_H

#include <linux/types.h>

#define TW_MAX_LEASES	1000	/* that a token is held for at most */

/* The first delivery's number. Tests begin near the end, to see it wrap. */
#ifndef TW_FIRST_LEASE
#define TW_FIRST_LEASE	1U
#endif

struct tw_found;
struct tw_now;
struct tw_ring;
struct tw_token;

/**
 * struct tw_taker - one who reads
 * @out: deliveries that it holds; ring's lock
 */
struct tw_taker {
	u32	out;
};

/**
 * struct tw_delivery - what there is to know of a token's deliveries
 * @taker: who holds it; NULL when nobody does
 * @since: HELD: on which tick it was delivered
 * @base: periodic: the deadline in ns that comes next, or that this delivery
 *	is of
 * @kicked: periodic: this delivery is of no period, and @base comes next
 * @period: ns, 0 when it is not periodic
 * @generation: of the life that all of this is about: void in another
 * @lease: number of the last delivery
 * @attempts: deliveries so far that were in vain, and one that is out
 * @missed: periods since the last event that had none
 */
struct tw_delivery {
	struct tw_taker	*taker;
	u64		since;
	u64		base : 63;
	u64		kicked : 1;
	u64		period;
	u32		generation;
	u32		lease;
	u32		attempts;
	u32		missed;
};

/**
 * struct tw_deliveries - what a ring knows of deliveries
 * @at: offset of a token's struct tw_delivery, 0 when it has none; constant
 * @aside: list of buried tokens; constant
 * @lease: ns, 0 for none; constant
 * @max_attempts: after how many a token is buried, 0 for never; constant
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
	u32		aside;
	u64		lease;
	u32		max_attempts;
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

/**
 * struct tw_answer - to which delivery somebody answers
 * @lease: its number
 * @taker: who answers
 * @any: whoever holds it
 */
struct tw_answer {
	u32			lease;
	const struct tw_taker	*taker;
	bool			any;
};

/**
 * struct tw_period - when a token is due, again and again
 * @first: its first deadline in ns, at most S64_MAX
 * @length: ns, at most S64_MAX
 */
struct tw_period {
	u64	first;
	u64	length;
};

/* Whether a delivery is of its base: that of a period, unless it was kicked. */
static inline bool tw_delivery_is_of_base(const struct tw_delivery *delivery)
{
	return delivery->period && !delivery->kicked;
}

/* For the ring. */
bool tw_delivery_settle(struct tw_ring *ring, u32 index, u64 now);
void tw_delivery_taken(struct tw_ring *ring, struct tw_token *token);
void tw_delivery_undo(struct tw_ring *ring, struct tw_token *token);
void tw_delivery_done(struct tw_ring *ring, struct tw_token *token, u32 index,
		      const struct tw_now *now, struct tw_taker *taker);
bool tw_delivery_has_timeout(struct tw_ring *ring, struct tw_token *token);
void tw_delivery_moved(struct tw_ring *ring, struct tw_token *token, u64 due);

/* For others. */
struct tw_delivery *tw_delivery_of(const struct tw_ring *ring,
				   struct tw_token *token);
void tw_delivery_repeat(struct tw_ring *ring, u32 index,
			const struct tw_period *period);
int tw_delivery_find(struct tw_ring *ring, bool by_handle, u64 key,
		     struct tw_found *found);
bool tw_delivery_is_out(const struct tw_ring *ring,
			const struct tw_found *found);
int tw_delivery_check(struct tw_ring *ring, const struct tw_found *found,
		      const struct tw_answer *answer);
void tw_delivery_ack(struct tw_ring *ring, struct tw_found *found,
		     const struct tw_now *now);
void tw_delivery_rearm(struct tw_ring *ring, struct tw_found *found,
		       const struct tw_now *now, u64 due);
bool tw_delivery_nack(struct tw_ring *ring, struct tw_found *found,
		      const struct tw_now *now, u64 due);
int tw_delivery_extend(struct tw_ring *ring, struct tw_found *found,
		       const struct tw_now *now, u64 due);
void tw_delivery_bury(struct tw_ring *ring, struct tw_found *found,
		      const struct tw_now *now);
void tw_delivery_kick(struct tw_ring *ring, struct tw_found *found,
		      const struct tw_now *now);
void tw_delivery_delete(struct tw_ring *ring, struct tw_found *found);
bool tw_delivery_return(struct tw_ring *ring, struct tw_taker *taker,
			u32 *next, unsigned int work, const struct tw_now *now);

#endif /* TW_DELIVERY_H */
