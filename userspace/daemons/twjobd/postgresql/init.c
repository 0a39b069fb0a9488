// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd-postgresql --init-database: makes the tables, in one transaction.
 */
#include "store_pg.h"

static const char schema[] =
#include "schema.inc"
;

static void run(PGconn *conn, const char *sql)
{
	PGresult *result = PQexec(conn, sql);

	if (PQresultStatus(result) != PGRES_COMMAND_OK &&
	    PQresultStatus(result) != PGRES_TUPLES_OK)
		die(0, "the database: %s", PQresultErrorMessage(result));
	PQclear(result);
}

static bool has_tables(PGconn *conn)
{
	PGresult *result = PQexec(conn, "select to_regclass('timewheel.schema')");
	bool has = PQntuples(result) && !PQgetisnull(result, 0, 0);

	PQclear(result);
	return has;
}

void pg_init_database(const char *where)
{
	PGconn *conn = PQconnectdb(where);

	if (!conn || PQstatus(conn) != CONNECTION_OK)
		die(0, "the database: %s", PQerrorMessage(conn));
	if (!has_tables(conn)) {
		run(conn, "begin");
		run(conn, schema);
		run(conn, "commit");
	}
	PQfinish(conn);
}
