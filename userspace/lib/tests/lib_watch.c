// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watched connections by the library: a token stays while its connection carries
 * data and is due when it has been idle; each error of a watch comes when it should.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib_test.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP	262
#endif

#define TIMEOUT	(200 * MS)

/* A jiffy more, and a part of one to round up. Jiffies have 10 ms, or less. */
#define LATEST	(TIMEOUT + 2 * 10 * MS + MS)

FIXTURE(watch)
{
	struct tw_wheel *wheel;
	struct tw_events *events;
	struct timewheel_op op;
	struct timewheel_token token;
	struct sockaddr_in address;	/* of the listener */
	int listener;
	int client;
	int server;
};

FIXTURE_VARIANT(watch)
{
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(watch, plain)
{
	.flags = TIMEWHEEL_SETUP_WATCH,
};

FIXTURE_VARIANT_ADD(watch, tell_ended)
{
	.flags = TIMEWHEEL_SETUP_WATCH | TIMEWHEEL_SETUP_TELL_ENDED,
};

/* Ends the test where the kernel has no TCP. */
static struct tw_wheel *open_watching(uint32_t flags)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	struct timewheel_setup setup = monotonic;

	tw_wheel_close(open_wheel(&monotonic));
	if (tw_device_caps(&caps) < 0)
		abort();
	if (!(caps.setup_flags & TIMEWHEEL_SETUP_WATCH))
		skip("this kernel has no TCP");
	setup.flags = flags;
	setup.max_tokens = 2;
	return open_wheel(&setup);
}

FIXTURE_SETUP(watch)
{
	socklen_t length = sizeof(self->address);
	int loopback;

	self->wheel = open_watching(variant->flags);
	self->events = tw_events_new(4);
	self->address = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	self->listener = socket(AF_INET, SOCK_STREAM, 0);
	self->client = socket(AF_INET, SOCK_STREAM, 0);
	loopback = bind(self->listener, (struct sockaddr *)&self->address, length);
	ASSERT_EQ(0, loopback) TH_LOG("no address 127.0.0.1");
	ASSERT_EQ(0, listen(self->listener, 4));
	ASSERT_EQ(0, getsockname(self->listener,
				 (struct sockaddr *)&self->address, &length));
	ASSERT_EQ(0, connect(self->client, (struct sockaddr *)&self->address,
			     length));
	self->server = accept(self->listener, NULL, NULL);
	ASSERT_LE(0, self->server);
}

FIXTURE_TEARDOWN(watch)
{
	close(self->client);
	close(self->server);
	close(self->listener);
	tw_events_free(self->events);
	tw_wheel_close(self->wheel);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return TW_SEC(time.tv_sec) + time.tv_nsec;
}

/* Packets, each way in turn, for twice the timeout: no event comes. Then one does. */
TEST_F(watch, idle)
{
	const struct timespec pause = { .tv_nsec = TIMEOUT / 4 };
	const struct timewheel_event *event;
	uint64_t before, after;
	char byte = 0;

	tw_op_watch(&self->op, 7, self->server, TIMEOUT, 9, 0);
	ASSERT_EQ(0, tw_wheel_run(self->wheel, &self->op));
	EXPECT_NE(0, self->op.handle);
	for (int i = 0; i < 8; i++) {
		before = now();
		ASSERT_EQ(1, write(i % 2 ? self->client : self->server, &byte, 1));
		ASSERT_EQ(1, read(i % 2 ? self->server : self->client, &byte, 1));
		after = now();
		nanosleep(&pause, NULL);
		/* A machine that is too slow for this says nothing of the wheel. */
		if (now() - before < TIMEOUT)
			EXPECT_EQ(0, tw_events_read(self->events, self->wheel, 0));
	}
	ASSERT_EQ(1, tw_events_read(self->events, self->wheel, TW_SEC(10)));
	event = tw_events_at(self->events, 0);
	EXPECT_EQ(7, event->id);
	EXPECT_EQ(9, event->cookie);
	EXPECT_EQ(0, event->error);
	EXPECT_LE(before + TIMEOUT, event->taken);
	EXPECT_GE(after + LATEST, event->deadline);
	EXPECT_LT(0, info_of(self->wheel).asked);
}

