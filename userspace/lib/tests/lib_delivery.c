// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's answers to deliveries, periodic tokens, pause and drain: each does
 * what its name says, and each of its errors comes when it should. What leases and
 * periods promise is tested with the device.
 */
#include "lib_test.h"

#define NAME		"lib-delivery"
#define LEASE		(10 * SEC)
#define MAX_HELD	2

/* A time beyond 2^63 ns from any now. */
#define TOO_LATE	(1ULL << 63)

static const unsigned int by_handle = TIMEWHEEL_OPF_BY_HANDLE;

FIXTURE(delivery)
{
	struct tw_wheel *wheel;
	struct tw_wheel *other;
	struct tw_wheel *plain;
	struct tw_events *events;
	struct timewheel_token token;
	uint64_t handle;
};

/* A named wheel, open twice, that has delivered token 7 to @wheel on tick 101. */
FIXTURE_SETUP(delivery)
{
	struct timewheel_setup setup = manual;

	self->plain = open_wheel(&manual);
	setup.lease = LEASE;
	setup.max_held = MAX_HELD;
	setup.flags = TIMEWHEEL_SETUP_PERIODS;
	self->wheel = open_new(NAME, &setup);
	ASSERT_NE(NULL, self->wheel);
	self->other = tw_wheel_open_named(NAME, O_RDWR);
	ASSERT_NE(NULL, self->other);
	self->events = tw_events_new(4);
	ASSERT_EQ(0, register_token(self->wheel, 7, SEC, 9, 0, &self->handle));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 101));
	ASSERT_EQ(1, tw_events_read(self->events, self->wheel, 0));
	ASSERT_EQ(1, tw_events_at(self->events, 0)->delivery);
}

FIXTURE_TEARDOWN(delivery)
{
	tw_wheel_close(self->plain);
	tw_wheel_close(self->wheel);
	tw_wheel_close(self->other);
	tw_events_free(self->events);
	tw_wheel_destroy(NAME);
}

/* Puts the hand on @tick. Returns the number of token 7's delivery, 0 when none comes. */
static unsigned int deliver(struct tw_wheel *wheel, struct tw_events *events,
			    uint64_t tick)
{
	if (tw_wheel_advance(wheel, tick) < 0 ||
	    tw_events_read(events, wheel, 0) != 1 ||
	    tw_events_at(events, 0)->id != 7)
		return 0;
	return tw_events_at(events, 0)->delivery;
}

TEST_F(delivery, ack)
{
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->token));
	EXPECT_EQ(TIMEWHEEL_STATE_HELD, self->token.state);
	EXPECT_EQ(111 * SEC, self->token.lease_end);
	EXPECT_EQ(0, self->token.deadline);
	EXPECT_EQ(10 * SEC, self->token.left);
	EXPECT_EQ(1, self->token.delivery);
	EXPECT_EQ(0, RUN(self->wheel, ack, 7, 1, 0));
	EXPECT_ERR(ENOENT, tw_wheel_get(self->wheel, 7, 0, &self->token));
	EXPECT_EQ(0, deliver(self->wheel, self->events, 200));
	EXPECT_EQ(1, info_of(self->wheel).acked);
	EXPECT_EQ(0, info_of(self->wheel).held);
}

TEST_F(delivery, ack_by_handle)
{
	EXPECT_EQ(0, RUN(self->wheel, ack, self->handle, 1, by_handle));
	EXPECT_EQ(1, info_of(self->wheel).acked);
}

/* A token is due again after the delay of its nack, as another delivery. */
TEST_F(delivery, nack)
{
	EXPECT_EQ(0, RUN(self->wheel, nack, 7, 1, 5 * SEC, 0));
	EXPECT_EQ(0, deliver(self->wheel, self->events, 105));
	EXPECT_EQ(2, deliver(self->wheel, self->events, 106));
	EXPECT_EQ(0, RUN(self->wheel, nack, self->handle, 2, 120 * SEC,
			 by_handle | TIMEWHEEL_OPF_ABSOLUTE));
	EXPECT_EQ(0, deliver(self->wheel, self->events, 119));
	EXPECT_EQ(3, deliver(self->wheel, self->events, 120));
	EXPECT_EQ(2, info_of(self->wheel).nacked);
}

