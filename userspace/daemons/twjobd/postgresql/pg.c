// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connection to the database: see pg.h.
 *
 * A commit is in doubt if the connection is lost, or the patience ends, between the moment when
 * the commit has been sent and the moment when its result has come. A commit is also in doubt if
 * the database warns that its wait for other machines was cancelled, or if after the commit the
 * database does not wait for these machines any more.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "pg.h"

#define MAX_ARGS	13
#define MAX_ARRAYS	2
/* The database sends and receives arrays in a format that has these numbers. */
#define INT8_OID	20
#define BINARY		1

#define NO_TABLES	"it has no jobs: run twjobd-postgresql --init-database, or restore it"
#define NO_VERSION	"its tables do not tell their version: wait for a restore"

static struct {
	const char *where;
	PGconn *conn;
	unsigned int session;
	uint64_t lost;		/* ms: when a connection that was of use ended */
	uint64_t doubts;
	unsigned int sent;	/* statements whose results have not been read */
	unsigned int syncs;	/* points of synchronisation that have not been read */
	int error;		/* the transaction's error */
	bool begun, fenced, warned, changed;
	bool said_lost, said_refused, said_missing;
	bool last, rows;	/* the last question has failed, maybe by its rows */
	bool wrong;		/* another server is to be tried */
	bool used;		/* the connection has committed something */
} pg;

static struct {
	int count;
	int64_t numbers[MAX_ARGS];
	const char *values[MAX_ARGS];
	int lengths[MAX_ARGS], formats[MAX_ARGS];
	char *arrays[MAX_ARRAYS];
	int nr_arrays;
} args;

static void add_arg(const char *value, size_t length)
{
	args.values[args.count] = value;
	args.lengths[args.count] = length;
	args.formats[args.count++] = BINARY;
}

void pg_number(int64_t number)
{
	int64_t *place = &args.numbers[args.count];

	*place = htobe64(number);
	add_arg((char *)place, sizeof(*place));
}

void pg_bytes(struct bytes bytes)
{
	add_arg(bytes.data ?: "", bytes.length);
}

void pg_null(void)
{
	add_arg(NULL, 0);
}

void pg_numbers(const int64_t *numbers, int count)
{
	/*
	 * An array begins with dimensions, nulls, type, size and first index. An empty array has
	 * only the first three.
	 */
	const uint32_t header[] = {
		htonl(!!count), 0, htonl(INT8_OID), htonl(count), htonl(1),
	};
	size_t size = count ? sizeof(header) : 3 * sizeof(header[0]);
	const uint32_t length = htonl(sizeof(int64_t));
	char *at, *array = malloc(sizeof(header) + count * 12);

	if (!array)
		die(ENOMEM, "numbers");
	memcpy(array, header, size);
	at = array + size;
	for (int i = 0; i < count; i++, at += 12) {
		int64_t number = htobe64(numbers[i]);

		memcpy(at, &length, sizeof(length));
		memcpy(at + 4, &number, sizeof(number));
	}
	add_arg(array, at - array);
	args.arrays[args.nr_arrays++] = array;
}

int64_t pg_int(const PGresult *rows, int row, int column)
{
	int64_t number;

	memcpy(&number, PQgetvalue(rows, row, column), sizeof(number));
	return be64toh(number);
}

struct bytes pg_blob(const PGresult *rows, int row, int column)
{
	return (struct bytes) {
		PQgetvalue(rows, row, column), PQgetlength(rows, row, column),
	};
}

/* Tells an error of each kind once, until something has been committed again. */
static void complain(bool *complained, const char *text)
{
	size_t length = text ? strcspn(text, "\n") : 0;

	if (!*complained)
		say("the database: %.*s", (int)length, text);
	*complained = true;
}

/*
 * Notes when a useful connection has ended, so that commands wait a moment for another
 * connection, but not again and again.
 */
static void disconnect(void)
{
	if (pg.used)
		pg.lost = pg_ticks();
	pg.used = false;
	PQfinish(pg.conn);
	pg.conn = NULL;
	pg.sent = 0;
	pg.syncs = 0;
	pg.wrong = false;
}

