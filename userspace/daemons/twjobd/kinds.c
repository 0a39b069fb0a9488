// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kinds of stores of twjobd. The program twjobd-postgresql has other kinds: see
 * postgresql/kinds.c.
 */
#include "store.h"

const struct store * const store_kinds[] = {
	&store_sqlite,
	&store_memory,
};

const size_t store_nr_kinds = ARRAY_SIZE(store_kinds);
