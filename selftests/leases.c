// SPDX-License-Identifier: GPL-2.0-only
/*
 * Leases: a delivery is held for its reader until it has answered, its lease is
 * over or its file is released. Each answer and each order from each state, each
 * error, and all figures after each step; on a MANUAL wheel of 1 s ticks, whose
 * leases are over when the test says so. Processes that die are at the end.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "tw_delivery.h"
#include "tw_fault.h"
#include "tw_named.h"
#include "tw_process.h"
#include "tw_sleeper.h"

#define SLOTS		60
#define LEASE		30	/* in ticks */
#define TOKENS		1000	/* that a wheel takes */
#define ID		7
#define ABSENT		8
#define S64_LAST	0x7fffffffffffffffULL

/* A wheel that two files have open; its hand stands on tick 0. */
FIXTURE(leases) {
	int device;
	int fd, other;
	char name[TIMEWHEEL_NAME_SIZE];
	bool created;
};

static void destroy(FIXTURE_DATA(leases) *self)
{
	close(self->fd);
	close(self->other);
	if (self->created)
		tw_destroy_named(self->device, self->name);
	self->created = false;
}

/* A new wheel in the place of the one before. */
static void _make(struct __test_metadata *_metadata, FIXTURE_DATA(leases) *self,
		  struct timewheel_setup setup)
{
	destroy(self);
	ASSERT_EQ(0, tw_create_named(self->device, self->name, setup));
	self->created = true;
	self->fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	self->other = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->other);
}

#define make(...)							\
	_make(_metadata, self, (struct timewheel_setup) {		\
		.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = SLOTS,	\
		.tick = TW_SEC, .max_tokens = TOKENS,			\
		.lease = LEASE * TW_SEC, __VA_ARGS__ })

#pragma GCC diagnostic ignored "-Woverride-init"

FIXTURE_SETUP(leases)
{
	self->device = TW_OPEN(O_RDWR);
	self->fd = -1;
	self->other = -1;
	snprintf(self->name, sizeof(self->name), "leases-%d", getpid());
	make();
}

/* However the test has ended. */
FIXTURE_TEARDOWN_PARENT(leases)
{
	int device = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

	if (self->created)
		EXPECT_EQ(0, tw_destroy_named(device, self->name));
	close(device);
}

static int answer(int fd, __u32 code, __u64 id, __u32 delivery, __u64 time)
{
	return tw_ret(tw_answer(fd, code, 0, id, delivery, time));
}

static int order(int fd, __u32 code, __u64 id)
{
	return tw_ret(tw_answer(fd, code, 0, id, 0, 0));
}

/* The one event that is due: delivery @delivery of token @id, due on tick @due. */
static struct timewheel_event
_expect_event(struct __test_metadata *_metadata, int fd, __u64 id, __u32 delivery,
	      __u64 due, int line)
{
	struct timewheel_event events[2];
	struct timewheel_info info;

	memset(events, 0, sizeof(events));
	EXPECT_EQ(1, tw_read(fd, events, 2)) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(id, events[0].id) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(delivery, events[0].delivery) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(due * TW_SEC, events[0].deadline) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(0U, events[0].missed);
	EXPECT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(info.now, events[0].taken);
	return events[0];
}

#define expect_event(fd, id, delivery, due)				\
	_expect_event(_metadata, fd, id, delivery, due, __LINE__)

/* Token ID, due and read on tick 5: its first delivery is out until 35. */
static struct timewheel_event _hold(struct __test_metadata *_metadata,
				    FIXTURE_DATA(leases) *self)
{
	struct timewheel_event event = {};

	ASSERT_EQ(0, tw_register_at(self->fd, ID, 5 * TW_SEC, 70));
	ASSERT_EQ(0, tw_advance(self->fd, 5));
	event = expect_event(self->fd, ID, 1, 5);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 35,
			.delivery = 1, .attempts = 1);
	return event;
}

#define hold()	_hold(_metadata, self)

TEST_F(leases, life_of_a_token)
{
	struct timewheel_event event;
	struct timewheel_info info;
	struct timewheel_token token;

	tw_expect_figures(self->fd);
	ASSERT_EQ(0, tw_register(self->fd, ID, 5 * TW_SEC, 70, NULL));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 5);
	tw_expect_figures(self->fd, .registered = 1, .pending = 1);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(LEASE * TW_SEC, info.lease);
	EXPECT_EQ(0U, info.max_attempts);
	EXPECT_GE(5 * TW_SEC, info.next);

	ASSERT_EQ(0, tw_advance(self->fd, 4));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 6));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 5);
	EXPECT_TRUE(tw_readable(self->other));
	event = expect_event(self->fd, ID, 1, 5);
	EXPECT_EQ(70ULL, event.cookie);
	ASSERT_EQ(0, tw_get(self->fd, 0, ID, &token));
	EXPECT_EQ(token.handle, event.handle);

	/* Held for the lease, from when it was taken. */
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 36,
			.delivery = 1, .attempts = 1);
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .delivered = 1);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_LT(6 * TW_SEC, info.next);
	EXPECT_GE(36 * TW_SEC, info.next);
	tw_expect_nothing(self->fd);
	tw_expect_nothing(self->other);
	ASSERT_EQ(0, tw_advance(self->fd, 35));
	tw_expect_nothing(self->fd);

	ASSERT_EQ(0, tw_ack(self->fd, &event));
	tw_expect_figures(self->fd, .registered = 1, .acked = 1, .delivered = 1);
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(self->fd, 0, ID, &token)));
	EXPECT_EQ(-ESTALE, tw_ret(tw_get(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
					 event.handle, &token)));
	EXPECT_EQ(NULL, tw_find(self->fd, ID));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ((__u64)TIMEWHEEL_NEVER, info.next);
	ASSERT_EQ(0, tw_advance(self->fd, 100000));
	tw_expect_nothing(self->fd);

	/* The id is free, and a new token's deliveries count from 1. */
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 71, NULL));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING,
			.due = 100000);
	event = expect_event(self->fd, ID, 1, 100000);
	EXPECT_EQ(71ULL, event.cookie);
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, 0));
	tw_expect_figures(self->fd, .registered = 2, .acked = 2, .delivered = 2);
}

/* Without an answer it comes again when the lease is over: one delivery more. */
TEST_F(leases, lease_over)
{
	__u64 handle = hold().handle;
	struct timewheel_event event;

	for (__u32 n = 1; n <= 20; n++) {
		__u64 end = 5 + n * LEASE;

		ASSERT_EQ(0, tw_advance(self->fd, end - 1));
		tw_expect_nothing(self->fd);
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
				.due = end, .delivery = n, .attempts = n);
		ASSERT_EQ(0, tw_advance(self->fd, end));
		EXPECT_TRUE(tw_readable(self->other));
		event = expect_event(self->other, ID, n + 1, end);
		EXPECT_EQ(handle, event.handle);
		EXPECT_EQ(70ULL, event.cookie);
		tw_expect_figures(self->fd, .registered = 1, .held = 1,
				  .delivered = n + 1, .lapsed = n);
	}
	EXPECT_EQ(-ESTALE, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 20, 0));
	EXPECT_EQ(0, answer(self->other, TIMEWHEEL_OP_ACK, ID, 21, 0));
	tw_expect_balance(self->fd);
}

/* Until somebody has seen that the lease is over, an answer is in time. */
TEST_F(leases, late_answers)
{
	static const struct {
		__u32 code;
		__u64 time;
	} cases[] = {
		{ TIMEWHEEL_OP_ACK, 0 },
		{ TIMEWHEEL_OP_ACK, 10 * TW_SEC },
		{ TIMEWHEEL_OP_NACK, 10 * TW_SEC },
		{ TIMEWHEEL_OP_EXTEND, 10 * TW_SEC },
		{ TIMEWHEEL_OP_BURY, 0 },
		{ TIMEWHEEL_OP_DELETE, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const __u32 code = cases[i].code;
		const bool acks = code == TIMEWHEEL_OP_ACK;
		const bool nacks = code == TIMEWHEEL_OP_NACK;
		const bool deletes = code == TIMEWHEEL_OP_DELETE;

		make();
		hold();
		ASSERT_EQ(0, tw_advance(self->fd, 50));
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
				.due = 35, .delivery = 1, .attempts = 1);
		EXPECT_EQ(0, answer(self->fd, code, ID, !deletes,
				    cases[i].time)) {
			TH_LOG("operation %u", code);
		}
		tw_expect_nothing(self->fd);
		tw_expect_figures(self->fd, .registered = 1, .delivered = 1,
				  .acked = acks, .nacked = nacks,
				  .pending = nacks || (acks && cases[i].time),
				  .held = code == TIMEWHEEL_OP_EXTEND,
				  .buried = code == TIMEWHEEL_OP_BURY,
				  .deleted = deletes);
	}
	/* So is one that comes first after a look that took it for another. */
	make();
	hold();
	ASSERT_EQ(0, tw_advance(self->fd, 50));
	expect_event(self->other, ID, 2, 35);
	for (size_t i = 0; i + 1 < ARRAY_SIZE(cases); i++)
		tw_expect_error(self->fd, ID, -ESTALE, .code = cases[i].code,
				.id = ID, .delivery = 1, .time = cases[i].time);
}

