// SPDX-License-Identifier: GPL-2.0-only
/*
 * Leases: a delivery is held for its reader until it has been answered, its lease is
 * over or its file is released. The tests try each answer from each state, each error,
 * and all figures after each step, on a MANUAL wheel of 1 s ticks, whose leases are
 * over when the test says so. Later tests have wheels of which no more deliveries may
 * be out, and at the end processes die.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <pthread.h>
#include <sched.h>
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
#define TOKENS		1000	/* number of tokens that a wheel takes */
#define ID		7
#define ABSENT		8
#define S64_LAST	0x7fffffffffffffffULL

/* Two files have the wheel open; its hand stands on tick 0. */
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

/* Makes a new wheel in the place of the old one. */
static void _make(struct __test_metadata *_metadata, FIXTURE_DATA(leases) *self,
		  struct timewheel_setup setup)
{
	destroy(self);
	setup = tw_hold_all(setup);
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

/* The parent destroys the wheel, however the test has ended. */
FIXTURE_TEARDOWN_PARENT(leases)
{
	int device = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

	if (self->created && !tw_in_process())
		EXPECT_EQ(0, tw_destroy_named(device, self->name));
	close(device);
}

static int answer(int fd, __u32 code, __u64 id, __u32 delivery, __u64 time)
{
	return tw_ret(tw_answer(fd, code, 0, id, delivery, time));
}

static int delete(int fd, __u64 id)
{
	return tw_ret(tw_answer(fd, TIMEWHEEL_OP_DELETE, 0, id, 0, 0));
}

/* Expects only one due event: delivery @delivery of token @id, due on tick @due. */
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
	EXPECT_EQ(0U, events[0].reserved);
	EXPECT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(info.now, events[0].taken);
	return events[0];
}

#define expect_event(fd, id, delivery, due)				\
	_expect_event(_metadata, fd, id, delivery, due, __LINE__)

/*
 * Registers token ID, and reads its event on tick 5: the first delivery is out until
 * 35.
 */
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
	EXPECT_EQ((__u32)TOKENS, info.max_held);
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

	/* The token is held for the lease, which begins when the token is taken. */
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

/* A token without an answer comes again when its lease is over, as the next delivery. */
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
		EXPECT_EQ(n + 1, event.attempts);
		EXPECT_EQ(handle, event.handle);
		EXPECT_EQ(70ULL, event.cookie);
		tw_expect_figures(self->fd, .registered = 1, .held = 1,
				  .delivered = n + 1, .lapsed = n);
	}
	EXPECT_EQ(-ESTALE, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 20, 0));
	EXPECT_EQ(0, answer(self->other, TIMEWHEEL_OP_ACK, ID, 21, 0));
	tw_expect_balance(self->fd);
}

/* An answer is in time until somebody has seen that the lease is over. */
TEST_F(leases, late_answers)
{
	static const __u32 codes[] = {
		TIMEWHEEL_OP_ACK, TIMEWHEEL_OP_NACK, TIMEWHEEL_OP_EXTEND,
		TIMEWHEEL_OP_DELETE,
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		const bool acks = codes[i] == TIMEWHEEL_OP_ACK;
		const bool nacks = codes[i] == TIMEWHEEL_OP_NACK;
		const bool deletes = codes[i] == TIMEWHEEL_OP_DELETE;

		make();
		hold();
		ASSERT_EQ(0, tw_advance(self->fd, 50));
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
				.due = 35, .delivery = 1, .attempts = 1);
		EXPECT_EQ(0, answer(self->fd, codes[i], ID, !deletes,
				    10 * TW_SEC)) {
			TH_LOG("operation %u", codes[i]);
		}
		tw_expect_nothing(self->fd);
		tw_expect_figures(self->fd, .registered = 1, .delivered = 1,
				  .acked = acks, .nacked = nacks, .pending = nacks,
				  .held = codes[i] == TIMEWHEEL_OP_EXTEND,
				  .deleted = deletes);
	}
	/* An answer is too late when a read of another reader has taken the token. */
	make();
	hold();
	ASSERT_EQ(0, tw_advance(self->fd, 50));
	expect_event(self->other, ID, 2, 35);
	for (size_t i = 0; i + 1 < ARRAY_SIZE(codes); i++)
		tw_expect_error(self->fd, ID, -ESTALE, .code = codes[i], .id = ID,
				.delivery = 1, .time = 10 * TW_SEC);
}

TEST_F(leases, nack)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_NACK, .id = ID, .delivery = 1, .time = 10 * TW_SEC,
	};
	struct timewheel_event event;

	/* A NACK takes a delay, which is rounded up to a tick. */
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

	/* A NACK with a delay of 0 makes the token due at once. */
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_NACK, TIMEWHEEL_OPF_BY_HANDLE,
			       event.handle, 2, 0));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_PENDING, .due = 20,
			.delivery = 2, .attempts = 2);
	EXPECT_TRUE(tw_readable(self->other));
	expect_event(self->other, ID, 3, 20);

	/* A NACK also takes a point of time, in the future or in the past. */
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
	EXPECT_EQ(5U, event.attempts);
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .nacked = 4,
			  .delivered = 5);

	/*
	 * A token that is pending again is like any other: it can be moved and
	 * cancelled.
	 */
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

	/* A time of 0 stands for the wheel's lease, from now on. */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, 0));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 90,
			.delivery = 1, .attempts = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 90));
	EXPECT_TRUE(tw_readable(self->other));
	expect_event(self->other, ID, 2, 90);
	/* The lease of another delivery is as long as any other. */
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 120,
			.delivery = 2, .attempts = 2);
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .delivered = 2,
			  .lapsed = 1);
}

/* An EXTEND tells when the lease ends, which is never earlier than before. */
TEST_F(leases, extend_never_shortens)
{
	const __u64 times[] = { 1, TW_SEC, 24 * TW_SEC, 0, 25 * TW_SEC };

	hold();
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, 50 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 10));
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		struct timewheel_op op = {
			.code = TIMEWHEEL_OP_EXTEND, .id = ID, .delivery = 1,
			.time = times[i],
		};

		ASSERT_EQ(0, tw_op(self->fd, &op));
		EXPECT_EQ(55 * TW_SEC, op.deadline);
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
				.due = 55, .delivery = 1, .attempts = 1);
	}
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, 45 * TW_SEC + 1));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 56,
			.delivery = 1, .attempts = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 55));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 56));
	expect_event(self->fd, ID, 2, 56);
}

/*
 * An EXTEND to a point of time ends the lease then: earlier, later, or at once if the
 * time has passed.
 */
TEST_F(leases, extend_to_a_point_of_time)
{
	const __u64 ends[] = { 50, 20, 11, 35, 90, 12 };

	hold();
	ASSERT_EQ(0, tw_advance(self->fd, 10));
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct timewheel_op op = {
			.code = TIMEWHEEL_OP_EXTEND, .id = ID, .delivery = 1,
			.flags = TIMEWHEEL_OPF_ABSOLUTE,
			.time = ends[i] * TW_SEC - TW_SEC / 4,
		};

		ASSERT_EQ(0, tw_op(self->other, &op));
		EXPECT_EQ(ends[i] * TW_SEC, op.deadline);
		tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
				.due = ends[i], .delivery = 1, .attempts = 1);
		tw_expect_nothing(self->fd);
	}
	ASSERT_EQ(0, tw_advance(self->fd, 12));
	expect_event(self->fd, ID, 2, 12);
	/* The point of time 0 has passed; it does not stand for the wheel's lease. */
	for (__u64 time = 0; time <= 12; time += 12) {
		__u32 delivery = time ? 3 : 2;

		ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_EXTEND,
				       TIMEWHEEL_OPF_ABSOLUTE, ID, delivery,
				       time * TW_SEC));
		EXPECT_TRUE(tw_readable(self->other));
		expect_event(self->other, ID, delivery + 1, 12);
	}
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .delivered = 4,
			  .lapsed = 3);
	tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_EXTEND,
			.flags = TIMEWHEEL_OPF_ABSOLUTE, .id = ID, .delivery = 4,
			.time = S64_LAST / TW_SEC * TW_SEC + 1);
}

