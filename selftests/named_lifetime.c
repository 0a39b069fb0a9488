// SPDX-License-Identifier: GPL-2.0-only
/*
 * A named wheel runs while no file is open, keeps the module loaded (P10), and ends
 * when it is destroyed, whatever uses it at that moment. All sleepers wake then. A
 * wheel that has ended leaves nothing behind: no node, no entry in sysfs, no reference
 * to the module.
 *
 * Each test ends with a check that it has left nothing behind.
 */
#define _GNU_SOURCE
#include <sched.h>

#define PREFIX		"kselftest-lifetime-"
#define TW_GROUP	"/sys/fs/cgroup/timewheel-named-test"
#include "tw_fault.h"
#include "tw_group.h"
#include "tw_named_fixture.h"
#include "tw_process.h"
#include "tw_sleeper.h"
#include "tw_uring.h"

/*
 * P5: tokens become due and none is lost while no file is open and the creator has
 * exited.
 */
TEST_F(named, turns_with_nobody)
{
	enum { TOKENS = 20, FAR = 99 };
	struct timewheel_event events[TOKENS + 1];
	struct timewheel_info info;
	__u32 seen = 0;
	pid_t child;
	int fd;

	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		EXPECT_EQ(0, tw_create(self->dev, NAME, 0, &monotonic));
		fd = tw_open_named(NAME, O_RDWR);
		/* Deadlines are not in the order of the ids. */
		for (int i = 0; i < TOKENS; i++)
			EXPECT_EQ(0, tw_register(fd, i,
						 (300 + i * 7 % TOKENS) * TW_MS,
						 i, NULL));
		EXPECT_EQ(0, tw_register(fd, FAR, 3600 * TW_SEC, 0, NULL));
		END_CHILD();
	}
	ASSERT_EQ(0, tw_reap(child));
	if (self->found.refs >= 0)
		EXPECT_TRUE(tw_refcnt_becomes(self->found.refs + 1));
	tw_sleep_ms(500);

	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(TOKENS + 1ULL, info.pending);
	/* The timer has fired while no file was open. */
	EXPECT_LE(1ULL, info.callbacks);
	EXPECT_TRUE(tw_readable(fd));
	ASSERT_EQ(TOKENS, tw_read(fd, events, TOKENS + 1));
	for (int i = 0; i < TOKENS; i++) {
		EXPECT_EQ(events[i].id, events[i].cookie);
		EXPECT_LE(events[i ? i - 1 : 0].deadline, events[i].deadline);
		EXPECT_LE(events[i].deadline, events[i].taken);
		seen |= 1U << events[i].id;
	}
	EXPECT_EQ((1U << TOKENS) - 1, seen);
	EXPECT_EQ(0, tw_cancel(fd, 0, FAR));
}

/* Returns an epoll that watches @fd for @events, or -1. */
static int watch(int fd, __u32 events)
{
	struct epoll_event event = { .events = events };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -1 : epoll;
}

#define DEAD	(EPOLLHUP | EPOLLERR)

/* DESTROY wakes all sleepers, in read, poll and epoll, and each gets the reason. */
TEST_F_TIMEOUT(named, destroying_wakes_all, LONG)
{
	struct tw_sleeper sleepers[15];
	int n = 0, common;
	pid_t child;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	common = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, tw_register(common, 1, TW_SEC, 0, NULL));
	/* Half of the readers have files of their own. The other readers share one file. */
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++],
					    tw_open_named(NAME, O_RDONLY),
					    tw_sleep_in_read));
		ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++], common,
					    tw_sleep_in_read));
	}
	ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++], tw_open_named(NAME, O_RDWR),
				    tw_sleep_in_poll));
	ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++], common, tw_sleep_in_poll));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++],
					    watch(common, EPOLLIN),
					    tw_sleep_in_epoll));
		ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++],
					    watch(common, EPOLLIN | EPOLLET),
					    tw_sleep_in_epoll));
		ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++],
					    watch(common,
						  EPOLLIN | EPOLLEXCLUSIVE),
					    tw_sleep_in_epoll));
	}
	ASSERT_TRUE(tw_put_to_sleep(&sleepers[n++], watch(common, 0),
				    tw_sleep_in_epoll));
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		struct timewheel_event event;
		int fd = tw_open_named(NAME, O_RDONLY);

		EXPECT_EQ(-ENODEV, tw_ret(tw_read(fd, &event, 1)));
		END_CHILD();
	}
	tw_wait_asleep(child);

	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	EXPECT_EQ(0, tw_reap(child));
	for (int i = 0; i < n; i++) {
		struct tw_sleeper *s = &sleepers[i];
		bool reads = s->sleep == tw_sleep_in_read;

		ASSERT_EQ(0, pthread_join(s->thread, NULL));
		EXPECT_EQ(reads ? -ENODEV : 1, s->ret);
		EXPECT_EQ(reads ? 0U : DEAD, s->events) {
			TH_LOG("sleeper %d", i);
		}
	}
}

