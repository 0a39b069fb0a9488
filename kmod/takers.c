// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takers: the readers of a wheel with leases, each known by its open file.
 *
 * A file's taker comes with its first read and goes with the file's release. A
 * caller that looks one up has the file open, so it stays; others on the same chain
 * may go meanwhile, and so their memory waits for a grace period.
 */
#include <linux/rhashtable.h>
#include <linux/slab.h>

#include "blocks.h"
#include "takers.h"

/**
 * struct tw_file_taker - a taker and where it is found
 * @taker: the taker
 * @file: the key; constant
 * @node: in the table
 * @rcu: to free it
 */
struct tw_file_taker {
	struct tw_taker		taker;
	const void		*file;
	struct rhash_head	node;
	struct rcu_head		rcu;
};

static const struct rhashtable_params tw_takers_params = {
	.key_len		= sizeof_field(struct tw_file_taker, file),
	.key_offset		= offsetof(struct tw_file_taker, file),
	.head_offset		= offsetof(struct tw_file_taker, node),
	.automatic_shrinking	= true,
};

static void tw_taker_free(void *taker, void *unused)
{
	kfree(taker);
}

int tw_takers_init(struct tw_takers *takers)
{
	int err = rhashtable_init(&takers->table, &tw_takers_params);

	takers->ready = !err;

	return err;
}

/*
 * Frees all takers, if there are any, and their table. No thread uses them any more.
 * May be called again. May sleep.
 */
void tw_takers_destroy(struct tw_takers *takers)
{
	if (takers->ready)
		rhashtable_free_and_destroy(&takers->table, tw_taker_free, NULL);
	takers->ready = false;
}

/* The taker of a file, or NULL. Valid as long as the caller has the file. */
struct tw_taker *tw_takers_find(struct tw_takers *takers, const void *file)
{
	struct tw_file_taker *found;

	if (!takers->ready)
		return NULL;
	found = rhashtable_lookup_fast(&takers->table, &file, tw_takers_params);

	return found ? &found->taker : NULL;
}

/**
 * tw_takers_get() - the taker of a file, a new one if there is none
 * @takers: the takers of a wheel with leases
 * @file: the file, which the caller has open
 * @nowait: not to wait for memory
 *
 * May sleep unless @nowait.
 *
 * Return: the taker, or NULL when there is no memory.
 */
struct tw_taker *tw_takers_get(struct tw_takers *takers, const void *file,
			       bool nowait)
{
	struct tw_taker *found = tw_takers_find(takers, file);
	struct tw_file_taker *new;

	if (found)
		return found;
	new = kzalloc(sizeof(*new), nowait ? TW_GFP_NOWAIT : TW_GFP);
	if (!new)
		return NULL;
	new->file = file;
	if (!rhashtable_lookup_insert_fast(&takers->table, &new->node,
					   tw_takers_params))
		return &new->taker;
	/* Another thread was faster, or the table has no room. */
	kfree(new);

	return tw_takers_find(takers, file);
}

/* A file is released, and all that its taker held has been returned. */
void tw_takers_remove(struct tw_takers *takers, struct tw_taker *taker)
{
	struct tw_file_taker *old =
		container_of(taker, struct tw_file_taker, taker);

	rhashtable_remove_fast(&takers->table, &old->node, tw_takers_params);
	kfree_rcu(old, rcu);
}
