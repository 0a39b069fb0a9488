/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * User-space stand-in for the kernel's header: a table of chains that grows by linear hashing
 * (W. Litwin, "Linear hashing: a new tool for file and table addressing", 1980). Each
 * insertion into a table that is full splits one bucket, or two, into two. No insertion waits
 * until all objects are moved, as it does when a table doubles.
 *
 * Changes are under one lock. A look-up without this lock may miss an object that is being
 * moved to another chain, as in the kernel's table. Each chain has an end at all times.
 */
#ifndef TW_LINUX_RHASHTABLE_H
#define TW_LINUX_RHASHTABLE_H

#include <string.h>

#include "../row.h"

/* The number of buckets for which memory is asked for at once. */
#define RHT_PIECE	8192U

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

#define rcu_read_lock()		do { } while (0)
#define rcu_read_unlock()	do { } while (0)
#define rcu_dereference(p)	(p)
#define rht_dereference_rcu(p, ht)	((void)(ht), (p))
#define rht_ptr_rcu(bucket)	smp_load_acquire(bucket)

/* Multiplies and folds, with a seed: ids that somebody else chooses do not share a bucket. */
static inline u64 rht_fold(u64 a, u64 b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (u64)product ^ (u64)(product >> 64);
}

static inline u32 rht_hash(const struct bucket_table *tbl, const void *key)
{
	u64 id;

	memcpy(&id, key, sizeof(id));

	return rht_fold(rht_fold(id ^ tbl->seed, 0x9e3779b97f4a7c15ULL) ^ tbl->seed >> 7,
			0xd6e8feb86659fd93ULL);
}

/* The largest power of two that is not above @n. */
static inline u32 rht_whole(u32 n)
{
	return 1U << ilog2(n);
}

/* Returns the bucket of a hash among @size buckets. The second half of them is not complete yet. */
static inline u32 rht_bucket_nr(u32 hash, u32 size)
{
	u32 whole = rht_whole(size), nr = hash & (2 * whole - 1);

	return nr < size ? nr : nr & (whole - 1);
}

static inline u32 rht_key_hashfn(struct rhashtable *ht, const struct bucket_table *tbl,
				 const void *key, const struct rhashtable_params params)
{
	(void)ht;
	(void)params;

	/* Pairs with the release in rht_split(): the bucket has memory. */
	return rht_bucket_nr(rht_hash(tbl, key), smp_load_acquire(&tbl->used));
}

static inline struct rhash_head **rht_bucket(const struct bucket_table *tbl, u32 nr)
{
	return &tbl->buckets[nr];
}

static inline void *rht_object(const struct rhashtable_params *p, struct rhash_head *node)
{
	return (char *)node - p->head_offset;
}

static inline const void *rht_key(const struct rhashtable_params *p, struct rhash_head *node)
{
	return (char *)rht_object(p, node) + p->key_offset;
}

static inline void rht_push(struct rhash_head **bucket, struct rhash_head *node)
{
	smp_store_release(&node->next, *bucket);
	smp_store_release(bucket, node);
}

/* Whether the table may have one more bucket, and has memory for it. */
static inline bool rht_has_room(struct rhashtable *ht)
{
	struct bucket_table *tbl = ht->tbl;
	u32 size = min(tbl->size + RHT_PIECE, ht->p.max_size);

	if (tbl->used < tbl->size)
		return true;
	if (tbl->size == size ||
	    !tw_row_use(tbl->buckets, tbl->size * sizeof(*tbl->buckets),
			size * sizeof(*tbl->buckets)))
		return false;
	tbl->size = size;

	return true;
}

