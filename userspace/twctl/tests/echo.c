// SPDX-License-Identifier: GPL-2.0-only
/*
 * A server that echoes, and knows of no timeouts, and its clients.
 *
 * echo serve PORT [CHILDREN [OWN]]: by so many children, or itself. Its own connection
 *	to the port OWN is idle. Prints a line for each connection that ends by an error
 * echo hold PORT IDLE BUSY: opens connections, of which the busy ones carry a byte each
 *	200 ms; on SIGTERM prints how many of both are still there
 * echo ping PORT COUNT: a byte each 100 ms on one connection, and then leaves it open
 *
 * $ECHO_PROTOCOL is the sockets' protocol, that of TCP by default.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST	8192

static int new_socket(void)
{
	const char *protocol = getenv("ECHO_PROTOCOL");
	int fd = socket(AF_INET, SOCK_STREAM, protocol ? atoi(protocol) : 0);

	if (fd < 0)
		err(1, "socket");
	return fd;
}

static struct sockaddr_in address(const char *port)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(atoi(port)),
	};
}

/* Waits for the server to listen. */
static int connected(const char *port)
{
	const struct sockaddr_in to = address(port);
	int fd = new_socket();

	while (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		if (errno != ECONNREFUSED)
			err(1, "connect");
		usleep(50000);
	}
	return fd;
}

/* Moves a byte. Returns false when the connection has ended. */
static int echo(int fd)
{
	char bytes[64];
	ssize_t length = read(fd, bytes, sizeof(bytes));

	if (length > 0)
		return write(fd, bytes, length) == length;
	if (length < 0)
		puts(strerrorname_np(errno));
	return 0;
}

static void serve(int listener)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = listener };
	int epoll = epoll_create1(0), fd;

	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	for (;;) {
		/* epoll_wait() fails after a stop and continue of the process. */
		if (epoll_wait(epoll, &event, 1, -1) < 1)
			continue;
		fd = event.data.fd;
		if (fd != listener) {
			if (!echo(fd))
				close(fd);
			continue;
		}
		event.events = EPOLLIN;
		event.data.fd = accept(listener, NULL, NULL);
		epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
	}
}

static int serve_by_children(char **argv)
{
	const struct sockaddr_in at = address(argv[2]);
	int children = argv[3] ? atoi(argv[3]) : 0;
	int listener = new_socket(), on = 1;

	setlinebuf(stdout);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (argv[3] && argv[4])
		connected(argv[4]);
	if (bind(listener, (const struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(listener, MOST) < 0)
		err(1, "listen");
	/* Another child may accept the connection faster. */
	fcntl(listener, F_SETFL, O_NONBLOCK);
	for (; children > 0; children--) {
		if (!fork())
			serve(listener);
	}
	if (argv[3] && atoi(argv[3]))
		pause();
	serve(listener);
	return 1;
}

static int is_there(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void ping(int fd)
{
	char byte = 'x';

	if (send(fd, &byte, 1, MSG_NOSIGNAL) == 1)
		recv(fd, &byte, 1, 0);
}

static atomic_int over;

static void end(int number)
{
	over = number;
}

static int hold(char **argv)
{
	int idle = atoi(argv[3]), count = idle + atoi(argv[4]), i;
	int there[2] = { }, fds[MOST];

	signal(SIGTERM, end);
	for (i = 0; i < count; i++)
		fds[i] = connected(argv[2]);
	while (!over) {
		for (i = idle; i < count; i++)
			ping(fds[i]);
		usleep(200000);
	}
	for (i = 0; i < count; i++)
		there[i >= idle] += is_there(fds[i]);
	printf("idle %d busy %d\n", there[0], there[1]);
	return 0;
}

static int keep_pinging(char **argv)
{
	int fd = connected(argv[2]), count;

	for (count = atoi(argv[3]); count > 0; count--) {
		ping(fd);
		usleep(100000);
	}
	puts("done");
	fflush(stdout);
	return pause();
}

int main(int argc, char **argv)
{
	const struct rlimit files = { MOST, MOST };

	/* Only root may open so many files, and only root's tests need so many. */
	setrlimit(RLIMIT_NOFILE, &files);
	if (argc > 2 && !strcmp(argv[1], "serve"))
		return serve_by_children(argv);
	if (argc > 4 && !strcmp(argv[1], "hold"))
		return hold(argv);
	if (argc > 3 && !strcmp(argv[1], "ping"))
		return keep_pinging(argv);
	errx(2, "see the source");
}
