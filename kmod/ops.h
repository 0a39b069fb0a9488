/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Ops: the operations on tokens, as callers ask for them. Knows the wheel and the
 * layout of an operation; the operations are in kernel memory.
 */
#ifndef TW_OPS_H
#define TW_OPS_H

#include <linux/timewheel.h>

#include "clock.h"
#include "wheel.h"

/* The most operations in one hold of the lock. */
#define TW_MAX_OPS	16

/* The most entries, and the most keys, in one hold of the lock. */
#define TW_MAX_ENTRIES	32
#define TW_MAX_CANCELS	64

/**
 * struct tw_call - what a call is carried out with
 * @wheel: the wheel, set up
 * @offset: ns to add to host time for the process that asks, see clock.h
 * @now: the time, read with the lock if the call holds it
 */
struct tw_call {
	struct tw_wheel	*wheel;
	s64		offset;
	struct tw_now	now;
};

void tw_ops_run(struct tw_call *call, struct timewheel_op *ops, unsigned int n);
void tw_register_many(struct tw_call *call, const struct timewheel_register_many *many,
		      struct timewheel_entry *entries, unsigned int n);
void tw_cancel_many(struct tw_call *call, bool by_handle, const u64 *keys,
		    s32 *results, unsigned int n);

/* Returns a tick as a point of time of the caller's. */
static inline u64 tw_tick_shown(const struct tw_call *call, u64 tick)
{
	return tw_clock_to_user(tick * call->wheel->ring.tick, call->offset);
}

#endif /* TW_OPS_H */
