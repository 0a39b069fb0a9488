// SPDX-License-Identifier: GPL-2.0-only
/*
 * The store on PostgreSQL: see ../store.h. A turn is a transaction, whose statements are sent
 * without waiting for their results. A turn waits for results that it needs, and at its end for
 * the commit.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../figures.h"
#include "member.h"
#include "rows.h"
#include "store_pg.h"
#include "suspects.h"

/* One value of the sequence stands for this many numbers of jobs, see tables-01.sql. */
#define ID_BLOCK	1000
/* Most turns use fewer numbers than this. */
#define ID_SPARE	600
/* One claim reads this many bytes, and one job more, because it has to come within PG_PATIENCE. */
#define CLAIM_BYTES	(4 << 20)
/* CHANGE_BODY takes this number for a job that becomes done, and 1 for a job that is buried. */
#define PG_DONE		2
/* A start waits for the database for this many ms. */
#define START		30000

static struct {
	unsigned int session;
	int64_t next, end, reserve;
} ids;

static bool had_list;	/* the last commit had a list that was not empty */
static uint64_t refused;	/* the number of refused claims */

static void open_store(const char *where)
{
	uint64_t until = pg_ticks() + START;

	pg_open(where);
	while (member_attach()) {
		if (pg_ticks() > until)
			die(0, "the database cannot be used");
		usleep(PG_LOOK * USEC_PER_MSEC);
	}
}

static void close_store(void)
{
	member_leave();
	pg_close();
}

static int ask_for_ids(void)
{
	PGresult *rows;
	int result = pg_ask(NEXT_IDS, &rows);

	if (!result)
		ids.reserve = pg_int(rows, 0, 0);
	PQclear(rows);
	return result;
}

/* Reserves numbers of jobs. Numbers of another session may be given again after a failover. */
static int reserve_ids(void)
{
	if (ids.session != pg_session())
		memset(&ids, 0, sizeof(ids));
	ids.session = pg_session();
	if (ids.end - ids.next >= ID_SPARE || ids.reserve)
		return 0;
	return ask_for_ids();
}

static int64_t new_id(void)
{
	if (ids.next == ids.end) {
		if (!ids.reserve && ask_for_ids())
			return 0;
		ids.next = ids.reserve;
		ids.end = ids.next + ID_BLOCK;
		ids.reserve = 0;
	}
	return ids.next++;
}

static int begin_turn(void)
{
	rows_clear();
	return member_begin() ?: reserve_ids();
}

static int commit_turn(struct bytes list)
{
	int result = 0;

	if (list.length || had_list) {
		pg_number(member_id());
		pg_bytes(list);
		result = pg_send(SET_LIST);
	}
	rows_clear();
	result = result ?: pg_commit();
	if (!result)
		had_list = list.length;
	return result;
}

static void roll_back(void)
{
	rows_clear();
	pg_roll_back();
}

static int last_turn(void (*use)(void *arg, struct bytes list), void *arg)
{
	PGresult *rows;
	int result;

	pg_number(member_id());
	result = pg_ask(GET_LIST, &rows);
	if (!result && PQntuples(rows))
		use(arg, pg_blob(rows, 0, 0));
	PQclear(rows);
	had_list = true;
	return result;
}

uint64_t pg_read_queue(const PGresult *rows, int i, struct queue_row *row)
{
	struct bytes name = pg_blob(rows, i, 1);

	*row = (struct queue_row) {
		.id = pg_int(rows, i, 0),
		.lease = pg_int(rows, i, 2),
		.tries = pg_int(rows, i, 3),
		.max_jobs = pg_int(rows, i, 4),
		.max_bytes = pg_int(rows, i, 5),
		.epoch = pg_int(rows, i, 6),
		.jobs = pg_int(rows, i, 7),
		.bytes = pg_int(rows, i, 8),
		.buried = pg_int(rows, i, 9),
		.paused = pg_int(rows, i, 10),
		.draining = pg_int(rows, i, 11),
		.dropped = pg_int(rows, i, 12),
		.backoff = pg_int(rows, i, 13),
		.backoff_most = pg_int(rows, i, 14),
		.keep_buried = pg_int(rows, i, 15),
		.done = pg_int(rows, i, 16),
		.keep_done = pg_int(rows, i, 17),
	};
	if (name.length < sizeof(row->name))
		memcpy(row->name, name.data, name.length);
	return pg_int(rows, i, 18);
}

