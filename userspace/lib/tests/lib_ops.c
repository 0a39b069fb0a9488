// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's operations on one token: each does what its name says, by id
 * and by handle, and each of its errors comes when it should.
 */
#include "lib_test.h"

/* A time beyond 2^63 ns from any now. */
#define TOO_LATE	(1ULL << 63)

FIXTURE(ops)
{
	struct tw_wheel *wheel;
	struct timewheel_op op;
};

FIXTURE_SETUP(ops)
{
	self->wheel = open_wheel(&manual);
	self->op = (struct timewheel_op) { .size = sizeof(self->op) };
}

FIXTURE_TEARDOWN(ops)
{
	tw_wheel_close(self->wheel);
}

/* What GET tells is what was registered: 100 + 61 on 60 slots is one lap on. */
TEST_F(ops, register_and_get)
{
	uint64_t handle = 0;

	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, 61 * SEC, 9, 0, &handle));
	EXPECT_NE(0, handle);
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->op));
	EXPECT_EQ(7, self->op.id);
	EXPECT_EQ(handle, self->op.handle);
	EXPECT_EQ(9, self->op.cookie);
	EXPECT_EQ(61 * SEC, self->op.time);
	EXPECT_EQ(161 * SEC, self->op.deadline);
	EXPECT_EQ(1, self->op.cycle);
	EXPECT_EQ(161 % 60, self->op.slot);

	self->op = (struct timewheel_op) { .size = sizeof(self->op) };
	ASSERT_EQ(0, tw_wheel_get(self->wheel, handle, TIMEWHEEL_OPF_BY_HANDLE,
				  &self->op));
	EXPECT_EQ(7, self->op.id);

	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 161));
	self->op = (struct timewheel_op) { .size = sizeof(self->op) };
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_wheel_get(self->wheel, 7, 0, &self->op));
	EXPECT_EQ(0, self->op.time);
}

TEST_F(ops, register_absolute)
{
	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, 130 * SEC, 0,
				       TIMEWHEEL_OPF_ABSOLUTE, NULL));
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->op));
	EXPECT_EQ(130 * SEC, self->op.deadline);
}

TEST_F(ops, register_errors)
{
	const unsigned int by_handle = TIMEWHEEL_OPF_BY_HANDLE;
	uint64_t handle = 5;

	ASSERT_EQ(0, tw_wheel_register(self->wheel, 0, SEC, 0, 0, NULL));
	EXPECT_ERR(EEXIST, tw_wheel_register(self->wheel, 0, SEC, 0, 0, &handle));
	EXPECT_ERR(ERANGE, tw_wheel_register(self->wheel, 1, TOO_LATE, 0, 0,
					     &handle));
	EXPECT_ERR(EINVAL, tw_wheel_register(self->wheel, 1, SEC, 0, by_handle,
					     &handle));
	EXPECT_ERR(EINVAL, tw_wheel_register(self->wheel, 1, SEC, 0, 1U << 31,
					     &handle));
	for (int i = 1; i < 10; i++)
		EXPECT_EQ(0, tw_wheel_register(self->wheel, i, SEC, 0, 0, NULL));
	EXPECT_ERR(ENOSPC, tw_wheel_register(self->wheel, 10, SEC, 0, 0,
					     &handle));
	EXPECT_EQ(5, handle);
}

TEST_F(ops, touch)
{
	uint64_t handle;

	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, 10 * SEC, 0, 0, &handle));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 105));
	EXPECT_EQ(0, tw_wheel_touch(self->wheel, 7, 0));
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->op));
	EXPECT_EQ(115 * SEC, self->op.deadline);
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 115));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE,
		  tw_wheel_touch(self->wheel, handle, TIMEWHEEL_OPF_BY_HANDLE));
	EXPECT_EQ(0, tw_wheel_touch(self->wheel, handle, TIMEWHEEL_OPF_BY_HANDLE));
}

