// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's calls on tokens: each says to the wheel what its caller says, and to the
 * caller what the wheel says, an error included. What a wheel does of it is tested with the
 * device, by the kselftests.
 */
#include "lib_test.h"

FIXTURE(ops)
{
	struct tw_wheel *wheel;
	struct timewheel_op op;
	struct timewheel_token token;
};

FIXTURE_SETUP(ops)
{
	self->wheel = open_wheel(&manual);
}

FIXTURE_TEARDOWN(ops)
{
	tw_wheel_close(self->wheel);
}

/* GET tells what was registered: 100 + 61 on 60 slots is one lap further. */
TEST_F(ops, register_and_get)
{
	uint64_t handle = 0;

	ASSERT_EQ(0, register_token(self->wheel, 7, 61 * SEC, 9, 0, &handle));
	EXPECT_NE(0, handle);
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->token));
	EXPECT_EQ(7, self->token.id);
	EXPECT_EQ(handle, self->token.handle);
	EXPECT_EQ(9, self->token.cookie);
	EXPECT_EQ(TIMEWHEEL_STATE_PENDING, self->token.state);
	EXPECT_EQ(61 * SEC, self->token.timeout);
	EXPECT_EQ(61 * SEC, self->token.left);
	EXPECT_EQ(161 * SEC, self->token.deadline);
	EXPECT_EQ(1, self->token.cycle);
	EXPECT_EQ(161 % 60, self->token.slot);

	ASSERT_EQ(0, tw_wheel_get(self->wheel, handle, TIMEWHEEL_OPF_BY_HANDLE,
				  &self->token));
	EXPECT_EQ(7, self->token.id);

	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 161));
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->token));
	EXPECT_EQ(TIMEWHEEL_STATE_PENDING, self->token.state);
	EXPECT_EQ(0, self->token.left);
}

TEST_F(ops, touch)
{
	uint64_t handle;

	ASSERT_EQ(0, register_token(self->wheel, 7, 10 * SEC, 0, 0, &handle));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 105));
	EXPECT_EQ(0, tw_wheel_touch(self->wheel, 7, 0));
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->token));
	EXPECT_EQ(115 * SEC, self->token.deadline);
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 115));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE,
		  tw_wheel_touch(self->wheel, handle, TIMEWHEEL_OPF_BY_HANDLE));
	EXPECT_EQ(0, tw_wheel_touch(self->wheel, handle, TIMEWHEEL_OPF_BY_HANDLE));
}

/* A call touches all tokens, or all before the first one that cannot be touched. */
TEST_F(ops, touch_many)
{
	uint64_t keys[] = { 1, 2, 3 }, handles[3];
	size_t done = 7;

	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, register_token(self->wheel, keys[i], 10 * SEC, 0,
					    0, &handles[i]));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 105));
	EXPECT_EQ(0, tw_wheel_touch_many(self->wheel, keys, 3, 0, &done));
	EXPECT_EQ(3, done);
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 106));
	EXPECT_EQ(0, tw_wheel_touch_many(self->wheel, handles, 2,
					 TIMEWHEEL_OPF_BY_HANDLE, NULL));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, tw_wheel_get(self->wheel, keys[i], 0, &self->token));
		EXPECT_EQ((i < 2 ? 116 : 115) * SEC, self->token.deadline);
	}
	EXPECT_EQ(0, tw_wheel_touch_many(self->wheel, NULL, 0, 0, &done));
	EXPECT_EQ(0, done);
}

/* The call tells how many were touched before the error; no count is cut to 32 bits. */
TEST_F(ops, touch_many_errors)
{
	uint64_t keys[] = { 1, 2, 3 }, stale;
	size_t done = 7;

	ASSERT_EQ(0, register_token(self->wheel, 1, 10 * SEC, 0, 0, &stale));
	ASSERT_EQ(0, RUN(self->wheel, cancel, 1, 0));
	ASSERT_EQ(0, RUN(self->wheel, register, 1, 10 * SEC, 0, 0));
	EXPECT_ERR(ENOENT, tw_wheel_touch_many(self->wheel, keys, 3, 0, &done));
	EXPECT_EQ(1, done);
	EXPECT_ERR(ESTALE, tw_wheel_touch_many(self->wheel, &stale, 1,
					       TIMEWHEEL_OPF_BY_HANDLE, &done));
	EXPECT_EQ(0, done);
	EXPECT_ERR(EINVAL, tw_wheel_touch_many(self->wheel, keys, SIZE_MAX, 0,
					       &done));
}

