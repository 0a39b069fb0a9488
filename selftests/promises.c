// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program has one test or a few for each of the promises P1 to P10. The other
 * programs test their details. On real clocks the tests assert only the order of
 * events and that no event is early. A slow machine therefore fails no test.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "tw_test.h"

/* P1: no token comes before its deadline or the requested time, on any clock. */
TEST(p1_never_early)
{
	static const struct {
		__u32 clock;
		clockid_t id;
	} clocks[] = {
		{ TIMEWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC },
		{ TIMEWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME },
		{ TIMEWHEEL_CLOCK_REALTIME, CLOCK_REALTIME },
	};
	enum { TOKENS = 200 };

	for (size_t c = 0; c < ARRAY_SIZE(clocks); c++) {
		int fd = TW_OPEN(O_RDWR);
		struct timewheel_event event;
		__u64 wish[TOKENS];

		ASSERT_EQ(0, tw_setup(fd, clocks[c].clock, 31, TW_MS, TOKENS,
				      0, 0));
		for (int i = 0; i < TOKENS; i++) {
			__u64 delay = i * 997 % 300 * TW_MS + i * 4999;

			wish[i] = tw_now(clocks[c].id) + delay;
			ASSERT_EQ(0, tw_register(fd, i, delay, 0, NULL));
		}
		for (int i = 0; i < TOKENS; i++) {
			ASSERT_EQ(1, tw_read(fd, &event, 1));
			__u64 now = tw_now(clocks[c].id);

			ASSERT_LT(event.id, (__u64)TOKENS);
			EXPECT_LE(event.deadline, event.taken);
			EXPECT_LE(event.taken, now);
			/* A token with delay 0 is due on the tick of the hand. */
			EXPECT_LE(wish[event.id] - wish[event.id] % TW_MS,
				  event.deadline);
			if (event.deadline < wish[event.id])
				EXPECT_EQ(0ULL, event.id);
			EXPECT_EQ(0ULL, event.deadline % TW_MS);
		}
		close(fd);
	}
}

/*
 * P2: a token is late by less than a tick, whatever its delay. On a manual clock it
 * comes exactly on its tick.
 */
TEST(p2_exact_at_every_distance)
{
	static const __u64 delays[] = {
		1, 2, 30, 31, 32, 60, 61, 62, 63, 1000, 3599, 3600, 3601,
		48 * 3600 - 1, 48 * 3600, 48 * 3600 + 1, 30 * 86400,
		365 * 86400,
	};
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event events[2];

	ASSERT_EQ(0, tw_setup_manual(fd, 31, ARRAY_SIZE(delays), 0));
	for (size_t i = 0; i < ARRAY_SIZE(delays); i++)
		ASSERT_EQ(0, tw_register(fd, i, delays[i] * TW_SEC, 0, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(delays); i++) {
		ASSERT_EQ(0, tw_advance(fd, delays[i] - 1));
		ASSERT_EQ(-1, tw_read(fd, events, 2));
		ASSERT_EQ(0, tw_advance(fd, delays[i]));
		ASSERT_EQ(1, tw_read(fd, events, 2));
		ASSERT_EQ(i, events[0].id);
	}
}

/* P2: on a real clock, too, a deadline is rounded by less than one tick. */
TEST(p2_rounded_by_less_than_a_tick)
{
	static const __u64 delays[] = {
		0, 1, TW_MS, TW_SEC, 30 * TW_SEC, 48 * 3600 * TW_SEC,
	};
	int fd = TW_OPEN(O_RDWR);
	const __u64 tick = 7 * TW_MS;
	struct timewheel_token token;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, tick,
			      ARRAY_SIZE(delays), 0, 0));
	for (size_t i = 1; i < ARRAY_SIZE(delays); i++) {
		__u64 before = tw_now(CLOCK_MONOTONIC);

		ASSERT_EQ(0, tw_register(fd, i, delays[i], 0, NULL));
		ASSERT_EQ(0, tw_get(fd, 0, i, &token));
		EXPECT_GE(token.deadline, before + delays[i]);
		EXPECT_LT(token.deadline,
			  tw_now(CLOCK_MONOTONIC) + delays[i] + tick);
		EXPECT_EQ(0ULL, token.deadline % tick);
	}
}

