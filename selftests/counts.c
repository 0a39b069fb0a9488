// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cost of operations is counted in instructions, beside the same work done by
 * timerfd and POSIX timers, and closing a wheel keeps the CPU from others for a bounded
 * number of instructions. The tests need a guest that runs one instruction per
 * nanosecond (TW_ICOUNT=1), where clock readings count instructions and repeat on any
 * machine, however busy. All figures are printed; the tests assert only ratios of one
 * run, and the bound.
 */
#define _GNU_SOURCE
#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "tw_test.h"

#define ROUNDS		1000	/* number of single operations */
#define BATCH		512
#define FAR		(1000 * TW_SEC)
#define TRIES		3

static __u64 clock_cost;

/*
 * Runs @code TRIES times and returns the least count, because interrupts and first
 * uses of pages can only add to it.
 */
#define COUNT(code) ({							\
	__u64 least_ = ~0ULL;						\
									\
	for (int try_ = 0; try_ < TRIES; try_++) {			\
		__u64 start_ = tw_now(CLOCK_MONOTONIC_RAW), took_;	\
									\
		code;							\
		took_ = tw_now(CLOCK_MONOTONIC_RAW) - start_;		\
		took_ -= took_ < clock_cost ? took_ : clock_cost;	\
		if (took_ < least_)					\
			least_ = took_;					\
	}								\
	least_;								\
})

/* Runs @n rounds of @code and returns the count per round; @i is the round's number. */
#define COUNT_EACH(n, code)						\
	(COUNT(for (unsigned int i = 0; i < (n); i++) code;) /	\
	 (double)(n))

static void print(const char *what, double count)
{
	printf("# %-50s %12.3f\n", what, count);
	fflush(stdout);
}

FIXTURE(counts) {
	int fd;
};

FIXTURE_SETUP(counts)
{
	if (!getenv("TW_ICOUNT"))
		SKIP(return, "counts instructions: needs TW_ICOUNT=1");
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup(self->fd, TIMEWHEEL_CLOCK_MONOTONIC, 3600, TW_SEC,
			      100000, 0, 0));
	clock_cost = 0;
	clock_cost = COUNT(;);
}

FIXTURE_TEARDOWN(counts)
{
	close(self->fd);
}

static struct timewheel_op ops[BATCH];

static void fill(__u32 code, __u32 flags)
{
	for (__u32 i = 0; i < BATCH; i++) {
		__u64 handle = ops[i].handle;

		ops[i] = (struct timewheel_op) {
			.size = sizeof(ops[i]), .code = code, .flags = flags,
			.id = 10000 + i, .handle = handle, .time = FAR,
		};
	}
}

/*
 * Carries out one batch, which has to succeed in all operations. Returns the count per
 * operation.
 */
static double count_batch(struct __test_metadata *_metadata, int fd, __u32 code,
			  __u32 flags)
{
	__u64 start, took;
	__u32 done;

	fill(code, flags);
	start = tw_now(CLOCK_MONOTONIC_RAW);
	tw_batch(fd, ops, BATCH, &done);
	took = tw_now(CLOCK_MONOTONIC_RAW) - start - clock_cost;
	EXPECT_EQ((__u32)BATCH, done);
	for (__u32 i = 0; i < BATCH; i++) {
		EXPECT_LE(0, ops[i].result) {
			TH_LOG("operation %u, flags %u", code, flags);
		}
	}
	return took / (double)BATCH;
}

