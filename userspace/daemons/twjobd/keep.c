// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels and store in step: see keep.h. All work is done in slices, between which commands are
 * carried out.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "group.h"
#include "held.h"
#include "job.h"
#include "keep.h"
#include "rule.h"
#include "turn.h"

#define SLICE		500
#define INTERVAL	USEC_PER_SEC
/* A token may be this many ms late, because its delivery may have been given back for a while. */
#define LATE		5000
/*
 * Walks through buried jobs, which may be many, take one WALK_PART-th of the time. But a new
 * walk begins after at most LONGEST_WALK ms.
 */
#define WALK_PART	16
#define LONGEST_WALK	600000
/* Queues are searched every TRIM ms for done jobs that have been kept for too long. */
#define TRIM		10000
/* A clock that has been set back by less than this many ns makes no lease too long. */
#define SET_BACK	(100 * NSEC_PER_MSEC)

static struct {
	sd_event_source *timer;
	bool loading, removing;
	bool left;		/* the removal has left a job that another program has locked */
	int64_t clock, saved_clock;	/* ns, see look_at_clock() */
	/* These are the last rows that the load, the removal, and the comparison looked at. */
	int64_t loaded, removed, compared;
	/* This is the queue whose tokens are compared, or 0 while rows are compared. */
	int64_t walked;
} keep;

bool keep_is_loading(void)
{
	return keep.loading;
}

/* sd-event may delay a timer by 250 ms, but must not delay a timer that is to run at once. */
static void run_in(uint64_t us)
{
	must(sd_event_source_set_time_accuracy(keep.timer, us ? 0 : 1));
	must(sd_event_source_set_time_relative(keep.timer, us));
	must(sd_event_source_set_enabled(keep.timer, SD_EVENT_ONESHOT));
}

/*
 * Tells whether the wheel that is being loaded has a token for each job of the queue. The rest of
 * the load then has jobs of other queues only. A wheel that this process has not made may have a
 * token without a job.
 */
static bool has_all(struct queue *queue)
{
	struct timewheel_info info;

	/* The stamp is a token, too. A shared store counts the jobs of all daemons. */
	return queue->made && !store->shared && queue_counts(queue, &info) &&
	       info.pending + info.held == queue->row.jobs + 1;
}

/*
 * Begins to load an opened wheel that does not have all jobs. Takes may read the wheel from now
 * on.
 */
static int use_wheel(struct queue *queue)
{
	int result;

	if (!queue->loaded) {
		/* The row's epoch must be durable before the wheel gets it as its stamp. */
		result = turn_end() ?: turn_begin() ?: turn_end() ?:
			 queue_begin_load(queue);
		if (result) {
			queue_destroy_wheel(queue);
			return result;
		}
		if (has_all(queue))
			queue_end_load(queue);
	}
	if (!queue->loaded) {
		keep.loading = true;
		keep.loaded = 0;
		run_in(0);
	}
	queue->complained = false;
	queue_opened(queue);
	return 0;
}

int keep_open(struct queue *queue)
{
	return queue_open_wheel(queue) ?: use_wheel(queue);
}

/* Returns what helps against an error of keep_open(). */
static const char *advice(int error)
{
	switch (-error) {
	case ENODEV:
	case ENXIO:
		return WHEELS_WITHOUT_MODULE;
	case EACCES:
	case EPERM:
		return "give twjobd's user access to /dev/timewheel and its wheels";
	case EBUSY:
		return "another twjobd has it: each needs a wheel-prefix of its own";
	case EDQUOT:
	case EINVAL:
	case ENOSPC:
		return "destroy other wheels, or raise the module's limits, see timewheel(7)";
	case ENOMEM:
		return "give the machine, or twjobd's control group, more memory";
	default:
		return "see the error";
	}
}

void keep_complain(struct queue *queue, int error)
{
	if (!queue->complained)
		say("the wheel of the queue \"%s\": %s: %s", queue->row.name,
		    tw_strerror(-error), advice(error));
	queue->complained = true;
}

void keep_lost(struct queue *queue)
{
	if (!queue->plain)
		return;
	say("the wheel of the queue \"%s\" has been destroyed: it is made again",
	    queue->row.name);
	queue_close_wheel(queue);
	run_in(0);
}