static int each_queue(void (*each)(const struct queue_row *row))
{
	struct queue_row row;
	PGresult *rows;
	int result = member_attach();

	if (result)
		return result;
	pg_number(member_id());
	result = pg_ask(QUEUES, &rows);
	for (int i = 0; !result && i < PQntuples(rows); i++) {
		pg_read_queue(rows, i, &row);
		each(&row);
	}
	PQclear(rows);
	return result;
}

static void queue_args(const struct queue_row *row)
{
	pg_bytes((struct bytes) { row->name, strlen(row->name) });
	pg_number(row->lease);
	pg_number(row->tries);
	pg_number(row->max_jobs);
	pg_number(row->max_bytes);
	pg_number(row->paused);
	pg_number(row->draining);
	pg_number(row->dropped);
	pg_number(row->backoff);
	pg_number(row->backoff_most);
	pg_number(row->keep_buried);
	pg_number(row->keep_done);
}

static int save_queue(struct queue_row *row)
{
	PGresult *rows;
	int result;

	queue_args(row);
	if (row->id) {
		pg_number(row->id);
		return pg_send(SAVE_QUEUE);
	}
	result = pg_ask(ADD_QUEUE, &rows);
	/* Another node has just added this queue. */
	if (!result && !PQntuples(rows))
		result = -EALREADY;
	if (!result)
		row->id = pg_int(rows, 0, 0);
	PQclear(rows);
	return result;
}

static int save_counts(struct queue_row *row, const struct queue_row *saved)
{
	pg_number(member_id());
	pg_number(row->id);
	pg_number(row->epoch);
	pg_number(row->jobs - saved->jobs);
	pg_number(row->bytes - saved->bytes);
	pg_number(row->buried - saved->buried);
	pg_number(row->done - saved->done);
	return pg_send(COUNT_QUEUE);
}

/* Removes a queue. No node has jobs of this queue any more. */
static int remove_queue(int64_t id)
{
	pg_number(id);
	return pg_send(DROP_QUEUE) ?: pg_send(REMOVE_QUEUES);
}

static void key_arg(const struct job *job)
{
	if (job->key_length)
		pg_bytes(job_key(job));
	else
		pg_null();
}

static int add_job(const struct job *job, struct bytes body)
{
	PGresult *rows = NULL;
	struct row *row;
	int result;

	pg_number(job->id);
	pg_number(job->queue);
	pg_number(member_id());
	pg_number(job->due);
	pg_number(job->size);
	key_arg(job);
	pg_bytes(body);
	pg_number(job->attempts);
	pg_number(job->buried);
	pg_number(job->rule);
	result = job->key_length ? pg_ask(ADD_WITH_KEY, &rows) : pg_send(ADD);
	if (!result && rows && pg_int(rows, 0, 0) != 1)
		result = pg_int(rows, 0, 0) ? -EALREADY : -EEXIST;
	PQclear(rows);
	if (result)
		return result;
	row = rows_add(job->id);
	row->job = *job;
	row->state = ROW_LOCKED;
	return 0;
}

static int change_job(const struct job *job, struct bytes body)
{
	struct row *row = rows_add(job->id);

	row->job = *job;
	row->job.held_until = 0;
	row->job.foreign = false;
	row->state = ROW_LOCKED;
	pg_number(job->id);
	pg_number(member_id());
	pg_number(job->due);
	pg_number(job->attempts);
	pg_number(job->size);
	pg_number(job->done ? PG_DONE : job->buried);
	if (!body.data)
		return pg_send(CHANGE);
	row_forget_body(row);
	pg_bytes(body);
	return pg_send(CHANGE_BODY);
}

static int extend(int64_t id, uint64_t ms)
{
	struct row *row = rows_find(id);

	if (row)
		row->job.held_until = now_ms() + ms;
	pg_number(id);
	pg_number(ms);
	return pg_send(EXTEND);
}

static int release(int64_t id, uint64_t version, bool counts)
{
	pg_number(id);
	pg_number(version);
	pg_number(member_id());
	pg_number(!counts);
	return pg_send(RELEASE);
}

static int remove_job(int64_t id)
{
	rows_add(id)->state = ROW_ABSENT;
	pg_number(id);
	return pg_send(REMOVE);
}

void pg_read_job(const PGresult *rows, int i, struct job *job)
{
	struct bytes key = pg_blob(rows, i, 6);
	int64_t more = pg_int(rows, i, PG_JOB_MORE);

	/* A field that this store does not have is 0. */
	*job = (struct job) {
		.id = pg_int(rows, i, 0),
		.queue = pg_int(rows, i, 1),
		.due = pg_int(rows, i, 2),
		.attempts = pg_int(rows, i, 3),
		.size = pg_int(rows, i, 4),
		.buried = pg_int(rows, i, 5),
		.key_length = key.length < MAX_KEY ? key.length : MAX_KEY,
		.version = pg_int(rows, i, 7),
		.held_until = pg_int(rows, i, 8),
		.foreign = pg_int(rows, i, 9) != member_id(),
		.rule = more & PG_MORE_RULE,
		.options = more & PG_MORE_OPTIONS,
		.failure = more & PG_MORE_FAILURE,
		.done = more & PG_MORE_DONE,
		.unique = more & PG_MORE_UNIQUE,
	};
	memcpy(job->key, key.data, job->key_length);
}

