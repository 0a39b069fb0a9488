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
#define TOKENS	1024

static struct wheel {
	char name[TIMEWHEEL_NAME_SIZE];		/* "" if there is none */
	uint64_t lease;
	struct timewheel_token tokens[TOKENS];	/* NONE: not used */
	uint64_t next_handle;
} wheels[WHEELS];

struct tw_wheel {
	struct wheel *wheel;
	int fd;
	struct tw_wheel *next;
};

static struct tw_wheel *files;

struct tw_cursor {
	struct wheel *wheel;
	int next;
};

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_REALTIME, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* When something can be read of the token. */
static uint64_t next_time(const struct timewheel_token *token)
{
	switch (token->state) {
	case TIMEWHEEL_STATE_PENDING:
		return token->deadline;
	case TIMEWHEEL_STATE_HELD:
		return token->lease_end;
	default:
		return UINT64_MAX;
	}
}

/* Files can be read when a token is due, or its lease is over. */
static void arm(const struct wheel *wheel)
{
	uint64_t next = UINT64_MAX;
	struct itimerspec when = { };

	for (int i = 0; i < TOKENS; i++)
		if (next_time(&wheel->tokens[i]) < next)
			next = next_time(&wheel->tokens[i]);
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
	wheel->next_handle = 1;
	return 0;
}

int tw_wheel_destroy(const char *name)
{
	struct wheel *wheel = find_wheel(name);

	if (!wheel)
		return fails(ENOENT);
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

/* By id, or by handle. */
static struct timewheel_token *find(struct wheel *wheel, uint64_t key, uint32_t flags)
{
	for (int i = 0; i < TOKENS; i++) {
		struct timewheel_token *token = &wheel->tokens[i];

		if (token->state && key == (flags & TIMEWHEEL_OPF_BY_HANDLE ?
					    token->handle : token->id))
			return token;
	}
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

static int registers(struct wheel *wheel, struct timewheel_op *op)
{
	if (find(wheel, op->id, 0))
		return fails(EEXIST);
	for (int i = 0; i < TOKENS; i++) {
		struct timewheel_token *token = &wheel->tokens[i];

		if (token->state)
			continue;
		*token = (struct timewheel_token) {
			.id = op->id,
			.handle = wheel->next_handle++,
			.cookie = op->cookie,
			.deadline = op->time,
			.state = TIMEWHEEL_STATE_PENDING,
		};
		op->handle = token->handle;
		return 0;
	}
	return fails(ENOSPC);
}

static int pend(struct timewheel_token *token, uint64_t deadline)
{
	token->state = TIMEWHEEL_STATE_PENDING;
	token->deadline = deadline;
	return 0;
}

/* What is about a delivery, or about a token that is not held. */
static int change(struct wheel *wheel, struct timewheel_token *token,
		  struct timewheel_op *op)
{
	bool held = token->state == TIMEWHEEL_STATE_HELD;

	switch (op->code) {
	case TIMEWHEEL_OP_DELETE:
		token->state = TIMEWHEEL_STATE_NONE;
		return 0;
	case TIMEWHEEL_OP_BURY:
		if (held && op->delivery != token->delivery)
			return fails(ESTALE);
		token->state = TIMEWHEEL_STATE_BURIED;
		return 0;
	case TIMEWHEEL_OP_MOVE:
		return token->state == TIMEWHEEL_STATE_PENDING ?
		       pend(token, op->time) : fails(ESTALE);
	case TIMEWHEEL_OP_EXTEND:
	case TIMEWHEEL_OP_NACK:
		if (!held || op->delivery != token->delivery)
			return fails(ESTALE);
		if (op->code == TIMEWHEEL_OP_NACK)
			return pend(token, op->time);
		if (op->time > 1000 * wheel->lease)
			return fails(ERANGE);
		token->lease_end = now() + (op->time ?: wheel->lease);
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

static size_t deliver(struct wheel *wheel, struct timewheel_event *events, size_t most)
{
	size_t count = 0;

	for (int i = 0; i < TOKENS && count < most; i++) {
		struct timewheel_token *token = &wheel->tokens[i];

		if (token->state == TIMEWHEEL_STATE_HELD && token->lease_end <= now())
			pend(token, token->deadline);
		if (token->state != TIMEWHEEL_STATE_PENDING || token->deadline > now())
			continue;
		token->state = TIMEWHEEL_STATE_HELD;
		token->lease_end = now() + wheel->lease;
		token->delivery++;
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
	info->now = now();
	info->next = TIMEWHEEL_NEVER;
	for (int i = 0; i < TOKENS; i++) {
		const struct timewheel_token *token = &file->wheel->tokens[i];

		info->pending += token->state == TIMEWHEEL_STATE_PENDING;
		info->held += token->state == TIMEWHEEL_STATE_HELD;
		info->buried += token->state == TIMEWHEEL_STATE_BURIED;
		if (token->state == TIMEWHEEL_STATE_PENDING &&
		    token->deadline < info->next)
			info->next = token->deadline;
	}
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
	while (cursor->next < TOKENS) {
		*token = &cursor->wheel->tokens[cursor->next++];
		if ((*token)->state)
			return 1;
	}
	return 0;
}

const char *tw_strerror(int error)
{
	return strerror(error);
}
