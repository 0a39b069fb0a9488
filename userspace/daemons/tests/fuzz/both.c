// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two stores that act as one: see both.h.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "both.h"

#define MOST		1000	/* the most rows that anybody asks for at once */
#define NEAR		20	/* jobs are changed among this many of the newest ones */

static void must_be(bool same)
{
	if (!same)
		abort();
}

/* Defines a function of both stores. They must return the same. */
#define SAME(type, call, parameters, arguments)				\
static type both_##call parameters					\
{									\
	type result = store_sqlite.call arguments;			\
									\
	must_be(result == store_memory.call arguments);			\
	return result;							\
}

static void open_both(const char *path)
{
	store_memory.open(store_memory.name);
	store_sqlite.open(path);
}

static void close_both(void)
{
	store_sqlite.close();
	store_memory.close();
}

SAME(int, begin, (void), ())
SAME(int, commit, (struct bytes list), (list))
SAME(int, mark, (void), ())
SAME(int, back, (void), ())
SAME(int, keep, (void), ())
SAME(int, save_counts, (struct queue_row *row, const struct queue_row *saved), (row, saved))
SAME(int, remove_queue, (int64_t id), (id))
SAME(int64_t, new_id, (void), ())
SAME(int, add, (const struct job *job, struct bytes body), (job, body))
SAME(int, change, (const struct job *job, struct bytes body), (job, body))
SAME(int, remove, (int64_t id), (id))
SAME(int, save_rule, (int64_t job, const struct rule *rule), (job, rule))
SAME(int64_t, count_rules, (void), ())
SAME(int, save_options, (int64_t job, const struct options *options), (job, options))
SAME(int, add_waiting, (const struct job *job, const struct options *group), (job, group))
SAME(int, end_waiting, (const struct job *job, const struct options *group), (job, group))
SAME(int, save_failure, (int64_t job, const struct failure *failure), (job, failure))
SAME(int, add_done, (const struct done *done, uint64_t before), (done, before))
SAME(int, end_done, (int64_t queue, uint64_t before, int count), (queue, before, count))
SAME(bool, is_full, (void), ())

static void roll_back(void)
{
	store_sqlite.roll_back();
	store_memory.roll_back();
}

static int save_queue(struct queue_row *row)
{
	struct queue_row other = *row;
	int result = store_sqlite.save_queue(row);

	must_be(result == store_memory.save_queue(&other) && row->id == other.id);
	return result;
}

static bool is_same(const struct job *a, const struct job *b)
{
	return a->id == b->id && a->queue == b->queue && a->due == b->due &&
	       a->attempts == b->attempts && a->size == b->size &&
	       a->buried == b->buried && a->rule == b->rule &&
	       a->options == b->options && a->failure == b->failure &&
	       a->done == b->done && a->unique == b->unique && a->waiting == b->waiting &&
	       a->key_length == b->key_length &&
	       !memcmp(a->key, b->key, a->key_length);
}

static int get_rule(int64_t job, struct rule *rule)
{
	struct rule other;
	int result = store_sqlite.get_rule(job, rule);

	must_be(result == store_memory.get_rule(job, &other));
	must_be(result || (!strcmp(rule->text, other.text) &&
			   !strcmp(rule->zone, other.zone) &&
			   rule->start == other.start &&
			   rule->missed == other.missed &&
			   rule->overlap == other.overlap &&
			   rule->at.local == other.at.local &&
			   rule->at.utc == other.at.utc &&
			   rule->at.again == other.at.again &&
			   rule->at.number == other.at.number));
	return result;
}

static int get_options(int64_t job, struct options *options)
{
	struct options other;
	int result = store_sqlite.get_options(job, options);

	must_be(result == store_memory.get_options(job, &other));
	must_be(result || !memcmp(options, &other, sizeof(other)));
	return result;
}

static int first_waiting(int64_t queue, struct bytes from, struct options *group, int64_t *id)
{
	struct options other;
	int64_t other_id;
	int result = store_sqlite.first_waiting(queue, from, group, id);

	must_be(result == store_memory.first_waiting(queue, from, &other, &other_id));
	must_be(result || (*id == other_id && !memcmp(group, &other, sizeof(other))));
	return result;
}

static int get_failure(int64_t job, struct failure *failure)
{
	struct failure other;
	int result = store_sqlite.get_failure(job, failure);

	must_be(result == store_memory.get_failure(job, &other));
	must_be(result || (failure->at == other.at && failure->length == other.length &&
			   !memcmp(failure->reason, other.reason, other.length)));
	return result;
}

