// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Clocks: what turns a wheel, and how a process in a time namespace sees it.
 *
 * A process in a time namespace lives at host time + offset: its absolute times
 * are converted on their way in and out, so the wheel itself knows host time
 * only. Delays need no conversion.
 */
#include <linux/limits.h>
#include <linux/overflow.h>
#include <linux/time_namespace.h>

#include "clock.h"

/* Returns the clock that a wheel's timer runs on; not for a MANUAL wheel. */
clockid_t tw_clock_id(u32 clock)
{
	switch (clock) {
	case TIMEWHEEL_CLOCK_BOOTTIME:
		return CLOCK_BOOTTIME;
	case TIMEWHEEL_CLOCK_REALTIME:
		return CLOCK_REALTIME;
	default:
		return CLOCK_MONOTONIC;
	}
}

const char *tw_clock_name(u32 clock)
{
	static const char * const names[] = {
		[TIMEWHEEL_CLOCK_MONOTONIC]	= "monotonic",
		[TIMEWHEEL_CLOCK_BOOTTIME]	= "boottime",
		[TIMEWHEEL_CLOCK_REALTIME]	= "realtime",
		[TIMEWHEEL_CLOCK_MANUAL]	= "manual",
	};

	return names[clock];
}

/* Returns what the calling process has to add to host time. */
s64 tw_clock_offset(u32 clock)
{
	struct timespec64 offset = { };

	if (clock == TIMEWHEEL_CLOCK_MONOTONIC)
		timens_add_monotonic(&offset);
	else if (clock == TIMEWHEEL_CLOCK_BOOTTIME)
		timens_add_boottime(&offset);

	/* timespec64_to_ns() of older kernels takes a negative time for a huge one. */
	return ktime_to_ns(timespec64_to_ktime(offset));
}

/* Turns a process's time into host time. A time before the host's zero becomes 0. */
u64 tw_clock_from_user(u64 time, s64 offset)
{
	if (offset > 0)
		return time > offset ? time - offset : 0;
	if (check_add_overflow(time, (u64)-offset, &time))
		return U64_MAX;

	return time;
}
