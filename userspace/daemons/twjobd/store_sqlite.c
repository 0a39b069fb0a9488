// SPDX-License-Identifier: GPL-2.0-only
/*
 * The store on SQLite: see store.h. A write-ahead log is synced at each commit.
 *
 * Long bodies have a table of their own, so that a change of a job does not write its body again.
 * A short body is in the row of its job, because a second row would cost each job more than the
 * body does. Besides the row numbers there is only a partial index of buried jobs, because the
 * wheel is the index.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"
#include "store.h"
#include "store_sqlite.h"

#define SCHEMA		1
#define APPLICATION	0x74776a62	/* the text "twjb" */
/* One commit sets aside this many numbers for jobs. */
#define ID_BLOCK	65536
/* One turn uses fewer numbers than this. */
#define ID_SPARE	2048
/* The log is written back when it has this many pages. */
#define LOG_PAGES	1000
/* A body that has at most this many bytes is short. */
#define SHORT_BODY	256
/* This many free pages are given back at once when a quarter of all pages is free. */
#define GIVE_BACK	"256"

static sqlite3 *db;
static int64_t next_id, end_id;
static bool had_list;	/* the list of the last commit was not empty */
static bool complained;	/* an error has been told since the last commit */
static bool reading;	/* what is read outside of turns has one transaction */
/* The short body of the job that was read last. Each change of the store forgets the body. */
static struct {
	bool known;
	int64_t id;
	size_t length;
	char data[SHORT_BODY];
} last;

static sqlite3_stmt *statements[STATEMENTS];

/* Writes an error of SQLite to the log, and returns it as an error of store.h. */
static int failed(const char *what)
{
	int code = sqlite3_extended_errcode(db);

	if ((code & 0xff) == SQLITE_FULL) {
		disk_give_ballast();
		return -ENOSPC;
	}
	if (!complained)
		say("the store %s: %s: %s: see what the kernel's log tells about its disk",
		    config.store, what, sqlite3_errmsg(db));
	complained = true;
	/* Nothing tells what a failed sync has written to the disk. */
	if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC)
		die(0, "the disk of %s cannot be trusted: see what the kernel's log tells about it",
		    config.store);
	return -EIO;
}

/* Returns the statement with these numbers as its first @count parameters. */
static sqlite3_stmt *bound(enum statement which, const int64_t *numbers,
			   int count)
{
	sqlite3_stmt *statement = statements[which];

	for (int i = 0; i < count; i++)
		sqlite3_bind_int64(statement, i + 1, numbers[i]);
	return statement;
}

#define BOUND(which, ...) ({						\
	const int64_t numbers_[] = { __VA_ARGS__ };			\
	bound(which, numbers_, ARRAY_SIZE(numbers_));			\
})

static void bind_bytes(sqlite3_stmt *statement, int parameter,
		       struct bytes bytes)
{
	sqlite3_bind_blob64(statement, parameter, bytes.data ?: "",
			    bytes.length, SQLITE_STATIC);
}

static void end_reading(void)
{
	if (!reading)
		return;
	reading = false;
	sqlite3_step(statements[COMMIT]);
	sqlite3_reset(statements[COMMIT]);
}

/* Carries out a statement that gives no rows. A change is no part of what has been read before. */
static int run(sqlite3_stmt *statement)
{
	int result;

	last.known = false;
	end_reading();
	result = sqlite3_step(statement) == SQLITE_DONE ? 0 : failed(sqlite3_sql(statement));
	sqlite3_reset(statement);
	return result;
}

/*
 * Each transaction locks the file, which takes longer than to read a job. So jobs that are read
 * one after another share a transaction, which end_reading() ends.
 */
static void begin_reading(void)
{
	if (sqlite3_get_autocommit(db))
		reading = !run(statements[READ]);
}

/*
 * Returns 1 if the statement has a row, 0 if it has no more rows, or an error. The caller resets
 * the statement.
 */
static int step(sqlite3_stmt *statement)
{
	switch (sqlite3_step(statement)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return failed(sqlite3_sql(statement));
	}
}

