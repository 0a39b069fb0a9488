// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kinds of stores: see store.h.
 */
#include <string.h>

#include "store.h"

static const struct store * const kinds[] = {
	&store_sqlite,
	&store_memory,
};

const struct store *store;
unsigned char store_secret[16];

/* The first kind takes what no other one has as its name. */
void store_start(void)
{
	store = kinds[0];
	for (size_t i = 1; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(config.store, kinds[i]->name))
			store = kinds[i];
	store->open(config.store);
}
