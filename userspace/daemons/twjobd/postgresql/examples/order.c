// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * order NUMBER adds an order, and a job that asks for a rating 48 hours later. One commit adds
 * both or neither. The environment, as PGHOST, says where the database is.
 *
 *	cc -I$(pg_config --includedir) order.c -lpq
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

static void run(PGconn *db, const char *sql, int count, const char * const *values)
{
	PGresult *result = PQexecParams(db, sql, count, NULL, values, NULL, NULL, 0);
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
		/* The end of the connection ends the transaction. */
		fprintf(stderr, "%s", PQerrorMessage(db));
		exit(1);
	}
	PQclear(result);
}

int main(int argc, char **argv)
{
	const char *order = argc > 1 ? argv[1] : "1";
	PGconn *db = PQconnectdb("");

	run(db, "begin", 0, NULL);
	run(db, "insert into orders (id) values ($1)", 1, &order);
	run(db, "select timewheel.put_text('ratings', $1, now() + interval '48 hours',\n"
	    " key => 'order-' || $1)", 1, &order);
	run(db, "commit", 0, NULL);
	PQfinish(db);
	return 0;
}
