/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for the kernel's header: a hash table that does the same
 * work per operation. Chains of objects; Jenkins' hash of the key, seeded; the
 * caller's comparison, inlined; to change a chain, a lock in bit 0 of its bucket
 * and an atomic count of the elements; twice the buckets when they are three
 * quarters full. What it lacks: RCU and the disabling of bottom halves, cheap in
 * the kernel, and the worker that adds buckets later: here that is done at once.
 */
#ifndef BENCH_LINUX_RHASHTABLE_H
#define BENCH_LINUX_RHASHTABLE_H

#include <stdlib.h>
#include <string.h>

#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/rhashtable-types.h>

#define rcu_read_lock()		do { } while (0)
#define rcu_read_unlock()	do { } while (0)
#define rcu_dereference(p)	READ_ONCE(p)
#define rht_dereference_rcu(p, ht)	((void)(ht), READ_ONCE(p))

#define RHT_LOCKED	1UL

static inline u32 rht_rotate(u32 word, int shift)
{
	return word << shift | word >> (32 - shift);
}

/* Of two u32, as jhash2() does it. */
static inline u32 rht_hash(const void *key, u32 seed)
{
	u32 a, b, c, part[2];

	memcpy(part, key, sizeof(part));
	c = 0xdeadbeef + (2 << 2) + seed;
	b = c + part[1];
	a = c + part[0];
	c = (c ^ b) - rht_rotate(b, 14);
	a = (a ^ c) - rht_rotate(c, 11);
	b = (b ^ a) - rht_rotate(a, 25);
	c = (c ^ b) - rht_rotate(b, 16);
	a = (a ^ c) - rht_rotate(c, 4);
	b = (b ^ a) - rht_rotate(a, 14);
	c = (c ^ b) - rht_rotate(b, 24);

	return c;
}

static inline u32 rht_key_hashfn(struct rhashtable *ht,
				 const struct bucket_table *tbl, const void *key,
				 const struct rhashtable_params params)
{
	(void)ht;
	(void)params;

	return rht_hash(key, tbl->hash_rnd) & (tbl->size - 1);
}

static inline struct rhash_head *const *
rht_bucket(const struct bucket_table *tbl, u32 hash)
{
	return &tbl->buckets[hash];
}

static inline struct rhash_head **rht_bucket_of(struct bucket_table *tbl,
						const void *key)
{
	return &tbl->buckets[rht_hash(key, tbl->hash_rnd) & (tbl->size - 1)];
}

static inline void *rht_obj(struct rhash_head *node,
			    const struct rhashtable_params *p)
{
	return (char *)node - p->head_offset;
}

static inline const void *rht_key(struct rhash_head *node,
				  const struct rhashtable_params *p)
{
	return (char *)rht_obj(node, p) + p->key_offset;
}

static inline struct rhash_head *rht_first(struct rhash_head *const *bucket)
{
	return (void *)((unsigned long)smp_load_acquire(bucket) & ~RHT_LOCKED);
}

#define rht_ptr_rcu(bucket)	rht_first(bucket)

static inline struct rhash_head *rht_lock(struct rhash_head **bucket)
{
	while (__atomic_fetch_or((unsigned long *)bucket, RHT_LOCKED,
				 __ATOMIC_ACQUIRE) & RHT_LOCKED)
		__builtin_ia32_pause();

	return rht_first(bucket);
}

static inline void rht_unlock(struct rhash_head **bucket,
			      struct rhash_head *first)
{
	smp_store_release(bucket, first);
}

static inline struct bucket_table *rht_new(unsigned int size)
{
	struct bucket_table *tbl = calloc(1, sizeof(*tbl) +
					  size * sizeof(*tbl->buckets));

	if (tbl) {
		tbl->size = size;
		tbl->hash_rnd = 0x12345678;
	}

	return tbl;
}

static __attribute__((noinline)) int
rht_grow(struct rhashtable *ht, const struct rhashtable_params *p)
{
	struct bucket_table *old = ht->tbl, *tbl = rht_new(2 * old->size);
	unsigned int i;

	if (!tbl)
		return -ENOMEM;
	for (i = 0; i < old->size; i++) {
		while (old->buckets[i]) {
			struct rhash_head *node = old->buckets[i];
			struct rhash_head **to = rht_bucket_of(tbl, rht_key(node, p));

			old->buckets[i] = node->next;
			node->next = *to;
			*to = node;
		}
	}
	ht->tbl = tbl;
	free(old);

	return 0;
}

static inline int rhashtable_init(struct rhashtable *ht,
				  const struct rhashtable_params *params)
{
	*ht = (struct rhashtable) {
		.p		= *params,
		.tbl		= rht_new(max_t(u32, params->min_size, 4)),
		.max_elems	= 2 * params->max_size,
	};

	return ht->tbl ? 0 : -ENOMEM;
}

static inline void rhashtable_destroy(struct rhashtable *ht)
{
	free(ht->tbl);
}

static inline void *rht_find(struct rhashtable *ht, struct rhash_head *node,
			     const void *key, rht_obj_cmpfn_t compare,
			     const struct rhashtable_params *p)
{
	struct rhashtable_compare_arg arg = { .ht = ht, .key = key };

	for (; node; node = smp_load_acquire(&node->next))
		if (!compare(&arg, rht_obj(node, p)))
			return rht_obj(node, p);

	return NULL;
}

static inline void *rhashtable_lookup_fast(struct rhashtable *ht,
					   const void *key,
					   const struct rhashtable_params p)
{
	return rht_find(ht, rht_first(rht_bucket_of(READ_ONCE(ht->tbl), key)), key,
			p.obj_cmpfn, &p);
}

static inline int rhashtable_lookup_insert_fast(struct rhashtable *ht,
						struct rhash_head *node,
						const struct rhashtable_params p)
{
	const void *key = rht_key(node, &p);
	struct rhash_head **bucket = rht_bucket_of(ht->tbl, key);
	struct rhash_head *first = rht_lock(bucket);
	int err = 0;

	if (rht_find(ht, first, key, p.obj_cmpfn, &p))
		err = -EEXIST;
	else if (READ_ONCE(ht->nelems) >= ht->max_elems)
		err = -E2BIG;
	if (err) {
		rht_unlock(bucket, first);
		return err;
	}
	node->next = first;
	rht_unlock(bucket, node);
	if (__atomic_add_fetch(&ht->nelems, 1, __ATOMIC_SEQ_CST) >
	    ht->tbl->size / 4 * 3 && ht->tbl->size < ht->p.max_size)
		return rht_grow(ht, &p);

	return 0;
}

static inline int rhashtable_remove_fast(struct rhashtable *ht,
					 struct rhash_head *node,
					 const struct rhashtable_params p)
{
	struct rhash_head **bucket = rht_bucket_of(ht->tbl, rht_key(node, &p));
	struct rhash_head *first = rht_lock(bucket);
	struct rhash_head **link = &first;

	while (*link && *link != node)
		link = &(*link)->next;
	if (!*link) {
		rht_unlock(bucket, first);
		return -ENOENT;
	}
	smp_store_release(link, node->next);
	rht_unlock(bucket, first);
	__atomic_sub_fetch(&ht->nelems, 1, __ATOMIC_SEQ_CST);

	return 0;
}

#endif /* BENCH_LINUX_RHASHTABLE_H */
