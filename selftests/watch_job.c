// SPDX-License-Identifier: GPL-2.0-only
/*
 * An echo server with watched connections, and what a look at one costs, in
 * instructions. For a guest that runs one instruction per nanosecond (TW_ICOUNT=1),
 * where clock readings count instructions. TW_SCALE=10 is the job of 20,000 connections
 * and 3,300 packets a second.
 */
#define _GNU_SOURCE
#include <sys/resource.h>
#include <time.h>

#include "tw_test.h"
#include "tw_watch.h"

#define TICK		(10 * TW_MS)
#define TRIES		3

/* The job: how many connections, of which each tenth falls silent; packets a second. */
#define CONNECTIONS	2000
#define RATE		330
#define MOST		100000
#define AT_SERVER	20000	/* a port has no more than 28,000 others to connect to it */
#define PASSES		3
#define TIMEOUT		(10 * TW_SEC)

/* Of the connections on which looks and packets are counted. */
#define COUNTED		512
#define LOOK_TIMEOUT	(2 * TW_SEC)

/*
 * What a look at a watched token may take, beyond one at a touched token. TCP's own
 * look-up takes 180 of it.
 */
#define LOOK_BUDGET	400

struct peer {
	struct tw_conn conn;
	struct tw_span last;	/* the echo of its last packet */
	unsigned int events;
};

static struct peer *peers;
static unsigned int count;

static void print(const char *what, double value)
{
	printf("# %-50s %12.1f\n", what, value);
	fflush(stdout);
}

/* Connects the next peers to a server. Returns false if that fails. */
static bool connect_some(unsigned int n)
{
	union tw_address address = tw_loopback(AF_INET);
	int listener = tw_listen(&address, 0);
	bool ok = listener >= 0;

	while (ok && n--) {
		ok = tw_connect_to(listener, &address, &peers[count].conn);
		count += ok;
	}
	close(listener);
	return ok;
}

/* Makes @n connections. */
static bool connect_all(unsigned int n)
{
	const struct rlimit files = { 3 * MOST, 3 * MOST };

	peers = calloc(n, sizeof(*peers));
	if (!peers || setrlimit(RLIMIT_NOFILE, &files))
		return false;
	while (count < n) {
		unsigned int left = n - count;

		if (!connect_some(left < AT_SERVER ? left : AT_SERVER))
			return false;
	}
	return true;
}

static void disconnect_all(void)
{
	while (count)
		tw_disconnect(&peers[--count].conn);
	free(peers);
}

/* A packet from a client, and the server's echo. */
static bool echo(struct peer *peer)
{
	const struct tw_conn *conn = &peer->conn;
	char byte = 'x';

	return send(conn->a, &byte, 1, 0) == 1 && recv(conn->b, &byte, 1, 0) == 1 &&
	       tw_say(conn->b, conn->a, &peer->last);
}

static int watch_all(int fd, __u64 timeout)
{
	int failed = 0;

	for (unsigned int i = 0; i < count; i++)
		failed += tw_watch(fd, i, peers[i].conn.b, timeout, 0) != 0;
	return failed;
}

static void sleep_until(__u64 time)
{
	const struct timespec at = {
		.tv_sec = time / TW_SEC, .tv_nsec = time % TW_SEC,
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
		;
}

FIXTURE(job) {
	int fd;
};

FIXTURE_SETUP(job)
{
	if (!getenv("TW_ICOUNT"))
		SKIP(return, "counts instructions: needs TW_ICOUNT=1");
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_watch(self->fd, TICK, MOST, 0));
}

FIXTURE_TEARDOWN(job)
{
	disconnect_all();
	close(self->fd);
}

/* Events so far, and those that were not as P1 and P2 say. */
static unsigned int seen, early, late, errors;

static void read_due(int fd)
{
	struct timewheel_event events[64];
	int n;

	while ((n = tw_read(fd, events, 64)) > 0) {
		for (int i = 0; i < n; i++) {
			struct peer *peer = &peers[events[i].id];

			peer->events++;
			errors += events[i].error != 0;
			early += events[i].taken < peer->last.from + TIMEOUT;
			late += events[i].deadline >
				peer->last.to + TIMEOUT + TICK + tw_jiffy();
		}
		seen += n;
	}
}

static bool falls_silent(unsigned int i)
{
	return i % 10 == 7;
}

/*
 * All clients send in turn, so many packets a second together; in the first pass also
 * those that are silent from then on. Returns how many packets there were.
 */
static unsigned int serve(struct __test_metadata *_metadata, int fd, __u64 start)
{
	unsigned int packets = 0, rate = tw_scaled(RATE);

	for (unsigned int i = 0; i < PASSES * count; i++) {
		if (i >= count && falls_silent(i % count))
			continue;
		sleep_until(start + packets++ * TW_SEC / rate);
		ASSERT_TRUE(echo(&peers[i % count])) {
			TH_LOG("connection %u of %u", i % count, count);
		}
		read_due(fd);
	}
	return packets;
}

