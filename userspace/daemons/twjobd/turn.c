// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns: see turn.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "resp.h"
#include "turn.h"

#define LARGE	500

struct registered {
	struct queue *queue;
	uint64_t handle;
};

static struct {
	bool begun;
	int error;
	unsigned int size;		/* a count of changes of all kinds */
	struct buffer changes;		/* struct change */
	struct buffer registered;	/* struct registered */
	struct buffer doubtful;		/* struct change, of turns in doubt */
	void (*ended)(int error);
	struct histogram commits;
	struct turn_commit last;
	bool marked, collided;
	size_t marked_changes, marked_registered;
} turn;

void turn_at_end(void (*ended)(int error))
{
	turn.ended = ended;
}

int turn_begin(void)
{
	turn.size++;
	if (turn.begun)
		return turn.error;
	turn.begun = true;
	return turn_result(store->begin());
}

int turn_result(int result)
{
	if (result && result != -ENOENT)
		turn.error = result;
	return result;
}

int turn_add(struct queue *queue, struct job *job, struct bytes body)
{
	struct registered registered = { queue, 0 };
	int result = turn_begin();

	if (result)
		return result;
	job->id = store->new_id();
	if (!job->id)
		return turn_result(-EIO);
	result = queue_register(queue, job, &registered.handle);
	/*
	 * The job's token is left from another job. -EEXIST would mean that another job has the
	 * key.
	 */
	if (result)
		return result == -EEXIST ? -EIO : result;
	result = store->add(job, body);
	if (result == -EEXIST || result == -EALREADY) {
		queue_unregister(queue, registered.handle);
		return result;
	}
	buffer_add(&turn.registered, &registered, sizeof(registered));
	if (!turn_result(result)) {
		queue->row.jobs++;
		queue->row.bytes += job->size;
		queue->row.buried += job->buried;
	}
	return result;
}

void turn_changed(struct queue *queue, const struct job *job,
		  const struct timewheel_token *token, uint32_t delivery,
		  enum change_to to)
{
	const struct change change = queue_change(queue, job, token, delivery,
						  to);

	buffer_add(&turn.changes, &change, sizeof(change));
	/*
	 * If a job is gone with its delivery, and its queue has no limit, the wheel has nothing
	 * new to read.
	 */
	if (!delivery || to != CHANGE_TO_GONE || queue->row.limit)
		queue->unsettled = true;
}

bool turn_has(int64_t job)
{
	const struct change *change = (struct change *)turn.changes.data;
	size_t i, n = turn.changes.length / sizeof(*change);

	for (i = 0; i < n; i++)
		if (change[i].job == job)
			return true;
	return false;
}

bool turn_has_added(const struct queue *queue, uint64_t handle)
{
	const struct registered *added = (struct registered *)turn.registered.data;
	size_t i, n = turn.registered.length / sizeof(*added);

	for (i = 0; i < n; i++)
		if (added[i].queue == queue && added[i].handle == handle)
			return true;
	return false;
}

/* Saves queues whose counts have changed, or that have other settings. */
static int save_queues(void)
{
	struct queue *queue;
	int result = 0;

	LIST_FOREACH(queue, &queues, next)
		if (!result && memcmp(&queue->row, &queue->saved,
				      sizeof(queue->row)))
			result = store->save_counts(&queue->row, &queue->saved);
	return result;
}

static void apply_all(struct bytes list)
{
	struct change change;
	struct queue *queue;

	for (; list.length >= sizeof(change); list.length -= sizeof(change)) {
		memcpy(&change, list.data, sizeof(change));
		list.data += sizeof(change);
		queue = queue_by_id(change.queue);
		if (queue && queue->row.epoch == change.epoch)
			queue_apply(queue, &change);
	}
}

/* Removes the tokens of the list's entries that begin at byte @from or later from the wheel. */
static void unregister(size_t from)
{
	const struct registered *registered = (struct registered *)turn.registered.data;
	size_t n = turn.registered.length / sizeof(*registered);

	for (size_t i = from / sizeof(*registered); i < n; i++)
		queue_unregister(registered[i].queue, registered[i].handle);
	turn.registered.length = from;
}

/*
 * Undoes the turn. A turn in doubt keeps its tokens: a token that has no job does no harm when it
 * is due.
 */
