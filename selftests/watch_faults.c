// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watched tokens, and what happens to their connections meanwhile: they are closed at
 * once, connected anew, their ports are used again, BPF or TLS takes them, or there
 * are very many. The wheel holds nothing of them, so that all goes as without it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "tw_process.h"
#include "tw_watch.h"

#define SHORT	(80 * TW_MS)	/* a timeout that tests wait for */
#define LONG	280		/* seconds; guests may be emulated */

/* A wheel that watches, and tells of ends, and a connection. */
FIXTURE(faults) {
	int fd;
	struct tw_conn conn;
};

FIXTURE_SETUP(faults)
{
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_watch(self->fd, TW_MS, 1000,
				    TIMEWHEEL_SETUP_TELL_ENDED));
	ASSERT_TRUE(tw_connect(AF_INET, &self->conn));
}

FIXTURE_TEARDOWN(faults)
{
	tw_disconnect(&self->conn);
	close(self->fd);
}

TEST_F(faults, closed_at_once_after)
{
	struct timewheel_event event;

	for (int i = 0; i < 20; i++) {
		struct tw_conn conn;

		ASSERT_TRUE(tw_connect(i % 2 ? AF_INET : AF_INET6, &conn));
		ASSERT_EQ(0, tw_watch(self->fd, i, conn.a, i % 3 ? 1 : SHORT, 0));
		tw_reset(&conn.a);
		tw_expect_event(self->fd, i, ENOTCONN, &event);
		tw_disconnect(&conn);
	}
}

/* The connection that was is not the one that the same socket makes next. */
TEST_F(faults, connected_anew_then_listening)
{
	const struct sockaddr nothing = { .sa_family = AF_UNSPEC };
	union tw_address address = tw_loopback(AF_INET);
	int listener = tw_listen(&address, 0);
	struct tw_conn *c = &self->conn;
	struct timewheel_event event;

	ASSERT_LE(0, listener);
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	ASSERT_EQ(0, connect(c->a, &nothing, sizeof(nothing)));
	EXPECT_EQ(-ENOTCONN, tw_watch(self->fd, 2, c->a, SHORT, 0));
	ASSERT_EQ(0, connect(c->a, &address.any, tw_address_size(&address)));
	EXPECT_EQ(TIMEWHEEL_RES_REPLACED, tw_watch(self->fd, 1, c->a, SHORT, 0));
	tw_expect_event(self->fd, 1, 0, &event);
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	ASSERT_EQ(0, connect(c->a, &nothing, sizeof(nothing)));
	ASSERT_EQ(0, listen(c->a, 1));
	EXPECT_EQ(-EOPNOTSUPP, tw_watch(self->fd, 2, c->a, SHORT, 0));
	tw_expect_event(self->fd, 1, ENOTCONN, &event);
	close(listener);
}

/* Probes keep a connection alive, and carry no data. */
TEST_F(faults, keep_alive_probes_do_not_count)
{
	struct tw_conn *c = &self->conn;
	const int on = 1;
	struct tw_span span;
	struct tcp_info info;

	ASSERT_TRUE(tw_say(c->a, c->b, &span));
	ASSERT_EQ(0, setsockopt(c->a, IPPROTO_TCP, TCP_KEEPIDLE, &on, sizeof(on)));
	ASSERT_EQ(0, setsockopt(c->a, IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof(on)));
	ASSERT_EQ(0, setsockopt(c->a, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)));
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->b, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 3, c->b, TW_AN_HOUR,
			      TIMEWHEEL_OPF_RECEIVED));
	/* Its peer's answer to a probe is the last that it heard. */
	do {
		tw_sleep_ms(100);
		info = tw_tcp_info(c->a);
	} while (info.tcpi_last_ack_recv + 500 > info.tcpi_last_data_sent &&
		 tw_now(CLOCK_MONOTONIC) < span.to + TW_SOON);
	EXPECT_LE(info.tcpi_last_ack_recv + 500, info.tcpi_last_data_sent);
	for (int id = 1; id <= 3; id++)
		tw_expect_deadline(tw_deadline_of(self->fd, id), span,
				   TW_AN_HOUR);
}

