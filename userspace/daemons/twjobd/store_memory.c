// SPDX-License-Identifier: GPL-2.0-only
/*
 * The store in memory: see store.h. It is for tests, and for jobs that may end with
 * the process.
 *
 * A table is an array in the order of its rows' numbers. As numbers grow, a new row goes to the
 * end. A removed row leaves a hole; when holes are the larger part, they are closed. A row that a
 * turn replaces is kept until the turn's end, for a roll-back.
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "resp.h"
#include "store.h"

struct entry {
	int64_t id;
	void *row;		/* NULL: a hole */
};

static struct table {
	struct entry *entries;
	size_t count, room, holes;
	size_t first;		/* all entries before this one are holes */
} queue_table, job_table, body_table, rule_table, option_table, failure_table, waiting_table;

/* The table has for each queue, by the queue's number, a struct table of its done jobs. */
static struct table done_tables;

struct body {
	size_t length;
	char data[];
};

/* A job that waits for its group. */
struct waiting {
	int64_t queue, id;
	uint64_t due;
	uint8_t length;
	char group[MAX_KEY];
};

/* An old entry is as it was before the turn changed it. */
struct old {
	struct table *table;
	struct entry entry;
};

static struct buffer olds;
static size_t marked;		/* bytes of @olds at the mark */
static int64_t last_id;

