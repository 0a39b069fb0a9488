// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events: expired tokens are read into a buffer, with or without a wait.
 */
#include <poll.h>
#include <sys/uio.h>
#include <time.h>

#include "internal.h"

struct tw_events {
	size_t			capacity;
	size_t			count;
	struct timewheel_event	events[];
};

struct tw_events *tw_events_new(size_t capacity)
{
	const size_t most = (SIZE_MAX - sizeof(struct tw_events)) /
			    sizeof(struct timewheel_event);
	struct tw_events *events;

	if (!capacity || capacity > most) {
		errno = capacity ? ENOMEM : EINVAL;
		return NULL;
	}
	events = malloc(sizeof(*events) + capacity * sizeof(events->events[0]));
	if (!events)
		return NULL;
	events->capacity = capacity;
	events->count = 0;
	return events;
}

void tw_events_free(struct tw_events *events)
{
	free(events);
}

size_t tw_events_count(const struct tw_events *events)
{
	return events->count;
}

const struct timewheel_event *tw_events_at(const struct tw_events *events,
					   size_t index)
{
	if (index >= events->count) {
		errno = EDOM;
		return NULL;
	}
	return &events->events[index];
}

static uint64_t monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * TW_SEC(1) + now.tv_nsec;
}

/* Returns the end of @timeout from now, or never if that is beyond 64 bits. */
static uint64_t end_of(uint64_t timeout)
{
	uint64_t now = monotonic_now();

	return timeout < TIMEWHEEL_NEVER - now ? now + timeout : TIMEWHEEL_NEVER;
}

/*
 * Waits until poll(2) reports an event of the wheel, or until @end. Polls at least
 * once. Returns the poll's events, 0 for none, or -1 and errno.
 */
static int wait_until(int fd, uint64_t end)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	uint64_t now = monotonic_now();
	struct timespec left = { };

	/* A time_t may have 32 bits, which are enough for 68 years. */
	if (end > now && (end - now) / TW_SEC(1) >= INT32_MAX) {
		left.tv_sec = INT32_MAX;
	} else if (end > now) {
		left.tv_sec = (end - now) / TW_SEC(1);
		left.tv_nsec = (end - now) % TW_SEC(1);
	}
	if (ppoll(&pollfd, 1, end == TIMEWHEEL_NEVER ? NULL : &left, NULL) < 0)
		return -1;
	if (pollfd.revents & POLLNVAL) {
		errno = EBADF;
		return -1;
	}
	return pollfd.revents;
}

int tw_wheel_read(struct tw_wheel *wheel, struct timewheel_event *events, size_t count,
		  int nowait)
{
	/* read(2) and similar calls read no more bytes at once. */
	const size_t most = INT32_MAX / sizeof(*events);
	struct iovec room = {
		.iov_base = events,
		.iov_len = (count < most ? count : most) * sizeof(*events),
	};
	ssize_t bytes;

	if (wheel->process)
		bytes = tw_result(tw_process_read(wheel->process, room.iov_base,
						  room.iov_len, nowait));
	else
		bytes = preadv2(wheel->fd, &room, 1, -1, nowait ? RWF_NOWAIT : 0);
	return bytes < 0 ? -1 : bytes / (ssize_t)sizeof(*events);
}

/* Reads due events. */
static int read_due(struct tw_events *events, struct tw_wheel *wheel, int nowait)
{
	return tw_wheel_read(wheel, events->events, events->capacity, nowait);
}

/* Waits by poll(2), then reads; another reader may be faster. Returns the count. */
static int read_until(struct tw_events *events, struct tw_wheel *wheel, uint64_t end)
{
	int count, more;

	do {
		count = read_due(events, wheel, 1);
		if (count >= 0 || errno != EAGAIN)
			return count;
		more = end ? wait_until(wheel->fd, end) : 0;
	} while (more > 0);
	return more;
}

ssize_t tw_events_read(struct tw_events *events, struct tw_wheel *wheel,
		       uint64_t timeout)
{
	int count;

	events->count = 0;
	if (timeout == TIMEWHEEL_NEVER) {
		count = read_due(events, wheel, 0);
		/* The fd does not block, and the wait is left to poll(2). */
		if (count < 0 && errno == EAGAIN)
			count = read_until(events, wheel, timeout);
	} else {
		count = read_until(events, wheel, timeout ? end_of(timeout) : 0);
	}
	if (count < 0)
		return -1;
	events->count = count;
	return count;
}