static int save_options(int64_t job, const struct options *options)
{
	pg_number(job);
	pg_number(options->lease);
	pg_number(options->tries);
	pg_number(options->backoff);
	pg_number(options->backoff_most);
	pg_number(options->unique);
	return pg_send(SAVE_OPTIONS);
}

/* Asks for the one row that a job has of a kind. The caller frees @rows. */
static int ask_for(enum statement statement, int64_t job, PGresult **rows)
{
	int result;

	pg_number(job);
	result = pg_ask(statement, rows);
	return result ?: (PQntuples(*rows) ? 0 : -ENOENT);
}

static int get_options(int64_t job, struct options *options)
{
	PGresult *rows = NULL;
	int result = ask_for(GET_OPTIONS, job, &rows);

	if (!result)
		*options = (struct options) {
			.lease = pg_int(rows, 0, 0),
			.tries = pg_int(rows, 0, 1),
			.backoff = pg_int(rows, 0, 2),
			.backoff_most = pg_int(rows, 0, 3),
			.unique = pg_int(rows, 0, 4),
		};
	PQclear(rows);
	return result;
}

static int save_failure(int64_t job, const struct failure *failure)
{
	pg_number(job);
	pg_number(failure->at);
	pg_bytes((struct bytes) { failure->reason, failure->length });
	return pg_send(SAVE_FAILURE);
}

static int get_failure(int64_t job, struct failure *failure)
{
	PGresult *rows = NULL;
	int result = ask_for(GET_FAILURE, job, &rows);

	if (!result) {
		struct bytes reason = pg_blob(rows, 0, 1);

		failure->at = pg_int(rows, 0, 0);
		failure->length = reason.length < MAX_REASON ? reason.length : MAX_REASON;
		memcpy(failure->reason, reason.data, failure->length);
	}
	PQclear(rows);
	return result;
}

static int add_done(const struct done *done, uint64_t before)
{
	pg_number(done->job.queue);
	pg_number(done->job.id);
	pg_number(done->job.due);
	pg_number(done->ended);
	pg_number(done->job.attempts);
	key_arg(&done->job);
	pg_number(before);
	return pg_send(ADD_DONE);
}

static int end_done(int64_t queue, uint64_t before, int count)
{
	PGresult *rows = NULL;
	int result;

	pg_number(queue);
	pg_number(before);
	pg_number(count);
	result = pg_ask(END_DONE, &rows) ?: PQntuples(rows);
	PQclear(rows);
	return result;
}

static int next_done(int64_t queue, int64_t n, struct done *done, int count)
{
	PGresult *rows = NULL;
	int result = member_attach();

	if (result)
		return result;
	pg_number(queue);
	pg_number(n);
	pg_number(count);
	result = pg_ask(NEXT_DONE, &rows) ?: PQntuples(rows);
	for (int i = 0; i < result; i++) {
		pg_read_job(rows, i, &done[i].job);
		done[i].n = pg_int(rows, i, PG_JOB_COLUMNS);
		done[i].ended = pg_int(rows, i, PG_JOB_COLUMNS + 1);
	}
	PQclear(rows);
	return result;
}

/*
 * Keeps the rows of an answer, and their rules. A row whose last column is null gets the state
 * @busy.
 */
static void keep_rows(PGresult *rows, enum row_state state, enum row_state busy)
{
	for (int i = 0; i < PQntuples(rows); i++) {
		struct row *row = rows_add(pg_int(rows, i, 0));

		row->state = PQgetisnull(rows, i, PQnfields(rows) - 1) ? busy : state;
		pg_read_job(rows, i, &row->job);
	}
	pg_want_rules(rows);
	PQclear(rows);
}

static int read_rows(const int64_t *numbers, int count, bool change)
{
	PGresult *rows;
	int result = member_attach();

	if (result)
		return result;
	/* Outside of a turn each row is read again. */
	if (!pg_has_begun())
		rows_clear();
	pg_numbers(numbers, count);
	result = pg_ask(change ? LOCK : GET, &rows);
	if (result)
		return result;
	for (int i = 0; i < count; i++)
		rows_add(numbers[i])->state = ROW_ABSENT;
	keep_rows(rows, change ? ROW_LOCKED : ROW_READ, ROW_BUSY);
	return 0;
}

