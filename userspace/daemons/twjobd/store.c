// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses the store that the configuration names: see store.h. This part knows no kind of store.
 */
#include <string.h>

#include "store.h"

const struct store *store;

/* The text before the first ":" names a kind of store. The first kind has no name. */
const struct store *store_find(const char *value)
{
	size_t length = strcspn(value, ":");

	for (size_t i = 1; i < store_nr_kinds; i++)
		if (!strncmp(value, store_kinds[i]->name, length) &&
		    !store_kinds[i]->name[length])
			return store_kinds[i];
	return store_kinds[0];
}

uint64_t store_longest_body(void)
{
	return config.max_body < store_max_body ? config.max_body : store_max_body;
}

bool store_may_init(void)
{
	for (size_t i = 0; i < store_nr_kinds; i++)
		if (store_kinds[i]->init)
			return true;
	return false;
}

void store_init(void)
{
	const struct store *kind = store_find(config.store);

	if (!kind->init)
		die(0, "this store is made when twjobd starts");
	kind->init(config.store);
}

void store_start(void)
{
	store = store_find(config.store);
	store->open(config.store);
}
