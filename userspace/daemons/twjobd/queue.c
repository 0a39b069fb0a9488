// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues and their wheels: see queue.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "queue.h"

#define SLOTS		4096
/*
 * A wheel has room for this many tokens beyond the queue's limit of jobs: for the stamp, and for
 * tokens that a crash leaves.
 */
#define SPARE		1024
/* Workers may have this many jobs of a queue at once. The data about them takes 2 MB. */
#define MAX_HELD	65536
#define STAMP		0
/*
 * The stamp has one of these two times. Both are far beyond every job's time, so the stamp is
 * never due.
 */
#define LOADED		queue_deadline(MAX_DUE + 1)
#define LOADING		queue_deadline(MAX_DUE + 3600 * MSEC_PER_SEC)
#define KEYED		(1ULL << 63)
/* This bit is set in a cookie: see queue_grant(). */
#define GRANTED		(1ULL << 62)
#define BY_HANDLE	TIMEWHEEL_OPF_BY_HANDLE
#define ABSOLUTE	TIMEWHEEL_OPF_ABSOLUTE

uint64_t queue_mended;
void (*queue_changed)(int64_t job);
struct queues queues = LIST_HEAD_INITIALIZER(queues);

struct queue *queue_find(struct bytes name)
{
	struct queue *queue;

	LIST_FOREACH(queue, &queues, next)
		if (!queue->row.dropped && strlen(queue->row.name) == name.length &&
		    !memcmp(queue->row.name, name.data, name.length))
			return queue;
	return NULL;
}

struct queue *queue_by_id(int64_t id)
{
	struct queue *queue;

	LIST_FOREACH(queue, &queues, next)
		if (queue->row.id == id)
			return queue;
	return NULL;
}

struct queue *queue_new(const struct queue_row *row)
{
	struct queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		die(ENOMEM, "a queue");
	queue->row = *row;
	queue->saved = *row;
	queue->groups.looks = row->waiting;
	LIST_INSERT_HEAD(&queues, queue, next);
	return queue;
}

void queue_close_wheel(struct queue *queue)
{
	queue->due = sd_event_source_disable_unref(queue->due);
	queue_end_survey(queue);
	queue_forget_leases(queue);
	tw_cursor_close(queue->walk);
	queue->walk = NULL;
	tw_wheel_close(queue->bound);
	tw_wheel_close(queue->plain);
	queue->bound = NULL;
	queue->plain = NULL;
	queue->loaded = false;
	queue->made = false;
}

void queue_free(struct queue *queue)
{
	queue_close_wheel(queue);
	sd_event_source_disable_unref(queue->limits.timer);
	LIST_REMOVE(queue, next);
	free(queue);
}

static void wheel_name(const struct queue *queue, char name[TIMEWHEEL_NAME_SIZE])
{
	snprintf(name, TIMEWHEEL_NAME_SIZE, "%s%s", config.prefix,
		 queue->row.name);
}

/* Turns the result of a call to the library into a result of this part. */
static int result_of(int result)
{
	return result < 0 ? -errno : 0;
}

static int run(struct queue *queue, struct timewheel_op *op)
{
	return queue->plain ? result_of(tw_wheel_run(queue->plain, op)) : -ENODEV;
}

/*
 * RUN(queue, cancel, key, flags) prepares an operation by tw_op_cancel(), and runs the operation.
 */
#define RUN(queue, prepare, ...) ({					\
	struct timewheel_op op_;					\
									\
	tw_op_##prepare(&op_, __VA_ARGS__);				\
	run(queue, &op_);						\
})

static int get_token(struct queue *queue, uint64_t key, unsigned int flags,
		     struct timewheel_token *token)
{
	int result = queue->plain ? result_of(tw_wheel_get(queue->plain, key, flags, token)) :
				    -ENODEV;

	if (!result && token->id != STAMP)
		token->cookie &= ~GRANTED;
	return result;
}

/* Tells whether the wheel finds the job by its key. A shared store finds the key by itself. */
static bool has_places(const struct job *job)
{
	return job->key_length && !store->shared;
}

/* Returns 1 if the wheel is the wheel of the row's epoch, 0 if it is another wheel, or an error. */
static int has_stamp(struct queue *queue)
{
	struct timewheel_token token;
	int result = get_token(queue, STAMP, 0, &token);

	if (result)
		return result == -ENOENT ? 0 : result;
	if (token.cookie != queue->row.epoch)
		return 0;
	/* The wheel rounds times up to its ticks. */
	queue->loaded = token.deadline < LOADED + NSEC_PER_SEC;
	return 1;
}