/* A connection whose peer never answers is none yet. */
TEST_F(faults, connecting_is_not_connected)
{
	union tw_address address = tw_loopback(AF_INET);
	int listener = tw_listen(&address, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	ASSERT_LE(0, listener);
	ASSERT_TRUE(tw_cut(listener));
	ASSERT_EQ(-EINPROGRESS, tw_ret(connect(fd, &address.any,
					       tw_address_size(&address))));
	EXPECT_EQ(-ENOTCONN, tw_watch(self->fd, 1, fd, SHORT, 0));
	close(fd);
	close(listener);
}

/*
 * Connects from the port of @from to @listener. Only what is there before can be in
 * the way: both have SO_REUSEADDR off.
 */
static int connect_from(const union tw_address *from, const union tw_address *to)
{
	int fd = socket(from->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && !bind(fd, &from->any, tw_address_size(from)) &&
	    !connect(fd, &to->any, tw_address_size(to)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static union tw_address name_of(int fd)
{
	union tw_address name = { };
	socklen_t size = sizeof(name);

	getsockname(fd, &name.any, &size);
	return name;
}

/*
 * The ports of a connection that is gone can be used at once, and belong to another
 * connection then, although addresses and ports are all the same: it is not watched
 * by the token of the old one.
 */
TEST_F(faults, ports_are_used_again)
{
	union tw_address address = tw_loopback(AF_INET), from;
	int listener = tw_listen(&address, 0), again, accepted;
	struct timewheel_event event;
	struct timewheel_token token;
	struct tw_conn conn;
	__u64 cookie;

	ASSERT_LE(0, listener);
	ASSERT_TRUE(tw_connect_to(listener, &address, &conn));
	from = name_of(conn.a);
	cookie = tw_socket_cookie(conn.a);
	ASSERT_EQ(0, tw_watch(self->fd, 1, conn.a, SHORT, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, conn.b, 2 * SHORT, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 3, conn.a, TW_AN_HOUR, 0));
	tw_reset(&conn.a);
	tw_reset(&conn.b);

	again = connect_from(&from, &address);
	ASSERT_LE(0, again);
	accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ASSERT_LE(0, accepted);
	EXPECT_NE(cookie, tw_socket_cookie(again));
	ASSERT_EQ(1, send(again, "x", 1, 0));
	tw_expect_event(self->fd, 1, ENOTCONN, &event);
	tw_expect_event(self->fd, 2, ENOTCONN, &event);
	ASSERT_EQ(0, tw_get(self->fd, 0, 3, &token));
	EXPECT_EQ(cookie, token.socket);
	EXPECT_EQ(TIMEWHEEL_RES_REPLACED, tw_watch(self->fd, 3, again, SHORT, 0));
	tw_expect_event(self->fd, 3, 0, &event);
	close(again);
	close(accepted);
	close(listener);
}

/* A close goes to the peer at once, however long the wheel would still wait. */
TEST_F(faults, fin_is_sent_at_once)
{
	struct tw_conn *c = &self->conn;
	struct pollfd p = { .fd = c->b, .events = POLLRDHUP };

	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->b, TW_AN_HOUR, 0));
	close(c->a);
	c->a = -1;
	EXPECT_EQ(1, poll(&p, 1, TW_SOON / TW_MS));
	EXPECT_EQ(POLLRDHUP, p.revents & POLLRDHUP);
}

/*
 * What both sides have begun has received nothing yet, not even a beginning: its time
 * counts from WATCH.
 */
TEST_F(faults, connected_to_itself)
{
	struct sockaddr_in name = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(name);
	struct timewheel_event event;
	__u64 before;

	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&name, size));
	ASSERT_EQ(0, getsockname(fd, (struct sockaddr *)&name, &size));
	ASSERT_EQ(0, connect(fd, (struct sockaddr *)&name, size));
	before = tw_now(CLOCK_MONOTONIC);
	ASSERT_EQ(0, tw_watch(self->fd, 1, fd, SHORT, TIMEWHEEL_OPF_RECEIVED));
	EXPECT_LE(before + SHORT, tw_deadline_of(self->fd, 1));
	tw_expect_event(self->fd, 1, 0, &event);
	EXPECT_LE(before + SHORT, event.taken);
	close(fd);
}

