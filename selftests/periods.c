// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program tests when each event of a periodic token is due, to the ns and without
 * drift, how missed periods are counted, and how periods go together with leases. All
 * tests but two use MANUAL wheels of 1 s ticks.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <sys/uio.h>

#include "tw_delivery.h"

#define ID		7
#define P		10ULL		/* the period of most tokens, in ticks */
#define LEASE		1000ULL		/* longer than most tests */
#define S64_LAST	0x7fffffffffffffffULL

FIXTURE(periods) {
	int fd;
};

static void _make(struct __test_metadata *_metadata, FIXTURE_DATA(periods) *self,
		  struct timewheel_setup setup)
{
	close(self->fd);
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_set_up(self->fd, tw_hold_all(setup)));
}

#define make(...)							\
	_make(_metadata, self,						\
	      TW_MANUAL(.flags = TIMEWHEEL_SETUP_PERIODS, __VA_ARGS__))

#pragma GCC diagnostic ignored "-Woverride-init"

FIXTURE_SETUP(periods)
{
	self->fd = -1;
	make();
}

FIXTURE_TEARDOWN(periods)
{
	close(self->fd);
}

static __u64 round_up(__u64 ns)
{
	return (ns + TW_SEC - 1) / TW_SEC * TW_SEC;
}

/*
 * Expects one event of token ID, which is due on tick @due and has @missed periods
 * missed.
 */
static struct timewheel_event
_expect_event(struct __test_metadata *_metadata, int fd, __u64 due,
	      __u32 missed, int line)
{
	struct timewheel_event event = {};

	EXPECT_TRUE(tw_readable(fd)) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(1, tw_read(fd, &event, 1)) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ((__u64)ID, event.id);
	EXPECT_EQ(due * TW_SEC, event.deadline) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(missed, event.missed) {
		TH_LOG("in line %d", line);
	}
	return event;
}

#define expect_event(due, missed)					\
	_expect_event(_metadata, self->fd, due, missed, __LINE__)

/* Expects that token ID has its next deadline on tick @due and has no event before. */
static void _expect_next(struct __test_metadata *_metadata, int fd, __u64 due,
			 int line)
{
	struct timewheel_info info;
	struct timewheel_token token;

	_tw_expect_nothing(_metadata, fd, line);
	ASSERT_EQ(0, tw_info(fd, &info));
	ASSERT_EQ(0, tw_get(fd, 0, ID, &token)) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(due * TW_SEC, token.deadline) {
		TH_LOG("in line %d", line);
	}
	EXPECT_GE(due * TW_SEC, info.next);
	ASSERT_EQ(0, tw_advance(fd, due - 1));
	_tw_expect_nothing(_metadata, fd, line);
	ASSERT_EQ(0, tw_advance(fd, info.hand));
}

#define expect_next(due)						\
	_expect_next(_metadata, self->fd, due, __LINE__)

/* Registers token ID, which is due on tick @first and then after each P ticks. */
static void _start(struct __test_metadata *_metadata, int fd, __u64 first,
		   __u32 flags)
{
	ASSERT_EQ(0, tw_register_periodic(fd, flags | TIMEWHEEL_OPF_ABSOLUTE, ID,
					  first * TW_SEC, P * TW_SEC));
}

#define start(first, flags)	_start(_metadata, self->fd, first, flags)

static int answer(int fd, __u32 code, __u32 delivery, __u64 time)
{
	return tw_ret(tw_answer(fd, code, 0, ID, delivery, time));
}