static int get_job(int64_t id, bool change, struct job *job)
{
	struct row *row = pg_has_begun() ? rows_find(id) : NULL;
	int result;

	if (!row || (change && row->state == ROW_READ)) {
		result = read_rows(&id, 1, change);
		if (result)
			return result;
		row = rows_find(id);
	}
	if (row->state == ROW_ABSENT)
		return -ENOENT;
	if (change && row->state == ROW_BUSY)
		return -EALREADY;
	*job = row->job;
	return 0;
}

static int find_key(int64_t queue, struct bytes key, struct job *job)
{
	PGresult *rows;
	int64_t id;
	int result;

	pg_number(queue);
	pg_bytes(key);
	result = pg_ask(LOCK_KEY, &rows);
	if (!result && !PQntuples(rows))
		result = -ENOENT;
	if (result) {
		PQclear(rows);
		return result;
	}
	id = pg_int(rows, 0, 0);
	keep_rows(rows, ROW_LOCKED, ROW_BUSY);
	return get_job(id, true, job);
}

static int get_body(int64_t id, void (*use)(void *arg, struct bytes body),
		    void *arg)
{
	struct row *row = pg_has_begun() ? rows_find(id) : NULL;
	PGresult *rows;
	int result;

	if (row && row->has_body) {
		use(arg, row->body);
		return 0;
	}
	result = ask_for(GET_BODY, id, &rows);
	if (!result)
		use(arg, pg_blob(rows, 0, 0));
	PQclear(rows);
	return result;
}

/* Returns the result of a claim for one of the jobs. */
static int claimed(int64_t id, struct job *job)
{
	struct row *row = rows_find(id);

	if (!row || row->state == ROW_ABSENT)
		return -ENOENT;
	*job = row->job;
	if (row->has_body)
		return 0;
	if (row->unread)
		return -EBADMSG;
	if (job->foreign)
		return -ENOENT;
	return job->buried || job->due > now_ms() || job->held_until > now_ms() ?
	       -EAGAIN : -EALREADY;
}

static void claim_args(const struct queue_row *queue, const int64_t *ids, int count)
{
	int64_t unread[MAX_CLAIM] = { };
	int n = 0;

	for (int i = 0; i < count; i++)
		if (suspects_condemn(ids[i]))
			unread[n++] = ids[i];
	pg_numbers(ids, count);
	pg_number(member_id());
	pg_number(queue->id);
	pg_number(queue->lease);
	pg_number(CLAIM_BYTES);
	pg_numbers(unread, n);
}

static void keep_claimed(PGresult *rows)
{
	int flag = PQnfields(rows) - 1, body = flag - 1;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct row *row = rows_add(pg_int(rows, i, 0));

		if (PQgetisnull(rows, i, flag))
			continue;
		row->unread = PQgetisnull(rows, i, body);
		if (!row->unread)
			row_set_body(row, pg_blob(rows, i, body));
	}
	keep_rows(rows, ROW_LOCKED, ROW_READ);
}

static int claim_some(const struct queue_row *queue, const int64_t *ids, int count)
{
	PGresult *rows;
	int result;

	if (!count)
		return 0;
	claim_args(queue, ids, count);
	result = pg_ask(CLAIM, &rows);
	if (!result || pg_was_about_rows())
		suspects_note(ids, count, result);
	if (result)
		return result;
	for (int i = 0; i < count; i++) {
		struct row *row = rows_add(ids[i]);

		row_forget_body(row);
		row->unread = false;
		row->state = ROW_ABSENT;
	}
	keep_claimed(rows);
	return 0;
}

/* Claims jobs. A job whose body may be unreadable is claimed by itself. */
static int claim(const struct queue_row *queue, const int64_t *numbers, int count,
		 struct job *jobs, int *results)
{
	int64_t others[MAX_CLAIM] = { };
	int n = 0, result;

	for (int i = 0; i < count; i++)
		if (!suspects_have(numbers[i]))
			others[n++] = numbers[i];
	result = claim_some(queue, others, n);
	for (int i = 0; !result && i < count; i++)
		if (suspects_have(numbers[i]))
			result = claim_some(queue, &numbers[i], 1);
	for (int i = 0; !result && i < count; i++) {
		results[i] = claimed(numbers[i], &jobs[i]);
		refused += !!results[i];
	}
	return result;
}