/* Ends the connection. Returns -EIO, because all work that was under way has failed. */
static int lost(const char *why)
{
	pg.rows = true;
	complain(&pg.said_lost, why);
	disconnect();
	pg.error = -EIO;
	return -EIO;
}

/* These errors mean that there is no such schema, table, or function. */
static bool is_missing(const char *state)
{
	return !strcmp(state, "3F000") || !strcmp(state, "42P01") || !strcmp(state, "42883");
}

/*
 * These errors may come from rows: an internal error, as of damage; data that is too complex or
 * too large; too little memory.
 */
static bool is_about_rows(const char *state)
{
	return !strncmp(state, "XX", 2) || !strncmp(state, "54", 2) || !strcmp(state, "53200");
}

/* The tables may be made, or restored, at any moment. Until then the connection is made again. */
static int lack(const char *what)
{
	complain(&pg.said_missing, what);
	pg.wrong = true;
	pg.error = -EIO;
	return -EIO;
}

static int failed(const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *severity = PQresultErrorField(result,
						  PG_DIAG_SEVERITY_NONLOCALIZED);

	if (PQstatus(pg.conn) != CONNECTION_OK || !state || !severity ||
	    strcmp(severity, "ERROR"))
		return lost(PQresultErrorMessage(result));
	if (is_missing(state))
		return lack(NO_TABLES);
	if (!strcmp(state, "TWV01"))
		die(0, "the database: %s: use that of other nodes",
		    PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
	/* Another server may have become the one that commits. */
	pg.wrong |= !strcmp(state, "25006") || !strcmp(state, "TWQ01");
	pg.fenced = !strcmp(state, "TWF01");
	pg.rows = is_about_rows(state);
	if (!pg.fenced)
		complain(&pg.said_refused, PQresultErrorMessage(result));
	pg.error = strcmp(state, "53100") ? -EIO : -ENOSPC;
	return pg.error;
}

/* Waits until something can be read. */
static int wait_for_input(uint64_t deadline)
{
	struct pollfd poll_fd = { .fd = PQsocket(pg.conn) };
	uint64_t now = pg_ticks();
	int flushed = PQflush(pg.conn);

	if (flushed < 0)
		return lost(PQerrorMessage(pg.conn));
	if (now >= deadline)
		return lost("it does not answer");
	poll_fd.events = POLLIN | (flushed ? POLLOUT : 0);
	if (poll(&poll_fd, 1, deadline - now) < 0 && errno != EINTR)
		return lost(strerror(errno));
	if (!PQconsumeInput(pg.conn))
		return lost(PQerrorMessage(pg.conn));
	return 0;
}

/* Returns the next result, which ends with the NULL behind it. Returns NULL after lost(). */
static PGresult *next_result(uint64_t deadline)
{
	PGresult *result;

	/* libpq does not always send by itself what it has. */
	if (PQflush(pg.conn) < 0) {
		lost(PQerrorMessage(pg.conn));
		return NULL;
	}
	do {
		while (PQisBusy(pg.conn))
			if (wait_for_input(deadline))
				return NULL;
		result = PQgetResult(pg.conn);
	} while (!result);
	return result;
}

/* Reads one result, and hands out its rows if @rows is not NULL. */
static int read_result(uint64_t deadline, PGresult **rows)
{
	PGresult *result = next_result(deadline);
	int error = 0;

	if (!result)
		return -EIO;
	pg.sent--;
	switch (PQresultStatus(result)) {
	case PGRES_COMMAND_OK:
	case PGRES_TUPLES_OK:
		break;
	case PGRES_PIPELINE_ABORTED:
		error = pg.error ?: -EIO;
		break;
	default:
		error = failed(result);
	}
	if (!error && rows)
		*rows = result;
	else
		PQclear(result);
	return error;
}

/* Reads the results of all that was sent. The last result gives @rows. */
static int read_results(PGresult **rows)
{
	uint64_t deadline = pg_ticks() + PG_PATIENCE;
	int error = 0;

	while (pg.sent && !error) {
		pg.last = pg.sent == 1;
		error = read_result(deadline, pg.last ? rows : NULL);
	}
	return error;
}

/* Reads up to the point of synchronisation that was sent last. */
static int read_syncs(void)
{
	uint64_t deadline = pg_ticks() + PG_PATIENCE;

	while (pg.syncs) {
		PGresult *result = next_result(deadline);

		if (!result)
			return -EIO;
		pg.syncs -= PQresultStatus(result) == PGRES_PIPELINE_SYNC;
		PQclear(result);
	}
	pg.sent = 0;
	return 0;
}

static int send_sync(void)
{
	if (!pg.conn || !PQpipelineSync(pg.conn))
		return lost(PQerrorMessage(pg.conn));
	pg.syncs++;
	return 0;
}

static void clear_args(void)
{
	while (args.nr_arrays)
		free(args.arrays[--args.nr_arrays]);
	args.count = 0;
}

int pg_send(enum statement statement)
{
	char name[16];
	int sent = 0;

	snprintf(name, sizeof(name), "s%d", statement);
	if (pg.conn && !pg.error)
		sent = PQsendQueryPrepared(pg.conn, name, args.count, args.values,
					   args.lengths, args.formats, BINARY);
	clear_args();
	pg.changed |= statement >= JOIN;
	if (!pg.conn)
		return -EIO;
	if (pg.error)
		return pg.error;
	if (!sent)
		return lost(PQerrorMessage(pg.conn));
	pg.sent++;
	return 0;
}

/*
 * Outside of a transaction the statement is a transaction by itself. Each question ends with a
 * point of synchronisation. Only after such a point does the server count for how long a
 * transaction is idle, and end the transaction when this process is stopped or cut off.
 */
int pg_ask(enum statement statement, PGresult **rows)
{
	int error;

	pg.last = false;
	pg.rows = false;
	error = pg_send(statement) ?: send_sync();
	*rows = NULL;
	if (error)
		return error;
	error = read_results(rows);
	if (pg.conn && read_syncs() && !error) {
		PQclear(*rows);
		*rows = NULL;
		error = -EIO;
	}
	if (!pg.begun && pg.conn)
		pg.error = 0;
	return error;
}

bool pg_was_about_rows(void)
{
	return pg.last && pg.rows;
}

int pg_begin(void)
{
	clear_args();
	pg.error = 0;
	pg.fenced = false;
	pg.changed = false;
	pg.begun = !pg_send(BEGIN);
	pg.changed = false;
	return pg.begun ? 0 : -EIO;
}

bool pg_was_fenced(void)
{
	return pg.fenced;
}

bool pg_has_begun(void)
{
	return pg.begun;
}

/* Returns -EINPROGRESS, or -EIO if the transaction had nothing to commit. */
static int leave_in_doubt(const char *why)
{
	if (!pg.changed)
		return -EIO;
	say("a commit is in doubt: %s", why);
	pg.doubts++;
	return -EINPROGRESS;
}

uint64_t pg_doubts(void)
{
	return pg.doubts;
}

/*
 * Reads the result of the commit. After an error a commit ends as a rollback, and gives no error.
 */
static int read_tag(uint64_t deadline)
{
	PGresult *commit = NULL;
	int error = read_result(deadline, &commit);

	if (!error && strcmp(PQcmdStatus(commit), "COMMIT")) {
		complain(&pg.said_refused, "it has rolled a transaction back");
		error = -EIO;
		pg.error = error;
	}
	PQclear(commit);
	return error;
}

/* Reads the results of the statements before the commit, and of the commit. */
static int read_commit(void)
{
	uint64_t deadline = pg_ticks() + PG_PATIENCE;
	PGresult *rows = NULL;
	int error = 0;
	bool quorum;

	while (pg.sent > 2 && !error)
		error = read_result(deadline, NULL);
	error = error ?: read_tag(deadline);
	/* While the connection goes on, the server has told the error. */
	if (error)
		return pg.conn ? error : leave_in_doubt("the connection was lost");
	if (read_result(deadline, &rows) || read_syncs())
		return leave_in_doubt("nothing came after it");
	quorum = pg_int(rows, 0, 0);
	PQclear(rows);
	if (pg.warned)
		return leave_in_doubt("its wait for other machines was cancelled");
	return quorum ? 0 :
	       leave_in_doubt("the database does not wait for other machines any more");
}

int pg_commit(void)
{
	int error;

	if (!pg.conn || pg.error)
		return pg.error ?: -EIO;
	pg.warned = false;
	error = pg_send(COMMIT);
	if (!error) {
		pg_number(config.machines);
		error = pg_send(HAS_QUORUM) ?: send_sync();
	}
	error = error ? leave_in_doubt("the connection was lost") : read_commit();
	if (!error) {
		pg.begun = false;
		pg.said_lost = false;
		pg.said_refused = false;
		pg.said_missing = false;
		pg.used = true;
	}
	return error;
}

/*
 * Rolls the transaction back. The caller calls this function after each error, also after an
 * error of a commit.
 */
void pg_roll_back(void)
{
	clear_args();
	if (pg.wrong)
		pg_close();
	if (pg.conn && pg.begun && !send_sync() && !read_syncs()) {
		pg.error = 0;
		if (PQtransactionStatus(pg.conn) != PQTRANS_IDLE &&
		    !pg_send(ROLL_BACK) && !send_sync())
			read_syncs();
	}
	pg.begun = false;
	pg.error = 0;
}

static void hear_notice(void *unused, const PGresult *result)
{
	const char *severity = PQresultErrorField(result,
						  PG_DIAG_SEVERITY_NONLOCALIZED);

	(void)unused;
	if (severity && !strcmp(severity, "WARNING"))
		pg.warned = true;
}

/* Checks the version before statements are prepared that tables of another version may not know. */
static int check_schema(void)
{
	PGresult *rows = NULL;
	int error;

	if (!PQsendQueryParams(pg.conn, PG_ASK_SCHEMA, 0, NULL, NULL, NULL, NULL, BINARY))
		return lost(PQerrorMessage(pg.conn));
	pg.sent = 1;
	error = send_sync() ?: read_results(&rows) ?: read_syncs();
	if (!error && !pg_int(rows, 0, 0))
		error = lack(NO_VERSION);
	if (!error)
		pg_check_schema(pg_int(rows, 0, 0));
	PQclear(rows);
	return error;
}

static int prepare(void)
{
	char name[16];

	pg.sent = 0;
	for (int i = 0; i < STATEMENTS; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		if (!PQsendPrepare(pg.conn, name, statement_texts[i], 0, NULL))
			return lost(PQerrorMessage(pg.conn));
		pg.sent++;
	}
	return send_sync() ?: read_results(NULL) ?: read_syncs();
}

/* Tells whether the other end has closed the connection. It may have said why first. */
static bool is_closed(void)
{
	char byte;

	PQconsumeInput(pg.conn);
	return PQstatus(pg.conn) != CONNECTION_OK ||
	       !recv(PQsocket(pg.conn), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

int pg_connect(void)
{
	/* A transaction that has lost its connection has failed as a whole. */
	if (pg.begun)
		return pg.conn ? 0 : -EIO;
	if (pg.conn && !is_closed())
		return 0;
	disconnect();
	pg.conn = connect_try(pg.where, pg.lost + MSEC_PER_SEC);
	pg.error = 0;
	if (!pg.conn)
		return lost(connect_error());
	PQsetNoticeReceiver(pg.conn, hear_notice, NULL);
	if (PQsetnonblocking(pg.conn, 1) || !PQenterPipelineMode(pg.conn))
		return lost(PQerrorMessage(pg.conn));
	if (check_schema() || prepare()) {
		pg_close();
		return -EIO;
	}
	pg.session++;
	return 0;
}

unsigned int pg_session(void)
{
	return pg.conn ? pg.session : 0;
}

void pg_open(const char *where)
{
	pg.where = where;
	pg.lost = pg_ticks();
}

void pg_close(void)
{
	connect_avoid();
	disconnect();
}