/* An ACK with a time does not end its token: that is pending again. */
TEST_F(leases, ack_with_a_time)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_ACK, .id = ID, .delivery = 1,
		.time = 10 * TW_SEC - 1,
	};
	__u64 handle = hold().handle;
	struct timewheel_event event;

	/* After a delay, rounded up. */
	ASSERT_EQ(0, tw_advance(self->fd, 6));
	ASSERT_EQ(0, tw_op(self->fd, &op));
	EXPECT_EQ(16 * TW_SEC, op.deadline);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 16,
			.delivery = 1, .attempts = 0);
	tw_expect_figures(self->fd, .registered = 1, .pending = 1, .acked = 1,
			  .delivered = 1);
	EXPECT_EQ(-ESTALE, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 15));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 20));
	event = expect_event(self->fd, ID, 2, 16);
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(70ULL, event.cookie);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 50,
			.delivery = 2, .attempts = 1);

	/* At a time to come. */
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_ACK,
			       TIMEWHEEL_OPF_BY_HANDLE | TIMEWHEEL_OPF_ABSOLUTE,
			       handle, 2, 25 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 25,
			.delivery = 2, .attempts = 0);
	ASSERT_EQ(0, tw_advance(self->fd, 24));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 25));
	EXPECT_TRUE(tw_readable(self->other));
	expect_event(self->other, ID, 3, 25);

	/* At a time that has passed: at once. The time 0 is one of those. */
	EXPECT_EQ(-EPERM, tw_ret(tw_answer(self->fd, TIMEWHEEL_OP_ACK,
					   TIMEWHEEL_OPF_ABSOLUTE, ID, 3,
					   24 * TW_SEC)));
	op = (struct timewheel_op) {
		.code = TIMEWHEEL_OP_ACK, .flags = TIMEWHEEL_OPF_ABSOLUTE,
		.id = ID, .delivery = 3, .time = 24 * TW_SEC,
	};
	ASSERT_EQ(0, tw_op(self->other, &op));
	EXPECT_EQ(25 * TW_SEC, op.deadline);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 25,
			.delivery = 3, .attempts = 0);
	expect_event(self->fd, ID, 4, 25);
	ASSERT_EQ(0, tw_answer(self->other, TIMEWHEEL_OP_ACK,
			       TIMEWHEEL_OPF_ABSOLUTE | TIMEWHEEL_OPF_ANY_FILE, ID,
			       4, 0));
	EXPECT_TRUE(tw_readable(self->fd));
	expect_event(self->fd, ID, 5, 25);
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .acked = 4,
			  .delivered = 5);

	/*
	 * What is pending again is like any other token: it can be moved and
	 * cancelled. It had no timeout, and an ACK gives it none.
	 */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 5, 10 * TW_SEC));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch(self->fd, 0, ID)));
	EXPECT_EQ(0, tw_move(self->fd, 0, ID, 20 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 45,
			.delivery = 5, .attempts = 0);
	ASSERT_EQ(0, tw_advance(self->fd, 45));
	expect_event(self->fd, ID, 6, 45);
	/* Nor does an ACK change the timeout that it has from the move. */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 6, 3 * TW_SEC));
	EXPECT_EQ(0, tw_touch(self->fd, 0, ID));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 65,
			.delivery = 6, .attempts = 0);
	EXPECT_EQ(0, tw_cancel(self->fd, 0, ID));
	tw_expect_figures(self->fd, .registered = 1, .cancelled = 1, .moved = 1,
			  .acked = 6, .delivered = 6);
}

/* After each ACK with a time a token has all its attempts before it. */
TEST_F(leases, ack_with_a_time_and_max_attempts)
{
	__u32 delivery = 1;
	__u64 due = 5;

	make(.max_attempts = 3);
	hold();
	for (int round = 0; round < 4; round++) {
		for (__u32 n = 1; n < 3; n++) {
			ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID,
					    delivery, 0));
			expect_event(self->fd, ID, ++delivery, due);
		}
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
				.due = due + LEASE, .delivery = delivery,
				.attempts = 3);
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, delivery,
				    10 * TW_SEC));
		due += 10;
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING,
				.due = due, .delivery = delivery, .attempts = 0);
		ASSERT_EQ(0, tw_advance(self->fd, due));
		expect_event(self->fd, ID, ++delivery, due);
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
				.due = due + LEASE, .delivery = delivery,
				.attempts = 1);
	}
	/* After three attempts in vain it is buried as ever. */
	for (__u32 n = 1; n < 3; n++) {
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, delivery, 0));
		expect_event(self->fd, ID, ++delivery, due);
	}
	EXPECT_EQ(TIMEWHEEL_RES_BURIED,
		  answer(self->fd, TIMEWHEEL_OP_NACK, ID, delivery, 0));
	tw_expect_figures(self->fd, .registered = 1, .buried = 1, .acked = 4,
			  .nacked = 11, .delivered = 15);
}

/* The periods of a periodic token are counted from the ACK's time on. */
TEST_F(leases, ack_with_a_time_of_a_periodic_token)
{
	struct timewheel_event event;

	make(.flags = TIMEWHEEL_SETUP_PERIODS);
	ASSERT_EQ(0, tw_register_periodic(self->fd, TIMEWHEEL_OPF_ABSOLUTE, ID,
					  5 * TW_SEC, 10 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 5));
	expect_event(self->fd, ID, 1, 5);
	ASSERT_EQ(0, tw_advance(self->fd, 7));
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1,
			    4 * TW_SEC - TW_SEC / 4));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 11,
			.delivery = 1, .attempts = 0);
	ASSERT_EQ(0, tw_advance(self->fd, 11));
	expect_event(self->fd, ID, 2, 11);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 2, 0));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 21,
			.delivery = 2, .attempts = 0);

	/* At a time that has passed: at once, and the periods count from now. */
	ASSERT_EQ(0, tw_advance(self->fd, 21));
	expect_event(self->fd, ID, 3, 21);
	ASSERT_EQ(0, tw_advance(self->fd, 23));
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_ACK, TIMEWHEEL_OPF_ABSOLUTE,
			       ID, 3, 22 * TW_SEC));
	expect_event(self->fd, ID, 4, 23);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 4, 0));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 33,
			.delivery = 4, .attempts = 0);

	/* Periods that have passed before the ACK do not count as missed. */
	ASSERT_EQ(0, tw_advance(self->fd, 33));
	expect_event(self->fd, ID, 5, 33);
	ASSERT_EQ(0, tw_advance(self->fd, 58));
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 5, 2 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 60));
	expect_event(self->fd, ID, 6, 60);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 6, 0));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 70,
			.delivery = 6, .attempts = 0);

	/* So it is when the delivery was of a KICK, and of no period. */
	ASSERT_EQ(0, tw_advance(self->fd, 61));
	ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_KICK, ID));
	expect_event(self->fd, ID, 7, 61);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 7, 4 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 65));
	expect_event(self->fd, ID, 8, 65);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 8, 0));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 75,
			.delivery = 8, .attempts = 0);

	/* Periods that are missed after the ACK are counted. */
	ASSERT_EQ(0, tw_advance(self->fd, 100));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(95 * TW_SEC, event.deadline);
	EXPECT_EQ(2U, event.missed);
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .acked = 8,
			  .delivered = 9, .kicked = 1, .missed = 2);
}

TEST_F(leases, ack_erange)
{
	const __u64 last = S64_LAST / TW_SEC * TW_SEC;
	const __u64 times[] = {
		last + 1, S64_LAST, S64_LAST + 1, ~0ULL - TW_SEC, ~0ULL,
	};

	hold();
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_ACK,
				.id = ID, .delivery = 1, .time = times[i]);
		tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_ACK,
				.flags = TIMEWHEEL_OPF_ABSOLUTE, .id = ID, .delivery = 1,
				.time = times[i]);
	}
	tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_ACK, .id = ID,
			.delivery = 1, .time = last - 5 * TW_SEC + 1);
	/* It is still held. The last tick of all fits. */
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, last - 5 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING,
			.due = last / TW_SEC, .delivery = 1, .attempts = 0);
}

TEST_F(leases, nack)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_NACK, .id = ID, .delivery = 1, .time = 10 * TW_SEC,
	};
	struct timewheel_event event;

	/* After a delay, rounded up. */
	hold();
	ASSERT_EQ(0, tw_advance(self->fd, 6));
	op.time -= 1;
	ASSERT_EQ(0, tw_op(self->fd, &op));
	EXPECT_EQ(16 * TW_SEC, op.deadline);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 16,
			.delivery = 1, .attempts = 1);
	tw_expect_figures(self->fd, .registered = 1, .pending = 1, .nacked = 1,
			  .delivered = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 15));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 20));
	event = expect_event(self->fd, ID, 2, 16);

	/* At once. */
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_NACK, TIMEWHEEL_OPF_BY_HANDLE,
			       event.handle, 2, 0));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 20,
			.delivery = 2, .attempts = 2);
	EXPECT_TRUE(tw_readable(self->other));
	expect_event(self->other, ID, 3, 20);

	/* At a time, to come or past. */
	ASSERT_EQ(0, tw_answer(self->other, TIMEWHEEL_OP_NACK, TIMEWHEEL_OPF_ABSOLUTE,
			       ID, 3, 25 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 25,
			.delivery = 3, .attempts = 3);
	ASSERT_EQ(0, tw_advance(self->fd, 25));
	expect_event(self->fd, ID, 4, 25);
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_NACK, TIMEWHEEL_OPF_ABSOLUTE,
			       ID, 4, 24 * TW_SEC));
	EXPECT_TRUE(tw_readable(self->fd));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(5U, event.delivery);
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .nacked = 4,
			  .delivered = 5);

	/* What is pending again is like any: it can be moved and cancelled. */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 5, 10 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 35,
			.delivery = 5, .attempts = 5);
	EXPECT_EQ(0, tw_move(self->fd, 0, ID, 20 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 45,
			.delivery = 5, .attempts = 5);
	ASSERT_EQ(0, tw_advance(self->fd, 30));
	EXPECT_EQ(0, tw_touch(self->fd, 0, ID));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 50,
			.delivery = 5, .attempts = 5);
	EXPECT_EQ(0, tw_cancel(self->fd, 0, ID));
	tw_expect_figures(self->fd, .registered = 1, .cancelled = 1, .moved = 1,
			  .nacked = 5, .delivered = 5);
}

TEST_F(leases, nack_erange)
{
	const __u64 last = S64_LAST / TW_SEC * TW_SEC;
	const __u64 times[] = {
		last + 1, S64_LAST, S64_LAST + 1, ~0ULL - TW_SEC, ~0ULL,
	};

	hold();
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_NACK,
				.id = ID, .delivery = 1, .time = times[i]);
		tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_NACK,
				.flags = TIMEWHEEL_OPF_ABSOLUTE, .id = ID, .delivery = 1,
				.time = times[i]);
	}
	tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_NACK, .id = ID,
			.delivery = 1, .time = last - 5 * TW_SEC + 1);
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 1, last - 5 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING,
			.due = last / TW_SEC, .delivery = 1, .attempts = 1);
}

TEST_F(leases, extend)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_EXTEND, .id = ID, .delivery = 1,
		.time = 50 * TW_SEC + 1,
	};

	hold();
	ASSERT_EQ(0, tw_advance(self->fd, 10));
	ASSERT_EQ(0, tw_op(self->fd, &op));
	EXPECT_EQ(61 * TW_SEC, op.deadline);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 61,
			.delivery = 1, .attempts = 1);
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .delivered = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 60));
	tw_expect_nothing(self->fd);

	/* 0 is the wheel's lease, from now. */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, 0));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 90,
			.delivery = 1, .attempts = 1);
	/* Shorter than it was. */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, 3 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 63,
			.delivery = 1, .attempts = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 63));
	EXPECT_TRUE(tw_readable(self->other));
	expect_event(self->other, ID, 2, 63);
	/* Another delivery is as long as any. */
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 93,
			.delivery = 2, .attempts = 2);
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .delivered = 2,
			  .lapsed = 1);
}