/* P3: each registration has exactly one end. */
TEST(p3_one_end)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	struct timewheel_info info;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(3UL, tw_register_many(fd, 1, 3, 0, 10 * TW_SEC));

	/* No event follows a cancel, and a second cancel fails. */
	ASSERT_EQ(0, tw_cancel(fd, 0, 1));
	EXPECT_EQ(-1, tw_cancel(fd, 0, 1));
	EXPECT_EQ(ENOENT, errno);

	/* No event follows the cancel of a token that was due, either. */
	ASSERT_EQ(0, tw_advance(fd, 10));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, 2));

	/* A token is delivered once, and then a cancel fails. */
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(3ULL, event.id);
	EXPECT_EQ(-1, tw_cancel(fd, 0, 3));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(-1, tw_cancel(fd, TIMEWHEEL_OPF_BY_HANDLE, event.handle));
	EXPECT_EQ(ESTALE, errno);

	ASSERT_EQ(0, tw_advance(fd, 1000));
	EXPECT_EQ(0, tw_read_all(fd));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.pending);
	EXPECT_EQ(3ULL, info.registered);
	EXPECT_EQ(2ULL, info.cancelled);
	EXPECT_EQ(1ULL, info.delivered);
}

/* The results of two threads that race for the same tokens. */
struct race {
	int fd;
	__u32 tokens;
	__u64 timeout;
	__u8 *delivered;	/* number of events, by id */
	__u8 *cancelled;
	__u64 *touched;		/* when the last successful touch began, by id */
	__u64 *deadline;	/* deadline of the event, by id */
	bool stop;
};

static bool race_alloc(struct race *race)
{
	race->delivered = calloc(race->tokens, 1);
	race->cancelled = calloc(race->tokens, 1);
	race->touched = calloc(race->tokens, sizeof(__u64));
	race->deadline = calloc(race->tokens, sizeof(__u64));
	return race->delivered && race->cancelled && race->touched &&
	       race->deadline;
}

/* Reads and polls in turn until the test sets @stop and no token is due any more. */
static void *race_reader(void *arg)
{
	struct race *race = arg;
	struct timewheel_event events[16];

	for (;;) {
		bool stop = __atomic_load_n(&race->stop, __ATOMIC_ACQUIRE);
		struct pollfd p = { .fd = race->fd, .events = POLLIN };
		int got = tw_read(race->fd, events, 16);

		for (int i = 0; i < got; i++) {
			if (events[i].id >= race->tokens)
				return "foreign id";
			race->delivered[events[i].id]++;
			race->deadline[events[i].id] = events[i].deadline;
			if (events[i].taken < events[i].deadline)
				return "early";
		}
		if (got < 0 && errno != EAGAIN)
			return "read failed";
		if (got < 0 && stop)
			return NULL;
		if (got < 0)
			poll(&p, 1, 20);
	}
}

static void *race_canceller(void *arg)
{
	struct race *race = arg;

	for (__u32 i = 0; i < race->tokens; i++) {
		__u32 id = i * 7919ULL % race->tokens;

		if (tw_cancel(race->fd, 0, id) >= 0)
			race->cancelled[id]++;
		else if (errno != ENOENT)
			return "cancel failed";
	}
	return NULL;
}