/* Gets BATCH tokens by one call. Returns the count per token. */
static double count_get(struct __test_metadata *_metadata, int fd, __u32 flags)
{
	static struct timewheel_token tokens[BATCH];
	static __u64 keys[BATCH];
	__u64 start, took;
	__u32 done;

	for (__u32 i = 0; i < BATCH; i++)
		keys[i] = flags & TIMEWHEEL_OPF_BY_HANDLE ? ops[i].handle :
			  ops[i].id;
	start = tw_now(CLOCK_MONOTONIC_RAW);
	tw_get_keys(fd, flags, keys, BATCH, tokens, &done);
	took = tw_now(CLOCK_MONOTONIC_RAW) - start - clock_cost;
	EXPECT_EQ((__u32)BATCH, done);
	for (__u32 i = 0; i < BATCH; i++)
		EXPECT_EQ((__u32)TIMEWHEEL_STATE_PENDING, tokens[i].state);
	return took / (double)BATCH;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

struct batch_counts {
	double add, touch, touch_or_register, move, get, cancel;
};

/* @flags say how all operations but registrations name their tokens. */
static struct batch_counts count_batches(struct __test_metadata *_metadata,
					 int fd, __u32 flags)
{
	struct batch_counts all = { 1e9, 1e9, 1e9, 1e9, 1e9, 1e9 };

	for (int try = 0; try < TRIES; try++) {
#define BATCH_OF(code, flags) count_batch(_metadata, fd, code, flags)
		all.add = least(all.add, BATCH_OF(TIMEWHEEL_OP_REGISTER, 0));
		all.touch = least(all.touch, BATCH_OF(TIMEWHEEL_OP_TOUCH,
						      flags));
		all.touch_or_register =
			least(all.touch_or_register,
			      BATCH_OF(TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0));
		all.move = least(all.move, BATCH_OF(TIMEWHEEL_OP_MOVE, flags));
		all.get = least(all.get, count_get(_metadata, fd, flags));
		all.cancel = least(all.cancel, BATCH_OF(TIMEWHEEL_OP_CANCEL,
							flags));
#undef BATCH_OF
	}
	return all;
}

/* Counts batches on a wheel without ids, for programs that keep the handles. */
static struct batch_counts count_handle_batches(struct __test_metadata *_metadata)
{
	struct batch_counts all = { 1e9, 1e9, 1e9, 1e9, 1e9, 1e9 };
	int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 3600, TW_SEC,
			      100000, TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES,
			      0));
	for (int try = 0; try < TRIES; try++) {
		__u64 start;
		__u32 done;

		fill(TIMEWHEEL_OP_REGISTER, 0);
		for (int i = 0; i < BATCH; i++)
			ops[i].id = 0;
		start = tw_now(CLOCK_MONOTONIC_RAW);
		tw_batch(fd, ops, BATCH, &done);
		all.add = least(all.add, (tw_now(CLOCK_MONOTONIC_RAW) - start -
					  clock_cost) / (double)BATCH);
		EXPECT_EQ(0, ops[0].result);
#define BATCH_OF(code) count_batch(_metadata, fd, code, TIMEWHEEL_OPF_BY_HANDLE)
		all.touch = least(all.touch, BATCH_OF(TIMEWHEEL_OP_TOUCH));
		all.move = least(all.move, BATCH_OF(TIMEWHEEL_OP_MOVE));
		all.cancel = least(all.cancel, BATCH_OF(TIMEWHEEL_OP_CANCEL));
#undef BATCH_OF
	}
	close(fd);
	return all;
}

/*
 * Reads @n events at a time from a wheel where many are due. Returns the count per
 * event.
 */
static double count_reads(struct __test_metadata *_metadata, int n, __u32 flags)
{
	static struct timewheel_event events[1024];
	int fd = open(TW_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	const unsigned int reads = n == 1 ? 500 : 4;
	double count;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, 3600, TW_SEC, 100000,
			      flags, 0));
	for (unsigned int i = 0; i < TRIES * reads * n; i++)
		ASSERT_EQ(0, tw_register(fd, flags ? 0 : i, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(fd, 1));
	memset(events, 0, sizeof(events));
	count = COUNT_EACH(reads, {
		if (tw_read(fd, events, n) != n)
			abort();
	});
	close(fd);
	return count / n;
}

struct peers {
	double create, arm, rearm, close, read, ioctl, epoll;
};

