/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clocks: what turns a wheel, and how a process in a time namespace sees it.
 */
#ifndef TW_CLOCK_H
#define TW_CLOCK_H

#include <linux/ktime.h>
#include <linux/timekeeping.h>
#include <linux/timewheel.h>
#include <linux/types.h>

clockid_t tw_clock_id(enum timewheel_clock clock);
const char *tw_clock_name(enum timewheel_clock clock);
s64 tw_clock_offset(enum timewheel_clock clock);
u64 tw_clock_from_user(u64 time, s64 offset);

/* Host time in ns; not of a MANUAL wheel, which keeps its own. */
static inline u64 tw_clock_ns(enum timewheel_clock clock)
{
	switch (clock) {
	case TIMEWHEEL_CLOCK_BOOTTIME:
		return ktime_get_boottime_ns();
	case TIMEWHEEL_CLOCK_REALTIME:
		return ktime_get_real_ns();
	default:
		return ktime_get_ns();
	}
}

/* A process's time of host time, which is at most S64_MAX. */
static inline u64 tw_clock_to_user(u64 time, s64 offset)
{
	if (offset < 0)
		return time > -offset ? time - -offset : 0;

	return time + offset;
}

#endif /* TW_CLOCK_H */