/* P3: readers and cancellers race. Each token is either read or cancelled. */
TEST(p3_cancel_or_event_never_both)
{
	unsigned long tokens = tw_scaled(20000);
	struct race race = { .tokens = tokens | 1 };
	pthread_t reader[2], canceller[2];
	struct timewheel_info info;
	unsigned int cancelled = 0;
	void *error;

	race.fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_TRUE(race_alloc(&race));
	ASSERT_EQ(0, tw_setup(race.fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS,
			      race.tokens, 0, 0));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&reader[i], NULL, race_reader,
					    &race));
	/* The tokens become due one after the other while the cancellers run. */
	for (__u32 id = 0; id < race.tokens; id++) {
		ASSERT_EQ(0, tw_register(race.fd, id,
					 (1 + id * 104729ULL % 100) * TW_MS, 0,
					 NULL));
		if (id == race.tokens / 4)
			for (int i = 0; i < 2; i++)
				ASSERT_EQ(0, pthread_create(&canceller[i], NULL,
							    race_canceller,
							    &race));
	}
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(canceller[i], &error));
		EXPECT_NULL(error);
	}
	tw_sleep_ms(110);
	__atomic_store_n(&race.stop, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(reader[i], &error));
		EXPECT_NULL(error);
	}
	for (__u32 id = 0; id < race.tokens; id++) {
		ASSERT_EQ(1, race.delivered[id] + race.cancelled[id]) {
			TH_LOG("token %u", id);
		}
		cancelled += race.cancelled[id];
	}
	ASSERT_EQ(0, tw_info(race.fd, &info));
	EXPECT_EQ(0ULL, info.pending);
	EXPECT_EQ(0ULL, info.taken);
	EXPECT_EQ(cancelled, info.cancelled);
	EXPECT_EQ(race.tokens, info.delivered + info.cancelled);
	TH_LOG("%u of %u cancelled", cancelled, race.tokens);
}

/* P4: touch, move and cancel win until a reader takes the token, and return WAS_DUE. */
TEST(p4_delivery_decides)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(4UL, tw_register_many(fd, 1, 4, 0, 10 * TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 12));
	ASSERT_TRUE(tw_readable(fd));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_touch(fd, 0, 1));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_move(fd, 0, 2, 5 * TW_SEC));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, 3));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(4ULL, event.id);
	EXPECT_EQ(-1, tw_touch(fd, 0, 4));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(0, tw_read_all(fd));

	ASSERT_EQ(0, tw_advance(fd, 17));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(2ULL, event.id);
	ASSERT_EQ(0, tw_advance(fd, 21));
	EXPECT_EQ(0, tw_read_all(fd));
	ASSERT_EQ(0, tw_advance(fd, 22));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(1ULL, event.id);
}

static void *race_toucher(void *arg)
{
	struct race *race = arg;

	for (int round = 0; round < 20; round++) {
		for (__u32 id = 0; id < race->tokens; id++) {
			__u64 now = tw_now(CLOCK_MONOTONIC);

			if (tw_touch(race->fd, 0, id) >= 0)
				race->touched[id] = now;
			else if (errno != ENOENT)
				return "touch failed";
		}
	}
	return NULL;
}

/*
 * P4: touches race with deadlines and a reader. A token is not delivered before its
 * whole timeout since its last successful touch has passed.
 */
TEST(p4_touch_keeps_for_the_whole_timeout)
{
	unsigned long tokens = tw_scaled(500);
	struct race race = { .tokens = tokens, .timeout = 5 * TW_MS };
	pthread_t reader, toucher;
	void *error;

	race.fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_TRUE(race_alloc(&race));
	ASSERT_EQ(0, tw_setup(race.fd, TIMEWHEEL_CLOCK_MONOTONIC, 7, TW_MS,
			      race.tokens, 0, 0));
	ASSERT_EQ(0, pthread_create(&reader, NULL, race_reader, &race));
	for (__u32 id = 0; id < race.tokens; id++)
		ASSERT_EQ(0, tw_register(race.fd, id, race.timeout, 0, NULL));
	ASSERT_EQ(0, pthread_create(&toucher, NULL, race_toucher, &race));
	ASSERT_EQ(0, pthread_join(toucher, &error));
	EXPECT_NULL(error);
	tw_sleep_ms(10);
	__atomic_store_n(&race.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(reader, &error));
	EXPECT_NULL(error);
	for (__u32 id = 0; id < race.tokens; id++) {
		ASSERT_EQ(1, race.delivered[id]);
		if (race.touched[id])
			ASSERT_GE(race.deadline[id],
				  race.touched[id] + race.timeout);
	}
}