/* However often it is extended, a delivery ends: so many leases after it began. */
TEST_F(leases, extend_erange)
{
	const __u64 most = (__u64)TIMEWHEEL_MAX_LEASES * LEASE;
	const __u64 times[] = {
		most * TW_SEC + 1, (most + 1) * TW_SEC, S64_LAST,
		S64_LAST + 1, ~0ULL - 5 * TW_SEC, ~0ULL,
	};

	hold();
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_EXTEND,
				.id = ID, .delivery = 1, .time = times[i]);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, most * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 5 + most,
			.delivery = 1, .attempts = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 4 + most));
	tw_expect_nothing(self->fd);
	tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_EXTEND, .id = ID,
			.delivery = 1, .time = TW_SEC + 1);
	tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_EXTEND, .id = ID,
			.delivery = 1, .time = 0);
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, TW_SEC));

	/* In steps of a lease it comes exactly as far. */
	make();
	hold();
	for (__u64 n = 1; n < TIMEWHEEL_MAX_LEASES; n++) {
		ASSERT_EQ(0, tw_advance(self->fd, 5 + n * LEASE - 1));
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, 0));
	}
	ASSERT_EQ(0, tw_advance(self->fd, 5 + most - LEASE));
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 5 + most - LEASE + 1));
	tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_EXTEND, .id = ID,
			.delivery = 1, .time = 0);
	/* The next delivery has all of them before it. */
	ASSERT_EQ(0, tw_advance(self->fd, 5 + most));
	expect_event(self->fd, ID, 2, 5 + most);
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 2, most * TW_SEC));
}

TEST_F(leases, extend_beyond_the_last_tick)
{
	const __u64 last = S64_LAST / TW_SEC;

	make(.start = last - 40);
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	expect_event(self->fd, ID, 1, last - 40);
	tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_EXTEND, .id = ID,
			.delivery = 1, .time = 40 * TW_SEC + 1);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, 40 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = last,
			.delivery = 1, .attempts = 1);
}

TEST_F(leases, bury_and_kick)
{
	__u64 handle = hold().handle;
	struct timewheel_info info;
	struct timewheel_op op;

	ASSERT_EQ(0, tw_advance(self->fd, 9));
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_BURY, ID, 1, 0));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_BURIED, .due = 9,
			.delivery = 1, .attempts = 1);
	tw_expect_figures(self->fd, .registered = 1, .buried = 1,
			  .delivered = 1);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ((__u64)TIMEWHEEL_NEVER, info.next);
	ASSERT_EQ(0, tw_advance(self->fd, 100000));
	tw_expect_nothing(self->fd);

	/* Kicked: due now, with all its attempts, and a new number. */
	op = (struct timewheel_op) { .code = TIMEWHEEL_OP_KICK, .id = ID };
	ASSERT_EQ(0, tw_op(self->other, &op));
	EXPECT_EQ(100000 * TW_SEC, op.deadline);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING,
			.due = 100000, .delivery = 1, .attempts = 0);
	tw_expect_figures(self->fd, .registered = 1, .pending = 1, .kicked = 1,
			  .delivered = 1);
	EXPECT_TRUE(tw_readable(self->fd));
	EXPECT_EQ(handle, expect_event(self->fd, ID, 2, 100000).handle);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
			.due = 100000 + LEASE, .delivery = 2, .attempts = 1);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 2, 0));

	/* One that is pending, of either kind. */
	ASSERT_EQ(0, tw_register(self->fd, ID, 500 * TW_SEC, 0, &handle));
	ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_BURY, ID));
	ASSERT_EQ(0, tw_advance(self->fd, 100600));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_BURIED,
			.due = 100000);
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_KICK, TIMEWHEEL_OPF_BY_HANDLE,
			       handle, 0, 0));
	expect_event(self->fd, ID, 1, 100600);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 1, 500 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 100601));
	ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_KICK, ID));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING,
			.due = 100601, .delivery = 1, .attempts = 0);
	expect_event(self->fd, ID, 2, 100601);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 2, 0));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, order(self->fd, TIMEWHEEL_OP_KICK, ID));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, order(self->fd, TIMEWHEEL_OP_BURY, ID));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_BURIED, .due = 100601,
			.delivery = 2);
	tw_expect_figures(self->fd, .registered = 2, .buried = 1, .kicked = 4,
			  .acked = 1, .nacked = 2, .delivered = 4);
	tw_expect_nothing(self->fd);
}

/* Many are buried: what is kicked comes, and nothing else, in any order. */
TEST_F(leases, kick_some_of_many)
{
	struct timewheel_event events[TOKENS];
	struct timewheel_token token;
	static bool seen[TOKENS];

	ASSERT_EQ((size_t)TOKENS, tw_register_many(self->fd, 0, TOKENS, 0,
						   TW_SEC));
	for (__u64 id = 0; id < TOKENS; id++)
		ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_BURY, id));
	ASSERT_EQ(0, tw_advance(self->fd, 50));
	tw_expect_nothing(self->fd);
	tw_expect_figures(self->fd, .registered = TOKENS, .buried = TOKENS);
	/* 334 of them: 7 and 334 have no common divisor. */
	for (__u64 i = 0; i < (TOKENS + 2) / 3; i++)
		ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_KICK,
				   i * 7 % ((TOKENS + 2) / 3) * 3));
	memset(seen, 0, sizeof(seen));
	for (int n; (n = tw_read(self->fd, events, TOKENS)) > 0;) {
		for (int i = 0; i < n; i++) {
			ASSERT_EQ(0ULL, events[i].id % 3);
			ASSERT_FALSE(seen[events[i].id]);
			seen[events[i].id] = true;
		}
	}
	for (__u64 id = 0; id < TOKENS; id++) {
		ASSERT_EQ(0, tw_get(self->fd, 0, id, &token));
		EXPECT_EQ(seen[id] ? TIMEWHEEL_STATE_HELD :
			  TIMEWHEEL_STATE_BURIED, token.state);
		EXPECT_EQ(0, order(self->fd, TIMEWHEEL_OP_DELETE, id));
	}
	tw_expect_balance(self->fd);
}

/* A token is deleted in each of its states; answers that come then are too late. */
TEST_F(leases, delete)
{
	struct timewheel_op op = { .code = TIMEWHEEL_OP_DELETE, .id = ID };
	__u64 handle;

	/* Pending. */
	ASSERT_EQ(0, tw_register(self->fd, ID, 5 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_op(self->other, &op));
	EXPECT_EQ(5 * TW_SEC, op.deadline);
	tw_expect_figures(self->fd, .registered = 1, .deleted = 1);
	EXPECT_EQ(-ENOENT, order(self->fd, TIMEWHEEL_OP_DELETE, ID));

	/* Due. */
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, order(self->fd, TIMEWHEEL_OP_DELETE, ID));
	tw_expect_nothing(self->fd);

	/* Held, by this file or by another one. */
	handle = hold().handle;
	op = (struct timewheel_op) { .code = TIMEWHEEL_OP_DELETE, .id = ID };
	ASSERT_EQ(0, tw_op(self->fd, &op));
	EXPECT_EQ(35 * TW_SEC, op.deadline);
	EXPECT_EQ(-ENOENT, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, 0));
	EXPECT_EQ(-ESTALE, tw_ret(tw_answer(self->fd, TIMEWHEEL_OP_ACK,
					    TIMEWHEEL_OPF_BY_HANDLE, handle, 1,
					    0)));
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, &handle));
	expect_event(self->fd, ID, 1, 5);
	ASSERT_EQ(0, tw_answer(self->other, TIMEWHEEL_OP_DELETE,
			       TIMEWHEEL_OPF_BY_HANDLE, handle, 0, 0));
	EXPECT_EQ(-ESTALE, tw_ret(tw_answer(self->other, TIMEWHEEL_OP_DELETE,
					    TIMEWHEEL_OPF_BY_HANDLE, handle, 0,
					    0)));

	/* Buried. */
	ASSERT_EQ(0, tw_register(self->fd, ID, TW_SEC, 0, NULL));
	ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_BURY, ID));
	ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_DELETE, ID));
	EXPECT_EQ(-ENOENT, order(self->fd, TIMEWHEEL_OP_KICK, ID));
	tw_expect_figures(self->fd, .registered = 5, .deleted = 5,
			  .delivered = 2);
	ASSERT_EQ(0, tw_advance(self->fd, 1000));
	tw_expect_nothing(self->fd);
	/* What they had is there for others. */
	EXPECT_EQ((size_t)TOKENS, tw_register_many(self->fd, 0, TOKENS, 0,
						   TW_SEC));
}

static const __u32 answers[] = {
	TIMEWHEEL_OP_ACK, TIMEWHEEL_OP_NACK, TIMEWHEEL_OP_EXTEND, TIMEWHEEL_OP_BURY,
};

/* Each answer names the delivery that is out, or is none. */
TEST_F(leases, answers_to_what_is_not_out)
{
	static const __u32 wrong[] = { 0, 2, 3, 0x10001, 0x80000001, ~0U };
	struct timewheel_event event = hold();

	ASSERT_EQ(0, tw_register(self->fd, 1, 100 * TW_SEC, 0, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		tw_expect_error(self->fd, ID, -ENOENT, .code = answers[i],
				.id = ABSENT, .delivery = 1, .time = TW_SEC);
		tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
				.flags = TIMEWHEEL_OPF_BY_HANDLE, .id = ID,
				.handle = event.handle + (1ULL << 32), .delivery = 1,
				.time = TW_SEC);
		tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
				.flags = TIMEWHEEL_OPF_BY_HANDLE, .id = ID,
				.handle = 0, .delivery = 1, .time = TW_SEC);
		for (size_t j = 0; j < ARRAY_SIZE(wrong); j++) {
			tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
					.id = ID, .delivery = wrong[j],
					.time = TW_SEC);
			tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
					.flags = TIMEWHEEL_OPF_BY_HANDLE |
					TIMEWHEEL_OPF_ANY_FILE,
					.handle = event.handle, .delivery = wrong[j],
					.time = TW_SEC);
		}
		/* Of one that is pending no delivery is out. */
		for (__u32 delivery = answers[i] == TIMEWHEEL_OP_BURY; delivery < 3;
		     delivery++)
			tw_expect_error(self->fd, 1, -ESTALE, .code = answers[i],
					.id = 1, .delivery = delivery, .time = TW_SEC);
	}

	/* Nor of this one, once it has been answered. */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 1, 10 * TW_SEC));
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
				.id = ID, .delivery = 1, .time = TW_SEC);
	ASSERT_EQ(0, tw_advance(self->fd, 15));
	expect_event(self->fd, ID, 2, 15);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
				.id = ID, .delivery = 1, .time = TW_SEC);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_BURY, ID, 2, 0));
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		for (__u32 delivery = 0; delivery < 4; delivery++)
			tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
					.id = ID, .delivery = delivery, .time = TW_SEC);
	ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_KICK, ID));
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
				.id = ID, .delivery = 2, .time = TW_SEC);
	expect_event(self->fd, ID, 3, 15);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 3, 0));
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		tw_expect_error(self->fd, 1, -ENOENT, .code = answers[i],
				.id = ID, .delivery = 3, .time = TW_SEC);
		tw_expect_error(self->fd, 1, -ESTALE, .code = answers[i],
				.flags = TIMEWHEEL_OPF_BY_HANDLE,
				.handle = event.handle, .delivery = 3,
				.time = TW_SEC);
	}
	/* A newer token of this id is another one, with the same numbers. */
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	expect_event(self->fd, ID, 1, 15);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
				.flags = TIMEWHEEL_OPF_BY_HANDLE,
				.handle = event.handle, .delivery = 1,
				.time = TW_SEC);
	}
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, 0));
}

