// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events: expired tokens are read into a buffer, with or without a wait.
 */
#include <sys/uio.h>

#include "internal.h"
#include "wait.h"

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

/* Reads what is due. Returns bytes; with RWF_NOWAIT it does not wait for any. */
static ssize_t read_due(struct tw_events *events, int fd, int flags)
{
	struct iovec room = {
		.iov_base = events->events,
		.iov_len = events->capacity * sizeof(events->events[0]),
	};

	return preadv2(fd, &room, 1, -1, flags);
}

/* Reads, waiting by poll(2): others may take what woke us. Returns bytes. */
static ssize_t read_until(struct tw_events *events, int fd, uint64_t end)
{
	ssize_t bytes;
	int more;

	do {
		bytes = read_due(events, fd, RWF_NOWAIT);
		if (bytes >= 0 || errno != EAGAIN)
			return bytes;
		more = end ? tw_wait_until(fd, end) : 0;
	} while (more > 0);
	return more;
}

ssize_t tw_events_read(struct tw_events *events, struct tw_wheel *wheel,
		       uint64_t timeout)
{
	ssize_t bytes = -1;

	events->count = 0;
	if (timeout == TIMEWHEEL_NEVER) {
		bytes = read_due(events, wheel->fd, 0);
		/* An fd that may not block. */
		if (bytes < 0 && errno == EAGAIN)
			bytes = read_until(events, wheel->fd, timeout);
	} else {
		bytes = read_until(events, wheel->fd,
				   timeout ? tw_end_of(timeout) : 0);
	}
	if (bytes < 0)
		return -1;
	events->count = bytes / sizeof(events->events[0]);
	return events->count;
}
