// SPDX-License-Identifier: GPL-2.0-only
/*
 * This file does a daemon's work of each second that is needed because there are other daemons.
 * It renews the lease, hears of queues that others have changed, and takes jobs from the inbox.
 * It puts jobs into the inbox that only workers at other nodes want, and jobs of a node whose
 * lease is over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../keep.h"
#include "../verbs.h"
#include "member.h"
#include "store_pg.h"

#define INTERVAL	USEC_PER_SEC
/* One statement moves at most this many jobs. */
#define TAKE		500
#define GIVE		250
#define EMPTY		2000
/* Jobs that are due within SOON ms come first. They are looked for among LOOK_AT jobs at once. */
#define LOOK_AT		10000
#define SOON		600000
/* For this many ms other nodes know that a worker here waits. */
#define WANTED		3000
/* A clock that has been set forward by more than this many ms would make tokens late. */
#define SET_FORWARD	100
/* The progress with this many dead nodes is remembered. */
#define MAX_DEAD	16
/* A job that could not be given away comes again after this many ms. */
#define LATER		1000

struct numbers {
	int count;
	int64_t all[MAX_QUEUES];
};

static struct {
	sd_event_source *timer;
	bool again;		/* there is more to do */
	uint64_t commits;	/* the duration of all commits up to the end of the last turn */
	bool dead;		/* another node's lease is over */
	/*
	 * The progress with a node whose lease is over stays while other nodes work on that node,
	 * and this node works on other ones.
	 */
	struct emptied {
		int64_t node;	/* 0: this entry is free */
		int64_t after;	/* it has no job up to this number that is due soon */
		bool soon;	/* it has no job at all that is due soon */
		bool told;
	} emptied[MAX_DEAD];
	unsigned int next_emptied;
	/* This transaction has locked the row of a node whose lease is over. */
	struct locker {
		int64_t number;	/* 0: there is no such transaction */
		uint64_t since;	/* ms */
		bool said;
	} locker;
	/* These deliveries were read from wheels, to be given to other nodes. */
	struct given {
		struct queue *queue;
		struct timewheel_event event;
	} given[GIVE];
	int nr_given;
} node;

static bool is_due(struct queue *queue)
{
	struct timewheel_info info;

	return queue_counts(queue, &info) && info.next <= info.now;
}

static int renew(void)
{
	uint64_t asked = now_ms();
	PGresult *rows;
	int result;

	pg_number(member_id());
	pg_number(MEMBER_LEASE);
	result = pg_ask(RENEW, &rows);
	if (!result && PQntuples(rows)) {
		member_set_clock(pg_int(rows, 0, 0), asked);
		node.dead = pg_int(rows, 0, 1);
		store_max_body = pg_int(rows, 0, 2);
	}
	PQclear(rows);
	return result;
}

static int take_in(const struct numbers *ours, const struct numbers *theirs)
{
	PGresult *rows;
	struct job job;
	int result;

	pg_number(member_id());
	pg_numbers(ours->all, ours->count);
	pg_numbers(theirs->all, theirs->count);
	pg_number(TAKE);
	result = pg_ask(TAKE_IN, &rows);
	for (int i = 0; !result && i < PQntuples(rows); i++) {
		struct timewheel_token token = { };

		pg_read_job(rows, i, &job);
		token.id = job.id;
		turn_changed(queue_by_id(job.queue), &job, &token, 0, CHANGE_TO_NEW);
	}
	node.again |= !result && PQntuples(rows) == TAKE;
	PQclear(rows);
	return result;
}

/* Reads due jobs of this queue, which only workers at other nodes want. */
static void read_unwanted(struct queue *queue)
{
	struct timewheel_event events[GIVE];
	int n = queue_read(queue, false, events, GIVE - node.nr_given);

	for (int i = 0; i < n; i++)
		node.given[node.nr_given++] = (struct given) { queue, events[i] };
}

static int give_out(void)
{
	int64_t numbers[GIVE];
	PGresult *rows;
	int result;

	for (int i = 0; i < node.nr_given; i++)
		numbers[i] = node.given[i].event.cookie;
	pg_numbers(numbers, node.nr_given);
	pg_number(member_id());
	result = pg_ask(GIVE_OUT, &rows);
	for (int i = 0; !result && i < PQntuples(rows); i++) {
		for (int j = 0; j < node.nr_given; j++)
			if (numbers[j] == pg_int(rows, i, 0))
				numbers[j] = 0;
	}
	PQclear(rows);
	for (int i = 0; !result && i < node.nr_given; i++) {
		struct job job = { .id = node.given[i].event.cookie };
		struct timewheel_token token = { .id = job.id };

		if (!numbers[i])
			turn_changed(node.given[i].queue, &job, &token, 0,
				     CHANGE_TO_GONE);
	}
	node.again |= node.nr_given == GIVE;
	return result;
}

/*
 * Gives deliveries back to the wheel. The wheel has no token any more of jobs that other nodes
 * have got.
 */