void keep_remove_jobs(void)
{
	keep.removing = true;
	keep.removed = 0;
	run_in(0);
}

static bool is_same_rate(const struct rate *a, const struct rate *b)
{
	return a->jobs == b->jobs && a->per == b->per;
}

static void renew_limits(struct queue *queue, const struct queue_row *row)
{
	if (!is_same_rate(&row->rate, &queue->row.rate))
		queue->limits.full = 0;
	if (!is_same_rate(&row->group_rate, &queue->row.group_rate) ||
	    row->group_limit != queue->row.group_limit)
		group_forget(queue);
}

int keep_set(struct queue *queue, const struct queue_row *row)
{
	bool other_wheel = row->lease != queue->row.lease ||
			   row->max_jobs != queue->row.max_jobs;

	renew_limits(queue, row);
	queue->row = *row;
	queue->saved = *row;
	queue->burials = (struct burials) { };
	queue->trim_at = 0;
	queue_forget_leases(queue);
	if (!other_wheel)
		return 0;
	queue_destroy_wheel(queue);
	return keep_open(queue);
}

/* Reads the next jobs that this daemon owns. */
static int next_own(int64_t after, struct job *jobs, int count)
{
	return store->next_own ? store->next_own(after, jobs, count) :
				 store->next(after, 0, jobs, count);
}

static void end_early(void)
{
	struct queue *queue;

	LIST_FOREACH(queue, &queues, next)
		if (!queue->loaded && queue->plain && has_all(queue))
			queue_end_load(queue);
}

static void end_load(void)
{
	struct queue *queue;

	keep.loading = false;
	LIST_FOREACH(queue, &queues, next)
		if (!queue->loaded && queue->plain)
			queue_end_load(queue);
}

/* Returns whether the load can go on at once. */
static bool load_slice(void)
{
	static struct job jobs[SLICE];
	int n = next_own(keep.loaded, jobs, SLICE);

	for (int i = 0; i < n; i++) {
		struct queue *queue = queue_by_id(jobs[i].queue);
		uint64_t handle;
		int result = 0;

		if (queue && !queue->loaded && queue->plain)
			result = queue_register(queue, &jobs[i], &handle);
		if (result == -ENODEV)
			keep_lost(queue);
		else if (result && result != -EEXIST)
			keep_complain(queue, result);
		if (result && result != -EEXIST)
			return false;
		keep.loaded = jobs[i].id;
	}
	if (n >= 0 && n < SLICE)
		end_load();
	else
		end_early();
	return n >= 0;
}

/* Ends some done jobs that have been kept for too long. Returns whether there may be more. */
static bool trim(struct queue *queue)
{
	int n = queue->row.keep_done ? turn_begin() ?:
		store->end_done(queue->row.id, job_done_since(queue), SLICE) : 0;

	turn_result(n < 0 ? n : 0);
	queue->trim_at = now_ms() + TRIM;
	if (n == SLICE)
		queue->trim_at = 0;
	else if (!n && queue->row.keep_done == KEEP_NO_MORE)
		queue->trim_at = UINT64_MAX;
	return n == SLICE;
}

/* Trims all queues whose time has come. A queue that keeps no done jobs is left out. */
static bool end_some_done(void)
{
	uint64_t now = now_ms();
	struct queue *queue;
	bool more = false;

	LIST_FOREACH(queue, &queues, next)
		if (queue->row.keep_done && !queue->row.dropped && queue->trim_at <= now)
			more |= trim(queue);
	return !turn_end() && more;
}

/*
 * Removes the dropped queues, which have no job any more. Returns whether the removal is durable.
 */
static bool end_removal(void)
{
	struct queue *queue, *next;
	bool more = false;

	if (turn_begin())
		return false;
	LIST_FOREACH(queue, &queues, next)
		more |= queue->row.dropped && trim(queue);
	if (more)
		return !turn_end();
	LIST_FOREACH(queue, &queues, next)
		if (queue->row.dropped)
			turn_result(store->remove_queue(queue->row.id));
	if (turn_end())
		return false;
	for (queue = LIST_FIRST(&queues); queue; queue = next) {
		next = LIST_NEXT(queue, next);
		if (!queue->row.dropped)
			continue;
		group_forget(queue);
		queue_free(queue);
	}
	keep.removing = false;
	return true;
}

