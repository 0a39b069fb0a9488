/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long to wait for a wheel: until a time of CLOCK_MONOTONIC.
 */
#ifndef TW_WAIT_H
#define TW_WAIT_H

#include <poll.h>
#include <time.h>

#include "internal.h"

static inline uint64_t tw_monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * TW_NSEC_PER_SEC + now.tv_nsec;
}

/* When @timeout from now is over. What does not fit is never. */
static inline uint64_t tw_end_of(uint64_t timeout)
{
	uint64_t now = tw_monotonic_now();

	return timeout < TIMEWHEEL_NEVER - now ? now + timeout : TIMEWHEEL_NEVER;
}

/*
 * Waits until poll(2) has something to tell of the wheel, or @end has come: polls
 * at least once. Returns what it tells, 0 for nothing, or -1 and errno.
 */
static inline int tw_wait_until(int fd, uint64_t end)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	uint64_t now = tw_monotonic_now();
	struct timespec left = { };

	/* A time_t may have 32 bits: 68 years. */
	if (end > now && (end - now) / TW_NSEC_PER_SEC >= INT32_MAX) {
		left.tv_sec = INT32_MAX;
	} else if (end > now) {
		left.tv_sec = (end - now) / TW_NSEC_PER_SEC;
		left.tv_nsec = (end - now) % TW_NSEC_PER_SEC;
	}
	if (ppoll(&pollfd, 1, end == TIMEWHEEL_NEVER ? NULL : &left, NULL) < 0)
		return -1;
	return pollfd.revents;
}

#endif /* TW_WAIT_H */