TEST_F(periods, again_and_again)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .id = ID, .cookie = 70,
		.time = 3 * TW_SEC, .period = P * TW_SEC,
	};
	struct timewheel_event event;
	struct timewheel_token token;

	ASSERT_EQ(0, tw_advance(self->fd, 2));
	ASSERT_EQ(0, tw_op(self->fd, &op));
	EXPECT_EQ(5 * TW_SEC, op.deadline);
	EXPECT_NE(0ULL, op.handle);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 5);
	for (__u64 n = 0; n < 100; n++) {
		expect_next(5 + n * P);
		ASSERT_EQ(0, tw_advance(self->fd, 5 + n * P));
		event = expect_event(5 + n * P, 0);
		EXPECT_EQ(op.handle, event.handle);
		EXPECT_EQ(70ULL, event.cookie);
		EXPECT_EQ(0U, event.delivery);
		EXPECT_EQ(0U, event.attempts);
		tw_expect_nothing(self->fd);
		tw_expect_figures(self->fd, .registered = 1, .pending = 1,
				  .delivered = n + 1);
	}
	ASSERT_EQ(0, tw_cancel(self->fd, TIMEWHEEL_OPF_BY_HANDLE, op.handle));
	tw_expect_figures(self->fd, .registered = 1, .cancelled = 1,
			  .delivered = 100);
	ASSERT_EQ(0, tw_advance(self->fd, 100000));
	tw_expect_nothing(self->fd);
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(self->fd, 0, ID, &token)));
	/* The id is free, for a periodic token or a plain token. */
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	expect_event(100000, 0);
	tw_expect_figures(self->fd, .registered = 2, .cancelled = 1,
			  .delivered = 101);
}

/* On a wheel with periods a token that has no period ends as usual. */
TEST_F(periods, beside_plain_tokens)
{
	struct timewheel_event events[16];

	start(5, 0);
	for (__u64 id = 100; id < 110; id++)
		ASSERT_EQ(0, tw_register(self->fd, id, (id - 99) * TW_SEC, 0,
					 NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 12));
	ASSERT_EQ(11, tw_read(self->fd, events, 16));
	for (int i = 1; i < 11; i++)
		EXPECT_LE(events[i - 1].deadline, events[i].deadline);
	tw_expect_figures(self->fd, .registered = 11, .pending = 1,
			  .delivered = 11);
	EXPECT_EQ(-ENOENT, tw_ret(tw_cancel(self->fd, 0, 100)));
	expect_next(15);
}

/*
 * Each deadline is the first deadline plus a multiple of the period, rounded up to a
 * tick. The rounding errors of several periods do not add up.
 */
TEST_F_TIMEOUT(periods, no_drift, 120)
{
	const struct {
		__u64 first, period;
	} cases[] = {
		{ 10 * TW_SEC, 1300000000 },
		{ 700000000, 1000000007 },
		{ 999999999, 1999999999 },
		{ 1, 1000000001 },
	};
	const __u64 n = tw_scaled(100000);

	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		struct timewheel_event event;
		__u64 rounds = c ? n / 20 + 1 : n;

		make();
		ASSERT_EQ(0, tw_register_periodic(self->fd, TIMEWHEEL_OPF_ABSOLUTE,
						  ID, cases[c].first,
						  cases[c].period));
		for (__u64 i = 0; i < rounds; i++) {
			__u64 due = cases[c].first + i * cases[c].period;

			due = round_up(due);
			ASSERT_EQ(0, tw_advance(self->fd, due / TW_SEC));
			ASSERT_EQ(1, tw_read(self->fd, &event, 1)) {
				TH_LOG("event %llu of case %zu", i, c);
			}
			ASSERT_EQ(due, event.deadline) {
				TH_LOG("event %llu of case %zu", i, c);
			}
			ASSERT_EQ(0U, event.missed);
		}
		tw_expect_figures(self->fd, .registered = 1, .pending = 1,
				  .delivered = rounds);
	}
}

/*
 * The hand stops often, but seldom on deadlines: no event is early or comes twice, and
 * a late read shifts nothing. Each period has an event, or counts as missed; the last
 * deadline that has passed has the event.
 */
TEST_F(periods, no_drift_when_read_late)
{
	static const struct {
		__u64 first, period;
	} cases[] = {
		{ 400000000, 1300000000 }, { TW_SEC, TW_SEC },
		{ 2 * TW_SEC, 2 * TW_SEC }, { 7654321098, 7654321098 },
		{ 60 * TW_SEC, 60 * TW_SEC },
	};

	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		const __u64 first = cases[c].first, period = cases[c].period;
		struct timewheel_event event;
		__u64 n = 0, delivered = 0;

		make();
		ASSERT_EQ(0, tw_register_periodic(self->fd, TIMEWHEEL_OPF_ABSOLUTE,
						  ID, first, period));
		for (__u64 hand = 0; hand < 3000; hand += 1 + hand % 7) {
			__u64 due = n;

			ASSERT_EQ(0, tw_advance(self->fd, hand));
			while (round_up(first + due * period) <= hand * TW_SEC)
				due++;
			if (due > n) {
				ASSERT_EQ(1, tw_read(self->fd, &event, 1));
				ASSERT_EQ(round_up(first + (due - 1) * period),
					  event.deadline);
				ASSERT_EQ(due - 1 - n, event.missed);
				n = due;
				delivered++;
			}
			ASSERT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, &event, 1)));
		}
		tw_expect_figures(self->fd, .registered = 1, .pending = 1,
				  .delivered = delivered, .missed = n - delivered);
	}
}

