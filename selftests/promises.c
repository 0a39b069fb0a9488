// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program tests promises that belong to no single operation: P1 and P2 on each
 * clock, and P5 to P9 for the wheel as a whole. On real clocks the tests assert only
 * the order of events and that no event is early: a slow machine fails no test.
 */
#include "tw_delivery.h"

/*
 * P1, P2: no token comes before its deadline or the requested time, on any clock, and
 * its deadline is rounded by less than one tick.
 */
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
		struct timewheel_token token;
		__u64 wish[TOKENS];

		ASSERT_EQ(0, tw_setup(fd, clocks[c].clock, 31, TW_MS,
				      TOKENS + 1, 0, 0));
		for (int i = 0; i < TOKENS; i++) {
			__u64 delay = i * 997 % 300 * TW_MS + i * 4999;
			/* This delay is of 1 ns up to more than 48 hours. */
			__u64 far = i * i * 5 * TW_SEC + 1;

			wish[i] = tw_now(clocks[c].id) + delay;
			ASSERT_EQ(0, tw_register(fd, i, delay, 0, NULL));
			ASSERT_EQ(0, tw_register(fd, TOKENS, far, 0, NULL));
			ASSERT_EQ(0, tw_get(fd, 0, TOKENS, &token));
			EXPECT_LE(wish[i] - delay + far, token.deadline);
			EXPECT_GT(tw_now(clocks[c].id) + far + TW_MS,
				  token.deadline);
			ASSERT_LE(0, tw_cancel(fd, 0, TOKENS));
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
	tw_expect_nothing(fd);
	ASSERT_EQ(0, tw_advance(fd, 5010));
	EXPECT_EQ(1, tw_read_all(fd));
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

TEST_HARNESS_MAIN
