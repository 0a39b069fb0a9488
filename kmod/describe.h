/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Describe: what there is to say of tokens, by key or one after the other.
 */
#ifndef TW_DESCRIBE_H
#define TW_DESCRIBE_H

#include <linux/timewheel.h>

#include "ops.h"

/* The most tokens that are told of in one hold of the lock. */
#define TW_MAX_TOLD	8

void tw_describe_keys(struct tw_call *call, bool by_handle, const u64 *keys,
		      struct timewheel_token *tokens, unsigned int n);
unsigned int tw_describe_next(struct tw_call *call, struct timewheel_list *list,
			      struct timewheel_token *tokens, unsigned int max);

#endif /* TW_DESCRIBE_H */