static void give_back(void)
{
	for (int i = 0; i < node.nr_given; i++)
		queue_give_back(node.given[i].queue, node.given[i].event.handle,
				node.given[i].event.delivery, now_ms() + LATER);
	node.nr_given = 0;
}

/*
 * Tells which queues workers here want, and looks for queues that only workers at other nodes
 * want.
 */
static int compare_wants(const PGresult *rows, struct numbers *ours,
			 struct numbers *theirs)
{
	struct numbers wanted = { };
	struct queue_row row;

	for (int i = 0; i < PQntuples(rows); i++) {
		bool others = pg_read_queue(rows, i, &row) > now_ms();
		struct queue *queue = queue_by_id(row.id);

		if (row.dropped || !queue || queue->row.dropped || !queue->plain ||
		    ours->count == MAX_QUEUES)
			continue;
		ours->all[ours->count++] = row.id;
		if (take_is_wanted(queue)) {
			if (is_due(queue))
				continue;
			wanted.all[wanted.count++] = row.id;
		} else if (others) {
			theirs->all[theirs->count++] = row.id;
			if (!row.paused && is_due(queue))
				read_unwanted(queue);
		}
	}
	if (!wanted.count)
		return 0;
	pg_number(member_id());
	pg_numbers(wanted.all, wanted.count);
	pg_number(WANTED);
	return pg_send(WANT_QUEUES);
}

static int run_turn(PGresult **rows)
{
	struct numbers ours = { }, theirs = { };
	int result = renew();

	pg_number(member_id());
	result = result ?: pg_ask(QUEUES, rows);
	if (result)
		return result;
	result = compare_wants(*rows, &ours, &theirs);
	pg_number(member_id());
	result = result ?: pg_send(FOLD) ?: pg_send(CLEAR_INBOX) ?:
		 pg_send(REMOVE_QUEUES);
	if (!result && node.nr_given)
		result = give_out();
	return result ?: take_in(&ours, &theirs);
}

/*
 * Tells of a takeover once, because it may have thousands of slices. The lease should have ended
 * at @until. @until is 0 if the node has ended the lease itself.
 */
static void tell_takeover(struct emptied *dead, int64_t until)
{
	if (!dead->told)
		say("the lease of node %lld is over: its jobs go to others",
		    (long long)dead->node);
	dead->told = true;
	if (until)
		member_note_takeover(now_ms() - until + MEMBER_LEASE);
}

/* Gives away jobs that are due soon. These jobs go first, in one pass over all jobs of the node. */
static int empty_soon(struct emptied *dead, int64_t *count, int64_t *until)
{
	PGresult *rows;
	int result;

	pg_number(dead->node);
	pg_number(dead->after);
	pg_number(LOOK_AT);
	pg_number(SOON);
	result = pg_ask(EMPTY_SOON, &rows);
	if (!result) {
		dead->after = pg_int(rows, 0, 0);
		*count = pg_int(rows, 0, 1);
		dead->soon = pg_int(rows, 0, 2) < LOOK_AT;
		if (*count)
			*until = pg_int(rows, 0, 3);
	}
	PQclear(rows);
	return result;
}

static int empty_rest(const struct emptied *dead, int64_t *count, int64_t *until)
{
	PGresult *rows;
	int result;

	pg_number(dead->node);
	pg_number(EMPTY);
	result = pg_ask(EMPTY_NODE, &rows);
	if (!result)
		*count = PQntuples(rows);
	if (*count)
		*until = pg_int(rows, 0, 0);
	PQclear(rows);
	return result;
}

/*
 * Another node that takes these jobs over holds the lock for a moment only. A program may hold
 * the lock for hours, and the log tells an administrator which program does.
 */
static void note_locker(int64_t number, struct bytes holder)
{
	if (number != node.locker.number)
		node.locker = (struct locker) { .number = number, .since = pg_ticks() };
	if (!number || node.locker.said || pg_ticks() - node.locker.since < PG_PATIENCE)
		return;
	say("the jobs of a dead node wait: %.*s has locked its row of timewheel.node",
	    (int)holder.length, holder.data);
	node.locker.said = true;
}

static int fence(int64_t *dead)
{
	PGresult *rows;
	int result;

	pg_number(member_id());
	pg_number(member_age() > MEMBER_LEASE);
	result = pg_ask(FENCE_NODE, &rows);
	if (!result) {
		*dead = pg_int(rows, 0, 0);
		note_locker(pg_int(rows, 0, 1), pg_blob(rows, 0, 2));
		/* No dead node has jobs any more, not even a node whose row is locked. */
		if (!*dead && PQgetisnull(rows, 0, 2))
			memset(node.emptied, 0, sizeof(node.emptied));
	}
	PQclear(rows);
	return result;
}

/* Returns the progress with a dead node. */
static struct emptied *progress_with(int64_t dead)
{
	struct emptied *oldest = &node.emptied[node.next_emptied % MAX_DEAD];

	for (int i = 0; i < MAX_DEAD; i++)
		if (node.emptied[i].node == dead)
			return &node.emptied[i];
	node.next_emptied++;
	*oldest = (struct emptied) { .node = dead };
	return oldest;
}