/* A delivery is its file's, unless the caller says that it knows. */
TEST_F(leases, answers_by_another_file)
{
	struct timewheel_event event;
	int same;

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		for (int by_handle = 0; by_handle < 2; by_handle++) {
			__u32 flags = by_handle ? TIMEWHEEL_OPF_BY_HANDLE : 0;

			make();
			event = hold();
			tw_expect_error(self->other, ID, -EPERM,
					.code = answers[i], .flags = flags,
					.id = by_handle ? ABSENT : ID,
					.handle = event.handle, .delivery = 1,
					.time = TW_SEC);
			/* Which delivery, is said first. */
			tw_expect_error(self->other, ID, -ESTALE,
					.code = answers[i], .flags = flags,
					.id = ID, .handle = event.handle,
					.delivery = 2, .time = TW_SEC);
			EXPECT_EQ(0, tw_answer(self->other, answers[i],
					       flags | TIMEWHEEL_OPF_ANY_FILE,
					       by_handle ? event.handle : ID,
					       1, TW_SEC));
		}
	}
	/* The holder may say so as well, and a dup is the same file. */
	make();
	hold();
	EXPECT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_EXTEND, TIMEWHEEL_OPF_ANY_FILE,
			       ID, 1, 0));
	same = dup(self->fd);
	ASSERT_LE(0, same);
	EXPECT_EQ(0, answer(same, TIMEWHEEL_OP_EXTEND, ID, 1, 0));
	/* One that has it extended does not get it. */
	ASSERT_EQ(0, tw_answer(self->other, TIMEWHEEL_OP_EXTEND,
			       TIMEWHEEL_OPF_ANY_FILE, ID, 1, 0));
	EXPECT_EQ(-EPERM, answer(self->other, TIMEWHEEL_OP_ACK, ID, 1, 0));
	close(same);
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, 0));
	/* The file that reads it next has it. */
	hold();
	ASSERT_EQ(0, tw_advance(self->fd, 35));
	expect_event(self->other, ID, 2, 35);
	EXPECT_EQ(-EPERM, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 2, 0));
	EXPECT_EQ(0, answer(self->other, TIMEWHEEL_OP_ACK, ID, 2, 0));
}

TEST_F(leases, kick_of_a_held_one_is_ebusy)
{
	struct timewheel_event event = hold();

	tw_expect_error(self->fd, ID, -EBUSY, .code = TIMEWHEEL_OP_KICK, .id = ID);
	tw_expect_error(self->other, ID, -EBUSY, .code = TIMEWHEEL_OP_KICK,
			.flags = TIMEWHEEL_OPF_BY_HANDLE, .handle = event.handle);
	tw_expect_error(self->fd, ID, -ENOENT, .code = TIMEWHEEL_OP_KICK,
			.id = ABSENT);
	tw_expect_error(self->fd, ID, -ESTALE, .code = TIMEWHEEL_OP_KICK,
			.flags = TIMEWHEEL_OPF_BY_HANDLE,
			.handle = event.handle ^ 1ULL << 40);
	tw_expect_error(self->fd, ID, -ENOENT, .code = TIMEWHEEL_OP_DELETE,
			.id = ABSENT);
	tw_expect_error(self->fd, ID, -ESTALE, .code = TIMEWHEEL_OP_DELETE,
			.flags = TIMEWHEEL_OPF_BY_HANDLE,
			.handle = event.handle ^ 1ULL << 40);
}

/* Flags, the number of a delivery and a period where they do not belong. */
TEST_F(leases, what_does_not_go_with_the_operation)
{
	const struct {
		__u32 code, flags, delivery;
		__u64 period;
	} cases[] = {
		{ TIMEWHEEL_OP_EXTEND, TIMEWHEEL_OPF_ABSOLUTE, 1 },
		{ TIMEWHEEL_OP_BURY, TIMEWHEEL_OPF_ABSOLUTE, 1 },
		{ TIMEWHEEL_OP_KICK, TIMEWHEEL_OPF_ABSOLUTE, 0 },
		{ TIMEWHEEL_OP_KICK, TIMEWHEEL_OPF_ANY_FILE, 0 },
		{ TIMEWHEEL_OP_DELETE, TIMEWHEEL_OPF_ABSOLUTE, 0 },
		{ TIMEWHEEL_OP_DELETE, TIMEWHEEL_OPF_ANY_FILE, 0 },
		{ TIMEWHEEL_OP_ACK, 8, 1 },
		{ TIMEWHEEL_OP_DELETE, 1U << 31, 0 },
		{ TIMEWHEEL_OP_REGISTER, 0, 1 }, { TIMEWHEEL_OP_TOUCH, 0, 1 },
		{ TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0, 1 },
		{ TIMEWHEEL_OP_MOVE, 0, 1 }, { TIMEWHEEL_OP_CANCEL, 0, 1 },
		{ TIMEWHEEL_OP_KICK, 0, 1 }, { TIMEWHEEL_OP_DELETE, 0, 1 },
		/* There are no periods. */
		{ TIMEWHEEL_OP_REGISTER, 0, 0, TW_SEC },
	};

	hold();
	ASSERT_EQ(0, tw_register(self->fd, 1, 100 * TW_SEC, 0, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* All is as it must be, but for one thing. */
		bool answers = cases[i].code >= TIMEWHEEL_OP_ACK &&
			       cases[i].code <= TIMEWHEEL_OP_BURY;
		bool registers = cases[i].code == TIMEWHEEL_OP_REGISTER ||
			cases[i].code == TIMEWHEEL_OP_TOUCH_OR_REGISTER;

		tw_expect_error(self->fd, ID, -EINVAL, .code = cases[i].code,
				.flags = cases[i].flags, .delivery = cases[i].delivery,
				.id = registers ? ABSENT : answers ? ID : 1,
				.time = TW_SEC, .period = cases[i].period);
	}
	for (__u32 code = 0; code <= TIMEWHEEL_OP_DELETE; code++) {
		bool answers = code >= TIMEWHEEL_OP_ACK &&
			       code <= TIMEWHEEL_OP_BURY;

		tw_expect_error(self->fd, ID, -EINVAL, .code = code,
				.delivery = answers,
				.id = !code ? ABSENT : answers ? ID : 1,
				.time = TW_SEC, .reserved = 1);
	}
}

static const __u32 all_codes[] = {
	TIMEWHEEL_OP_ACK, TIMEWHEEL_OP_NACK, TIMEWHEEL_OP_EXTEND, TIMEWHEEL_OP_BURY,
	TIMEWHEEL_OP_KICK, TIMEWHEEL_OP_DELETE,
};

TEST_F(leases, wheel_without_leases)
{
	make(.lease = 0);
	ASSERT_EQ(0, tw_register(self->fd, ID, 100 * TW_SEC, 0, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(all_codes); i++) {
		for (__u32 delivery = 0; delivery < 2; delivery++) {
			if (delivery && all_codes[i] >= TIMEWHEEL_OP_KICK)
				continue;
			tw_expect_error(self->fd, ID, -EINVAL,
					.code = all_codes[i], .id = ID,
					.delivery = delivery, .time = TW_SEC);
			tw_expect_error(self->fd, ID, -EINVAL,
					.code = all_codes[i], .id = ABSENT,
					.delivery = delivery, .time = TW_SEC);
		}
	}
	/* As ever: a read ends it. */
	ASSERT_EQ(0, tw_advance(self->fd, 100));
	expect_event(self->fd, ID, 0, 100);
	tw_expect_figures(self->fd, .registered = 1, .delivered = 1);
}

/* Reading is enough to get a delivery; to answer it, write. */
TEST_F(leases, read_only_file)
{
	int reader = tw_open_named(self->name, O_RDONLY | O_NONBLOCK);
	struct timewheel_event event;

	ASSERT_LE(0, reader);
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	event = expect_event(reader, ID, 1, 0);
	for (size_t i = 0; i < ARRAY_SIZE(all_codes); i++) {
		struct timewheel_op op = {
			.size = sizeof(op), .code = all_codes[i], .id = ID,
			.delivery = all_codes[i] < TIMEWHEEL_OP_KICK,
		};

		EXPECT_EQ(-EBADF, tw_ret(ioctl(reader, TIMEWHEEL_IOC_OP, &op)));
		EXPECT_EQ(-EBADF, tw_ret(tw_batch(reader, &op, 1, NULL)));
		EXPECT_EQ(0, op.result);
	}
	tw_expect_token(reader, ID, .state = TIMEWHEEL_STATE_HELD, .due = LEASE,
			.delivery = 1, .attempts = 1);
	EXPECT_EQ(-EPERM, tw_ret(tw_ack(self->fd, &event)));
	EXPECT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_ACK, TIMEWHEEL_OPF_ANY_FILE, ID,
			       1, 0));
	close(reader);
}

/* The id is the token's until it has ended. */
TEST_F(leases, id_stays_taken)
{
	for (int buried = 0; buried < 2; buried++) {
		struct timewheel_event event;
		static const __u32 codes[] = {
			TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_CANCEL,
		};

		make();
		event = hold();
		if (buried)
			ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_BURY, ID, 1, 0));
		tw_expect_error(self->fd, ID, -EEXIST, .code = TIMEWHEEL_OP_REGISTER,
				.id = ID, .time = TW_SEC);
		tw_expect_error(self->fd, ID, -EEXIST, .code = TIMEWHEEL_OP_REGISTER,
				.flags = TIMEWHEEL_OPF_ABSOLUTE, .id = ID,
				.time = 100 * TW_SEC);
		tw_expect_error(self->other, ID, -EEXIST,
				.code = TIMEWHEEL_OP_TOUCH_OR_REGISTER, .id = ID,
				.time = TW_SEC);
		for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
			tw_expect_error(self->fd, ID, -ENOENT, .code = codes[i],
					.id = ID, .time = 50 * TW_SEC);
			tw_expect_error(self->fd, ID, -ESTALE, .code = codes[i],
					.flags = TIMEWHEEL_OPF_BY_HANDLE,
					.handle = event.handle,
					.time = 50 * TW_SEC);
		}
		EXPECT_EQ(-ENOENT, tw_ret(tw_touch(self->fd, 0, ID)));
		EXPECT_EQ(-ESTALE, tw_ret(tw_touch(self->fd,
						   TIMEWHEEL_OPF_BY_HANDLE,
						   event.handle)));
		ASSERT_EQ(0, tw_advance(self->fd, 35));
		if (!buried)
			expect_event(self->fd, ID, 2, 35);
		tw_expect_nothing(self->fd);
		ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_DELETE, ID));
		EXPECT_EQ(0, tw_register(self->fd, ID, TW_SEC, 0, NULL));
	}
	/* On a periodic wheel too. */
	make(.flags = TIMEWHEEL_SETUP_PERIODS);
	hold();
	tw_expect_error(self->fd, ID, -EEXIST, .code = TIMEWHEEL_OP_REGISTER,
			.id = ID, .time = TW_SEC, .period = TW_SEC);
}

