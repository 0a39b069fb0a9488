// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A private wheel that outlives its daemon: the service manager keeps its fd, and
 * gives it to the daemon that comes after a crash, an update or a restart. No
 * token is lost, and time goes on meanwhile. Requests, 16 bytes each, come by a
 * socket that the service manager keeps too.
 *
 *	cc fdstore.c $(pkg-config --cflags --libs libtimewheel libsystemd)
 *
 * reminder.socket:
 *
 *	[Socket]
 *	ListenDatagram=/run/reminder
 *
 *	[Install]
 *	WantedBy=sockets.target
 *
 * reminder.service:
 *
 *	[Service]
 *	Type=notify
 *	ExecStart=/usr/local/bin/fdstore
 *	FileDescriptorStoreMax=1
 *	Restart=always
 *
 * The wheel ends with "systemctl stop", not with "systemctl restart".
 *
 * What was read, and not acked when the daemon died, comes again when its lease is
 * over. Elsewhere it would come at once, but here the open file that holds it is
 * not released: the service manager has it. So the lease should not be much longer
 * than the work takes. If that is still too long, the next daemon may ask
 * tw_cursor_next() for the tokens that are held, and nack each: it has the same
 * open file as the daemon before, so it may answer in its place.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <timewheel.h>

/**
 * struct request - remind of an order
 * @order: the number of the order, which has one reminder
 * @delay: ns until the reminder
 */
struct request {
	uint64_t	order;
	uint64_t	delay;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Returns the fd that the service manager has passed by this name, or -1. */
static int passed(const char *name)
{
	char **names = NULL;
	int count = sd_listen_fds_with_names(0, &names), fd = -1;

	for (int i = 0; i < count; i++) {
		if (!strcmp(names[i], name))
			fd = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	return fd;
}

/*
 * FDPOLL=0: the service manager must not poll the fd to see whether it is still of use. A
 * wheel always is, and the manager would wake up each time that a token expires.
 */
static struct tw_wheel *make_wheel(void)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_BOOTTIME,
		.slots = 3600,
		.tick = TW_MS(1),
		.max_tokens = 100000,
		.lease = TW_SEC(2),
		.max_held = 1000,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);
	int fd;

	if (!wheel)
		fail("no wheel");
	fd = tw_wheel_fd(wheel);
	if (sd_pid_notify_with_fds(0, 0, "FDSTORE=1\nFDNAME=wheel\nFDPOLL=0", &fd,
				   1) <= 0)
		fail("the wheel cannot be stored");
	return wheel;
}

/* Returns the wheel that the daemon before has left, or a new one. */
static struct tw_wheel *find_wheel(void)
{
	int fd = passed("wheel");
	struct tw_wheel *wheel;

	if (fd < 0)
		return make_wheel();
	wheel = tw_wheel_open_fd(fd);
	if (!wheel)
		fail("the wheel that was stored");
	return wheel;
}

/*
 * A request leaves the socket after its token is registered. If the daemon before died in
 * between, the token is there already. The call must find this out before the token's event is
 * acked, and for this reason requests come before events.
 */
static void take_requests(struct tw_wheel *wheel, int fd)
{
	struct request request;
	struct timewheel_op op;

	while (recv(fd, &request, sizeof(request), MSG_PEEK | MSG_DONTWAIT) ==
	       sizeof(request)) {
		tw_op_register(&op, request.order, request.delay, 0, 0);
		if (tw_wheel_run(wheel, &op) < 0 && errno != EEXIST)
			fail("register");
		recv(fd, &request, sizeof(request), MSG_DONTWAIT);
	}
}

/* Takes due events, and acks each one when its work is done. ESTALE: the work took too long. */
static void take_events(struct tw_wheel *wheel, struct tw_events *events)
{
	ssize_t count = tw_events_read(events, wheel, 0);
	struct timewheel_op op;

	if (count < 0)
		fail("read");
	for (ssize_t i = 0; i < count; i++) {
		const struct timewheel_event *event = tw_events_at(events, i);

		printf("remind of order %llu\n", event->id);
		tw_op_ack(&op, event->id, event->delivery, 0);
		if (tw_wheel_run(wheel, &op) < 0 && errno != ESTALE &&
		    errno != ENOENT)
			fail("ack");
	}
}

int main(void)
{
	struct tw_events *events = tw_events_new(64);
	int requests = passed("reminder.socket");
	struct pollfd polled[2] = {
		{ .fd = requests, .events = POLLIN },
		{ .events = POLLIN },
	};
	struct tw_wheel *wheel;

	if (requests < 0 || !events) {
		puts("to be started by the service manager, with a socket");
		return 1;
	}
	setlinebuf(stdout);
	wheel = find_wheel();
	polled[1].fd = tw_wheel_fd(wheel);
	sd_notify(0, "READY=1");
	while (poll(polled, 2, -1) > 0) {
		take_requests(wheel, requests);
		take_events(wheel, events);
	}
	fail("poll");
}
