// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The orders in its arguments are due for a rating in 48 hours. All runs share one wheel,
 * which no program needs to read yet. Without arguments the program destroys the wheel.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include <timewheel.h>

int main(int argc, char **argv)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_BOOTTIME,
		.slots = 3600,
		.tick = TW_SEC(1),
		.max_tokens = 1000000,
	};
	struct timewheel_info info = { .size = sizeof(info) };
	struct timewheel_op op;
	struct tw_wheel *wheel;
	int i;

	wheel = tw_wheel_open_or_create("orders", &setup, O_RDWR);
	if (!wheel)
		err(1, "orders");
	for (i = 1; i < argc; i++) {
		tw_op_register(&op, strtoull(argv[i], NULL, 0), TW_HOUR(48), 5,
			       0);
		if (tw_wheel_run(wheel, &op) < 0)
			warn("%s", argv[i]);	/* "File exists": the order is pending */
	}
	if (tw_wheel_info(wheel, &info) < 0)
		err(1, "tw_wheel_info");
	printf("%llu orders are pending\n", info.pending);
	tw_wheel_close(wheel);

	if (argc == 1 && tw_wheel_destroy("orders") < 0)
		err(1, "tw_wheel_destroy");
	return 0;
}
