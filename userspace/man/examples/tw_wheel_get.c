// SPDX-License-Identifier: LGPL-2.1-or-later
#include <err.h>
#include <stdio.h>

#include <timewheel.h>

#define ORDER	4711

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_BOOTTIME,
		.slots = 3600,
		.tick = TW_SEC(1),
		.max_tokens = 1000,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct timewheel_token token;
	struct timewheel_op op;

	if (!wheel)
		err(1, "tw_wheel_open");
	tw_op_register(&op, ORDER, TW_HOUR(48), 5, 0);
	if (tw_wheel_run(wheel, &op) < 0)
		err(1, "register");
	if (tw_wheel_get(wheel, ORDER, 0, &token) < 0)
		err(1, "tw_wheel_get");
	printf("due in %llu s: slot %u after %llu laps\n",
	       token.left / TW_SEC(1), token.slot, token.cycle);
	tw_wheel_close(wheel);
	return 0;
}