static int next_done(int64_t queue, int64_t n, struct done *done, int count)
{
	static struct done others[MOST];
	int found = store_sqlite.next_done(queue, n, done, count);

	must_be(found == store_memory.next_done(queue, n, others, count));
	for (int i = 0; i < found; i++) {
		const struct job *a = &done[i].job, *b = &others[i].job;

		must_be(done[i].n == others[i].n && done[i].ended == others[i].ended &&
			a->id == b->id && a->queue == b->queue && a->due == b->due &&
			a->attempts == b->attempts && a->key_length == b->key_length &&
			!memcmp(a->key, b->key, a->key_length));
	}
	return found;
}

static int get_job(int64_t id, bool change, struct job *job)
{
	struct job other;
	int result = store_sqlite.get(id, change, job);

	must_be(result == store_memory.get(id, change, &other) &&
		(result || is_same(job, &other)));
	return result;
}

/* A body that SQLite has handed out, and the function that is to get it. */
struct handed {
	int64_t id;
	struct bytes body;
	void (*use)(void *arg, struct bytes body);
	void *arg;
};

static void compare_body(void *data, struct bytes body)
{
	const struct handed *handed = data;

	must_be(body.length == handed->body.length &&
		!memcmp(body.data, handed->body.data ?: "", body.length));
	handed->use(handed->arg, body);
}

static void hand_on(void *data, struct bytes body)
{
	struct handed *handed = data;

	handed->body = body;
	must_be(!store_memory.body(handed->id, compare_body, handed));
}

static int get_body(int64_t id, void (*use)(void *arg, struct bytes body),
		    void *arg)
{
	struct handed handed = { .id = id, .use = use, .arg = arg };
	int result = store_sqlite.body(id, hand_on, &handed);

	must_be(!result || result == store_memory.body(id, use, arg));
	return result;
}

static int next_jobs(int64_t after, int64_t buried, struct job *jobs, int count)
{
	static struct job others[MOST];
	int n = store_sqlite.next(after, buried, jobs, count);

	must_be(n == store_memory.next(after, buried, others, count));
	for (int i = 0; i < n; i++)
		must_be(is_same(&jobs[i], &others[i]));
	return n;
}

static int next_rules(int64_t after, struct job *jobs, int count)
{
	static struct job others[MOST];
	int n = store_sqlite.next_rules(after, jobs, count);

	must_be(n == store_memory.next_rules(after, others, count));
	for (int i = 0; i < n; i++)
		must_be(is_same(&jobs[i], &others[i]));
	return n;
}

static int each_queue(void (*each)(const struct queue_row *row))
{
	return store_sqlite.each_queue(each);
}

static int last_turn(void (*use)(void *arg, struct bytes list), void *arg)
{
	return store_sqlite.last_turn(use, arg);
}

static bool get_clock(int64_t *offset)
{
	return store_sqlite.clock(offset);
}

static void save_clock(int64_t offset)
{
	store_sqlite.save_clock(offset);
}

static void tidy(void)
{
	store_sqlite.tidy();
}

const struct store store_both = {
	.open = open_both,
	.close = close_both,
	.each_queue = each_queue,
	.begin = both_begin,
	.commit = both_commit,
	.roll_back = roll_back,
	.mark = both_mark,
	.back = both_back,
	.keep = both_keep,
	.last_turn = last_turn,
	.save_queue = save_queue,
	.save_counts = both_save_counts,
	.remove_queue = both_remove_queue,
	.new_id = both_new_id,
	.add = both_add,
	.change = both_change,
	.remove = both_remove,
	.save_rule = both_save_rule,
	.get_rule = get_rule,
	.count_rules = both_count_rules,
	.save_options = both_save_options,
	.get_options = get_options,
	.add_waiting = both_add_waiting,
	.end_waiting = both_end_waiting,
	.first_waiting = first_waiting,
	.save_failure = both_save_failure,
	.get_failure = get_failure,
	.add_done = both_add_done,
	.end_done = both_end_done,
	.next_done = next_done,
	.get = get_job,
	.body = get_body,
	.next = next_jobs,
	.next_rules = next_rules,
	.clock = get_clock,
	.save_clock = save_clock,
	.is_full = both_is_full,
	.tidy = tidy,
};

static void ignore(void *arg, struct bytes body)
{
	(void)arg;
	(void)body;
}

/* This is the highest number of a queue. */
static int64_t newest_queue;

/* Gives a job that is new, or has been changed, a rule, options and a failure by chance. */
static void save_more_by_chance(const struct job *job)
{
	struct rule rule = { .text = "@daily", .missed = rand() % 3,
			     .at = { .local = rand(), .again = rand() % 2 } };
	struct options options = { .lease = rand() % 2, .tries = rand() % 3 - 1,
				   .unique = rand() % 2, .group_length = rand() % 3 };
	struct failure failure = { .at = rand(), .length = rand() % 4, .reason = "why" };

	memcpy(options.group, "group", options.group_length);
	if (job->rule)
		both_save_rule(job->id, &rule);
	if (job->options)
		both_save_options(job->id, &options);
	if (job->failure)
		both_save_failure(job->id, &failure);
}