/* DESTROY wakes each of many readers that sleep in one wait queue. */
TEST_F(named, destroying_wakes_many_readers)
{
	enum { READERS = 40 };
	struct tw_sleeper sleepers[READERS];
	int fd;

	for (unsigned long round = 0; round < tw_scaled(10); round++) {
		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &monotonic));
		fd = tw_open_named(NAME, O_RDWR);
		for (int i = 0; i < READERS; i++)
			ASSERT_TRUE(tw_start_sleeper(&sleepers[i], fd,
						     tw_sleep_in_read));
		/*
		 * At this moment some readers are asleep, and other readers are about
		 * to sleep.
		 */
		tw_sleep_ms(round);
		ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
		for (int i = 0; i < READERS; i++) {
			ASSERT_EQ(0, pthread_join(sleepers[i].thread, NULL));
			EXPECT_EQ(-ENODEV, sleepers[i].ret);
		}
		close(fd);
	}
}

/* Poll on a destroyed wheel announces the end of the wheel, and no events. */
TEST_F(named, poll_of_a_destroyed_wheel)
{
	struct pollfd p;
	int fd, level, edge, once;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	p = (struct pollfd) { .fd = fd, .events = POLLIN };
	level = watch(fd, EPOLLIN);
	edge = watch(fd, EPOLLIN | EPOLLET);
	once = watch(fd, EPOLLIN | EPOLLONESHOT);
	/* A token is due, and no reader takes it. */
	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLIN, p.revents);
	EXPECT_EQ(EPOLLIN, tw_epoll_now(level));
	EXPECT_EQ(EPOLLIN, tw_epoll_now(edge));
	EXPECT_EQ(0U, tw_epoll_now(edge));
	EXPECT_EQ(EPOLLIN, tw_epoll_now(once));

	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(1, poll(&p, 1, 0));
		EXPECT_EQ(POLLHUP | POLLERR, p.revents);
		EXPECT_EQ(DEAD, tw_epoll_now(level));
		EXPECT_EQ(i ? 0U : DEAD, tw_epoll_now(edge));
		EXPECT_EQ(0U, tw_epoll_now(once));
	}
	p.events = POLLOUT | POLLPRI;
	EXPECT_EQ(1, poll(&p, 1, -1));
	EXPECT_EQ(POLLHUP | POLLERR, p.revents);
	p.events = 0;
	EXPECT_EQ(1, poll(&p, 1, -1));
	EXPECT_EQ(POLLHUP | POLLERR, p.revents);
	/* A waiter that begins to wait now is told at once. */
	EXPECT_EQ(DEAD, tw_epoll_now(watch(fd, EPOLLIN)));
	EXPECT_EQ(DEAD, tw_epoll_now(watch(fd, EPOLLIN | EPOLLET)));
	EXPECT_EQ(DEAD, tw_epoll_now(watch(fd, 0)));
}

