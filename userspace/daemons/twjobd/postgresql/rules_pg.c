// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rules in the store on PostgreSQL: see ../rule.h. A rule is read together with its job's
 * row, and is as new as the row, because only the turn that has locked the row changes the rule.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "member.h"
#include "rows.h"
#include "store_pg.h"

int pg_save_rule(int64_t job, const struct rule *rule)
{
	row_set_rule(rows_add(job), rule);
	pg_number(job);
	pg_bytes((struct bytes) { rule->text, strlen(rule->text) });
	pg_bytes((struct bytes) { rule->zone, strlen(rule->zone) });
	pg_number(rule->start);
	pg_number(rule->missed);
	pg_number(rule->overlap);
	pg_number(rule->at.local);
	pg_number(rule->at.utc);
	pg_number(rule->at.again);
	pg_number(rule->at.number);
	return pg_send(SAVE_RULE);
}

static void copy_text(char *text, size_t size, struct bytes from)
{
	if (from.length < size)
		memcpy(text, from.data, from.length);
}

static void keep_rule(const PGresult *rows, int i)
{
	struct rule rule = {
		.start = pg_int(rows, i, 3),
		.missed = pg_int(rows, i, 4),
		.overlap = pg_int(rows, i, 5),
		.at = {
			.local = pg_int(rows, i, 6),
			.utc = pg_int(rows, i, 7),
			.again = pg_int(rows, i, 8),
			.number = pg_int(rows, i, 9),
		},
	};

	copy_text(rule.text, sizeof(rule.text), pg_blob(rows, i, 1));
	copy_text(rule.zone, sizeof(rule.zone), pg_blob(rows, i, 2));
	row_set_rule(rows_add(pg_int(rows, i, 0)), &rule);
}

static int read_rules(const int64_t *ids, int count)
{
	PGresult *rows;
	int result;

	pg_numbers(ids, count);
	result = pg_ask(RULES, &rows);
	for (int i = 0; !result && i < PQntuples(rows); i++)
		keep_rule(rows, i);
	PQclear(rows);
	return result;
}

void pg_want_rules(const PGresult *jobs)
{
	int64_t *ids = calloc(PQntuples(jobs) + 1, sizeof(*ids));
	int count = 0;

	if (!ids)
		die(ENOMEM, "numbers");
	for (int i = 0; i < PQntuples(jobs); i++)
		if (pg_int(jobs, i, PG_JOB_MORE) & PG_MORE_RULE)
			ids[count++] = pg_int(jobs, i, 0);
	if (count)
		read_rules(ids, count);
	free(ids);
}

int pg_get_rule(int64_t job, struct rule *rule)
{
	struct row *row = rows_find(job);
	int result = 0;

	if (!row || !row->rule)
		result = read_rules(&job, 1);
	row = rows_find(job);
	if (!result && (!row || !row->rule))
		result = -ENOENT;
	if (!result)
		*rule = *row->rule;
	return result;
}

/* Returns the number of rules. While the database does not answer, it is the last known number. */
int64_t pg_count_rules(void)
{
	static int64_t count;
	PGresult *rows = NULL;

	if (!member_attach() && !pg_ask(COUNT_RULES, &rows))
		count = pg_int(rows, 0, 0);
	PQclear(rows);
	return count;
}
