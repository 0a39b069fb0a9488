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
	uint64_t lateness[TIMEWHEEL_BUCKETS], value;
	struct timewheel_op op;
	int id;

	if (!wheel || !events)
		err(1, "wheel");
	for (id = 0; id < 20; id++) {
		tw_op_register(&op, id, TW_MS(id * 10), 0, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			err(1, "register");
	}
	while (tw_events_read(events, wheel, TW_MS(500)) > 0)
		;

	if (tw_wheel_stats(wheel, lateness) < 0)
		err(1, "tw_wheel_stats");
	if (tw_histogram_percentile(lateness, 99, &value) < 0)
		err(1, "tw_histogram_percentile");
	printf("99 %% were at most %llu us late\n",
	       (unsigned long long)value / 1000);

	tw_events_free(events);
	tw_wheel_close(wheel);
	return 0;
}