/* Data that is sent without copying it counts when it is sent, as all data. */
TEST_F(faults, zero_copy)
{
	const size_t size = 64 << 10;
	char *data = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tw_conn *c = &self->conn;
	const int on = 1;
	struct tw_span span;

	ASSERT_NE(MAP_FAILED, data);
	ASSERT_EQ(0, setsockopt(c->a, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)));
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->b, TW_AN_HOUR, TIMEWHEEL_OPF_RECEIVED));
	for (int i = 0; i < 5; i++) {
		tw_sleep_ms(20);
		span.from = tw_span_begins();
		ASSERT_EQ((ssize_t)size, send(c->a, data, size, MSG_ZEROCOPY));
		ASSERT_EQ((ssize_t)size, recv(c->b, data + size, size, MSG_WAITALL));
		span.to = tw_now(CLOCK_MONOTONIC);
		tw_expect_deadline(tw_deadline_of(self->fd, 1), span, TW_AN_HOUR);
		tw_expect_deadline(tw_deadline_of(self->fd, 2), span, TW_AN_HOUR);
	}
	/* The last pages may still be in use by TCP, and so stay. */
}

/* An IPv4 connection of an IPv6 socket, which both kinds of sockets may listen for. */
TEST_F(faults, v4_mapped_and_dual_stack)
{
	union tw_address any = {
		.v6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT },
	};
	struct timewheel_token token;
	int listener = tw_listen(&any, 0);
	union tw_address v4 = tw_loopback(AF_INET);
	union tw_address mapped = any;

	ASSERT_LE(0, listener);
	v4.v4.sin_port = any.v6.sin6_port;
	mapped.v6.sin6_addr.s6_addr[10] = 0xff;
	mapped.v6.sin6_addr.s6_addr[11] = 0xff;
	mapped.v6.sin6_addr.s6_addr[12] = 127;
	mapped.v6.sin6_addr.s6_addr[15] = 1;
	for (int family = 0; family < 2; family++) {
		struct timewheel_event event;
		struct tw_conn conn;
		struct tw_span span;

		ASSERT_TRUE(tw_connect_to(listener, family ? &mapped : &v4, &conn));
		for (int id = 0; id < 2; id++) {
			int fd = id ? conn.a : conn.b;

			ASSERT_EQ(0, tw_watch(self->fd, id, fd, TW_AN_HOUR, 0));
			ASSERT_EQ(0, tw_get(self->fd, 0, id, &token));
			EXPECT_EQ(0, memcmp(&mapped.v6.sin6_addr, token.local, 16));
			EXPECT_EQ(0, memcmp(&mapped.v6.sin6_addr, token.remote, 16));
		}
		tw_sleep_ms(20);
		ASSERT_TRUE(tw_say(conn.a, conn.b, &span));
		for (int id = 0; id < 2; id++) {
			tw_expect_deadline(tw_deadline_of(self->fd, id), span,
					   TW_AN_HOUR);
			ASSERT_EQ(0, tw_cancel(self->fd, 0, id));
		}
		ASSERT_EQ(0, tw_watch(self->fd, 1, conn.b, SHORT, 0));
		tw_disconnect(&conn);
		tw_expect_event(self->fd, 1, ENOTCONN, &event);
	}
	close(listener);
}