/* Each delivery is counted, without a limit. */
TEST_F(delivery, attempts)
{
	for (unsigned int n = 1; n < 20; n++) {
		EXPECT_EQ(n, tw_events_at(self->events, 0)->attempts);
		ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->token));
		EXPECT_EQ(n, self->token.attempts);
		EXPECT_EQ(n, self->token.delivery);
		EXPECT_EQ(0, RUN(self->wheel, nack, 7, n, 0, 0));
		EXPECT_EQ(n + 1, deliver(self->wheel, self->events, 101));
	}
}

/* Due tokens beyond max_held wait until an answer makes room. */
TEST_F(delivery, max_held)
{
	EXPECT_EQ(MAX_HELD, info_of(self->wheel).max_held);
	for (unsigned int id = 8; id < 11; id++)
		ASSERT_EQ(0, register_token(self->wheel, id, 0, 0, 0,
					    &self->handle));
	EXPECT_EQ(1, tw_events_read(self->events, self->other, 0));
	EXPECT_EQ(MAX_HELD, info_of(self->wheel).held);
	EXPECT_EQ(0, tw_events_read(self->events, self->other, 0));
	EXPECT_FALSE(readable(self->other));
	EXPECT_EQ(0, RUN(self->wheel, ack, 7, 1, 0));
	EXPECT_TRUE(readable(self->other));
	EXPECT_EQ(1, tw_events_read(self->events, self->other, 0));
}

TEST_F(delivery, extend)
{
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 105));
	EXPECT_EQ(0, RUN(self->wheel, extend, 7, 1, 0, 0));
	EXPECT_EQ(0, deliver(self->wheel, self->events, 114));
	EXPECT_EQ(0, RUN(self->wheel, extend, self->handle, 1, 30 * SEC,
			 by_handle));
	EXPECT_EQ(0, deliver(self->wheel, self->events, 143));
	EXPECT_EQ(2, deliver(self->other, self->events, 144));
	EXPECT_ERR(ESTALE, RUN(self->wheel, extend, 7, 1, 0, 0));
}

/* A token that is held can be deleted: its reader learns of it by the error of its answer. */
TEST_F(delivery, delete)
{
	EXPECT_LE(0, RUN(self->wheel, delete, 7, 0));
	EXPECT_ERR(ENOENT, RUN(self->wheel, ack, 7, 1, 0));
	EXPECT_ERR(ESTALE, RUN(self->wheel, ack, self->handle, 1,
			       by_handle));
	ASSERT_EQ(0, register_token(self->wheel, 7, SEC, 0, 0, &self->handle));
	EXPECT_LE(0, RUN(self->wheel, delete, self->handle, by_handle));
	EXPECT_EQ(2, info_of(self->wheel).deleted);
	EXPECT_EQ(0, info_of(self->wheel).pending);
}

/* After the lease another reader gets the token, and the first reader's answer is too late. */
TEST_F(delivery, lease_over)
{
	EXPECT_EQ(0, deliver(self->other, self->events, 110));
	EXPECT_EQ(2, deliver(self->other, self->events, 111));
	EXPECT_EQ(1, info_of(self->wheel).lapsed);
	EXPECT_ERR(ESTALE, RUN(self->wheel, ack, 7, 1, 0));
	EXPECT_ERR(ESTALE, RUN(self->wheel, nack, 7, 1, 0, 0));
	EXPECT_EQ(0, RUN(self->other, ack, 7, 2, 0));
}

