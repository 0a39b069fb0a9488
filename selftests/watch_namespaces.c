// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watched tokens and network namespaces: a connection is asked in its own one, also if
 * a process in another one watches it; a token keeps no namespace alive; and a process
 * that may not know the addresses of a connection is not told them. Needs root.
 */
#define _GNU_SOURCE
#include <linux/net_namespace.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "tw_process.h"
#include "tw_watch.h"

#define SHORT	(80 * TW_MS)	/* a timeout that tests wait for */
#define LONG	280		/* seconds; guests may be emulated */
#define NSID	4711

/* A process in a network namespace of its own. */
struct place {
	pid_t pid;
	int line;	/* to it */
};

FIXTURE(namespaces) {
	int fd;
};

FIXTURE_SETUP(namespaces)
{
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	TW_NEEDS_ROOT();
	ASSERT_EQ(0, tw_setup_watch(self->fd, TW_MS, 1000,
				    TIMEWHEEL_SETUP_TELL_ENDED));
}

FIXTURE_TEARDOWN(namespaces)
{
	close(self->fd);
}

/* A connection of these two ports, which are free in a new namespace. */
static bool connect_ports(struct tw_conn *conn, int from, int to)
{
	union tw_address client = tw_loopback(AF_INET), server = client;
	int listener;

	client.v4.sin_port = htons(from);
	server.v4.sin_port = htons(to);
	listener = tw_listen(&server, 0);
	conn->a = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(conn->a, &client.any, sizeof(client.v4)) ||
	    connect(conn->a, &server.any, sizeof(server.v4)))
		return false;
	conn->b = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	return conn->b >= 0;
}

/*
 * What such a process does: it makes a connection, passes both ends, says a byte for
 * each that it hears, and ends when nobody speaks to it any more.
 */
static void live_there(int line)
{
	struct tw_conn conn;
	struct tw_span span;
	char byte;

	if (unshare(CLONE_NEWNET) || !tw_interface_up("lo") ||
	    !connect_ports(&conn, 5555, 5556) || tw_send_fd(line, conn.a, 0) ||
	    tw_send_fd(line, conn.b, 0))
		_exit(1);
	while (read(line, &byte, 1) == 1)
		if (!tw_say(conn.a, conn.b, &span) || write(line, &byte, 1) != 1)
			_exit(2);
	_exit(0);
}

static bool begin_place(struct place *place, struct tw_conn *conn)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return false;
	place->pid = tw_fork();
	if (!place->pid) {
		/* No process keeps the line to another one open. */
		for (int fd = 3; fd < 64; fd++)
			if (fd != pair[1])
				close(fd);
		live_there(pair[1]);
	}
	close(pair[1]);
	place->line = pair[0];
	conn->a = tw_receive_fd(place->line, 0);
	conn->b = tw_receive_fd(place->line, 0);
	return place->pid > 0 && conn->a >= 0 && conn->b >= 0;
}

static bool say_there(struct place *place, struct tw_span *span)
{
	char byte = 'x';

	span->from = tw_span_begins();
	if (write(place->line, &byte, 1) != 1 || read(place->line, &byte, 1) != 1)
		return false;
	span->to = tw_now(CLOCK_MONOTONIC);
	return true;
}

static int end_place(struct place *place)
{
	close(place->line);
	return tw_reap(place->pid);
}

/* A message about a namespace's number, as of rtnetlink(7). */
struct nsid_message {
	struct nlmsghdr header;
	struct rtgenmsg family __attribute__((aligned(NLMSG_ALIGNTO)));
	struct {
		struct nlattr header __attribute__((aligned(NLMSG_ALIGNTO)));
		__s32 value;
	} attribute[2];
};

