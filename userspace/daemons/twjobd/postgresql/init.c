// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd-postgresql --init-database: makes the tables, in one transaction. And what they
 * have to be.
 */
#include <stdlib.h>

#include "store_pg.h"

/* The search for a host that commits lasts at most so many ms. */
#define PATIENCE	10000

static const char schema[] =
#include "schema.inc"
;

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
	if (version != PG_SCHEMA)
		die(0, "its tables have version %lld, this program %d: use that of other nodes",
		    (long long)version, PG_SCHEMA);
}

static bool has_tables(PGconn *conn)
{
	PGresult *result = run(conn, "select to_regclass('timewheel.schema')");
	bool has = !PQgetisnull(result, 0, 0);

	PQclear(result);
	return has;
}

void pg_init_database(const char *where)
{
	PGconn *conn = connect_try(where, pg_ticks() + PATIENCE);
	PGresult *version;

	if (!conn)
		die(0, "the database: %s", connect_error());
	if (!has_tables(conn)) {
		PQclear(run(conn, "begin"));
		PQclear(run(conn, schema));
		PQclear(run(conn, "commit"));
	}
	version = run(conn, PG_ASK_SCHEMA);
	pg_check_schema(atoll(PQgetvalue(version, 0, 0)));
	PQclear(version);
	PQfinish(conn);
}