/* Exactly the silent ones come, each once and in time, and nobody has touched. */
TEST_F_TIMEOUT(job, silent_connections_and_no_others_are_due, 280)
{
	unsigned int n = tw_scaled(CONNECTIONS), silent = 0, wrong = 0, packets;
	struct timewheel_info info;
	__u64 start;

	ASSERT_TRUE(connect_all(n));
	/* Each logs in. The first connections have been idle for long. */
	for (unsigned int i = 0; i < n; i++)
		ASSERT_TRUE(echo(&peers[i]));
	ASSERT_EQ(0, watch_all(self->fd, TIMEOUT));
	start = tw_now(CLOCK_MONOTONIC);
	packets = serve(_metadata, self->fd, start);
	/* From the end of the first pass on. The last of the others is due much later. */
	sleep_until(start + n * TW_SEC / tw_scaled(RATE) + TIMEOUT + TICK + 2 * tw_jiffy());
	read_due(self->fd);
	for (unsigned int i = 0; i < n; i++) {
		silent += falls_silent(i);
		wrong += peers[i].events != falls_silent(i);
	}
	EXPECT_EQ(silent, seen);
	EXPECT_EQ(0U, wrong);
	EXPECT_EQ(0U, early);
	EXPECT_EQ(0U, late);
	EXPECT_EQ(0U, errors);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ((__u64)n - silent, info.pending);
	EXPECT_EQ(0ULL, info.touched);
	EXPECT_EQ(0ULL, info.ended);
	print("connections", n);
	print("packets", packets);
	print("events", seen);
	print("times that a connection was asked", info.asked);
}

/* What the first read costs that looks at all tokens, none of which is due. */
static double count_looks(struct __test_metadata *_metadata, int fd)
{
	struct timewheel_event event;
	struct timewheel_info before, after;
	__u64 start, took;

	ASSERT_EQ(0, tw_info(fd, &before));
	start = tw_now(CLOCK_MONOTONIC_RAW);
	EXPECT_EQ(-1, tw_read(fd, &event, 1));
	took = tw_now(CLOCK_MONOTONIC_RAW) - start;
	ASSERT_EQ(0, tw_info(fd, &after));
	EXPECT_EQ((__u64)COUNTED, after.refiled - before.refiled);
	return took / (double)COUNTED;
}

/* All tokens are looked at again some time after @begun; all have been heard of. */
static double count_watched(struct __test_metadata *_metadata, int fd)
{
	__u64 begun = tw_now(CLOCK_MONOTONIC);

	ASSERT_EQ(0, watch_all(fd, LOOK_TIMEOUT));
	sleep_until(begun + LOOK_TIMEOUT / 2);
	for (unsigned int i = 0; i < count; i++)
		ASSERT_TRUE(echo(&peers[i]));
	sleep_until(begun + LOOK_TIMEOUT + LOOK_TIMEOUT / 4);
	return count_looks(_metadata, fd);
}

static double count_touched(struct __test_metadata *_metadata, int fd)
{
	__u64 begun = tw_now(CLOCK_MONOTONIC);

	for (unsigned int i = 0; i < count; i++)
		ASSERT_EQ(0, tw_register(fd, i, LOOK_TIMEOUT, 0, NULL));
	sleep_until(begun + LOOK_TIMEOUT / 2);
	for (unsigned int i = 0; i < count; i++)
		ASSERT_EQ(0, tw_touch(fd, 0, i));
	sleep_until(begun + LOOK_TIMEOUT + LOOK_TIMEOUT / 4);
	return count_looks(_metadata, fd);
}

static void cancel_all(int fd)
{
	for (unsigned int i = 0; i < count; i++)
		tw_cancel(fd, 0, i);
}

TEST_F_TIMEOUT(job, look_is_within_its_budget, 280)
{
	double watched = 1e9, touched = 1e9;

	ASSERT_TRUE(connect_all(COUNTED));
	for (int try = 0; try < TRIES; try++) {
		double count = count_watched(_metadata, self->fd);

		watched = count < watched ? count : watched;
		cancel_all(self->fd);
		count = count_touched(_metadata, self->fd);
		touched = count < touched ? count : touched;
		cancel_all(self->fd);
	}
	print("look at a watched token, which is filed again", watched);
	print("look at a touched token, which is filed again", touched);
	print("what the connection adds (at most 400)", watched - touched);
	EXPECT_GE(LOOK_BUDGET, watched - touched);
}

/* The least that an echo takes, on all connections in turn. */
static double count_echoes(struct __test_metadata *_metadata)
{
	__u64 least = ~0ULL;

	for (int try = 0; try < 2 * TRIES; try++) {
		__u64 start = tw_now(CLOCK_MONOTONIC_RAW), took;

		for (unsigned int i = 0; i < count; i++)
			ASSERT_TRUE(echo(&peers[i]));
		took = tw_now(CLOCK_MONOTONIC_RAW) - start;
		least = took < least ? took : least;
	}
	return least / (double)COUNTED;
}

/* A watched connection carries packets as any other: that is the noise of the count. */
TEST_F_TIMEOUT(job, packet_costs_nothing_more, 280)
{
	double plain, watched;

	ASSERT_TRUE(connect_all(COUNTED));
	count_echoes(_metadata);
	plain = count_echoes(_metadata);
	ASSERT_EQ(0, watch_all(self->fd, TW_AN_HOUR));
	watched = count_echoes(_metadata);
	print("packet and echo", plain);
	print("packet and echo, watched", watched);
	EXPECT_GE(plain * 1.005, watched);
}

TEST_HARNESS_MAIN
