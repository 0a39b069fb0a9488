// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows of a turn: see rows.h. A turn has some hundreds of rows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

#define BUCKETS		1024

static struct row *buckets[BUCKETS];
static bool used;

struct row *rows_find(int64_t id)
{
	struct row *row = buckets[(uint64_t)id % BUCKETS];

	while (row && row->job.id != id)
		row = row->next;
	return row;
}

struct row *rows_add(int64_t id)
{
	struct row *row = rows_find(id);

	if (row)
		return row;
	row = calloc(1, sizeof(*row));
	if (!row)
		die(ENOMEM, "a row");
	row->job.id = id;
	row->next = buckets[(uint64_t)id % BUCKETS];
	buckets[(uint64_t)id % BUCKETS] = row;
	used = true;
	return row;
}

void row_forget_body(struct row *row)
{
	free((char *)row->body.data);
	row->body = (struct bytes) { };
	row->has_body = false;
}

void row_set_body(struct row *row, struct bytes body)
{
	char *copy = malloc(body.length + 1);

	if (!copy)
		die(ENOMEM, "a body");
	memcpy(copy, body.data, body.length);
	row_forget_body(row);
	row->body = (struct bytes) { copy, body.length };
	row->has_body = true;
}

void row_set_rule(struct row *row, const struct rule *rule)
{
	if (!row->rule)
		row->rule = malloc(sizeof(*rule));
	if (!row->rule)
		die(ENOMEM, "a rule");
	*row->rule = *rule;
}

void rows_clear(void)
{
	for (int i = 0; used && i < BUCKETS; i++) {
		while (buckets[i]) {
			struct row *row = buckets[i];

			buckets[i] = row->next;
			row_forget_body(row);
			free(row->rule);
			free(row);
		}
	}
	used = false;
}
