// SPDX-License-Identifier: LGPL-2.1-or-later
/* Two users, one of whom sends packets again and again. */
#include <err.h>
#include <stdio.h>
#include <unistd.h>

#include <timewheel.h>

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = TIMEWHEEL_SETUP_TOUCH_WORDS,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 64,
		.tick = TW_MS(10),
		.max_tokens = 2,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct tw_events *events = tw_events_new(2);
	struct tw_words *words;
	struct timewheel_op op;
	uint64_t handle[2];
	int i;

	if (!wheel || !events)
		err(1, "wheel");
	words = tw_words_map(wheel);
	if (!words)
		err(1, "tw_words_map");
	for (i = 0; i < 2; i++) {
		tw_op_register(&op, i, TW_MS(300), 0, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			err(1, "register");
		handle[i] = op.handle;
	}

	for (i = 0; i < 10; i++) {
		tw_touch(words, handle[1], tw_tick(words));
		usleep(50000);
	}
	while (tw_events_read(events, wheel, TW_MS(500)) > 0)
		for (i = 0; i < (int)tw_events_count(events); i++)
			printf("user %llu is offline\n",
			       tw_events_at(events, i)->id);
	if (tw_touch_checked(words, handle[0], tw_tick(words)))
		errx(1, "user 0 is back");

	tw_words_unmap(words);
	tw_events_free(events);
	tw_wheel_close(wheel);
	return 0;
}