/* A lease can be extended as far as the clock goes, by any number of steps. */
TEST_F(leases, extend_erange)
{
	const __u64 last = S64_LAST / TW_SEC * TW_SEC;
	const __u64 times[] = {
		last - 5 * TW_SEC + 1, last, S64_LAST, S64_LAST + 1,
		~0ULL - 5 * TW_SEC, ~0ULL,
	};

	hold();
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		tw_expect_error(self->fd, ID, -ERANGE, .code = TIMEWHEEL_OP_EXTEND,
				.id = ID, .delivery = 1, .time = times[i]);
	for (__u64 n = 1; n < 100; n++) {
		ASSERT_EQ(0, tw_advance(self->fd, 5 + n * LEASE - 1));
		ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1, 0));
	}
	tw_expect_figures(self->fd, .registered = 1, .held = 1, .delivered = 1);
	ASSERT_EQ(0, tw_advance(self->fd, 5));
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 1,
			    last - 5 * TW_SEC));
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD,
			.due = last / TW_SEC, .delivery = 1, .attempts = 1);
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

/*
 * A token is deleted in each of its states; later answers to its delivery are too late.
 */
TEST_F(leases, delete)
{
	struct timewheel_op op = { .code = TIMEWHEEL_OP_DELETE, .id = ID };
	__u64 handle;

	/* The token is pending. */
	ASSERT_EQ(0, tw_register(self->fd, ID, 5 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_op(self->other, &op));
	EXPECT_EQ(5 * TW_SEC, op.deadline);
	tw_expect_figures(self->fd, .registered = 1, .deleted = 1);
	EXPECT_EQ(-ENOENT, delete(self->fd, ID));

	/* The token is due. */
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, delete(self->fd, ID));
	tw_expect_nothing(self->fd);

	/* The token is held, and deleted by the file that holds it or by another file. */
	handle = hold().handle;
	tw_expect_error(self->fd, ID, -ENOENT, .code = TIMEWHEEL_OP_DELETE,
			.id = ABSENT);
	tw_expect_error(self->fd, ID, -ESTALE, .code = TIMEWHEEL_OP_DELETE,
			.flags = TIMEWHEEL_OPF_BY_HANDLE,
			.handle = handle ^ 1ULL << 40);
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

	/* The token is pending after a NACK. */
	hold();
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 1, 10 * TW_SEC));
	ASSERT_EQ(0, delete(self->fd, ID));
	tw_expect_figures(self->fd, .registered = 5, .deleted = 5, .nacked = 1,
			  .delivered = 3);
	ASSERT_EQ(0, tw_advance(self->fd, 1000));
	tw_expect_nothing(self->fd);
	/* The room of the deleted tokens is there for other tokens. */
	EXPECT_EQ((size_t)TOKENS, tw_register_many(self->fd, 0, TOKENS, 0,
						   TW_SEC));
}

static const __u32 answers[] = {
	TIMEWHEEL_OP_ACK, TIMEWHEEL_OP_NACK, TIMEWHEEL_OP_EXTEND,
};

/* An answer has to name the delivery that is out. */
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
			tw_expect_error(self->other, ID, -ESTALE,
					.code = answers[i],
					.flags = TIMEWHEEL_OPF_BY_HANDLE,
					.handle = event.handle, .delivery = wrong[j],
					.time = TW_SEC);
		}
		/* No delivery of a pending token is out. */
		for (__u32 delivery = 0; delivery < 3; delivery++)
			tw_expect_error(self->fd, 1, -ESTALE, .code = answers[i],
					.id = 1, .delivery = delivery, .time = TW_SEC);
	}

	/* No delivery of this token is out after its answer. */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 1, 10 * TW_SEC));
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
				.id = ID, .delivery = 1, .time = TW_SEC);
	ASSERT_EQ(0, tw_advance(self->fd, 15));
	expect_event(self->fd, ID, 2, 15);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		tw_expect_error(self->fd, ID, -ESTALE, .code = answers[i],
				.id = ID, .delivery = 1, .time = TW_SEC);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 2, 0));
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		tw_expect_error(self->fd, 1, -ENOENT, .code = answers[i],
				.id = ID, .delivery = 2, .time = TW_SEC);
		tw_expect_error(self->fd, 1, -ESTALE, .code = answers[i],
				.flags = TIMEWHEEL_OPF_BY_HANDLE,
				.handle = event.handle, .delivery = 2,
				.time = TW_SEC);
	}
	/*
	 * A newer token with this id is another token, with the same numbers of
	 * deliveries.
	 */
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

/* The number of a delivery is the right to answer it, by any file of the wheel. */
TEST_F(leases, answers_by_another_file)
{
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		for (int by_handle = 0; by_handle < 2; by_handle++) {
			__u32 flags = by_handle ? TIMEWHEEL_OPF_BY_HANDLE : 0;
			struct timewheel_event event;

			make();
			event = hold();
			tw_expect_error(self->other, ID, -ESTALE,
					.code = answers[i], .flags = flags,
					.id = ID, .handle = event.handle,
					.delivery = 2, .time = TW_SEC);
			EXPECT_EQ(0, tw_answer(self->other, answers[i], flags,
					       by_handle ? event.handle : ID, 1,
					       100 * TW_SEC));
			tw_expect_figures(self->fd, .registered = 1,
					  .delivered = 1,
					  .acked = answers[i] == TIMEWHEEL_OP_ACK,
					  .nacked = answers[i] == TIMEWHEEL_OP_NACK,
					  .pending = answers[i] == TIMEWHEEL_OP_NACK,
					  .held = answers[i] == TIMEWHEEL_OP_EXTEND);
		}
	}
	/*
	 * The last answer was an EXTEND: the file that answered does not hold the
	 * delivery.
	 */
	close(self->other);
	self->other = -1;
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 105,
			.delivery = 1, .attempts = 1);
	tw_expect_nothing(self->fd);
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, 0));
}