/* Counts a timerfd for each timeout, as programs use it without this device. */
static struct peers count_timerfd(struct __test_metadata *_metadata)
{
	const struct itimerspec later = { .it_value.tv_sec = 1000 };
	const struct itimerspec now = { .it_value.tv_nsec = 1 };
	struct epoll_event event = { .events = EPOLLIN }, got[1];
	static int fds[ROUNDS];
	struct peers p;
	__u64 start, expirations;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	p.create = 1e9;
	p.close = 1e9;
	p.arm = 1e9;
	for (int try = 0; try < TRIES; try++) {
		start = tw_now(CLOCK_MONOTONIC_RAW);
		for (int i = 0; i < ROUNDS; i++)
			fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC |
						TFD_NONBLOCK);
		p.create = least(p.create, (tw_now(CLOCK_MONOTONIC_RAW) -
					    start) / (double)ROUNDS);
		ASSERT_LE(0, fds[ROUNDS - 1]);
		start = tw_now(CLOCK_MONOTONIC_RAW);
		for (int i = 0; i < ROUNDS; i++)
			timerfd_settime(fds[i], 0, &later, NULL);
		p.arm = least(p.arm, (tw_now(CLOCK_MONOTONIC_RAW) - start) /
				     (double)ROUNDS);
		start = tw_now(CLOCK_MONOTONIC_RAW);
		for (int i = 0; i < ROUNDS; i++)
			close(fds[i]);
		p.close = least(p.close, (tw_now(CLOCK_MONOTONIC_RAW) - start) /
					 (double)ROUNDS);
	}

	fds[0] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	p.rearm = COUNT_EACH(ROUNDS, timerfd_settime(fds[0], 0, &later, NULL));
	/* The timerfd does not know this command: only the system call costs. */
	p.ioctl = COUNT_EACH(ROUNDS, ioctl(fds[0], SIOCINQ, &expirations));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event));
	p.read = 1e9;
	p.epoll = 1e9;
	for (int i = 0; i < 100; i++) {
		__u64 waited;

		ASSERT_EQ(0, timerfd_settime(fds[0], 0, &now, NULL));
		tw_sleep_ms(1);
		start = tw_now(CLOCK_MONOTONIC_RAW);
		ASSERT_EQ(1, epoll_wait(epoll, got, 1, -1));
		waited = tw_now(CLOCK_MONOTONIC_RAW);
		ASSERT_EQ(8, read(fds[0], &expirations, 8));
		p.read = least(p.read, tw_now(CLOCK_MONOTONIC_RAW) - waited -
				       clock_cost);
		p.epoll = least(p.epoll, waited - start - clock_cost);
	}
	close(fds[0]);
	close(epoll);
	return p;
}

static void print_posix_timers(struct __test_metadata *_metadata)
{
	const struct itimerspec later = { .it_value.tv_sec = 1000 };
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	static timer_t timers[ROUNDS];
	__u64 start = tw_now(CLOCK_MONOTONIC_RAW);

	for (int i = 0; i < ROUNDS; i++)
		ASSERT_EQ(0, timer_create(CLOCK_MONOTONIC, &none, &timers[i]));
	print("POSIX: timer_create", (tw_now(CLOCK_MONOTONIC_RAW) - start) /
				     (double)ROUNDS);
	print("POSIX: timer_settime",
	      COUNT_EACH(ROUNDS, timer_settime(timers[i], 0, &later, NULL)));
	start = tw_now(CLOCK_MONOTONIC_RAW);
	for (int i = 0; i < ROUNDS; i++)
		timer_delete(timers[i]);
	print("POSIX: timer_delete", (tw_now(CLOCK_MONOTONIC_RAW) - start) /
				     (double)ROUNDS);
}

static void print_batch(const char *how, const char *what, double count)
{
	char line[80];

	/* A count of 1e9 stands for an operation that was not counted. */
	if (count >= 1e9)
		return;
	snprintf(line, sizeof(line), "batch of 512 %s: %s", how, what);
	print(line, count);
}

static void print_batches(const char *how, const struct batch_counts *b)
{
	print_batch(how, "register", b->add);
	print_batch(how, "touch", b->touch);
	print_batch(how, "touch or register", b->touch_or_register);
	print_batch(how, "move", b->move);
	print_batch(how, "get", b->get);
	print_batch(how, "cancel", b->cancel);
}

static double count_files(struct __test_metadata *_metadata)
{
	double count = COUNT_EACH(100, {
		int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

		if (tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_SEC, 1000, 0,
			     0))
			abort();
		close(fd);
	});

	EXPECT_LT(0, count);
	return count;
}

