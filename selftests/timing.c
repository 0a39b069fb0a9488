// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program tests on which tick tokens expire. The hand of MANUAL wheels moves only
 * on command. A year therefore takes no time, and every result is exact.
 */
#include "tw_delivery.h"

/* Expects that exactly one token is readable: @id, with its deadline at tick @due. */
static void expect_one(struct __test_metadata *_metadata, int fd, __u64 id,
		       __u64 due)
{
	struct timewheel_event events[2];

	ASSERT_EQ(1, tw_read(fd, events, 2));
	ASSERT_EQ(id, events[0].id);
	ASSERT_EQ(due * TW_SEC, events[0].deadline);
	tw_expect_nothing(fd);
}

/* Advances to the tick before @due, and then to @due, where token @id alone expires. */
static void expect_at(struct __test_metadata *_metadata, int fd, __u64 id,
		      __u64 due)
{
	ASSERT_EQ(0, tw_advance(fd, due - 1));
	tw_expect_nothing(fd);
	ASSERT_EQ(0, tw_advance(fd, due));
	expect_one(_metadata, fd, id, due);
}

static int compare(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * Tokens 0..@n-1 are pending, and token i is due at tick @due[i]. Advances from @hand
 * to the tick before each deadline and to the deadline itself. No token may come
 * before its deadline, and each has to come at its deadline.
 */
static void expect_all(struct __test_metadata *_metadata, int fd, __u64 hand,
		       const __u64 *due, size_t n)
{
	__u64 *order = malloc(n * sizeof(*order));
	bool *ended = calloc(n, sizeof(*ended));
	struct timewheel_event events[64];

	memcpy(order, due, n * sizeof(*order));
	qsort(order, n, sizeof(*order), compare);
	for (size_t at = 0; at < n;) {
		__u64 tick = order[at];

		if (tick > hand) {
			ASSERT_EQ(0, tw_advance(fd, tick - 1));
			tw_expect_nothing(fd);
			ASSERT_EQ(0, tw_advance(fd, tick));
			hand = tick;
		}
		while (at < n && order[at] == tick) {
			int got = tw_read(fd, events, 64);

			ASSERT_GT(got, 0) {
				TH_LOG("nothing at tick %llu", tick);
			}
			for (int i = 0; i < got; i++, at++) {
				ASSERT_LT(at, n);
				ASSERT_EQ(tick, order[at]);
				ASSERT_LT(events[i].id, n);
				ASSERT_EQ(tick, due[events[i].id]);
				ASSERT_FALSE(ended[events[i].id]);
				ASSERT_EQ(tick * TW_SEC, events[i].deadline);
				ASSERT_EQ(hand * TW_SEC, events[i].taken);
				ended[events[i].id] = true;
			}
		}
		tw_expect_nothing(fd);
	}
	free(order);
	free(ended);
}

/*
 * Registers a token for each of the delays (in ticks) at @hand, checks the slot and
 * Cycle-Num of each token, and then that each expires at its own tick.
 */
static void check_delays(struct __test_metadata *_metadata, int fd,
			 __u32 slots, __u64 hand, const __u64 *delays, size_t n)
{
	__u64 *due = malloc(n * sizeof(*due));
	struct timewheel_token token;

	ASSERT_EQ(0, tw_setup_manual(fd, slots, n, hand));
	for (size_t i = 0; i < n; i++) {
		__u64 d = delays[i];

		due[i] = hand + d;
		ASSERT_EQ(0, tw_register(fd, i, d * TW_SEC, 0, NULL));
		ASSERT_EQ(0, tw_get(fd, 0, i, &token));
		ASSERT_EQ(due[i] * TW_SEC, token.deadline);
		ASSERT_EQ(d * TW_SEC, token.left);
		ASSERT_EQ(due[i] % slots, token.slot);
		ASSERT_EQ(d ? (d - 1) / slots : 0, token.cycle) {
			TH_LOG("%u slots, hand %llu, delay %llu", slots, hand, d);
		}
	}
	expect_all(_metadata, fd, hand, due, n);
	free(due);
}

/*
 * Appends the numbers from @center - 3 to @center + 3 that are not negative to the
 * delays.
 */
static void add_near(__u64 *delays, size_t *n, __u64 center)
{
	for (int off = -3; off <= 3; off++)
		if (off >= 0 || center >= (__u64)-off)
			delays[(*n)++] = center + off;
}

/* The published examples have their slots and Cycle-Nums, and expire in time. */
TEST(published_examples)
{
	static const struct {
		__u32 slots;
		__u64 hand, delay;
		__u32 slot;
		__u64 cycle;
	} example[] = {
		{ 3600, 1, 3610, 11, 1 },
		{ 3600, 1, 7219, 20, 2 },
		{ 60, 2, 147, 29, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(example); i++) {
		int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
		struct timewheel_token token;

		ASSERT_EQ(0, tw_setup_manual(fd, example[i].slots, 1,
					     example[i].hand));
		ASSERT_EQ(0, tw_register(fd, 7, example[i].delay * TW_SEC, 0,
					 NULL));
		ASSERT_EQ(0, tw_get(fd, 0, 7, &token));
		EXPECT_EQ(example[i].slot, token.slot);
		EXPECT_EQ(example[i].cycle, token.cycle);
		expect_at(_metadata, fd, 7, example[i].hand + example[i].delay);
		close(fd);
	}
}

/*
 * Checks the Cycle-Num of a token for the last of all ticks, registered at @hand. P9: a
 * deadline beyond the last tick fails with ERANGE and changes nothing.
 */
static void check_last_tick(struct __test_metadata *_metadata, __u32 slots,
			    __u64 hand)
{
	const __u64 last = TIMEWHEEL_MAX_TICK, tick = TW_MS / 10;
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	struct timewheel_token token;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, slots, tick, 2, 0,
			      hand));
	EXPECT_EQ(-ERANGE, tw_ret(tw_register_at(fd, 7, last * tick + 1, 0)));
	ASSERT_EQ(0, tw_register_at(fd, 7, last * tick, 0));
	ASSERT_EQ(0, tw_get(fd, 0, 7, &token));
	ASSERT_EQ((last - hand - 1) / slots, token.cycle);
	ASSERT_EQ(last % slots, token.slot);
	ASSERT_EQ((last - hand) * tick, token.left);
	ASSERT_EQ(0, tw_advance(fd, last - 1));
	tw_expect_nothing(fd);
	ASSERT_EQ(0, tw_get(fd, 0, 7, &token));
	ASSERT_EQ(0ULL, token.cycle);
	EXPECT_EQ(-ERANGE, tw_ret(tw_register(fd, 8, tick + 1, 0, NULL)));
	EXPECT_EQ(-ERANGE, tw_ret(tw_advance(fd, last + 1)));
	tw_expect_nothing(fd);
	ASSERT_EQ(0, tw_advance(fd, last));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	ASSERT_EQ(last * tick, event.deadline);
	ASSERT_EQ(last * tick, event.taken);
	EXPECT_EQ(-ERANGE, tw_ret(tw_register(fd, 8, 1, 0, NULL)));
	close(fd);
}

