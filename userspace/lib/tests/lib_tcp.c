// SPDX-License-Identifier: GPL-2.0-only
/*
 * When data last came in on TCP connections: the library's answer is the truth to a
 * jiffy, for the caller's own sockets and for those of any process; only data that
 * comes in counts; each error comes when it should. Needs no device.
 */
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib_test.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP	262
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX	62
#endif

/* Answers are exact to the longest jiffy plus 1 ms, because TCP tells whole ms. */
#define JIFFY	(11 * MS)
#define MOST	200

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * SEC + time.tv_nsec;
}

static void rest(uint64_t ns)
{
	const struct timespec time = { ns / SEC, ns % SEC };

	nanosleep(&time, NULL);
}

static int listen_at(int family, int protocol, struct sockaddr_in6 *address)
{
	int fd = socket(family, SOCK_STREAM, protocol);
	socklen_t length = sizeof(*address);

	memset(address, 0, sizeof(*address));
	address->sin6_family = family;
	if (fd < 0 || bind(fd, (struct sockaddr *)address, length) < 0 ||
	    listen(fd, MOST) < 0 ||
	    getsockname(fd, (struct sockaddr *)address, &length) < 0)
		abort();
	return fd;
}

/* Connects a client of IPv4 or IPv6 to the listener, which takes both. */
static int connect_to(int family, const struct sockaddr_in6 *listener)
{
	int fd = socket(family, SOCK_STREAM, 0);
	struct sockaddr_in four = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = listener->sin6_port,
	};
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
		.sin6_port = listener->sin6_port,
	};

	if (family == AF_INET ?
	    connect(fd, (struct sockaddr *)&four, sizeof(four)) :
	    connect(fd, (struct sockaddr *)&six, sizeof(six)))
		abort();
	return fd;
}

static int open_diag(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

/* Skips the test if the guest's kernel lacks tcp_diag. */
static void need_diag(int diag, const struct tw_tcp *tcp)
{
	struct tw_tcp copy = *tcp;

	if (tw_tcp_ask(diag, &copy, 1) < 0 && errno == EPROTONOSUPPORT)
		skip("no tcp_diag");
}

/* A pair of connected sockets. @family: the client's, @listening: the listener's */
FIXTURE(tcp)
{
	struct sockaddr_in6 address;
	int listener, client, server, diag;
	struct tw_tcp tcp;	/* the name of @server */
};

FIXTURE_VARIANT(tcp)
{
	int listening, family;
};

FIXTURE_VARIANT_ADD(tcp, ipv4)
{
	.listening = AF_INET,
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(tcp, ipv6)
{
	.listening = AF_INET6,
	.family = AF_INET6,
};

FIXTURE_VARIANT_ADD(tcp, ipv4_for_ipv6)
{
	.listening = AF_INET6,
	.family = AF_INET,
};

FIXTURE_SETUP(tcp)
{
	if (variant->listening == AF_INET6 && access("/proc/net/if_inet6", F_OK))
		SKIP(return, "no IPv6");
	self->listener = listen_at(variant->listening, 0, &self->address);
	self->client = connect_to(variant->family, &self->address);
	self->server = accept(self->listener, NULL, NULL);
	self->diag = open_diag();
	ASSERT_EQ(0, tw_tcp_name(self->server, &self->tcp));
}

FIXTURE_TEARDOWN(tcp)
{
}

/* Both questions have the answer that data came in between @from and @to. */
static bool came_between(FIXTURE_DATA(tcp) *self, uint64_t from, uint64_t to)
{
	uint64_t before = now(), after;
	int64_t idle = tw_tcp_idle(self->server);

	if (tw_tcp_ask(self->diag, &self->tcp, 1) < 0 || self->tcp.error)
		return false;
	after = now();
	return idle >= (int64_t)(before - to - JIFFY) &&
	       idle <= (int64_t)(after - from + JIFFY) &&
	       self->tcp.received + JIFFY >= before - to &&
	       self->tcp.received <= after - from + JIFFY;
}

static bool say(int from, int to)
{
	char byte = 'x';

	return write(from, &byte, 1) == 1 && read(to, &byte, 1) == 1;
}

/*
 * The answer grows with the silence from the connection's beginning on, and begins again with
 * each data that comes in.
 */
TEST_F(tcp, tells_when_data_came)
{
	uint64_t from, to = now();

	need_diag(self->diag, &self->tcp);
	rest(60 * MS);
	EXPECT_TRUE(came_between(self, to - SEC, to));
	for (int i = 0; i < 3; i++) {
		from = now();
		ASSERT_TRUE(say(self->client, self->server));
		to = now();
		EXPECT_TRUE(came_between(self, from, to));
		rest(60 * MS);
		EXPECT_TRUE(came_between(self, from, to));
	}
}

/* Data counts when it has come, whether or not the program has read it. */
TEST_F(tcp, unread_data_counts)
{
	uint64_t from;
	char byte = 'x';

	need_diag(self->diag, &self->tcp);
	rest(60 * MS);
	from = now();
	ASSERT_EQ(1, write(self->client, &byte, 1));
	ASSERT_EQ(1, recv(self->server, &byte, 1, MSG_PEEK));
	EXPECT_TRUE(came_between(self, from, now()));
}

/* Data that the program sends does not count, and neither does its peer's acknowledgment. */
TEST_F(tcp, sent_data_does_not_count)
{
	uint64_t to = now(), sent;

	need_diag(self->diag, &self->tcp);
	rest(60 * MS);
	for (int i = 0; i < 3; i++)
		ASSERT_TRUE(say(self->server, self->client));
	sent = now();
	EXPECT_TRUE(came_between(self, to - SEC, to));
	EXPECT_LE(self->tcp.sent, now() - sent + JIFFY);
}

/* A probe that keeps the connection alive does not count, and neither does its answer. */
TEST_F(tcp, keepalive_does_not_count)
{
	const int one = 1;
	uint64_t to = now();
	struct tcp_info info = { };
	socklen_t length = sizeof(info);

	need_diag(self->diag, &self->tcp);
	for (int i = 0; i < 2; i++) {
		int fd = i ? self->client : self->server;

		ASSERT_EQ(0, setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)));
		ASSERT_EQ(0, setsockopt(fd, SOL_TCP, TCP_KEEPIDLE, &one, sizeof(one)));
		ASSERT_EQ(0, setsockopt(fd, SOL_TCP, TCP_KEEPINTVL, &one, sizeof(one)));
	}
	/* Waits until an answer has come much later than the beginning. */
	do {
		rest(100 * MS);
		ASSERT_EQ(0, getsockopt(self->server, SOL_TCP, TCP_INFO, &info,
					&length));
	} while (info.tcpi_last_ack_recv + 500 > info.tcpi_last_data_recv);
	EXPECT_TRUE(came_between(self, to - SEC, to));
}