/* Another process answers the deliveries that this process has read. */
TEST_F(leases, answers_by_another_process)
{
	struct timewheel_event events[3];
	pid_t child;

	NEEDS_KERNEL("a child shares a wheel");
	ASSERT_EQ(3UL, tw_register_many(self->fd, 0, 3, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	ASSERT_EQ(3, tw_read(self->fd, events, 3));
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		int fd = tw_open_named(self->name, O_RDWR);

		_exit(tw_ack(fd, &events[0]) ||
		      answer(fd, TIMEWHEEL_OP_NACK, events[1].id, 1, 50 * TW_SEC) ||
		      answer(fd, TIMEWHEEL_OP_EXTEND, events[2].id, 1, 70 * TW_SEC) ||
		      tw_ret(tw_ack(fd, &events[0])) != -ESTALE);
	}
	ASSERT_EQ(0, tw_reap(child));
	tw_expect_token(self->fd, events[1].id, .state = TIMEWHEEL_STATE_PENDING,
			.due = 51, .delivery = 1, .attempts = 1);
	tw_expect_token(self->fd, events[2].id, .state = TIMEWHEEL_STATE_HELD,
			.due = 71, .delivery = 1, .attempts = 1);
	tw_expect_figures(self->fd, .registered = 3, .acked = 1, .nacked = 1,
			  .pending = 1, .held = 1, .delivered = 3);
}

/* Flags, numbers of deliveries and periods are refused where they do not belong. */
TEST_F(leases, what_does_not_go_with_the_operation)
{
	const struct {
		__u32 code, flags, delivery;
		__u64 period;
	} cases[] = {
		{ TIMEWHEEL_OP_ACK, TIMEWHEEL_OPF_ABSOLUTE, 1 },
		{ TIMEWHEEL_OP_DELETE, TIMEWHEEL_OPF_ABSOLUTE, 0 },
		{ TIMEWHEEL_OP_ACK, 4, 1 }, { TIMEWHEEL_OP_NACK, 4, 1 },
		{ TIMEWHEEL_OP_EXTEND, 8, 1 },
		{ TIMEWHEEL_OP_DELETE, 1U << 31, 0 },
		{ TIMEWHEEL_OP_REGISTER, 0, 1 }, { TIMEWHEEL_OP_TOUCH, 0, 1 },
		{ TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0, 1 },
		{ TIMEWHEEL_OP_MOVE, 0, 1 }, { TIMEWHEEL_OP_CANCEL, 0, 1 },
		{ TIMEWHEEL_OP_DELETE, 0, 1 },
		/* The wheel has no periods. */
		{ TIMEWHEEL_OP_REGISTER, 0, 0, TW_SEC },
	};

	hold();
	ASSERT_EQ(0, tw_register(self->fd, 1, 100 * TW_SEC, 0, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* Only the case's own field is wrong in the operation. */
		bool answers = cases[i].code >= TIMEWHEEL_OP_ACK &&
			       cases[i].code <= TIMEWHEEL_OP_EXTEND;
		bool registers = cases[i].code == TIMEWHEEL_OP_REGISTER ||
			cases[i].code == TIMEWHEEL_OP_TOUCH_OR_REGISTER;

		tw_expect_error(self->fd, ID, -EINVAL, .code = cases[i].code,
				.flags = cases[i].flags, .delivery = cases[i].delivery,
				.id = registers ? ABSENT : answers ? ID : 1,
				.time = TW_SEC, .period = cases[i].period);
	}
	for (__u32 code = 0; code <= TIMEWHEEL_OP_DELETE; code++) {
		bool answers = code >= TIMEWHEEL_OP_ACK &&
			       code <= TIMEWHEEL_OP_EXTEND;

		tw_expect_error(self->fd, ID, -EINVAL, .code = code,
				.delivery = answers,
				.id = !code ? ABSENT : answers ? ID : 1,
				.time = TW_SEC, .reserved = 1);
	}
}

static const __u32 all_codes[] = {
	TIMEWHEEL_OP_ACK, TIMEWHEEL_OP_NACK, TIMEWHEEL_OP_EXTEND,
	TIMEWHEEL_OP_DELETE,
};

TEST_F(leases, wheel_without_leases)
{
	make(.lease = 0, .max_held = 0);
	ASSERT_EQ(0, tw_register(self->fd, ID, 100 * TW_SEC, 0, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(all_codes); i++) {
		for (__u32 delivery = 0; delivery < 2; delivery++) {
			if (delivery && all_codes[i] == TIMEWHEEL_OP_DELETE)
				continue;
			tw_expect_error(self->fd, ID, -EINVAL,
					.code = all_codes[i], .id = ID,
					.delivery = delivery, .time = TW_SEC);
			tw_expect_error(self->fd, ID, -EINVAL,
					.code = all_codes[i], .id = ABSENT,
					.delivery = delivery, .time = TW_SEC);
		}
	}
	/* A read ends the token, as on any wheel without leases. */
	ASSERT_EQ(0, tw_advance(self->fd, 100));
	expect_event(self->fd, ID, 0, 100);
	tw_expect_figures(self->fd, .registered = 1, .delivered = 1);
}

/* A file that is open for reading only gets deliveries, and cannot answer them. */
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
			.delivery = all_codes[i] != TIMEWHEEL_OP_DELETE,
		};

		EXPECT_EQ(-EBADF, tw_ret(ioctl(reader, TIMEWHEEL_IOC_OP, &op)));
		EXPECT_EQ(-EBADF, tw_ret(tw_batch(reader, &op, 1, NULL)));
		EXPECT_EQ(0, op.result);
	}
	tw_expect_token(reader, ID, .state = TIMEWHEEL_STATE_HELD, .due = LEASE,
			.delivery = 1, .attempts = 1);
	EXPECT_EQ(0, tw_ack(self->fd, &event));
	close(reader);
}

/* A file that answers need not be open for reading. */
TEST_F(leases, write_only_file)
{
	int writer = tw_open_named(self->name, O_WRONLY);
	struct timewheel_event event;

	ASSERT_LE(0, writer);
	hold();
	EXPECT_EQ(-EBADF, tw_ret(tw_read(writer, &event, 1)));
	EXPECT_EQ(0, answer(writer, TIMEWHEEL_OP_EXTEND, ID, 1, 50 * TW_SEC));
	EXPECT_EQ(0, answer(writer, TIMEWHEEL_OP_NACK, ID, 1, 0));
	expect_event(self->fd, ID, 2, 5);
	EXPECT_EQ(0, answer(writer, TIMEWHEEL_OP_ACK, ID, 2, 0));
	tw_expect_figures(self->fd, .registered = 1, .acked = 1, .nacked = 1,
			  .delivered = 2);
	close(writer);
}

/* The id belongs to the token until the token has ended. */
TEST_F(leases, id_stays_taken)
{
	static const __u32 codes[] = {
		TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_CANCEL,
	};
	struct timewheel_event event = hold();

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
				.handle = event.handle, .time = 50 * TW_SEC);
	}
	EXPECT_EQ(-ENOENT, tw_ret(tw_touch(self->fd, 0, ID)));
	EXPECT_EQ(-ESTALE, tw_ret(tw_touch(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
					   event.handle)));
	ASSERT_EQ(0, tw_advance(self->fd, 35));
	expect_event(self->fd, ID, 2, 35);
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, delete(self->fd, ID));
	EXPECT_EQ(0, tw_register(self->fd, ID, TW_SEC, 0, NULL));

	/* The id also stays taken on a periodic wheel. */
	make(.flags = TIMEWHEEL_SETUP_PERIODS);
	hold();
	tw_expect_error(self->fd, ID, -EEXIST, .code = TIMEWHEEL_OP_REGISTER,
			.id = ID, .time = TW_SEC, .period = TW_SEC);
}

/* Held tokens count among the tokens for which the wheel has room. */
TEST_F(leases, enospc)
{
	struct timewheel_event event;

	make(.max_tokens = 2, .max_held = 2);
	hold();
	ASSERT_EQ(0, tw_register(self->fd, 1, 0, 0, NULL));
	tw_expect_error(self->fd, ID, -ENOSPC, .code = TIMEWHEEL_OP_REGISTER,
			.id = ABSENT);
	event = expect_event(self->fd, 1, 1, 5);
	tw_expect_error(self->fd, ID, -ENOSPC, .code = TIMEWHEEL_OP_REGISTER,
			.id = ABSENT);
	ASSERT_EQ(0, tw_ack(self->fd, &event));
	EXPECT_EQ(0, tw_register(self->fd, ABSENT, 0, 0, NULL));
}