/* The kernel makes no loop over the missed periods, even if they are very many. */
TEST_F(periods, missed_for_years)
{
	const __u64 years = 100 * 365 * 86400ULL;
	struct timewheel_event event;

	ASSERT_EQ(0, tw_register_periodic(self->fd, TIMEWHEEL_OPF_ABSOLUTE, ID,
					  TW_SEC, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, years));
	expect_event(years, years - 1);
	expect_next(years + 1);
	/* The count exceeds the field of the event. INFO has the whole number. */
	ASSERT_EQ(0, tw_advance(self->fd, years + (1ULL << 32) + 10));
	expect_event(years + (1ULL << 32) + 10, ~0U);
	tw_expect_figures(self->fd, .registered = 1, .pending = 1,
			  .delivered = 2,
			  .missed = years - 1 + (1ULL << 32) + 9);
	make();
	ASSERT_EQ(0, tw_register_periodic(self->fd, TIMEWHEEL_OPF_ABSOLUTE, ID,
					  TW_SEC, TW_SEC + 1));
	ASSERT_EQ(0, tw_advance(self->fd, years));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_LE(event.taken - event.deadline, TW_SEC);
	EXPECT_LE(years - 5, event.missed);
}

/* A token with a lease is pending again only after its ACK: one event is out at a time. */
TEST_F(periods, one_event_is_out)
{
	make(.lease = LEASE * TW_SEC);
	start(P, 0);
	for (__u32 n = 1; n <= 20; n++) {
		__u64 due = n * P;

		ASSERT_EQ(0, tw_advance(self->fd, due + 2));
		EXPECT_EQ(n, expect_event(due, 0).delivery);
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
				.due = due + 2 + LEASE, .delivery = n,
				.attempts = 1);
		ASSERT_EQ(0, tw_advance(self->fd, due + P - 1));
		tw_expect_nothing(self->fd);
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, n, 0));
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING,
				.due = due + P, .delivery = n, .attempts = 0);
		tw_expect_figures(self->fd, .registered = 1, .pending = 1,
				  .acked = n, .delivered = n);
		EXPECT_EQ(-ESTALE, answer(self->fd, TIMEWHEEL_OP_ACK, n, 0));
		expect_next(due + P);
	}
	ASSERT_EQ(0, tw_cancel(self->fd, 0, ID));
	tw_expect_figures(self->fd, .registered = 1, .cancelled = 1,
			  .acked = 20, .delivered = 20);
}

/* The ACK comes in the middle of the period after the tenth deadline. */
TEST_F(periods, late_ack)
{
	make(.lease = LEASE * TW_SEC);
	start(P, 0);
	ASSERT_EQ(0, tw_advance(self->fd, P));
	expect_event(P, 0);
	ASSERT_EQ(0, tw_advance(self->fd, 10 * P + P / 2));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, 1, 0));
	ASSERT_TRUE(tw_readable(self->fd));
	/* The nine deadlines 2P to 10P have passed. The last of them has the event. */
	expect_event(10 * P, 8);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, 2, 0));
	expect_next(11 * P);
	tw_expect_figures(self->fd, .registered = 1, .pending = 1, .acked = 2,
			  .delivered = 2, .missed = 8);
}