/* The open file holds a token, and every file that is open for writing may answer. */
TEST_F(delivery, whose)
{
	struct tw_wheel *dupped = tw_wheel_open_fd(dup(tw_wheel_fd(self->wheel)));

	NEEDS_KERNEL("an fd of a wheel makes another one");
	ASSERT_NE(NULL, dupped);
	EXPECT_EQ(0, RUN(dupped, extend, 7, 1, 0, 0));
	EXPECT_EQ(0, RUN(self->other, extend, 7, 1, 0, 0));
	EXPECT_EQ(0, RUN(self->other, nack, 7, 1, 0, 0));
	EXPECT_EQ(2, deliver(dupped, self->events, 101));
	EXPECT_EQ(0, RUN(self->other, ack, 7, 2, 0));
	tw_wheel_close(dupped);
}

/* When the last fd of an open file is closed, the tokens that it held are due at once. */
TEST_F(delivery, close_gives_back)
{
	struct tw_wheel *third = tw_wheel_open_fd(dup(tw_wheel_fd(self->wheel)));

	NEEDS_KERNEL("an fd of a wheel makes another one");
	ASSERT_NE(NULL, third);
	tw_wheel_close(self->wheel);
	self->wheel = NULL;
	EXPECT_EQ(0, deliver(self->other, self->events, 102));
	tw_wheel_close(third);
	EXPECT_EQ(2, deliver(self->other, self->events, 102));
	EXPECT_EQ(1, info_of(self->other).returned);
}

TEST_F(delivery, errors)
{
	struct tw_wheel *plain = self->plain, *wheel = self->wheel;
	const unsigned int unknown = 1U << 31;

	ASSERT_EQ(0, RUN(plain, register, 7, SEC, 0, 0));
	EXPECT_ERR(EINVAL, RUN(plain, ack, 7, 1, 0));
	EXPECT_ERR(EINVAL, RUN(plain, nack, 7, 1, 0, 0));
	EXPECT_ERR(EINVAL, RUN(plain, extend, 7, 1, 0, 0));
	EXPECT_ERR(EINVAL, RUN(plain, delete, 7, 0));

	EXPECT_ERR(EINVAL, RUN(wheel, ack, 7, 1, unknown));
	EXPECT_ERR(EINVAL, RUN(wheel, nack, 7, 1, 0, unknown));
	EXPECT_ERR(EINVAL, RUN(wheel, extend, 7, 1, 0, unknown));
	EXPECT_ERR(EINVAL, RUN(wheel, delete, 7, TIMEWHEEL_OPF_ABSOLUTE));

	EXPECT_ERR(ENOENT, RUN(wheel, ack, 8, 1, 0));
	EXPECT_ERR(ENOENT, RUN(wheel, delete, 8, 0));
	EXPECT_ERR(ESTALE, RUN(wheel, ack, 7, 2, 0));
	EXPECT_ERR(EINVAL, RUN(wheel, ack, 7, 1, TIMEWHEEL_OPF_ABSOLUTE));
	EXPECT_ERR(ERANGE, RUN(wheel, nack, 7, 1, TOO_LATE, 0));
	EXPECT_ERR(ERANGE, RUN(wheel, extend, 7, 1, TOO_LATE, 0));
	/* None of the refused calls has changed anything. */
	EXPECT_EQ(0, RUN(wheel, ack, 7, 1, 0));
}

/* A wheel opened for reading cannot be changed, and neither can a destroyed one. */
TEST_F(delivery, read_only)
{
	struct tw_wheel *reader = tw_wheel_open_named(NAME, O_RDONLY);

	ASSERT_NE(NULL, reader);
	EXPECT_ERR(EBADF, RUN(reader, ack, 7, 1, 0));
	EXPECT_ERR(EBADF, tw_wheel_pause(reader));
	EXPECT_ERR(EBADF, tw_wheel_resume(reader));
	EXPECT_ERR(EBADF, tw_wheel_drain(reader));
	EXPECT_ERR(EBADF, tw_wheel_undrain(reader));
	tw_wheel_close(reader);
	ASSERT_EQ(0, tw_wheel_destroy(NAME));
	EXPECT_ERR(ENODEV, RUN(self->wheel, ack, 7, 1, 0));
	EXPECT_ERR(ENODEV, tw_wheel_pause(self->wheel));
	EXPECT_ERR(ENODEV, tw_wheel_drain(self->wheel));
}

