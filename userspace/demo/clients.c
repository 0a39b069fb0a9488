// SPDX-License-Identifier: GPL-2.0-only
/*
 * The server's users: a process with one TCP connection for each. A user logs
 * in by sending its uid and then sends a packet every one to three seconds.
 * Some fall silent at a random moment but stay connected. This process does
 * not know the wheel: it is the witness of who fell silent, and when.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

#include "demo.h"

#define TURN		20		/* ms */
#define PATIENCE	(20 * SEC)	/* for a machine that is slow */

struct client {
	int connection;		/* -1: the server closed it */
	__u64 silent_after;	/* sends no more then; 0: goes on talking */
	__u64 next;		/* when it sends its next packet */
	__u64 last;		/* when it sent its last */
	__u64 closed;
};

static struct client clients[USERS];
static __u64 packets;
static unsigned int open_silent = SILENT, cut_off;

static __u64 random_ns(__u64 below)
{
	return (__u64)random() * MS % below;
}

/* Decides, and tells the reader, who will fall silent. */
void clients_plan(unsigned int seed)
{
	unsigned int i, chosen = 0;

	srandom(seed);
	while (chosen < SILENT) {
		struct client *client = &clients[random() % USERS];

		if (client->silent_after)
			continue;
		client->silent_after = SEC + random_ns(SILENT_WITHIN - SEC);
		chosen++;
	}
	printf("These %u of the %u will fall silent (seed %u):\n\n", SILENT,
	       USERS, seed);
	for (i = 0, chosen = 0; i < USERS; i++)
		if (clients[i].silent_after)
			list_uid(chosen++, FIRST_UID + i);
	puts("");
}

static void send_packet(struct client *client, __u64 payload)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	/* Fails when the server just closed it: its EOF will be counted. */
	if (send(client->connection, &payload, sizeof(payload),
		 MSG_NOSIGNAL) < 0)
		return;
	packets++;
	client->last = now;
	client->next = now + SEC + random_ns(2 * SEC);
}

/* All connect, then all log in: no one waits long for its first packet. */
static void log_in(in_port_t port, int epoll)
{
	struct sockaddr_in server = {
		.sin_family = AF_INET,
		.sin_port = port,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	unsigned int i;

	for (i = 0; i < USERS; i++) {
		struct epoll_event event = {
			.events = EPOLLIN | EPOLLRDHUP,
			.data.ptr = &clients[i],
		};
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&server,
				      sizeof(server)) < 0)
			err(1, "connecting user %u", i);
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
			err(1, "epoll");
		clients[i].connection = fd;
	}
	for (i = 0; i < USERS; i++)
		send_packet(&clients[i], FIRST_UID + i);
}

/* The server never sends: what arrives is the end of a connection. */
static void hang_up(struct client *client)
{
	client->closed = clock_ns(CLOCK_MONOTONIC);
	close(client->connection);
	client->connection = -1;
	if (client->silent_after)
		open_silent--;
	else
		cut_off++;
}

static void turn(int epoll, __u64 start)
{
	struct epoll_event events[64];
	int i, n = epoll_wait(epoll, events, 64, TURN);
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	for (i = 0; i < n; i++)
		hang_up(events[i].data.ptr);
	for (i = 0; i < USERS; i++) {
		struct client *client = &clients[i];

		if (client->connection < 0 || now < client->next)
			continue;
		if (client->silent_after && now > start + client->silent_after)
			continue;
		send_packet(client, now);
	}
}

static void say_farewell(int pipe)
{
	struct farewell farewell = { .packets = packets, .cut_off = cut_off };
	unsigned int i;

	for (i = 0; i < USERS; i++)
		if (clients[i].silent_after)
			farewell.user[farewell.silent++] = (struct silent_user) {
				.uid = FIRST_UID + i,
				.last = clients[i].last,
				.closed = clients[i].closed,
			};
	if (write(pipe, &farewell, sizeof(farewell)) != sizeof(farewell))
		err(1, "the farewell");
}

static void run(in_port_t port, int pipe)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	__u64 start, end, now;

	log_in(port, epoll);
	start = clock_ns(CLOCK_MONOTONIC);
	/* Everything is over by then, and some time for what must not come. */
	end = start + SILENT_WITHIN + TIMEOUT + 3 * SEC;
	do {
		turn(epoll, start);
		now = clock_ns(CLOCK_MONOTONIC);
	} while (now < end || (open_silent && now < end + PATIENCE));
	say_farewell(pipe);
}

/* Returns a pipe from which the farewell can be read. @port: network order. */
int clients_start(in_port_t port)
{
	int ends[2];

	if (pipe(ends) < 0)
		err(1, "pipe");
	fflush(stdout);
	switch (fork()) {
	case -1:
		err(1, "fork");
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		run(port, ends[1]);
		_exit(0);	/* ends all connections: the others log out */
	}
	close(ends[1]);
	return ends[0];
}