/* An event whose lease is over comes again. After its ACK the next period has its event. */
TEST_F(periods, lease_over)
{
	make(.lease = 4 * TW_SEC);
	start(P, 0);
	ASSERT_EQ(0, tw_advance(self->fd, P));
	EXPECT_EQ(1U, expect_event(P, 0).delivery);
	ASSERT_EQ(0, tw_advance(self->fd, P + 4));
	EXPECT_EQ(2U, expect_event(P, 0).delivery);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = P + 8,
			.delivery = 2, .attempts = 2);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, 2, 0));
	expect_next(2 * P);
	/*
	 * The ACK comes in the period after the next one: one period has passed
	 * without an event.
	 */
	ASSERT_EQ(0, tw_advance(self->fd, 2 * P));
	EXPECT_EQ(3U, expect_event(2 * P, 0).delivery);
	for (__u32 n = 1; n <= 4; n++) {
		ASSERT_EQ(0, tw_advance(self->fd, 2 * P + n * 4));
		EXPECT_EQ(3 + n, expect_event(2 * P, 0).delivery);
	}
	ASSERT_EQ(0, tw_advance(self->fd, 4 * P - 1));
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, 7, 0));
	expect_event(3 * P, 0);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, 8, 0));
	expect_next(4 * P);
	tw_expect_figures(self->fd, .registered = 1, .pending = 1, .acked = 3,
			  .delivered = 8, .lapsed = 5);
}

/* The attempts of each period's event are counted from 1. */
TEST_F(periods, attempts)
{
	make(.lease = LEASE * TW_SEC);
	start(P, 0);
	for (__u32 round = 0; round < 3; round++) {
		__u64 due = (round + 1) * P;

		ASSERT_EQ(0, tw_advance(self->fd, due));
		EXPECT_EQ(1U, expect_event(due, 0).attempts);
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, round * 3 + 1,
				    TW_SEC));
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING,
				.due = due + 1, .delivery = round * 3 + 1,
				.attempts = 1);
		ASSERT_EQ(0, tw_advance(self->fd, due + 1));
		EXPECT_EQ(2U, expect_event(due, 0).attempts);
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, round * 3 + 2,
				    0));
		EXPECT_EQ(3U, expect_event(due, 0).attempts);
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, round * 3 + 3,
				    0));
		expect_next(due + P);
	}
	tw_expect_figures(self->fd, .registered = 1, .pending = 1, .acked = 3,
			  .nacked = 6, .delivered = 9);

	/* The attempts are counted without a limit, however many periods pass meanwhile. */
	for (__u32 n = 1; n <= 100; n++) {
		ASSERT_EQ(0, tw_advance(self->fd, (3 + n) * P));
		EXPECT_EQ(n, expect_event(4 * P, 0).attempts);
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, 9 + n, 0));
	}
	/* A move begins the count of the attempts anew. */
	ASSERT_LE(0, tw_move(self->fd, 0, ID, TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING,
			.due = 103 * P + 1, .delivery = 109);
	ASSERT_EQ(0, tw_advance(self->fd, 103 * P + 1));
	EXPECT_EQ(1U, expect_event(103 * P + 1, 0).attempts);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_DELETE, 0, 0));
	EXPECT_EQ(-ENOENT, answer(self->fd, TIMEWHEEL_OP_ACK, 110, 0));
}

/* A token that was moved is periodic from its new deadline on. */
TEST_F(periods, moved)
{
	for (int lease = 0; lease < 2; lease++) {
		make(.lease = lease * LEASE * TW_SEC);
		start(P, 0);
		ASSERT_EQ(0, tw_move(self->fd, TIMEWHEEL_OPF_ABSOLUTE, ID,
				     33 * TW_SEC - TW_SEC / 4));
		expect_next(33);
		for (__u32 n = 0; n < 5; n++) {
			ASSERT_EQ(0, tw_advance(self->fd, 33 + n * P));
			expect_event(33 + n * P, 0);
			if (lease)
				ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK,
						    n + 1, 0));
		}
		expect_next(33 + 5 * P);
		/* This move is to a nearer deadline, by a delay. */
		ASSERT_EQ(0, tw_move(self->fd, 0, ID, 2 * TW_SEC));
		expect_next(75);
		ASSERT_EQ(0, tw_advance(self->fd, 75));
		expect_event(75, 0);
		if (lease)
			ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, 6, 0));
		expect_next(75 + P);
		/* Periods missed before the move are not counted later. */
		ASSERT_EQ(0, tw_advance(self->fd, 75 + 7 * P));
		ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_move(self->fd, 0, ID,
							 TW_SEC));
		ASSERT_EQ(0, tw_advance(self->fd, 76 + 7 * P));
		expect_event(76 + 7 * P, 0);
		/* The token has no timeout, and a move gives it none. */
		EXPECT_GT(0, tw_touch(self->fd, 0, ID));
	}
}

