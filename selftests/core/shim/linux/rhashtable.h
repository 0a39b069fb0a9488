/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header. */
#ifndef SHIM_LINUX_RHASHTABLE_H
#define SHIM_LINUX_RHASHTABLE_H

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/rhashtable-types.h>

#define rcu_read_lock()		do { } while (0)
#define rcu_read_unlock()	do { } while (0)
#define rcu_dereference(p)	smp_load_acquire(&(p))
#define rht_dereference_rcu(p, ht)	((void)(ht), smp_load_acquire(&(p)))
#define rht_ptr_rcu(bucket)	smp_load_acquire(bucket)

unsigned int rht_key_hashfn(struct rhashtable *ht,
			    const struct bucket_table *tbl, const void *key,
			    const struct rhashtable_params params);

static inline struct rhash_head *const *
rht_bucket(const struct bucket_table *tbl, unsigned int hash)
{
	return &tbl->buckets[hash];
}

int rhashtable_init(struct rhashtable *ht,
		    const struct rhashtable_params *params);
void rhashtable_destroy(struct rhashtable *ht);
void *rhashtable_lookup_fast(struct rhashtable *ht, const void *key,
			     const struct rhashtable_params params);
int rhashtable_lookup_insert_fast(struct rhashtable *ht,
				  struct rhash_head *node,
				  const struct rhashtable_params params);
int rhashtable_remove_fast(struct rhashtable *ht, struct rhash_head *node,
			   const struct rhashtable_params params);

#endif /* SHIM_LINUX_RHASHTABLE_H */