/* Reads the rows of a statement that has these arguments, and for some statements @third. */
static int read_next(enum statement statement, int64_t after, int count, int64_t third,
		     struct job *jobs)
{
	PGresult *rows;
	int n, result = member_attach();

	if (result)
		return result;
	pg_number(after);
	pg_number(count);
	if (statement != NEXT && statement != NEXT_RULES)
		pg_number(third);
	result = pg_ask(statement, &rows);
	if (result)
		return result;
	n = PQntuples(rows);
	for (int i = 0; i < n; i++)
		pg_read_job(rows, i, &jobs[i]);
	/* The jobs' rules will be asked for next. */
	if (statement == OWN || statement == NEXT_RULES) {
		if (!pg_has_begun())
			rows_clear();
		pg_want_rules(rows);
	}
	PQclear(rows);
	return n;
}

static int next_jobs(int64_t after, int64_t buried, struct job *jobs, int count)
{
	return read_next(buried ? NEXT_BURIED : NEXT, after, count, buried, jobs);
}

static int next_rules(int64_t after, struct job *jobs, int count)
{
	return read_next(NEXT_RULES, after, count, 0, jobs);
}

static int next_own(int64_t after, struct job *jobs, int count)
{
	return read_next(OWN, after, count, member_id(), jobs);
}

static int find_own(const int64_t *ids, int count, bool *own)
{
	PGresult *rows;
	int result = member_attach();

	if (result)
		return result;
	pg_numbers(ids, count);
	pg_number(member_id());
	result = pg_ask(FIND_OWN, &rows);
	for (int i = 0; !result && i < count; i++)
		own[i] = pg_int(rows, i, 0);
	PQclear(rows);
	return result;
}

/* The store keeps no offset, because the database's clock decides. */
static bool get_clock(int64_t *offset)
{
	(void)offset;
	return false;
}

static void save_clock(int64_t offset)
{
	(void)offset;
}

static bool is_full(void)
{
	return false;
}

/* The database does its housekeeping by itself. */
static void tidy(void)
{
}

static void add_figure(struct figures *figures, const char *name, uint64_t value,
		       const char *metric, const char *help)
{
	figures->all[figures->count++] = (struct figure) { name, value, metric, help };
}

static void add_figures(struct figures *figures)
{
	PGresult *rows = NULL;

	add_figure(figures, "in_doubt", pg_doubts(), "in_doubt_total",
		   "Commits of which it was not known whether they were carried out.");
	add_figure(figures, "fenced", member_fenced(), "fenced_total",
		   "Times that another node has taken this one's jobs over.");
	add_figure(figures, "stale_claims", refused, "stale_claims_total",
		   "Jobs that were due by the wheel, and not to be had by their rows.");
	add_figure(figures, "takeover_ms", member_takeover(), "takeover_seconds",
		   "From the last sign of life of a node until this one had its jobs go to others.");
	/* Figures that only the database knows are left out while it does not answer. */
	if (!member_attach() && !pg_ask(FIGURES, &rows)) {
		add_figure(figures, "inbox", pg_int(rows, 0, 0), "inbox_jobs",
			   "Jobs that no node has yet, counted up to 10000.");
		add_figure(figures, "oldest_xmin_age", pg_int(rows, 0, 1),
			   "oldest_xmin_age",
			   "Transactions since the oldest one that keeps dead rows from being removed.");
	}
	PQclear(rows);
}

const struct store store_pg = {
	.name = "postgresql",
	.shared = true,
	.init = pg_init_database,
	.open = open_store,
	.start = node_start,
	.refresh = node_refresh,
	.close = close_store,
	.each_queue = each_queue,
	.begin = begin_turn,
	.commit = commit_turn,
	.roll_back = roll_back,
	.last_turn = last_turn,
	.save_queue = save_queue,
	.save_counts = save_counts,
	.remove_queue = remove_queue,
	.new_id = new_id,
	.add = add_job,
	.change = change_job,
	.remove = remove_job,
	.save_rule = pg_save_rule,
	.get_rule = pg_get_rule,
	.count_rules = pg_count_rules,
	.save_options = save_options,
	.get_options = get_options,
	.save_failure = save_failure,
	.get_failure = get_failure,
	.add_done = add_done,
	.end_done = end_done,
	.next_done = next_done,
	.get = get_job,
	.find_key = find_key,
	.claim = claim,
	.extend = extend,
	.release = release,
	.want = read_rows,
	.body = get_body,
	.next = next_jobs,
	.next_rules = next_rules,
	.next_own = next_own,
	.find_own = find_own,
	.clock = get_clock,
	.save_clock = save_clock,
	.is_full = is_full,
	.tidy = tidy,
	.figures = add_figures,
};
