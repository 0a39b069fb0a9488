/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Look: going through what is due, in the order of ticks. It is the top of the core: it is
 * told the time, and knows no reader.
 */
#ifndef TW_LOOK_H
#define TW_LOOK_H

#include "delivery.h"
#include "ring.h"

void tw_look_apply_stamp(struct tw_ring *ring, struct tw_found *found, u64 now);
u32 tw_look_find_due(struct tw_ring *ring, u64 now, unsigned int *work);
unsigned int tw_look_take(struct tw_ring *ring, u64 now, unsigned int *work,
			  struct tw_taken *batch, unsigned int max);
void tw_look_put_back(struct tw_ring *ring, const struct tw_taken *batch,
		      unsigned int n);
unsigned int tw_look_delivered(struct tw_ring *ring, const struct tw_taken *batch,
			       unsigned int n, u64 *due,
			       const struct tw_now *now,
			       struct tw_holder *holder);

#endif /* TW_LOOK_H */