/* Only what the server receives counts: it sends in vain. */
TEST_F(watch, received)
{
	const struct timespec pause = { .tv_nsec = TIMEOUT / 2 };
	uint64_t before;
	char byte = 0;

	ASSERT_EQ(1, write(self->client, &byte, 1));
	ASSERT_EQ(1, read(self->server, &byte, 1));
	ASSERT_EQ(0, RUN(self->wheel, watch, 7, self->server, TIMEOUT, 0,
			 TIMEWHEEL_OPF_RECEIVED));
	nanosleep(&pause, NULL);
	before = now();
	ASSERT_EQ(1, write(self->server, &byte, 1));
	ASSERT_EQ(1, tw_events_read(self->events, self->wheel, TW_SEC(10)));
	EXPECT_GT(before + TIMEOUT, tw_events_at(self->events, 0)->deadline);
}

TEST_F(watch, token)
{
	const uint8_t loopback[16] = {
		[10] = 0xff, 0xff, 127, 0, 0, 1
	};
	struct sockaddr_in peer;
	socklen_t length = sizeof(peer);

	ASSERT_EQ(0, getpeername(self->server, (struct sockaddr *)&peer, &length));
	ASSERT_EQ(0, RUN(self->wheel, watch, 7, self->server, TW_SEC(60), 0, 0));
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->token));
	EXPECT_EQ(TW_SEC(60), self->token.timeout);
	EXPECT_NE(0, self->token.socket);
	EXPECT_EQ(0, memcmp(loopback, self->token.local, sizeof(loopback)));
	EXPECT_EQ(0, memcmp(loopback, self->token.remote, sizeof(loopback)));
	EXPECT_EQ(ntohs(self->address.sin_port), self->token.local_port);
	EXPECT_EQ(ntohs(peer.sin_port), self->token.remote_port);
	EXPECT_EQ(0, self->token.interface);

	/* What is not TCP is touched, on the same wheel. */
	ASSERT_EQ(0, RUN(self->wheel, register, 8, TW_SEC(60), 0, 0));
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 8, 0, &self->token));
	EXPECT_EQ(0, self->token.socket);
}

TEST_F(watch, touch_move_cancel)
{
	ASSERT_EQ(0, RUN(self->wheel, watch, 7, self->server, TW_SEC(60), 0, 0));
	EXPECT_EQ(0, tw_wheel_touch(self->wheel, 7, 0));
	EXPECT_ERR(EINVAL, RUN(self->wheel, move, 7, TW_SEC(90), 0));
	EXPECT_EQ(0, RUN(self->wheel, cancel, 7, 0));
	EXPECT_ERR(ENOENT, tw_wheel_touch(self->wheel, 7, 0));
}

/* A connection that ended tells so on a wheel that was asked to, else nothing. */
TEST_F(watch, ended)
{
	const bool told = variant->flags & TIMEWHEEL_SETUP_TELL_ENDED;

	ASSERT_EQ(0, RUN(self->wheel, watch, 7, self->server, TIMEOUT, 0, 0));
	close(self->server);
	EXPECT_EQ(told, tw_events_read(self->events, self->wheel, 3 * TIMEOUT));
	if (told)
		EXPECT_EQ(ENOTCONN, tw_events_at(self->events, 0)->error);
	if (!told)
		EXPECT_EQ(1, info_of(self->wheel).ended);
	EXPECT_ERR(ENOENT, tw_wheel_touch(self->wheel, 7, 0));
}

TEST_F(watch, replaced)
{
	int again = socket(AF_INET, SOCK_STREAM, 0);

	ASSERT_EQ(0, RUN(self->wheel, watch, 7, self->server, TW_SEC(60), 0, 0));
	EXPECT_ERR(EEXIST, RUN(self->wheel, watch, 7, self->server, TW_SEC(60), 0,
			       0));
	close(self->server);
	ASSERT_EQ(0, connect(again, (struct sockaddr *)&self->address,
			     sizeof(self->address)));
	EXPECT_EQ(TIMEWHEEL_RES_REPLACED,
		  RUN(self->wheel, watch, 7, again, TW_SEC(60), 0, 0));
	EXPECT_EQ(1, info_of(self->wheel).pending);
	close(again);
}