TEST_F(ops, get_errors)
{
	const unsigned int by_handle = TIMEWHEEL_OPF_BY_HANDLE;
	struct tw_wheel *wheel = self->wheel;
	uint64_t handle;

	ASSERT_EQ(0, register_token(wheel, 7, SEC, 0, 0, &handle));
	EXPECT_ERR(ENOENT, tw_wheel_get(wheel, 8, 0, &self->token));
	EXPECT_ERR(EINVAL, tw_wheel_get(wheel, 7, TIMEWHEEL_OPF_ABSOLUTE,
					&self->token));
	ASSERT_EQ(0, RUN(wheel, cancel, 7, 0));
	EXPECT_ERR(ESTALE, tw_wheel_get(wheel, handle, by_handle, &self->token));
}

/* A key that names no token does not end the call. */
TEST_F(ops, get_many)
{
	struct timewheel_token tokens[3];
	uint64_t keys[] = { 1, 2, 3 }, handles[3];
	size_t done = 7;

	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, register_token(self->wheel, keys[i], 10 * SEC, i, 0,
					    &handles[i]));
	ASSERT_EQ(0, RUN(self->wheel, cancel, 2, 0));
	ASSERT_EQ(0, tw_wheel_get_many(self->wheel, keys, 3, 0, tokens, &done));
	EXPECT_EQ(3, done);
	for (int i = 0; i < 3; i += 2) {
		EXPECT_EQ(keys[i], tokens[i].id);
		EXPECT_EQ(handles[i], tokens[i].handle);
		EXPECT_EQ(i, tokens[i].cookie);
		EXPECT_EQ(110 * SEC, tokens[i].deadline);
		EXPECT_EQ(TIMEWHEEL_STATE_PENDING, tokens[i].state);
	}
	EXPECT_EQ(TIMEWHEEL_STATE_NONE, tokens[1].state);
	EXPECT_EQ(0, tokens[1].id);

	ASSERT_EQ(0, tw_wheel_get_many(self->wheel, handles, 3,
				       TIMEWHEEL_OPF_BY_HANDLE, tokens, NULL));
	EXPECT_EQ(1, tokens[0].id);
	EXPECT_EQ(TIMEWHEEL_STATE_NONE, tokens[1].state);
	EXPECT_EQ(3, tokens[2].id);
	EXPECT_EQ(0, tw_wheel_get_many(self->wheel, NULL, 0, 0, NULL, &done));
	EXPECT_EQ(0, done);
}

TEST_F(ops, get_many_errors)
{
	const uint64_t keys[] = { 1, 2, 3 };
	struct timewheel_token tokens[3];
	size_t done = 7;

	EXPECT_ERR(EINVAL, tw_wheel_get_many(self->wheel, keys, 3,
					     TIMEWHEEL_OPF_ABSOLUTE, tokens,
					     &done));
	EXPECT_EQ(0, done);
	EXPECT_ERR(EINVAL, tw_wheel_get_many(self->wheel, keys, SIZE_MAX, 0,
					     tokens, &done));
}

/* A signal ends the calls on many tokens early: the caller goes on from there. */
TEST(many_and_signals)
{
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, off = { };
	const struct sigaction action = { .sa_handler = ignore_signal };
	static struct timewheel_token tokens[TIMEWHEEL_MAX_BATCH];
	static uint64_t keys[TIMEWHEEL_MAX_BATCH];
	struct tw_wheel *wheel = open_wheel(&monotonic);
	int interrupted = 0, touched = 0;

	NEEDS_KERNEL("a signal ends a batch early");
	for (int i = 0; i < TIMEWHEEL_MAX_BATCH; i++) {
		keys[i] = i;
		ASSERT_EQ(0, RUN(wheel, register, i, TW_HOUR(1), 0, 0));
	}
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	for (int round = 0; round < 100 && !(interrupted && touched); round++) {
		size_t at = 0, done;

		while (tw_wheel_get_many(wheel, keys + at,
					 TIMEWHEEL_MAX_BATCH - at, 0,
					 tokens + at, &done) < 0) {
			ASSERT_EQ(EINTR, errno);
			at += done;
			interrupted++;
		}
		for (int i = 0; i < TIMEWHEEL_MAX_BATCH; i++)
			ASSERT_EQ(keys[i], tokens[i].id);
		at = 0;
		while (tw_wheel_touch_many(wheel, keys + at,
					   TIMEWHEEL_MAX_BATCH - at, 0,
					   &done) < 0) {
			ASSERT_EQ(EINTR, errno);
			at += done;
			touched++;
		}
	}
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &off, NULL));
	EXPECT_NE(0, interrupted);
	EXPECT_NE(0, touched);
	tw_wheel_close(wheel);
}