/* Held and buried tokens are among those that the wheel has room for. */
TEST_F(leases, enospc)
{
	struct timewheel_event event;

	make(.max_tokens = 2);
	hold();
	ASSERT_EQ(0, tw_register(self->fd, 1, 0, 0, NULL));
	tw_expect_error(self->fd, ID, -ENOSPC, .code = TIMEWHEEL_OP_REGISTER,
			.id = ABSENT);
	event = expect_event(self->fd, 1, 1, 5);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_BURY, ID, 1, 0));
	tw_expect_error(self->fd, ID, -ENOSPC, .code = TIMEWHEEL_OP_REGISTER,
			.id = ABSENT);
	ASSERT_EQ(0, tw_ack(self->fd, &event));
	EXPECT_EQ(0, tw_register(self->fd, ABSENT, 0, 0, NULL));
}

/* Buried after so many deliveries, in each way that the last one can fail. */
TEST_F(leases, max_attempts_by_nack)
{
	for (__u32 most = 1; most <= 4; most++) {
		struct timewheel_info info;

		make(.max_attempts = most);
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(most, info.max_attempts);
		hold();
		for (__u32 n = 1; n < most; n++) {
			ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, n,
					    0));
			expect_event(self->fd, ID, n + 1, 5);
		}
		EXPECT_EQ(TIMEWHEEL_RES_BURIED,
			  answer(self->fd, TIMEWHEEL_OP_NACK, ID, most, 0));
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_BURIED,
				.delivery = most, .attempts = most);
		tw_expect_figures(self->fd, .registered = 1, .buried = 1,
				  .delivered = most, .nacked = most);
		ASSERT_EQ(0, tw_advance(self->fd, 1000));
		tw_expect_nothing(self->fd);

		/* Kicked, it has all of them again. */
		ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_KICK, ID));
		for (__u32 n = 1; n <= most; n++) {
			expect_event(self->fd, ID, most + n, 1000);
			tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
					.due = 1000 + LEASE, .delivery = most + n,
					.attempts = n);
			EXPECT_EQ(n == most ? TIMEWHEEL_RES_BURIED : 0,
				  answer(self->fd, TIMEWHEEL_OP_NACK, ID, most + n,
					 0));
		}
		tw_expect_figures(self->fd, .registered = 1, .buried = 1,
				  .delivered = 2 * most, .nacked = 2 * most,
				  .kicked = 1);
	}
}

TEST_F(leases, max_attempts_by_lapse)
{
	make(.max_attempts = 3);
	hold();
	for (__u32 n = 2; n <= 3; n++) {
		ASSERT_EQ(0, tw_advance(self->fd, 5 + (n - 1) * LEASE));
		expect_event(self->fd, ID, n, 5 + (n - 1) * LEASE);
	}
	ASSERT_EQ(0, tw_advance(self->fd, 5 + 3 * LEASE - 1));
	tw_expect_nothing(self->fd);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
			.due = 5 + 3 * LEASE, .delivery = 3, .attempts = 3);
	/* The last lease is over: a look finds that, and no reader gets the token. */
	ASSERT_EQ(0, tw_advance(self->fd, 5 + 3 * LEASE));
	tw_expect_nothing(self->fd);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_BURIED, .delivery = 3,
			.attempts = 3);
	tw_expect_figures(self->fd, .registered = 1, .buried = 1,
			  .delivered = 3, .lapsed = 3);
	EXPECT_EQ(-ESTALE, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 3, 0));
	/* Those behind it come all the same. */
	ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_KICK, ID));
	expect_event(self->fd, ID, 4, 5 + 3 * LEASE);
	for (__u32 n = 5; n <= 6; n++) {
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, n - 1, 0));
		expect_event(self->fd, ID, n, 5 + 3 * LEASE);
	}
	ASSERT_EQ(0, tw_register(self->fd, 1, LEASE * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 5 + 4 * LEASE));
	expect_event(self->fd, 1, 1, 5 + 4 * LEASE);
	tw_expect_nothing(self->fd);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_BURIED, .delivery = 6,
			.attempts = 3);
}

TEST_F(leases, max_attempts_by_release)
{
	make(.max_attempts = 2);
	for (__u32 n = 1; n <= 2; n++) {
		int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);

		ASSERT_LE(0, fd);
		if (n == 1)
			ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
		expect_event(fd, ID, n, 0);
		close(fd);
	}
	tw_expect_nothing(self->fd);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_BURIED, .delivery = 2,
			.attempts = 2);
	tw_expect_balance(self->fd);
	ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_KICK, ID));
	expect_event(self->fd, ID, 3, 0);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = LEASE,
			.delivery = 3, .attempts = 1);
}

/* A lease ends on a tick, not before it has been given whole. */
TEST_F(leases, lease_is_rounded_up)
{
	const struct {
		__u64 lease, ticks;
	} cases[] = {
		{ TW_SEC, 1 }, { TW_SEC + 1, 2 }, { 2 * TW_SEC - 1, 2 },
		{ 2 * TW_SEC, 2 }, { 2 * TW_SEC + 1, 3 },
		{ 3600 * TW_SEC, 3600 }, { 86400 * 7 * TW_SEC - 1, 86400 * 7 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		make(.lease = cases[i].lease);
		ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
		ASSERT_EQ(0, tw_advance(self->fd, 17));
		expect_event(self->fd, ID, 1, 0);
		ASSERT_EQ(0, tw_advance(self->fd, 17 + cases[i].ticks - 1));
		tw_expect_nothing(self->fd);
		ASSERT_EQ(0, tw_advance(self->fd, 17 + cases[i].ticks));
		EXPECT_TRUE(tw_readable(self->fd));
		expect_event(self->fd, ID, 2, 17 + cases[i].ticks);
	}
}

/* Lapsed ones and new ones come in the order of their due ticks. */
TEST_F(leases, order_of_delivery)
{
	struct timewheel_event events[8];

	for (__u64 id = 1; id <= 3; id++)
		ASSERT_EQ(0, tw_register(self->fd, id, id * TW_SEC, 0, NULL));
	for (__u64 id = 1; id <= 3; id++) {
		ASSERT_EQ(0, tw_advance(self->fd, id));
		expect_event(self->fd, id, 1, id);
	}
	ASSERT_EQ(0, tw_register_at(self->fd, 10, (LEASE + 2) * TW_SEC - 1, 0));
	ASSERT_EQ(0, tw_register_at(self->fd, 11, 4 * TW_SEC, 0));
	ASSERT_EQ(0, tw_register_at(self->fd, 12, (LEASE + 4) * TW_SEC, 0));
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, 1, 1,
			    (LEASE + 2) * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1000));
	ASSERT_EQ(6, tw_read(self->fd, events, 8));
	EXPECT_EQ(11ULL, events[0].id);
	EXPECT_TRUE((events[1].id == 10 && events[2].id == 2) ||
		    (events[1].id == 2 && events[2].id == 10));
	EXPECT_EQ(3ULL, events[3].id);
	EXPECT_EQ(12ULL, events[4].id);
	EXPECT_EQ(1ULL, events[5].id);
	for (int i = 1; i < 6; i++)
		EXPECT_LE(events[i - 1].deadline, events[i].deadline);
	for (int i = 0; i < 6; i++)
		EXPECT_EQ(events[i].id < 10 ? 2U : 1U, events[i].delivery);
}

/* The hand put back: a lease is over when its end has come, not before. */
TEST_F(leases, hand_put_back)
{
	hold();
	ASSERT_EQ(0, tw_advance(self->fd, 0));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 34));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 35));
	ASSERT_EQ(0, tw_advance(self->fd, 10));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, 0));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 40,
			.delivery = 1, .attempts = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 40));
	expect_event(self->fd, ID, 2, 40);
}

/* What a read has not copied out was not delivered: it is no attempt and not held. */
TEST_F(leases, faulting_reads_count_nothing)
{
	enum { N = 100 };
	const size_t page = sysconf(_SC_PAGESIZE);
	const size_t event = sizeof(struct timewheel_event);
	char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timewheel_event events[N];
	char *end = pages + 2 * page;
	struct timewheel_info info;

	ASSERT_NE(MAP_FAILED, (void *)pages);
	ASSERT_EQ(0, munmap(end, page));
	make(.max_attempts = 1);
	for (__u64 id = 0; id < N; id++)
		ASSERT_EQ(0, tw_register(self->fd, id, (1 + id) * TW_SEC, 0,
					 NULL));
	ASSERT_EQ(0, tw_advance(self->fd, N));
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(-EFAULT, tw_ret(read(self->fd, end, N * event)));
		ASSERT_EQ(-EFAULT, tw_ret(read(self->fd, end - 1, N * event)));
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ((__u64)N, info.pending);
	EXPECT_EQ(0ULL, info.held + info.taken + info.buried + info.delivered +
		  info.lapsed + info.returned);
	for (__u64 id = 0; id < N; id++) {
		const struct timewheel_token *token = tw_find(self->fd, id);

		ASSERT_NE(NULL, token);
		ASSERT_EQ(0U, token->attempts);
		ASSERT_EQ((__u32)TIMEWHEEL_STATE_PENDING, token->state);
		ASSERT_EQ((1 + id) * TW_SEC, token->deadline);
	}
	/* Those that were copied are held, and those behind are not. */
	ASSERT_EQ((int)(7 * event), tw_ret(read(self->fd, end - 7 * event - 5,
						N * event)));
	for (__u64 id = 0; id < N; id++) {
		const struct timewheel_token *token = tw_find(self->fd, id);

		ASSERT_NE(NULL, token);
		ASSERT_EQ(id < 7, token->attempts);
		ASSERT_EQ((__u32)(id < 7 ? TIMEWHEEL_STATE_HELD : TIMEWHEEL_STATE_PENDING),
			  token->state);
	}
	/* A read that fails does not bury those whose last attempt it was. */
	ASSERT_EQ(N - 7, tw_read(self->fd, events, N));
	for (int i = 0; i < N - 7; i++) {
		ASSERT_EQ(7ULL + i, events[i].id);
		ASSERT_EQ(0, tw_ack(self->fd, &events[i]));
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ((__u64)N, info.delivered);
	EXPECT_EQ(7ULL, info.held);
	EXPECT_EQ(N - 7ULL, info.acked);
	tw_expect_balance(self->fd);
	munmap(pages, 2 * page);
}

/* Lapsed ones are put back by a faulting read too, and come again. */
TEST_F(leases, faulting_read_of_a_lapsed_one)
{
	const struct iovec nowhere = { (void *)8, 480 };
	struct timewheel_event event;

	make(.max_attempts = 2);
	hold();
	ASSERT_EQ(0, tw_advance(self->fd, 40));
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(-EFAULT, tw_ret(readv(self->fd, &nowhere, 1)));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ((__u64)ID, event.id);
	EXPECT_LT(1U, event.delivery);
	EXPECT_EQ(2U, tw_find(self->fd, ID)->attempts);
	EXPECT_EQ(-ESTALE, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, 0));
	EXPECT_EQ(0, tw_ack(self->fd, &event));
	tw_expect_balance(self->fd);
}