/* Lets a job that has a group wait for it. */
static void wait_by_chance(struct job *job)
{
	struct options options;

	if (!job->options || get_options(job->id, &options) || !options.group_length)
		return;
	job->waiting = true;
	both_change(job, SAME_BODY);
	both_add_waiting(job, &options);
}

static void end_wait(struct job *job)
{
	struct options options;

	if (!job->waiting)
		return;
	must_be(!get_options(job->id, &options));
	both_end_waiting(job, &options);
	job->waiting = false;
}

static void change_by_chance(int64_t *newest)
{
	/* SQLite keeps bodies of more than 256 bytes elsewhere. */
	static const char text[600] = "some text for bodies";
	struct bytes body = { text, rand() % 4 ? rand() % sizeof(text) : 255 + rand() % 3 };
	struct job job = { .id = *newest - rand() % NEAR };
	struct queue_row row = { .id = rand() % 3, .name = "by-chance" };
	struct done done = { .ended = rand() % 100, .job = {
		.id = *newest, .queue = 1 + rand() % 2, .due = rand(),
		.attempts = 1, .key_length = rand() % 2, .key = "k" } };

	switch (rand() % 7) {
	case 0:
		save_queue(&row);
		if (row.id > newest_queue)
			newest_queue = row.id;
		break;
	case 1:
		both_remove_queue(1 + rand() % 4);
		break;
	case 2:
		both_remove(job.id);
		break;
	case 3:
		if (get_job(job.id, true, &job))
			break;
		end_wait(&job);
		job.buried = rand() % 2;
		job.done = rand() % 2;
		job.due = rand();
		body.data = rand() % 2 ? text : NULL;
		job.options |= rand() % 2;
		job.failure |= rand() % 2;
		both_change(&job, body);
		save_more_by_chance(&job);
		break;
	case 4:
		both_add_done(&done, rand() % 100);
		break;
	case 5:
		both_end_done(1 + rand() % 2, rand() % 100, rand() % 4);
		break;
	default:
		*newest = both_new_id();
		job = (struct job) { .id = *newest, .queue = 1 + rand() % 2,
				     .due = rand(), .key_length = rand() % 2,
				     .key = "k", .rule = rand() % 2,
				     .options = rand() % 2, .failure = rand() % 2,
				     .unique = rand() % 2 };
		both_add(&job, body);
		save_more_by_chance(&job);
		wait_by_chance(&job);
	}
}

/* Compares both stores. Removed jobs must have no rules, options and failures left. */
static void compare_all(int64_t newest)
{
	static struct job jobs[MOST];
	static struct done done[MOST];
	struct options options;
	struct failure failure;
	struct rule rule;
	int64_t id;

	next_jobs(0, 0, jobs, MOST);
	for (id = newest; id > newest - NEAR; id--) {
		get_body(id, ignore, NULL);
		get_rule(id, &rule);
		get_options(id, &options);
		get_failure(id, &failure);
	}
	both_count_rules();
	first_waiting(1 + rand() % 2, (struct bytes) { }, &options, &id);
	first_waiting(1 + rand() % 2, (struct bytes) { "g", 2 }, &options, &id);
	next_jobs(rand() % 100, 1 + rand() % 2, jobs, 10);
	next_rules(rand() % 100, jobs, 10);
	next_done(1 + rand() % 2, INT64_MAX, done, MOST);
	next_done(1 + rand() % 2, rand() % 100, done, 3);
}

static void remove_all(int64_t newest)
{
	must_be(!both_begin());
	for (int64_t id = newest; id > 0; id--)
		both_remove(id);
	for (int64_t id = 1; id <= newest_queue; id++)
		both_remove_queue(id);
	both_end_done(1, MAX_DUE, INT_MAX);
	both_end_done(2, MAX_DUE, INT_MAX);
	must_be(!both_commit((struct bytes) { }));
}

static void change_some(int64_t *newest)
{
	for (int changes = rand() % 10; changes; changes--)
		change_by_chance(newest);
}

void both_try_turns(int count)
{
	int64_t newest = 0;

	while (count--) {
		must_be(!both_begin());
		change_some(&newest);
		if (rand() % 2) {
			both_mark();
			change_some(&newest);
			if (rand() % 2)
				both_back();
			else
				both_keep();
			change_some(&newest);
		}
		if (rand() % 2)
			roll_back();
		else
			must_be(!both_commit((struct bytes) { }));
		compare_all(newest);
	}
	remove_all(newest);
}
