// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's named wheels: made, shared by name, destroyed; and what every
 * function says of a wheel that has been destroyed. Who may open and destroy a named
 * wheel is tested with the device.
 */
#include "lib_test.h"

#define LONGEST	"lib-3456789012345678901234567890123456789012345678901234567890_"

FIXTURE(named)
{
	char name[32];
	struct tw_wheel *wheel;
	struct tw_events *events;
};

FIXTURE_SETUP(named)
{
	snprintf(self->name, sizeof(self->name), "lib-%d", getpid());
	self->wheel = tw_wheel_open_or_create(self->name, &manual, O_RDWR);
	if (!self->wheel && (errno == ENOENT || errno == ENODEV ||
			     errno == ENOTTY))
		skip("no device, or one without named wheels");
	ASSERT_NE(NULL, self->wheel);
	self->events = tw_events_new(4);
}

FIXTURE_TEARDOWN(named)
{
	tw_wheel_destroy(self->name);
	tw_wheel_close(self->wheel);
	tw_events_free(self->events);
}

/* Two files opened by one name belong to the same wheel. */
TEST_F(named, is_shared)
{
	struct tw_wheel *other = tw_wheel_open_or_create(self->name, &manual,
							 O_RDWR);

	ASSERT_NE(NULL, other);
	ASSERT_EQ(0, RUN(self->wheel, register, 7, SEC, 9, 0));
	EXPECT_EQ(0, tw_wheel_touch(other, 7, 0));
	EXPECT_EQ(info_of(self->wheel).number, info_of(other).number);
	EXPECT_EQ(FD_CLOEXEC, fcntl(tw_wheel_fd(other), F_GETFD));
	tw_wheel_close(other);
}

static int open_error(void *name)
{
	return tw_wheel_open_named(name, O_RDWR) ? 0 : errno;
}

TEST_F(named, a_child_shares_the_names_of_the_kernel_only)
{
	const char *kind = getenv("TIMEWHEEL");

	EXPECT_EQ(kind && !strcmp(kind, "process") ? ENOENT : 0,
		  in_child(open_error, self->name));
}

TEST_F(named, create)
{
	struct timewheel_setup setup = manual;
	const unsigned int exclusive = TIMEWHEEL_CREATE_EXCLUSIVE;

	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_wheel_create(self->name, &manual, 0));
	EXPECT_ERR(EEXIST, tw_wheel_create(self->name, &manual, exclusive));
	setup.slots++;
	EXPECT_ERR(EEXIST, tw_wheel_create(self->name, &setup, 0));
	EXPECT_NONE(EEXIST, tw_wheel_open_or_create(self->name, &setup, O_RDWR));
	ASSERT_EQ(0, tw_wheel_destroy(self->name));
	EXPECT_EQ(0, tw_wheel_create(self->name, &setup, exclusive));
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_wheel_create(self->name, &setup, 0));
}

/* No name leads out of the folder of the wheels. */
TEST_F(named, names)
{
	static const char * const wrong[] = {
		"", ".", "..", "../null", "a/b", "a b", "a.b", "\303\244", "a\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		EXPECT_ERR(EINVAL, tw_wheel_create(wrong[i], &manual, 0));
		EXPECT_ERR(EINVAL, tw_wheel_destroy(wrong[i]));
		EXPECT_NONE(EINVAL, tw_wheel_open_named(wrong[i], O_RDWR));
		EXPECT_NONE(EINVAL, tw_wheel_open_or_create(wrong[i], &manual,
							    O_RDWR));
	}
	EXPECT_ERR(ENAMETOOLONG, tw_wheel_create(LONGEST "x", &manual, 0));
	EXPECT_ERR(ENAMETOOLONG, tw_wheel_destroy(LONGEST "x"));
	EXPECT_NONE(ENAMETOOLONG, tw_wheel_open_named(LONGEST "x", O_RDWR));
	EXPECT_EQ(0, tw_wheel_create(LONGEST, &manual, TIMEWHEEL_CREATE_EXCLUSIVE));
	EXPECT_EQ(0, tw_wheel_destroy(LONGEST));
}

TEST_F(named, open_errors)
{
	const char *path = "/dev/timewheels/lib-null";

	NEEDS_KERNEL("device nodes");
	EXPECT_NONE(ENOENT, tw_wheel_open_named("lib-none", O_RDONLY));
	EXPECT_NONE(EINVAL, tw_wheel_open_named(self->name, O_RDWR | O_TRUNC));
	EXPECT_NONE(EINVAL, tw_wheel_open_named(self->name, O_ACCMODE));
	/* The node of another device is no wheel; 1:3 is /dev/null. */
	ASSERT_EQ(0, mknod(path, S_IFCHR | 0600, 1 << 8 | 3));
	EXPECT_NONE(ENOTTY, tw_wheel_open_named("lib-null", O_RDWR));
	unlink(path);
}

