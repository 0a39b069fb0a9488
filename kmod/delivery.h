/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Delivery: a token's life after it has been read, on a ring with leases or
 * periods. Part of the core: it knows the ring, and of readers only that each has a
 * struct tw_holder.
 *
 * A token of which a delivery is out is HELD, and filed nowhere: held.c has it, by the
 * end of its lease. The look that comes after this end makes the token ARMED again.
 * All of it is under the ring's lock.
 */
#ifndef TW_DELIVERY_H
#define TW_DELIVERY_H

#include "ring.h"

/* These functions are for look.c. */
void tw_delivery_end_leases(struct tw_ring *ring, u64 now, unsigned int *work);
void tw_delivery_begin(struct tw_ring *ring, struct tw_token *token, u32 index,
		       u64 now);
void tw_delivery_undo(struct tw_ring *ring, struct tw_token *token);
void tw_delivery_done(struct tw_ring *ring, struct tw_token *token, u32 index,
		      const struct tw_now *now, struct tw_holder *holder);

/* These functions are for all others. */
void tw_delivery_repeat(struct tw_ring *ring, u32 index, u64 first, u64 period);
int tw_delivery_find(struct tw_ring *ring, struct tw_key key,
		     struct tw_found *found);
int tw_delivery_check(struct tw_ring *ring, const struct tw_found *found, u32 number);
u32 tw_delivery_index(const struct tw_ring *ring, const struct tw_found *found);
u64 tw_delivery_due(const struct tw_ring *ring, const struct tw_found *found);
void tw_delivery_ack(struct tw_ring *ring, struct tw_found *found,
		     const struct tw_now *now);
void tw_delivery_nack(struct tw_ring *ring, struct tw_found *found,
		      const struct tw_now *now, u64 due);
void tw_delivery_extend(struct tw_ring *ring, const struct tw_found *found,
			u64 end);
u64 tw_delivery_delete(struct tw_ring *ring, struct tw_found *found);
bool tw_delivery_return(struct tw_ring *ring, struct tw_holder *holder,
			unsigned int work, const struct tw_now *now);
void tw_delivery_info(const struct tw_ring *ring, struct timewheel_info *info);

#endif /* TW_DELIVERY_H */
