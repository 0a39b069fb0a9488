// SPDX-License-Identifier: LGPL-2.1-or-later
#include <err.h>
#include <stdio.h>

#include <timewheel.h>

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 100,
		.tick = TW_MS(10),
		.max_tokens = 1000,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct tw_events *events = tw_events_new(64);
	struct timewheel_op op;
	ssize_t n;
	int id;

	if (!wheel || !events)
		err(1, "wheel");
	for (id = 0; id < 1000; id++) {
		tw_op_register(&op, id, TW_MS(id % 5 * 50), 0, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			err(1, "register");
	}

	/* All tokens are due within 200 ms: a second without any event is the end. */
	while ((n = tw_events_read(events, wheel, TW_MS(1000))) > 0) {
		const struct timewheel_event *first = tw_events_at(events, 0);

		printf("%zd events, first %llu, taken %llu ns late\n", n,
		       first->id, first->taken - first->deadline);
	}
	if (n < 0)
		err(1, "tw_events_read");

	tw_events_free(events);
	tw_wheel_close(wheel);
	return 0;
}