/* Two threads meet before each round. The structure has their results. */
struct duel {
	_Atomic __u32 arrived;
	_Atomic int got;	/* result of the reader */
	__u32 rounds;
	int fd;
};

static void duel_meet(struct duel *duel, __u32 arrivals)
{
	duel->arrived++;
	while (duel->arrived < arrivals)
		sched_yield();
}

static void *duel_reader(void *arg)
{
	struct duel *duel = arg;
	struct timewheel_event event;

	for (__u32 round = 1; round <= duel->rounds; round++) {
		duel_meet(duel, 4 * round - 2);
		duel->got = tw_read(duel->fd, &event, 1);
		duel_meet(duel, 4 * round);
	}
	return NULL;
}

/*
 * The duel has its own timeout: 40,000 meetings of two threads take long on a busy
 * machine.
 */
FIXTURE(duel) {
	struct duel duel;
};

FIXTURE_SETUP(duel)
{
	self->duel = (struct duel) { .rounds = tw_scaled(20000), .fd = -1 };
}

FIXTURE_TEARDOWN(duel)
{
	close(self->duel.fd);
}

/*
 * P3, P4: a reader and a touch, move or cancel meet at a token that is due. In each
 * of many rounds exactly one of the two gets the token.
 */
TEST_F_TIMEOUT(duel, p4_one_winner, 280)
{
	struct duel *duel = &self->duel;
	unsigned int won = 0;
	pthread_t reader;

	duel->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_manual(duel->fd, 31, 1, 0));
	ASSERT_EQ(0, pthread_create(&reader, NULL, duel_reader, duel));
	for (__u32 round = 1; round <= duel->rounds; round++) {
		int ret;

		ret = tw_register(duel->fd, 7, TW_SEC, 0, NULL);
		ASSERT_TRUE(!ret || errno == EEXIST);
		ASSERT_EQ(0, tw_advance(duel->fd, round));
		duel_meet(duel, 4 * round - 2);
		/* The delay varies, because neither side shall always be the faster. */
		for (__u32 spin = 0; spin < round * 7 % 512; spin++)
			__asm__ volatile("" ::: "memory");
		switch (round % 4) {
		case 0:
			ret = tw_move(duel->fd, 0, 7, TW_SEC);
			break;
		case 1:
			ret = tw_cancel(duel->fd, 0, 7);
			break;
		default:
			ret = tw_touch(duel->fd, 0, 7);
			break;
		}
		if (ret < 0)
			ret = -errno;
		ASSERT_EQ(ret < 0 ? -ENOENT : TIMEWHEEL_RES_WAS_DUE, ret);
		duel_meet(duel, 4 * round);
		ASSERT_EQ(ret < 0 ? 1 : -1, duel->got) {
			TH_LOG("round %u: %d, %d read", round, ret, duel->got);
		}
		won += ret >= 0;
	}
	ASSERT_EQ(0, pthread_join(reader, NULL));
	TH_LOG("the reader won %u of %u", duel->rounds - won, duel->rounds);
}

