// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's wheels: what opens is as it was set up, what cannot be says
 * why, and nothing is left over of what failed. What may be set up, and by whom, is
 * tested with the device.
 */
#include "lib_test.h"

/* Returns how many fds this process has open. */
static int open_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

TEST(caps_tell_limits)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };

	tw_wheel_close(open_wheel(&manual));
	ASSERT_EQ(0, tw_device_caps(&caps));
	EXPECT_EQ(sizeof(struct timewheel_event), caps.event_size);
	EXPECT_EQ(TIMEWHEEL_MAX_BATCH, caps.max_batch);
	EXPECT_NE(0, caps.clocks & 1U << TIMEWHEEL_CLOCK_MANUAL);
	EXPECT_LE(caps.min_tick, caps.max_tick);
}

TEST(wheel_is_as_set_up)
{
	struct tw_wheel *wheel = open_wheel(&manual);
	struct timewheel_info info = info_of(wheel);

	EXPECT_EQ(manual.clock, info.clock);
	EXPECT_EQ(manual.slots, info.slots);
	EXPECT_EQ(manual.tick, info.tick);
	EXPECT_EQ(manual.max_tokens, info.max_tokens);
	EXPECT_EQ(manual.start, info.hand);
	EXPECT_EQ(0, info.pending);
	EXPECT_EQ(TIMEWHEEL_NEVER, info.next);
	tw_wheel_close(wheel);
}

/* A call that failed leaves no fd and no wheel. */
TEST(open_errors)
{
	struct timewheel_setup setup = manual;
	int fds;

	tw_wheel_close(open_wheel(&manual));
	fds = open_fds();
	setup.slots = 0;
	EXPECT_NONE(EINVAL, tw_wheel_open(&setup));
	setup = manual;
	setup.start = TIMEWHEEL_MAX_TICK;
	EXPECT_NONE(ERANGE, tw_wheel_open(&setup));
	EXPECT_EQ(fds, open_fds());
}

/* Each way to the device gives the device's errors: @arg is the expected one. */
static int device_fails(void *arg)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	int err = *(int *)arg;

	errno = 0;
	if (tw_device_caps(&caps) != -1 || errno != err)
		return 1;
	errno = 0;
	if (tw_wheel_open(&manual) || errno != err)
		return 2;
	errno = 0;
	if (tw_wheel_create("lib-none", &manual, 0) != -1 || errno != err)
		return 3;
	errno = 0;
	return tw_wheel_destroy("lib-none") != -1 || errno != err ? 4 : 0;
}

static int fails_as_nobody(void *arg)
{
	become_nobody();
	return device_fails(arg);
}

static int fails_without_device(void *arg)
{
	hide_device();
	return device_fails(arg);
}

static int fails_without_fds(void *arg)
{
	refuse_fds();
	return device_fails(arg);
}

TEST(device_may_be_missing_or_forbidden)
{
	int acces = EACCES, noent = ENOENT, mfile = EMFILE;

	NEEDS_KERNEL("a device");
	tw_wheel_close(open_wheel(&manual));
	if (getuid())
		skip("needs root");
	EXPECT_EQ(0, in_child(fails_as_nobody, &acces));
	EXPECT_EQ(0, in_child(fails_without_device, &noent));
	EXPECT_EQ(0, in_child(fails_without_fds, &mfile));
}

/* A call that opens the device for itself has closed it again. */
TEST(no_fd_is_left)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	int fds;

	tw_wheel_close(open_wheel(&manual));
	fds = open_fds();
	tw_device_caps(&caps);
	tw_wheel_create("lib-left", &manual, 0);
	tw_wheel_close(tw_wheel_open_named("lib-left", O_RDWR));
	tw_wheel_destroy("lib-left");
	tw_wheel_destroy("lib-left");
	EXPECT_EQ(fds, open_fds());
}

