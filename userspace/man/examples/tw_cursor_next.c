// SPDX-License-Identifier: LGPL-2.1-or-later
#include <err.h>
#include <stdio.h>

#include <timewheel.h>

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 60,
		.tick = TW_SEC(1),
		.max_tokens = 1000,
	};
	const struct timewheel_token *token;
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct timewheel_op op;
	struct tw_cursor *cursor;
	int id, ret;

	if (!wheel)
		err(1, "tw_wheel_open");
	for (id = 0; id < 1000; id++) {
		tw_op_register(&op, id, TW_SEC(id), 0, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			err(1, "register");
	}

	/* The walk shows tokens that are due in the fifth minute. */
	cursor = tw_cursor_open(wheel, TW_MIN(4), TW_MIN(5) - 1);
	if (!cursor)
		err(1, "tw_cursor_open");
	while ((ret = tw_cursor_next(cursor, &token)) > 0)
		printf("%llu: slot %u after %llu laps\n", token->id,
		       token->slot, token->cycle);
	if (ret < 0)
		err(1, "tw_cursor_next");

	tw_cursor_close(cursor);
	tw_wheel_close(wheel);
	return 0;
}
