/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ops: the operations on tokens, as callers ask for them. Knows the wheel, the
 * layout of an operation, and by which file it came; the operations are in
 * kernel memory.
 */
#ifndef TW_OPS_H
#define TW_OPS_H

#include <linux/timewheel.h>

#include "wheel.h"

/* Most operations, and keys, of one call: few enough for one hold of the lock. */
#define TW_MAX_OPS	16
#define TW_MAX_KEYS	64

/**
 * struct tw_caller - who asks
 * @offset: ns to add to host time for this process, see clock.h
 * @file: the open file of the wheel that it came by: a key, and no more
 * @may_write: may change the wheel
 */
struct tw_caller {
	s64		offset;
	const void	*file;
	bool		may_write;
};

void tw_ops_run(struct tw_wheel *wheel, const struct tw_caller *caller,
		struct timewheel_op *ops, unsigned int n);
unsigned int tw_ops_list(struct tw_wheel *wheel, const struct tw_caller *caller,
			 struct timewheel_list *list,
			 struct timewheel_token *tokens, unsigned int max);
long tw_ops_touch(struct tw_wheel *wheel, u32 flags, u64 key);
int tw_ops_touch_many(struct tw_wheel *wheel, u32 flags, const u64 *keys,
		      unsigned int n, unsigned int *done);

#endif /* TW_OPS_H */