TEST(largest_cycle_numbers)
{
	static const __u32 rings[] = { 1, 2, 60, 65536 };
	const __u64 last = TIMEWHEEL_MAX_TICK;

	for (size_t r = 0; r < ARRAY_SIZE(rings); r++) {
		__u64 hands[] = { 0, 1, rings[r], last - 2 * rings[r] - 1,
				  last - rings[r] - 1, last - rings[r],
				  last - 1 };

		for (size_t h = 0; h < ARRAY_SIZE(hands); h++)
			check_last_tick(_metadata, rings[r], hands[h]);
	}
}

/* P1, P2: delays within 3 ticks of whole laps are exact, from everywhere in the ring. */
TEST(near_whole_laps)
{
	static const __u32 rings[] = { 1, 2, 31, 60, 3600, 65536 };
	static const __u64 laps[] = {
		0, 1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 1000, 4096,
	};

	for (size_t r = 0; r < ARRAY_SIZE(rings); r++) {
		__u32 slots = rings[r];
		__u64 hands[] = { 0, 1, slots / 2, slots - 1, slots,
				  3 * slots + slots / 3, 1000003 };

		for (size_t h = 0; h < ARRAY_SIZE(hands); h++) {
			__u64 delays[ARRAY_SIZE(laps) * 7];
			int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
			size_t n = 0;

			for (size_t k = 0; k < ARRAY_SIZE(laps); k++)
				add_near(delays, &n, laps[k] * slots);
			check_delays(_metadata, fd, slots, hands[h], delays, n);
			close(fd);
		}
	}
}

