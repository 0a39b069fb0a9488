// SPDX-License-Identifier: LGPL-2.1-or-later
/* A wheel is emptied before its program ends. */
#include <err.h>
#include <errno.h>
#include <stdio.h>

#include <timewheel.h>

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 100,
		.tick = TW_MS(1),
		.max_tokens = 1000,
	};
	struct timewheel_info info = { .size = sizeof(info) };
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct tw_events *events = tw_events_new(64);
	struct timewheel_op op;
	int id;

	if (!wheel || !events)
		err(1, "wheel");
	for (id = 0; id < 100; id++) {
		tw_op_register(&op, id, TW_MS(id), 0, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			err(1, "register");
	}

	if (tw_wheel_drain(wheel) < 0)
		err(1, "tw_wheel_drain");
	tw_op_register(&op, 100, 0, 0, 0);
	if (tw_wheel_run(wheel, &op) == 0 || errno != ESHUTDOWN)
		errx(1, "the wheel does not drain");
	do {
		if (tw_events_read(events, wheel, TW_MS(10)) < 0)
			err(1, "tw_events_read");
		if (tw_wheel_info(wheel, &info) < 0)
			err(1, "tw_wheel_info");
	} while (info.pending);
	printf("%llu events\n", info.delivered);

	tw_events_free(events);
	tw_wheel_close(wheel);
	return 0;
}