/* Numbers a process's namespace, so that its end is told to the socket returned. */
static int watch_for_its_end(pid_t pid)
{
	const struct sockaddr_nl address = {
		.nl_family = AF_NETLINK, .nl_groups = 1U << (RTNLGRP_NSID - 1),
	};
	struct nsid_message message = {
		.header = {
			.nlmsg_len = sizeof(message), .nlmsg_type = RTM_NEWNSID,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.attribute = {
			{ { 8, NETNSA_NSID }, NSID }, { { 8, NETNSA_PID }, pid },
		},
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&address,
			     sizeof(address)) &&
	    send(fd, &message, sizeof(message), 0) == sizeof(message) &&
	    recv(fd, &message, sizeof(message), 0) > 0 &&
	    message.header.nlmsg_type == RTM_NEWNSID)
		return fd;
	close(fd);
	return -1;
}

/* Waits for the end of the namespace, which begins when nothing holds it any more. */
static bool it_ends(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	union {
		struct nlmsghdr header;
		char room[4096];
	} message;

	do {
		if (poll(&p, 1, TW_SOON / TW_MS) != 1 ||
		    recv(fd, &message, sizeof(message), 0) <= 0)
			return false;
	} while (message.header.nlmsg_type != RTM_DELNSID);
	return true;
}

/* A connection of another namespace is asked there. */
TEST_F(namespaces, connection_of_another_namespace)
{
	struct timewheel_event event;
	struct timewheel_token token;
	struct tw_conn conn;
	struct tw_span span;
	struct place place;

	ASSERT_TRUE(begin_place(&place, &conn));
	ASSERT_EQ(0, tw_watch(self->fd, 1, conn.a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, conn.b, TW_AN_HOUR,
			      TIMEWHEEL_OPF_RECEIVED));
	tw_disconnect(&conn);
	tw_sleep_ms(20);
	ASSERT_TRUE(say_there(&place, &span));
	tw_expect_deadline(tw_deadline_of(self->fd, 1), span, TW_AN_HOUR);
	tw_expect_deadline(tw_deadline_of(self->fd, 2), span, TW_AN_HOUR);
	/* Root may know all addresses. */
	ASSERT_EQ(0, tw_get(self->fd, 0, 1, &token));
	EXPECT_EQ(5555, token.local_port);
	EXPECT_EQ(5556, token.remote_port);
	EXPECT_EQ(0, end_place(&place));
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, &event, 1)));
}

/* The same addresses and ports mean another connection in another namespace. */
TEST_F(namespaces, same_addresses_in_two_namespaces)
{
	struct tw_conn conn[2];
	struct tw_span span[2];
	struct place place[2];

	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(begin_place(&place[i], &conn[i]));
		ASSERT_TRUE(say_there(&place[i], &span[i]));
		ASSERT_EQ(0, tw_watch(self->fd, i, conn[i].a, TW_AN_HOUR, 0));
	}
	for (int i = 0; i < 6; i++) {
		tw_sleep_ms(20);
		ASSERT_TRUE(say_there(&place[i % 2], &span[i % 2]));
		for (int j = 0; j < 2; j++)
			tw_expect_deadline(tw_deadline_of(self->fd, j), span[j],
					   TW_AN_HOUR);
	}
	for (int i = 0; i < 2; i++) {
		tw_disconnect(&conn[i]);
		EXPECT_EQ(0, end_place(&place[i]));
	}
}

/* Nothing is held: the namespace goes while its connections are watched. */
TEST_F(namespaces, namespace_goes_while_watched)
{
	struct timewheel_event event;
	struct timewheel_token token;
	struct tw_conn conn, other;
	struct place place;
	__u64 cookie;
	int end;

	ASSERT_TRUE(begin_place(&place, &conn));
	end = watch_for_its_end(place.pid);
	ASSERT_LE(0, end);
	cookie = tw_socket_cookie(conn.a);
	ASSERT_EQ(0, tw_watch(self->fd, 1, conn.a, SHORT, 0));
	tw_expect_event(self->fd, 1, 0, &event);
	ASSERT_EQ(0, tw_watch(self->fd, 1, conn.a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, conn.b, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 3, conn.a, TW_SEC, 0));
	tw_disconnect(&conn);
	EXPECT_EQ(0, end_place(&place));
	EXPECT_TRUE(it_ends(end));
	close(end);
	tw_expect_event(self->fd, 3, ENOTCONN, &event);
	ASSERT_EQ(0, tw_get(self->fd, 0, 1, &token));
	EXPECT_EQ(cookie, token.socket);
	EXPECT_EQ(0, token.local_port);
	ASSERT_TRUE(tw_connect(AF_INET, &other));
	EXPECT_EQ(TIMEWHEEL_RES_REPLACED,
		  tw_watch(self->fd, 1, other.a, TW_AN_HOUR, 0));
	EXPECT_EQ(0, tw_cancel(self->fd, 0, 2));
	tw_disconnect(&other);
}

