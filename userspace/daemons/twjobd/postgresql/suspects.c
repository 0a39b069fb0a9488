// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs that could not be claimed: see suspects.h. There are few at a time; if there are more,
 * the oldest ones are forgotten.
 */
#include <stddef.h>

#include "suspects.h"

#define MOST		128
/* The end of a server may look like a failure of the one job that was claimed just then. */
#define TRIES		3

static struct suspect {
	int64_t id;		/* 0: none */
	int failures;		/* when it was claimed by itself */
} suspects[MOST];
static unsigned int next;

static struct suspect *find(int64_t id)
{
	for (int i = 0; i < MOST; i++)
		if (suspects[i].id == id)
			return &suspects[i];
	return NULL;
}

static struct suspect *add(int64_t id)
{
	struct suspect *suspect = &suspects[next++ % MOST];

	*suspect = (struct suspect) { .id = id };
	return suspect;
}

void suspects_note(const int64_t *ids, int count, bool failed)
{
	for (int i = 0; i < count; i++) {
		struct suspect *suspect = find(ids[i]);

		if (failed && !suspect)
			suspect = add(ids[i]);
		/* The body of one that is condemned was not asked for. */
		if (!failed && suspect && suspect->failures < TRIES)
			*suspect = (struct suspect) { };
		else if (failed)
			suspect->failures += count == 1;
	}
}

bool suspects_have(int64_t id)
{
	return find(id);
}

bool suspects_condemn(int64_t id)
{
	const struct suspect *suspect = find(id);

	return suspect && suspect->failures >= TRIES;
}
