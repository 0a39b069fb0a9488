/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for tests that change clocks: they set the wall clock and restore it at the
 * end, or enter a time namespace, which has clocks of its own.
 */
#ifndef TW_CLOCK_H
#define TW_CLOCK_H

#include <sched.h>

#include "tw_test.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

/* A test notes here how the wall clock stood, to restore it. */
struct tw_wall {
	__s64 offset;	/* of CLOCK_REALTIME to CLOCK_MONOTONIC */
	bool changed;
};

static inline int tw_set_wall(__u64 ns)
{
	const struct timespec ts = {
		.tv_sec = ns / TW_SEC, .tv_nsec = ns % TW_SEC,
	};

	return clock_settime(CLOCK_REALTIME, &ts);
}

/* Returns 0, or -1 and errno when the clock cannot be set. */
static inline int tw_save_wall(struct tw_wall *wall)
{
	wall->offset = tw_now(CLOCK_REALTIME) - tw_now(CLOCK_MONOTONIC);
	wall->changed = false;
	return tw_set_wall(tw_now(CLOCK_REALTIME));
}

/* Sets the wall clock @ns away from where it would be by itself. */
static inline int tw_shift_wall(struct tw_wall *wall, __s64 ns)
{
	wall->changed = true;
	return tw_set_wall(tw_now(CLOCK_MONOTONIC) + wall->offset + ns);
}

static inline int tw_restore_wall(struct tw_wall *wall)
{
	return wall->changed ? tw_shift_wall(wall, 0) : 0;
}

/* Enters a time namespace whose clock @id is @seconds ahead. */
static inline bool tw_enter_time_namespace(clockid_t id, __s64 seconds)
{
	char offset[64];
	int fd;

	snprintf(offset, sizeof(offset), "%d %lld 0\n", id, (long long)seconds);
	if (unshare(CLONE_NEWTIME) ||
	    !tw_write_file("/proc/self/timens_offsets", offset))
		return false;
	fd = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && !setns(fd, CLONE_NEWTIME);
}

#endif /* TW_CLOCK_H */