TEST_F_TIMEOUT(counts, operations_beside_their_peers, 280)
{
	struct batch_counts by_id, by_handle, handles_only;
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	double bare, touch_id, touch_handle, read1024;
	__u64 handle, *handles = calloc(ROUNDS, sizeof(*handles));
	struct timewheel_token token;
	struct peers timerfd;
	int fd = self->fd;

	ASSERT_NE(NULL, handles);
	ASSERT_EQ(0, tw_register(fd, 1, FAR, 0, &handle));
	print("reading the clock (taken off all others)", clock_cost);
	bare = COUNT_EACH(ROUNDS, ioctl(fd, _IO(TIMEWHEEL_IOC_TYPE, 0xff), 0));
	print("bare ioctl: unknown command", bare);

	print("open, setup, close", count_files(_metadata));
	touch_id = COUNT_EACH(ROUNDS, tw_touch(fd, 0, 1));
	print("TIMEWHEEL_IOC_TOUCH by id", touch_id);
	touch_handle = COUNT_EACH(ROUNDS, tw_touch(fd, TIMEWHEEL_OPF_BY_HANDLE,
						   handle));
	print("TIMEWHEEL_IOC_TOUCH by handle", touch_handle);
	print("touch by id",
	      COUNT_EACH(ROUNDS, tw_key_op(fd, TIMEWHEEL_OP_TOUCH, 0, 1, 0)));
	print("touch by handle",
	      COUNT_EACH(ROUNDS, tw_key_op(fd, TIMEWHEEL_OP_TOUCH,
					   TIMEWHEEL_OPF_BY_HANDLE, handle, 0)));
	print("touch or register: touches",
	      COUNT_EACH(ROUNDS, tw_touch_or_register(fd, 1, FAR, 0)));
	print("move by id", COUNT_EACH(ROUNDS, tw_move(fd, 0, 1, FAR + i)));
	print("move by handle",
	      COUNT_EACH(ROUNDS, tw_move(fd, TIMEWHEEL_OPF_BY_HANDLE, handle,
					 FAR + i)));
	print("get", COUNT_EACH(ROUNDS, tw_get(fd, 0, 1, &token)));
	print("register and cancel by id", COUNT_EACH(ROUNDS, {
		if (tw_register(fd, 2, FAR, 0, NULL) || tw_cancel(fd, 0, 2))
			abort();
	}));
	print("register and cancel by handle", COUNT_EACH(ROUNDS, {
		if (tw_register(fd, 2, FAR, 0, &handles[0]) ||
		    tw_cancel(fd, TIMEWHEEL_OPF_BY_HANDLE, handles[0]))
			abort();
	}));
	print("touch or register: registers; and cancel",
	      COUNT_EACH(ROUNDS, {
		if (tw_touch_or_register(fd, 2, FAR, 0) < 0 ||
		    tw_cancel(fd, 0, 2))
			abort();
	}));
	print("poll, nothing due", COUNT_EACH(ROUNDS, poll(&p, 1, 0)));

	by_id = count_batches(_metadata, fd, 0);
	by_handle = count_batches(_metadata, fd, TIMEWHEEL_OPF_BY_HANDLE);
	handles_only = count_handle_batches(_metadata);
	print_batches("by id", &by_id);
	print_batches("by handle", &by_handle);
	print_batches("without ids", &handles_only);

	print("read of 1 event", count_reads(_metadata, 1, 0));
	print("read of 64 events, per event", count_reads(_metadata, 64, 0));
	read1024 = count_reads(_metadata, 1024, 0);
	print("read of 1024 events, per event", read1024);
	read1024 = count_reads(_metadata, 1024, TIMEWHEEL_SETUP_NO_IDS);
	print("read of 1024 events, per event, without ids", read1024);

	timerfd = count_timerfd(_metadata);
	print("timerfd: bare ioctl, unknown command", timerfd.ioctl);
	print("timerfd_create", timerfd.create);
	print("timerfd_settime, arm", timerfd.arm);
	print("timerfd_settime, re-arm", timerfd.rearm);
	print("timerfd: close", timerfd.close);
	print("timerfd: epoll_wait for an expired one", timerfd.epoll);
	print("timerfd: read of an expired one", timerfd.read);
	print_posix_timers(_metadata);

	printf("# ratios, with the goals:\n");
	print("TIMEWHEEL_IOC_TOUCH by handle / bare ioctl (1.25)",
	      touch_handle / bare);
	print("TIMEWHEEL_IOC_TOUCH by handle / timerfd_settime (0.5)",
	      touch_handle / timerfd.rearm);
	print("touch in a batch / timerfd_settime (0.06)",
	      by_handle.touch / timerfd.rearm);
	print("register + cancel in batches / timerfd (0.1)",
	      (by_handle.add + by_handle.cancel) /
	      (timerfd.create + timerfd.arm + timerfd.close));
	print("read in a full batch, per event, without ids (60)", read1024);

	/* The bounds are the reached figures, with some room for other kernels. */
	EXPECT_GE(0.7 * timerfd.rearm, touch_handle);
	EXPECT_GE(0.2 * timerfd.rearm, by_handle.touch);
	EXPECT_GE(0.2 * (timerfd.create + timerfd.arm + timerfd.close),
		  by_handle.add + by_handle.cancel);
	free(handles);
}

