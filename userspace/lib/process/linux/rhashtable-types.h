/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header: see rhashtable.h. */
#ifndef TW_LINUX_RHASHTABLE_TYPES_H
#define TW_LINUX_RHASHTABLE_TYPES_H

#include <linux/types.h>

struct rhash_head {
	struct rhash_head	*next;
};

/* The kernel's buckets point to a type of their own, for a lock in the pointer. Here is no lock. */
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
	int (*obj_cmpfn)(struct rhashtable_compare_arg *arg, const void *obj);
};

/**
 * struct bucket_table - buckets in a row
 * @size: how many there is memory for
 * @used: how many are in use; grows one by one
 * @seed: the seed of the hash
 * @buckets: addresses for as many as there can be
 */
struct bucket_table {
	unsigned int		size;
	unsigned int		used;
	u64			seed;
	struct rhash_head	**buckets;
};

/**
 * struct rhashtable - a table of chains
 * @tbl: its buckets
 * @p: how it was set up
 * @nelems: objects in it
 * @table: the memory that @tbl points to
 */
struct rhashtable {
	struct bucket_table		*tbl;
	struct rhashtable_params	p;
	unsigned int			nelems;
	struct bucket_table		table;
};

#endif /* TW_LINUX_RHASHTABLE_TYPES_H */