/* P5: no token is dropped, however many tokens become due and are not read. */
TEST(p5_no_queue_overflow)
{
	unsigned long tokens = tw_scaled(100000), n;
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info before, after;
	__u8 *seen = calloc(tokens, 1);

	ASSERT_EQ(0, tw_setup_manual(fd, 31, tokens, 0));
	for (n = 0; n < tokens; n += 100)
		ASSERT_EQ(n + 100 > tokens ? tokens - n : 100UL,
			  tw_register_many(fd, n, n + 100 > tokens ?
					   tokens - n : 100, 0,
					   (1 + n % 977) * TW_SEC));
	/* A worker may still be about to double the id table. */
	do {
		ASSERT_EQ(0, tw_info(fd, &after));
		tw_sleep_ms(100);
		ASSERT_EQ(0, tw_info(fd, &before));
	} while (after.bytes != before.bytes);
	ASSERT_EQ(0, tw_advance(fd, 5000));
	ASSERT_TRUE(tw_readable(fd));
	ASSERT_EQ(0, tw_info(fd, &after));
	/* A token is its own event: its expiration took no memory. */
	EXPECT_LE(after.bytes, before.bytes);
	EXPECT_EQ(tokens, after.pending);

	for (n = 0; n < tokens;) {
		struct timewheel_event events[100];
		int got = tw_read(fd, events, 100);

		ASSERT_GT(got, 0);
		for (int i = 0; i < got; i++) {
			ASSERT_LT(events[i].id, tokens);
			ASSERT_EQ(0, seen[events[i].id]);
			seen[events[i].id] = 1;
		}
		n += got;
	}
	EXPECT_EQ(0, tw_read_all(fd));
}

/* P5: reads into memory that cannot be written lose nothing. */
TEST(p5_faults_lose_nothing)
{
	enum { TOKENS = 300 };
	const size_t page = sysconf(_SC_PAGESIZE);
	const size_t event_size = sizeof(struct timewheel_event);
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event *events;
	int seen[TOKENS] = {}, n = 0, got;
	struct timewheel_info info;
	char *map;

	NEEDS_KERNEL("EFAULT");
	map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(0, mprotect(map + page, page, PROT_NONE));
	ASSERT_EQ(0, tw_setup_manual(fd, 31, TOKENS, 0));
	for (int i = 0; i < TOKENS; i++)
		ASSERT_EQ(0, tw_register(fd, i, (1 + i) * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(fd, TOKENS));

	/* No part of the buffer can be written. */
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(-1, read(fd, map + page, 100 * event_size));
		ASSERT_EQ(EFAULT, errno);
	}
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ((__u64)TOKENS, info.pending);
	EXPECT_EQ(0ULL, info.taken);
	EXPECT_EQ(0ULL, info.delivered);

	/*
	 * The buffer has room for a few events. The next event fits only in part or
	 * not at all.
	 */
	for (size_t room = 0; room <= 10 * event_size; room += 8) {
		events = (void *)(map + page - room);
		got = read(fd, events, 20 * event_size);
		if (got < 0) {
			ASSERT_EQ(EFAULT, errno);
			continue;
		}
		ASSERT_EQ(0UL, got % event_size);
		ASSERT_LE((size_t)got, room);
		for (int i = 0; i < got / (int)event_size; i++, n++) {
			/* The events are still in order, and none overtakes another. */
			EXPECT_EQ((__u64)n, events[i].id);
			seen[events[i].id]++;
		}
		if (n > TOKENS / 2)
			break;
	}
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_GT(info.put_back, 0ULL);
	EXPECT_EQ((__u64)n, info.delivered);
	TH_LOG("%d read in part, %llu put back", n, info.put_back);

	/* A token that was put back can still be cancelled and touched. */
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, n));
	seen[n]++;
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_touch(fd, 0, n + 1));
	events = (void *)map;
	for (n++; (got = tw_read(fd, events, page / event_size)) > 0; n += got)
		for (int i = 0; i < got; i++)
			seen[events[i].id]++;
	ASSERT_EQ(TOKENS - 1, n);
	ASSERT_EQ(0, tw_advance(fd, 2 * TOKENS));
	ASSERT_EQ(1, tw_read(fd, events, 2));
	seen[events[0].id]++;
	for (int i = 0; i < TOKENS; i++)
		EXPECT_EQ(1, seen[i]);
}

/*
 * P6: the timer's callback touches no token. It runs once for 100,000 tokens of one
 * tick, and not again while they are being read.
 */
