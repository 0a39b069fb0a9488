// SPDX-License-Identifier: LGPL-2.1-or-later
#include <err.h>
#include <stdio.h>

#include <timewheel.h>

#define USERS	3

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 31,
		.tick = TW_SEC(1),
		.max_tokens = 1000,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	uint64_t users[USERS] = { 17, 4, 2711 };
	struct timewheel_op op;
	int i;

	if (!wheel)
		err(1, "tw_wheel_open");
	for (i = 0; i < USERS; i++) {
		tw_op_register(&op, users[i], TW_SEC(30), 0, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			err(1, "register");
		printf("user %llu has until %llu\n", op.id, op.deadline);
	}

	/* One packet comes, and then packets of all users. */
	if (tw_wheel_touch(wheel, users[1], 0) < 0)
		err(1, "tw_wheel_touch");
	if (tw_wheel_touch_many(wheel, users, USERS, 0, NULL) < 0)
		err(1, "tw_wheel_touch_many");
	tw_wheel_close(wheel);
	return 0;
}
