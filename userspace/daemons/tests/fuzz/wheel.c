// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheels in memory, in place of libtimewheel's: as much of them as twjobd uses, so that
 * its verbs can be tried where there is no device. They end with their process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <timewheel.h>

#include "wheel.h"

#define WHEELS	8
#define BUCKETS	(1 << 16)
#define NONE	UINT32_MAX

/* A token's handle tells its place, and how many tokens have been there before. */
struct place {
	struct timewheel_token token;
	uint32_t uses;
	uint32_t next;			/* of its bucket, or of those that are free */
};

/*
 * Handles by time, the first one on top. Each change of a token adds one; what a token has
 * been before is dropped when it comes to the top.
 */
struct heap {
	struct entry {
		uint64_t time, handle;
	} *entries;
	size_t count, room;
};

static struct wheel {
	char name[TIMEWHEEL_NAME_SIZE];		/* "" if there is none */
	uint64_t lease, max;
	struct place *places;
	uint32_t count, room, free;
	uint32_t *buckets;			/* by id */
	struct heap pending, held;
	uint64_t states[TIMEWHEEL_STATE_HELD + 1];
	uint64_t armed;
} wheels[WHEELS];

struct tw_wheel {
	struct wheel *wheel;
	int fd;
	struct tw_wheel *next;
};

static struct tw_wheel *files;

struct tw_cursor {
	struct wheel *wheel;
	uint32_t next;
};

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static void *grow(void *array, size_t count, size_t size)
{
	array = realloc(array, count * size);
	if (!array)
		abort();
	return array;
}

static void heap_swap(struct entry *a, struct entry *b)
{
	struct entry c = *a;

	*a = *b;
	*b = c;
}

static void heap_add(struct heap *heap, uint64_t time, uint64_t handle)
{
	size_t i = heap->count++;

	if (i == heap->room) {
		heap->room = 2 * i + 64;
		heap->entries = grow(heap->entries, heap->room, sizeof(*heap->entries));
	}
	heap->entries[i] = (struct entry) { time, handle };
	for (; i && heap->entries[i].time < heap->entries[(i - 1) / 2].time; i = (i - 1) / 2)
		heap_swap(&heap->entries[i], &heap->entries[(i - 1) / 2]);
}

static void heap_drop(struct heap *heap)
{
	struct entry *entries = heap->entries;
	size_t i = 0, child;

	entries[0] = entries[--heap->count];
	while ((child = 2 * i + 1) < heap->count) {
		if (child + 1 < heap->count && entries[child + 1].time < entries[child].time)
			child++;
		if (entries[i].time <= entries[child].time)
			break;
		heap_swap(&entries[i], &entries[child]);
		i = child;
	}
}

static struct timewheel_token *by_handle(struct wheel *wheel, uint64_t handle)
{
	uint32_t i = handle;

	if (i >= wheel->count || !wheel->places[i].token.state ||
	    wheel->places[i].token.handle != handle)
		return NULL;
	return &wheel->places[i].token;
}

/* When something can be read of the token. */
static uint64_t next_time(const struct timewheel_token *token)
{
	return token->state == TIMEWHEEL_STATE_HELD ? token->lease_end : token->deadline;
}

/* The first token that has this state, for which the heap is; NULL: none. */
static struct timewheel_token *first(struct wheel *wheel, struct heap *heap,
				     unsigned int state)
{
	while (heap->count) {
		struct timewheel_token *token = by_handle(wheel, heap->entries[0].handle);

		if (token && token->state == state &&
		    next_time(token) == heap->entries[0].time)
			return token;
		heap_drop(heap);
	}
	return NULL;
}

static struct timewheel_token *first_pending(struct wheel *wheel)
{
	return first(wheel, &wheel->pending, TIMEWHEEL_STATE_PENDING);
}

static struct timewheel_token *first_held(struct wheel *wheel)
{
	return first(wheel, &wheel->held, TIMEWHEEL_STATE_HELD);
}

