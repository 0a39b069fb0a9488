/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header, in which an insertion may fail. */
#ifndef SHIM_LINUX_RHASHTABLE_H
#define SHIM_LINUX_RHASHTABLE_H

#include_next <linux/rhashtable.h>

#include "../shim.h"

static inline int shim_insert(struct rhashtable *ht, struct rhash_head *node,
			      const struct rhashtable_params params)
{
	int err = shim_fail_insert;

	shim_fail_insert = 0;

	return err ?: rhashtable_lookup_insert_fast(ht, node, params);
}

#define rhashtable_lookup_insert_fast	shim_insert

#endif /* SHIM_LINUX_RHASHTABLE_H */
