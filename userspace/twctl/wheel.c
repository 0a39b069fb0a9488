// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheel that a verb works on, and times as that wheel counts them.
 */
#include "twctl.h"

enum status wheel_try_open(struct wheel *wheel, const char *name, int access)
{
	wheel->name = name;
	wheel->info = (struct timewheel_info) { .size = sizeof(wheel->info) };
	wheel->wheel = tw_wheel_open_named(name, access);
	if (!wheel->wheel && errno == ENODEV)
		errno = ENOENT;
	if (!wheel->wheel)
		return wheel_trouble(name);
	if (tw_wheel_info(wheel->wheel, &wheel->info) < 0) {
		wheel_close(wheel);
		return wheel_trouble(name);
	}
	wheel->real = real_now();
	return STATUS_OK;
}

/* Opens it or ends the program. */
void wheel_open(struct wheel *wheel, const char *name, int access)
{
	enum status status = wheel_try_open(wheel, name, access);

	if (status)
		exit(status);
}

void wheel_close(struct wheel *wheel)
{
	tw_wheel_close(wheel->wheel);
	wheel->wheel = NULL;
}

const char *clock_name(unsigned int clock)
{
	switch (clock) {
	case TIMEWHEEL_CLOCK_MONOTONIC:
		return "monotonic";
	case TIMEWHEEL_CLOCK_BOOTTIME:
		return "boottime";
	case TIMEWHEEL_CLOCK_REALTIME:
		return "realtime";
	case TIMEWHEEL_CLOCK_MANUAL:
		return "manual";
	default:
		return "unknown";
	}
}

/* Returns -1 if no clock has this name. */
int clock_of_name(const char *name)
{
	int clock;

	for (clock = 0; clock <= TIMEWHEEL_CLOCK_MANUAL; clock++) {
		if (!strcmp(name, clock_name(clock)))
			return clock;
	}
	return -1;
}

/* The state of a wheel: paused, draining, or both. */
const char *state_name(unsigned int state)
{
	switch (state & (TIMEWHEEL_CONTROL_PAUSED | TIMEWHEEL_CONTROL_DRAINING)) {
	case 0:
		return "running";
	case TIMEWHEEL_CONTROL_PAUSED:
		return "paused";
	case TIMEWHEEL_CONTROL_DRAINING:
		return "draining";
	default:
		return "paused+draining";
	}
}

/*
 * Only a REALTIME wheel counts wall time. For other wheels a point of wall time
 * becomes the delay from now until then, by the present wall time.
 */
struct wheel_time wheel_time_of(const struct wheel *wheel,
				const struct when *when)
{
	struct wheel_time time = { .ns = when->ns };

	switch (when->kind) {
	case WHEN_SPAN:
		break;
	case WHEN_CLOCK:
		time.absolute = true;
		break;
	case WHEN_REAL:
		if (wheel->info.clock == TIMEWHEEL_CLOCK_MANUAL)
			die(STATUS_USAGE,
			    "TIME at ...: wheel '%s' has a manual clock, which knows a span or 'clock NS' only",
			    wheel->name);
		if (wheel->info.clock == TIMEWHEEL_CLOCK_REALTIME)
			time.absolute = true;
		else
			time.ns = when->ns > wheel->real ?
				  when->ns - wheel->real : 0;
	}
	return time;
}

/* Turns a given time into a time of the wheel's clock, which may be past. */
uint64_t wheel_deadline_of(const struct wheel *wheel, const struct when *when)
{
	struct wheel_time time = wheel_time_of(wheel, when);
	uint64_t now = wheel->info.now, passed;

	if (time.absolute)
		return time.ns;
	if (when->kind == WHEN_REAL && !time.ns) {
		passed = wheel->real - when->ns;
		return now > passed ? now - passed : 0;
	}
	return now + time.ns;
}

/* Prints a time of the wheel's clock in local time. A manual clock has no local time. */
void out_local(struct out *out, int column, const struct wheel *wheel,
	       uint64_t time)
{
	const struct timewheel_info *info = &wheel->info;

	if (info->clock == TIMEWHEEL_CLOCK_MANUAL || time > TIME_MAX_NS)
		return;
	if (info->clock != TIMEWHEEL_CLOCK_REALTIME)
		time = wheel->real + (int64_t)(time - info->now);
	out_real(out, column, time);
}