/*
 * Removes a job if its queue has been dropped. In a shared store a program may have locked the
 * job.
 */
static void remove_dropped(const struct job *job)
{
	struct queue *queue = queue_by_id(job->queue);
	struct job locked = *job;
	int result = 0;

	if (!queue || !queue->row.dropped)
		return;
	if (store->shared)
		result = store->get(job->id, true, &locked);
	keep.left |= result == -EALREADY;
	if (result || turn_result(store->remove(job->id)))
		return;
	queue->row.jobs--;
	queue->row.bytes -= locked.size;
}

/* Locks the jobs whose queues have been dropped, by one question. */
static int lock_dropped(const struct job *jobs, int count)
{
	int64_t ids[SLICE];
	int n = 0;

	for (int i = 0; i < count; i++) {
		const struct queue *queue = queue_by_id(jobs[i].queue);

		if (queue && queue->row.dropped)
			ids[n++] = jobs[i].id;
	}
	return store->shared && n ? store->want(ids, n, true) : 0;
}

/* Returns whether the removal can go on at once. */
static bool remove_slice(void)
{
	static struct job jobs[SLICE];
	int n = next_own(keep.removed, jobs, SLICE);

	if (turn_begin() || turn_result(lock_dropped(jobs, n)))
		return false;
	if (!keep.removed)
		keep.left = false;
	for (int i = 0; i < n; i++)
		remove_dropped(&jobs[i]);
	if (turn_end() || n < 0)
		return false;
	keep.removed = n < SLICE ? 0 : jobs[n - 1].id;
	if (n == SLICE)
		return true;
	return !keep.left && end_removal();
}

static void mend(struct queue *queue, const struct job *job,
		 const struct timewheel_token *token)
{
	const struct change change = queue_change(queue, job, token, 0, CHANGE_TO_NEW);

	queue_mended++;
	queue_apply(queue, &change);
}

/*
 * The token is later than its job is due. A job of a group may have such a token while the group
 * is known to be limited. Otherwise the token is moved back, as after a start or with another
 * rate.
 */
static bool waits_for_group(struct queue *queue, const struct job *job,
			    const struct timewheel_token *token)
{
	struct options options;
	struct change change;

	if (!job->options || store->get_options(job->id, &options) || !options.group_length)
		return false;
	if (group_may_wait(queue, &options, token->deadline))
		return true;
	change = queue_change(queue, job, token, 0, CHANGE_TO_NEW);
	queue_apply(queue, &change);
	return true;
}

static void compare_job(struct queue *queue, struct job *job)
{
	uint64_t now = now_ms(), due = job_next_due(job);
	struct timewheel_token token;
	uint64_t handle;

	if (store->shared && job->buried)
		return;
	switch (queue_token(queue, job, &token)) {
	case 0:
		break;
	case -ENOENT:
		queue_mended++;
		queue_register(queue, job, &handle);
		return;
	case -ENODEV:
		keep_lost(queue);
		return;
	default:
		return;
	}
	if (token.state != TIMEWHEEL_STATE_PENDING)
		return;
	/*
	 * A job of a shared store may have an early token: its row tells whether it is due or
	 * held.
	 */
	if ((!store->shared && token.deadline < queue_deadline(due)) ||
	    (token.deadline > queue_deadline((due > now ? due : now) + LATE) &&
	     !waits_for_group(queue, job, &token)))
		mend(queue, job, &token);
	if (job->rule)
		rule_compare(queue, job, &token);
}

/* Tells whether the queue's wheel should have a token for each of its jobs, and no other token. */
static bool is_comparable(const struct queue *queue)
{
	return queue && queue->plain && queue->loaded && !queue->row.dropped;
}

/* Ends the buried job. If the job tells no time from which it is kept, it gets the present time. */
static int end_buried(struct queue *queue, int64_t id)
{
	struct timewheel_token token;
	struct job job;
	int result = job_find(queue, id, true, &job, &token);

	if (result || !job.buried || (job.done && job.due > now_ms()))
		return result;
	if (job.done || job.failure)
		return job_remove(queue, &job, &token, 0);
	return job_note_failure(&job, (struct bytes) { }) ?:
	       job_change(queue, &job, &token, 0, CHANGE_TO_PENDING);
}

