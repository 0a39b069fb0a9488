// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kinds of stores of twjobd-postgresql.
 */
#include "store_pg.h"

const struct store * const store_kinds[] = {
	&store_sqlite,
	&store_memory,
	&store_pg,
};

const size_t store_nr_kinds = ARRAY_SIZE(store_kinds);