int queue_begin_load(struct queue *queue)
{
	int result = RUN(queue, register, STAMP, LOADING, queue->row.epoch,
			 ABSOLUTE);

	return result == -EEXIST ? 0 : result;
}

void queue_end_load(struct queue *queue)
{
	queue->loaded = !RUN(queue, move, STAMP, LOADED, ABSOLUTE);
}

/* Gives the file to the service manager, which keeps it and does not poll it. */
static void keep_file(struct queue *queue)
{
	char state[128], name[TIMEWHEEL_NAME_SIZE];
	int fd = tw_wheel_fd(queue->plain);

	wheel_name(queue, name);
	snprintf(state, sizeof(state), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	sd_pid_notify_with_fds(0, 0, state, &fd, 1);
}

static void forget_file(struct queue *queue)
{
	char state[128], name[TIMEWHEEL_NAME_SIZE];

	wheel_name(queue, name);
	snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	sd_notify(0, state);
}

/*
 * Returns the file that the service manager has passed by this name. The next call for the name
 * returns -1.
 */
static int passed_file(const char *name)
{
	static char **names;
	static int count = -1;

	if (count < 0)
		count = sd_listen_fds_with_names(0, &names);
	for (int i = 0; i < count; i++) {
		if (strcmp(names[i], name))
			continue;
		names[i][0] = '\0';
		return SD_LISTEN_FDS_START + i;
	}
	return -1;
}

/*
 * A wheel belongs to the daemon that has locked the wheel's file. A file that the service manager
 * keeps stays locked, too. -EBUSY: the wheel is another daemon's. No other daemon can open a
 * wheel of this process.
 */
static int lock_wheel(struct queue *queue)
{
	if (tw_wheel_is_process(queue->plain))
		return 0;
	return flock(tw_wheel_fd(queue->plain), LOCK_EX | LOCK_NB) < 0 ? -EBUSY : 0;
}

/*
 * Opens the wheel by the file that has been kept. Returns false if there is no such file, or if
 * the wheel's stamp is another one.
 */
static bool open_kept(struct queue *queue, const char *name)
{
	int fd = passed_file(name);

	if (fd < 0)
		return false;
	queue->plain = tw_wheel_open_fd(fd);
	if (!queue->plain)
		close(fd);
	else if (has_stamp(queue) > 0 && !lock_wheel(queue))
		return true;
	if (queue->plain)
		flock(fd, LOCK_UN);
	tw_wheel_close(queue->plain);
	queue->plain = NULL;
	forget_file(queue);
	return false;
}

static int new_epoch(struct queue *queue)
{
	do {
		if (getrandom(&queue->row.epoch, sizeof(queue->row.epoch), 0) < 0)
			return -errno;
		queue->row.epoch >>= 1;
	} while (!queue->row.epoch);
	queue->made = true;
	return 0;
}

/* Opens the wheel of this name, unless another daemon has it. Returns 0 or an error. */
static int open_locked(struct queue *queue, const char *name)
{
	queue->plain = tw_wheel_open_named(name, O_RDWR);
	return queue->plain ? lock_wheel(queue) : -errno;
}

/* Opens the wheel as open_locked() does. Returns an error, or the result of has_stamp(). */
static int open_existing(struct queue *queue, const char *name)
{
	return open_locked(queue, name) ?: has_stamp(queue);
}

/* Returns 1 if the row's wheel was there, 0 if a new wheel has been made, or an error. */
static int open_or_make(struct queue *queue, const char *name,
			const struct timewheel_setup *setup)
{
	int made = tw_wheel_create(name, setup, 0);
	bool other = made < 0 && errno == EEXIST;
	int result;

	if (made < 0 && !other)
		return errno == ENOENT ? -ENXIO : -errno;
	if (made) {
		result = other ? open_locked(queue, name) : open_existing(queue, name);
		if (result)
			return result;
		/* Another store may have made this wheel, or this store with other settings. */
		if (tw_wheel_destroy(name) < 0)
			return -errno;
		tw_wheel_close(queue->plain);
		if (tw_wheel_create(name, setup, 0) < 0) {
			queue->plain = NULL;
			return -errno;
		}
	}
	result = open_existing(queue, name);
	return result ?: new_epoch(queue);
}

/*
 * Destroys the kernel's wheel that an earlier process of this daemon has left. The wheel of
 * another daemon stays.
 */
static void destroy_kernels(void *of)
{
	struct queue *queue = of;
	char name[TIMEWHEEL_NAME_SIZE];

	wheel_name(queue, name);
	if (open_kept(queue, name) || open_existing(queue, name) > 0)
		queue_destroy_wheel(queue);
	queue_close_wheel(queue);
}

/* Opens the row's wheel, which may be new. Returns 0 or an error. */
static int open_plain(struct queue *queue, const char *name,
		      const struct timewheel_setup *setup)
{
	int result;

	if (wheels_in_process())
		wheels_forget_kernels(destroy_kernels, queue);
	else if (open_kept(queue, name))
		return 0;
	result = open_or_make(queue, name, setup);
	if (result >= 0 && !wheels_in_process())
		keep_file(queue);
	return result < 0 ? result : 0;
}

int queue_open_wheel(struct queue *queue)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_REALTIME,
		.slots = SLOTS,
		.tick = NSEC_PER_MSEC,
		.max_tokens = queue->row.max_jobs + SPARE,
		.lease = queue->row.lease * NSEC_PER_MSEC,
		.max_held = queue->row.max_jobs < MAX_HELD ? queue->row.max_jobs : MAX_HELD,
	};
	char name[TIMEWHEEL_NAME_SIZE];
	int result;

	queue_close_wheel(queue);
	wheel_name(queue, name);
	result = open_plain(queue, name, &setup);
	if (!result) {
		queue->bound = tw_wheel_open_named(name, O_RDWR);
		result = queue->bound ? 0 : -errno;
	}
	if (result)
		queue_close_wheel(queue);
	return result;
}

