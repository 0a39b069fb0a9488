// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * silent [PORT SECONDS]: an echo server that hangs up on clients from which no data has come
 * for so long. No packet touches a token: when a client's token comes due, the server asks TCP
 * when data last came. Without arguments it hangs up on one client of its own.
 *
 *	cc silent.c $(pkg-config --cflags --libs libtimewheel)
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <timewheel.h>

static struct tw_wheel *wheel;
static struct tw_events *events;
static uint64_t timeout = TW_MS(200);
static int epoll, hung_up;

static void add(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "epoll");
}

/*
 * The token's id is the client's fd. The token of a client that has left stays until it is
 * due, unless the fd has a new client by then: such a client begins with a touch of the token.
 */
static void expect(int client, uint64_t delay)
{
	struct timewheel_op op;

	tw_op_touch_or_register(&op, client, delay, 0, 0);
	if (tw_wheel_run(wheel, &op) < 0)
		errx(1, "client %d: %s", client, tw_strerror(errno));
}

static void ask(void)
{
	ssize_t i, n = tw_events_read(events, wheel, 0);

	for (i = 0; i < n; i++) {
		int client = tw_events_at(events, i)->id;
		int64_t idle = tw_tcp_idle(client);

		if (idle >= (int64_t)timeout) {
			printf("client %d is offline\n", client);
			close(client);
			hung_up++;
		} else if (idle >= 0) {
			expect(client, timeout - idle);
		}
	}
}

static void welcome(int client)
{
	if (client < 0)
		return;
	expect(client, timeout);
	add(client);
}

static void echo(int client)
{
	char text[4096];
	ssize_t length = read(client, text, sizeof(text));

	if (length <= 0 || send(client, text, length, MSG_NOSIGNAL) != length)
		close(client);
}

static void serve(int listener)
{
	struct epoll_event event;

	if (epoll_wait(epoll, &event, 1, -1) < 0)
		err(1, "epoll");
	if (event.data.fd == tw_wheel_fd(wheel))
		ask();
	else if (event.data.fd == listener)
		welcome(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	else
		echo(event.data.fd);
}

int main(int argc, char **argv)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 256,
		.tick = TW_MS(10),
		.max_tokens = 100000,
	};
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(argc > 1 ? atoi(argv[1]) : 0),
	};
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	wheel = tw_wheel_open(&setup);
	if (!wheel && (errno == ENOENT || errno == ENODEV))
		errx(4, "no device: is the module loaded?");
	events = tw_events_new(64);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!wheel || !events || bind(listener, (struct sockaddr *)&at, size) < 0 ||
	    listen(listener, SOMAXCONN) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &size) < 0)
		err(1, "no server");
	add(tw_wheel_fd(wheel));
	add(listener);
	if (argc > 2)
		timeout = TW_SEC(atof(argv[2]));
	else if (connect(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
			 (struct sockaddr *)&at, size) < 0)
		err(1, "no client");
	while (argc > 1 || !hung_up)
		serve(listener);
	return 0;
}
