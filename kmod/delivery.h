/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Delivery: a token's life after it has been read, on a ring with leases or
 * periods. Part of the core: it knows the ring, and of readers only that they
 * differ.
 *
 * A token of which a delivery is out is HELD. It is filed by the end of its lease,
 * which is a deadline like any: the look that comes to it makes it ARMED again. A
 * token that is buried is HELD as well, by no taker, on a list of its own. All of
 * it is under the ring's lock.
 */
#ifndef TW_DELIVERY_H
#define TW_DELIVERY_H

#include "ring.h"

#define TW_MAX_LEASES	1000	/* that a token is held for at most */

/**
 * struct tw_answer - which delivery is answered, and by which taker
 * @delivery: its number
 * @taker: the one that answers
 * @any: another taker may hold it
 */
struct tw_answer {
	u32			delivery;
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

/* For look.c. */
bool tw_delivery_before_take(struct tw_ring *ring, u32 index, u64 now);
void tw_delivery_begin(struct tw_ring *ring, struct tw_token *token, u32 index);
void tw_delivery_undo(struct tw_ring *ring, struct tw_token *token);
void tw_delivery_done(struct tw_ring *ring, struct tw_token *token, u32 index,
		      const struct tw_now *now, struct tw_taker *taker);

/* For others. */
void tw_delivery_repeat(struct tw_ring *ring, u32 index,
			const struct tw_period *period);
int tw_delivery_find(struct tw_ring *ring, struct tw_key key,
		     struct tw_found *found);
bool tw_delivery_is_out(const struct tw_ring *ring,
			const struct tw_found *found);
int tw_delivery_check(struct tw_ring *ring, const struct tw_found *found,
		      const struct tw_answer *answer);
void tw_delivery_ack(struct tw_ring *ring, struct tw_found *found,
		     const struct tw_now *now);
void tw_delivery_rearm(struct tw_ring *ring, struct tw_found *found,
		       const struct tw_now *now,
		       const struct tw_deadline *deadline);
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
			unsigned int work, const struct tw_now *now);
u32 tw_delivery_attempts(const struct tw_ring *ring, const struct tw_token *token);
bool tw_delivery_end_leases(struct tw_ring *ring, u32 *next, unsigned int work,
			    u64 now);
void tw_delivery_info(const struct tw_ring *ring, struct timewheel_info *info);

#endif /* TW_DELIVERY_H */