uint64_t queue_most_jobs(void)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };

	return tw_device_caps(&caps) < 0 ? 0 : caps.max_tokens - SPARE;
}

void queue_destroy_wheel(struct queue *queue)
{
	char name[TIMEWHEEL_NAME_SIZE];

	wheel_name(queue, name);
	forget_file(queue);
	queue_close_wheel(queue);
	if (tw_wheel_destroy(name) < 0 && errno != ENOENT)
		say("the wheel \"%s\": %s", name, tw_strerror(errno));
}

void queue_destroy_left(struct queue *queue)
{
	const struct bytes label = { queue->row.name, strlen(queue->row.name) };
	char name[TIMEWHEEL_NAME_SIZE];

	/* A new queue may have the name, or another daemon may have the wheel. */
	if (queue_find(label))
		return;
	wheel_name(queue, name);
	queue->plain = tw_wheel_open_named(name, O_RDWR);
	if (queue->plain && !lock_wheel(queue))
		queue_destroy_wheel(queue);
	queue_close_wheel(queue);
}

int queue_places(struct queue *queue, struct bytes key, uint64_t ids[PLACES],
		 struct timewheel_token tokens[PLACES])
{
	uint64_t first;

	if (!queue->plain)
		return -ENODEV;
	crypto_shorthash_siphash24((unsigned char *)&first,
				   (const unsigned char *)key.data, key.length,
				   store_secret);
	for (int i = 0; i < PLACES; i++)
		ids[i] = (first + i * 0x9e3779b97f4a7c15ULL) | KEYED;
	if (tw_wheel_get_many(queue->plain, ids, PLACES, 0, tokens, NULL) < 0)
		return -errno;
	for (int i = 0; i < PLACES; i++)
		tokens[i].cookie &= ~GRANTED;
	return 0;
}

/*
 * Returns the place of this job's token or, if @job is 0, a free place. Returns PLACES if there
 * is none.
 */
static int find_place(const struct timewheel_token tokens[PLACES], uint64_t job)
{
	int i = 0;

	while (i < PLACES && (tokens[i].state ? tokens[i].cookie : 0) != job)
		i++;
	return i;
}

int queue_token(struct queue *queue, const struct job *job,
		struct timewheel_token *token)
{
	struct timewheel_token tokens[PLACES];
	uint64_t ids[PLACES];
	int i, result;

	if (!has_places(job))
		return get_token(queue, job->id, 0, token);
	result = queue_places(queue, job_key(job), ids, tokens);
	if (result)
		return result;
	i = find_place(tokens, job->id);
	if (i == PLACES)
		return -ENOENT;
	*token = tokens[i];
	return 0;
}

int queue_find_job(struct queue *queue, const struct job *job,
		   struct timewheel_token *token)
{
	uint64_t now = now_ms();

	if (!store->shared)
		return queue_token(queue, job, token);
	*token = (struct timewheel_token) {
		.id = job->id,
		.cookie = job->id,
		.state = TIMEWHEEL_STATE_PENDING,
	};
	if (job->held_until > now) {
		token->state = TIMEWHEEL_STATE_HELD;
		token->left = (job->held_until - now) * NSEC_PER_MSEC;
	}
	return 0;
}

int queue_token_by_handle(struct queue *queue, uint64_t handle,
			  struct timewheel_token *token)
{
	int result = get_token(queue, handle, BY_HANDLE, token);