/*
 * Looks for the one row of a statement. Returns 0, -ENOENT, or another error. The caller resets
 * the statement.
 */
static int find(sqlite3_stmt *statement)
{
	int result = step(statement);

	return result < 0 ? result : result ? 0 : -ENOENT;
}

static void must_run(const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
		die(0, "the store %s: %s", config.store, error ?: "no memory");
}

/* Gets the number that a query gives. Returns false if the query gives none. */
static bool ask(const char *sql, int64_t *value)
{
	sqlite3_stmt *statement;
	bool known;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		return false;
	known = sqlite3_step(statement) == SQLITE_ROW;
	if (known)
		*value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return known;
}

/*
 * Gets the number that a query gives. Exits if the query fails, because the store cannot be used
 * then.
 */
static int64_t number(const char *sql)
{
	int64_t value;

	if (!ask(sql, &value))
		die(0, "the store %s: %s", config.store, sqlite3_errmsg(db));
	return value;
}

/* SQLite would write the log back by itself, but would not tell if this failed. */
static int write_log_back(void *unused, sqlite3 *of, const char *name, int pages)
{
	int result = SQLITE_OK;

	if (pages >= LOG_PAGES)
		result = sqlite3_wal_checkpoint_v2(of, NULL,
						   SQLITE_CHECKPOINT_PASSIVE,
						   NULL, NULL);
	/* SQLITE_BUSY: another program, as one that makes a backup, writes the log back. */
	if (result != SQLITE_OK && result != SQLITE_BUSY)
		failed("writing the log back");
	return SQLITE_OK;
}

static void read_secret(void)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(db, "select value from meta where name = 'secret'",
			       -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW ||
	    sqlite3_column_bytes(statement, 0) != sizeof(store_secret))
		die(0, "the store %s has no secret", config.store);
	memcpy(store_secret, sqlite3_column_blob(statement, 0),
	       sizeof(store_secret));
	sqlite3_finalize(statement);
}

static void check_schema(void)
{
	if (!number("select count(*) from sqlite_schema"))
		must_run(schema);
	if (number("pragma application_id") != APPLICATION)
		die(0, "%s is no store of jobs", config.store);
	if (number("pragma user_version") != SCHEMA)
		die(0, "%s is of another version of twjobd", config.store);
}

/*
 * A failed sync leaves pages in memory that count as written. If SQLite read the log from memory,
 * the store would get a state that the log on the disk does not have, and a power cut meanwhile
 * would break the store. So the log has to be read from the disk.
 */