/* A periodic token comes again after each ack, until it is cancelled. */
TEST_F(delivery, periodic)
{
	struct timewheel_op op;

	ASSERT_LE(0, RUN(self->wheel, delete, 7, 0));
	tw_op_register_periodic(&op, 7, 2 * SEC, 3 * SEC, 5, 0);
	ASSERT_EQ(0, tw_wheel_run(self->wheel, &op));
	EXPECT_NE(0, op.handle);
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->token));
	EXPECT_EQ(3 * SEC, self->token.period);
	EXPECT_EQ(103 * SEC, self->token.base);
	EXPECT_EQ(103 * SEC, self->token.deadline);
	for (unsigned int n = 0; n < 5; n++) {
		EXPECT_EQ(0, deliver(self->wheel, self->events, 102 + 3 * n));
		EXPECT_EQ(n + 1, deliver(self->wheel, self->events, 103 + 3 * n));
		EXPECT_EQ(5, tw_events_at(self->events, 0)->cookie);
		EXPECT_EQ(op.handle, tw_events_at(self->events, 0)->handle);
		EXPECT_LE(0, RUN(self->wheel, ack, 7, n + 1, 0));
	}
	EXPECT_EQ(0, RUN(self->wheel, cancel, 7, 0));
	EXPECT_EQ(0, deliver(self->wheel, self->events, 300));
}

/* The next deadline is a period after the deadline before, whenever that event was acked. */
TEST_F(delivery, periodic_after_a_late_ack)
{
	ASSERT_LE(0, RUN(self->wheel, delete, 7, 0));
	ASSERT_EQ(0, RUN(self->wheel, register_periodic, 7, 110 * SEC, 3 * SEC,
			 0, TIMEWHEEL_OPF_ABSOLUTE));
	EXPECT_EQ(1, deliver(self->wheel, self->events, 110));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 112));
	EXPECT_LE(0, RUN(self->wheel, ack, 7, 1, 0));
	EXPECT_EQ(2, deliver(self->wheel, self->events, 113));
	EXPECT_EQ(0, tw_events_at(self->events, 0)->missed);

	/* One event comes, for the last of the periods that were missed meanwhile. */
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 120));
	EXPECT_LE(0, RUN(self->wheel, ack, 7, 2, 0));
	EXPECT_EQ(3, deliver(self->wheel, self->events, 120));
	EXPECT_EQ(1, tw_events_at(self->events, 0)->missed);
	EXPECT_EQ(119 * SEC, tw_events_at(self->events, 0)->deadline);
	EXPECT_EQ(1, info_of(self->wheel).missed);
}

TEST_F(delivery, periodic_errors)
{
	struct tw_wheel *wheel = self->wheel;
	struct timewheel_op op;

	tw_op_register_periodic(&op, 8, SEC, SEC, 0, 0);
	op.timeout = SEC;
	EXPECT_ERR(EINVAL, tw_wheel_run(wheel, &op));
	EXPECT_ERR(EINVAL, RUN(self->plain, register_periodic, 8, SEC, SEC, 0, 0));
	EXPECT_ERR(EINVAL, RUN(wheel, register_periodic, 8, SEC, SEC - 1, 0, 0));
	EXPECT_ERR(EINVAL, RUN(wheel, register_periodic, 8, SEC, SEC, 0,
			       by_handle));
	EXPECT_ERR(ERANGE, RUN(wheel, register_periodic, 8, SEC, TOO_LATE, 0, 0));
	EXPECT_ERR(EEXIST, RUN(wheel, register_periodic, 7, SEC, SEC, 0, 0));
	ASSERT_EQ(0, RUN(wheel, register_periodic, 8, SEC, SEC, 0, 0));
	EXPECT_ERR(EINVAL, tw_wheel_touch(wheel, 8, 0));
	ASSERT_EQ(0, tw_wheel_drain(wheel));
	EXPECT_ERR(ESHUTDOWN, RUN(wheel, register_periodic, 9, SEC, SEC, 0, 0));
}

