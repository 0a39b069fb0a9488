/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Takers: the readers of a wheel with leases, each known by its open file.
 * Of the file only the address is known, as a key.
 */
#ifndef TW_TAKERS_H
#define TW_TAKERS_H

#include <linux/rhashtable-types.h>

#include "delivery.h"

/**
 * struct tw_takers - the takers of a wheel, if it has leases
 * @table: file to taker; its own lock
 * @ready: there is a table; constant
 */
struct tw_takers {
	struct rhashtable	table;
	bool			ready;
};

int tw_takers_init(struct tw_takers *takers);
void tw_takers_destroy(struct tw_takers *takers);
struct tw_taker *tw_takers_find(struct tw_takers *takers, const void *file);
struct tw_taker *tw_takers_get(struct tw_takers *takers, const void *file,
			       bool nowait);
void tw_takers_remove(struct tw_takers *takers, struct tw_taker *taker);

#endif /* TW_TAKERS_H */