/* Every function tells that the wheel has been destroyed. */
TEST_F(named, destroyed)
{
	struct tw_cursor *cursor = tw_cursor_open(self->wheel, 0, TIMEWHEEL_NEVER);
	struct timewheel_info info = { .size = sizeof(info) };
	struct tw_batch *batch = tw_batch_new(8);
	struct tw_wheel *wheel = self->wheel;
	const struct timewheel_token *token;
	struct timewheel_token told;
	const uint64_t key = 7;

	ASSERT_EQ(0, RUN(wheel, register, 7, 0, 0, 0));
	tw_op_touch(tw_batch_next(batch), 7, 0);
	ASSERT_EQ(0, tw_wheel_destroy(self->name));
	EXPECT_ERR(ENOENT, tw_wheel_destroy(self->name));
	EXPECT_NONE(ENOENT, tw_wheel_open_named(self->name, O_RDWR));

	EXPECT_ERR(ENODEV, RUN(wheel, register, 8, SEC, 0, 0));
	EXPECT_ERR(ENODEV, tw_wheel_touch(wheel, 7, 0));
	EXPECT_ERR(ENODEV, RUN(wheel, touch_or_register, 7, SEC, 0, 0));
	EXPECT_ERR(ENODEV, RUN(wheel, move, 7, SEC, 0));
	EXPECT_ERR(ENODEV, RUN(wheel, cancel, 7, 0));
	EXPECT_ERR(ENODEV, tw_wheel_touch_many(wheel, &key, 1, 0, NULL));
	EXPECT_ERR(ENODEV, tw_wheel_get(wheel, 7, 0, &told));
	EXPECT_ERR(ENODEV, tw_wheel_get_many(wheel, &key, 1, 0, &told, NULL));
	EXPECT_ERR(ENODEV, tw_wheel_info(wheel, &info));
	EXPECT_ERR(ENODEV, tw_wheel_stats(wheel, NULL));
	EXPECT_ERR(ENODEV, tw_wheel_advance(wheel, 101));
	EXPECT_ERR(ENODEV, tw_batch_run(batch, wheel));
	EXPECT_ERR(EINPROGRESS, tw_batch_result(batch, 0));
	EXPECT_ERR(ENODEV, tw_cursor_next(cursor, &token));
	EXPECT_ERR(ENODEV, tw_events_read(self->events, wheel, 0));
	EXPECT_ERR(ENODEV, tw_events_read(self->events, wheel, SEC));
	EXPECT_ERR(ENODEV, tw_events_read(self->events, wheel, TIMEWHEEL_NEVER));
	tw_batch_free(batch);
	tw_cursor_close(cursor);
}

/* A walk that ends with an error does not hand out again what it has handed out. */
TEST_F(named, destroyed_under_a_cursor)
{
	struct timewheel_setup setup = manual;
	const struct timewheel_token *token;
	struct tw_cursor *cursor;
	struct tw_wheel *wheel;
	int listed = 0;

	ASSERT_EQ(0, tw_wheel_destroy(self->name));
	setup.max_tokens = 5000;
	wheel = tw_wheel_open_or_create(self->name, &setup, O_RDWR);
	ASSERT_NE(NULL, wheel);
	for (uint64_t i = 0; i < setup.max_tokens; i++)
		ASSERT_EQ(0, RUN(wheel, register, i, SEC, 0, 0));
	cursor = tw_cursor_open(wheel, 0, TIMEWHEEL_NEVER);
	ASSERT_EQ(1, tw_cursor_next(cursor, &token));
	ASSERT_EQ(0, tw_wheel_destroy(self->name));
	while (tw_cursor_next(cursor, &token) == 1)
		listed++;
	EXPECT_EQ(ENODEV, errno);
	EXPECT_GT(5000, listed);
	EXPECT_ERR(ENODEV, tw_cursor_next(cursor, &token));
	tw_cursor_close(cursor);
	tw_wheel_close(wheel);
}

struct reader {
	struct tw_wheel *wheel;
	uint64_t timeout;
	atomic_int tid;
	ssize_t got;
	int err;
};

static void *reader(void *arg)
{
	struct tw_events *events = tw_events_new(1);
	struct reader *r = arg;

	r->tid = syscall(SYS_gettid);
	r->got = tw_events_read(events, r->wheel, r->timeout);
	r->err = errno;
	tw_events_free(events);
	return NULL;
}

TEST_F(named, destroy_wakes_sleepers)
{
	struct reader readers[] = {
		{ .wheel = self->wheel, .timeout = TIMEWHEEL_NEVER },
		{ .wheel = self->wheel, .timeout = 3600 * SEC },
	};
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, reader, &readers[i]));
		while (!readers[i].tid)
			sched_yield();
		wait_asleep(readers[i].tid);
	}
	ASSERT_EQ(0, tw_wheel_destroy(self->name));
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(-1, readers[i].got);
		EXPECT_EQ(ENODEV, readers[i].err);
	}
}

struct destroyer {
	const char *name;
	atomic_bool over;
	atomic_ulong destroyed;
};

static void *destroyer(void *arg)
{
	struct destroyer *d = arg;

	while (!d->over)
		d->destroyed += !tw_wheel_destroy(d->name);
	return NULL;
}

/* A call that opens or creates gets a wheel, however often others destroy it. */
TEST_F(named, open_or_create_against_destroy)
{
	struct destroyer d = { .name = self->name };
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, destroyer, &d));
	while (d.destroyed < 100) {
		struct tw_wheel *wheel = tw_wheel_open_or_create(self->name,
								 &manual, O_RDWR);

		EXPECT_NE(NULL, wheel);
		tw_wheel_close(wheel);
	}
	d.over = true;
	pthread_join(thread, NULL);
}

TEST_HARNESS_MAIN
