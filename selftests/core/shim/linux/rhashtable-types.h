/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for the kernel's header: a chained hash table that grows.
 * As in the kernel, objects may be removed and inserted while others look up,
 * and nothing waits for them. Insertions and removals are under one lock.
 */
#ifndef SHIM_LINUX_RHASHTABLE_TYPES_H
#define SHIM_LINUX_RHASHTABLE_TYPES_H

#include <linux/limits.h>
#include <linux/types.h>

struct rhash_head {
	struct rhash_head	*next;
};

/* What the kernel's buckets point to: the same, but for a lock in the pointer. */
#define rhash_lock_head	rhash_head
#define __rcu

struct rhashtable;

struct rhashtable_compare_arg {
	struct rhashtable	*ht;
	const void		*key;
};

struct rhashtable_params {
	u16			key_len;
	u16			key_offset;
	u16			head_offset;
	unsigned int		max_size;
	u16			min_size;
	bool			automatic_shrinking;
	int (*obj_cmpfn)(struct rhashtable_compare_arg *arg, const void *obj);
};

/* @old: the table before it grew, which others may still look at. */
struct bucket_table {
	unsigned int		size;
	struct bucket_table	*old;
	struct rhash_head	*buckets[];
};

/* @changes: odd during a change. */
struct rhashtable {
	struct bucket_table		*tbl;
	struct rhashtable_params	p;
	unsigned int			nelems;
	unsigned int			max_elems;
	unsigned int			changes;
};

#endif /* SHIM_LINUX_RHASHTABLE_TYPES_H */