static void forget_cached_log(const char *path)
{
	char log[sizeof(config.store) + 16];
	int fd, error;

	snprintf(log, sizeof(log), "%s-wal", path);
	fd = open(log, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	error = fsync(fd) ? errno : posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (error)
		die(error, "%s", log);
	close(fd);
}

static void open_store(const char *path)
{
	mode_t mask = umask(0077);

	disk_open(path);
	forget_cached_log(path);
	/* Nobody asks how much memory SQLite has. To count it costs a lock for each allocation. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE |
			    SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			    NULL) != SQLITE_OK)
		die(0, "the store %s: %s", path, sqlite3_errmsg(db));
	sqlite3_extended_result_codes(db, 1);
	sqlite3_busy_timeout(db, 5000);
	must_run("pragma page_size = 4096");
	check_schema();
	/* Files that SQLite makes later have the mode of the store's file. */
	umask(mask);
	/* The checkpoint fails, and ends twjobd, if a sync of the last process has failed. */
	must_run("pragma journal_mode = wal;"
		 "pragma synchronous = full;"
		 "pragma secure_delete = off;"
		 "pragma cache_size = -16384;"
		 "pragma journal_size_limit = 67108864;"
		 "pragma wal_checkpoint(truncate)");
	sqlite3_wal_hook(db, write_log_back, NULL);
	for (int i = 0; i < STATEMENTS; i++)
		if (sqlite3_prepare_v3(db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
				       &statements[i], NULL) != SQLITE_OK)
			die(0, "the store %s: %s", path, sqlite3_errmsg(db));
	read_secret();
	next_id = number("select value from meta where name = 'next'");
	end_id = next_id;
	disk_take_ballast();
}

static void close_store(void)
{
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(statements[i]);
	sqlite3_close(db);
}

/* Hands the blob that a statement finds to @use. */
static int with_blob(sqlite3_stmt *statement,
		     void (*use)(void *arg, struct bytes blob), void *arg)
{
	int result = find(statement);

	if (!result)
		use(arg, (struct bytes) {
			sqlite3_column_blob(statement, 0),
			sqlite3_column_bytes(statement, 0),
		});
	/* A statement that is not reset would keep the log from being emptied. */
	sqlite3_reset(statement);
	return result;
}

static int last_turn(void (*use)(void *arg, struct bytes list), void *arg)
{
	had_list = true;
	return with_blob(statements[GET_LIST], use, arg);
}

static void read_text(sqlite3_stmt *statement, int column, char *text, size_t size)
{
	const unsigned char *value = sqlite3_column_text(statement, column);

	snprintf(text, size, "%s", value ? (char *)value : "");
}

static void read_queue(sqlite3_stmt *statement, struct queue_row *row)
{
	*row = (struct queue_row) {
		.id = sqlite3_column_int64(statement, 0),
		.lease = sqlite3_column_int64(statement, 2),
		.tries = sqlite3_column_int64(statement, 3),
		.max_jobs = sqlite3_column_int64(statement, 4),
		.max_bytes = sqlite3_column_int64(statement, 5),
		.epoch = sqlite3_column_int64(statement, 6),
		.jobs = sqlite3_column_int64(statement, 7),
		.bytes = sqlite3_column_int64(statement, 8),
		.buried = sqlite3_column_int64(statement, 9),
		.paused = sqlite3_column_int(statement, 10),
		.draining = sqlite3_column_int(statement, 11),
		.dropped = sqlite3_column_int(statement, 12),
		.backoff = sqlite3_column_int64(statement, 13),
		.backoff_most = sqlite3_column_int64(statement, 14),
		.keep_buried = sqlite3_column_int64(statement, 15),
		.done = sqlite3_column_int64(statement, 16),
		.keep_done = sqlite3_column_int64(statement, 17),
		.limit = sqlite3_column_int64(statement, 18),
		.rate = {
			.jobs = sqlite3_column_int64(statement, 19),
			.per = sqlite3_column_int64(statement, 20),
		},
		.group_rate = {
			.jobs = sqlite3_column_int64(statement, 21),
			.per = sqlite3_column_int64(statement, 22),
		},
		.group_limit = sqlite3_column_int64(statement, 23),
		.waiting = sqlite3_column_int64(statement, 24),
	};
	read_text(statement, 1, row->name, sizeof(row->name));
}

static int each_queue(void (*each)(const struct queue_row *row))
{
	struct queue_row row;
	int result;

	while ((result = step(statements[QUEUES])) > 0) {
		read_queue(statements[QUEUES], &row);
		each(&row);
	}
	sqlite3_reset(statements[QUEUES]);
	return result;
}

static int begin_turn(void)
{
	int result;

	/*
	 * A commit of its own sets numbers aside, so that no number is given again after a crash.
	 */
	if (end_id - next_id < ID_SPARE) {
		int64_t end = next_id + ID_BLOCK;

		result = run(BOUND(SET_NEXT, end));
		if (result)
			return result;
		end_id = end;
	}
	return run(statements[BEGIN]);
}

static int commit_turn(struct bytes list)
{
	int result = 0;

	if (list.length || had_list) {
		bind_bytes(statements[SET_LIST], 1, list);
		result = run(statements[SET_LIST]);
	}
	if (!result)
		result = run(statements[COMMIT]);
	if (result)
		return result;
	if (disk_is_read_only())
		die(0, "the file system of %s is read-only: see what the kernel's log tells",
		    config.store);
	had_list = list.length;
	complained = false;
	return 0;
}

static void roll_back(void)
{
	/* After some errors SQLite has rolled back by itself. */
	if (!sqlite3_get_autocommit(db))
		run(statements[ROLL_BACK]);
}

static int set_mark(void)
{
	return run(statements[MARK]);
}

static int keep_marked(void)
{
	return run(statements[KEEP]);
}

static int go_back(void)
{
	return run(statements[BACK]) ?: keep_marked();
}

static int save_queue(struct queue_row *row)
{
	sqlite3_stmt *statement = statements[row->id ? SAVE_QUEUE : ADD_QUEUE];
	const int64_t numbers[] = {
		row->lease, row->tries, row->max_jobs, row->max_bytes,
		row->epoch, row->jobs, row->bytes, row->buried, row->paused,
		row->draining, row->dropped, row->backoff, row->backoff_most,
		row->keep_buried, row->done, row->keep_done, row->limit,
		row->rate.jobs, row->rate.per, row->group_rate.jobs, row->group_rate.per,
		row->group_limit, row->waiting,
	};
	int result;

	sqlite3_bind_null(statement, 1);
	if (row->id)
		sqlite3_bind_int64(statement, 1, row->id);
	sqlite3_bind_text(statement, 2, row->name, -1, SQLITE_STATIC);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sqlite3_bind_int64(statement, i + 3, numbers[i]);
	result = run(statement);
	if (!result && !row->id)
		row->id = sqlite3_last_insert_rowid(db);
	return result;
}

static int save_counts(struct queue_row *row, const struct queue_row *saved)
{
	return save_queue(row);
}

static int remove_queue(int64_t id)
{
	return run(BOUND(REMOVE_QUEUE, id));
}

static int64_t new_id(void)
{
	return next_id++;
}

static int more_of(const struct job *job)
{
	return (job->rule ? MORE_RULE : 0) | (job->options ? MORE_OPTIONS : 0) |
	       (job->failure ? MORE_FAILURE : 0) | (job->done ? MORE_DONE : 0) |
	       (job->unique ? MORE_UNIQUE : 0) | (job->waiting ? MORE_WAITING : 0);
}

/* Binds a key or a group. An empty name becomes null. */
static void bind_name(sqlite3_stmt *statement, int parameter, const char *name, size_t length)
{
	if (length)
		sqlite3_bind_blob(statement, parameter, name, length, SQLITE_STATIC);
	else
		sqlite3_bind_null(statement, parameter);
}

static int body_bit(struct bytes body)
{
	return body.length > SHORT_BODY ? MORE_BODY : 0;
}

/* Binds the body for the row of its job. A long body becomes null. */
static void bind_body(sqlite3_stmt *statement, int parameter, struct bytes body)
{
	if (body_bit(body))
		sqlite3_bind_null(statement, parameter);
	else
		bind_bytes(statement, parameter, body);
}

static int save_long_body(int64_t id, struct bytes body)
{
	sqlite3_stmt *statement = BOUND(SAVE_BODY, id);

	bind_bytes(statement, 2, body);
	return run(statement);
}

static int add_job(const struct job *job, struct bytes body)
{
	sqlite3_stmt *statement = BOUND(ADD, job->id, job->queue, job->due,
					job->attempts, job->size, job->buried);
	int result;

	bind_name(statement, 7, job->key, job->key_length);
	sqlite3_bind_int64(statement, 8, more_of(job) | body_bit(body));
	bind_body(statement, 9, body);
	result = run(statement);
	return result || !body_bit(body) ? result : save_long_body(job->id, body);
}

static int change_body(int64_t id, struct bytes body)
{
	sqlite3_stmt *statement = BOUND(CHANGE_BODY, id, 0, body_bit(body));
	int result;

	bind_body(statement, 2, body);
	result = run(statement);
	if (result)
		return result;
	return body_bit(body) ? save_long_body(id, body) : run(BOUND(REMOVE_BODY, id));
}

static int change_job(const struct job *job, struct bytes body)
{
	int result = run(BOUND(CHANGE, job->id, job->due, job->attempts,
			       job->size, job->buried, more_of(job)));

	return result || !body.data ? result : change_body(job->id, body);
}

/* Removes a job that may have rows in other tables. The first statement needs the other rows. */
static int remove_with_more(int64_t id)
{
	static const enum statement all[] = {
		REMOVE_WAITING, REMOVE_RULE, REMOVE_OPTIONS, REMOVE_FAILURE, REMOVE_BODY,
		REMOVE,
	};
	int result = 0;

	for (size_t i = 0; !result && i < ARRAY_SIZE(all); i++)
		result = run(BOUND(all[i], id));
	return result;
}

/* Most jobs have one row only. A trigger would cost them a third of their removal. */
static int remove_job(int64_t id)
{
	int result = run(BOUND(REMOVE_PLAIN, id));

	return result || sqlite3_changes(db) ? result : remove_with_more(id);
}

static void read_job(sqlite3_stmt *statement, struct job *job)
{
	const void *key = sqlite3_column_blob(statement, 6);
	int more = sqlite3_column_int(statement, 7);

	*job = (struct job) {
		.id = sqlite3_column_int64(statement, 0),
		.queue = sqlite3_column_int64(statement, 1),
		.due = sqlite3_column_int64(statement, 2),
		.attempts = sqlite3_column_int64(statement, 3),
		.size = sqlite3_column_int64(statement, 4),
		.buried = sqlite3_column_int(statement, 5),
		.key_length = sqlite3_column_bytes(statement, 6),
		.rule = more & MORE_RULE,
		.options = more & MORE_OPTIONS,
		.failure = more & MORE_FAILURE,
		.done = more & MORE_DONE,
		.unique = more & MORE_UNIQUE,
		.waiting = more & MORE_WAITING,
	};
	if (job->key_length > MAX_KEY)
		job->key_length = MAX_KEY;
	if (key)
		memcpy(job->key, key, job->key_length);
}

static int save_rule(int64_t job, const struct rule *rule)
{
	sqlite3_stmt *statement = BOUND(SAVE_RULE, job, 0, 0, rule->start, rule->missed,
					rule->overlap, rule->at.local, rule->at.utc,
					rule->at.again, rule->at.number);

	sqlite3_bind_text(statement, 2, rule->text, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 3, rule->zone, -1, SQLITE_STATIC);
	return run(statement);
}

static int get_rule(int64_t job, struct rule *rule)
{
	sqlite3_stmt *statement = BOUND(GET_RULE, job);
	int result = find(statement);

	if (!result) {
		*rule = (struct rule) {
			.start = sqlite3_column_int64(statement, 2),
			.missed = sqlite3_column_int(statement, 3),
			.overlap = sqlite3_column_int(statement, 4),
			.at = {
				.local = sqlite3_column_int64(statement, 5),
				.utc = sqlite3_column_int64(statement, 6),
				.again = sqlite3_column_int(statement, 7),
				.number = sqlite3_column_int64(statement, 8),
			},
		};
		read_text(statement, 0, rule->text, sizeof(rule->text));
		read_text(statement, 1, rule->zone, sizeof(rule->zone));
	}
	sqlite3_reset(statement);
	return result;
}

static int64_t count_rules(void)
{
	int64_t count = 0;

	ask("select count(*) from rule", &count);
	return count;
}

static int save_options(int64_t job, const struct options *options)
{
	sqlite3_stmt *statement;

	if (!memcmp(options, &NO_OPTIONS, sizeof(*options)))
		return run(BOUND(REMOVE_OPTIONS, job));
	statement = BOUND(SAVE_OPTIONS, job, options->lease, options->tries,
			  options->backoff, options->backoff_most, options->unique);
	bind_name(statement, 7, options->group, options->group_length);
	return run(statement);
}

static void read_group(sqlite3_stmt *statement, int column, struct options *options)
{
	const void *group = sqlite3_column_blob(statement, column);
	int length = sqlite3_column_bytes(statement, column);

	options->group_length = length < MAX_KEY ? length : MAX_KEY;
	memcpy(options->group, group ?: "", options->group_length);
}

static int get_options(int64_t job, struct options *options)
{
	sqlite3_stmt *statement = BOUND(GET_OPTIONS, job);
	int result = find(statement);

	if (!result) {
		*options = (struct options) {
			.lease = sqlite3_column_int64(statement, 0),
			.tries = sqlite3_column_int64(statement, 1),
			.backoff = sqlite3_column_int64(statement, 2),
			.backoff_most = sqlite3_column_int64(statement, 3),
			.unique = sqlite3_column_int64(statement, 4),
		};
		read_group(statement, 5, options);
	}
	sqlite3_reset(statement);
	return result;
}

static int change_waiting(enum statement which, const struct job *job,
			  const struct options *group)
{
	sqlite3_stmt *statement = BOUND(which, job->queue, job->due, job->id);

	bind_name(statement, 4, group->group, group->group_length);
	return run(statement);
}

static int add_waiting(const struct job *job, const struct options *group)
{
	return change_waiting(ADD_WAITING, job, group);
}

static int end_waiting(const struct job *job, const struct options *group)
{
	return change_waiting(END_WAITING, job, group);
}

static int first_waiting(int64_t queue, struct bytes from, struct options *group, int64_t *id)
{
	sqlite3_stmt *statement = BOUND(FIRST_WAITING, queue);
	int result;

	bind_bytes(statement, 2, from);
	result = find(statement);
	if (!result) {
		*group = NO_OPTIONS;
		read_group(statement, 0, group);
		*id = sqlite3_column_int64(statement, 1);
	}
	sqlite3_reset(statement);
	return result;
}

static int save_failure(int64_t job, const struct failure *failure)
{
	sqlite3_stmt *statement = BOUND(SAVE_FAILURE, job, failure->at);

	bind_bytes(statement, 3, (struct bytes) { failure->reason, failure->length });
	return run(statement);
}

static int get_failure(int64_t job, struct failure *failure)
{
	sqlite3_stmt *statement = BOUND(GET_FAILURE, job);
	int result = find(statement);

	if (!result) {
		const void *reason = sqlite3_column_blob(statement, 1);

		failure->at = sqlite3_column_int64(statement, 0);
		failure->length = sqlite3_column_bytes(statement, 1);
		if (failure->length > MAX_REASON)
			failure->length = MAX_REASON;
		memcpy(failure->reason, reason ?: "", failure->length);
	}
	sqlite3_reset(statement);
	return result;
}

static int end_done(int64_t queue, uint64_t before, int count)
{
	return run(BOUND(END_DONE, queue, before, count)) ?: sqlite3_changes(db);
}

static int add_done(const struct done *done, uint64_t before)
{
	const struct job *job = &done->job;
	sqlite3_stmt *statement = BOUND(ADD_DONE, job->queue, job->id, job->due,
					done->ended, job->attempts);
	int result;

	bind_name(statement, 6, job->key, job->key_length);
	result = run(statement);
	if (!result)
		result = end_done(job->queue, before, 2);
	return result < 0 ? result : 0;
}

static int next_done(int64_t queue, int64_t n, struct done *done, int count)
{
	sqlite3_stmt *statement = BOUND(NEXT_DONE, queue, n, count);
	int i = 0, result = 0;

	while (i < count && (result = step(statement)) > 0) {
		read_job(statement, &done[i].job);
		done[i].n = sqlite3_column_int64(statement, 8);
		done[i++].ended = sqlite3_column_int64(statement, 9);
	}
	sqlite3_reset(statement);
	return result < 0 ? result : i;
}

static int save_held(const struct held *held)
{
	return run(BOUND(SAVE_HELD, held->receipt.job, held->receipt.epoch,
			 held->receipt.handle, held->receipt.delivery,
			 held->lease_end));
}

static int take_held(void (*each)(const struct held *held))
{
	sqlite3_stmt *statement = statements[GET_HELD];
	bool any = false;
	int result;

	while ((result = step(statement)) > 0) {
		any = true;
		each(&(struct held) {
			.receipt = {
				.job = sqlite3_column_int64(statement, 0),
				.epoch = sqlite3_column_int64(statement, 1),
				.handle = sqlite3_column_int64(statement, 2),
				.delivery = sqlite3_column_int64(statement, 3),
			},
			.lease_end = sqlite3_column_int64(statement, 4),
		});
	}
	sqlite3_reset(statement);
	return result || !any ? result : run(statements[REMOVE_HELD]);
}

static void keep_short_body(int64_t id, sqlite3_stmt *statement, int column)
{
	last.id = id;
	last.length = sqlite3_column_bytes(statement, column);
	last.known = last.length <= SHORT_BODY &&
		     sqlite3_column_type(statement, column) != SQLITE_NULL;
	if (last.known)
		memcpy(last.data, sqlite3_column_blob(statement, column) ?: "", last.length);
}

static bool is_last(int64_t id)
{
	return last.known && last.id == id;
}

/* No other program changes a job, so @change needs no further work. */
static int get_job(int64_t id, bool change, struct job *job)
{
	sqlite3_stmt *statement = BOUND(GET, id);
	int result;

	begin_reading();
	result = find(statement);
	if (!result) {
		read_job(statement, job);
		keep_short_body(id, statement, 8);
	}
	sqlite3_reset(statement);
	return result;
}

static int get_body(int64_t id, void (*use)(void *arg, struct bytes body),
		    void *arg)
{
	struct job job;
	int result = is_last(id) ? 0 : get_job(id, false, &job);

	if (result)
		return result;
	if (!is_last(id))
		return with_blob(BOUND(GET_BODY, id), use, arg);
	use(arg, (struct bytes) { last.data, last.length });
	return 0;
}

static int read_jobs(sqlite3_stmt *statement, struct job *jobs, int count)
{
	int n = 0, result = 0;

	while (n < count && (result = step(statement)) > 0)
		read_job(statement, &jobs[n++]);
	sqlite3_reset(statement);
	return result < 0 ? result : n;
}

static int next_jobs(int64_t after, int64_t buried, struct job *jobs, int count)
{
	sqlite3_stmt *statement = BOUND(buried ? NEXT_BURIED : NEXT, after,
					count);

	if (buried)
		sqlite3_bind_int64(statement, 3, buried);
	return read_jobs(statement, jobs, count);
}

static int next_rules(int64_t after, struct job *jobs, int count)
{
	return read_jobs(BOUND(NEXT_RULES, after, count), jobs, count);
}

static bool get_clock(int64_t *offset)
{
	return ask("select value from meta where name = 'clock'", offset);
}

static void save_clock(int64_t offset)
{
	run(BOUND(SET_CLOCK, offset));
}

static void housekeep(const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		failed(sql);
}

static void tidy(void)
{
	int64_t unused, pages;

	end_reading();
	if (disk_is_full())
		housekeep("pragma wal_checkpoint(truncate)");
	/* The file shrinks only when the log is written back. */
	if (ask("pragma freelist_count", &unused) &&
	    ask("pragma page_count", &pages) && unused * 4 > pages)
		housekeep("pragma incremental_vacuum(" GIVE_BACK ");"
			  "pragma wal_checkpoint(passive)");
	if (disk_is_full())
		disk_take_ballast();
}

const struct store store_sqlite = {
	.open = open_store,
	.close = close_store,
	.each_queue = each_queue,
	.begin = begin_turn,
	.commit = commit_turn,
	.roll_back = roll_back,
	.end_reading = end_reading,
	.mark = set_mark,
	.back = go_back,
	.keep = keep_marked,
	.last_turn = last_turn,
	.save_queue = save_queue,
	.save_counts = save_counts,
	.remove_queue = remove_queue,
	.new_id = new_id,
	.add = add_job,
	.change = change_job,
	.remove = remove_job,
	.save_rule = save_rule,
	.get_rule = get_rule,
	.count_rules = count_rules,
	.save_options = save_options,
	.get_options = get_options,
	.add_waiting = add_waiting,
	.end_waiting = end_waiting,
	.first_waiting = first_waiting,
	.save_failure = save_failure,
	.get_failure = get_failure,
	.add_done = add_done,
	.end_done = end_done,
	.next_done = next_done,
	.save_held = save_held,
	.take_held = take_held,
	.get = get_job,
	.body = get_body,
	.next = next_jobs,
	.next_rules = next_rules,
	.clock = get_clock,
	.save_clock = save_clock,
	.is_full = disk_is_full,
	.tidy = tidy,
};