TEST(p6_one_callback_for_all)
{
	unsigned long tokens = tw_scaled(100000);
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timewheel_info info;
	__u64 due;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, 100 * TW_MS,
			      tokens, 0, 0));
	due = tw_now(CLOCK_MONOTONIC) + 5 * TW_SEC;
	ASSERT_EQ(tokens, tw_register_many(fd, 0, tokens, TIMEWHEEL_OPF_ABSOLUTE,
					   due));
	ASSERT_EQ(0, tw_info(fd, &info));
	if (info.now >= due)
		SKIP(return, "took more than 5 s to register");
	EXPECT_EQ(0ULL, info.callbacks);
	ASSERT_EQ(1, poll(&p, 1, -1));
	EXPECT_GE(tw_now(CLOCK_MONOTONIC), due);
	EXPECT_EQ(tokens, (unsigned long)tw_read_all(fd));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1ULL, info.callbacks);
}

/* P7: an empty wheel, or a wheel that became empty, has no interrupt. */
TEST(p7_empty_wheel_is_silent)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info info;
	__u64 callbacks;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, 1000, 0,
			      0));
	EXPECT_FALSE(tw_readable(fd));
	tw_sleep_ms(100);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.callbacks);
	EXPECT_EQ((__u64)TIMEWHEEL_NEVER, info.next);

	ASSERT_EQ(1000UL, tw_register_many(fd, 0, 1000, 0, TW_SEC));
	for (int i = 0; i < 1000; i++)
		ASSERT_EQ(0, tw_cancel(fd, 0, i));
	/* One interrupt has happened already if the cancels took more than a second. */
	ASSERT_EQ(0, tw_info(fd, &info));
	callbacks = info.callbacks;
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ((__u64)TIMEWHEEL_NEVER, info.next);
	tw_sleep_ms(1100);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(callbacks, info.callbacks);
}

/* P7: touched tokens in slots that are not due cause no interrupt. */
TEST(p7_touches_are_silent)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info info;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 3600, 10 * TW_MS,
			      100, 0, 0));
	ASSERT_EQ(100UL, tw_register_many(fd, 0, 100, 0, 30 * TW_SEC));
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 100; i++)
			ASSERT_EQ(0, tw_touch(fd, 0, i));
		tw_sleep_ms(15);
	}
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.callbacks);
	EXPECT_EQ(0ULL, info.refiled);
}

/*
 * P7: a lone token four levels away, in a ring of two slots, costs at most one
 * interrupt for each level while a reader waits for it.
 */
TEST(p7_one_interrupt_per_level)
{
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_event event;
	struct timewheel_info info;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 2, 100000, 10, 0,
			      0));
	/* The token is 8000 ticks away. The levels are 2, 64, 2048 and 65536 ticks long. */
	ASSERT_EQ(0, tw_register(fd, 7, 800 * TW_MS, 0, NULL));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_LE(event.deadline, event.taken);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_LE(info.callbacks, 4ULL);
	EXPECT_GE(info.callbacks, 1ULL);
	EXPECT_LE(info.refiled, 3ULL);
}

/* P7: while an alarm is pending and no program looks there is no other interrupt. */
TEST(p7_silent_while_nobody_looks)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info info;

	NEEDS_KERNEL("a timer goes off though nobody looks");
	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, 200, 0,
			      0));
	for (int i = 0; i < 200; i++)
		ASSERT_EQ(0, tw_register(fd, i, (i + 300) * TW_MS, 0, NULL));
	tw_sleep_ms(600);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1ULL, info.callbacks);
	EXPECT_EQ(200, tw_read_all(fd));
}

/*
 * P7: operations cause no interrupt as long as no program looks, even if the due
 * token is cancelled and another token is next, or more tokens are registered.
 */