static void look_at_buried(struct queue *queue, const struct job *job)
{
	struct failure failure = { };
	uint64_t end = job->due;

	if (job->foreign || !(job->done || queue->row.keep_buried))
		return;
	if (!job->done && job->failure && store->get_failure(job->id, &failure))
		return;
	if (!job->done)
		end = failure.at + queue->row.keep_buried;
	if (end <= now_ms())
		end_buried(queue, job->id);
	else
		queue_plan_burials(queue, end);
}

static void begin_walk(struct queue *queue)
{
	uint64_t now = now_ms(), keep = queue->row.keep_buried;

	queue->burials.began = now;
	queue->burials.next = keep ? now + keep : UINT64_MAX;
}

/*
 * Plans the next walk. It does not begin before the first of the remaining jobs has been kept
 * long enough.
 */
static void end_walk(struct queue *queue)
{
	uint64_t now = now_ms(), wait = (now - queue->burials.began) * WALK_PART;

	if (wait < MSEC_PER_SEC)
		wait = MSEC_PER_SEC;
	if (wait > LONGEST_WALK)
		wait = LONGEST_WALK;
	queue->burials.earliest = now + wait;
	queue->burials.at = queue->burials.next;
	queue->burials.after = 0;
}

static void walk_buried(struct queue *queue)
{
	static struct job jobs[SLICE];
	int n;

	if (!queue->burials.after)
		begin_walk(queue);
	n = store->next(queue->burials.after, queue->row.id, jobs, SLICE);
	for (int i = 0; i < n; i++) {
		queue->burials.after = jobs[i].id;
		look_at_buried(queue, &jobs[i]);
	}
	if (turn_end() || n < SLICE)
		end_walk(queue);
}

/* A walk may also be due because another node may have added done jobs. */
static bool is_walk_due(const struct queue *queue)
{
	const struct burials *burials = &queue->burials;
	uint64_t now = now_ms();

	if (!queue->row.keep_buried && !queue->row.done)
		return false;
	return burials->earliest <= now &&
	       (burials->at <= now ||
		(queue->row.done && burials->earliest + LONGEST_WALK <= now));
}

/*
 * Looks at some buried jobs of a queue whose walk is due. Returns false if there is no such
 * queue.
 */
static bool end_some_buried(void)
{
	struct queue *queue;

	LIST_FOREACH(queue, &queues, next) {
		if (!is_comparable(queue) || !is_walk_due(queue))
			continue;
		walk_buried(queue);
		return true;
	}
	return false;
}

static void compare_jobs(void)
{
	static struct job jobs[SLICE];
	int n = next_own(keep.compared, jobs, SLICE);

	for (int i = 0; i < n; i++) {
		struct queue *queue = queue_by_id(jobs[i].queue);

		keep.compared = jobs[i].id;
		if (is_comparable(queue))
			compare_job(queue, &jobs[i]);
	}
	if (n >= 0 && n < SLICE) {
		keep.compared = 0;
		keep.walked = LIST_EMPTY(&queues) ? 0 :
			      LIST_FIRST(&queues)->row.id;
	}
}

/* Tells for each token whether this daemon owns its job, or may own it. */
static int find_own(const struct timewheel_token *tokens, int count, bool *own)
{
	int64_t ids[SLICE];
	struct job job;

	for (int i = 0; i < count; i++)
		ids[i] = tokens[i].cookie;
	if (store->find_own)
		return count > 0 ? store->find_own(ids, count, own) : 0;
	for (int i = 0; i < count; i++)
		own[i] = store->get(ids[i], false, &job) != -ENOENT;
	return 0;
}

/* Removes tokens without a job, which a crash between a registration and its commit leaves. */
static void compare_tokens(struct queue *queue)
{
	static struct timewheel_token tokens[SLICE];
	struct timewheel_token token;
	bool own[SLICE];
	int n = 0, error;

	if (is_comparable(queue))
		n = queue_walk(queue, tokens, SLICE);
	error = find_own(tokens, n, own);
	for (int i = 0; !error && i < n; i++) {
		/* The walk may have read the token earlier, so the token may have ended. */
		if (own[i] || queue_token_by_handle(queue, tokens[i].handle, &token))
			continue;
		/* In a shared store another daemon may have ended the job, or own it. */
		queue_mended += !store->shared;
		queue_unregister(queue, tokens[i].handle);
	}
	if (n == -ENODEV)
		keep_lost(queue);
	if (n <= 0 || !queue->walk)
		keep.walked = queue && LIST_NEXT(queue, next) ?
			      LIST_NEXT(queue, next)->row.id : 0;
}