/* Requests of io_uring that wait for a wheel end when the wheel is destroyed. */
TEST_F(named, destroying_wakes_io_uring)
{
	struct timewheel_event events[4];
	struct io_uring_cqe cqe;
	struct tw_uring ring;
	int fd, ended = 0;

	if (tw_uring_open(&ring))
		SKIP(return, "no io_uring");
	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR);
	for (int i = 0; i < 4; i++) {
		struct io_uring_sqe sqe = {
			.opcode = i < 2 ? IORING_OP_READ : IORING_OP_POLL_ADD,
			.fd = fd, .user_data = i, .off = i < 2 ? -1 : 0,
			.addr = i < 2 ? (uintptr_t)&events[i] : 0,
			.len = i < 2 ? sizeof(events[i]) : 0,
			.poll32_events = i < 2 ? 0 : tw_uring_events(POLLIN),
		};

		ASSERT_EQ(1, tw_uring_submit(&ring, &sqe));
	}
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	for (int i = 0; i < 4; i++) {
		ASSERT_TRUE(tw_uring_next(&ring, true, &cqe));
		EXPECT_EQ(cqe.user_data < 2 ? -ENODEV : POLLHUP | POLLERR,
			  cqe.res);
		ended |= 1 << cqe.user_data;
	}
	EXPECT_EQ(0xf, ended);
	/* A request that comes later fails at once. */
	ASSERT_EQ(1, tw_uring_submit(&ring, &(struct io_uring_sqe) {
		.opcode = IORING_OP_READ, .fd = fd, .user_data = 4, .off = -1,
		.addr = (uintptr_t)events, .len = sizeof(events),
	}));
	ASSERT_TRUE(tw_uring_next(&ring, true, &cqe));
	EXPECT_EQ(4ULL, cqe.user_data);
	EXPECT_EQ(-ENODEV, cqe.res);
	tw_uring_close(&ring);
}

TEST_F(named, calls_on_a_destroyed_wheel)
{
	int blocking, fd, copy;
	char path[64], line[128];

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	blocking = tw_open_named(NAME, O_RDWR);
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_register(fd, 2, 0, 0, NULL));
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	copy = dup(fd);
	ASSERT_LE(0, copy);
	expect_enodev(_metadata, fd);
	expect_enodev(_metadata, blocking);
	close(fd);
	expect_enodev(_metadata, copy);

	/* The fdinfo of the destroyed wheel's file can still be read. */
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", copy);
	EXPECT_TRUE(read_line(path, line, sizeof(line)));
	EXPECT_EQ(0, close(copy));
	EXPECT_EQ(0, close(blocking));
	EXPECT_TRUE(tw_refcnt_becomes(self->found.refs));
}

/* The next wheel of the name is a new wheel, and the old wheel stays destroyed. */
TEST_F(named, next_wheel_of_the_name)
{
	struct timewheel_info first, second;
	struct timewheel_event event;
	struct timewheel_token token;
	struct stat before, after;
	int old, fd;

	ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
	ASSERT_EQ(0, stat(NODE, &before));
	old = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_register(old, 1, 0, 0, NULL));
	ASSERT_EQ(0, tw_info(old, &first));
	ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
	EXPECT_TRUE(is_gone(NAME));
	EXPECT_EQ(-ENOENT, tw_ret(tw_open_named(NAME, O_RDWR)));

	ASSERT_EQ(0, tw_create(self->dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, &manual));
	ASSERT_EQ(0, stat(NODE, &after));
	EXPECT_NE(before.st_rdev, after.st_rdev);
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_info(fd, &second));
	EXPECT_NE(first.number, second.number);
	EXPECT_EQ(0ULL, second.registered);
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(fd, 0, 1, &token)));
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(fd, &event, 1)));
	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	expect_enodev(_metadata, old);
	close(old);
	EXPECT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_TRUE(is_here(NAME));
}

/* A wheel is destroyed while a reader waits for its memory: the reader gets nothing. */
TEST_F(named, destroyed_under_a_slow_reader)
{
	for (int lose = 0; lose < 2; lose++) {
		const size_t page = sysconf(_SC_PAGESIZE);
		struct tw_slow_reader r;
		struct timewheel_event event;
		int fd;

		ASSERT_EQ(0, tw_create(self->dev, NAME, 0, &manual));
		fd = tw_open_named(NAME, O_RDWR);
		ASSERT_EQ(50UL, tw_register_many(fd, 1, 50, 0, 0));
		TW_START_SLOW_READER(&r, fd, tw_new_pages(page), page);
		ASSERT_EQ(0, tw_destroy_named(self->dev, NAME));
		EXPECT_TRUE(is_gone(NAME));
		EXPECT_EQ(-ENODEV, tw_ret(tw_read(fd, &event, 1)));
		ASSERT_TRUE(lose ? tw_lose_pages(r.uffd, r.pages, r.size) :
				   tw_bring_pages(r.uffd, r.pages, r.size));
		ASSERT_EQ(0, pthread_join(r.thread, NULL));
		EXPECT_EQ(lose ? -EFAULT : -ENODEV, r.ret);
		expect_enodev(_metadata, fd);
		close(fd);
		close(r.uffd);
		EXPECT_TRUE(tw_refcnt_becomes(self->found.refs));
	}
}