/* Sockets that are bound to an interface, by name or by a link-local address. */
TEST_F(faults, link_local_and_bound_to_an_interface)
{
	struct {
		struct in6_addr address;
		__u32 prefix;
		int interface;
	} request = { .prefix = 64, .interface = if_nametoindex("lo") };
	union tw_address local = {
		.v6 = { .sin6_family = AF_INET6, .sin6_scope_id = request.interface },
	};
	int control = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), listener;
	struct timewheel_event event;
	struct timewheel_token token;
	bool connected = false;
	struct tw_conn conn;
	struct tw_span span;

	TW_NEEDS_ROOT();
	ASSERT_LE(0, control);
	ASSERT_EQ(1, inet_pton(AF_INET6, "fe80::7", &request.address));
	ASSERT_TRUE(!ioctl(control, SIOCSIFADDR, &request) || errno == EEXIST);
	local.v6.sin6_addr = request.address;
	/* A worker of the kernel brings it up, and its route. */
	for (int i = 0; i < 1000; i++) {
		listener = tw_listen(&local, 0);
		connected = listener >= 0 &&
			    tw_connect_to(listener, &local, &conn);
		if (connected)
			break;
		close(listener);
		tw_sleep_ms(10);
	}
	ASSERT_TRUE(connected);
	for (int way = 0; way < 2; way++) {
		int fd = way ? conn.a : conn.b;

		ASSERT_TRUE(tw_say(conn.a, conn.b, &span));
		ASSERT_EQ(0, tw_watch(self->fd, way, fd, SHORT, 0));
		ASSERT_EQ(0, tw_get(self->fd, 0, way, &token));
		EXPECT_EQ((__u32)request.interface, token.interface);
		EXPECT_EQ(0, memcmp(&request.address, token.local, 16));
		tw_expect_event(self->fd, way, 0, &event);
		tw_expect_deadline(event.deadline, span, SHORT);
	}
	tw_disconnect(&conn);
	close(listener);

	/* Bound by name, and after WATCH: then the token seems to have ended. */
	ASSERT_EQ(0, setsockopt(self->conn.a, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2));
	ASSERT_EQ(0, tw_watch(self->fd, 1, self->conn.a, SHORT, 0));
	tw_expect_event(self->fd, 1, 0, &event);
	ioctl(control, SIOCDIFADDR, &request);
	close(control);
}

/* How many connections a test of this scale makes: they are dear, so scaled twice. */
static unsigned long many_connections(void)
{
	struct rlimit limit;
	unsigned long n = 200 + tw_scaled(tw_scaled(100000));

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return 2 * n + 100 > limit.rlim_cur ? (limit.rlim_cur - 100) / 2 : n;
}

/* Which connection does what. */
enum { SPEAKS, ENDS, SILENT, KINDS };

/* Very many connections on a wheel. */
struct many {
	int fd;
	unsigned long n;
	unsigned long left;	/* that will have an event */
	__u64 timeout;
	struct tw_conn *conns;
	struct tw_span *last;	/* data of each */
	unsigned char *events;	/* of each */
};

static void connect_many(struct __test_metadata *_metadata, struct many *many)
{
	enum { LISTENERS = 8 };	/* each has 28,000 ports for connections to it */
	union tw_address address[LISTENERS];
	int listener[LISTENERS];

	for (int i = 0; i < LISTENERS; i++) {
		address[i] = tw_loopback(i % 2 ? AF_INET : AF_INET6);
		listener[i] = tw_listen(&address[i], 0);
		ASSERT_LE(0, listener[i]);
	}
	for (unsigned long i = 0; i < many->n; i++) {
		int l = i % LISTENERS;

		ASSERT_TRUE(tw_connect_to(listener[l], &address[l],
					  &many->conns[i])) {
			TH_LOG("connection %lu: %s", i, strerror(errno));
		}
	}
	for (int i = 0; i < LISTENERS; i++)
		close(listener[i]);
}

static bool say_to(struct many *many, unsigned long i)
{
	return tw_say(many->conns[i].b, many->conns[i].a, &many->last[i]);
}

/* The timeout is long enough to use each connection several times in it. */
static void watch_many(struct __test_metadata *_metadata, struct many *many)
{
	__u64 begin = tw_now(CLOCK_MONOTONIC);

	for (unsigned long i = 0; i < many->n; i++)
		ASSERT_TRUE(say_to(many, i));
	many->timeout = 4 * (tw_now(CLOCK_MONOTONIC) - begin) + TW_SEC;
	for (unsigned long i = 0; i < many->n; i++) {
		ASSERT_TRUE(say_to(many, i));
		ASSERT_EQ(0, tw_watch(many->fd, i, many->conns[i].a,
				      many->timeout, 0));
		many->left += i % KINDS != SPEAKS;
	}
	for (unsigned long i = ENDS; i < many->n; i += KINDS)
		tw_reset(&many->conns[i].a);
}

