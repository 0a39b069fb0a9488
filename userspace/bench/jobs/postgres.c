// SPDX-License-Identifier: GPL-2.0-only
/*
 * A table of jobs in PostgreSQL, from which workers take by SKIP LOCKED. A worker's
 * transaction lasts until the job is done, so that a job costs one commit for the put
 * and one for the take with its ack.
 */
#include <errno.h>
#include <string.h>

#include "bench.h"

#define PATIENCE	120	/* s for the server to start */

static void must(struct conn *conn, const char *sql)
{
	PGresult *result = PQexec(conn->pg, sql);

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fail(__FILE__, __LINE__, PQerrorMessage(conn->pg));
	PQclear(result);
}

static void postgres_connect(struct conn *conn)
{
	double until = now() + PATIENCE;

	for (;;) {
		conn->pg = PQconnectdb(getenv("BENCH_DATABASE") ?:
				       "host=/tmp user=nobody dbname=postgres");
		if (PQstatus(conn->pg) == CONNECTION_OK)
			break;
		if (now() > until)
			fail(__FILE__, __LINE__, PQerrorMessage(conn->pg));
		PQfinish(conn->pg);
		sleep_for(0.1);
	}
	conn->fd = PQsocket(conn->pg);
	/* A notice that the table exists is of no use. */
	must(conn, "set client_min_messages = warning");
	must(conn, "create table if not exists job (id bigserial primary key,\n"
		   " due timestamptz not null, body text not null)");
	must(conn, "prepare put (text) as insert into job (due, body)\n"
		   " values (now(), $1)");
	must(conn, "prepare take as select id from job where due <= now()\n"
		   " order by due limit 1 for update skip locked");
	must(conn, "prepare ack (bigint) as delete from job where id = $1");
}

void postgres_set_up(struct conn *conn)
{
	must(conn, "create index on job (due)");
}

static void postgres_send(const struct kind *kind, struct conn *conn,
			  enum command command)
{
	char text[256], body[BODY + 1];

	(void)kind;
	switch (command) {
	case TAKE:
		snprintf(text, sizeof(text), "begin; execute take");
		break;
	case ACK:
		snprintf(text, sizeof(text), "execute ack(%s); commit", conn->job);
		break;
	default:
		make_body(body, new_number());
		snprintf(text, sizeof(text), "execute put('%s')", body);
	}
	if (!PQsendQuery(conn->pg, text))
		fail(__FILE__, __LINE__, PQerrorMessage(conn->pg));
}

static void read_result(struct conn *conn, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status == PGRES_TUPLES_OK && PQntuples(result)) {
		snprintf(conn->job, sizeof(conn->job), "%s", PQgetvalue(result, 0, 0));
		conn->got = true;
	} else if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
		fail(__FILE__, __LINE__, PQerrorMessage(conn->pg));
	}
	PQclear(result);
}

static bool postgres_receive(const struct kind *kind, struct conn *conn)
{
	PGresult *result;

	(void)kind;
	NEED(PQconsumeInput(conn->pg));
	while (!PQisBusy(conn->pg)) {
		result = PQgetResult(conn->pg);
		if (!result) {
			/* The table has no job: the transaction ends, too. */
			if (conn->command == TAKE && !conn->got)
				must(conn, "rollback");
			return true;
		}
		read_result(conn, result);
	}
	return false;
}

static void postgres_close(struct conn *conn)
{
	PQfinish(conn->pg);
}

const struct speaker postgres_speaker = {
	postgres_connect, postgres_send, postgres_receive, postgres_close,
};
