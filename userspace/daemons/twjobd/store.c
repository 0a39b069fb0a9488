// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which store is used: see store.h.
 */
#include <string.h>

#include "store.h"

const struct store *store;
unsigned char store_secret[16];
int64_t store_ahead;

/* A kind is named by what is before the first ":". The first kind has no name. */
static const struct store *find_kind(const char *value)
{
	size_t length = strcspn(value, ":");

	for (size_t i = 1; i < store_nr_kinds; i++)
		if (!strncmp(value, store_kinds[i]->name, length) &&
		    !store_kinds[i]->name[length])
			return store_kinds[i];
	return store_kinds[0];
}

const char *store_parse(const struct config_key *key, void *field, const char *value)
{
	return find_kind(value)->name ? config_text(key, field, value) :
					config_path(key, field, value);
}

void store_start(void)
{
	store = find_kind(config.store);
	store->open(config.store);
}