/* Of a reader that waits for its memory the others get all tokens at once. */
TEST_F(leases, slow_reader_keeps_nothing)
{
	enum { N = 100 };
	const size_t page = sysconf(_SC_PAGESIZE);
	int fd = tw_open_named(self->name, O_RDONLY | O_NONBLOCK);
	struct timewheel_event events[N];
	struct tw_slow_reader r;
	struct timewheel_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ((size_t)N, tw_register_many(self->fd, 0, N, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	TW_START_SLOW_READER(&r, fd, tw_new_pages(page), page);
	for (__u64 id = 0; id < N; id++)
		tw_expect_token(self->fd, id, .state = TIMEWHEEL_STATE_PENDING,
				.due = 1);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0ULL, info.taken);
	EXPECT_EQ((__u64)N, info.pending);
	EXPECT_EQ(-EEXIST, tw_ret(tw_register(self->fd, ID, TW_SEC, 0, NULL)));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, 0, ID));

	ASSERT_EQ(N - 1, tw_read(self->other, events, N));
	for (int i = 0; i < N - 1; i++) {
		EXPECT_EQ(1U, events[i].delivery);
		EXPECT_EQ(0, tw_ack(self->other, &events[i]));
	}
	ASSERT_TRUE(tw_bring_pages(r.uffd, r.pages, r.size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(-EAGAIN, r.ret);
	tw_expect_figures(self->fd, .registered = N, .cancelled = 1,
			  .delivered = N - 1, .acked = N - 1,
			  .put_back = info.put_back);
	close(fd);
	close(r.uffd);
	munmap(r.pages, r.size);
}

/* A lease begins when the event is copied, however long the memory took to come. */
TEST_F(leases, lease_of_a_slow_reader)
{
	struct timewheel_event event;
	const size_t page = sysconf(_SC_PAGESIZE);
	struct tw_slow_reader r;

	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	TW_START_SLOW_READER(&r, self->fd, tw_new_pages(page), page);
	ASSERT_EQ(0, tw_advance(self->fd, 10 * LEASE));
	ASSERT_TRUE(tw_bring_pages(r.uffd, r.pages, r.size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	ASSERT_EQ((int)sizeof(struct timewheel_event), r.ret);
	memcpy(&event, r.pages, sizeof(event));
	EXPECT_EQ(1U, event.delivery);
	EXPECT_EQ(10 * LEASE * TW_SEC, event.taken);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
			.due = 11 * LEASE, .delivery = 1, .attempts = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 11 * LEASE - 1));
	tw_expect_nothing(self->other);
	ASSERT_EQ(0, tw_advance(self->fd, 11 * LEASE));
	ASSERT_EQ(1, tw_read(self->other, &event, 1));
	EXPECT_EQ(2U, event.delivery);
	EXPECT_EQ(0, tw_ack(self->other, &event));
	tw_expect_figures(self->fd, .registered = 1, .acked = 1, .delivered = 2,
			  .lapsed = 1, .put_back = 1);
	close(r.uffd);
	munmap(r.pages, r.size);
}

TEST_F(leases, wheels_without_ids)
{
	struct timewheel_event event;
	struct timewheel_token token;
	__u64 handle, second;

	make(.flags = TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES,
	     .max_attempts = 2);
	ASSERT_EQ(0, tw_register(self->fd, 0, TW_SEC, 0, &handle));
	ASSERT_EQ(0, tw_register(self->fd, 0, 100 * TW_SEC, 0, &second));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(0ULL, event.id);
	EXPECT_EQ(0ULL, event.cookie);
	EXPECT_EQ(1U, event.delivery);
	for (size_t i = 0; i < ARRAY_SIZE(all_codes); i++)
		EXPECT_EQ(-EINVAL, tw_ret(tw_answer(self->fd, all_codes[i], 0,
						    0, all_codes[i] <
						    TIMEWHEEL_OP_KICK, TW_SEC)));
	ASSERT_EQ(0, tw_get(self->fd, TIMEWHEEL_OPF_BY_HANDLE, handle, &token));
	EXPECT_EQ((__u32)TIMEWHEEL_STATE_HELD, token.state);
	EXPECT_EQ(1U, token.delivery);
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_NACK, TIMEWHEEL_OPF_BY_HANDLE,
			       handle, 1, 0));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	ASSERT_EQ(TIMEWHEEL_RES_BURIED, tw_answer(self->fd, TIMEWHEEL_OP_NACK,
						  TIMEWHEEL_OPF_BY_HANDLE, handle, 2,
						  0));
	ASSERT_EQ(0, tw_get(self->fd, TIMEWHEEL_OPF_BY_HANDLE, handle, &token));
	EXPECT_EQ((__u32)TIMEWHEEL_STATE_BURIED, token.state);
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_KICK, TIMEWHEEL_OPF_BY_HANDLE,
			       handle, 0, 0));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(3U, event.delivery);
	ASSERT_EQ(0, tw_ack(self->fd, &event));
	EXPECT_EQ(-ESTALE, tw_ret(tw_ack(self->fd, &event)));
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_BURY, TIMEWHEEL_OPF_BY_HANDLE,
			       second, 0, 0));
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_DELETE, TIMEWHEEL_OPF_BY_HANDLE,
			       second, 0, 0));
	tw_expect_figures(self->fd, .registered = 2, .acked = 1, .deleted = 1,
			  .nacked = 2, .kicked = 1, .delivered = 3);
}

/* Touch words judge what is pending, and no lease. */
TEST_F(leases, wheels_with_touch_words)
{
	const size_t size = TOKENS * 8;
	struct timewheel_event event;
	__u64 handle, *words;

	make(.flags = TIMEWHEEL_SETUP_TOUCH_WORDS);
	words = mmap(NULL, (size + 4095) & ~4095UL, PROT_READ | PROT_WRITE,
		     MAP_SHARED, self->fd, TIMEWHEEL_MAP_WORDS);
	ASSERT_NE(MAP_FAILED, (void *)words);
	ASSERT_EQ(0, tw_register(self->fd, ID, 5 * TW_SEC, 0, &handle));
	ASSERT_EQ(0, tw_advance(self->fd, 3));
	words[(__u32)handle] = (handle & 0xffffffff00000000) | 3;
	ASSERT_EQ(0, tw_advance(self->fd, 8));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 9));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(1U, event.delivery);
	/* Touched while it is held: the lease is over when it is over. */
	ASSERT_EQ(0, tw_advance(self->fd, 20));
	words[(__u32)handle] = (handle & 0xffffffff00000000) | 20;
	ASSERT_EQ(0, tw_advance(self->fd, 9 + LEASE - 1));
	tw_expect_nothing(self->fd);
	words[(__u32)handle] = (handle & 0xffffffff00000000) | 38;
	ASSERT_EQ(0, tw_advance(self->fd, 9 + LEASE));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(2U, event.delivery);
	EXPECT_EQ(-ENOENT, tw_ret(tw_touch(self->fd, 0, ID)));
	/* Pending again it can be touched by either way. */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 2, 5 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 42));
	EXPECT_EQ(0, tw_touch(self->fd, 0, ID));
	ASSERT_EQ(0, tw_advance(self->fd, 46));
	tw_expect_nothing(self->fd);
	words[(__u32)handle] = (handle & 0xffffffff00000000) | 46;
	ASSERT_EQ(0, tw_advance(self->fd, 51));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 52));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(3U, event.delivery);
	/* So it can after an ACK with a delay. What was stored before is void. */
	words[(__u32)handle] = (handle & 0xffffffff00000000) | 52;
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 3, 3 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 55));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(4U, event.delivery);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 4, 3 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 56));
	words[(__u32)handle] = (handle & 0xffffffff00000000) | 56;
	ASSERT_EQ(0, tw_advance(self->fd, 61));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 62));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(5U, event.delivery);
	EXPECT_EQ(0, tw_ack(self->fd, &event));
	tw_expect_figures(self->fd, .registered = 1, .acked = 3, .nacked = 1,
			  .delivered = 5, .lapsed = 1);
	munmap(words, (size + 4095) & ~4095UL);
}

/* A batch of answers, each with its own result. */
TEST_F(leases, batch_of_answers)
{
	enum { N = 200 };
	struct timewheel_event events[N];
	struct timewheel_op ops[N];
	__u32 done = 0;

	/* All of it is there before the read, which then puts nothing back. */
	memset(events, 0, sizeof(events));
	ASSERT_EQ((size_t)N, tw_register_many(self->fd, 0, N, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	for (int n = 0; n < N;) {
		int got = tw_read(self->fd, events + n, N - n);

		ASSERT_LT(0, got);
		n += got;
	}
	memset(ops, 0, sizeof(ops));
	for (int i = 0; i < N; i++) {
		ops[i].size = sizeof(ops[i]);
		ops[i].flags = TIMEWHEEL_OPF_BY_HANDLE;
		ops[i].handle = events[i].handle;
		ops[i].delivery = events[i].delivery + (i % 5 == 4);
		ops[i].code = answers[i % 4];
		ops[i].time = i % 4 ? 50 * TW_SEC : 0;
	}
	ASSERT_EQ(0, tw_batch(self->fd, ops, N, &done));
	EXPECT_EQ((__u32)N, done);
	for (int i = 0; i < N; i++)
		EXPECT_EQ(i % 5 == 4 ? -ESTALE : 0, ops[i].result);
	tw_expect_figures(self->fd, .registered = N, .delivered = N,
			  .acked = N / 5, .nacked = N / 5, .pending = N / 5,
			  .buried = N / 5, .held = 2 * N / 5);
}

/* Lease ends are announced like any deadline. */
TEST_F(leases, lease_ends_are_announced)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->other, &event));
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	ASSERT_EQ(0, tw_register(self->fd, ID, 5 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 5));
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
	expect_event(self->fd, ID, 1, 5);
	for (__u32 n = 1; n < 10; n++) {
		EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
		ASSERT_EQ(0, tw_advance(self->fd, 5 + n * LEASE));
		EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0)) {
			TH_LOG("delivery %u", n);
		}
		expect_event(n % 2 ? self->other : self->fd, ID, n + 1,
			     5 + n * LEASE);
	}
	/* So are NACK and KICK. */
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	ASSERT_EQ(0, answer(self->other, TIMEWHEEL_OP_NACK, ID, 10, 0));
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
	expect_event(self->fd, ID, 11, 5 + 9 * LEASE);
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_BURY, ID, 11, 0));
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_KICK, ID));
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
	close(epoll);
}

