// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd-postgresql --init-database makes the tables, or brings tables of an older version to the
 * newest version, in one transaction. This file also knows the version that the tables must have,
 * and sets how long a body may be.
 */
#include <stdio.h>
#include <stdlib.h>

#include "store_pg.h"

/* The search for a host that commits lasts at most this many ms. */
#define PATIENCE	10000

/* These are the steps from each version of the tables to the next version, and the functions. */
static const char * const schema[] = {
#include "schema.inc"
};

int pg_schema(void)
{
	return sizeof(schema) / sizeof(*schema) - 1;
}

static PGresult *run(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);

	if (PQresultStatus(result) != PGRES_COMMAND_OK &&
	    PQresultStatus(result) != PGRES_TUPLES_OK)
		die(0, "the database: %s", PQresultErrorMessage(result));
	return result;
}

void pg_check_schema(int64_t version)
{
	if (version == pg_schema())
		return;
	die(0, "the database: its tables have version %lld, this program %d: %s",
	    (long long)version, pg_schema(), version > pg_schema() ?
	    "use that of other nodes" :
	    "run twjobd-postgresql --init-database, and this program at each node");
}

/* Returns the version of the tables, or 0 if there are no tables. */
static int version_of(PGconn *conn)
{
	PGresult *result = run(conn, "select to_regclass('timewheel.schema')");
	int version = 0;

	if (!PQgetisnull(result, 0, 0)) {
		PQclear(result);
		result = run(conn, PG_ASK_SCHEMA);
		version = atoi(PQgetvalue(result, 0, 0));
		if (!version)
			die(0, "the database: its tables do not tell their version");
	}
	PQclear(result);
	return version;
}

/* Makes the steps in one transaction, because nodes and other programs may be at work. */
static void update(PGconn *conn, int version)
{
	PQclear(run(conn, "begin"));
	PQclear(run(conn, "set local lock_timeout = '30s'"));
	for (; version <= pg_schema(); version++)
		PQclear(run(conn, schema[version]));
	PQclear(run(conn, "commit"));
}

static void set_max_body(PGconn *conn)
{
	char text[160];

	snprintf(text, sizeof(text),
		 "create or replace function timewheel.max_body() returns int\n"
		 " immutable language sql as $$\n\tselect %llu\n$$",
		 (unsigned long long)config.max_body);
	PQclear(run(conn, text));
}

void pg_init_database(const char *where)
{
	PGconn *conn = connect_try(where, pg_ticks() + PATIENCE);

	if (!conn)
		die(0, "the database: %s", connect_error());
	if (version_of(conn) < pg_schema())
		update(conn, version_of(conn));
	pg_check_schema(version_of(conn));
	set_max_body(conn);
	PQfinish(conn);
}