TEST(p7_silent_until_somebody_looks)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info info;
	__u64 start = tw_now(CLOCK_MONOTONIC);

	NEEDS_KERNEL("a timer goes off though nobody looks");
	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, 200, 0,
			      0));
	/* Token 1 is due at once and sets the alarm. The timer of token 0 has to stop. */
	ASSERT_EQ(0, tw_register(fd, 0, 1500 * TW_MS, 0, NULL));
	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	ASSERT_EQ(0, tw_info(fd, &info));
	/* The test cannot tell anything if the machine was too slow. */
	ASSERT_GT(1400 * TW_MS, tw_now(CLOCK_MONOTONIC) - start);
	/* Token 1 is cancelled, the next token becomes due later, and no program looks. */
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, 1));
	for (int i = 2; i < 52; i++) {
		ASSERT_EQ(0, tw_register(fd, i, 5 * TW_MS, 0, NULL));
		tw_sleep_ms(10);
		ASSERT_EQ(0, tw_info(fd, &info));
		if (i % 2)
			ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, i));
	}
	tw_sleep_ms(1000);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.callbacks);
	EXPECT_EQ(26, tw_read_all(fd));
	/* After a look the next token sets the alarm again. */
	ASSERT_EQ(0, tw_register(fd, 1, 5 * TW_MS, 0, NULL));
	tw_sleep_ms(20);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1ULL, info.callbacks);
	EXPECT_EQ(1, tw_read_all(fd));
}

/* P8: a missed tick shifts nothing. Due tokens come, and later deadlines stay exact. */
TEST(p8_stall_shifts_nothing)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	__u64 last = 0;

	NEEDS_KERNEL("an fd is readable only while a token is due");
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 1000, 0));
	ASSERT_EQ(0, tw_register(fd, 5000, 5000 * TW_SEC, 0, NULL));
	for (__u64 d = 500; d; d--)
		ASSERT_EQ(0, tw_register(fd, d, d * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(fd, 4999));
	for (int i = 0; i < 500; i++) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ(event.id * TW_SEC, event.deadline);
		EXPECT_LE(last, event.deadline);
		last = event.deadline;
	}
	EXPECT_EQ(0, tw_read_all(fd));
	ASSERT_EQ(0, tw_advance(fd, 5000));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(5000ULL, event.id);

	/*
	 * When the hand goes back, due tokens are no longer due until the hand has
	 * returned.
	 */
	ASSERT_EQ(0, tw_register(fd, 1, 10 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(fd, 5010));
	ASSERT_TRUE(tw_readable(fd));
	ASSERT_EQ(0, tw_advance(fd, 5009));
	EXPECT_FALSE(tw_readable(fd));
	EXPECT_EQ(0, tw_read_all(fd));
	ASSERT_EQ(0, tw_advance(fd, 5010));
	EXPECT_EQ(1, tw_read_all(fd));
}

/*
 * P8: on a real clock, too, a reader that slept past the deadlines gets all tokens in
 * order.
 */
TEST(p8_late_reader_gets_all_in_order)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	__u64 last = 0;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 7, TW_MS, 200, 0,
			      0));
	for (int i = 0; i < 200; i++)
		ASSERT_EQ(0, tw_register(fd, i, (200 - i) * TW_MS, 0, NULL));
	tw_sleep_ms(250);
	for (int i = 0; i < 200; i++) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_LE(last, event.deadline);
		EXPECT_LE(event.deadline, event.taken);
		last = event.deadline;
	}
	EXPECT_EQ(0, tw_read_all(fd));
}

/* P9: a wheel takes max_tokens tokens, and then fails with ENOSPC until a token ends. */
TEST(p9_full_is_enospc)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info info;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 100, 0));
	ASSERT_EQ(100UL, tw_register_many(fd, 0, 100, 0, TW_SEC));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(-1, tw_register(fd, 1000, TW_SEC, 0, NULL));
		EXPECT_EQ(ENOSPC, errno);
		EXPECT_EQ(-1, tw_touch_or_register(fd, 1000, TW_SEC, 0));
		EXPECT_EQ(ENOSPC, errno);
	}
	/* The touch of a pending token needs no room. */
	EXPECT_EQ(0, tw_touch_or_register(fd, 50, TW_SEC, 0));
	EXPECT_EQ(-1, tw_cancel(fd, 0, 1000));
	EXPECT_EQ(ENOENT, errno);

	ASSERT_EQ(0, tw_cancel(fd, 0, 7));
	EXPECT_EQ(0, tw_register(fd, 1000, TW_SEC, 0, NULL));
	EXPECT_EQ(-1, tw_register(fd, 1001, TW_SEC, 0, NULL));
	EXPECT_EQ(ENOSPC, errno);
	ASSERT_EQ(0, tw_advance(fd, 1));
	EXPECT_EQ(100, tw_read_all(fd));
	EXPECT_EQ(100UL, tw_register_many(fd, 0, 100, 0, TW_SEC));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(100ULL, info.pending);
}

