// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes expired tokens so that none is lost, and puts back a token that cannot be
 * used.
 */
#include "twctl.h"

/* Opens the wheel also for writing, if allowed, to be able to put tokens back. */
void wheel_open_to_read(struct wheel *wheel, const char *name)
{
	struct tw_wheel *both = tw_wheel_open_named(name, O_RDWR);

	wheel_open(wheel, name, both ? O_RDWR : O_RDONLY);
	tw_wheel_close(both);
}

/* Opens the wheel again with the right to write, which answers to deliveries need. */
void wheel_open_to_answer(struct wheel *wheel, const char *name)
{
	wheel_close(wheel);
	wheel_open(wheel, name, O_RDWR);
}

/* Reads up to @most due tokens without a wait. Ends the program on errors. */
struct tw_events *take(const struct wheel *wheel, size_t most)
{
	struct tw_events *events = tw_events_new(most);

	if (!events)
		die(STATUS_FAILED, "no memory for events");
	/* Only signals that stop and continue the process get through, and they give no EINTR. */
	if (tw_events_read(events, wheel->wheel, 0) < 0 && errno != EINTR) {
		tw_events_free(events);
		return NULL;
	}
	return events;
}

/*
 * Puts back a token that was taken in vain: registers it again with the deadline
 * that it had, so that it expires at once, for another reader. If this fails, a
 * message names the token, so that it is not lost. A token that is held under a lease is
 * nacked; if this fails, it comes back when the wheel is closed.
 */
void put_back(const struct wheel *wheel, const struct timewheel_event *event)
{
	struct timewheel_op op;

	if (event->delivery) {
		tw_op_nack(&op, event->handle, event->delivery, 0,
			   TIMEWHEEL_OPF_BY_HANDLE);
		tw_wheel_run(wheel->wheel, &op);
		return;
	}
	tw_op_register(&op, event->id, event->deadline, event->cookie,
		       TIMEWHEEL_OPF_ABSOLUTE);
	if (!tw_wheel_run(wheel->wheel, &op))
		return;
	trouble(STATUS_FAILED,
		"wheel '%s': taken in vain and not put back (%s): id %llu cookie %llu deadline %llu",
		wheel->name, tw_strerror(errno), (unsigned long long)event->id,
		(unsigned long long)event->cookie,
		(unsigned long long)event->deadline);
}