/* Adds a bucket, and moves its objects to it from the bucket whose turn it is. */
static inline void rht_split(struct rhashtable *ht)
{
	struct bucket_table *tbl = ht->tbl;
	u32 used = tbl->used;
	struct rhash_head **link, *node;

	if (!rht_has_room(ht))
		return;
	/* Pairs with the acquire in rht_key_hashfn(). */
	smp_store_release(&tbl->used, used + 1);
	link = rht_bucket(tbl, used - rht_whole(used));
	while ((node = *link)) {
		if (rht_bucket_nr(rht_hash(tbl, rht_key(&ht->p, node)), used + 1) != used) {
			link = &node->next;
			continue;
		}
		smp_store_release(link, node->next);
		rht_push(rht_bucket(tbl, used), node);
	}
}

static inline void *rht_find(struct rhashtable *ht, struct rhash_head *node, const void *key,
			     const struct rhashtable_params *p)
{
	struct rhashtable_compare_arg arg = { .ht = ht, .key = key };

	for (; node; node = smp_load_acquire(&node->next))
		if (!p->obj_cmpfn(&arg, rht_object(p, node)))
			return rht_object(p, node);

	return NULL;
}

static inline void *rhashtable_lookup_fast(struct rhashtable *ht, const void *key,
					   const struct rhashtable_params p)
{
	struct rhash_head **bucket = rht_bucket(ht->tbl, rht_key_hashfn(ht, ht->tbl, key, p));
	void *object = rht_find(ht, smp_load_acquire(bucket), key, &p);

	tw_race();

	return object;
}

/* Adds a bucket for this insertion, and one more if earlier insertions had no memory for theirs. */
static __attribute__((__noinline__, __unused__)) void rht_grow(struct rhashtable *ht)
{
	rht_split(ht);
	if (ht->nelems > ht->tbl->used)
		rht_split(ht);
}

static inline int rhashtable_lookup_insert_fast(struct rhashtable *ht, struct rhash_head *node,
						const struct rhashtable_params p)
{
	const void *key = rht_key(&p, node);
	struct rhash_head **bucket = rht_bucket(ht->tbl, rht_key_hashfn(ht, ht->tbl, key, p));

	if (rht_find(ht, *bucket, key, &p))
		return -EEXIST;
	rht_push(bucket, node);
	if (++ht->nelems > ht->tbl->used / 4 * 3 && ht->tbl->used < ht->p.max_size)
		rht_grow(ht);

	return 0;
}

static inline int rhashtable_remove_fast(struct rhashtable *ht, struct rhash_head *node,
					 const struct rhashtable_params p)
{
	struct rhash_head **link =
		rht_bucket(ht->tbl, rht_key_hashfn(ht, ht->tbl, rht_key(&p, node), p));

	while (*link && *link != node)
		link = &(*link)->next;
	if (!*link)
		return -ENOENT;
	smp_store_release(link, node->next);
	ht->nelems--;

	return 0;
}

static inline int rhashtable_init(struct rhashtable *ht, const struct rhashtable_params *params)
{
	const u32 size = max_t(u32, params->min_size, 4);

	*ht = (struct rhashtable) {
		.tbl	= &ht->table,
		.p	= *params,
		.table	= {
			.size		= size,
			.used		= size,
			.seed		= (u64)get_random_u32() << 32 | get_random_u32(),
		},
	};
	ht->p.max_size = max(ht->p.max_size, size);
	ht->table.buckets = tw_row_new(ht->p.max_size * sizeof(struct rhash_head *));
	if (!ht->table.buckets)
		return -ENOMEM;
	if (!tw_row_use(ht->table.buckets, 0, size * sizeof(struct rhash_head *))) {
		tw_row_free(ht->table.buckets, ht->p.max_size * sizeof(struct rhash_head *), 0);
		return -ENOMEM;
	}

	return 0;
}

static inline void rhashtable_destroy(struct rhashtable *ht)
{
	tw_row_free(ht->table.buckets, ht->p.max_size * sizeof(struct rhash_head *),
		    ht->table.size * sizeof(struct rhash_head *));
}

#endif /* TW_LINUX_RHASHTABLE_H */