TEST_F(ops, touch_errors)
{
	const unsigned int by_handle = TIMEWHEEL_OPF_BY_HANDLE;
	uint64_t handle;

	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, 0, 0, 0, &handle));
	EXPECT_ERR(EINVAL, tw_wheel_touch(self->wheel, 7, 0));
	EXPECT_ERR(EINVAL, tw_wheel_touch(self->wheel, 7, TIMEWHEEL_OPF_ABSOLUTE));
	EXPECT_ERR(ENOENT, tw_wheel_touch(self->wheel, 8, 0));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_wheel_cancel(self->wheel, 7, 0));
	EXPECT_ERR(ESTALE, tw_wheel_touch(self->wheel, handle, by_handle));
	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, TOO_LATE - 200 * SEC, 0, 0,
				       NULL));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 300));
	EXPECT_ERR(ERANGE, tw_wheel_touch(self->wheel, 7, 0));
}

/* All, or those before the first that cannot be. */
TEST_F(ops, touch_many)
{
	uint64_t keys[] = { 1, 2, 3 }, handles[3];
	size_t done = 7;

	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, tw_wheel_register(self->wheel, keys[i], 10 * SEC,
					       0, 0, &handles[i]));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 105));
	EXPECT_EQ(0, tw_wheel_touch_many(self->wheel, keys, 3, 0, &done));
	EXPECT_EQ(3, done);
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 106));
	EXPECT_EQ(0, tw_wheel_touch_many(self->wheel, handles, 2,
					 TIMEWHEEL_OPF_BY_HANDLE, NULL));
	for (int i = 0; i < 3; i++) {
		self->op = (struct timewheel_op) { .size = sizeof(self->op) };
		ASSERT_EQ(0, tw_wheel_get(self->wheel, keys[i], 0, &self->op));
		EXPECT_EQ((i < 2 ? 116 : 115) * SEC, self->op.deadline);
	}
	EXPECT_EQ(0, tw_wheel_touch_many(self->wheel, NULL, 0, 0, &done));
	EXPECT_EQ(0, done);
}

TEST_F(ops, touch_many_errors)
{
	const unsigned int by_handle = TIMEWHEEL_OPF_BY_HANDLE;
	uint64_t keys[] = { 1, 2, 3 }, stale;
	size_t done = 7;

	ASSERT_EQ(0, tw_wheel_register(self->wheel, 1, 10 * SEC, 0, 0, &stale));
	ASSERT_EQ(0, tw_wheel_cancel(self->wheel, 1, 0));
	ASSERT_EQ(0, tw_wheel_register(self->wheel, 1, 10 * SEC, 0, 0, NULL));
	EXPECT_ERR(ENOENT, tw_wheel_touch_many(self->wheel, keys, 3, 0, &done));
	EXPECT_EQ(1, done);
	EXPECT_ERR(ESTALE, tw_wheel_touch_many(self->wheel, &stale, 1, by_handle,
					       &done));
	EXPECT_EQ(0, done);
	ASSERT_EQ(0, tw_wheel_register(self->wheel, 2, 0, 0, 0, NULL));
	EXPECT_ERR(EINVAL, tw_wheel_touch_many(self->wheel, keys, 3, 0, &done));
	EXPECT_EQ(1, done);
	EXPECT_ERR(EINVAL, tw_wheel_touch_many(self->wheel, keys, 3,
					       TIMEWHEEL_OPF_ABSOLUTE, &done));
	EXPECT_EQ(0, done);
	EXPECT_ERR(EINVAL, tw_wheel_touch_many(self->wheel, keys,
					       TIMEWHEEL_MAX_BATCH + 1UL, 0,
					       &done));
	EXPECT_EQ(0, done);
	EXPECT_ERR(EINVAL, tw_wheel_touch_many(self->wheel, keys, SIZE_MAX, 0,
					       &done));
	EXPECT_ERR(EFAULT, tw_wheel_touch_many(self->wheel, NULL, 1, 0, &done));
	EXPECT_EQ(0, done);
	ASSERT_EQ(0, tw_wheel_register(self->wheel, 3, TOO_LATE - 200 * SEC, 0, 0,
				       NULL));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 300));
	EXPECT_ERR(ERANGE, tw_wheel_touch_many(self->wheel, keys + 2, 1, 0,
					       &done));
}

