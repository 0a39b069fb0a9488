// SPDX-License-Identifier: LGPL-2.1-or-later
/* A connection that nobody touches, and that is silent. */
#include <err.h>
#include <stdio.h>
#include <sys/socket.h>
#include <netinet/in.h>

#include <timewheel.h>

#define TIMEOUT	TW_MS(100)

int main(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 100,
		.tick = TW_MS(1),
		.max_tokens = 1000,
	};
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int client = socket(AF_INET, SOCK_STREAM, 0), server;
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	struct tw_events *events = tw_events_new(64);
	struct timewheel_op op;
	int64_t idle = 0;

	if (!wheel || !events)
		err(1, "wheel");
	if (bind(listener, (struct sockaddr *)&address, length) < 0 ||
	    listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0 ||
	    connect(client, (struct sockaddr *)&address, length) < 0)
		err(1, "connection");
	server = accept(listener, NULL, NULL);

	do {
		tw_op_register(&op, server, TIMEOUT - idle, 0, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			err(1, "register");
		if (tw_events_read(events, wheel, TIMEWHEEL_NEVER) < 0)
			err(1, "tw_events_read");
		idle = tw_tcp_idle(tw_events_at(events, 0)->id);
	} while (idle >= 0 && (uint64_t)idle < TIMEOUT);
	if (idle < 0)
		err(1, "tw_tcp_idle");
	printf("connection %d is silent\n", server);

	tw_events_free(events);
	tw_wheel_close(wheel);
	return 0;
}