/* Each of these wakes a reader that sleeps; nothing else does. */
TEST_F(leases, blocked_readers)
{
	struct tw_sleeper b;
	int fd = tw_open_named(self->name, O_RDWR);

	ASSERT_LE(0, fd);
	hold();
	ASSERT_TRUE(tw_put_to_sleep(&b, fd, tw_sleep_in_read));
	ASSERT_EQ(0, tw_advance(self->fd, 35));
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	ASSERT_EQ(1, b.ret);
	EXPECT_EQ(2U, b.event.delivery);

	ASSERT_TRUE(tw_put_to_sleep(&b, fd, tw_sleep_in_read));
	ASSERT_EQ(0, answer(fd, TIMEWHEEL_OP_NACK, ID, 2, 0));
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	ASSERT_EQ(1, b.ret);
	EXPECT_EQ(3U, b.event.delivery);

	ASSERT_TRUE(tw_put_to_sleep(&b, fd, tw_sleep_in_read));
	ASSERT_EQ(0, answer(fd, TIMEWHEEL_OP_NACK, ID, 3, 5 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 40));
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	ASSERT_EQ(1, b.ret);
	EXPECT_EQ(4U, b.event.delivery);

	ASSERT_TRUE(tw_put_to_sleep(&b, fd, tw_sleep_in_read));
	ASSERT_EQ(0, answer(fd, TIMEWHEEL_OP_BURY, ID, 4, 0));
	ASSERT_EQ(0, order(self->fd, TIMEWHEEL_OP_KICK, ID));
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	ASSERT_EQ(1, b.ret);
	EXPECT_EQ(5U, b.event.delivery);

	/* Shortened by EXTEND. */
	ASSERT_TRUE(tw_put_to_sleep(&b, fd, tw_sleep_in_read));
	ASSERT_EQ(0, answer(fd, TIMEWHEEL_OP_EXTEND, ID, 5, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 41));
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	ASSERT_EQ(1, b.ret);
	EXPECT_EQ(6U, b.event.delivery);

	/* What another file held comes back. */
	ASSERT_EQ(0, answer(fd, TIMEWHEEL_OP_NACK, ID, 6, 0));
	expect_event(self->other, ID, 7, 41);
	ASSERT_TRUE(tw_put_to_sleep(&b, fd, tw_sleep_in_read));
	close(self->other);
	self->other = -1;
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	ASSERT_EQ(1, b.ret);
	EXPECT_EQ(8U, b.event.delivery);
	close(fd);
}

/* On a clock that goes by itself: a lease ends, not early, and somebody wakes. */
TEST_F(leases, real_clock)
{
	struct timewheel_event event, again;
	struct timewheel_token token;
	int fd;

	for (__u32 clock = 0; clock < TIMEWHEEL_CLOCK_MANUAL; clock++) {
		make(.clock = clock, .tick = TW_MS, .lease = 50 * TW_MS,
		     .max_attempts = 3);
		fd = tw_open_named(self->name, O_RDWR);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, tw_register(fd, ID, 5 * TW_MS, 0, NULL));
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ(1U, event.delivery);
		for (__u32 n = 2; n <= 3; n++) {
			ASSERT_EQ(1, tw_read(fd, &again, 1));
			EXPECT_EQ(n, again.delivery);
			EXPECT_LE(event.taken + 50 * TW_MS, again.deadline);
			EXPECT_LE(again.deadline, again.taken);
			event = again;
		}
		/* Nobody is woken for one that is buried; the next one comes. */
		ASSERT_EQ(0, tw_register(fd, 1, 100 * TW_MS, 0, NULL));
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ(1ULL, event.id);
		ASSERT_EQ(0, tw_get(fd, 0, ID, &token));
		EXPECT_EQ((__u32)TIMEWHEEL_STATE_BURIED, token.state);
		close(fd);
	}
}

/*
 * Death.
 */

/* What is held by a file is due at once when that is released, for the others. */
TEST_F(leases, last_close)
{
	int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	int copies[3];

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_register(self->fd, ID, 5 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 6));
	event = expect_event(fd, ID, 1, 5);
	for (int i = 0; i < 3; i++) {
		copies[i] = dup(fd);
		ASSERT_LE(0, copies[i]);
	}
	close(fd);
	for (int i = 0; i < 3; i++) {
		tw_expect_nothing(self->fd);
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
				.due = 6 + LEASE, .delivery = 1, .attempts = 1);
		ASSERT_EQ(0, tw_answer(copies[i], TIMEWHEEL_OP_EXTEND, 0, ID, 1,
				       0));
		close(copies[i]);
	}
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 6,
			.delivery = 1, .attempts = 1);
	tw_expect_figures(self->fd, .registered = 1, .pending = 1,
			  .delivered = 1, .returned = 1);
	EXPECT_TRUE(tw_readable(self->other));
	event = expect_event(self->other, ID, 2, 6);
	EXPECT_EQ(-ESTALE, answer(self->other, TIMEWHEEL_OP_ACK, ID, 1, 0));
	EXPECT_EQ(0, tw_ack(self->other, &event));
	tw_expect_balance(self->fd);
}

/* Only what the file still holds comes back, not what it held before. */
TEST_F(leases, only_what_is_held)
{
	int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	struct timewheel_event events[8];

	ASSERT_LE(0, fd);
	ASSERT_EQ(8UL, tw_register_many(self->fd, 0, 8, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	ASSERT_EQ(8, tw_read(fd, events, 8));
	EXPECT_EQ(0, answer(fd, TIMEWHEEL_OP_ACK, 0, 1, 0));
	EXPECT_EQ(0, answer(fd, TIMEWHEEL_OP_NACK, 1, 1, 500 * TW_SEC));
	EXPECT_EQ(0, answer(fd, TIMEWHEEL_OP_BURY, 2, 1, 0));
	EXPECT_EQ(0, order(fd, TIMEWHEEL_OP_DELETE, 3));
	EXPECT_EQ(0, answer(fd, TIMEWHEEL_OP_EXTEND, 4, 1, 200 * TW_SEC));
	/* One goes over to another file, when its lease is over. */
	for (__u64 id = 6; id < 8; id++)
		EXPECT_EQ(0, answer(fd, TIMEWHEEL_OP_EXTEND, id, 1, 300 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 100));
	expect_event(self->other, 5, 2, 1 + LEASE);
	/* And one is held here for the second time. */
	EXPECT_EQ(0, answer(fd, TIMEWHEEL_OP_NACK, 7, 1, 0));
	expect_event(fd, 7, 2, 100);
	close(fd);

	tw_expect_figures(self->fd, .registered = 8, .acked = 1, .nacked = 2,
			  .buried = 1, .deleted = 1, .held = 1, .pending = 4,
			  .delivered = 10, .lapsed = 1, .returned = 3);
	tw_expect_token(self->fd, 1, .state = TIMEWHEEL_STATE_PENDING, .due = 501,
			.delivery = 1, .attempts = 1);
	tw_expect_token(self->fd, 2, .state = TIMEWHEEL_STATE_BURIED, .delivery = 1,
			.attempts = 1);
	tw_expect_token(self->fd, 4, .state = TIMEWHEEL_STATE_PENDING, .due = 100,
			.delivery = 1, .attempts = 1);
	tw_expect_token(self->fd, 5, .state = TIMEWHEEL_STATE_HELD,
			.due = 100 + LEASE, .delivery = 2, .attempts = 2);
	tw_expect_token(self->fd, 6, .state = TIMEWHEEL_STATE_PENDING, .due = 100,
			.delivery = 1, .attempts = 1);
	tw_expect_token(self->fd, 7, .state = TIMEWHEEL_STATE_PENDING, .due = 100,
			.delivery = 2, .attempts = 2);
	ASSERT_EQ(3, tw_read(self->fd, events, 8));
	tw_expect_nothing(self->fd);
}

/* Files that hold nothing come and go, and take nothing with them. */
TEST_F(leases, files_that_hold_nothing)
{
	hold();
	for (int i = 0; i < 200; i++) {
		int fd = tw_open_named(self->name, i % 3);
		struct timewheel_event event;

		ASSERT_LE(0, fd);
		if (i % 3 != O_WRONLY) {
			ASSERT_EQ(0, fcntl(fd, F_SETFL, O_NONBLOCK));
			ASSERT_EQ(-EAGAIN, tw_ret(tw_read(fd, &event, 1)));
		}
		close(fd);
	}
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 35,
			.delivery = 1, .attempts = 1);
	/* One more that was given this one to answer, and only answers. */
	for (int i = 0; i < 50; i++) {
		int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);

		ASSERT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_EXTEND, TIMEWHEEL_OPF_ANY_FILE,
				       ID, 1, 0));
		close(fd);
		tw_expect_nothing(self->fd);
	}
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, 0));
	tw_expect_figures(self->fd, .registered = 1, .acked = 1,
			  .delivered = 1);
}