TEST_F(ops, touch_or_register)
{
	uint64_t handle = 0, first;

	EXPECT_EQ(TIMEWHEEL_RES_REGISTERED,
		  tw_wheel_touch_or_register(self->wheel, 7, 10 * SEC, 9, 0,
					     &handle));
	EXPECT_NE(0, handle);
	first = handle;
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 105));
	EXPECT_EQ(0, tw_wheel_touch_or_register(self->wheel, 7, 99 * SEC, 1, 0,
						&handle));
	EXPECT_EQ(first, handle);
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->op));
	EXPECT_EQ(115 * SEC, self->op.deadline);
	EXPECT_EQ(9, self->op.cookie);
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 115));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE,
		  tw_wheel_touch_or_register(self->wheel, 7, SEC, 0, 0, NULL));
}

TEST_F(ops, touch_or_register_errors)
{
	struct tw_wheel *wheel = self->wheel;

	ASSERT_EQ(0, tw_wheel_register(wheel, 0, 0, 0, 0, NULL));
	EXPECT_ERR(EINVAL, tw_wheel_touch_or_register(wheel, 0, SEC, 0, 0, NULL));
	EXPECT_ERR(EINVAL,
		   tw_wheel_touch_or_register(wheel, 1, SEC, 0,
					      TIMEWHEEL_OPF_ABSOLUTE, NULL));
	EXPECT_ERR(ERANGE,
		   tw_wheel_touch_or_register(wheel, 1, TOO_LATE, 0, 0, NULL));
	for (int i = 1; i < 10; i++)
		EXPECT_EQ(0, tw_wheel_register(wheel, i, SEC, 0, 0, NULL));
	EXPECT_ERR(ENOSPC, tw_wheel_touch_or_register(wheel, 10, SEC, 0, 0, NULL));
}

TEST_F(ops, move)
{
	uint64_t handle;

	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, 10 * SEC, 0, 0, &handle));
	EXPECT_EQ(0, tw_wheel_move(self->wheel, 7, 2 * SEC, 0));
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->op));
	EXPECT_EQ(102 * SEC, self->op.deadline);
	EXPECT_EQ(0, tw_wheel_move(self->wheel, handle, 150 * SEC,
				   TIMEWHEEL_OPF_BY_HANDLE | TIMEWHEEL_OPF_ABSOLUTE));
	ASSERT_EQ(0, tw_wheel_get(self->wheel, 7, 0, &self->op));
	EXPECT_EQ(150 * SEC, self->op.deadline);
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 150));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_wheel_move(self->wheel, 7, SEC, 0));
}

TEST_F(ops, move_errors)
{
	const unsigned int by_handle = TIMEWHEEL_OPF_BY_HANDLE;
	uint64_t handle;

	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, SEC, 0, 0, &handle));
	EXPECT_ERR(ENOENT, tw_wheel_move(self->wheel, 8, SEC, 0));
	EXPECT_ERR(ERANGE, tw_wheel_move(self->wheel, 7, TOO_LATE, 0));
	EXPECT_ERR(EINVAL, tw_wheel_move(self->wheel, 7, SEC, 1U << 31));
	ASSERT_EQ(0, tw_wheel_cancel(self->wheel, 7, 0));
	EXPECT_ERR(ESTALE, tw_wheel_move(self->wheel, handle, SEC, by_handle));
}

TEST_F(ops, cancel)
{
	uint64_t handle;

	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, SEC, 0, 0, &handle));
	EXPECT_EQ(0, tw_wheel_cancel(self->wheel, handle, TIMEWHEEL_OPF_BY_HANDLE));
	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, SEC, 0, 0, NULL));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 101));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_wheel_cancel(self->wheel, 7, 0));
	EXPECT_FALSE(readable(self->wheel));
}

TEST_F(ops, cancel_errors)
{
	const unsigned int by_handle = TIMEWHEEL_OPF_BY_HANDLE;
	uint64_t handle;

	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, SEC, 0, 0, &handle));
	EXPECT_ERR(ENOENT, tw_wheel_cancel(self->wheel, 8, 0));
	EXPECT_ERR(EINVAL, tw_wheel_cancel(self->wheel, 7, TIMEWHEEL_OPF_ABSOLUTE));
	ASSERT_EQ(0, tw_wheel_cancel(self->wheel, 7, 0));
	EXPECT_ERR(ESTALE, tw_wheel_cancel(self->wheel, handle, by_handle));
}