/* A real-time thread wakes often, and notes how late it was at worst. */
struct urgent {
	pthread_t thread;
	bool over;
	__u64 latest;	/* ns */
};

static void *wake_often(void *arg)
{
	const struct timespec period = { .tv_nsec = 20000 };
	struct urgent *urgent = arg;

	while (!__atomic_load_n(&urgent->over, __ATOMIC_ACQUIRE)) {
		__u64 due = tw_now(CLOCK_MONOTONIC) + period.tv_nsec, now;

		clock_nanosleep(CLOCK_MONOTONIC, 0, &period, NULL);
		now = tw_now(CLOCK_MONOTONIC);
		if (now - due > urgent->latest)
			urgent->latest = now - due;
	}
	return NULL;
}

static void start_urgent(struct __test_metadata *_metadata,
			 struct urgent *urgent)
{
	const struct sched_param first = { .sched_priority = 10 };
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &first);
	ASSERT_EQ(0, pthread_create(&urgent->thread, &attr, wake_often,
				    urgent));
	pthread_attr_destroy(&attr);
	tw_sleep_ms(5);
	__atomic_store_n(&urgent->latest, 0, __ATOMIC_RELEASE);
}

/* Closes a wheel with @n tokens. Returns how long another thread waits meanwhile. */
static __u64 stalled_by_closing(struct __test_metadata *_metadata, __u32 flags,
				__u32 n)
{
	int fd = open(TW_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	struct urgent urgent = { .over = false };
	__u32 done;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_SEC, n,
			      flags, 0));
	for (__u32 i = 0; i < n; i += BATCH) {
		fill(TIMEWHEEL_OP_REGISTER, 0);
		for (__u32 j = 0; j < BATCH; j++)
			ops[j].id = flags & TIMEWHEEL_SETUP_NO_IDS ? 0 : i + j;
		ASSERT_EQ(0, tw_batch(fd, ops, BATCH, &done));
		ASSERT_EQ((__u32)BATCH, done);
	}
	start_urgent(_metadata, &urgent);
	close(fd);
	__atomic_store_n(&urgent.over, true, __ATOMIC_RELEASE);
	pthread_join(urgent.thread, NULL);
	return urgent.latest;
}

#define KEPT_PAGES	"/proc/sys/vm/percpu_pagelist_high_fraction"

/*
 * Another thread on the same CPU gets its turns while a million tokens, or TW_SCALE of
 * them, are freed. The kernel keeps freed pages for their CPU, and may free all of them
 * at once with interrupts off. The test lets the kernel keep few pages, whose freeing
 * takes some 60,000 instructions.
 */
TEST_F_TIMEOUT(counts, closing_stalls_nobody, 280)
{
	const __u32 flags[] = { 0, TIMEWHEEL_SETUP_NO_IDS };

	ASSERT_TRUE(tw_write_file(KEPT_PAGES, "1000000"));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		__u64 waits = stalled_by_closing(_metadata, flags[i],
						 tw_scaled(2048) * BATCH);

		print("closing many tokens, another waits", waits);
		EXPECT_GE(200000ULL, waits);
	}
	EXPECT_TRUE(tw_write_file(KEPT_PAGES, "0"));
}

TEST_HARNESS_MAIN
