// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs that could not be claimed: see suspects.h. There are few such jobs at a time. If there are
 * more, the oldest ones are forgotten.
 */
#include <stddef.h>

#include "suspects.h"

#define MOST		128
/*
 * A job is condemned only after this many failures, because the end of a server may look like a
 * failure of the single job that was claimed at that moment.
 */
#define TRIES		3

static struct suspect {
	int64_t id;		/* 0: this entry is free */
	int failures;		/* failures of claims of this job alone */
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
		/* A claim did not ask for the body of a condemned job, so it proves nothing. */
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