/* More than are walked in one step, of many files, of which some are closed. */
TEST_F_TIMEOUT(leases, many_files_hold_many, 120)
{
	enum { FILES = 20, EACH = 1000 };
	static __u8 came_again[FILES * EACH];
	struct timewheel_event events[64];
	int fds[FILES], n, again = 0;

	make(.max_tokens = FILES * EACH);
	ASSERT_EQ((size_t)FILES * EACH,
		  tw_register_many(self->fd, 0, FILES * EACH, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	for (int i = 0; i < FILES; i++) {
		fds[i] = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
		ASSERT_LE(0, fds[i]);
	}
	/* In turns, so that what each holds lies among the others'. */
	for (int i = 0; i < FILES * EACH; i++) {
		ASSERT_EQ(1, tw_read(fds[i % FILES], events, 1));
		ASSERT_EQ(0, tw_move(self->fd, 0, events[0].id, 0) >= 0);
		came_again[events[0].id] = i % FILES;
	}
	for (int i = 1; i < FILES; i += 2) {
		close(fds[i]);
		fds[i] = -1;
	}
	while ((n = tw_read(self->other, events, 64)) > 0) {
		for (int i = 0; i < n; i++, again++) {
			ASSERT_EQ(2U, events[i].delivery);
			ASSERT_EQ(1, came_again[events[i].id] % 2);
			came_again[events[i].id] = 0;
		}
	}
	EXPECT_EQ(FILES / 2 * EACH, again);
	tw_expect_figures(self->fd, .registered = FILES * EACH,
			  .held = FILES * EACH,
			  .delivered = FILES * EACH * 3 / 2,
			  .returned = FILES / 2 * EACH);
	for (int i = 0; i < FILES; i += 2)
		close(fds[i]);
	tw_expect_figures(self->fd, .registered = FILES * EACH,
			  .held = FILES / 2 * EACH,
			  .pending = FILES / 2 * EACH,
			  .delivered = FILES * EACH * 3 / 2,
			  .returned = FILES * EACH);
}

/* A child that opens the wheel by itself, reads @n events, and reads on or not. */
static pid_t fork_reader(const char *name, int n, bool on)
{
	int ready[2];
	pid_t child;
	char ok = 0;

	if (pipe2(ready, O_CLOEXEC))
		return -1;
	child = tw_fork();
	if (!child) {
		/* Written to: a read into a page that is still the parent's puts back. */
		struct timewheel_event event = {};
		int fd = tw_open_named(name, O_RDONLY);

		for (int i = 0; i < n; i++)
			if (fd < 0 || tw_read(fd, &event, 1) != 1)
				_exit(1);
		if (write(ready[1], &ok, 1) != 1)
			_exit(2);
		while (on)
			tw_read(fd, &event, 1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	if (child > 0 && read(ready[0], &ok, 1) != 1) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		child = -1;
	}
	close(ready[0]);
	return child;
}

/* Killed while it holds: the next one gets it at once, though no time passes. */
TEST_F(leases, killed_while_it_holds)
{
	struct timewheel_event events[8];
	struct tw_sleeper b;
	pid_t child, second;
	int fd = tw_open_named(self->name, O_RDWR);

	ASSERT_LE(0, fd);
	ASSERT_EQ(3UL, tw_register_many(self->fd, 0, 3, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	child = fork_reader(self->name, 2, true);
	ASSERT_LT(0, child);
	/* The third one, and then it sleeps in a read of its own. */
	tw_wait_asleep(child);
	tw_expect_figures(self->fd, .registered = 3, .held = 3, .delivered = 3);
	ASSERT_TRUE(tw_kill(child));
	tw_expect_figures(self->fd, .registered = 3, .pending = 3,
			  .delivered = 3, .returned = 3);
	ASSERT_EQ(3, tw_read(self->fd, events, 8));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(2U, events[i].delivery);
		EXPECT_EQ(1 * TW_SEC, events[i].deadline);
		EXPECT_EQ(1 * TW_SEC, events[i].taken);
	}
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_NACK,
				       TIMEWHEEL_OPF_BY_HANDLE, events[i].handle, 2,
				       0));

	/* Two hold one each; one of them dies, and who sleeps here is woken. */
	child = fork_reader(self->name, 1, false);
	second = fork_reader(self->name, 1, false);
	ASSERT_LT(0, child);
	ASSERT_LT(0, second);
	ASSERT_TRUE(tw_put_to_sleep(&b, fd, tw_sleep_in_read));
	ASSERT_TRUE(tw_kill(second));
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	ASSERT_EQ(1, b.ret);
	EXPECT_EQ(4U, b.event.delivery);
	tw_expect_nothing(self->fd);
	ASSERT_TRUE(tw_kill(child));
	ASSERT_EQ(1, tw_read(self->fd, events, 8));
	EXPECT_EQ(4U, events[0].delivery);
	EXPECT_NE(b.event.id, events[0].id);
	close(fd);
	tw_expect_balance(self->fd);
}

/* Killed in the read itself, while it waits for its memory: nothing is lost. */
TEST_F(leases, killed_while_it_reads)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timewheel_event events[8];
	struct timewheel_info info = {};
	pid_t child;

	ASSERT_NE(MAP_FAILED, (void *)pages);
	make(.max_attempts = 1);
	ASSERT_EQ(5UL, tw_register_many(self->fd, 0, 5, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		int fd = tw_open_named(self->name, O_RDONLY);

		if (tw_open_userfaultfd(pages, page) < 0)
			_exit(1);
		_exit(read(fd, pages, page) < 0);
	}
	for (int tries = 0; tries < 10000 && !info.put_back; tries++) {
		tw_sleep_ms(1);
		ASSERT_EQ(0, tw_info(self->fd, &info));
		if (waitpid(child, NULL, WNOHANG) == child)
			SKIP(return, "no userfaultfd for faults of the kernel");
	}
	EXPECT_EQ(5ULL, info.put_back);
	EXPECT_EQ(0ULL, info.taken);
	ASSERT_TRUE(tw_kill(child));
	/* It was not delivered: no attempt is lost, and none is buried. */
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0ULL, info.delivered);
	EXPECT_EQ(5ULL, info.pending);
	EXPECT_EQ(0ULL, info.buried);
	ASSERT_EQ(5, tw_read(self->fd, events, 8));
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(1U, events[i].delivery);
		EXPECT_EQ(0, tw_ack(self->fd, &events[i]));
	}
	tw_expect_balance(self->fd);
	munmap(pages, page);
}

/* A child that has the file by fork keeps what its parent read, and answers it. */
TEST_F(leases, fork_keeps)
{
	int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	int go[2];
	pid_t child;

	ASSERT_LE(0, fd);
	ASSERT_EQ(2UL, tw_register_many(self->fd, 0, 2, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	ASSERT_EQ(2, tw_read(fd, (struct timewheel_event[2]) {}, 2));
	ASSERT_EQ(0, pipe2(go, O_CLOEXEC));
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		char byte;

		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		if (tw_answer(fd, TIMEWHEEL_OP_ACK, 0, 0, 1, 0))
			_exit(2);
		if (read(go[0], &byte, 1) != 1)
			_exit(3);
		_exit(0);
	}
	close(fd);
	tw_expect_nothing(self->fd);
	tw_expect_figures(self->fd, .registered = 2, .held = 2, .delivered = 2);
	ASSERT_EQ(1, write(go[1], "", 1));
	for (int tries = 0; tries < 10000; tries++) {
		struct timewheel_info info;

		ASSERT_EQ(0, tw_info(self->fd, &info));
		if (info.acked)
			break;
		tw_sleep_ms(1);
	}
	tw_expect_figures(self->fd, .registered = 2, .held = 1, .acked = 1,
			  .delivered = 2);
	ASSERT_EQ(1, write(go[1], "", 1));
	ASSERT_EQ(0, tw_reap(child));
	expect_event(self->fd, 1, 2, 1);
	tw_expect_figures(self->fd, .registered = 2, .held = 1, .acked = 1,
			  .delivered = 3, .returned = 1);
	close(go[0]);
	close(go[1]);
}

/* So does a socket that has it on its way to somebody. */
TEST_F(leases, sent_file_keeps)
{
	int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK), sockets[2];

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				sockets));
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	expect_event(fd, ID, 1, 0);
	ASSERT_EQ(0, tw_send_fd(sockets[0], fd, 0));
	close(fd);
	tw_expect_nothing(self->fd);
	close(sockets[0]);
	tw_expect_nothing(self->fd);
	close(sockets[1]);
	/* Files in a socket that is gone are released by and by. */
	for (int tries = 0; tries < 10000 && !tw_readable(self->fd); tries++)
		tw_sleep_ms(1);
	expect_event(self->fd, ID, 2, 0);
}

TEST_F(leases, mapping_keeps)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	void *words;
	int fd;

	make(.flags = TIMEWHEEL_SETUP_TOUCH_WORDS, .max_tokens = page / 8);
	fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	words = mmap(NULL, page, PROT_READ, MAP_SHARED, fd,
		     TIMEWHEEL_MAP_WORDS);
	ASSERT_NE(MAP_FAILED, words);
	expect_event(fd, ID, 1, 0);
	close(fd);
	tw_expect_nothing(self->fd);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = LEASE,
			.delivery = 1, .attempts = 1);
	ASSERT_EQ(0, munmap(words, page));
	expect_event(self->fd, ID, 2, 0);
}

/* Closed while a read waits for its memory: what it then gets comes back. */
TEST_F(leases, closed_while_a_read_is_under_way)
{
	int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	const size_t page = sysconf(_SC_PAGESIZE);
	struct tw_slow_reader r;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	TW_START_SLOW_READER(&r, fd, tw_new_pages(page), page);
	/* The read keeps the file: it is released when the read returns. */
	close(fd);
	tw_expect_figures(self->fd, .registered = 1, .pending = 1, .put_back = 1);
	ASSERT_TRUE(tw_bring_pages(r.uffd, r.pages, r.size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	ASSERT_EQ((int)sizeof(struct timewheel_event), r.ret);
	expect_event(self->fd, ID, 2, 0);
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .delivered = 2,
			  .returned = 1, .put_back = 1);
	close(r.uffd);
	munmap(r.pages, r.size);
}

/* The wheel is destroyed while some hold and some are buried: all goes. */
TEST_F(leases, destroyed_while_held)
{
	long before = tw_refcnt();
	pid_t child;

	make(.max_tokens = TOKENS);
	ASSERT_EQ((size_t)TOKENS, tw_register_many(self->fd, 0, TOKENS, 0,
						   TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	child = fork_reader(self->name, 300, true);
	ASSERT_LT(0, child);
	for (__u64 id = 0; id < TOKENS; id += 7)
		order(self->fd, TIMEWHEEL_OP_BURY, id);
	ASSERT_EQ(0, tw_destroy_named(self->device, self->name));
	self->created = false;
	EXPECT_EQ(-ENODEV, answer(self->fd, TIMEWHEEL_OP_ACK, 1, 1, 0));
	EXPECT_EQ(-ENODEV, tw_ret(tw_control(self->fd, 0, 0)));
	ASSERT_TRUE(tw_kill(child));
	close(self->fd);
	close(self->other);
	self->fd = -1;
	self->other = -1;
	if (before >= 0)
		EXPECT_GT(before, tw_refcnt());
}

/*
 * P9: what is known of deliveries costs a pending token 8 bytes. There are so many
 * tokens that the table of ids, which doubles now and then, is as full as it gets.
 */
TEST_F(leases, bytes_of_a_pending_token)
{
	const __u64 n = 3 << 15;
	struct timewheel_info info;

	make(.max_tokens = n);
	ASSERT_EQ(n, tw_register_many(self->fd, 0, n, 0, TW_SEC));
	/* A worker of the kernel makes the table larger. */
	tw_sleep_ms(200);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(n, info.pending);
	EXPECT_GE(75ULL, info.bytes / n) {
		TH_LOG("%llu bytes for %llu tokens", info.bytes, n);
	}
}

/* A private wheel has leases as well; they end with it. */
TEST_F(leases, private_wheel)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = SLOTS, .tick = TW_SEC, .max_tokens = 300,
		.lease = LEASE * TW_SEC,
	};
	struct timewheel_event event;

	ASSERT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup));
	ASSERT_EQ(300UL, tw_register_many(fd, 0, 300, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 1));
	for (int i = 0; i < 300; i++) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		if (i % 3)
			ASSERT_EQ(0, tw_ack(fd, &event));
	}
	tw_expect_figures(fd, .registered = 300, .delivered = 300,
			  .acked = 200, .held = 100);
	close(fd);
}

TEST_HARNESS_MAIN
