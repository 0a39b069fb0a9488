// SPDX-License-Identifier: LGPL-2.1-or-later
/* Twenty calls carry out the touches of ten thousand packets. */
#include <err.h>
#include <stdio.h>

#include <timewheel.h>

#define USERS	1000
#define PACKETS	10000
#define BATCH	500

static size_t count_new_users(const struct tw_batch *batch)
{
	size_t i, registered = 0;

	for (i = 0; i < tw_batch_count(batch); i++) {
		int result = tw_batch_result(batch, i);

		if (result < 0)
			warn("packet %zu", i);
		else if (result & TIMEWHEEL_RES_REGISTERED)
			registered++;
	}
	return registered;
}

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 31,
		.tick = TW_SEC(1),
		.max_tokens = USERS,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct tw_batch *batch = tw_batch_new(BATCH);
	size_t registered = 0;
	int packet;

	if (!wheel || !batch)
		err(1, "wheel");
	for (packet = 1; packet <= PACKETS; packet++) {
		tw_op_touch_or_register(tw_batch_next(batch), packet % USERS,
					TW_SEC(30), 0, 0);
		if (tw_batch_count(batch) < BATCH)
			continue;
		if (tw_batch_run(batch, wheel) < 0)
			err(1, "tw_batch_run");
		registered += count_new_users(batch);
		tw_batch_clear(batch);
	}
	printf("%zu users\n", registered);

	tw_batch_free(batch);
	tw_wheel_close(wheel);
	return 0;
}