/* The processes of a storm count here, in shared memory, what they have done. */
struct storm {
	_Atomic bool stop;
	_Atomic unsigned int made, opened, events, dead;	/* wheels found destroyed: dead */
};

static const char *random_name(__u64 *seed)
{
	static const char *const names[] = { NAME, OTHER, PREFIX "c" };

	return names[tw_random(seed) % ARRAY_SIZE(names)];
}

static int open_in_storm(struct __test_metadata *_metadata, struct storm *storm,
			 const char *name, int flags)
{
	int fd = tw_open_named(name, flags);

	EXPECT_TRUE(fd >= 0 || errno == ENOENT || errno == ENODEV ||
		    errno == ENXIO) {
		TH_LOG("open: %s", strerror(errno));
	}
	storm->opened += fd >= 0;
	return fd;
}

/* Uses an open wheel. Returns whether it still exists. */
static bool use_in_storm(struct __test_metadata *_metadata,
			 struct storm *storm, int fd, __u64 *seed)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timewheel_event events[4];
	__u64 id = tw_random(seed) % 50;
	char name[128];
	int ret;

	ret = tw_ret(tw_register(fd, id, tw_random(seed) % 4 * TW_MS, 0,
				 NULL));
	EXPECT_TRUE(!ret || ret == -EEXIST || ret == -ENODEV) {
		TH_LOG("register: %d", ret);
	}
	ret = tw_ret(tw_touch(fd, 0, id));
	EXPECT_TRUE(ret >= 0 || ret == -ENOENT || ret == -EINVAL ||
		    ret == -ENODEV) {
		TH_LOG("touch: %d", ret);
	}
	ret = tw_ret(tw_read(fd, events, 4));
	EXPECT_TRUE(ret > 0 || ret == -EAGAIN || ret == -ENODEV) {
		TH_LOG("read: %d", ret);
	}
	storm->events += ret > 0 ? ret : 0;
	tw_fdinfo(fd, "name", name, sizeof(name));
	if (poll(&p, 1, tw_random(seed) % 2) == 1 && p.revents != POLLIN) {
		EXPECT_EQ(POLLHUP | POLLERR, p.revents);
		EXPECT_EQ(-ENODEV, tw_ret(tw_read(fd, events, 4)));
		return false;
	}
	return ret != -ENODEV;
}

static void run_storm(struct __test_metadata *_metadata, struct storm *storm,
		      int dev, __u64 seed)
{
	int held[8], ret;

	memset(held, -1, sizeof(held));
	while (!storm->stop) {
		const char *name = random_name(&seed);
		int *fd = &held[tw_random(&seed) % ARRAY_SIZE(held)];
		__u32 what = tw_random(&seed) % 8;

		if (what == 0) {
			ret = tw_ret(tw_create(dev, name, 0, &monotonic));
			EXPECT_LE(0, ret) {
				TH_LOG("create: %d", ret);
			}
			storm->made += !ret;
		} else if (what == 1) {
			ret = tw_ret(tw_create(dev, name, TIMEWHEEL_CREATE_EXCLUSIVE,
					       &monotonic));
			EXPECT_TRUE(!ret || ret == -EEXIST) {
				TH_LOG("exclusive create: %d", ret);
			}
			storm->made += !ret;
		} else if (what == 2) {
			ret = tw_ret(tw_destroy_named(dev, name));
			EXPECT_TRUE(!ret || ret == -ENOENT) {
				TH_LOG("destroy: %d", ret);
			}
		} else if (*fd < 0) {
			*fd = open_in_storm(_metadata, storm, name,
					    O_RDWR | O_NONBLOCK);
		} else if (!use_in_storm(_metadata, storm, *fd, &seed)) {
			storm->dead++;
			close(*fd);
			*fd = -1;
		} else if (what == 3) {
			close(*fd);
			*fd = -1;
		}
	}
}

/* Reads until the wheel is destroyed, and then opens and reads another wheel. */
static void read_in_storm(struct __test_metadata *_metadata,
			  struct storm *storm, __u64 seed)
{
	struct timewheel_event event;