static void undo(void)
{
	struct queue *queue;

	store->roll_back();
	if (turn.error != -EINPROGRESS)
		unregister(0);
	else
		buffer_add(&turn.doubtful, turn.changes.data, turn.changes.length);
	LIST_FOREACH(queue, &queues, next)
		queue->row = queue->saved;
}

const struct histogram *turn_commits(void)
{
	return &turn.commits;
}

static int timed_commit(struct bytes list)
{
	uint64_t begin = monotonic_ns();
	int result = store->commit(list);

	turn.last.end = monotonic_ns();
	turn.last.took = turn.last.end - begin;
	histogram_add(&turn.commits, turn.last.took);
	return result;
}

struct turn_commit turn_last_commit(void)
{
	return turn.last;
}

bool turn_is_begun(void)
{
	return turn.begun;
}

static int commit(void)
{
	struct bytes list = { turn.changes.data, turn.changes.length };
	struct queue *queue;

	if (!turn.error)
		turn_result(save_queues());
	if (!turn.error)
		turn_result(timed_commit(list));
	if (turn.error) {
		undo();
		return turn.error;
	}
	LIST_FOREACH(queue, &queues, next)
		queue->saved = queue->row;
	apply_all(list);
	return 0;
}

static void begin_anew(void)
{
	turn.begun = false;
	turn.error = 0;
	turn.size = 0;
	turn.changes.length = 0;
	turn.registered.length = 0;
}

int turn_end(void)
{
	struct queue *queue;
	int error;

	if (turn.marked) {
		turn.collided = true;
		return -EAGAIN;
	}
	error = turn.begun ? commit() : turn.error;
	if (store->end_reading)
		store->end_reading();
	LIST_FOREACH(queue, &queues, next)
		queue->unsettled = false;
	begin_anew();
	turn.ended(error);
	return error;
}

/* A store that has no mark is rolled back to the begin of the turn, so the turn begins here. */
void turn_mark(void)
{
	struct queue *queue;

	if (!store->mark)
		turn_end();
	if (!turn_begin() && store->mark)
		turn_result(store->mark());
	turn.marked = true;
	turn.collided = false;
	turn.marked_changes = turn.changes.length;
	turn.marked_registered = turn.registered.length;
	LIST_FOREACH(queue, &queues, next)
		queue->marked = queue->row;
}

void turn_back(void)
{
	struct queue *queue;

	turn.marked = false;
	if (turn.error)
		return;
	if (store->mark)
		turn_result(store->back());
	else
		store->roll_back();
	if (turn.error)
		return;
	unregister(turn.marked_registered);
	turn.changes.length = turn.marked_changes;
	LIST_FOREACH(queue, &queues, next)
		queue->row = queue->marked;
	if (!store->mark)
		begin_anew();
}

void turn_keep(void)
{
	turn.marked = false;
	if (store->mark && !turn.error)
		turn_result(store->keep());
}

bool turn_is_marked(void)
{
	return turn.marked;
}

bool turn_has_collided(void)
{
	return turn.collided;
}

bool turn_is_shared(void)
{
	return turn.marked_changes || turn.marked_registered;
}

void turn_limit(void)
{
	if (turn.size >= LARGE)
		turn_end();
}

/*
 * Tells the wheel about a change in doubt. Returns whether the store can tell if the change is
 * made.
 */
static bool settle(struct change *change)
{
	struct queue *queue = queue_by_id(change->queue);
	struct job job = { };
	int result = store->get(change->job, false, &job);

	if (result && result != -ENOENT)
		return false;
	if (!queue || queue->row.epoch != change->epoch)
		return true;
	change->to = result || job.foreign ? CHANGE_TO_GONE : CHANGE_TO_NEW;
	change->due = job_next_due(&job);
	queue_apply(queue, change);
	return true;
}

void turn_settle_doubtful(void)
{
	struct change *change = (struct change *)turn.doubtful.data;
	size_t done = 0, n = turn.doubtful.length / sizeof(*change);

	while (done < n && settle(&change[done]))
		done++;
	buffer_cut(&turn.doubtful, done * sizeof(*change));
}

static void repeat(void *unused, struct bytes list)
{
	(void)unused;
	apply_all(list);
}

void turn_repeat_last(void)
{
	if (store->last_turn(repeat, NULL))
		die(0, "the store does not tell its last turn");
}
