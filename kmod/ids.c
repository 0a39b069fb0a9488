// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ids: which token has which id, by an rhashtable whose objects stay in the
 * arena: freed tokens remain readable, so no grace period is waited for. An
 * rhashtable walk starts over when an object was moved to another chain under
 * it, so a look-up misses no id that is there throughout.
 */
#include "ids.h"

static int tw_ids_compare(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct tw_named *named = obj;

	return READ_ONCE(named->id) != *(const u64 *)arg->key;
}

static const struct rhashtable_params tw_ids_params = {
	.key_len		= sizeof_field(struct tw_named, id),
	.key_offset		= offsetof(struct tw_named, id),
	.head_offset		= offsetof(struct tw_named, node),
	.obj_cmpfn		= tw_ids_compare,
	.automatic_shrinking	= true,
};

/* @max: most ids at once, which bounds the table. */
int tw_ids_init(struct rhashtable *ids, u32 max)
{
	struct rhashtable_params params = tw_ids_params;

	params.max_size = roundup_pow_of_two(max);
	return rhashtable_init(ids, &params);
}

void tw_ids_destroy(struct rhashtable *ids)
{
	rhashtable_destroy(ids);
}

/**
 * tw_ids_insert() - enter a token's id
 * @ids: the table
 * @named: the token, its id set
 *
 * Return: 0; -EEXIST; -ENOMEM; -EBUSY while the table is being rearranged: let
 * go of the lock and come again.
 */
int tw_ids_insert(struct rhashtable *ids, struct tw_named *named)
{
	return rhashtable_lookup_insert_fast(ids, &named->node, tw_ids_params);
}

void tw_ids_remove(struct rhashtable *ids, struct tw_named *named)
{
	rhashtable_remove_fast(ids, &named->node, tw_ids_params);
}

/* Finds the token with an id, which may be another one's a moment later. */
struct tw_named *tw_ids_find(struct rhashtable *ids, u64 id)
{
	return rhashtable_lookup_fast(ids, &id, tw_ids_params);
}

/* The bucket table: the one part that no memory cgroup is charged for. */
size_t tw_ids_bytes(struct rhashtable *ids)
{
	size_t buckets;

	rcu_read_lock();
	buckets = rcu_dereference(ids->tbl)->size;
	rcu_read_unlock();

	return buckets * sizeof(struct rhash_head *);
}