	while (!storm->stop) {
		int fd = open_in_storm(_metadata, storm, random_name(&seed),
				       O_RDONLY);
		int ret = 0;

		if (fd < 0)
			sched_yield();
		while (fd >= 0 && (ret = tw_ret(tw_read(fd, &event, 1))) == 1)
			storm->events++;
		if (fd >= 0)
			EXPECT_EQ(-ENODEV, ret);
		close(fd);
	}
}

/* Returns whether everything has happened that the test wants to see. */
static bool storm_was_one(const struct storm *storm)
{
	return storm->made && storm->opened && storm->dead && storm->events;
}

/* Reads all that the kernel shows of wheels. */
static void look_around(void)
{
	unsigned long long wheels, tokens;

	count_wheels();
	account(0, &wheels, &tokens);
	/* The files contain no such line, and are therefore read to their ends. */
	tw_file_mentions(DEBUG "/stats", "\n\n");
	tw_file_mentions(ENTRY NAME "/uevent", "\n\n");
	number_of(OTHER);
}

/*
 * Processes create, open, use, read and destroy a few wheels at random, and some
 * are killed. A call may fail only with the errors that belong to it.
 */
TEST_F_TIMEOUT(named, storm, LONG)
{
	enum { WORKERS = 4, READERS = 3 };
	struct storm *storm = tw_shared_memory(sizeof(*storm));
	__u64 end = tw_now(CLOCK_MONOTONIC) + tw_scaled(6000) * TW_MS;
	pid_t child[WORKERS + READERS], victim;
	__u64 seed = 1;
	int status;

	ASSERT_NE(MAP_FAILED, (void *)storm);
	for (int i = 0; i < WORKERS + READERS; i++) {
		child[i] = tw_fork();
		ASSERT_LE(0, child[i]);
		if (child[i])
			continue;
		if (i < WORKERS)
			run_storm(_metadata, storm, self->dev, i);
		else
			read_in_storm(_metadata, storm, i);
		END_CHILD();
	}
	while (tw_now(CLOCK_MONOTONIC) < end || !storm_was_one(storm)) {
		/*
		 * One more process works on the wheels like the workers until it is
		 * killed.
		 */
		victim = tw_fork();
		ASSERT_LE(0, victim);
		if (!victim) {
			run_storm(_metadata, storm, self->dev, tw_random(&seed));
			END_CHILD();
		}
		look_around();
		tw_sleep_ms(tw_random(&seed) % 40);
		kill(victim, SIGKILL);
		EXPECT_EQ(-1, tw_reap(victim));
	}
	storm->stop = true;
	for (int i = 0; i < WORKERS + READERS; i++) {
		/* Readers end only when their wheel is destroyed. */
		while (!waitpid(child[i], &status, WNOHANG)) {
			clear_away(self->dev);
			tw_sleep_ms(1);
		}
		EXPECT_EQ(0, status);
	}
	TH_LOG("%u made, %u opened, %u found dead, %u events", storm->made,
	       storm->opened, storm->dead, storm->events);
}

/* Creates a wheel from within the group. Returns 0, an errno, or -1 when killed. */
static int create_in_group(int dev, const struct timewheel_setup *setup)
{
	pid_t child = tw_fork();

	if (!child) {
		if (!tw_group_enter_locked())
			_exit(255);
		_exit(tw_create(dev, NAME, TIMEWHEEL_CREATE_EXCLUSIVE, setup) ?
		      errno : 0);
	}
	return tw_reap(child);
}

/* A wheel outlives the group in which it was created. */
TEST_F(named, outlives_its_group)
{
	struct timewheel_setup setup = manual;
	int dev = self->dev, fd;

	TW_NEEDS_ROOT();
	TW_MAKE_GROUP(64UL << 20);
	setup.max_tokens = 1000;
	ASSERT_EQ(0, create_in_group(dev, &setup));
	ASSERT_EQ(0, rmdir(TW_GROUP));
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_EQ(1000UL, tw_register_many(fd, 0, 1000, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 1));
	EXPECT_EQ(1000, tw_read_all(fd));
	EXPECT_EQ(0, tw_destroy_named(dev, NAME));
}

TEST_HARNESS_MAIN
