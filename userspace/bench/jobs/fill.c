// SPDX-License-Identifier: GPL-2.0-only
/*
 * fill STORE N: puts N jobs with keys into a store of twjobd, which has made it and is
 * not running. The first 1000 are due, the others within two days.
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BODY		100	/* bytes */
#define DUE		1000
#define OVERHEAD	64	/* twjobd adds this to the size of a job */

static sqlite3 *db;

static void need(int result)
{
	if (result == SQLITE_OK || result == SQLITE_DONE)
		return;
	fprintf(stderr, "fill: %s\n", sqlite3_errmsg(db));
	exit(1);
}

static sqlite3_stmt *prepare(const char *sql)
{
	sqlite3_stmt *statement;

	need(sqlite3_prepare_v2(db, sql, -1, &statement, NULL));
	return statement;
}

static void add_jobs(int64_t n, uint64_t now)
{
	sqlite3_stmt *job = prepare("insert into job values (?, 1, ?, 0, ?, 0, ?, 0, ?)");

	for (int64_t i = 1; i <= n; i++) {
		char key[32], text[BODY + 32];
		int length = snprintf(key, sizeof(key), "order-%08" PRId64, i);

		snprintf(text, sizeof(text), "%010" PRId64 "%0*d", i, BODY - 10, 0);
		sqlite3_bind_int64(job, 1, i);
		sqlite3_bind_int64(job, 2, i <= DUE ? now : now + 3600000 +
				   rand() % (47 * 3600000));
		sqlite3_bind_int(job, 3, BODY + length + OVERHEAD);
		sqlite3_bind_blob(job, 4, key, length, SQLITE_STATIC);
		sqlite3_bind_blob(job, 5, text, BODY, SQLITE_STATIC);
		need(sqlite3_step(job));
		sqlite3_reset(job);
	}
	sqlite3_finalize(job);
}

static void add_queue(int64_t n)
{
	char sql[400];

	snprintf(sql, sizeof(sql),
		 "insert into queue (id, name, lease, tries, max_jobs, max_bytes, epoch, jobs,\n"
		 " bytes, buried, paused, draining, dropped) values (1, 'q', 60000, 10, %" PRId64
		 ", %" PRId64 ", 0, %" PRId64 ", (select sum(size) from job), 0, 0, 0, 0);"
		 "update meta set value = %" PRId64 " where name = 'next'",
		 n + 1000000, n * 1000, n, n + 1);
	need(sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int main(int argc, char **argv)
{
	int64_t n = argc == 3 ? atoll(argv[2]) : 0;

	if (n < DUE) {
		fprintf(stderr, "usage: fill STORE N\n");
		return 2;
	}
	need(sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL));
	/* The store needs no sync, as it is made anew if this program is interrupted. */
	need(sqlite3_exec(db, "pragma synchronous = off; begin", NULL, NULL, NULL));
	add_jobs(n, time(NULL) * 1000ULL);
	add_queue(n);
	need(sqlite3_exec(db, "commit; pragma wal_checkpoint(truncate)", NULL, NULL,
			  NULL));
	sqlite3_close(db);
	return 0;
}