static void set_state(struct wheel *wheel, struct timewheel_token *token,
		      unsigned int state)
{
	wheel->states[token->state]--;
	token->state = state;
	wheel->states[state]++;
	if (state == TIMEWHEEL_STATE_PENDING)
		heap_add(&wheel->pending, token->deadline, token->handle);
	else if (state == TIMEWHEEL_STATE_HELD)
		heap_add(&wheel->held, token->lease_end, token->handle);
}

/* Files can be read when a token is due, or its lease is over. */
static void arm(struct wheel *wheel)
{
	const struct timewheel_token *pending = first_pending(wheel);
	const struct timewheel_token *held = first_held(wheel);
	uint64_t next = pending ? pending->deadline : UINT64_MAX;
	struct itimerspec when = { };

	if (held && held->lease_end < next)
		next = held->lease_end;
	if (next == wheel->armed)
		return;
	wheel->armed = next;
	if (next != UINT64_MAX) {
		when.it_value.tv_sec = next / 1000000000;
		when.it_value.tv_nsec = next % 1000000000 | 1;
	}
	for (struct tw_wheel *file = files; file; file = file->next)
		if (file->wheel == wheel)
			timerfd_settime(file->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static int fails(int error)
{
	errno = error;
	return -1;
}

static struct wheel *find_wheel(const char *name)
{
	for (int i = 0; i < WHEELS; i++)
		if (!strcmp(wheels[i].name, name))
			return &wheels[i];
	return NULL;
}

int tw_wheel_create(const char *name, const struct timewheel_setup *setup,
		    unsigned int flags)
{
	struct wheel *wheel = find_wheel("");

	(void)flags;
	if (find_wheel(name))
		return fails(EEXIST);
	if (!wheel)
		return fails(ENOSPC);
	memset(wheel, 0, sizeof(*wheel));
	strcpy(wheel->name, name);
	wheel->lease = setup->lease;
	wheel->max = setup->max_tokens;
	wheel->free = NONE;
	wheel->buckets = grow(NULL, BUCKETS, sizeof(*wheel->buckets));
	memset(wheel->buckets, 0xff, BUCKETS * sizeof(*wheel->buckets));
	return 0;
}

int tw_wheel_destroy(const char *name)
{
	struct wheel *wheel = find_wheel(name);

	if (!wheel)
		return fails(ENOENT);
	free(wheel->places);
	free(wheel->buckets);
	free(wheel->pending.entries);
	free(wheel->held.entries);
	memset(wheel, 0, sizeof(*wheel));
	return 0;
}

struct tw_wheel *tw_wheel_open_named(const char *name, int flags)
{
	struct tw_wheel *file = calloc(1, sizeof(*file));

	(void)flags;
	file->wheel = find_wheel(name);
	if (!file->wheel) {
		free(file);
		errno = ENOENT;
		return NULL;
	}
	file->fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	file->next = files;
	files = file;
	file->wheel->armed = 0;
	arm(file->wheel);
	return file;
}

struct tw_wheel *tw_wheel_open_fd(int fd)
{
	(void)fd;
	errno = EBADF;
	return NULL;
}

void tw_wheel_close(struct tw_wheel *file)
{
	struct tw_wheel **link = &files;

	if (!file)
		return;
	while (*link != file)
		link = &(*link)->next;
	*link = file->next;
	close(file->fd);
	free(file);
}

int tw_wheel_fd(const struct tw_wheel *file)
{
	return file->fd;
}

static uint32_t *bucket_of(struct wheel *wheel, uint64_t id)
{
	return &wheel->buckets[(id * 0x9e3779b97f4a7c15) >> 48];
}

/* By id, or by handle. */
static struct timewheel_token *find(struct wheel *wheel, uint64_t key, uint32_t flags)
{
	if (flags & TIMEWHEEL_OPF_BY_HANDLE)
		return by_handle(wheel, key);
	for (uint32_t i = wheel->count ? *bucket_of(wheel, key) : NONE; i != NONE;
	     i = wheel->places[i].next)
		if (wheel->places[i].token.id == key)
			return &wheel->places[i].token;
	return NULL;
}

int tw_wheel_get(const struct tw_wheel *file, uint64_t key, unsigned int flags,
		 struct timewheel_token *token)
{
	struct timewheel_token *found = find(file->wheel, key, flags);

	if (!found)
		return fails(flags & TIMEWHEEL_OPF_BY_HANDLE ? ESTALE : ENOENT);
	*token = *found;
	return 0;
}

int tw_wheel_get_many(const struct tw_wheel *file, const uint64_t *keys,
		      size_t count, unsigned int flags,
		      struct timewheel_token *tokens, size_t *done)
{
	(void)done;
	for (size_t i = 0; i < count; i++) {
		struct timewheel_token *found = find(file->wheel, keys[i], flags);

		memset(&tokens[i], 0, sizeof(tokens[i]));
		if (found)
			tokens[i] = *found;
	}
	return 0;
}

/* A place that is free. */
static uint32_t new_place(struct wheel *wheel)
{
	uint32_t i = wheel->free;

	if (i != NONE) {
		wheel->free = wheel->places[i].next;
		return i;
	}
	if (wheel->count == wheel->room) {
		wheel->room = 2 * wheel->room + 64;
		wheel->places = grow(wheel->places, wheel->room, sizeof(*wheel->places));
	}
	wheel->places[wheel->count] = (struct place) { };
	wheel->states[TIMEWHEEL_STATE_NONE]++;
	return wheel->count++;
}

static int registers(struct wheel *wheel, struct timewheel_op *op)
{
	uint32_t i, *bucket = bucket_of(wheel, op->id);
	struct place *place;

	if (find(wheel, op->id, 0))
		return fails(EEXIST);
	if (wheel->count - wheel->states[TIMEWHEEL_STATE_NONE] >= wheel->max)
		return fails(ENOSPC);
	i = new_place(wheel);
	place = &wheel->places[i];
	place->next = *bucket;
	place->uses++;
	*bucket = i;
	place->token = (struct timewheel_token) {
		.id = op->id,
		.handle = (uint64_t)place->uses << 32 | i,
		.cookie = op->cookie,
		.deadline = op->time,
	};
	set_state(wheel, &place->token, TIMEWHEEL_STATE_PENDING);
	op->handle = place->token.handle;
	return 0;
}

static void removes(struct wheel *wheel, struct timewheel_token *token)
{
	uint32_t i = token->handle, *link = bucket_of(wheel, token->id);

	while (*link != i)
		link = &wheel->places[*link].next;
	*link = wheel->places[i].next;
	wheel->places[i].next = wheel->free;
	wheel->free = i;
	set_state(wheel, token, TIMEWHEEL_STATE_NONE);
}

static int pend(struct wheel *wheel, struct timewheel_token *token, uint64_t deadline)
{
	token->deadline = deadline;
	set_state(wheel, token, TIMEWHEEL_STATE_PENDING);
	return 0;
}

static void hold(struct wheel *wheel, struct timewheel_token *token, uint64_t end)
{
	token->lease_end = end;
	set_state(wheel, token, TIMEWHEEL_STATE_HELD);
}

/* What is about a delivery, or about a token that is not held. */
static int change(struct wheel *wheel, struct timewheel_token *token,
		  struct timewheel_op *op)
{
	bool held = token->state == TIMEWHEEL_STATE_HELD;
	uint64_t end;

	switch (op->code) {
	case TIMEWHEEL_OP_DELETE:
		removes(wheel, token);
		return 0;
	case TIMEWHEEL_OP_MOVE:
		return token->state == TIMEWHEEL_STATE_PENDING ?
		       pend(wheel, token, op->time) : fails(ESTALE);
	case TIMEWHEEL_OP_EXTEND:
	case TIMEWHEEL_OP_NACK:
		if (!held || op->delivery != token->delivery)
			return fails(ESTALE);
		if (op->code == TIMEWHEEL_OP_NACK)
			return pend(wheel, token, op->time);
		end = now() + (op->time ?: wheel->lease);
		if (op->flags & TIMEWHEEL_OPF_ABSOLUTE)
			end = op->time;
		else if (end < token->lease_end)
			end = token->lease_end;
		hold(wheel, token, end);
		return 0;
	default:
		abort();
	}
}

static int carry_out(struct tw_wheel *file, struct timewheel_op *op)
{
	struct timewheel_token *token;

	if (op->code == TIMEWHEEL_OP_REGISTER)
		return registers(file->wheel, op);
	token = find(file->wheel, op->flags & TIMEWHEEL_OPF_BY_HANDLE ?
		     op->handle : op->id, op->flags);
	return token ? change(file->wheel, token, op) : fails(ESTALE);
}

int tw_wheel_run(struct tw_wheel *file, struct timewheel_op *op)
{
	int result = carry_out(file, op);

	arm(file->wheel);
	return result;
}

struct tw_batch {
	size_t count;
	struct timewheel_op ops[];
};

struct tw_batch *tw_batch_new(size_t capacity)
{
	return calloc(1, sizeof(struct tw_batch) + capacity * sizeof(struct timewheel_op));
}

void tw_batch_free(struct tw_batch *batch)
{
	free(batch);
}

struct timewheel_op *tw_batch_next(struct tw_batch *batch)
{
	return &batch->ops[batch->count++];
}

int tw_batch_run(struct tw_batch *batch, struct tw_wheel *file)
{
	int failed = 0;

	for (size_t i = 0; i < batch->count; i++)
		failed += tw_wheel_run(file, &batch->ops[i]) < 0;
	return failed;
}

static size_t deliver(struct wheel *wheel, struct timewheel_event *events, size_t most)
{
	struct timewheel_token *token;
	uint64_t time = now();
	size_t count = 0;

	while ((token = first_held(wheel)) && token->lease_end <= time)
		pend(wheel, token, token->deadline);
	while (count < most && (token = first_pending(wheel)) && token->deadline <= time) {
		token->delivery++;
		hold(wheel, token, now() + wheel->lease);
		events[count++] = (struct timewheel_event) {
			.id = token->id,
			.handle = token->handle,
			.cookie = token->cookie,
			.deadline = token->deadline,
			.taken = now(),
			.delivery = token->delivery,
		};
	}
	return count;
}

/* A read of a wheel's file gives deliveries. */
ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	struct tw_wheel *file = files;

	while (file && file->fd != fd)
		file = file->next;
	if (!file)
		return __real_read(fd, buffer, size);
	size = deliver(file->wheel, buffer, size / sizeof(struct timewheel_event));
	arm(file->wheel);
	return size ? (ssize_t)(size * sizeof(struct timewheel_event)) : fails(EAGAIN);
}

int tw_wheel_info(const struct tw_wheel *file, struct timewheel_info *info)
{
	const struct timewheel_token *token = first_pending(file->wheel);

	info->now = now();
	info->next = token ? token->deadline : TIMEWHEEL_NEVER;
	info->pending = file->wheel->states[TIMEWHEEL_STATE_PENDING];
	info->held = file->wheel->states[TIMEWHEEL_STATE_HELD];
	return 0;
}

int tw_device_caps(struct timewheel_caps *caps)
{
	caps->max_tokens = 1 << 24;
	return 0;
}

struct tw_cursor *tw_cursor_open(const struct tw_wheel *file, uint64_t from,
				 uint64_t to)
{
	struct tw_cursor *cursor = calloc(1, sizeof(*cursor));

	(void)from;
	(void)to;
	cursor->wheel = file->wheel;
	return cursor;
}

void tw_cursor_close(struct tw_cursor *cursor)
{
	free(cursor);
}

int tw_cursor_next(struct tw_cursor *cursor, const struct timewheel_token **token)
{
	while (cursor->next < cursor->wheel->count) {
		*token = &cursor->wheel->places[cursor->next++].token;
		if ((*token)->state)
			return 1;
	}
	return 0;
}

const char *tw_strerror(int error)
{
	return strerror(error);
}