/* A deadline is rounded up to a whole tick, never down. */
TEST(rounds_up)
{
	static const struct {
		__u64 delay, ticks;
	} round[] = {
		{ 0, 0 }, { 1, 1 }, { TW_SEC - 1, 1 }, { TW_SEC, 1 },
		{ TW_SEC + 1, 2 }, { 60 * TW_SEC, 60 }, { 60 * TW_SEC + 1, 61 },
	};
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_token token;

	ASSERT_EQ(0, tw_setup_manual(fd, 60, 100, 1000));
	for (size_t i = 0; i < ARRAY_SIZE(round); i++) {
		ASSERT_EQ(0, tw_register(fd, i, round[i].delay, 0, NULL));
		ASSERT_EQ(0, tw_get(fd, 0, i, &token));
		EXPECT_EQ((1000 + round[i].ticks) * TW_SEC, token.deadline);
		ASSERT_EQ(0, tw_register_at(fd, 100 + i,
					    1000 * TW_SEC + round[i].delay, 0));
		ASSERT_EQ(0, tw_get(fd, 0, 100 + i, &token));
		EXPECT_EQ((1000 + round[i].ticks) * TW_SEC, token.deadline);
	}
}

/* GET counts the rest of a delay from the present time, not from the last tick. */
TEST(time_left_is_exact)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, 10 * TW_SEC,
			      10, 0, 0));
	ASSERT_EQ(0, tw_register(fd, 1, 100 * TW_SEC, 0, NULL));
	for (int i = 0; i < 3; i++) {
		struct timewheel_token token;
		__u64 before, after;

		before = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(0, tw_get(fd, 0, 1, &token));
		after = tw_now(CLOCK_MONOTONIC);
		EXPECT_GE(token.deadline - before, token.left);
		EXPECT_LE(token.deadline - after, token.left);
		tw_sleep_ms(5);
	}
}

/* A token whose deadline has passed is due at once, on the tick of the hand. */
TEST(past_is_due_at_once)
{
	static const __u64 past[] = { 0, 1, 99 * TW_SEC, 100 * TW_SEC };
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 100));
	for (size_t i = 0; i < ARRAY_SIZE(past); i++) {
		ASSERT_EQ(0, tw_register_at(fd, i, past[i], 0));
		expect_one(_metadata, fd, i, 100);
	}
	ASSERT_EQ(0, tw_register(fd, 50, 0, 0, NULL));
	expect_one(_metadata, fd, 50, 100);

	ASSERT_EQ(0, tw_register(fd, 51, 500 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_move(fd, TIMEWHEEL_OPF_ABSOLUTE, 51, 3));
	expect_one(_metadata, fd, 51, 100);
}

/* The longest delay is exact. It is a whole number of ticks, from time 0 on. */
TEST(longest_delay)
{
	const __u64 tick = INT64_MAX / (337ULL * 92737 * 649657);
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;

	ASSERT_EQ(0, INT64_MAX % tick);
	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, 60, tick, 10, 0, 0));
	EXPECT_EQ(0, tw_register(fd, 1, INT64_MAX, 0, NULL));
	EXPECT_EQ(-1, tw_register(fd, 2, (__u64)INT64_MAX + 1, 0, NULL));
	EXPECT_EQ(ERANGE, errno);
	ASSERT_EQ(0, tw_advance(fd, INT64_MAX / tick - 1));
	tw_expect_nothing(fd);
	ASSERT_EQ(0, tw_advance(fd, INT64_MAX / tick));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(INT64_MAX, event.deadline);
}

/*
 * P4: a touch before, at and after the deadline wins, and tells whether the token was
 * due.
 */
TEST(touch_around_deadline)
{
	for (__u64 at = 29; at <= 31; at++) {
		int was_due = at >= 30 ? TIMEWHEEL_RES_WAS_DUE : 0;
		int fd = TW_OPEN(O_RDWR | O_NONBLOCK);

		ASSERT_EQ(0, tw_setup_manual(fd, 31, 4, 0));
		for (int looked = 0; looked < 2; looked++) {
			__u64 start = 1000 * looked, id = looked;

			ASSERT_EQ(0, tw_advance(fd, start));
			ASSERT_EQ(0, tw_register(fd, id, 30 * TW_SEC, 0, NULL));
			ASSERT_EQ(0, tw_advance(fd, start + at));
			/* The poll takes no token. */
			if (looked && (was_due || !tw_in_process()))
				ASSERT_EQ(was_due != 0, tw_readable(fd));
			ASSERT_EQ(was_due, tw_touch(fd, 0, id));
			ASSERT_EQ(0, tw_touch(fd, 0, id));
			tw_expect_nothing(fd);
			expect_at(_metadata, fd, id, start + at + 30);
		}
		close(fd);
	}
}

