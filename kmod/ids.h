/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Ids: which token has which id. Changes are under the ring's lock; a look-up
 * needs none, and what it finds must be checked by the token's word and id,
 * because tokens are used again while others look.
 */
#ifndef TW_IDS_H
#define TW_IDS_H

#include <linux/rhashtable.h>

#include "token.h"

/* The most ids that are fetched together. */
#define TW_IDS_AHEAD	64

int tw_ids_init(struct rhashtable *ids, u32 max);
void tw_ids_destroy(struct rhashtable *ids);
int tw_ids_insert(struct rhashtable *ids, struct tw_id_token *token);
void tw_ids_remove(struct rhashtable *ids, struct tw_id_token *token);
struct tw_id_token *tw_ids_find(struct rhashtable *ids, u64 id);
void tw_ids_prefetch(struct rhashtable *ids, const u64 *id, unsigned int n);
size_t tw_ids_bytes(struct rhashtable *ids);

#endif /* TW_IDS_H */