static __u64 base_of(struct __test_metadata *_metadata, int fd)
{
	struct timewheel_token token;

	ASSERT_EQ(0, tw_get(fd, 0, ID, &token));
	return token.base;
}

/* A move begins new periods at exactly its time, not at the tick of its time. */
TEST_F(periods, moved_to_the_ns)
{
	const __u64 to = 33 * TW_SEC - 3 * TW_SEC / 4, period = 1300000000;

	make(.lease = LEASE * TW_SEC);
	ASSERT_EQ(0, tw_register_periodic(self->fd, TIMEWHEEL_OPF_ABSOLUTE, ID,
					  TW_SEC, period));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	expect_event(1, 0);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, 1, 0));
	ASSERT_EQ(0, tw_move(self->fd, TIMEWHEEL_OPF_ABSOLUTE, ID, to));
	EXPECT_EQ(to, base_of(_metadata, self->fd));
	for (__u64 n = 0; n < 20; n++) {
		const __u64 due = round_up(to + n * period) / TW_SEC;

		expect_next(due);
		ASSERT_EQ(0, tw_advance(self->fd, due));
		expect_event(due, 0);
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, n + 2, 0));
	}
	/* Periods before the tick of a move into the past do not count as missed. */
	ASSERT_EQ(0, tw_advance(self->fd, 100));
	ASSERT_LE(0, tw_move(self->fd, TIMEWHEEL_OPF_ABSOLUTE, ID, to));
	EXPECT_EQ(100 * TW_SEC, base_of(_metadata, self->fd));
	expect_event(100, 0);
}

/* A move begins new periods: earlier events and missed periods no longer count. */
TEST_F(periods, moved_after_a_nack)
{
	make(.lease = LEASE * TW_SEC);
	start(P, 0);
	ASSERT_EQ(0, tw_advance(self->fd, 3 * P));
	expect_event(3 * P, 2);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, 1, TW_SEC));
	ASSERT_EQ(0, tw_move(self->fd, TIMEWHEEL_OPF_ABSOLUTE, ID, 50 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 50,
			.delivery = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 50 + 4 * P));
	expect_event(50 + 4 * P, 4);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, 2, 0));
	EXPECT_EQ(2U, expect_event(50 + 4 * P, 4).attempts);
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .moved = 1,
			  .delivered = 3, .nacked = 2, .missed = 6);
}

/* A poll before the move does not make the missed periods count. */
TEST_F(periods, moved_after_a_poll)
{
	start(P, 0);
	ASSERT_EQ(0, tw_advance(self->fd, 3 * P));
	EXPECT_TRUE(tw_readable(self->fd));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_move(self->fd, 0, ID, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 3 * P + 1));
	expect_event(3 * P + 1, 0);
}

/*
 * A periodic token cannot be touched. A move of it takes no timeout, and max_word_ticks
 * does not limit the move.
 */
TEST_F(periods, moved_without_a_timeout)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_MOVE, .id = ID, .time = 5 * TW_SEC,
		.timeout = TW_SEC,
	};

	make(.flags = TIMEWHEEL_SETUP_PERIODS | TIMEWHEEL_SETUP_TOUCH_WORDS);
	start(P, 0);
	EXPECT_EQ(-EINVAL, tw_ret(tw_op(self->fd, &op)));
	op.flags = TIMEWHEEL_OPF_ABSOLUTE;
	EXPECT_EQ(-EINVAL, tw_ret(tw_op(self->fd, &op)));
	expect_next(P);
	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_CAPS, &caps));
	op.flags = 0;
	op.timeout = 0;
	op.time = (caps.max_word_ticks + 1) * TW_SEC;
	EXPECT_EQ(0, tw_ret(tw_op(self->fd, &op)));
	EXPECT_EQ(op.time, op.deadline);
	expect_next(caps.max_word_ticks + 1);
}

/* The token ends in each of its states. */
TEST_F(periods, ended)
{
	make(.lease = LEASE * TW_SEC);
	start(P, 0);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_DELETE, 0, 0));
	start(P, 0);
	ASSERT_EQ(0, tw_advance(self->fd, P));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, 0, ID));
	tw_expect_nothing(self->fd);

	start(P, 0);
	expect_event(P, 0);
	EXPECT_EQ(-ENOENT, tw_ret(tw_cancel(self->fd, 0, ID)));
	EXPECT_EQ(-ENOENT, tw_ret(tw_move(self->fd, 0, ID, TW_SEC)));
	EXPECT_EQ(-EEXIST, tw_ret(tw_register_periodic(self->fd, 0, ID, 0,
						       TW_SEC)));
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_DELETE, 0, 0));
	EXPECT_EQ(-ENOENT, answer(self->fd, TIMEWHEEL_OP_ACK, 1, 0));

	tw_expect_figures(self->fd, .registered = 3, .deleted = 2,
			  .cancelled = 1, .delivered = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 1000));
	tw_expect_nothing(self->fd);
}

