// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's wheels: what opens is as it was set up, what cannot be says
 * why, and nothing is left over of what failed.
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

TEST(caps_errors)
{
	struct {
		struct timewheel_caps caps;
		uint64_t more;
	} big = { .caps.size = sizeof(big), .more = 1 };
	struct timewheel_caps caps = { };

	NEEDS_KERNEL("EFAULT");
	tw_wheel_close(open_wheel(&manual));
	EXPECT_ERR(EINVAL, tw_device_caps(&caps));
	EXPECT_ERR(E2BIG, tw_device_caps(&big.caps));
	EXPECT_ERR(EFAULT, tw_device_caps(NULL));
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

TEST(info_errors)
{
	struct tw_wheel *wheel = open_wheel(&manual);
	struct {
		struct timewheel_info info;
		uint64_t more;
	} big = { .info.size = sizeof(big), .more = 1 };
	struct timewheel_info info = { };

	NEEDS_KERNEL("EFAULT");
	EXPECT_ERR(EINVAL, tw_wheel_info(wheel, &info));
	EXPECT_ERR(E2BIG, tw_wheel_info(wheel, &big.info));
	EXPECT_ERR(EFAULT, tw_wheel_info(wheel, NULL));
	tw_wheel_close(wheel);
}

/* A call that failed leaves no fd and no wheel. */
TEST(open_errors)
{
	struct {
		struct timewheel_setup setup;
		uint64_t more;
	} big = { .setup = manual, .more = 1 };
	struct timewheel_setup setup = manual;
	int fds;

	NEEDS_KERNEL("EFAULT");
	tw_wheel_close(open_wheel(&manual));
	fds = open_fds();
	setup.slots = 0;
	EXPECT_NONE(EINVAL, tw_wheel_open(&setup));
	setup = manual;
	setup.size = 0;
	EXPECT_NONE(EINVAL, tw_wheel_open(&setup));
	setup = manual;
	setup.start = TIMEWHEEL_MAX_TICK;
	EXPECT_NONE(ERANGE, tw_wheel_open(&setup));
	big.setup.size = sizeof(big);
	EXPECT_NONE(E2BIG, tw_wheel_open(&big.setup));
	EXPECT_NONE(EFAULT, tw_wheel_open(NULL));
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

#define PARAMETER(name)	"/sys/module/timewheel/parameters/" name

/* Writes a number to a file of the kernel. Returns the number before, 0 if there was none. */
static uint64_t set_limit(const char *path, uint64_t value)
{
	unsigned long long old = 0;
	FILE *file;

	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%llu", &old) != 1)
		old = 0;
	fclose(file);
	file = fopen(path, "w");
	if (!file)
		return 0;
	fprintf(file, "%llu\n", (unsigned long long)value);
	fclose(file);
	return old;
}

static int fails_in_full_table(void *arg)
{
	become_nobody();
	return device_fails(arg);
}

/* The machine's table of files is full for all users but root. */
TEST(files_may_run_out)
{
	const char *path = "/proc/sys/fs/file-max";
	int nfile = ENFILE;
	uint64_t old;

	NEEDS_KERNEL("a device");
	tw_wheel_close(open_wheel(&manual));
	/* The kernel's count may lag behind by what one CPU has of it. */
	old = set_limit(path, 0);
	if (!old)
		skip("needs root");
	chmod("/dev/timewheel", 0666);
	EXPECT_EQ(0, in_child(fails_in_full_table, &nfile));
	chmod("/dev/timewheel", 0660);
	set_limit(path, old);
}

static int exceeds_quota(void *arg)
{
	(void)arg;
	become_nobody();
	if (tw_wheel_open(&manual) || errno != EDQUOT)
		return 2;
	return tw_wheel_create("lib-none", &manual, 0) != -1 || errno != EDQUOT;
}

/* Root has no quota, by CAP_SYS_RESOURCE, and another user has one. */
TEST(limits_are_told_apart)
{
	struct tw_wheel *wheel = open_wheel(&manual);
	uint64_t old = set_limit(PARAMETER("max_user_tokens"), 1);

	NEEDS_KERNEL("limits of users");
	if (!old)
		skip("no limits to set");
	chmod("/dev/timewheel", 0666);
	EXPECT_EQ(0, in_child(exceeds_quota, NULL));
	set_limit(PARAMETER("max_user_tokens"), old);
	chmod("/dev/timewheel", 0660);

	old = set_limit(PARAMETER("max_all_tokens"), 1);
	EXPECT_NONE(ENOSPC, tw_wheel_open(&manual));
	EXPECT_ERR(ENOSPC, tw_wheel_create("lib-none", &manual, 0));
	set_limit(PARAMETER("max_all_tokens"), old);
	tw_wheel_close(wheel);
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

static int touches(void *wheel)
{
	return tw_wheel_touch(wheel, 7, 0);
}

TEST(fork_shares)
{
	struct tw_wheel *wheel = open_wheel(&manual);

	NEEDS_KERNEL("a child shares a wheel");
	EXPECT_EQ(0, RUN(wheel, register, 7, SEC, 0, 0));
	EXPECT_EQ(0, in_child(touches, wheel));
	EXPECT_EQ(1, info_of(wheel).touched);
	tw_wheel_close(wheel);
}

/* The hand goes forward and back, and due tokens can be read at once. */
TEST(advance)
{
	struct tw_wheel *wheel = open_wheel(&manual);

	NEEDS_KERNEL("an fd is readable only while a token is due");
	EXPECT_EQ(0, RUN(wheel, register, 7, 2 * SEC, 0, 0));
	EXPECT_EQ(0, tw_wheel_advance(wheel, 101));
	EXPECT_FALSE(readable(wheel));
	EXPECT_EQ(0, tw_wheel_advance(wheel, 102));
	EXPECT_TRUE(readable(wheel));
	EXPECT_EQ(0, tw_wheel_advance(wheel, 3));
	EXPECT_EQ(3, info_of(wheel).hand);
	EXPECT_FALSE(readable(wheel));
	tw_wheel_close(wheel);
}

TEST(advance_errors)
{
	struct tw_wheel *wheel = open_wheel(&manual);
	struct tw_wheel *real = open_wheel(&monotonic);

	EXPECT_ERR(ERANGE, tw_wheel_advance(wheel, TIMEWHEEL_MAX_TICK + 1));
	EXPECT_ERR(EINVAL, tw_wheel_advance(real, 1));
	EXPECT_EQ(100, info_of(wheel).hand);
	tw_wheel_close(wheel);
	tw_wheel_close(real);
}

TEST_HARNESS_MAIN