/* A lease ends on a tick, and never before its whole length has passed. */
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

/* Lapsed tokens and new tokens come in the order of their due ticks. */
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

/* A lease is over when its end has come, and not before, even if the hand is put back. */
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

/*
 * An event that a read has not copied was not delivered: its token is not held, and has
 * no attempt.
 */
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

	NEEDS_KERNEL("EFAULT");
	ASSERT_NE(MAP_FAILED, (void *)pages);
	ASSERT_EQ(0, munmap(end, page));
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
	EXPECT_EQ(0ULL, info.held + info.taken + info.delivered + info.lapsed +
		  info.returned);
	for (__u64 id = 0; id < N; id++) {
		const struct timewheel_token *token = tw_find(self->fd, id);

		ASSERT_NE(NULL, token);
		ASSERT_EQ(0U, token->attempts);
		ASSERT_EQ((__u32)TIMEWHEEL_STATE_PENDING, token->state);
		ASSERT_EQ((1 + id) * TW_SEC, token->deadline);
	}
	/*
	 * Tokens whose events were copied are held, and the tokens behind them are not.
	 */
	ASSERT_EQ((int)(7 * event), tw_ret(read(self->fd, end - 7 * event - 5,
						N * event)));
	for (__u64 id = 0; id < N; id++) {
		const struct timewheel_token *token = tw_find(self->fd, id);

		ASSERT_NE(NULL, token);
		ASSERT_EQ(id < 7, token->attempts);
		ASSERT_EQ((__u32)(id < 7 ? TIMEWHEEL_STATE_HELD : TIMEWHEEL_STATE_PENDING),
			  token->state);
	}
	/* A read that fails is no attempt. */
	ASSERT_EQ(N - 7, tw_read(self->fd, events, N));
	for (int i = 0; i < N - 7; i++) {
		ASSERT_EQ(7ULL + i, events[i].id);
		ASSERT_EQ(1U, events[i].attempts);
		ASSERT_EQ(0, tw_ack(self->fd, &events[i]));
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ((__u64)N, info.delivered);
	EXPECT_EQ(7ULL, info.held);
	EXPECT_EQ(N - 7ULL, info.acked);
	tw_expect_balance(self->fd);
	munmap(pages, 2 * page);
}

/* A faulting read also puts back lapsed tokens, which come again. */
TEST_F(leases, faulting_read_of_a_lapsed_one)
{
	const struct iovec nowhere = { (void *)8, 10 * sizeof(struct timewheel_event) };
	struct timewheel_event event;

	NEEDS_KERNEL("EFAULT");
	hold();
	ASSERT_EQ(0, tw_advance(self->fd, 40));
	for (int i = 0; i < 10; i++)
		ASSERT_EQ(-EFAULT, tw_ret(readv(self->fd, &nowhere, 1)));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ((__u64)ID, event.id);
	EXPECT_LT(1U, event.delivery);
	EXPECT_EQ(2U, event.attempts);
	EXPECT_EQ(2U, tw_find(self->fd, ID)->attempts);
	EXPECT_EQ(-ESTALE, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, 0));
	EXPECT_EQ(0, tw_ack(self->fd, &event));
	tw_expect_balance(self->fd);
}

/* Other readers get all tokens at once while a reader waits for its memory. */
TEST_F(leases, slow_reader_keeps_nothing)
{
	enum { N = 100 };
	const size_t page = sysconf(_SC_PAGESIZE);
	int fd = tw_open_named(self->name, O_RDONLY | O_NONBLOCK);
	struct timewheel_event events[N];
	struct tw_slow_reader r;
	struct timewheel_info info;

	NEEDS_KERNEL("a read waits for its memory");
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

	NEEDS_KERNEL("a read waits for its memory");
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

	make(.flags = TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES);
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
						    0, all_codes[i] !=
						    TIMEWHEEL_OP_DELETE, TW_SEC)));
	ASSERT_EQ(0, tw_get(self->fd, TIMEWHEEL_OPF_BY_HANDLE, handle, &token));
	EXPECT_EQ((__u32)TIMEWHEEL_STATE_HELD, token.state);
	EXPECT_EQ(1U, token.delivery);
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_NACK, TIMEWHEEL_OPF_BY_HANDLE,
			       handle, 1, 0));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(2U, event.delivery);
	ASSERT_EQ(0, tw_ack(self->fd, &event));
	EXPECT_EQ(-ESTALE, tw_ret(tw_ack(self->fd, &event)));
	ASSERT_EQ(0, tw_answer(self->fd, TIMEWHEEL_OP_DELETE, TIMEWHEEL_OPF_BY_HANDLE,
			       second, 0, 0));
	tw_expect_figures(self->fd, .registered = 2, .acked = 1, .deleted = 1,
			  .nacked = 1, .delivered = 2);
}

/* Touch words count for pending tokens, and change no lease. */
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
	/* A held token is touched by its word, and its lease ends as before. */
	ASSERT_EQ(0, tw_advance(self->fd, 20));
	words[(__u32)handle] = (handle & 0xffffffff00000000) | 20;
	ASSERT_EQ(0, tw_advance(self->fd, 9 + LEASE - 1));
	tw_expect_nothing(self->fd);
	words[(__u32)handle] = (handle & 0xffffffff00000000) | 38;
	ASSERT_EQ(0, tw_advance(self->fd, 9 + LEASE));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(2U, event.delivery);
	EXPECT_EQ(-ENOENT, tw_ret(tw_touch(self->fd, 0, ID)));
	/* A token that is pending again can be touched by a call and by its word. */
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
	/* A stamp that was stored before a NACK is void. */
	words[(__u32)handle] = (handle & 0xffffffff00000000) | 52;
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 3, 3 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 55));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(4U, event.delivery);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 4, 3 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 56));
	words[(__u32)handle] = (handle & 0xffffffff00000000) | 56;
	ASSERT_EQ(0, tw_advance(self->fd, 61));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, 62));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(5U, event.delivery);
	EXPECT_EQ(0, tw_ack(self->fd, &event));
	tw_expect_figures(self->fd, .registered = 1, .acked = 1, .nacked = 3,
			  .delivered = 5, .lapsed = 1);
	munmap(words, (size + 4095) & ~4095UL);
}

/* Each answer in a batch has its own result. */
TEST_F(leases, batch_of_answers)
{
	enum { N = 210 };
	struct timewheel_event events[N];
	struct timewheel_op ops[N];
	__u32 done = 0;

	/* All of @events is in memory before the read, which then puts nothing back. */
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
		ops[i].code = answers[i % 3];
		ops[i].time = 50 * TW_SEC;
	}
	ASSERT_EQ(0, tw_batch(self->fd, ops, N, &done));
	EXPECT_EQ((__u32)N, done);
	for (int i = 0; i < N; i++)
		EXPECT_EQ(i % 5 == 4 ? -ESTALE : 0, ops[i].result);
	tw_expect_figures(self->fd, .registered = N, .delivered = N,
			  .acked = N / 15 * 4, .nacked = N / 15 * 4,
			  .pending = N / 15 * 4, .held = N / 15 * 7);
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
	/* A NACK is announced, too. */
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	ASSERT_EQ(0, answer(self->other, TIMEWHEEL_OP_NACK, ID, 10, 0));
	EXPECT_EQ(1, epoll_wait(epoll, &event, 1, 0));
	close(epoll);
}