TEST_F(ops, get_errors)
{
	const unsigned int by_handle = TIMEWHEEL_OPF_BY_HANDLE;
	struct {
		struct timewheel_op op;
		uint64_t more;
	} big = { .op.size = sizeof(big), .more = 1 };
	uint64_t handle;

	ASSERT_EQ(0, tw_wheel_register(self->wheel, 7, SEC, 0, 0, &handle));
	EXPECT_ERR(ENOENT, tw_wheel_get(self->wheel, 8, 0, &self->op));
	EXPECT_ERR(EINVAL, tw_wheel_get(self->wheel, 7, TIMEWHEEL_OPF_ABSOLUTE,
					&self->op));
	EXPECT_ERR(E2BIG, tw_wheel_get(self->wheel, 7, 0, &big.op));
	ASSERT_EQ(0, tw_wheel_cancel(self->wheel, 7, 0));
	EXPECT_ERR(ESTALE, tw_wheel_get(self->wheel, handle, by_handle,
					&self->op));
	self->op.size = 0;
	EXPECT_ERR(EINVAL, tw_wheel_get(self->wheel, 7, 0, &self->op));
}

/* The general form tells what the others keep: the deadline. */
TEST_F(ops, op)
{
	self->op.code = TIMEWHEEL_OP_REGISTER;
	self->op.id = 7;
	self->op.time = SEC;
	ASSERT_EQ(0, tw_wheel_op(self->wheel, &self->op));
	EXPECT_EQ(101 * SEC, self->op.deadline);
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 101));
	self->op.code = TIMEWHEEL_OP_TOUCH;
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_wheel_op(self->wheel, &self->op));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, self->op.result);
	EXPECT_EQ(102 * SEC, self->op.deadline);
}

TEST_F(ops, op_errors)
{
	struct {
		struct timewheel_op op;
		uint64_t more;
	} big = { .op.size = sizeof(big), .more = 1 };

	self->op.code = 1000;
	EXPECT_ERR(EINVAL, tw_wheel_op(self->wheel, &self->op));
	EXPECT_ERR(E2BIG, tw_wheel_op(self->wheel, &big.op));
	EXPECT_ERR(EFAULT, tw_wheel_op(self->wheel, NULL));
	self->op.code = TIMEWHEEL_OP_CANCEL;
	EXPECT_ERR(ENOENT, tw_wheel_op(self->wheel, &self->op));
	self->op.size = 0;
	EXPECT_ERR(EINVAL, tw_wheel_op(self->wheel, &self->op));
}

/* Without ids and cookies tokens go by handle, and by nothing else. */
TEST(bare_wheel)
{
	struct timewheel_setup setup = manual;
	struct tw_wheel *wheel;
	uint64_t handle;

	setup.flags = TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES;
	wheel = open_wheel(&setup);
	EXPECT_ERR(EINVAL, tw_wheel_register(wheel, 1, SEC, 0, 0, NULL));
	EXPECT_ERR(EINVAL, tw_wheel_register(wheel, 0, SEC, 1, 0, NULL));
	ASSERT_EQ(0, tw_wheel_register(wheel, 0, SEC, 0, 0, &handle));
	EXPECT_ERR(EINVAL, tw_wheel_touch(wheel, 0, 0));
	EXPECT_EQ(0, tw_wheel_touch(wheel, handle, TIMEWHEEL_OPF_BY_HANDLE));
	EXPECT_EQ(0, tw_wheel_move(wheel, handle, SEC, TIMEWHEEL_OPF_BY_HANDLE));
	EXPECT_EQ(0, tw_wheel_cancel(wheel, handle, TIMEWHEEL_OPF_BY_HANDLE));
	tw_wheel_close(wheel);

	setup.flags = TIMEWHEEL_SETUP_NO_COOKIES;
	wheel = open_wheel(&setup);
	EXPECT_ERR(EINVAL, tw_wheel_touch_or_register(wheel, 1, SEC, 1, 0, NULL));
	tw_wheel_close(wheel);
}

TEST_HARNESS_MAIN