/*
 * Expects that a registration with the given values fails. Without them it would be
 * valid.
 */
#define expect_error(expected, ...)					\
	tw_expect_error(self->fd, ID, expected,				\
			.code = TIMEWHEEL_OP_REGISTER, .id = 1,		\
			.time = TW_SEC, .period = TW_SEC, __VA_ARGS__)

TEST_F(periods, errors)
{
	const __u64 last = S64_LAST / TW_SEC * TW_SEC;
	__u64 handle;

	ASSERT_EQ(0, tw_register(self->fd, ID, 100 * TW_SEC, 0, &handle));
	expect_error(-EINVAL, .period = 1);
	expect_error(-EINVAL, .period = TW_SEC - 1);
	expect_error(-ERANGE, .period = S64_LAST + 1);
	expect_error(-ERANGE, .period = ~0ULL);
	expect_error(-EINVAL, .flags = TIMEWHEEL_OPF_BY_HANDLE, .handle = handle);
	expect_error(-EINVAL, .flags = 4);
	expect_error(-EINVAL, .flags = 8);
	expect_error(-EINVAL, .delivery = 1);
	expect_error(-EINVAL, .reserved = 1);
	/* A periodic token cannot be touched, and therefore has no timeout. */
	expect_error(-EINVAL, .timeout = 1);
	expect_error(-EINVAL, .timeout = TW_SEC);
	expect_error(-EINVAL, .timeout = ~0ULL);
	expect_error(-EINVAL, .flags = TIMEWHEEL_OPF_ABSOLUTE,
		     .timeout = TW_SEC);
	expect_error(-EEXIST, .id = ID);
	expect_error(-ERANGE, .time = last + 1);
	expect_error(-ERANGE, .flags = TIMEWHEEL_OPF_ABSOLUTE, .time = last + 1);
	expect_error(-ERANGE, .flags = TIMEWHEEL_OPF_ABSOLUTE, .time = ~0ULL);
	/* A token that has no timeout cannot be touched. */
	ASSERT_EQ(0, tw_cancel(self->fd, 0, ID));
	start(P, 0);
	expect_error(-EINVAL, .code = TIMEWHEEL_OP_TOUCH, .id = ID,
		     .period = 0);
	expect_error(-EINVAL, .code = TIMEWHEEL_OP_TOUCH_OR_REGISTER, .id = ID,
		     .period = 0);
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch(self->fd, 0, ID)));
	expect_next(P);

	/* The shortest and the longest period and the last deadline are valid. */
	EXPECT_EQ(0, tw_register_periodic(self->fd, 0, 1, 0, TW_SEC));
	EXPECT_EQ(0, tw_register_periodic(self->fd, 0, 2, 0, S64_LAST));
	EXPECT_EQ(0, tw_register_periodic(self->fd, TIMEWHEEL_OPF_ABSOLUTE, 3, last,
					  TW_SEC));

	make(.flags = 0);
	ASSERT_EQ(0, tw_register(self->fd, ID, 100 * TW_SEC, 0, NULL));
	expect_error(-EINVAL);
	make(.flags = 0, .lease = LEASE * TW_SEC);
	ASSERT_EQ(0, tw_register(self->fd, ID, 100 * TW_SEC, 0, NULL));
	expect_error(-EINVAL);
	make(.max_tokens = 1);
	start(P, 0);
	expect_error(-ENOSPC);
	make(.flags = TIMEWHEEL_SETUP_PERIODS | TIMEWHEEL_SETUP_NO_COOKIES);
	start(P, 0);
	expect_error(-EINVAL, .cookie = 1);
}

