// SPDX-License-Identifier: LGPL-2.1-or-later
/* A test lets 48 hours pass in a moment. */
#include <assert.h>
#include <err.h>
#include <stdio.h>

#include <timewheel.h>

#define HOURS48	(48 * 3600)

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 3600,
		.tick = TW_SEC(1),
		.max_tokens = 1000,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct tw_events *events = tw_events_new(64);
	struct timewheel_op op;

	if (!wheel || !events)
		err(1, "wheel");
	tw_op_register(&op, 1, TW_SEC(HOURS48), 0, 0);
	if (tw_wheel_run(wheel, &op) < 0)
		err(1, "register");

	if (tw_wheel_advance(wheel, HOURS48 - 1) < 0)
		err(1, "tw_wheel_advance");
	assert(tw_events_read(events, wheel, 0) == 0);
	if (tw_wheel_advance(wheel, HOURS48) < 0)
		err(1, "tw_wheel_advance");
	assert(tw_events_read(events, wheel, 0) == 1);
	puts("neither early nor late");

	tw_events_free(events);
	tw_wheel_close(wheel);
	return 0;
}