/* Data for each that speaks, far before it would be due. */
static void speak_many(struct __test_metadata *_metadata, struct many *many)
{
	__u64 begin = tw_now(CLOCK_MONOTONIC);

	for (unsigned long i = SPEAKS; i < many->n; i += KINDS)
		ASSERT_TRUE(say_to(many, i));
	ASSERT_GT(begin + many->timeout, tw_now(CLOCK_MONOTONIC));
}

static void read_many(struct __test_metadata *_metadata, struct many *many)
{
	struct pollfd p = { .fd = many->fd, .events = POLLIN };
	struct timewheel_event event;

	poll(&p, 1, 10);
	while (tw_read(many->fd, &event, 1) == 1) {
		ASSERT_GT(many->n, event.id);
		EXPECT_EQ(0, many->events[event.id]++);
		many->left--;
		EXPECT_NE(SPEAKS, event.id % KINDS);
		EXPECT_EQ(event.id % KINDS == ENDS ? ENOTCONN : 0U, event.error);
		EXPECT_LE(event.deadline, event.taken);
		if (event.id % KINDS == SILENT)
			tw_expect_deadline(event.deadline, many->last[event.id],
					   many->timeout);
	}
}

/*
 * 100,000 connections: those that stay silent have an event each when their timeout has
 * passed, those that are used have none, those that end say so.
 */
TEST_F_TIMEOUT(faults, many, 4 * LONG)
{
	const unsigned long n = many_connections();
	struct many many = {
		.fd = TW_OPEN(O_RDWR | O_NONBLOCK), .n = n,
		.conns = calloc(n, sizeof(*many.conns)),
		.last = calloc(n, sizeof(*many.last)),
		.events = calloc(n, sizeof(*many.events)),
	};
	struct timewheel_info info;

	ASSERT_TRUE(many.conns && many.last && many.events);
	ASSERT_EQ(0, tw_setup_watch(many.fd, TW_MS, n, TIMEWHEEL_SETUP_TELL_ENDED));
	connect_many(_metadata, &many);
	watch_many(_metadata, &many);
	while (many.left && _metadata->exit_code == KSFT_PASS) {
		speak_many(_metadata, &many);
		read_many(_metadata, &many);
	}
	ASSERT_EQ(0, tw_info(many.fd, &info));
	EXPECT_EQ((n + KINDS - 1) / KINDS, info.pending);
	EXPECT_EQ(n, info.registered);
	EXPECT_EQ(info.registered - info.pending, info.delivered);
	TH_LOG("%lu connections, timeout %llu ms, asked %llu times", n,
	       many.timeout / TW_MS, info.asked);
	for (unsigned long i = 0; i < n; i++)
		tw_disconnect(&many.conns[i]);
	free(many.conns);
	free(many.last);
	free(many.events);
	close(many.fd);
}

/* What threads do to connections that other threads watch. */
enum { THREADS = 2, SLOTS = 64 };

struct race {
	int fd;
	union tw_address address;
	int listener;
	atomic_bool stop;
	atomic_ulong watched, replaced, refused, events, idle, ended;
	pthread_mutex_t lock[SLOTS];
	struct tw_conn conn[SLOTS];
};

