// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's batches: many operations by one call do, each by itself, what
 * the single ones do.
 */
#include "lib_test.h"

/* ADD(batch, cancel, key, 0) adds the operation that tw_op_cancel() prepares. */
#define ADD(batch, prepare, ...)					\
	tw_op_##prepare(tw_batch_next(batch), __VA_ARGS__)

FIXTURE(batch)
{
	struct tw_wheel *wheel;
	struct tw_batch *batch;
};

FIXTURE_SETUP(batch)
{
	self->wheel = open_wheel(&manual);
	self->batch = tw_batch_new(16);
	ASSERT_NE(NULL, self->batch);
}

FIXTURE_TEARDOWN(batch)
{
	tw_wheel_close(self->wheel);
	tw_batch_free(self->batch);
}

TEST(new_errors)
{
	EXPECT_NONE(EINVAL, tw_batch_new(0));
	EXPECT_NONE(EINVAL, tw_batch_new(TIMEWHEEL_MAX_BATCH + 1));
}

static int no_memory(void *arg)
{
	const struct rlimit none = { };

	(void)arg;
	if (setrlimit(RLIMIT_AS, &none))
		return 1;
	return tw_batch_new(TIMEWHEEL_MAX_BATCH) || errno != ENOMEM;
}

TEST(new_without_memory)
{
	if (!SANITIZED)
		EXPECT_EQ(0, in_child(no_memory, NULL));
}

TEST(free_takes_null)
{
	errno = E2BIG;
	tw_batch_free(NULL);
	tw_batch_free(tw_batch_new(1));
	EXPECT_EQ(E2BIG, errno);
}

/* A batch touches each key, among other operations. */
TEST_F(batch, touch_many)
{
	const uint64_t ids[] = { 1, 3, 2 };
	struct tw_batch *batch = self->batch;
	uint64_t handle;

	ADD(batch, register, 1, 10 * SEC, 0, 0);
	ADD(batch, register, 2, 20 * SEC, 0, 0);
	ASSERT_EQ(0, tw_batch_run(batch, self->wheel));
	handle = tw_batch_op(batch, 1)->handle;
	tw_wheel_advance(self->wheel, 101);

	EXPECT_EQ(0, tw_batch_touch_many(batch, ids, 3, 0));
	EXPECT_EQ(0, tw_batch_touch_many(batch, &handle, 1, TIMEWHEEL_OPF_BY_HANDLE));
	EXPECT_EQ(0, tw_batch_touch_many(batch, NULL, 0, 0));
	ADD(batch, cancel, 1, 0);
	EXPECT_EQ(7, tw_batch_count(batch));
	ASSERT_EQ(1, tw_batch_run(batch, self->wheel));
	EXPECT_EQ(111 * SEC, tw_batch_op(batch, 2)->deadline);
	EXPECT_ERR(ENOENT, tw_batch_result(batch, 3));
	EXPECT_EQ(121 * SEC, tw_batch_op(batch, 4)->deadline);
	EXPECT_EQ(121 * SEC, tw_batch_op(batch, 5)->deadline);
	EXPECT_EQ(0, tw_batch_result(batch, 6));
}

TEST_F(batch, touch_many_all_or_none)
{
	const uint64_t ids[16] = { };

	EXPECT_EQ(0, tw_batch_touch_many(self->batch, ids, 10, 0));
	EXPECT_ERR(ENOSPC, tw_batch_touch_many(self->batch, ids, 7, 0));
	EXPECT_ERR(ENOSPC, tw_batch_touch_many(self->batch, ids, SIZE_MAX, 0));
	EXPECT_EQ(10, tw_batch_count(self->batch));
	EXPECT_EQ(0, tw_batch_touch_many(self->batch, ids, 6, 0));
}

/* An operation that is not prepared is refused, whatever its memory held before. */
TEST_F(batch, not_prepared)
{
	struct tw_batch *batch = self->batch;

	ADD(batch, register, 1, SEC, 0, 0);
	tw_batch_clear(batch);
	ASSERT_NE(NULL, tw_batch_next(batch));
	EXPECT_EQ(1, tw_batch_run(batch, self->wheel));
	EXPECT_ERR(EINVAL, tw_batch_result(batch, 0));
	EXPECT_EQ(0, info_of(self->wheel).registered);
}

