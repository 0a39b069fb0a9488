// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stand-ins for the kernel that are more than a line: memory, which is
 * counted and may be made to fail, and the hash table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/mm.h>
#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "shim.h"

/* In front of what kvcalloc() gives; keeps its alignment. */
struct shim_size {
	size_t	size;
	size_t	pad;
};

__thread int shim_locks_held;
unsigned int shim_fail_alloc;
int shim_fail_insert;

static size_t bytes;

void shim_bug(const char *what, const char *file, int line)
{
	fprintf(stderr, "# %s at %s:%d\n", what, file, line);
	abort();
}

/*
 * Memory.
 */

size_t shim_bytes(void)
{
	return READ_ONCE(bytes);
}

static void count(size_t added)
{
	__atomic_fetch_add(&bytes, added, __ATOMIC_RELAXED);
}

static bool fails(void)
{
	might_sleep();
	return shim_fail_alloc && !--shim_fail_alloc;
}

void *alloc_pages_exact(size_t size, gfp_t gfp)
{
	void *pages;

	if (fails())
		return NULL;
	pages = aligned_alloc(PAGE_SIZE, PAGE_ALIGN(size));
	if (!pages)
		return NULL;
	memset(pages, gfp & __GFP_ZERO ? 0 : 0xa5, size);
	count(size);

	return pages;
}

void free_pages_exact(void *pages, size_t size)
{
	might_sleep();
	count(-size);
	free(pages);
}

void *kvcalloc(size_t n, size_t size, gfp_t gfp)
{
	struct shim_size *memory;

	(void)gfp;
	if (fails())
		return NULL;
	memory = calloc(1, sizeof(*memory) + n * size);
	if (!memory)
		return NULL;
	memory->size = n * size;
	count(memory->size);

	return memory + 1;
}

void kvfree(const void *memory)
{
	struct shim_size *head;

	might_sleep();
	if (!memory)
		return;
	head = (struct shim_size *)memory - 1;
	count(-head->size);
	free(head);
}

/*
 * The hash table. A look-up that finds nothing while the table changes starts
 * over; what it finds may be another object a moment later. Every pointer that
 * a look-up follows is stored with a release and loaded with an acquire.
 */

static void *object(const struct rhashtable *ht, struct rhash_head *node)
{
	return (char *)node - ht->p.head_offset;
}

unsigned int rht_key_hashfn(struct rhashtable *ht,
			    const struct bucket_table *tbl, const void *key,
			    const struct rhashtable_params params)
{
	u64 hash;

	(void)ht;
	(void)params;
	memcpy(&hash, key, sizeof(hash));
	hash *= 0x9e3779b97f4a7c15ULL;

	return (hash >> 32) & (tbl->size - 1);
}

static struct rhash_head **bucket(struct rhashtable *ht,
				  struct bucket_table *tbl, const void *key)
{
	return &tbl->buckets[rht_key_hashfn(ht, tbl, key, ht->p)];
}

static struct rhash_head **bucket_of(struct rhashtable *ht,
				     struct bucket_table *tbl,
				     struct rhash_head *node)
{
	return bucket(ht, tbl, (char *)object(ht, node) + ht->p.key_offset);
}

static struct bucket_table *new_table(unsigned int size)
{
	struct bucket_table *tbl;

	tbl = calloc(1, sizeof(*tbl) + size * sizeof(*tbl->buckets));
	if (tbl) {
		tbl->size = size;
		count(size * sizeof(*tbl->buckets));
	}

	return tbl;
}

static void change(struct rhashtable *ht)
{
	__atomic_fetch_add(&ht->changes, 1, __ATOMIC_SEQ_CST);
}

static void link_node(struct rhashtable *ht, struct bucket_table *tbl,
		      struct rhash_head *node)
{
	struct rhash_head **head = bucket_of(ht, tbl, node);

	smp_store_release(&node->next, *head);
	smp_store_release(head, node);
}

/* The old table stays, for those who look at it, but counts no longer. */
static void grow(struct rhashtable *ht)
{
	struct bucket_table *old = ht->tbl, *tbl = new_table(2 * old->size);
	unsigned int i;

	if (!tbl)
		return;
	tbl->old = old;
	for (i = 0; i < old->size; i++) {
		while (old->buckets[i]) {
			struct rhash_head *node = old->buckets[i];

			smp_store_release(&old->buckets[i], node->next);
			link_node(ht, tbl, node);
		}
	}
	smp_store_release(&ht->tbl, tbl);
	count(-(old->size * sizeof(*old->buckets)));
}

int rhashtable_init(struct rhashtable *ht,
		    const struct rhashtable_params *params)
{
	if (params->key_len != sizeof(u64))
		return -EINVAL;
	if (fails())
		return -ENOMEM;
	*ht = (struct rhashtable) {
		.p		= *params,
		.tbl		= new_table(max_t(u32, params->min_size, 4)),
		.max_elems	= 2 * params->max_size,
	};

	return ht->tbl ? 0 : -ENOMEM;
}

void rhashtable_destroy(struct rhashtable *ht)
{
	struct bucket_table *tbl = ht->tbl;

	might_sleep();
	count(-(tbl->size * sizeof(*tbl->buckets)));
	while (tbl) {
		struct bucket_table *old = tbl->old;

		free(tbl);
		tbl = old;
	}
}

void *rhashtable_lookup_fast(struct rhashtable *ht, const void *key,
			     const struct rhashtable_params params)
{
	struct rhashtable_compare_arg arg = { .ht = ht, .key = key };
	unsigned int changes;

	do {
		struct rhash_head *node;

		changes = smp_load_acquire(&ht->changes);
		node = smp_load_acquire(bucket(ht, smp_load_acquire(&ht->tbl),
					       key));
		for (; node; node = smp_load_acquire(&node->next))
			if (!params.obj_cmpfn(&arg, object(ht, node))) {
				shim_race();
				return object(ht, node);
			}
	} while (changes & 1 || smp_load_acquire(&ht->changes) != changes);

	return NULL;
}

int rhashtable_lookup_insert_fast(struct rhashtable *ht,
				  struct rhash_head *node,
				  const struct rhashtable_params params)
{
	int err = shim_fail_insert;

	if (err) {
		shim_fail_insert = 0;
		return err;
	}
	if (rhashtable_lookup_fast(ht, (char *)object(ht, node) +
				   ht->p.key_offset, params))
		return -EEXIST;
	if (ht->nelems >= ht->max_elems)
		return -E2BIG;

	change(ht);
	if (ht->nelems >= ht->tbl->size && ht->tbl->size < ht->p.max_size)
		grow(ht);
	link_node(ht, ht->tbl, node);
	ht->nelems++;
	change(ht);

	return 0;
}

int rhashtable_remove_fast(struct rhashtable *ht, struct rhash_head *node,
			   const struct rhashtable_params params)
{
	struct rhash_head **link = bucket_of(ht, ht->tbl, node);

	(void)params;
	while (*link && *link != node)
		link = &(*link)->next;
	if (!*link)
		return -ENOENT;

	change(ht);
	smp_store_release(link, node->next);
	ht->nelems--;
	change(ht);

	return 0;
}