TEST(fd_is_not_kept_on_exec)
{
	struct tw_wheel *wheel = open_wheel(&manual);

	EXPECT_EQ(FD_CLOEXEC, fcntl(tw_wheel_fd(wheel), F_GETFD));
	tw_wheel_close(wheel);
}

TEST(close_takes_null_and_leaves_errno)
{
	struct tw_wheel *wheel = open_wheel(&manual);

	errno = E2BIG;
	tw_wheel_close(NULL);
	tw_wheel_close(wheel);
	EXPECT_EQ(E2BIG, errno);

	/* The close works also if the fd has been closed already. */
	wheel = open_wheel(&manual);
	close(tw_wheel_fd(wheel));
	errno = E2BIG;
	tw_wheel_close(wheel);
	EXPECT_EQ(E2BIG, errno);
}

/* An fd of a wheel makes another wheel of the same file, which lives on by itself. */
TEST(open_fd_shares)
{
	struct tw_wheel *wheel = open_wheel(&manual);
	int fd = dup(tw_wheel_fd(wheel));
	struct tw_wheel *other = tw_wheel_open_fd(fd);

	NEEDS_KERNEL("an fd of a wheel makes another one");
	ASSERT_NE(NULL, other);
	EXPECT_EQ(fd, tw_wheel_fd(other));
	EXPECT_EQ(0, RUN(wheel, register, 7, SEC, 0, 0));
	tw_wheel_close(wheel);
	EXPECT_EQ(0, tw_wheel_touch(other, 7, 0));
	tw_wheel_close(other);
	EXPECT_ERR(EBADF, fcntl(fd, F_GETFD));
}

/* An fd that is no wheel stays the caller's. */
TEST(open_fd_errors)
{
	int device, pipes[2];

	NEEDS_KERNEL("an fd of a wheel makes another one");
	tw_wheel_close(open_wheel(&manual));
	EXPECT_NONE(EBADF, tw_wheel_open_fd(-1));
	ASSERT_EQ(0, pipe(pipes));
	EXPECT_NONE(ENOTTY, tw_wheel_open_fd(pipes[0]));
	EXPECT_EQ(0, close(pipes[0]));
	device = open("/dev/timewheel", O_RDWR);
	ASSERT_LE(0, device);
	EXPECT_NONE(EBADFD, tw_wheel_open_fd(device));
	EXPECT_EQ(0, close(device));
}

/* Each control changes its own bit; pausing and draining are independent. */
TEST(controls)
{
	struct tw_wheel *wheel = open_wheel(&manual);

	ASSERT_EQ(0, tw_wheel_pause(wheel));
	EXPECT_EQ(TIMEWHEEL_CONTROL_PAUSED, info_of(wheel).state);
	ASSERT_EQ(0, tw_wheel_drain(wheel));
	EXPECT_EQ(TIMEWHEEL_CONTROL_PAUSED | TIMEWHEEL_CONTROL_DRAINING,
		  info_of(wheel).state);
	ASSERT_EQ(0, tw_wheel_resume(wheel));
	EXPECT_EQ(TIMEWHEEL_CONTROL_DRAINING, info_of(wheel).state);
	ASSERT_EQ(0, tw_wheel_pause(wheel));
	EXPECT_EQ(TIMEWHEEL_CONTROL_PAUSED | TIMEWHEEL_CONTROL_DRAINING,
		  info_of(wheel).state);
	ASSERT_EQ(0, tw_wheel_undrain(wheel));
	EXPECT_EQ(TIMEWHEEL_CONTROL_PAUSED, info_of(wheel).state);
	tw_wheel_close(wheel);
}

TEST(advance_errors)
{
	struct tw_wheel *wheel = open_wheel(&manual);

	EXPECT_ERR(ERANGE, tw_wheel_advance(wheel, TIMEWHEEL_MAX_TICK + 1));
	EXPECT_EQ(100, info_of(wheel).hand);
	tw_wheel_close(wheel);
}

TEST_HARNESS_MAIN