	return result == -ESTALE ? -ENOENT : result;
}

static int register_token(struct queue *queue, uint64_t id, uint64_t due, int64_t job,
			  uint64_t *handle)
{
	struct timewheel_op op;
	int result;

	tw_op_register(&op, id, queue_deadline(due), job, ABSOLUTE);
	result = run(queue, &op);
	if (!result)
		*handle = op.handle;
	return result;
}

int queue_register(struct queue *queue, const struct job *job, uint64_t *handle)
{
	struct timewheel_token tokens[PLACES];
	uint64_t ids[PLACES] = { job->id };
	int i = 0, result;

	if (store->shared && job->buried)
		return 0;
	if (has_places(job)) {
		result = queue_places(queue, job_key(job), ids, tokens);
		if (result)
			return result;
		if (find_place(tokens, job->id) < PLACES)
			return -EEXIST;
		i = find_place(tokens, 0);
		/* Tokens of other jobs have all places. */
		if (i == PLACES)
			return -ENOSPC;
	}
	return register_token(queue, ids[i], job_next_due(job), job->id, handle);
}

void queue_unregister(struct queue *queue, uint64_t handle)
{
	RUN(queue, delete, handle, BY_HANDLE);
	queue_reopen(queue);
}

int queue_walk(struct queue *queue, struct timewheel_token *tokens, int count)
{
	const struct timewheel_token *token;
	int n = 0, result = 1;

	if (!queue->plain)
		return -ENODEV;
	if (!queue->walk)
		queue->walk = tw_cursor_open(queue->plain, 0, TIMEWHEEL_NEVER);
	while (queue->walk && n < count && result > 0) {
		result = tw_cursor_next(queue->walk, &token);
		if (result <= 0 || token->id == STAMP)
			continue;
		tokens[n] = *token;
		tokens[n++].cookie &= ~GRANTED;
	}
	if (!queue->walk || result < 0)
		return -errno;
	if (!result) {
		tw_cursor_close(queue->walk);
		queue->walk = NULL;
	}
	return n;
}