/* The end of a lease, a NACK, and the release of a file wake a reader that sleeps. */
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

	/* The delivery that another file held comes back. */
	ASSERT_EQ(0, answer(fd, TIMEWHEEL_OP_NACK, ID, 4, 0));
	expect_event(self->other, ID, 5, 40);
	ASSERT_TRUE(tw_put_to_sleep(&b, fd, tw_sleep_in_read));
	close(self->other);
	self->other = -1;
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	ASSERT_EQ(1, b.ret);
	EXPECT_EQ(6U, b.event.delivery);
	close(fd);
}

/*
 * On a clock that goes by itself a lease does not end early, and its end wakes a
 * reader.
 */
TEST_F(leases, real_clock)
{
	struct timewheel_event event, again;
	int fd;

	for (__u32 clock = 0; clock < TIMEWHEEL_CLOCK_MANUAL; clock++) {
		make(.clock = clock, .tick = TW_MS, .lease = 50 * TW_MS);
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
		close(fd);
	}
}

/* Attempts count each way in which a delivery can be in vain. */
TEST_F(leases, attempts)
{
	struct timewheel_event event = hold();
	int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);

	ASSERT_LE(0, fd);
	EXPECT_EQ(1U, event.attempts);
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 1, 0));
	EXPECT_EQ(2U, expect_event(self->fd, ID, 2, 5).attempts);
	ASSERT_EQ(0, tw_advance(self->fd, 35));
	EXPECT_EQ(3U, expect_event(fd, ID, 3, 35).attempts);
	close(fd);
	EXPECT_EQ(4U, expect_event(self->fd, ID, 4, 35).attempts);
	tw_expect_token(self->fd, ID, .state = TIMEWHEEL_STATE_HELD, .due = 65,
			.delivery = 4, .attempts = 4);
	/* An EXTEND is no attempt, nor is a move or a touch of a pending token. */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_EXTEND, ID, 4, 0));
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_NACK, ID, 4, 10 * TW_SEC));
	ASSERT_EQ(0, tw_move(self->fd, 0, ID, 20 * TW_SEC));
	ASSERT_EQ(0, tw_touch(self->fd, 0, ID));
	ASSERT_EQ(0, tw_advance(self->fd, 55));
	EXPECT_EQ(5U, expect_event(self->fd, ID, 5, 55).attempts);
	/* The attempts of another token with this id begin anew. */
	ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 5, 0));
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	EXPECT_EQ(1U, expect_event(self->fd, ID, 1, 55).attempts);
}

/*
 * Returns the tick on which the first lease ends, or 0 if no delivery is out. @end has
 * the tick for each delivery that is out, and 0 for all others.
 */
static __u64 first_end(const __u64 *end, __u32 n)
{
	__u64 first = 0;

	for (__u32 i = 0; i < n; i++)
		if (end[i] && (!first || end[i] < first))
			first = end[i];
	return first;
}

/* Many deliveries are held, extended, answered and deleted in any order. */
TEST_F_TIMEOUT(leases, leases_end_in_order, 120)
{
	struct timewheel_event events[64];
	__u64 seed = time(NULL), end[TOKENS], hand = 1;
	struct timewheel_info info;
	int n;

	TH_LOG("seed %llu", seed);
	ASSERT_EQ((size_t)TOKENS, tw_register_many(self->fd, 0, TOKENS, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, hand));
	ASSERT_EQ(TOKENS, tw_read_all(self->fd));
	for (__u32 i = 0; i < TOKENS; i++)
		end[i] = hand + LEASE;
	for (__u32 i = 0; i < 4 * TOKENS; i++) {
		const __u64 id = tw_random(&seed) % TOKENS;
		const __u64 time = tw_random(&seed) % 1000;

		if (!(tw_random(&seed) % 4)) {
			ASSERT_EQ(end[id] ? 0 : -ENOENT,
				  tw_ret(tw_answer(self->fd, TIMEWHEEL_OP_EXTEND,
						   TIMEWHEEL_OPF_ABSOLUTE, id, 1,
						   (hand + 1 + time) * TW_SEC)));
			if (end[id])
				end[id] = hand + 1 + time;
		} else if (tw_random(&seed) % 6) {
			ASSERT_EQ(end[id] ? 0 : -ENOENT,
				  answer(self->fd, TIMEWHEEL_OP_EXTEND, id, 1,
					 time * TW_SEC));
			if (end[id] && end[id] < hand + (time ?: LEASE))
				end[id] = hand + (time ?: LEASE);
		} else if (end[id]) {
			ASSERT_EQ(0, i % 2 ? delete(self->fd, id) :
				  answer(self->fd, TIMEWHEEL_OP_ACK, id, 1, 0));
			end[id] = 0;
		}
		ASSERT_EQ(0, tw_info(self->fd, &info));
		ASSERT_EQ(first_end(end, TOKENS) * TW_SEC, info.next);
	}
	/* Each lease ends, and none ends early. */
	while (first_end(end, TOKENS)) {
		__u64 last = 0;

		ASSERT_EQ(0, tw_info(self->fd, &info));
		ASSERT_EQ(first_end(end, TOKENS) * TW_SEC, info.next);
		hand += 1 + tw_random(&seed) % 40;
		ASSERT_EQ(0, tw_advance(self->fd, hand));
		ASSERT_EQ(first_end(end, TOKENS) <= hand, tw_readable(self->other));
		while ((n = tw_read(self->other, events, 64)) > 0) {
			for (int i = 0; i < n; i++) {
				ASSERT_EQ(2U, events[i].delivery);
				ASSERT_EQ(end[events[i].id] * TW_SEC,
					  events[i].deadline);
				ASSERT_LE(last, events[i].deadline);
				last = events[i].deadline;
				end[events[i].id] = 0;
				ASSERT_EQ(0, tw_ack(self->fd, &events[i]));
			}
		}
		ASSERT_TRUE(!first_end(end, TOKENS) ||
			    first_end(end, TOKENS) > hand);
	}
	tw_expect_balance(self->fd);
	tw_expect_nothing(self->fd);
}

/* The wheels of these tests have a limit on the deliveries that may be out. */

/* Expects @n events of the ids that follow *id, each due on the tick of its id. */
static void expect_ids(struct __test_metadata *_metadata, int fd, __u64 *id, int n)
{
	for (int i = 0; i < n; i++) {
		struct timewheel_event event;

		ASSERT_EQ(1, tw_read(fd, &event, 1));
		ASSERT_EQ(++*id, event.id);
		ASSERT_EQ(*id * TW_SEC, event.deadline);
		ASSERT_EQ(1U, event.delivery);
	}
}