static void open_lost(void)
{
	struct queue *queue;
	int result;

	LIST_FOREACH(queue, &queues, next) {
		if (queue->plain || queue->row.dropped)
			continue;
		result = keep_open(queue);
		if (result)
			keep_complain(queue, result);
	}
}

static int64_t ns_of(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * (int64_t)NSEC_PER_SEC + now.tv_nsec;
}

/* Returns by how much the wall clock is ahead of a clock that is never set. */
static int64_t clock_offset(void)
{
	return ns_of(CLOCK_REALTIME) - ns_of(CLOCK_BOOTTIME);
}

static void set_back(struct queue *queue, uint64_t back)
{
	queue_set_back(queue, back);
	group_forget(queue);
}

/*
 * Leases end by the wall clock, and would last longer after the clock has been set back. The
 * store keeps the clock's offset, because the clock may be set while no twjobd runs.
 */
static void look_at_clock(void)
{
	int64_t before = keep.clock;
	struct queue *queue;

	keep.clock = clock_offset();
	if (store->save_clock &&
	    llabs(keep.clock - keep.saved_clock) >= (long long)SET_BACK / 2) {
		store->save_clock(keep.clock);
		keep.saved_clock = keep.clock;
	}
	if (before - keep.clock < (int64_t)SET_BACK)
		return;
	say("the clock has been set back by %lld s",
	    (long long)(before - keep.clock) / (long long)NSEC_PER_SEC);
	LIST_FOREACH(queue, &queues, next)
		set_back(queue, before - keep.clock);
}

/* Returns whether the opening can go on at once. */
static bool open_some_waiting(void)
{
	struct queue *queue;

	LIST_FOREACH(queue, &queues, next)
		if (queue->groups.looks && is_comparable(queue))
			return group_open_some(queue);
	return false;
}

static int on_timer(sd_event_source *source, uint64_t time, void *unused)
{
	bool go_on = false;

	/* No turn may be under way while store and wheels are compared. */
	turn_end();
	turn_settle_doubtful();
	run_in(INTERVAL);
	look_at_clock();
	open_lost();
	if (keep.loading)
		go_on = load_slice();
	else if (keep.removing)
		go_on = remove_slice();
	else if (end_some_buried() || end_some_done() || open_some_waiting())
		go_on = true;
	else if (keep.walked)
		compare_tokens(queue_by_id(keep.walked));
	else
		compare_jobs();
	if (go_on)
		run_in(0);
	else if (store->tidy)
		store->tidy();
	return 0;
}

static void add_queue(const struct queue_row *row)
{
	queue_new(row);
	keep.removing |= row->dropped;
}

/*
 * The changes of the last turn are repeated before a new wheel needs a commit, which would empty
 * the list of these changes.
 */
static void open_all(void)
{
	struct queue *queue;
	int result;

	LIST_FOREACH(queue, &queues, next) {
		if (queue->row.dropped) {
			queue_destroy_left(queue);
			continue;
		}
		result = queue_open_wheel(queue);
		if (result == -EBUSY)
			die(0,
			    "the wheel \"%s%s\" is another twjobd's: set wheel-prefix",
			    config.prefix, queue->row.name);
		if (result)
			keep_complain(queue, result);
	}
	turn_repeat_last();
	LIST_FOREACH(queue, &queues, next) {
		result = queue->plain ? use_wheel(queue) : 0;
		if (result)
			keep_complain(queue, result);
	}
	held_go_on();
}

void keep_start(void)
{
	if (store->clock && store->clock(&keep.saved_clock))
		keep.clock = keep.saved_clock;
	else
		keep.clock = clock_offset();
	must(sd_event_add_time_relative(event, &keep.timer, CLOCK_MONOTONIC,
					INTERVAL, 0, on_timer, NULL));
	if (store->each_queue(add_queue))
		die(0, "the store does not tell its queues");
	open_all();
	look_at_clock();
}