/* An operation can be carried out again, although it holds its last result. */
TEST_F(ops, run)
{
	tw_op_register(&self->op, 7, SEC, 0, 0);
	ASSERT_EQ(0, tw_wheel_run(self->wheel, &self->op));
	EXPECT_EQ(101 * SEC, self->op.deadline);
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 101));
	tw_op_touch(&self->op, 7, 0);
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_wheel_run(self->wheel, &self->op));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, self->op.result);
	EXPECT_EQ(102 * SEC, self->op.deadline);
	EXPECT_EQ(0, tw_wheel_run(self->wheel, &self->op));
}

TEST_F(ops, run_errors)
{
	tw_op_prepare(&self->op, 1000, 7, 0);
	EXPECT_ERR(EINVAL, tw_wheel_run(self->wheel, &self->op));
	tw_op_cancel(&self->op, 7, 0);
	EXPECT_ERR(ENOENT, tw_wheel_run(self->wheel, &self->op));
}

/* Whether @op is as expected. All its bytes were 0xff before. */
#define EXPECT_OP(prepare, args, ...) do {				\
	struct timewheel_op expected_ = {				\
		.size = sizeof(expected_), __VA_ARGS__			\
	};								\
									\
	memset(&op, 0xff, sizeof(op));					\
	prepare args;							\
	EXPECT_EQ(0, memcmp(&op, &expected_, sizeof(op)));		\
} while (0)

/* Each function fills in all of the operation. */
TEST(prepare)
{
	const unsigned int by_handle = TIMEWHEEL_OPF_BY_HANDLE;
	struct timewheel_op op;

	EXPECT_OP(tw_op_prepare, (&op, TIMEWHEEL_OP_DELETE, 7, 0),
		  .code = TIMEWHEEL_OP_DELETE, .id = 7);
	EXPECT_OP(tw_op_register, (&op, 7, 2, 3, 4),
		  .code = TIMEWHEEL_OP_REGISTER, .id = 7, .time = 2,
		  .cookie = 3, .flags = 4);
	EXPECT_OP(tw_op_register_periodic, (&op, 7, 2, 3, 4, 8),
		  .code = TIMEWHEEL_OP_REGISTER, .id = 7, .time = 2,
		  .period = 3, .cookie = 4, .flags = 8);
	EXPECT_OP(tw_op_touch, (&op, 7, 0),
		  .code = TIMEWHEEL_OP_TOUCH, .id = 7);
	EXPECT_OP(tw_op_touch_or_register, (&op, 7, 2, 3, 4),
		  .code = TIMEWHEEL_OP_TOUCH_OR_REGISTER, .id = 7, .time = 2,
		  .cookie = 3, .flags = 4);
	EXPECT_OP(tw_op_move, (&op, 7, 2, by_handle),
		  .code = TIMEWHEEL_OP_MOVE, .handle = 7, .time = 2,
		  .flags = by_handle);
	EXPECT_OP(tw_op_cancel, (&op, 7, by_handle),
		  .code = TIMEWHEEL_OP_CANCEL, .handle = 7, .flags = by_handle);
	EXPECT_OP(tw_op_ack, (&op, 7, 2, 4),
		  .code = TIMEWHEEL_OP_ACK, .id = 7, .delivery = 2, .flags = 4);
	EXPECT_OP(tw_op_nack, (&op, 7, 2, 3, 4),
		  .code = TIMEWHEEL_OP_NACK, .id = 7, .delivery = 2, .time = 3,
		  .flags = 4);
	EXPECT_OP(tw_op_extend, (&op, 7, 2, 3, 4),
		  .code = TIMEWHEEL_OP_EXTEND, .id = 7, .delivery = 2,
		  .time = 3, .flags = 4);
	EXPECT_OP(tw_op_delete, (&op, 7, 4),
		  .code = TIMEWHEEL_OP_DELETE, .id = 7, .flags = 4);
}

TEST(durations)
{
	const unsigned int days = 20000;

	EXPECT_EQ(7000, TW_US(7));
	EXPECT_EQ(1000 * TW_US(1), TW_MS(1));
	EXPECT_EQ(1000 * TW_MS(1), TW_SEC(1));
	EXPECT_EQ(60 * TW_SEC(1), TW_MIN(1));
	EXPECT_EQ(60 * TW_MIN(1), TW_HOUR(1));
	EXPECT_EQ(24 * TW_HOUR(1), TW_DAY(1));
	EXPECT_EQ(20000 * TW_DAY(1), TW_DAY(days));
	EXPECT_EQ(1500000000, TW_SEC(1 + .5));
	EXPECT_EQ(3000000, TW_MS(1 + 2));
	EXPECT_EQ(8, sizeof(TW_MS(1)));
}

TEST_HARNESS_MAIN