TEST_F_TIMEOUT(leases, as_many_as_may_be_out, 120)
{
	static const __u32 most[] = { 1, 2, 63, 64, 65, 128, 300, TOKENS - 1 };

	for (size_t i = 0; i < ARRAY_SIZE(most); i++) {
		struct timewheel_event events[TOKENS];
		struct timewheel_info info;
		__u64 id = 0;

		make(.max_held = most[i]);
		for (__u64 n = TOKENS; n; n--)
			ASSERT_EQ(0, tw_register(self->fd, n, n * TW_SEC, 0, NULL));
		ASSERT_EQ(0, tw_advance(self->fd, TOKENS));
		/* A reader with room for more events gets no more. */
		ASSERT_EQ(most[i], tw_read_all(self->fd));
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(most[i], info.max_held);
		EXPECT_EQ((__u64)most[i], info.held);
		EXPECT_EQ((__u64)TOKENS - most[i], info.pending);
		EXPECT_EQ((TOKENS + LEASE) * TW_SEC, info.next);
		tw_expect_nothing(self->fd);
		tw_expect_nothing(self->other);
		ASSERT_EQ(0, tw_advance(self->fd, TOKENS + LEASE - 1));
		tw_expect_nothing(self->fd);

		/* Each answer makes room for one delivery. */
		for (id = most[i]; id < TOKENS && id < 3 * most[i];) {
			__u64 old = id - most[i] + 1;

			ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, old, 1, 0));
			ASSERT_TRUE(tw_readable(self->other));
			expect_ids(_metadata, self->other, &id, 1);
			tw_expect_nothing(self->fd);
		}
		/* All held tokens come back at once, and as many go out. */
		close(self->fd);
		close(self->other);
		self->fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
		self->other = -1;
		ASSERT_LE((int)most[i], tw_read(self->fd, events, TOKENS));
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ((__u64)most[i], info.held);
		tw_expect_nothing(self->fd);
		tw_expect_balance(self->fd);
	}
}

enum end { ACKED, NACKED, DELETED, LAPSED, RELEASED, ENDS };

/* Ends the delivery of ID, which file @fd holds, in the way @way. */
static void end_delivery(struct __test_metadata *_metadata, int wheel, int fd,
			 enum end way)
{
	switch (way) {
	case ACKED:
		ASSERT_EQ(0, answer(wheel, TIMEWHEEL_OP_ACK, ID, 1, 0));
		break;
	case NACKED:
		ASSERT_EQ(0, answer(wheel, TIMEWHEEL_OP_NACK, ID, 1, 100 * TW_SEC));
		break;
	case DELETED:
		ASSERT_EQ(0, delete(wheel, ID));
		break;
	case LAPSED:
		ASSERT_EQ(0, tw_advance(wheel, 5 + LEASE));
		break;
	default:
		ASSERT_EQ(0, close(fd));
	}
}

/*
 * Each end of a delivery makes room, and wakes a reader that waits for room in any way.
 */
TEST_F(leases, each_end_makes_room)
{
	static void (*const sleeps[])(struct tw_sleeper *s) = {
		tw_sleep_in_read, tw_sleep_in_poll, tw_sleep_in_epoll,
		tw_sleep_in_epoll,
	};

	for (enum end way = 0; way < ENDS; way++) {
		for (size_t how = 0; how < ARRAY_SIZE(sleeps); how++) {
			struct epoll_event event = {
				.events = EPOLLIN | (how == 3 ? EPOLLET : 0),
			};
			int epoll = epoll_create1(EPOLL_CLOEXEC), holder, fd;
			struct tw_sleeper s;

			make(.max_held = 1);
			holder = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
			fd = tw_open_named(self->name, O_RDWR);
			ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
			ASSERT_EQ(0, tw_register(self->fd, ID, 5 * TW_SEC, 0, NULL));
			ASSERT_EQ(0, tw_advance(self->fd, 5));
			EXPECT_EQ((__u32)EPOLLIN, tw_epoll_now(epoll));
			expect_event(holder, ID, 1, 5);
			/*
			 * Token 1 is due already, and token 2 comes due on the next
			 * tick.
			 */
			ASSERT_EQ(0, tw_register_at(self->fd, 1, 3 * TW_SEC, 0));
			ASSERT_EQ(0, tw_register_at(self->fd, 2, 6 * TW_SEC, 0));
			ASSERT_EQ(0, tw_advance(self->fd, 6));
			tw_expect_nothing(self->fd);
			EXPECT_EQ(0U, tw_epoll_now(epoll));
			ASSERT_TRUE(tw_put_to_sleep(&s, how < 2 ? fd : epoll,
						    sleeps[how]));
			end_delivery(_metadata, self->fd, holder, way);
			ASSERT_EQ(0, pthread_join(s.thread, NULL));
			ASSERT_EQ(1, s.ret) {
				TH_LOG("end %d, sleeper %zu", way, how);
			}
			if (how)
				ASSERT_EQ(1, tw_read(self->fd, &s.event, 1));
			EXPECT_EQ(1ULL, s.event.id);
			tw_expect_nothing(self->other);
			EXPECT_EQ(0U, tw_epoll_now(epoll));
			close(epoll);
			close(fd);
			if (way != RELEASED)
				close(holder);
		}
	}
}

/* A reader that hangs keeps all deliveries for no longer than its lease. */
TEST_F(leases, hung_reader_holds_all)
{
	enum { MOST = 300, LAST = TOKENS };
	struct timewheel_event hung[MOST], events[64];
	__u64 last = 0;
	int n, got = 0;

	make(.max_held = MOST);
	memset(hung, 0, sizeof(hung));
	for (__u64 i = 1; i <= TOKENS; i++)
		ASSERT_EQ(0, tw_register(self->fd, i * 7 % TOKENS + 1,
					 (i * 7 % TOKENS + 1) * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, LAST));
	for (n = 0; n < MOST; n += got)
		ASSERT_LT(0, got = tw_read(self->other, hung + n, MOST - n));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, LAST + LEASE - 1));
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, LAST + LEASE));

	/*
	 * Tokens that were due before these leases ended come before the tokens that
	 * were held.
	 */
	got = 0;
	while ((n = tw_read(self->fd, events, 64)) > 0) {
		for (int i = 0; i < n; i++, got++) {
			bool late = got >= TOKENS - MOST;

			ASSERT_LE(last, events[i].deadline);
			last = events[i].deadline;
			ASSERT_EQ(late ? 2U : 1U, events[i].delivery);
			ASSERT_EQ((late ? LAST + LEASE : MOST + 1 + got) * TW_SEC,
				  last);
			ASSERT_EQ(late, events[i].id <= MOST);
			ASSERT_EQ(0, tw_ack(self->fd, &events[i]));
		}
	}
	EXPECT_EQ(TOKENS, got);
	for (int i = 0; i < MOST; i++)
		EXPECT_EQ(-ESTALE, tw_ret(tw_ack(self->other, &hung[i])));
	tw_expect_figures(self->fd, .registered = TOKENS, .acked = TOKENS,
			  .delivered = TOKENS + MOST, .lapsed = MOST);
}

/*
 * P7: while no more deliveries may be out, neither the timer nor a program looks in
 * vain.
 */
TEST_F(leases, no_callbacks_while_all_is_out)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd;
	struct epoll_event event = { .events = EPOLLIN };
	struct timewheel_info before, info;
	struct timewheel_event held;
	struct tw_sleeper s;

	make(.clock = TIMEWHEEL_CLOCK_MONOTONIC, .tick = TW_MS,
	     .lease = 3600 * TW_SEC, .max_held = 1);
	fd = tw_open_named(self->name, O_RDWR);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->other, &event));
	ASSERT_EQ(0, tw_register(fd, ID, 0, 0, NULL));
	ASSERT_EQ(1, tw_read(fd, &held, 1));
	ASSERT_TRUE(tw_put_to_sleep(&s, fd, tw_sleep_in_read));
	ASSERT_EQ(0, tw_info(fd, &before));
	for (__u64 id = 100; id < 150; id++)
		ASSERT_EQ(0, tw_register(fd, id, (id - 100) * 4 * TW_MS, 0, NULL));
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 300));
	tw_expect_nothing(self->other);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(before.callbacks, info.callbacks);
	EXPECT_EQ(before.quiet, info.quiet);
	EXPECT_LE(held.taken + 3600 * TW_SEC, info.next);

	/* After that an answer is enough to wake the reader. */
	ASSERT_EQ(0, tw_ack(self->fd, &held));
	ASSERT_EQ(0, pthread_join(s.thread, NULL));
	ASSERT_EQ(1, s.ret);
	EXPECT_EQ(100ULL, s.event.id);
	close(epoll);
	close(fd);
}