/* The peer will send nothing more, and the silence goes on. */
TEST_F(tcp, half_closed)
{
	uint64_t to = now();

	need_diag(self->diag, &self->tcp);
	ASSERT_EQ(0, shutdown(self->client, SHUT_WR));
	rest(60 * MS);
	EXPECT_TRUE(came_between(self, to - SEC, to));
}

/* A connection that was closed or reset has ended, for both questions. */
TEST_F(tcp, ended)
{
	const struct linger reset = { .l_onoff = 1 };

	need_diag(self->diag, &self->tcp);
	/* This end has been closed, and waits for its peer to close, too. */
	close(dup(self->server));
	EXPECT_EQ(0, tw_tcp_ask(self->diag, &self->tcp, 1));
	EXPECT_EQ(0, self->tcp.error);
	close(self->server);
	EXPECT_EQ(0, tw_tcp_ask(self->diag, &self->tcp, 1));
	EXPECT_EQ(ENOTCONN, self->tcp.error);
	EXPECT_ERR(EBADF, tw_tcp_idle(self->server));

	self->client = connect_to(variant->family, &self->address);
	self->server = accept(self->listener, NULL, NULL);
	ASSERT_EQ(0, tw_tcp_name(self->server, &self->tcp));
	setsockopt(self->client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(self->client);
	rest(50 * MS);
	EXPECT_ERR(ENOTCONN, tw_tcp_idle(self->server));
	EXPECT_ERR(ENOTCONN, tw_tcp_name(self->server, &self->tcp));
	EXPECT_EQ(0, tw_tcp_ask(self->diag, &self->tcp, 1));
	EXPECT_EQ(ENOTCONN, self->tcp.error);
}

/* The cookie tells a connection from another one of the same addresses. */
TEST_F(tcp, another_cookie)
{
	need_diag(self->diag, &self->tcp);
	self->tcp.id.idiag_cookie[0]++;
	EXPECT_EQ(0, tw_tcp_ask(self->diag, &self->tcp, 1));
	EXPECT_EQ(ENOTCONN, self->tcp.error);
}

/* A socket that is bound to an interface is found by its name, too. */
TEST_F(tcp, bound_to_interface)
{
	const int loopback = 1;

	need_diag(self->diag, &self->tcp);
	if (setsockopt(self->server, SOL_SOCKET, SO_BINDTOIFINDEX, &loopback,
		       sizeof(loopback)) < 0)
		SKIP(return, "the socket cannot be bound to an interface");
	ASSERT_EQ(0, tw_tcp_name(self->server, &self->tcp));
	EXPECT_EQ(1, self->tcp.id.idiag_if);
	EXPECT_EQ(0, tw_tcp_ask(self->diag, &self->tcp, 1));
	EXPECT_EQ(0, self->tcp.error);
}

/* Finds the other end of a connection, whose cookie no program can know. */
static struct tw_tcp other_end(int diag, int fd)
{
	struct {
		struct nlmsghdr			header;
		struct inet_diag_req_v2		body;
	} question = {
		.header = { .nlmsg_len = sizeof(question),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.body = { .sdiag_protocol = IPPROTO_TCP, .idiag_states = -1 },
	};
	struct inet_diag_sockid *id = &question.body.id;
	struct {
		struct nlmsghdr			header;
		struct inet_diag_msg		body;
		char				more[1024];
	} answer = { };
	struct tw_tcp tcp;

	if (tw_tcp_name(fd, &tcp) < 0)
		abort();
	memcpy(id->idiag_src, tcp.id.idiag_dst, sizeof(id->idiag_src));
	memcpy(id->idiag_dst, tcp.id.idiag_src, sizeof(id->idiag_dst));
	id->idiag_sport = tcp.id.idiag_dport;
	id->idiag_dport = tcp.id.idiag_sport;
	memset(id->idiag_cookie, 0xff, sizeof(id->idiag_cookie));
	question.body.sdiag_family = tcp.family;
	if (send(diag, &question, sizeof(question), 0) < 0 ||
	    recv(diag, &answer, sizeof(answer), 0) < 0)
		abort();
	tcp.id = answer.body.id;
	tcp.family = answer.body.idiag_family;
	return tcp;
}

/* A connection that waits for a hanging program to accept it is asked like any other. */
TEST_F(tcp, not_accepted)
{
	int fd = connect_to(variant->family, &self->address);
	uint64_t from;

	need_diag(self->diag, &self->tcp);
	self->tcp = other_end(self->diag, fd);
	rest(60 * MS);
	from = now();
	ASSERT_EQ(1, write(fd, "x", 1));
	EXPECT_EQ(0, tw_tcp_ask(self->diag, &self->tcp, 1));
	EXPECT_EQ(0, self->tcp.error);
	EXPECT_LE(self->tcp.received, now() - from + JIFFY);
	/* The peer has left, and the program could still read what it sent. */
	close(fd);
	EXPECT_EQ(0, tw_tcp_ask(self->diag, &self->tcp, 1));
	EXPECT_EQ(0, self->tcp.error);
	close(self->listener);
	EXPECT_EQ(0, tw_tcp_ask(self->diag, &self->tcp, 1));
	EXPECT_EQ(ENOTCONN, self->tcp.error);
}

/* Asks about sockets of another user's process, which hangs, without any right. */
static int ask_as_nobody(void *arg)
{
	FIXTURE_DATA(tcp) *self = arg;

	become_nobody();
	self->diag = open_diag();
	return tw_tcp_ask(self->diag, &self->tcp, 1) < 0 || self->tcp.error;
}

TEST_F(tcp, of_another_process)
{
	need_diag(self->diag, &self->tcp);
	if (getuid())
		SKIP(return, "not root");
	EXPECT_EQ(0, in_child(ask_as_nobody, self));
}

/*
 * The connections are more than one call can ask about, some have ended, and the buffer is
 * small.
 */
FIXTURE(many)
{
	struct sockaddr_in6 address;
	int listener, diag;
	struct tw_tcp tcp[MOST];
	int client[MOST], server[MOST];
};

FIXTURE_SETUP(many)
{
	self->listener = listen_at(AF_INET, 0, &self->address);
	self->diag = open_diag();
	for (int i = 0; i < MOST; i++) {
		self->client[i] = connect_to(AF_INET, &self->address);
		self->server[i] = accept(self->listener, NULL, NULL);
		ASSERT_EQ(0, tw_tcp_name(self->server[i], &self->tcp[i]));
		self->tcp[i].error = 99;
		if (i % 7 == 3)
			close(self->server[i]);
	}
	need_diag(self->diag, self->tcp);
}

FIXTURE_TEARDOWN(many)
{
}

static bool all_answered(FIXTURE_DATA(many) *self)
{
	for (int i = 0; i < MOST; i++)
		if (self->tcp[i].error != (i % 7 == 3 ? ENOTCONN : 0))
			return false;
	return true;
}

TEST_F(many, each_has_its_answer)
{
	uint64_t from, asked;

	rest(60 * MS);
	from = now();
	for (int i = 0; i < MOST; i += 2)
		if (i % 7 != 3)
			ASSERT_TRUE(say(self->client[i], self->server[i]));
	asked = now();
	EXPECT_EQ(0, tw_tcp_ask(self->diag, self->tcp, MOST));
	EXPECT_TRUE(all_answered(self));
	for (int i = 0; i < MOST; i++) {
		if (i % 7 == 3)
			continue;
		if (i % 2) {
			EXPECT_GE(self->tcp[i].received + JIFFY,
				  asked - from + 60 * MS);
		} else {
			EXPECT_LE(self->tcp[i].received, now() - from + JIFFY);
		}
	}
}

TEST_F(many, small_buffer)
{
	const int least = 1;

	ASSERT_EQ(0, setsockopt(self->diag, SOL_SOCKET, SO_RCVBUF, &least,
				sizeof(least)));
	EXPECT_EQ(0, tw_tcp_ask(self->diag, self->tcp, MOST));
	EXPECT_TRUE(all_answered(self));
}

/* All connections have ended, and the kernel would have been able to tell this. */
TEST_F(many, all_ended)
{
	for (int i = 0; i < MOST; i++)
		close(self->server[i]);
	EXPECT_EQ(0, tw_tcp_ask(self->diag, self->tcp, MOST));
	for (int i = 0; i < MOST; i++)
		EXPECT_EQ(ENOTCONN, self->tcp[i].error);
}

TEST(none)
{
	EXPECT_EQ(0, tw_tcp_ask(-1, NULL, 0));
}

/* The call fails, and each connection says that it was not asked. */
TEST(no_diag_socket)
{
	struct tw_tcp tcp = { .family = AF_INET };

	EXPECT_ERR(EBADF, tw_tcp_ask(-1, &tcp, 1));
	EXPECT_EQ(EINPROGRESS, tcp.error);
	EXPECT_ERR(ENOTSOCK, tw_tcp_ask(0, &tcp, 1));
}

/* A kernel that cannot tell says so, and does not call all connections ended. */
TEST(no_tcp_diag)
{
	struct tw_tcp tcp = { .family = AF_INET, .id.idiag_cookie = { 1, 2 } };

	if (!tw_tcp_ask(open_diag(), &tcp, 1))
		SKIP(return, "the kernel has tcp_diag");
	EXPECT_EQ(EPROTONOSUPPORT, errno);
}

/* These sockets are no TCP connections. */
TEST(refused)
{
	struct sockaddr_in6 address;
	struct tw_tcp tcp = { .error = 99 };
	int fds[2];

	EXPECT_ERR(EBADF, tw_tcp_idle(-1));
	EXPECT_ERR(ENOTSOCK, tw_tcp_idle(open("/dev/null", O_RDONLY)));
	EXPECT_ERR(EPROTONOSUPPORT, tw_tcp_idle(socket(AF_INET, SOCK_DGRAM, 0)));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	EXPECT_ERR(EPROTONOSUPPORT, tw_tcp_idle(fds[0]));
	/* NETLINK_XFRM has the same number as TCP, in kernels that have it. */
	fds[0] = socket(AF_NETLINK, SOCK_RAW, IPPROTO_TCP);
	if (fds[0] >= 0)
		EXPECT_ERR(EPROTONOSUPPORT, tw_tcp_idle(fds[0]));
	EXPECT_ERR(ENOTCONN, tw_tcp_idle(socket(AF_INET, SOCK_STREAM, 0)));
	EXPECT_ERR(ENOTCONN, tw_tcp_idle(listen_at(AF_INET, 0, &address)));
	EXPECT_ERR(ENOTCONN, tw_tcp_name(listen_at(AF_INET, 0, &address), &tcp));
	EXPECT_ERR(ENOTSOCK, tw_tcp_name(0, &tcp));
	EXPECT_EQ(99, tcp.error);
}

/* MPTCP has more than one path, of which TCP tells of one. */
TEST(multipath)
{
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);

	if (fd < 0)
		SKIP(return, "no MPTCP");
	EXPECT_ERR(EPROTONOSUPPORT, tw_tcp_idle(fd));
}

TEST_HARNESS_MAIN