/* A pause holds for all processes that have the wheel open, and due tokens wait. */
TEST_F(delivery, pause_and_resume)
{
	ASSERT_EQ(0, tw_wheel_pause(self->wheel));
	ASSERT_EQ(0, tw_wheel_pause(self->other));
	EXPECT_EQ(TIMEWHEEL_CONTROL_PAUSED, info_of(self->other).state);
	EXPECT_EQ(0, RUN(self->wheel, nack, 7, 1, 0, 0));
	EXPECT_FALSE(readable(self->other));
	EXPECT_EQ(0, deliver(self->other, self->events, 102));
	EXPECT_EQ(0, tw_events_read(self->events, self->wheel, MS));
	EXPECT_EQ(0, tw_wheel_resume(self->other));
	EXPECT_EQ(0, tw_wheel_resume(self->wheel));
	EXPECT_EQ(0, info_of(self->wheel).state);
	EXPECT_TRUE(readable(self->other));
	EXPECT_EQ(2, deliver(self->other, self->events, 102));
}

/*
 * A draining wheel takes no new token, and its tokens go on. Pausing and draining are
 * independent.
 */
TEST_F(delivery, drain)
{
	struct tw_wheel *wheel = self->wheel;

	ASSERT_EQ(0, tw_wheel_pause(wheel));
	ASSERT_EQ(0, tw_wheel_drain(wheel));
	EXPECT_EQ(TIMEWHEEL_CONTROL_PAUSED | TIMEWHEEL_CONTROL_DRAINING,
		  info_of(wheel).state);
	ASSERT_EQ(0, tw_wheel_resume(wheel));
	EXPECT_EQ(TIMEWHEEL_CONTROL_DRAINING, info_of(wheel).state);
	EXPECT_ERR(ESHUTDOWN, RUN(self->other, register, 8, SEC, 0, 0));
	EXPECT_ERR(ESHUTDOWN, RUN(wheel, touch_or_register, 8, SEC, 0, 0));
	EXPECT_EQ(0, RUN(wheel, nack, 7, 1, 0, 0));
	EXPECT_EQ(2, deliver(wheel, self->events, 101));
	EXPECT_EQ(0, tw_wheel_undrain(self->other));
	EXPECT_EQ(0, info_of(wheel).state);
	EXPECT_EQ(0, RUN(self->other, register, 8, SEC, 0, 0));
}

/* A cursor tells the state of tokens that are held and pending. */
TEST_F(delivery, listed)
{
	static const struct timewheel_token expected[] = {
		{ .id = 7, .state = TIMEWHEEL_STATE_HELD, .delivery = 2,
		  .attempts = 2 },
		{ .id = 8, .state = TIMEWHEEL_STATE_PENDING },
	};
	struct tw_cursor *cursor = tw_cursor_open(self->wheel, 0, TIMEWHEEL_NEVER);
	const struct timewheel_token *token;
	unsigned int seen = 0;

	ASSERT_NE(NULL, cursor);
	EXPECT_EQ(0, RUN(self->wheel, nack, 7, 1, 0, 0));
	EXPECT_EQ(2, deliver(self->wheel, self->events, 101));
	ASSERT_EQ(0, RUN(self->wheel, register, 8, SEC, 0, 0));
	while (tw_cursor_next(cursor, &token) > 0) {
		ASSERT_LE(7, token->id);
		ASSERT_GE(8, token->id);
		EXPECT_EQ(expected[token->id - 7].state, token->state);
		EXPECT_EQ(expected[token->id - 7].delivery, token->delivery);
		EXPECT_EQ(expected[token->id - 7].attempts, token->attempts);
		seen |= 1U << (token->id - 7);
	}
	EXPECT_EQ(3, seen);
	tw_cursor_close(cursor);
}

TEST_HARNESS_MAIN
