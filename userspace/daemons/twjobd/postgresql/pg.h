/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The connection to the database: statements are sent without waiting for their results,
 * which are read at the next question, or at the end of the transaction. This knows no
 * job.
 *
 * Functions that return int give 0, or -EIO: the database cannot be reached, or has
 * refused something; -ENOSPC: its disk is full; -EINPROGRESS, of pg_commit() only: it
 * is in doubt. After an error the transaction cannot be committed any more.
 */
#ifndef TWJOBD_PG_H
#define TWJOBD_PG_H

#include <libpq-fe.h>

#include "../store.h"
#include "connect.h"
#include "statements.h"

/* While there is no connection it is to be asked for that often, ms. */
#define PG_LOOK		50
/* Each wait for the database is at most so long, ms. */
#define PG_PATIENCE	5000

/* The version of the tables, as the files tables-NN.sql make them. */
int pg_schema(void);
/* Asks for the version of the tables, which is 0 if they do not tell it. */
#define PG_ASK_SCHEMA	"select coalesce(max(version), 0)::bigint from timewheel.schema"
/* Ends the program with a sentence unless they have it. */
void pg_check_schema(int64_t version);

/* Where the database is. */
void pg_open(const char *where);
/* Other servers are tried before the one whose connection this is. */
void pg_close(void);
/*
 * Connects unless it is connected. For a second after a connection has been lost it waits
 * for another one; then it is -EIO at once until there is one.
 */
int pg_connect(void);
/* Grows with each connection. 0: there is none. */
unsigned int pg_session(void);

/* The next statement's arguments, in their order. */
void pg_number(int64_t number);
void pg_bytes(struct bytes bytes);
void pg_null(void);
void pg_numbers(const int64_t *numbers, int count);

/* Sends a statement whose result does not matter, as long as it is no error. */
int pg_send(enum statement statement);
/* Sends a statement and waits for its rows, which PQclear() frees. */
int pg_ask(enum statement statement, PGresult **rows);
/*
 * The last question has failed, and not by what was sent before it: the database has found the
 * rows damaged or too large, or the connection ended while they were waited for.
 */
bool pg_was_about_rows(void);
/* The value of a column. */
int64_t pg_int(const PGresult *rows, int row, int column);
struct bytes pg_blob(const PGresult *rows, int row, int column);

int pg_begin(void);
bool pg_has_begun(void);
/* The last transaction has failed because another node has fenced this one. */
bool pg_was_fenced(void);
int pg_commit(void);
void pg_roll_back(void);
/* How many commits have been in doubt. */
uint64_t pg_doubts(void);

#endif /* TWJOBD_PG_H */
