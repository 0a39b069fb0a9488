// SPDX-License-Identifier: LGPL-2.1-or-later
/* Work that fails is tried again, and given up after the third time. */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>

#include <timewheel.h>

#define ORDERS	5
#define TRIES	3

/* One customer has no address. */
static bool remind(unsigned long long order)
{
	return order != 3;
}

static void answer(struct tw_wheel *wheel, const struct timewheel_event *event)
{
	bool done = remind(event->id);
	struct timewheel_op op;

	if (!done && event->delivery == TRIES)
		printf("order %llu is given up\n", event->id);
	if (done || event->delivery == TRIES)
		tw_op_ack(&op, event->id, event->delivery, 0);
	else
		tw_op_nack(&op, event->id, event->delivery, TW_MS(10), 0);
	if (tw_wheel_run(wheel, &op) < 0)
		warn("order %llu", event->id);
}

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_BOOTTIME,
		.slots = 100,
		.tick = TW_MS(1),
		.max_tokens = 1000,
		.lease = TW_SEC(30),
		.max_held = 1000,
	};
	struct timewheel_info info = { .size = sizeof(info) };
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct tw_events *events = tw_events_new(64);
	struct timewheel_op op;
	ssize_t i, n;
	int order;

	if (!wheel || !events)
		err(1, "wheel");
	for (order = 1; order <= ORDERS; order++) {
		tw_op_register(&op, order, TW_MS(5), 0, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			err(1, "register");
	}
	do {
		n = tw_events_read(events, wheel, TW_MS(50));
		for (i = 0; i < n; i++)
			answer(wheel, tw_events_at(events, i));
		if (n < 0 || tw_wheel_info(wheel, &info) < 0)
			err(1, "wheel");
	} while (info.acked < ORDERS);
	printf("%llu done, by %llu deliveries\n", info.acked, info.delivered);

	tw_events_free(events);
	tw_wheel_close(wheel);
	return 0;
}