/* Opens, uses, shuts down and closes connections; what is open is in its slot. */
static void *use_connections(void *arg)
{
	struct race *race = arg;
	__u64 random = (uintptr_t)&race;

	while (!race->stop) {
		int slot = tw_random(&random) % SLOTS;
		struct tw_conn *c = &race->conn[slot];
		char byte;

		pthread_mutex_lock(&race->lock[slot]);
		switch (c->a < 0 ? 0 : tw_random(&random) % 8) {
		case 0:
			if (c->a < 0 && !tw_connect(AF_INET, c))
				tw_fail("connect: %s", strerror(errno));
			break;
		case 1:
			tw_disconnect(c);
			break;
		case 2:
			tw_reset(&c->a);
			tw_reset(&c->b);
			break;
		case 3:
			shutdown(c->a, SHUT_WR);
			break;
		default:
			send(c->a, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			recv(c->b, &byte, 1, MSG_DONTWAIT);
		}
		pthread_mutex_unlock(&race->lock[slot]);
	}
	return NULL;
}

/* Watches by descriptors that may be closed, or another's, at any moment. */
static void *watch_connections(void *arg)
{
	struct race *race = arg;
	__u64 random = (uintptr_t)&random;

	while (!race->stop) {
		int slot = tw_random(&random) % SLOTS;
		int socket = __atomic_load_n(&race->conn[slot].a,
						 __ATOMIC_RELAXED);
		int ret = tw_watch(race->fd, slot, socket,
				   1 + tw_random(&random) % (20 * TW_MS), 0);

		if (ret < 0)
			race->refused++;
		else
			race->watched++;
		if (ret > 0)
			race->replaced++;
		if (ret < 0 && ret != -EEXIST && ret != -EBADF && ret != -ENOTCONN &&
		    ret != -EOPNOTSUPP && ret != -ENOTSOCK)
			tw_fail("WATCH: %s", strerror(-ret));
	}
	return NULL;
}

static void *read_events(void *arg)
{
	struct race *race = arg;
	struct timewheel_event event;
	struct pollfd p = { .fd = race->fd, .events = POLLIN };

	while (!race->stop) {
		poll(&p, 1, 10);
		while (tw_read(race->fd, &event, 1) == 1) {
			race->events++;
			if (!event.error)
				race->idle++;
			else if (event.error == ENOTCONN)
				race->ended++;
			else
				tw_fail("error %u", event.error);
		}
	}
	return NULL;
}

/* Each connection that was watched has one event, or has ended, or is still there. */
static void race(struct __test_metadata *_metadata, __u32 flags)
{
	static void *(*const part[])(void *) = {
		use_connections, watch_connections, read_events,
	};
	pthread_t thread[3 * THREADS];
	struct race race = { .fd = TW_OPEN(O_RDWR | O_NONBLOCK) };
	struct timewheel_info info;

	ASSERT_EQ(0, tw_setup_watch(race.fd, TW_MS, 1000, flags));
	for (int i = 0; i < SLOTS; i++) {
		race.conn[i] = (struct tw_conn) { -1, -1 };
		pthread_mutex_init(&race.lock[i], NULL);
	}
	for (int i = 0; i < 3 * THREADS; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, part[i % 3], &race));
	tw_sleep_ms(tw_scaled(10000) + 500);
	race.stop = true;
	for (int i = 0; i < 3 * THREADS; i++)
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
	for (int i = 0; i < SLOTS; i++)
		tw_disconnect(&race.conn[i]);
	race.stop = false;
	for (__u64 end = tw_now(CLOCK_MONOTONIC) + TW_SOON;
	     tw_now(CLOCK_MONOTONIC) < end;) {
		struct timewheel_event event;

		while (tw_read(race.fd, &event, 1) == 1)
			race.events++;
		ASSERT_EQ(0, tw_info(race.fd, &info));
		if (!info.pending)
			break;
		tw_sleep_ms(1);
	}
	EXPECT_EQ(0, atomic_load(&tw_failures));
	EXPECT_EQ(0ULL, info.pending);
	EXPECT_EQ(race.watched, info.registered);
	EXPECT_EQ(race.events, info.delivered);
	EXPECT_EQ(info.registered, info.delivered + info.ended);
	EXPECT_GE(race.refused, info.refused);
	EXPECT_NE(0UL, race.idle);
	EXPECT_EQ(flags ? race.replaced : info.ended, info.ended);
	EXPECT_EQ(flags ? race.ended : 0, race.ended);
	TH_LOG("watched %lu, replaced %lu, refused %lu, idle %lu, ended %llu",
	       race.watched, race.replaced, race.refused, race.idle, info.ended);
	close(race.fd);
}

TEST_F_TIMEOUT(faults, threads_race, LONG)
{
	race(_metadata, 0);
}

TEST_F_TIMEOUT(faults, threads_race_and_ends_are_told, LONG)
{
	race(_metadata, TIMEWHEEL_SETUP_TELL_ENDED);
}

TEST_HARNESS_MAIN