/*
 * On a clock that goes by itself the timer goes off once for each lease, and not in
 * between.
 */
TEST_F(leases, leases_end_by_the_timer)
{
	const __u64 lease = 100 * TW_MS;
	struct timewheel_info before, info;
	struct timewheel_event held;
	struct tw_sleeper s;
	int fd;

	make(.clock = TIMEWHEEL_CLOCK_MONOTONIC, .tick = TW_MS, .lease = lease,
	     .max_held = 1);
	fd = tw_open_named(self->name, O_RDWR);
	ASSERT_EQ(0, tw_register(fd, ID, 0, 0, NULL));
	ASSERT_EQ(1, tw_read(self->other, &held, 1));
	ASSERT_EQ(0, tw_info(fd, &before));
	for (__u64 id = 100; id < 150; id++)
		ASSERT_EQ(0, tw_register(fd, id, (id - 100) * TW_MS, 0, NULL));
	for (__u64 id = 100; id < 104; id++) {
		__u64 taken = held.taken;

		ASSERT_TRUE(tw_start_sleeper(&s, fd, tw_sleep_in_read));
		ASSERT_EQ(0, pthread_join(s.thread, NULL));
		ASSERT_EQ(1, s.ret);
		EXPECT_EQ(id, s.event.id);
		held = s.event;
		EXPECT_LE(taken + lease, held.taken);
	}
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_LE(info.callbacks - before.callbacks,
		  (info.now - before.now) / lease + 1);
	close(fd);
}

/* A read that fails while all but a few deliveries are out puts back its tokens. */
TEST_F(leases, faulting_read_beside_held_ones)
{
	enum { MOST = 10, N = 30 };
	const struct iovec nowhere = { (void *)8, 64 * sizeof(struct timewheel_event) };
	const size_t page = sysconf(_SC_PAGESIZE);
	const size_t size = sizeof(struct timewheel_event);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *end = pages + page;
	struct timewheel_info info;
	__u64 id = 0;

	NEEDS_KERNEL("EFAULT");
	ASSERT_NE(MAP_FAILED, (void *)pages);
	ASSERT_EQ(0, munmap(end, page));
	for (int out = MOST - 1; out >= MOST - 4; out--) {
		const int room = MOST - out;

		make(.max_held = MOST);
		for (__u64 i = 1; i <= N; i++)
			ASSERT_EQ(0, tw_register(self->fd, i, i * TW_SEC, 0, NULL));
		ASSERT_EQ(0, tw_advance(self->fd, N));
		id = 0;
		expect_ids(_metadata, self->fd, &id, out);
		for (int i = 0; i < 20; i++)
			ASSERT_EQ(-EFAULT, tw_ret(readv(self->other, &nowhere, 1)));
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ((__u64)out, info.held);
		EXPECT_EQ((__u64)N - out, info.pending);
		EXPECT_EQ(0ULL, info.taken);
		EXPECT_TRUE(tw_readable(self->other));
		/*
		 * The read gets as many events as it has memory for, and the other
		 * tokens stay.
		 */
		ASSERT_EQ(room == 1 ? -EFAULT : (int)((room - 1) * size),
			  tw_ret(read(self->other, end - (room - 1) * size - 5,
				      N * size)));
		id += room - 1;
		expect_ids(_metadata, self->other, &id, 1);
		tw_expect_nothing(self->other);
		tw_expect_nothing(self->fd);
		for (__u64 i = 1; i <= N; i++) {
			ASSERT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, i, 1, 0));
			if (id < N)
				expect_ids(_metadata, self->fd, &id, 1);
		}
		tw_expect_figures(self->fd, .registered = N, .acked = N,
				  .delivered = N, .put_back = info.put_back + 1);
	}
	munmap(pages, page);
}

/*
 * A reader that waits for its memory takes no place among the deliveries that may be
 * out.
 */
TEST_F(leases, slow_reader_takes_no_room)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	int fd = -1;
	struct timewheel_event event;
	struct tw_slow_reader r;

	NEEDS_KERNEL("a read waits for its memory");
	make(.max_held = 1);
	fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	ASSERT_EQ(0, tw_register(self->fd, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	TW_START_SLOW_READER(&r, fd, tw_new_pages(page), page);
	event = expect_event(self->other, ID, 1, 0);
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_ack(self->other, &event));
	ASSERT_TRUE(tw_bring_pages(r.uffd, r.pages, r.size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	ASSERT_EQ((int)sizeof(event), r.ret);
	memcpy(&event, r.pages, sizeof(event));
	EXPECT_EQ(1ULL, event.id);
	EXPECT_EQ(1U, event.delivery);
	tw_expect_nothing(self->fd);
	close(fd);
	expect_event(self->fd, 1, 2, 1);
	close(r.uffd);
	munmap(r.pages, r.size);
}

/* Readers of one wheel answer, fail, or go away with the deliveries that they hold. */
static struct crew {
	const char *name;
	atomic_uint acked;
	atomic_bool over;
} crew;

static void *read_and_ack(void *arg)
{
	struct timewheel_event events[4] = {};
	int fd = tw_open_named(crew.name, O_RDWR), n;

	while ((n = tw_read(fd, events, ARRAY_SIZE(events))) > 0)
		for (int i = 0; i < n; i++)
			crew.acked += !tw_ack(fd, &events[i]);
	if (errno != ENODEV)
		tw_fail("read: %s", strerror(errno));
	close(fd);
	return arg;
}

static void *read_nowhere(void *arg)
{
	const struct iovec nowhere = { (void *)8, 4 * sizeof(struct timewheel_event) };
	int fd = tw_open_named(crew.name, O_RDONLY | O_NONBLOCK);

	while (!crew.over)
		if (readv(fd, &nowhere, 1) > 0)
			tw_fail("a read to nowhere");
	close(fd);
	return arg;
}

static void *read_and_leave(void *arg)
{
	struct timewheel_event event = {};

	while (!crew.over) {
		int fd = tw_open_named(crew.name, O_RDONLY | O_NONBLOCK);

		tw_read(fd, &event, 1);
		close(fd);
	}
	return arg;
}

/*
 * No reader that sleeps is forgotten, whatever makes room for the delivery that the reader
 * waits for. No time passes, and no other call comes, that could wake the reader.
 */
TEST_F_TIMEOUT(leases, no_reader_is_forgotten, 240)
{
	static void *(*const jobs[])(void *arg) = {
		read_and_ack, read_and_ack, read_nowhere, read_and_leave,
	};
	pthread_t threads[ARRAY_SIZE(jobs)];

	NEEDS_KERNEL("EFAULT");
	/*
	 * Only one thread fails or leaves, because two threads would make up for each
	 * other.
	 */
	for (size_t other = 2; other < ARRAY_SIZE(jobs); other++) {
		const size_t used[] = { 0, 1, other };

		make(.max_held = 1);
		memset(&crew, 0, sizeof(crew));
		crew.name = self->name;
		for (size_t i = 0; i < ARRAY_SIZE(used); i++)
			ASSERT_EQ(0, pthread_create(&threads[i], NULL,
						    jobs[used[i]], NULL));
		for (__u64 id = 0; id < tw_scaled(20000); id++) {
			ASSERT_EQ(0, tw_register(self->fd, id, 0, 0, NULL));
			for (int tries = 0; crew.acked <= id; tries++) {
				ASSERT_GT(100000, tries) {
					TH_LOG("token %llu, beside %zu", id, other);
				}
				sched_yield();
				usleep(tries < 100 ? 0 : 100);
			}
		}
		crew.over = true;
		ASSERT_EQ(0, tw_destroy_named(self->device, self->name));
		self->created = false;
		for (size_t i = 0; i < ARRAY_SIZE(used); i++)
			ASSERT_EQ(0, pthread_join(threads[i], NULL));
	}
	EXPECT_EQ(0, tw_failures);
}

/* In these tests files are released, and processes die. */

/*
 * Deliveries that a file holds are due at once, for other readers, when the file is
 * released.
 */
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

/* Only deliveries that the file still holds come back, not its earlier deliveries. */
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
	EXPECT_EQ(0, answer(self->other, TIMEWHEEL_OP_ACK, 2, 1, 0));
	EXPECT_EQ(0, delete(fd, 3));
	EXPECT_EQ(0, answer(fd, TIMEWHEEL_OP_EXTEND, 4, 1, 200 * TW_SEC));
	/* Token 5 goes over to another file when its lease is over. */
	for (__u64 id = 6; id < 8; id++)
		EXPECT_EQ(0, answer(fd, TIMEWHEEL_OP_EXTEND, id, 1, 300 * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 100));
	expect_event(self->other, 5, 2, 1 + LEASE);
	/* Token 7 is held by this file for the second time. */
	EXPECT_EQ(0, answer(fd, TIMEWHEEL_OP_NACK, 7, 1, 0));
	expect_event(fd, 7, 2, 100);
	close(fd);

	tw_expect_figures(self->fd, .registered = 8, .acked = 2, .nacked = 2,
			  .deleted = 1, .held = 1, .pending = 4,
			  .delivered = 10, .lapsed = 1, .returned = 3);
	tw_expect_token(self->fd, 1, .state = TIMEWHEEL_STATE_PENDING, .due = 501,
			.delivery = 1, .attempts = 1);
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
	/* A file that only answers takes nothing with it either. */
	for (int i = 0; i < 50; i++) {
		int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);

		ASSERT_EQ(0, answer(fd, TIMEWHEEL_OP_EXTEND, ID, 1, 0));
		close(fd);
		tw_expect_nothing(self->fd);
	}
	EXPECT_EQ(0, answer(self->fd, TIMEWHEEL_OP_ACK, ID, 1, 0));
	tw_expect_figures(self->fd, .registered = 1, .acked = 1,
			  .delivered = 1);
}