/* P4: moves and cancels win after the deadline, too. GET changes nothing. */
TEST(move_and_cancel_after_deadline)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_op op = { .code = TIMEWHEEL_OP_CANCEL, .id = 2 };
	struct timewheel_token token;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 4, 0));
	ASSERT_EQ(2UL, tw_register_many(fd, 1, 2, 0, 30 * TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 40));
	ASSERT_TRUE(tw_readable(fd));
	for (int twice = 0; twice < 2; twice++) {
		ASSERT_EQ(0, tw_get(fd, 0, 1, &token));
		ASSERT_EQ((__u32)TIMEWHEEL_STATE_PENDING, token.state);
		ASSERT_EQ(30 * TW_SEC, token.deadline);
		ASSERT_EQ(0ULL, token.left);
	}
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_move(fd, 0, 1, 5 * TW_SEC));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_op(fd, &op));
	ASSERT_EQ(30 * TW_SEC, op.deadline);
	tw_expect_nothing(fd);
	expect_at(_metadata, fd, 1, 45);
}

/* P3, P4: when a reader has taken a token, no operation wins over the delivery. */
TEST(taken_is_over)
{
	static const __u32 codes[] = {
		TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_CANCEL,
	};
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_token token;
	__u64 handle, newer;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 4, 0));
	ASSERT_EQ(0, tw_register(fd, 1, 30 * TW_SEC, 0, &handle));
	expect_at(_metadata, fd, 1, 30);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		EXPECT_EQ(-1, tw_key_op(fd, codes[i], 0, 1, TW_SEC));
		EXPECT_EQ(ENOENT, errno);
		EXPECT_EQ(-1, tw_key_op(fd, codes[i], TIMEWHEEL_OPF_BY_HANDLE,
					handle, TW_SEC));
		EXPECT_EQ(ESTALE, errno);
	}
	EXPECT_EQ(-1, tw_touch(fd, 0, 1));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(-1, tw_touch(fd, TIMEWHEEL_OPF_BY_HANDLE, handle));
	EXPECT_EQ(ESTALE, errno);
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(fd, 0, 1, &token)));
	EXPECT_EQ(-ESTALE, tw_ret(tw_get(fd, TIMEWHEEL_OPF_BY_HANDLE, handle,
					 &token)));

	/* The id is free again, and the old handle does not reach the new token. */
	ASSERT_EQ(0, tw_register(fd, 1, 30 * TW_SEC, 0, &newer));
	EXPECT_NE(handle, newer);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		EXPECT_EQ(-1, tw_key_op(fd, codes[i], TIMEWHEEL_OPF_BY_HANDLE,
					handle, TW_SEC));
		EXPECT_EQ(ESTALE, errno);
	}
	EXPECT_EQ(-ESTALE, tw_ret(tw_get(fd, TIMEWHEEL_OPF_BY_HANDLE, handle,
					 &token)));
	expect_at(_metadata, fd, 1, 60);
}

#define ABSOLUTE	TIMEWHEEL_OPF_ABSOLUTE
#define WAS_DUE		TIMEWHEEL_RES_WAS_DUE

/*
 * An operation on token 1, when the hand stands on tick @hand, and its result. @time
 * and @timeout are its arguments. Afterwards the token is due on tick @due and has a
 * timeout of @wait ticks, or is gone if @due is 0.
 */
struct step {
	__u64 hand;
	__u32 code, flags;
	__u64 time, timeout;
	int result;
	__u64 due, wait;
};

