/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for the kernel's header: see rhashtable.h.
 */
#ifndef BENCH_LINUX_RHASHTABLE_TYPES_H
#define BENCH_LINUX_RHASHTABLE_TYPES_H

#include <linux/limits.h>
#include <linux/types.h>

struct rhash_head {
	struct rhash_head	*next;
};

/* What the kernel's buckets point to: the same, but for a lock in the pointer. */
#define rhash_lock_head	rhash_head
#define __rcu

struct rhashtable_compare_arg {
	struct rhashtable	*ht;
	const void		*key;
};

typedef int (*rht_obj_cmpfn_t)(struct rhashtable_compare_arg *arg,
			       const void *obj);

struct rhashtable_params {
	u16		key_len;
	u16		key_offset;
	u16		head_offset;
	unsigned int	max_size;
	u16		min_size;
	bool		automatic_shrinking;
	rht_obj_cmpfn_t	obj_cmpfn;
};

struct bucket_table {
	unsigned int		size;
	u32			hash_rnd;
	struct rhash_head	*buckets[];
};

struct rhashtable {
	struct bucket_table		*tbl;
	struct rhashtable_params	p;
	unsigned int			nelems;
	unsigned int			max_elems;
};

#endif /* BENCH_LINUX_RHASHTABLE_TYPES_H */