/* Many files hold more deliveries than are walked in one step; some files are closed. */
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
	/* The files read in turns, so that their deliveries are mixed in the wheel. */
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

/*
 * Forks a child that opens the wheel by itself and reads @n events. If @on, the child
 * reads on.
 */
static pid_t fork_reader(const char *name, int n, bool on)
{
	int ready[2];
	pid_t child;
	char ok = 0;

	if (pipe2(ready, O_CLOEXEC))
		return -1;
	child = tw_fork();
	if (!child) {
		/*
		 * The child writes to the event here, because a read into a page that
		 * is still the parent's puts its tokens back.
		 */
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

/*
 * A reader is killed while it holds deliveries: the next reader gets them at once,
 * though no time passes.
 */
TEST_F(leases, killed_while_it_holds)
{
	struct timewheel_event events[8];
	struct tw_sleeper b;
	pid_t child, second;
	int fd = tw_open_named(self->name, O_RDWR);

	NEEDS_KERNEL("other processes see a wheel");
	ASSERT_LE(0, fd);
	ASSERT_EQ(3UL, tw_register_many(self->fd, 0, 3, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	child = fork_reader(self->name, 2, true);
	ASSERT_LT(0, child);
	/* The child reads the third event, and then sleeps in a read. */
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

	/*
	 * Two children hold one delivery each. The death of one child wakes the reader
	 * here.
	 */
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

/* A process is killed in its read, while it waits for its memory: no token is lost. */
TEST_F(leases, killed_while_it_reads)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timewheel_event events[8];
	struct timewheel_info info = {};
	pid_t child;

	NEEDS_KERNEL("other processes see a wheel");
	ASSERT_NE(MAP_FAILED, (void *)pages);
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
	/* Tokens that were put back were not delivered, and the read was no attempt. */
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0ULL, info.delivered);
	EXPECT_EQ(5ULL, info.pending);
	ASSERT_EQ(5, tw_read(self->fd, events, 8));
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(1U, events[i].delivery);
		EXPECT_EQ(1U, events[i].attempts);
		EXPECT_EQ(0, tw_ack(self->fd, &events[i]));
	}
	tw_expect_balance(self->fd);
	munmap(pages, page);
}

/*
 * A child that has the file by fork keeps the deliveries of its parent, and may answer
 * them.
 */
TEST_F(leases, fork_keeps)
{
	int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	int go[2];
	pid_t child;

	NEEDS_KERNEL("a child shares a wheel");
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

/*
 * A socket that has a file on its way to somebody keeps the deliveries of the file,
 * too.
 */
TEST_F(leases, sent_file_keeps)
{
	int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK), sockets[2];

	NEEDS_KERNEL("an fd is passed on");
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
	/* The kernel releases files in a socket that is gone by and by. */
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

/* A file is closed while a read waits for its memory: the later delivery comes back. */
TEST_F(leases, closed_while_a_read_is_under_way)
{
	int fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	const size_t page = sysconf(_SC_PAGESIZE);
	struct tw_slow_reader r;

	NEEDS_KERNEL("a read waits for its memory");
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_register(self->fd, ID, 0, 0, NULL));
	TW_START_SLOW_READER(&r, fd, tw_new_pages(page), page);
	/* The read keeps the file, which is released when the read returns. */
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

/* A wheel is destroyed while some of its tokens are held: all of its tokens are gone. */
TEST_F(leases, destroyed_while_held)
{
	long before = tw_refcnt();
	pid_t child;

	NEEDS_KERNEL("other processes see a wheel");
	make(.max_tokens = TOKENS);
	ASSERT_EQ((size_t)TOKENS, tw_register_many(self->fd, 0, TOKENS, 0,
						   TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	child = fork_reader(self->name, 300, true);
	ASSERT_LT(0, child);
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
 * P9: a pending token costs 8 bytes more where it can be delivered with a lease. There
 * are so many tokens that the table of ids, which doubles now and then, is as full as
 * it gets.
 */
TEST_F(leases, bytes_of_a_pending_token)
{
	const __u64 n = 3 << 15;
	struct timewheel_info info;

	make(.max_tokens = n, .max_held = 1);
	ASSERT_EQ(n, tw_register_many(self->fd, 0, n, 0, TW_SEC));
	/* A worker of the kernel makes the table larger. */
	tw_sleep_ms(200);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(n, info.pending);
	EXPECT_GE(75ULL, info.bytes / n) {
		TH_LOG("%llu bytes for %llu tokens", info.bytes, n);
	}
}

/* A private wheel has leases as well, which end with the wheel. */
TEST_F(leases, private_wheel)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = SLOTS, .tick = TW_SEC, .max_tokens = 300,
		.lease = LEASE * TW_SEC, .max_held = 300,
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
