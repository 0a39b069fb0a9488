/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Clocks: what turns a wheel, and how a process in a time namespace sees it.
 */
#ifndef TW_CLOCK_H
#define TW_CLOCK_H

#include <linux/ktime.h>
#include <linux/timekeeping.h>
#include <linux/timewheel.h>
#include <linux/types.h>

clockid_t tw_clock_id(u32 clock);
const char *tw_clock_name(u32 clock);
s64 tw_clock_offset(u32 clock);
u64 tw_clock_from_user(u64 time, s64 offset);

/* Returns host time in ns. A MANUAL wheel keeps its own time, and does not ask here. */
static inline u64 tw_clock_ns(u32 clock)
{
	if (likely(clock == TIMEWHEEL_CLOCK_MONOTONIC))
		return ktime_get_ns();

	return clock == TIMEWHEEL_CLOCK_BOOTTIME ? ktime_get_boottime_ns() :
						   ktime_get_real_ns();
}

/* Turns host time, which is at most S64_MAX, into a process's time. */
static inline u64 tw_clock_to_user(u64 time, s64 offset)
{
	if (offset < 0)
		return time > -offset ? time - -offset : 0;

	return time + offset;
}

#endif /* TW_CLOCK_H */
