// SPDX-License-Identifier: LGPL-2.1-or-later
/* A delayed message, which can be moved and cancelled until it is read. */
#include <err.h>
#include <errno.h>
#include <stdio.h>

#include <timewheel.h>

#define ORDER	4711

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_BOOTTIME,
		.slots = 3600,
		.tick = TW_MS(10),
		.max_tokens = 1000,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct tw_events *events = tw_events_new(64);
	struct timewheel_op op;

	if (!wheel || !events)
		err(1, "wheel");
	tw_op_register(&op, ORDER, TW_HOUR(48), 5, 0);
	if (tw_wheel_run(wheel, &op) < 0)
		err(1, "register");

	/* The message is now due sooner. */
	tw_op_move(&op, op.handle, TW_MS(100), TIMEWHEEL_OPF_BY_HANDLE);
	if (tw_wheel_run(wheel, &op) < 0)
		err(1, "move");
	if (tw_events_read(events, wheel, TIMEWHEEL_NEVER) < 0)
		err(1, "tw_events_read");

	/* The cancel is too late: the event has been read. */
	tw_op_cancel(&op, ORDER, 0);
	if (tw_wheel_run(wheel, &op) == 0 || errno != ENOENT)
		errx(1, "the order was cancelled after its event");
	printf("cancel: %s\n", tw_strerror(errno));

	tw_events_free(events);
	tw_wheel_close(wheel);
	return 0;
}