/*
 * Puts the jobs of a node whose lease is over into the inbox. After a failover all leases may be
 * over although the nodes are alive. So the nodes get time to find the new primary, but a node
 * that has ended its lease itself gets no time.
 */
static void empty_dead(void)
{
	int64_t id = 0, count = 0, until = 0;
	int result = turn_begin() ?: turn_result(fence(&id));
	struct emptied *progress, dead;

	if (result || !id) {
		turn_end();
		return;
	}
	progress = progress_with(id);
	dead = *progress;
	/* Jobs that are due soon are taken in before the other jobs are in the inbox. */
	if (!(dead.soon && node.again))
		turn_result(dead.soon ? empty_rest(&dead, &count, &until) :
					empty_soon(&dead, &count, &until));
	if (turn_end())
		return;
	/* The other jobs may be locked. They are looked at a second later. */
	node.again |= count || !progress->soon;
	if (count)
		tell_takeover(&dead, until);
	*progress = dead;
}

static void drop(struct queue *queue)
{
	queue->row.dropped = true;
	queue->saved.dropped = true;
	take_end_queue(queue);
	queue_destroy_wheel(queue);
	keep_remove_jobs();
}

/* Changes the queue as another node has changed it. Its epoch stays this node's own. */
static void change_queue(struct queue *queue, const struct queue_row *row)
{
	struct queue_row changed = *row;
	int error;

	changed.epoch = queue->row.epoch;
	error = keep_set(queue, &changed);
	if (error)
		keep_complain(queue, error);
	take_listen(queue);
}

static void add_queue(const struct queue_row *row)
{
	struct queue *queue = queue_new(row);
	int error = keep_open(queue);

	if (error)
		keep_complain(queue, error);
}

static bool has_queue(const PGresult *rows, int64_t id)
{
	for (int i = 0; i < PQntuples(rows); i++)
		if (pg_int(rows, i, 0) == id)
			return true;
	return false;
}

/* Applies changes of queues. No turn may be under way. */
static void apply_queues(const PGresult *rows)
{
	struct queue_row row;
	struct queue *queue;

	LIST_FOREACH(queue, &queues, next)
		if (!queue->row.dropped && !has_queue(rows, queue->row.id))
			drop(queue);
	for (int i = 0; i < PQntuples(rows); i++) {
		pg_read_queue(rows, i, &row);
		queue = queue_by_id(row.id);
		if (!queue && !row.dropped)
			add_queue(&row);
		else if (queue && row.dropped && !queue->row.dropped)
			drop(queue);
		else if (queue && !row.dropped)
			change_queue(queue, &row);
	}
}

/* Makes the wheels again. Tokens are due by this machine's clock, so all of them are now late. */
static void load_again(void)
{
	struct queue *queue;

	LIST_FOREACH(queue, &queues, next) {
		if (!queue->plain || queue->row.dropped)
			continue;
		queue_destroy_wheel(queue);
		keep_open(queue);
	}
}

/* Does the work of each second, and the next slice of work that takes longer. */
static void run_slice(void)
{
	PGresult *rows = NULL;
	int error;

	node.again = false;
	error = turn_begin() ?: turn_result(run_turn(&rows));
	error = turn_end() ?: error;
	give_back();
	if (!error) {
		apply_queues(rows);
		if (member_set_forward() > SET_FORWARD)
			load_again();
		if (node.dead)
			empty_dead();
		else
			memset(node.emptied, 0, sizeof(node.emptied));
	}
	PQclear(rows);
}

/*
 * Clients get as much time as a slice takes if they have made changes since the last slice,
 * because a takeover of millions of jobs lasts for minutes. Each slice renews the lease.
 */
static int on_timer(sd_event_source *source, uint64_t time, void *unused)
{
	uint64_t begin, took, next;
	bool busy;

	(void)source;
	(void)time;
	(void)unused;
	turn_end();
	busy = turn_commits()->sum != node.commits;
	begin = pg_ticks();
	run_slice();
	node.commits = turn_commits()->sum;
	took = (pg_ticks() - begin) * USEC_PER_MSEC;
	next = pg_session() ? INTERVAL : PG_LOOK * USEC_PER_MSEC;
	if (node.again)
		next = busy ? took + (took < INTERVAL ? took : INTERVAL) : 0;
	/* The time is counted from the moment when this slice began. */
	must(sd_event_source_set_time_relative(node.timer, next));
	must(sd_event_source_set_enabled(node.timer, SD_EVENT_ONESHOT));
	return 0;
}

void node_refresh(void)
{
	PGresult *rows;

	turn_end();
	if (member_attach())
		return;
	pg_number(member_id());
	if (!pg_ask(QUEUES, &rows))
		apply_queues(rows);
	PQclear(rows);
}

void node_start(void)
{
	must(sd_event_add_time_relative(event, &node.timer, CLOCK_MONOTONIC, 0, 1000,
					on_timer, NULL));
}