/* A socket of this kind is refused with @err. A kernel without the kind has none. */
#define EXPECT_REFUSED(err, family, type, protocol) do {		\
	int fd_ = socket(family, type, protocol);			\
									\
	if (fd_ >= 0)							\
		EXPECT_ERR(err, RUN(self->wheel, watch, 9, fd_, TIMEOUT, \
				    0, 0));				\
	close(fd_);							\
} while (0)

TEST_F(watch, refused)
{
	int pair[2];

	EXPECT_REFUSED(ENOTCONN, AF_INET, SOCK_STREAM, 0);
	EXPECT_REFUSED(EPROTOTYPE, AF_INET, SOCK_DGRAM, 0);
	EXPECT_REFUSED(EPROTOTYPE, AF_INET6, SOCK_DGRAM, 0);
	EXPECT_REFUSED(EPROTONOSUPPORT, AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	EXPECT_ERR(EAFNOSUPPORT, RUN(self->wheel, watch, 9, pair[0], TIMEOUT, 0,
				     0));
	EXPECT_ERR(EOPNOTSUPP, RUN(self->wheel, watch, 9, self->listener, TIMEOUT,
				   0, 0));
	EXPECT_ERR(ENOTSOCK, RUN(self->wheel, watch, 9, tw_wheel_fd(self->wheel),
				 TIMEOUT, 0, 0));
	EXPECT_ERR(EBADF, RUN(self->wheel, watch, 9, -1, TIMEOUT, 0, 0));
	EXPECT_LE(6, info_of(self->wheel).refused);
	EXPECT_EQ(0, info_of(self->wheel).pending);
	close(pair[0]);
	close(pair[1]);
}

TEST_F(watch, errors)
{
	const int server = self->server;
	struct tw_wheel *wheel = self->wheel, *other = open_wheel(&monotonic);

	EXPECT_ERR(EINVAL, RUN(other, watch, 7, server, TIMEOUT, 0, 0));
	EXPECT_ERR(EINVAL, RUN(wheel, watch, 7, server, 0, 0, 0));
	EXPECT_ERR(EINVAL, RUN(wheel, watch, 7, server, TIMEOUT, 0,
			       TIMEWHEEL_OPF_BY_HANDLE));
	EXPECT_ERR(EINVAL, RUN(wheel, watch, 7, server, TIMEOUT, 0,
			       TIMEWHEEL_OPF_ABSOLUTE));
	EXPECT_ERR(ERANGE, RUN(wheel, watch, 7, server, TW_DAY(1000), 0, 0));
	ASSERT_EQ(0, tw_wheel_drain(wheel));
	EXPECT_ERR(ESHUTDOWN, RUN(wheel, watch, 7, server, TIMEOUT, 0, 0));
	ASSERT_EQ(0, tw_wheel_undrain(wheel));
	EXPECT_EQ(0, RUN(wheel, watch, 1, server, TW_SEC(60), 0, 0));
	EXPECT_EQ(0, RUN(wheel, watch, 2, server, TW_SEC(60), 0, 0));
	EXPECT_ERR(ENOSPC, RUN(wheel, watch, 3, server, TIMEOUT, 0, 0));
	tw_wheel_close(other);
}

/* Each setting that does not go with watching. */
TEST(setups)
{
	struct timewheel_setup bad[] = { monotonic, monotonic, monotonic, monotonic,
					 monotonic };

	tw_wheel_close(open_watching(TIMEWHEEL_SETUP_WATCH));
	bad[0].flags = TIMEWHEEL_SETUP_TELL_ENDED;
	bad[1].flags = TIMEWHEEL_SETUP_WATCH;
	bad[1].clock = TIMEWHEEL_CLOCK_BOOTTIME;
	bad[2].flags = TIMEWHEEL_SETUP_WATCH | TIMEWHEEL_SETUP_PERIODS;
	bad[3].flags = TIMEWHEEL_SETUP_WATCH | TIMEWHEEL_SETUP_TOUCH_WORDS;
	bad[4].flags = TIMEWHEEL_SETUP_WATCH;
	bad[4].lease = SEC;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_NONE(EINVAL, tw_wheel_open(&bad[i]));
}

TEST_HARNESS_MAIN