/* Namespaces that come and go, with the wheel's looks at them all the time. */
TEST_F_TIMEOUT(namespaces, many_come_and_go, LONG)
{
	const int n = tw_scaled(200);
	struct timewheel_event event;
	struct timewheel_info info;
	int ended = 0;

	for (int i = 0; i < n; i++) {
		struct tw_conn conn;
		struct place place;

		ASSERT_TRUE(begin_place(&place, &conn));
		ASSERT_EQ(0, tw_watch(self->fd, i, conn.a, 1 + i * TW_MS, 0));
		tw_disconnect(&conn);
		EXPECT_EQ(0, end_place(&place));
		while (tw_read(self->fd, &event, 1) == 1)
			ended++;
	}
	while (ended < n) {
		struct pollfd p = { .fd = self->fd, .events = POLLIN };

		ASSERT_EQ(1, poll(&p, 1, TW_SOON / TW_MS));
		while (tw_read(self->fd, &event, 1) == 1)
			ended++;
	}
	EXPECT_EQ(n, ended);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0ULL, info.pending);
}

/*
 * Whether GET tells a process with these new namespaces who the connection of token @id
 * is: 1 or 0, or another number if neither is true.
 */
static int is_told(int fd, __u64 id, int namespaces)
{
	static const struct timewheel_token nothing;
	struct timewheel_token token;
	pid_t child = tw_fork();

	if (child)
		return tw_reap(child);
	if (unshare(namespaces) || tw_get(fd, 0, id, &token) || !token.socket)
		_exit(2);
	if (token.local_port)
		_exit(1);
	_exit(memcmp(token.local, nothing.local, 16) ||
	      memcmp(token.remote, nothing.remote, 16) || token.remote_port ||
	      token.interface ? 3 : 0);
}

/* Addresses are for callers in their namespace, or with CAP_NET_ADMIN there. */
TEST_F(namespaces, addresses_are_hidden)
{
	struct tw_conn conn;
	struct place place;

	ASSERT_TRUE(begin_place(&place, &conn));
	ASSERT_EQ(0, tw_watch(self->fd, 1, conn.a, TW_AN_HOUR, 0));
	tw_disconnect(&conn);
	ASSERT_TRUE(tw_connect(AF_INET, &conn));
	ASSERT_EQ(0, tw_watch(self->fd, 2, conn.a, TW_AN_HOUR, 0));
	EXPECT_EQ(1, is_told(self->fd, 1, 0));
	EXPECT_EQ(1, is_told(self->fd, 2, 0));
	/* Root elsewhere. */
	EXPECT_EQ(1, is_told(self->fd, 1, CLONE_NEWNET));
	EXPECT_EQ(1, is_told(self->fd, 2, CLONE_NEWNET));
	/* Without rights outside, in the same namespace and in others. */
	EXPECT_EQ(0, is_told(self->fd, 1, CLONE_NEWUSER));
	EXPECT_EQ(1, is_told(self->fd, 2, CLONE_NEWUSER));
	EXPECT_EQ(0, is_told(self->fd, 1, CLONE_NEWUSER | CLONE_NEWNET));
	EXPECT_EQ(0, is_told(self->fd, 2, CLONE_NEWUSER | CLONE_NEWNET));
	tw_disconnect(&conn);
	EXPECT_EQ(0, end_place(&place));
}

TEST_HARNESS_MAIN