/* Returns the place of the row in the array, or the place where the row would be inserted. */
static size_t place_of(const struct table *table, int64_t id)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (table->entries[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct table *table, size_t place, int64_t id)
{
	return place < table->count && table->entries[place].id == id;
}

/* Returns NULL if there is no such row. */
static const void *find(const struct table *table, int64_t id)
{
	size_t place = place_of(table, id);

	return is_at(table, place, id) ? table->entries[place].row : NULL;
}

static void insert_hole(struct table *table, size_t place, int64_t id)
{
	struct entry *entries = table->entries;

	if (table->count == table->room) {
		table->room = 2 * table->room + 64;
		entries = reallocarray(entries, table->room, sizeof(*entries));
		if (!entries)
			die(ENOMEM, "the store");
		table->entries = entries;
	}
	memmove(&entries[place + 1], &entries[place],
		(table->count - place) * sizeof(*entries));
	entries[place] = (struct entry) { .id = id };
	table->count++;
	table->holes++;
}

/* Returns the row that was there before, which the caller then owns. */
static void *exchange(struct table *table, int64_t id, void *row)
{
	size_t place = place_of(table, id);
	void *old;

	if (!is_at(table, place, id))
		insert_hole(table, place, id);
	old = table->entries[place].row;
	table->entries[place].row = row;
	if (row && place < table->first)
		table->first = place;
	table->holes += !row;
	table->holes -= !old;
	return old;
}

/* Replaces a row for this turn. NULL removes it. */
static void set(struct table *table, int64_t id, void *row)
{
	const struct old old = { table, { id, exchange(table, id, row) } };

	buffer_add(&olds, &old, sizeof(old));
}

static void close_holes(struct table *table)
{
	size_t to = 0;

	if (2 * table->holes <= table->count)
		return;
	for (size_t from = 0; from < table->count; from++)
		if (table->entries[from].row)
			table->entries[to++] = table->entries[from];
	table->count = to;
	table->holes = 0;
	table->first = 0;
}

static void end_turn(void)
{
	olds.length = 0;
	close_holes(&queue_table);
	close_holes(&job_table);
	close_holes(&body_table);
	close_holes(&rule_table);
	close_holes(&option_table);
	close_holes(&failure_table);
	close_holes(&waiting_table);
	for (size_t i = 0; i < done_tables.count; i++)
		close_holes(done_tables.entries[i].row);
}

static void *new_row(size_t size)
{
	void *row = malloc(size);

	if (!row)
		die(ENOMEM, "a job");
	return row;
}

static void set_copy(struct table *table, int64_t id, const void *row, size_t size)
{
	set(table, id, memcpy(new_row(size), row, size));
}

static void open_store(const char *name)
{
	randombytes_buf(store_secret, sizeof(store_secret));
	say("the jobs are kept in memory only: they are lost when this process ends");
}

static void close_store(void)
{
}

/* A new store has no queues. */
static int each_queue(void (*each)(const struct queue_row *row))
{
	return 0;
}

static int begin_turn(void)
{
	return 0;
}

/* The list is not kept, because no later process can ask for it. */
static int commit_turn(struct bytes list)
{
	const struct old *old = (struct old *)olds.data;
	size_t n = olds.length / sizeof(*old);

	for (size_t i = 0; i < n; i++)
		free(old[i].entry.row);
	end_turn();
	return 0;
}

/* Undoes the changes whose old entries are behind the first @from bytes of @olds. */
static void undo(size_t from)
{
	const struct old *old = (struct old *)olds.data;

	for (size_t i = olds.length / sizeof(*old); i > from / sizeof(*old); i--)
		free(exchange(old[i - 1].table, old[i - 1].entry.id,
			      old[i - 1].entry.row));
	olds.length = from;
}

static void roll_back(void)
{
	undo(0);
	end_turn();
}

static int set_mark(void)
{
	marked = olds.length;
	return 0;
}

static int go_back(void)
{
	undo(marked);
	return 0;
}

static int keep_marked(void)
{
	return 0;
}

static int last_turn(void (*use)(void *arg, struct bytes list), void *arg)
{
	return 0;
}

/* Returns the number after the last row's number, as SQLite does. */
static int64_t number_after(const struct table *table)
{
	size_t i = table->count;

	while (i > 0 && !table->entries[i - 1].row)
		i--;
	return i > 0 ? table->entries[i - 1].id + 1 : 1;
}

static int save_queue(struct queue_row *row)
{
	if (!row->id)
		row->id = number_after(&queue_table);
	set_copy(&queue_table, row->id, row, sizeof(*row));
	return 0;
}

static int save_counts(struct queue_row *row, const struct queue_row *saved)
{
	return save_queue(row);
}

static int remove_queue(int64_t id)
{
	set(&queue_table, id, NULL);
	return 0;
}

static int64_t new_id(void)
{
	return ++last_id;
}

static void set_body(int64_t id, struct bytes bytes)
{
	struct body *body = new_row(sizeof(*body) + bytes.length);

	body->length = bytes.length;
	memcpy(body->data, bytes.data ?: "", bytes.length);
	set(&body_table, id, body);
}

static int add_job(const struct job *job, struct bytes body)
{
	set_copy(&job_table, job->id, job, sizeof(*job));
	set_body(job->id, body);
	return 0;
}

static int change_job(const struct job *job, struct bytes body)
{
	if (!find(&job_table, job->id))
		return 0;
	set_copy(&job_table, job->id, job, sizeof(*job));
	if (body.data)
		set_body(job->id, body);
	return 0;
}

static void remove_from(struct table *table, int64_t id)
{
	if (find(table, id))
		set(table, id, NULL);
}

static int remove_job(int64_t id)
{
	set(&job_table, id, NULL);
	set(&body_table, id, NULL);
	remove_from(&rule_table, id);
	remove_from(&option_table, id);
	remove_from(&failure_table, id);
	remove_from(&waiting_table, id);
	return 0;
}

static int save_rule(int64_t job, const struct rule *rule)
{
	set_copy(&rule_table, job, rule, sizeof(*rule));
	return 0;
}

static int get_copy(const struct table *table, int64_t id, void *copy, size_t size)
{
	const void *row = find(table, id);

	if (!row)
		return -ENOENT;
	memcpy(copy, row, size);
	return 0;
}

static int get_rule(int64_t job, struct rule *rule)
{
	return get_copy(&rule_table, job, rule, sizeof(*rule));
}

static int save_options(int64_t job, const struct options *options)
{
	if (!memcmp(options, &NO_OPTIONS, sizeof(*options)))
		remove_from(&option_table, job);
	else
		set_copy(&option_table, job, options, sizeof(*options));
	return 0;
}

static int get_options(int64_t job, struct options *options)
{
	return get_copy(&option_table, job, options, sizeof(*options));
}

static int add_waiting(const struct job *job, const struct options *group)
{
	struct waiting row = {
		.queue = job->queue,
		.id = job->id,
		.due = job->due,
		.length = group->group_length,
	};

	memcpy(row.group, group->group, row.length);
	set_copy(&waiting_table, job->id, &row, sizeof(row));
	return 0;
}

static int end_waiting(const struct job *job, const struct options *group)
{
	remove_from(&waiting_table, job->id);
	return 0;
}

static int compare_groups(const struct waiting *row, struct bytes group)
{
	size_t length = row->length < group.length ? row->length : group.length;

	return memcmp(row->group, group.data ?: "", length) ?:
	       (row->length > group.length) - (row->length < group.length);
}

static bool is_before(const struct waiting *row, const struct waiting *other)
{
	int order = compare_groups(row, (struct bytes) { other->group, other->length });

	if (order)
		return order < 0;
	return row->due < other->due || (row->due == other->due && row->id < other->id);
}

/* Looks at all waiting jobs. */
static int first_waiting(int64_t queue, struct bytes from, struct options *group, int64_t *id)
{
	const struct waiting *first = NULL;

	for (size_t i = 0; i < waiting_table.count; i++) {
		const struct waiting *row = waiting_table.entries[i].row;

		if (row && row->queue == queue && compare_groups(row, from) >= 0 &&
		    (!first || is_before(row, first)))
			first = row;
	}
	if (!first)
		return -ENOENT;
	*group = NO_OPTIONS;
	group->group_length = first->length;
	memcpy(group->group, first->group, first->length);
	*id = first->id;
	return 0;
}

static int save_failure(int64_t job, const struct failure *failure)
{
	set_copy(&failure_table, job, failure, sizeof(*failure));
	return 0;
}

static int get_failure(int64_t job, struct failure *failure)
{
	return get_copy(&failure_table, job, failure, sizeof(*failure));
}

/* Makes the table of a queue that has none. The table stays, empty, when the queue ends. */
static struct table *done_table(int64_t queue)
{
	struct table *table = (struct table *)find(&done_tables, queue);

	if (!table) {
		table = memset(new_row(sizeof(*table)), 0, sizeof(*table));
		exchange(&done_tables, queue, table);
	}
	return table;
}

static int end_done(int64_t queue, uint64_t before, int count)
{
	struct table *table = (struct table *)find(&done_tables, queue);
	int looked_at = 0, ended = 0;

	if (!table)
		return 0;
	while (table->first < table->count && !table->entries[table->first].row)
		table->first++;
	for (size_t i = table->first; i < table->count && looked_at < count; i++) {
		const struct done *done = table->entries[i].row;

		looked_at += !!done;
		if (!done || done->ended >= before)
			continue;
		set(table, done->n, NULL);
		ended++;
	}
	return ended;
}

static int add_done(const struct done *done, uint64_t before)
{
	struct table *table = done_table(done->job.queue);
	struct done row = *done;

	row.n = number_after(table);
	set_copy(table, row.n, &row, sizeof(row));
	end_done(row.job.queue, before, 2);
	return 0;
}

static int next_done(int64_t queue, int64_t n, struct done *done, int count)
{
	const struct table *table = find(&done_tables, queue);
	int found = 0;

	if (!table)
		return 0;
	for (size_t i = place_of(table, n); i > 0 && found < count; i--)
		if (table->entries[i - 1].row)
			memcpy(&done[found++], table->entries[i - 1].row, sizeof(*done));
	return found;
}

static int64_t count_rules(void)
{
	return rule_table.count - rule_table.holes;
}

/* No other program changes a job, so @change needs no further work. */
static int get_job(int64_t id, bool change, struct job *job)
{
	return get_copy(&job_table, id, job, sizeof(*job));
}

static int get_body(int64_t id, void (*use)(void *arg, struct bytes body),
		    void *arg)
{
	const struct body *body = find(&body_table, id);

	if (!body)
		return -ENOENT;
	use(arg, (struct bytes) { body->data, body->length });
	return 0;
}

static int next_jobs(int64_t after, int64_t buried, struct job *jobs, int count)
{
	size_t i = place_of(&job_table, after + 1);
	int n = 0;

	for (; i < job_table.count && n < count; i++) {
		const struct job *job = job_table.entries[i].row;

		if (job && (!buried || (job->buried && job->queue == buried)))
			jobs[n++] = *job;
	}
	return n;
}

static int next_rules(int64_t after, struct job *jobs, int count)
{
	size_t i = place_of(&rule_table, after + 1);
	int n = 0;

	for (; i < rule_table.count && n < count; i++)
		if (rule_table.entries[i].row &&
		    !get_job(rule_table.entries[i].id, false, &jobs[n]))
			n++;
	return n;
}

static bool is_full(void)
{
	return false;
}

const struct store store_memory = {
	.name = "memory",
	.open = open_store,
	.close = close_store,
	.each_queue = each_queue,
	.begin = begin_turn,
	.commit = commit_turn,
	.roll_back = roll_back,
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
	.get = get_job,
	.body = get_body,
	.next = next_jobs,
	.next_rules = next_rules,
	.is_full = is_full,
};
