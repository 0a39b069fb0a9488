// SPDX-License-Identifier: LGPL-2.1-or-later
/* A wheel in an epoll(7) loop: three tokens, due after 0.1, 0.2 and 0.3 s. */
#include <err.h>
#include <stdio.h>

#include <sys/epoll.h>

#include <timewheel.h>

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 60,
		.tick = TW_MS(10),
		.max_tokens = 1000,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct tw_events *events = tw_events_new(64);
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct timewheel_op op;
	int id, expired = 0;

	if (!wheel || !events || epoll < 0)
		err(1, "wheel");
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, tw_wheel_fd(wheel), &event) < 0)
		err(1, "epoll_ctl");

	for (id = 1; id <= 3; id++) {
		tw_op_register(&op, id, TW_MS(id * 100), 0, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			err(1, "register");
	}

	while (expired < 3) {
		ssize_t i, n;

		if (epoll_wait(epoll, &event, 1, -1) < 0)
			err(1, "epoll_wait");
		n = tw_events_read(events, wheel, 0);
		if (n < 0)
			err(1, "tw_events_read");
		for (i = 0; i < n; i++)
			printf("token %llu\n", tw_events_at(events, i)->id);
		expired += n;
	}

	tw_events_free(events);
	tw_wheel_close(wheel);
	return 0;
}
