/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The connection to the database: statements are sent without waiting for their results, which
 * are read at the next question, or at the end of the transaction. This part knows no job.
 *
 * Functions that return int return 0 or an error. -EIO: the database cannot be reached, or has
 * refused something. -ENOSPC: the database's disk is full. -EINPROGRESS, of pg_commit() only: the
 * commit is in doubt. After an error the transaction cannot be committed any more.
 */
#ifndef TWJOBD_PG_H
#define TWJOBD_PG_H

#include <libpq-fe.h>

#include "../store.h"
#include "connect.h"
#include "statements.h"

/* While there is no connection, a caller is to ask for one every PG_LOOK ms. */
#define PG_LOOK		50
/* Each wait for the database lasts at most this many ms. */
#define PG_PATIENCE	5000

/* Returns the version of the tables that the files tables-NN.sql make. */
int pg_schema(void);
/* Asks for the version of the tables, which is 0 if the tables do not tell it. */
#define PG_ASK_SCHEMA	"select coalesce(max(version), 0)::bigint from timewheel.schema"
/* Ends the program with a message unless the tables have this program's version. */
void pg_check_schema(int64_t version);

/* Sets where the database is. */
void pg_open(const char *where);
/* Ends the connection. Other servers are tried before this connection's server. */
void pg_close(void);
/*
 * Connects if there is no connection. For a second after a connection has been lost this function
 * waits for another connection. After that it returns -EIO at once until there is a connection.
 */
int pg_connect(void);
/* Returns a number that grows with each connection, or 0 if there is no connection. */
unsigned int pg_session(void);

/* These functions add arguments of the next statement, in their order. */
void pg_number(int64_t number);
void pg_bytes(struct bytes bytes);
void pg_null(void);
void pg_numbers(const int64_t *numbers, int count);

/* Sends a statement whose result is of no interest unless it is an error. */
int pg_send(enum statement statement);
/* Sends a statement and waits for its rows, which PQclear() frees. */
int pg_ask(enum statement statement, PGresult **rows);
/*
 * Tells whether the last question has failed because of its own rows, and not because of earlier
 * statements: the database has found the rows damaged or too large, or the connection ended while
 * it waited for the rows.
 */
bool pg_was_about_rows(void);
/* The two functions return the value of a column. */
int64_t pg_int(const PGresult *rows, int row, int column);
struct bytes pg_blob(const PGresult *rows, int row, int column);

int pg_begin(void);
bool pg_has_begun(void);
/* Tells whether the last transaction has failed because another node has fenced this node. */
bool pg_was_fenced(void);
int pg_commit(void);
void pg_roll_back(void);
/* Returns how many commits have been in doubt. */
uint64_t pg_doubts(void);

#endif /* TWJOBD_PG_H */
