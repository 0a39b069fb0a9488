// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * watched PORT SECONDS: an echo server that hangs up on silent clients and touches
 * nobody. The wheel asks each client's connection, when it may have been silent for
 * long enough, when it last carried data. The number of the client's fd is its
 * token's id: the fd of a client that has left can be used again at once.
 *
 *	cc watched.c $(pkg-config --cflags --libs libtimewheel)
 *
 * Without arguments it serves one client of its own, and ends when it hung up.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <timewheel.h>

#define MAX_CLIENTS	100000

static struct tw_wheel *wheel;
static struct tw_events *events;
static int epoll;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void add(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		fail("epoll");
}

/* For one client too many the wheel is full: the client is sent away. */
static void welcome(int listener, uint64_t timeout)
{
	int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct timewheel_op op;

	if (client < 0)
		return;
	tw_op_watch(&op, client, client, timeout, 0, 0);
	if (tw_wheel_run(wheel, &op) < 0) {
		perror("watch");
		close(client);
		return;
	}
	add(client);
}

/* Nothing here is about time. */
static void echo(int client)
{
	char text[4096];
	ssize_t length = read(client, text, sizeof(text));

	if (length <= 0 ||
	    send(client, text, length, MSG_NOSIGNAL) != length)
		close(client);
}

/* Returns how many clients it hung up on. */
static unsigned int hang_up(void)
{
	ssize_t i, n = tw_events_read(events, wheel, 0);

	if (n < 0)
		fail("read");
	for (i = 0; i < n; i++) {
		int client = tw_events_at(events, i)->id;

		printf("client %d was silent for too long\n", client);
		close(client);
	}
	return n;
}

static void begin(void)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = TIMEWHEEL_SETUP_WATCH,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 256,
		.tick = TW_MS(10),
		.max_tokens = MAX_CLIENTS,
	};

	wheel = tw_wheel_open(&setup);
	if (!wheel && (errno == ENOENT || errno == ENODEV)) {
		puts("no device: is the module loaded?");
		exit(4);
	}
	events = tw_events_new(64);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!wheel || !events || epoll < 0)
		fail("no wheel");
	add(tw_wheel_fd(wheel));
}

static int listen_at(struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)address, length) < 0 ||
	    listen(fd, SOMAXCONN) < 0 ||
	    getsockname(fd, (struct sockaddr *)address, &length) < 0)
		fail("listen");
	add(fd);
	return fd;
}

/* The server's own client says one thing, and then no more. */
static int visit(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
	    connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
	    write(fd, "hello\n", 6) != 6)
		fail("connect");
	return fd;
}

int main(int argc, char **argv)
{
	const uint64_t timeout = argc > 2 ? TW_SEC(atof(argv[2])) : TW_MS(200);
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(argc > 1 ? atoi(argv[1]) : 0),
	};
	struct epoll_event event;
	unsigned int gone = 0;
	int listener;

	begin();
	listener = listen_at(&address);
	if (argc < 2)
		visit(&address);
	while (argc > 1 || !gone) {
		if (epoll_wait(epoll, &event, 1, -1) < 0)
			fail("epoll_wait");
		if (event.data.fd == tw_wheel_fd(wheel))
			gone += hang_up();
		else if (event.data.fd == listener)
			welcome(listener, timeout);
		else
			echo(event.data.fd);
	}
	tw_wheel_close(wheel);
	tw_events_free(events);
	return 0;
}