/* P9: a set-up with a value out of range fails, and a valid set-up works afterwards. */
TEST(p9_limits_of_set_up)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	int fd = TW_OPEN(O_RDWR);

	ASSERT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_CAPS, &caps));
	EXPECT_GE(caps.min_tick, 1ULL);
	const struct {
		__u32 slots;
		__u64 tick, max_tokens;
	} bad[] = {
		{ 0, TW_MS, 10 },
		{ caps.max_slots + 1, TW_MS, 10 },
		{ UINT32_MAX, TW_MS, 10 },
		{ 31, 0, 10 },
		{ 31, caps.min_tick - 1, 10 },
		{ 31, caps.max_tick + 1, 10 },
		{ 31, UINT64_MAX, 10 },
		{ 31, TW_MS, 0 },
		{ 31, TW_MS, caps.max_tokens + 1 },
		{ 31, TW_MS, UINT64_MAX },
	};

	for (__u32 clock = 0; clock <= TIMEWHEEL_CLOCK_MANUAL; clock++) {
		for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
			EXPECT_EQ(-1, tw_setup(fd, clock, bad[i].slots,
					       bad[i].tick, bad[i].max_tokens,
					       0, 0));
			EXPECT_EQ(EINVAL, errno) {
				TH_LOG("clock %u, line %zu", clock, i);
			}
		}
	}
	EXPECT_EQ(-1, tw_register(fd, 1, TW_SEC, 0, NULL));
	EXPECT_EQ(EBADFD, errno);
	EXPECT_EQ(0, tw_setup(fd, 0, caps.max_slots, TW_MS, caps.max_tokens, 0,
			      0));
}

/* P9: the memory of ended tokens is used again, and a turnover of tokens adds none. */
TEST(p9_memory_is_reused)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info info;
	__u64 bytes = 0;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 100000, 0));
	for (__u64 round = 1; round <= 50; round++) {
		ASSERT_EQ(1000UL, tw_register_many(fd, round * 1000, 1000, 0,
						   round % 7 * TW_SEC));
		ASSERT_EQ(0, tw_info(fd, &info));
		/*
		 * The limit is twice the bytes, because the table of ids grows and
		 * shrinks by halves.
		 */
		if (round == 5)
			bytes = info.bytes;
		if (round > 5)
			ASSERT_LE(info.bytes, 2 * bytes);
		for (__u64 i = 0; i < 500; i++)
			ASSERT_LE(0, tw_cancel(fd, 0, round * 1000 + 2 * i));
		ASSERT_EQ(0, tw_advance(fd, round * 10));
		ASSERT_EQ(500, tw_read_all(fd));
	}
}

/* P10: each open file holds the module, and nothing else holds it. */
TEST(p10_open_files_hold_the_module)
{
	long before = tw_refcnt();
	int fd = TW_OPEN(O_RDWR);
	int copy;

	NEEDS_KERNEL("open files hold a module");
	if (before < 0)
		SKIP(return, "the kernel shows no reference count");
	EXPECT_EQ(before + 1, tw_refcnt());
	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, 1001, 0,
			      0));
	ASSERT_EQ(1000UL, tw_register_many(fd, 0, 1000, 0, TW_MS));
	EXPECT_EQ(before + 1, tw_refcnt());
	copy = dup(fd);
	close(fd);
	EXPECT_EQ(before + 1, tw_refcnt());
	EXPECT_LE(0, tw_register(copy, 5000, TW_SEC, 0, NULL));
	close(copy);
	EXPECT_EQ(before, tw_refcnt());
}

TEST_HARNESS_MAIN