static const struct step steps[] = {
	/* The deadline is a time farther away than the timeout. */
	{ 0, TIMEWHEEL_OP_REGISTER, ABSOLUTE, 100, 30, 0, 100, 30 },
	{ 5, TIMEWHEEL_OP_TOUCH, 0, 0, 0, 0, 100, 30 },
	{ 80, TIMEWHEEL_OP_TOUCH, 0, 0, 0, 0, 110, 30 },
	{ 80, TIMEWHEEL_OP_CANCEL },
	/* The first delay is shorter than the timeout. */
	{ 80, TIMEWHEEL_OP_REGISTER, 0, 10, 40, 0, 90, 40 },
	{ 80, TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0, 1, 0, 0, 120, 40 },
	{ 80, TIMEWHEEL_OP_CANCEL },
	/* The token is due at once, until a touch adds its timeout. */
	{ 80, TIMEWHEEL_OP_REGISTER, 0, 0, 20, 0, 80, 20 },
	{ 80, TIMEWHEEL_OP_TOUCH, 0, 0, 0, WAS_DUE, 100, 20 },
	/* These moves set a timeout. */
	{ 80, TIMEWHEEL_OP_MOVE, 0, 10, 50, 0, 90, 50 },
	{ 80, TIMEWHEEL_OP_MOVE, ABSOLUTE, 150, 60, 0, 150, 60 },
	{ 80, TIMEWHEEL_OP_MOVE, 0, 0, 7, 0, 80, 7 },
	{ 80, TIMEWHEEL_OP_TOUCH, 0, 0, 0, WAS_DUE, 87, 7 },
	/*
	 * These moves set no timeout. A delay becomes the timeout, and a time or a delay
	 * of 0 leaves it.
	 */
	{ 80, TIMEWHEEL_OP_MOVE, 0, 25, 0, 0, 105, 25 },
	{ 80, TIMEWHEEL_OP_MOVE, ABSOLUTE, 170, 0, 0, 170, 25 },
	{ 80, TIMEWHEEL_OP_MOVE, 0, 0, 0, 0, 80, 25 },
	{ 80, TIMEWHEEL_OP_CANCEL, 0, 0, 0, WAS_DUE },
	/* The token has no timeout until a move sets the first. */
	{ 80, TIMEWHEEL_OP_REGISTER, ABSOLUTE, 200, 0, 0, 200, 0 },
	{ 80, TIMEWHEEL_OP_TOUCH, 0, 0, 0, -EINVAL, 200, 0 },
	{ 80, TIMEWHEEL_OP_MOVE, ABSOLUTE, 200, 130, 0, 200, 130 },
	{ 80, TIMEWHEEL_OP_TOUCH, 0, 0, 0, 0, 210, 130 },
	{ 80, TIMEWHEEL_OP_CANCEL },
	/* TOUCH_OR_REGISTER has only a delay, and does not read the timeout. */
	{ 80, TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0, 15, 99, TIMEWHEEL_RES_REGISTERED, 95, 15 },
	{ 85, TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0, 33, 99, 0, 100, 15 },
};

static void take_step(struct __test_metadata *_metadata, int fd,
		      const struct step *step)
{
	struct timewheel_op op = {
		.code = step->code, .flags = step->flags, .id = 1,
		.time = step->time * TW_SEC, .timeout = step->timeout * TW_SEC,
	};
	struct timewheel_token token = {};
	bool is_due;

	ASSERT_EQ(0, tw_advance(fd, step->hand));
	EXPECT_EQ(step->result, tw_ret(tw_op(fd, &op))) {
		TH_LOG("step %td", step - steps);
	}
	EXPECT_EQ(step->due ? 0 : -ENOENT, tw_ret(tw_get(fd, 0, 1, &token)));
	EXPECT_EQ(step->due * TW_SEC, token.deadline) {
		TH_LOG("step %td", step - steps);
	}
	EXPECT_EQ(step->wait * TW_SEC, token.timeout) {
		TH_LOG("step %td", step - steps);
	}
	is_due = step->due && step->due <= step->hand;
	EXPECT_TRUE(!is_due || tw_readable(fd));
	if (!is_due)
		tw_expect_nothing(fd);
}

/*
 * Deadline and timeout of a token are independent, on each kind of wheel. A
 * registration and a move set both, and a touch adds the timeout.
 */
TEST(deadline_and_timeout)
{
	static const struct {
		__u32 flags;
		__u64 lease;
	} kinds[] = {
		{ 0, 0 }, { TIMEWHEEL_SETUP_PERIODS, 0 }, { 0, 9 * TW_SEC },
		{ TIMEWHEEL_SETUP_TOUCH_WORDS, 0 },
		{ TIMEWHEEL_SETUP_TOUCH_WORDS | TIMEWHEEL_SETUP_PERIODS,
		  9 * TW_SEC },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		int fd = TW_OPEN_WHEEL(.flags = kinds[i].flags, .lease = kinds[i].lease);

		for (size_t k = 0; k < ARRAY_SIZE(steps); k++)
			take_step(_metadata, fd, &steps[k]);
		expect_at(_metadata, fd, 1, 100);
		close(fd);
	}
}

TEST_HARNESS_MAIN