/* An event that a read could not copy comes again as it was, with its missed periods. */
TEST_F(periods, faulting_reads)
{
	const struct iovec nowhere = { (void *)8, 10 * sizeof(struct timewheel_event) };

	NEEDS_KERNEL("EFAULT");
	start(P, 0);
	/* The event is for the fourth period: the three before it are missed. */
	ASSERT_EQ(0, tw_advance(self->fd, 4 * P));
	for (int i = 0; i < 5; i++)
		ASSERT_EQ(-EFAULT, tw_ret(readv(self->fd, &nowhere, 1)));
	expect_event(4 * P, 3);
	ASSERT_EQ(-EAGAIN, tw_ret(readv(self->fd, &nowhere, 1)));
	expect_next(5 * P);
}

/* A token whose next deadline is beyond the last tick does not come early or at once. */
TEST_F(periods, end_of_time)
{
	const __u64 last = S64_LAST / TW_SEC;
	struct timewheel_event event;

	make(.start = last - 100);
	ASSERT_EQ(0, tw_register_periodic(self->fd, 0, ID, TW_SEC, S64_LAST));
	ASSERT_EQ(0, tw_register_periodic(self->fd, 0, 1, TW_SEC, 60 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, last - 99));
	ASSERT_EQ(2, tw_read(self->fd, (struct timewheel_event[4]) {}, 4));
	ASSERT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, &event, 1)));
	ASSERT_EQ(0, tw_advance(self->fd, last - 39));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(1ULL, event.id);
	ASSERT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, &event, 1)));
	ASSERT_EQ(0, tw_advance(self->fd, last - 1));
	ASSERT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, &event, 1)));
}

/*
 * A token whose time has passed within the current tick is due at once. Its periods
 * are counted from that time, and none of them comes early.
 */
TEST_F(periods, first_in_the_current_tick)
{
	for (__u32 clock = 0; clock < TIMEWHEEL_CLOCK_MANUAL; clock++) {
		struct timewheel_event event;
		struct timewheel_info info;
		__u64 begin, first;

		/* The loop begins again if a tick ends before the token is read. */
		do {
			make(.clock = clock);
			ASSERT_EQ(0, tw_info(self->fd, &info));
			begin = info.hand * TW_SEC;
			first = begin + TW_SEC / 2;
			while (info.now < first) {
				tw_sleep_ms(1);
				ASSERT_EQ(0, tw_info(self->fd, &info));
			}
			ASSERT_EQ(0, tw_register_periodic(self->fd,
							  TIMEWHEEL_OPF_ABSOLUTE,
							  ID, first, P * TW_SEC));
			EXPECT_EQ(first, base_of(_metadata, self->fd));
			ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		} while (event.taken / TW_SEC * TW_SEC != begin);
		EXPECT_EQ(begin, event.deadline);
		EXPECT_EQ(0U, event.missed);
		EXPECT_EQ(first + P * TW_SEC, base_of(_metadata, self->fd));
		ASSERT_EQ(0, tw_move(self->fd, TIMEWHEEL_OPF_ABSOLUTE, ID, first));
		EXPECT_LE(first, base_of(_metadata, self->fd));
	}
}

/*
 * On clocks that run by themselves no event is early, and each has the deadline of
 * its period.
 */
TEST_F(periods, real_clock)
{
	for (__u32 clock = 0; clock < TIMEWHEEL_CLOCK_MANUAL; clock++) {
		const __u64 period = 7 * TW_MS + 300000;
		struct timewheel_event event;
		struct timewheel_token token;
		__u64 first, n = 0;

		make(.clock = clock, .tick = TW_MS);
		ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
		ASSERT_EQ(0, tw_register_periodic(self->fd, 0, ID, 5 * TW_MS,
						  period));
		ASSERT_EQ(0, tw_get(self->fd, 0, ID, &token));
		first = token.deadline;
		for (int i = 0; i < 30; i++) {
			ASSERT_EQ(1, tw_read(self->fd, &event, 1));
			EXPECT_LE(event.deadline, event.taken);
			/*
			 * Each deadline is rounded up to a tick, independently of the
			 * deadlines before.
			 */
			n += event.missed;
			EXPECT_LE(first + n * period, event.deadline + TW_MS);
			EXPECT_GE(first + n * period + TW_MS, event.deadline);
			n++;
		}
		ASSERT_EQ(0, tw_cancel(self->fd, 0, ID) & ~TIMEWHEEL_RES_WAS_DUE);
	}
}

TEST_HARNESS_MAIN