int queue_read(struct queue *queue, bool bound, struct timewheel_event *events,
	       int count)
{
	struct tw_wheel *wheel = bound ? queue->bound : queue->plain;
	int n;

	if (!wheel)
		return -ENODEV;
	n = tw_wheel_read(wheel, events, count, 1);
	for (int i = 0; i < n; i++) {
		events[i].missed = !!(events[i].cookie & GRANTED);
		events[i].cookie &= ~GRANTED;
	}
	return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

int queue_extend(struct queue *queue, uint64_t handle, uint32_t delivery,
		 uint64_t ms)
{
	return RUN(queue, extend, handle, delivery, ms * NSEC_PER_MSEC, BY_HANDLE);
}

void queue_set_lease(struct queue *queue, const struct timewheel_event *event, uint64_t ms)
{
	RUN(queue, extend, event->handle, event->delivery, event->taken + ms * NSEC_PER_MSEC,
	    BY_HANDLE | ABSOLUTE);
}

bool queue_holds(struct queue *queue, uint64_t handle, uint32_t delivery,
		 struct timewheel_token *token)
{
	return !queue_token_by_handle(queue, handle, token) &&
	       token->state == TIMEWHEEL_STATE_HELD && token->delivery == delivery;
}

void queue_each_token(struct queue *queue,
		      void (*each)(struct queue *queue, const struct timewheel_token *token,
				   void *arg), void *arg)
{
	const struct timewheel_token *next;
	struct timewheel_token token;
	struct tw_cursor *walk;

	if (!queue->plain)
		return;
	walk = tw_cursor_open(queue->plain, 0, TIMEWHEEL_NEVER);
	while (walk && tw_cursor_next(walk, &next) > 0) {
		token = *next;
		token.cookie &= ~GRANTED;
		each(queue, &token, arg);
	}
	tw_cursor_close(walk);
}

/*
 * Shortens the lease of a delivery after the clock has been set back. If less than @back is left
 * of the lease, it has ended, or it began after that moment and lasts no longer than the queue's
 * lease.
 */
static void shorten(struct queue *queue, const struct timewheel_token *token, void *arg)
{
	uint64_t lease = queue->row.lease * NSEC_PER_MSEC, back = *(uint64_t *)arg;
	uint64_t left = token->left > back ? token->left - back :
			token->left < lease ? token->left : lease;

	if (token->state != TIMEWHEEL_STATE_HELD)
		return;
	if (left < NSEC_PER_MSEC)
		left = NSEC_PER_MSEC;
	RUN(queue, extend, token->handle, token->delivery,
	    token->lease_end - token->left + left, BY_HANDLE | ABSOLUTE);
}

void queue_set_back(struct queue *queue, uint64_t back)
{
	queue_each_token(queue, shorten, &back);
	queue->limits.full = 0;
	queue_forget_leases(queue);
}

int queue_hold(struct queue *queue, const struct job *job, uint64_t lease_end,
	       struct timewheel_event *event)
{
	struct job due = *job;
	uint64_t handle;
	int result;

	/* The job was due, although the clock may have been set back after that. */
	due.due = 1;
	result = queue_register(queue, &due, &handle);
	if (!result && queue_read(queue, false, event, 1) != 1)
		result = -EAGAIN;
	return result ?: RUN(queue, extend, event->handle, event->delivery, lease_end,
			     BY_HANDLE | ABSOLUTE);
}

struct change queue_change(const struct queue *queue, const struct job *job,
			   const struct timewheel_token *token,
			   uint32_t delivery, enum change_to to)
{
	return (struct change) {
		.queue = queue->row.id,
		.job = job->id,
		.epoch = queue->row.epoch,
		.id = token->id,
		.handle = token->handle,
		.due = job_next_due(job),
		.delivery = delivery,
		.to = to,
	};
}

/*
 * One call deletes the old token and registers the new one, so that a kill leaves one of them. If
 * the change has been applied before, the id is taken and the call changes nothing.
 */
static void make_new(struct queue *queue, const struct change *change)
{
	struct tw_batch *batch = tw_batch_new(2);

	if (!batch)
		die(ENOMEM, "a token");
	tw_op_delete(tw_batch_next(batch), change->handle, BY_HANDLE);
	tw_op_register(tw_batch_next(batch), change->id, queue_deadline(change->due),
		       change->job, ABSOLUTE);
	if (queue->plain)
		tw_batch_run(batch, queue->plain);
	tw_batch_free(batch);
	queue_reopen(queue);
}

int queue_give_back(struct queue *queue, uint64_t handle, uint32_t delivery,
		    uint64_t due)
{
	int result = RUN(queue, nack, handle, delivery, queue_deadline(due),
			 BY_HANDLE | ABSOLUTE);

	queue_reopen(queue);
	return result;
}

bool queue_is_granted(const struct timewheel_event *event, const struct job *job)
{
	return event->missed && event->delivery == 1 &&
	       event->deadline > queue_deadline(job->due);
}

void queue_grant(struct queue *queue, const struct timewheel_event *event, uint64_t due)
{
	make_new(queue, &(struct change) {
		.id = event->id,
		.handle = event->handle,
		.job = event->cookie | GRANTED,
		.due = due,
	});
}

void queue_take_back(struct queue *queue, uint64_t handle, uint32_t delivery,
		     uint64_t due)
{
	struct timewheel_token token;

	if (delivery > 1)
		queue_give_back(queue, handle, delivery, due);
	else if (queue_holds(queue, handle, delivery, &token))
		make_new(queue, &(struct change) {
			.id = token.id,
			.handle = handle,
			.job = token.cookie,
			.due = due,
		});
}

static void make_pending(struct queue *queue, const struct change *change)
{
	struct timewheel_token token;
	int result = -ESTALE;

	if (change->delivery)
		result = queue_give_back(queue, change->handle, change->delivery,
					 change->due);
	if (result == -ESTALE)
		result = RUN(queue, move, change->handle,
			     queue_deadline(change->due), BY_HANDLE | ABSOLUTE);
	/* A token that still exists has been delivered again, or make_new() has made it. */
	if (result == -ESTALE &&
	    queue_token_by_handle(queue, change->handle, &token) == -ENOENT)
		make_new(queue, change);
}

/*
 * With a shared store the job may have any token, or none. The row decides whether there is a new
 * token.
 */
static void make_as_row(struct queue *queue, const struct change *change)
{
	uint64_t handle;

	RUN(queue, delete, change->id, 0);
	if (change->to != CHANGE_TO_GONE && change->due != PARKED)
		register_token(queue, change->id, change->due, change->job, &handle);
}

void queue_apply(struct queue *queue, const struct change *change)
{
	queue_changed(change->job);
	if (store->shared) {
		make_as_row(queue, change);
		return;
	}
	switch ((enum change_to)change->to) {
	case CHANGE_TO_GONE:
		queue_unregister(queue, change->handle);
		break;
	case CHANGE_TO_PENDING:
		make_pending(queue, change);
		break;
	case CHANGE_TO_NEW:
		make_new(queue, change);
		break;
	}
}