/* A program that was built with a shorter struct timewheel_op has told its size. */
TEST_F(batch, of_older_programs)
{
	struct timewheel_op *op = tw_batch_next(self->batch);

	tw_op_register(op, 1, SEC, 0, 0);
	op->size -= 8;
	EXPECT_EQ(0, tw_batch_run(self->batch, self->wheel));
	EXPECT_EQ(1, info_of(self->wheel).registered);
}

/* An operation that fails does not end the others, and is counted. */
TEST_F(batch, failures)
{
	struct tw_batch *batch = self->batch;

	ADD(batch, register, 1, SEC, 0, 0);
	ADD(batch, register, 1, SEC, 0, 0);
	ADD(batch, touch, 2, 0);
	ADD(batch, register, 3, SEC, 0, 0);
	EXPECT_EQ(2, tw_batch_run(batch, self->wheel));
	EXPECT_EQ(0, tw_batch_result(batch, 0));
	EXPECT_ERR(EEXIST, tw_batch_result(batch, 1));
	EXPECT_ERR(ENOENT, tw_batch_result(batch, 2));
	EXPECT_EQ(0, tw_batch_result(batch, 3));
	EXPECT_EQ(2, info_of(self->wheel).pending);
}

TEST_F(batch, limits)
{
	struct tw_batch *batch = self->batch;

	EXPECT_ERR(EDOM, tw_batch_result(batch, 0));
	EXPECT_NONE(EDOM, tw_batch_op(batch, 0));
	EXPECT_EQ(0, tw_batch_run(batch, self->wheel));
	for (int i = 0; i < 16; i++)
		ADD(batch, touch, i, 0);
	EXPECT_NONE(ENOSPC, tw_batch_next(batch));
	EXPECT_EQ(16, tw_batch_count(batch));
	EXPECT_ERR(EINPROGRESS, tw_batch_result(batch, 15));
	EXPECT_ERR(EDOM, tw_batch_result(batch, 16));
	EXPECT_EQ(16, tw_batch_run(batch, self->wheel));
}

/* An operation that has been carried out is not carried out again, and an added one is. */
TEST_F(batch, goes_on_and_is_used_again)
{
	struct tw_batch *batch = self->batch;

	ADD(batch, register, 1, SEC, 0, 0);
	ASSERT_EQ(0, tw_batch_run(batch, self->wheel));
	ADD(batch, register, 2, SEC, 0, 0);
	EXPECT_ERR(EINPROGRESS, tw_batch_result(batch, 1));
	ASSERT_EQ(0, tw_batch_run(batch, self->wheel));
	ASSERT_EQ(0, tw_batch_run(batch, self->wheel));
	EXPECT_EQ(2, info_of(self->wheel).registered);

	tw_batch_clear(batch);
	EXPECT_EQ(0, tw_batch_count(batch));
	EXPECT_ERR(EDOM, tw_batch_result(batch, 0));
	ADD(batch, register, 3, SEC, 0, 0);
	ASSERT_EQ(0, tw_batch_run(batch, self->wheel));
	EXPECT_EQ(3, info_of(self->wheel).registered);
}

/*
 * Signals interrupt a batch at least once. It is carried out by further calls, each operation
 * once.
 */
TEST(signals)
{
	const struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, off = { };
	const struct sigaction action = { .sa_handler = ignore_signal };
	struct tw_batch *batch = tw_batch_new(TIMEWHEEL_MAX_BATCH);
	struct tw_wheel *wheel = open_wheel(&monotonic);
	int interrupted = 0, rounds, ret;

	NEEDS_KERNEL("a signal ends a batch early");
	ASSERT_NE(NULL, batch);
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	for (int i = 0; i < TIMEWHEEL_MAX_BATCH; i++)
		ADD(batch, register, i, TW_HOUR(1), 0, 0);
	ASSERT_EQ(0, tw_batch_run(batch, wheel));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	for (rounds = 0; rounds < 100 && !interrupted; rounds++) {
		tw_batch_clear(batch);
		for (int i = 0; i < TIMEWHEEL_MAX_BATCH; i++)
			ADD(batch, touch, i, 0);
		while ((ret = tw_batch_run(batch, wheel)) < 0) {
			ASSERT_EQ(EINTR, errno);
			interrupted++;
		}
		EXPECT_EQ(0, ret);
	}
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &off, NULL));
	EXPECT_NE(0, interrupted);
	EXPECT_EQ((uint64_t)rounds * TIMEWHEEL_MAX_BATCH, info_of(wheel).touched);
	tw_batch_free(batch);
	tw_wheel_close(wheel);
}

TEST_HARNESS_MAIN
