// SPDX-License-Identifier: GPL-2.0-only
/*
 * The figures of a wheel are exact: its counters (INFO), the lateness of its events
 * (STATS), and the same figures in debugfs and fdinfo. Debugfs needs root.
 */
#define _GNU_SOURCE
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include "tw_named.h"
#include "tw_test.h"

#define DEBUGFS		"/sys/kernel/debug"
#define MIN_TICK_NS	"/sys/module/timewheel/parameters/min_tick_ns"
#define NAME		"stats"
#define S64_LAST	0x7fffffffffffffffULL
#define DAY		(86400 * TW_SEC)
#define BUCKETS		TIMEWHEEL_BUCKETS

struct histogram {
	__u64 count[BUCKETS];
};

/* Returns where a bucket begins, by the documented formula. The last bucket ends at 2^64. */
static __u64 low(unsigned int bucket)
{
	if (bucket < 4)
		return bucket;
	return (4ULL + bucket % 4) << (bucket / 4 - 1);
}

static __u64 high(unsigned int bucket)
{
	return bucket + 1 < BUCKETS ? low(bucket + 1) - 1 : ~0ULL;
}

static unsigned int bucket_of(__u64 value)
{
	unsigned int bucket = 0;

	while (value > high(bucket))
		bucket++;
	return bucket;
}

static __u64 sum(const struct histogram *h)
{
	__u64 sum = 0;

	for (int i = 0; i < BUCKETS; i++)
		sum += h->count[i];
	return sum;
}

/* Calls STATS with a histogram at address @lateness. Returns 0 or -errno. */
static int stats_to(int fd, __u64 lateness)
{
	struct timewheel_stats stats = { .size = sizeof(stats), .lateness = lateness };

	return tw_ret(ioctl(fd, TIMEWHEEL_IOC_STATS, &stats));
}

static int get_stats(int fd, struct histogram *lateness)
{
	return stats_to(fd, (__u64)(uintptr_t)lateness);
}

#define expect_same(expected, seen)					\
	_expect_same(_metadata, expected, seen, __LINE__)

static void _expect_same(struct __test_metadata *_metadata,
			 const struct histogram *expected,
			 const struct histogram *seen, int line)
{
	for (int i = 0; i < BUCKETS; i++) {
		EXPECT_EQ(expected->count[i], seen->count[i]) {
			TH_LOG("in line %d: bucket %d: %llu to %llu ns", line,
			       i, low(i), high(i));
		}
	}
}

/* P3: the counters of one moment account for each token. */
#define expect_ledger(fd)	_expect_ledger(_metadata, fd, __LINE__)

static struct timewheel_info _expect_ledger(struct __test_metadata *_metadata,
					    int fd, int line)
{
	struct timewheel_info info;

	EXPECT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(info.registered, info.delivered + info.cancelled +
				   info.pending + info.taken) {
		TH_LOG("in line %d: %llu = %llu + %llu + %llu + %llu", line,
		       info.registered, info.delivered, info.cancelled,
		       info.pending, info.taken);
	}
	return info;
}

/* The buckets of the documented formula have no gaps and no overlaps, and end at 2^64. */
TEST(buckets)
{
	EXPECT_EQ(0ULL, low(0));
	for (int i = 1; i < BUCKETS; i++)
		ASSERT_EQ(low(i) - 1, high(i - 1));
	for (int i = 1; i < BUCKETS; i++)
		ASSERT_LT(low(i - 1), low(i));
	EXPECT_EQ(7ULL << 61, low(BUCKETS - 1));
	EXPECT_EQ(BUCKETS - 1U, bucket_of(~0ULL));
	EXPECT_EQ(36U, bucket_of(1024));
	EXPECT_EQ(35U, bucket_of(1023));
}

/* The fixture has a manual wheel of 1 s ticks, with its hand on tick 0. */
FIXTURE(stats) {
	int fd;
	char min_tick[32];	/* old value, empty if the test cannot change it */
};

FIXTURE_SETUP(stats)
{
	FILE *file = fopen(MIN_TICK_NS, "re");

	if (file && !access(MIN_TICK_NS, W_OK) &&
	    !fgets(self->min_tick, sizeof(self->min_tick), file))
		self->min_tick[0] = 0;
	if (file)
		fclose(file);
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_manual(self->fd, 60, 1000, 0));
}

FIXTURE_TEARDOWN_PARENT(stats)
{
	int control = open(TW_DEVICE, O_RDWR);

	if (self->min_tick[0])
		EXPECT_TRUE(tw_write_file(MIN_TICK_NS, self->min_tick));
	tw_destroy_named(control, NAME);
	close(control);
}

/* Each successful touch of any kind counts once, and a failed touch does not count. */
TEST_F(stats, touches_are_counted)
{
	__u64 touched = 0, handle, stale;
	struct timewheel_info info;
	__u64 op_keys[] = { 1, 1, 1, 1 };
	struct timewheel_op ops[4];
	__u32 done;

#define expect_touched(by) do {						\
	touched += (by);						\
	ASSERT_EQ(0, tw_info(self->fd, &info));				\
	EXPECT_EQ(touched, info.touched);				\
} while (0)

	ASSERT_EQ(0, tw_register(self->fd, 1, 100 * TW_SEC, 0, &handle));
	ASSERT_EQ(0, tw_register(self->fd, 2, 100 * TW_SEC, 0, &stale));
	ASSERT_EQ(0, tw_cancel(self->fd, 0, 2));
	ASSERT_EQ(0, tw_register_at(self->fd, 3, 200 * TW_SEC, 0));
	expect_touched(0);

	EXPECT_EQ(0, tw_touch(self->fd, 0, 1));
	expect_touched(1);
	op_keys[2] = 9;
	EXPECT_EQ(-ENOENT, tw_ret(tw_touch_keys(self->fd, 0, op_keys, 4, NULL)));
	expect_touched(2);
	/* A second touch on the same tick changes nothing, and still counts. */
	EXPECT_EQ(0, tw_touch(self->fd, 0, 1));
	expect_touched(1);
	EXPECT_EQ(0, tw_touch(self->fd, TIMEWHEEL_OPF_BY_HANDLE, handle));
	expect_touched(1);
	EXPECT_EQ(0, tw_key_op(self->fd, TIMEWHEEL_OP_TOUCH, 0, 1, 0));
	expect_touched(1);
	EXPECT_EQ(0, tw_key_op(self->fd, TIMEWHEEL_OP_TOUCH,
			       TIMEWHEEL_OPF_BY_HANDLE, handle, 0));
	expect_touched(1);
	EXPECT_EQ(0, tw_touch_or_register(self->fd, 1, TW_SEC, 0));
	expect_touched(1);
	EXPECT_EQ(TIMEWHEEL_RES_REGISTERED, tw_touch_or_register(self->fd, 4,
								 TW_SEC, 0));
	expect_touched(0);
	EXPECT_EQ(0, tw_move(self->fd, 0, 1, 100 * TW_SEC));
	expect_touched(0);

	EXPECT_EQ(-ENOENT, tw_ret(tw_touch(self->fd, 0, 9)));
	EXPECT_EQ(-ESTALE, tw_ret(tw_touch(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
					   stale)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch(self->fd, 0, 3)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch_or_register(self->fd, 3, TW_SEC,
						       0)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch(self->fd, 2, 1)));
	ASSERT_EQ(0, tw_register(self->fd, 5, S64_LAST / TW_SEC * TW_SEC, 0,
				 NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	EXPECT_EQ(-ERANGE, tw_ret(tw_touch(self->fd, 0, 5)));
	expect_touched(0);

	/* A touch past the deadline counts too. */
	ASSERT_EQ(0, tw_advance(self->fd, 100));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_touch(self->fd, 0, 1));
	expect_touched(1);

	memset(ops, 0, sizeof(ops));
	for (int i = 0; i < 4; i++) {
		ops[i].size = sizeof(ops[i]);
		ops[i].code = TIMEWHEEL_OP_TOUCH;
		ops[i].id = 1 + i % 2 * 8;
	}
	EXPECT_EQ(0, tw_batch(self->fd, ops, 4, &done));
	EXPECT_EQ(-ENOENT, ops[1].result);
	expect_touched(2);
	ops[0].flags = TIMEWHEEL_OPF_BY_HANDLE;
	ops[0].handle = handle;
	ops[1].flags = TIMEWHEEL_OPF_BY_HANDLE;
	ops[1].handle = stale;
	ops[2].code = TIMEWHEEL_OP_TOUCH_OR_REGISTER;
	ops[3].code = TIMEWHEEL_OP_TOUCH_OR_REGISTER;
	ops[3].time = TW_SEC;
	EXPECT_EQ(0, tw_batch(self->fd, ops, 4, &done));
	EXPECT_EQ(-ESTALE, ops[1].result);
	EXPECT_EQ(TIMEWHEEL_RES_REGISTERED, ops[3].result);
	expect_touched(2);
	/* Moves, cancellations and registrations have counters of their own. */
	EXPECT_EQ(1ULL, info.moved);
	EXPECT_EQ(1ULL, info.cancelled);
	EXPECT_EQ(6ULL, info.registered);
	expect_ledger(self->fd);
#undef expect_touched
}

/* Reads one event, which has to be exactly @ticks late. Returns whether it was. */
static bool late_by(int fd, __u64 ticks, __u64 tick)
{
	struct timewheel_event event;

	return !tw_advance(fd, 0) && !tw_register_at(fd, 1, 0, 0) &&
	       !tw_advance(fd, ticks) && tw_read(fd, &event, 1) == 1 &&
	       event.taken - event.deadline == ticks * tick;
}

/*
 * Expects an event to count as @value ns late, rounded down to whole ticks. Returns
 * its lateness.
 */
static __u64 expect_late(struct __test_metadata *_metadata, __u64 value,
			 __u64 tick)
{
	struct histogram expected = {}, lateness;
	__u64 ticks = value / tick;
	int fd = open(TW_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, 60, tick, 10, 0, 0));
	ASSERT_TRUE(late_by(fd, ticks, tick)) {
		TH_LOG("%llu ticks of %llu ns", ticks, tick);
	}
	expected.count[bucket_of(ticks * tick)]++;
	memset(&lateness, 0xcc, sizeof(lateness));
	ASSERT_EQ(0, get_stats(fd, &lateness));
	expect_same(&expected, &lateness);
	close(fd);
	return ticks * tick;
}

/*
 * Tests the lateness at each boundary, 1 ns below and 1 ns above it. If no tick is so
 * short, or the hand does not reach so far, the test takes the nearest possible
 * value. Each value is tested as one tick of that length, and as many short ticks.
 */
TEST_F_TIMEOUT(stats, lateness_around_every_boundary, 120)
{
	bool seen[BUCKETS] = {};

	NEEDS_KERNEL("a module has parameters");
	if (!self->min_tick[0])
		SKIP(return, "cannot write " MIN_TICK_NS);
	ASSERT_TRUE(tw_write_file(MIN_TICK_NS, "1000"));
	for (int b = 36; low(b) <= S64_LAST; b++) {
		for (int off = -1; off <= 1; off++) {
			__u64 value = low(b) + off, tick = 1024;

			if (value <= DAY) {
				EXPECT_EQ(value, expect_late(_metadata, value,
							     value));
				seen[bucket_of(value)] = true;
			}
			/*
			 * The tick is the shortest one with which the hand reaches
			 * the value.
			 */
			while (value / tick > TIMEWHEEL_MAX_TICK)
				tick *= 2;
			value = expect_late(_metadata, value, tick);
			seen[bucket_of(value)] = true;
		}
	}
	/* The test has seen each bucket from 1 us to 2^63 ns. */
	for (int b = 35; low(b) <= S64_LAST; b++)
		EXPECT_TRUE(seen[b]);
}

/* Adds events to the expected histogram of their lateness. */
static void book(struct histogram *h, const struct timewheel_event *events,
		 int n)
{
	for (int i = 0; i < n; i++)
		h->count[bucket_of(events[i].taken - events[i].deadline)]++;
}

/* The histogram matches the events of tokens with random operations exactly. */
TEST_F(stats, lateness_is_of_the_events)
{
	struct histogram expected = {}, lateness;
	struct timewheel_event events[200];
	unsigned int seed = 1;
	__u64 read = 0, hand = 0;
	struct timewheel_info info;

	for (unsigned long round = 0; round < tw_scaled(300); round++) {
		int n;

		for (int i = 0; i < 20; i++) {
			__u64 id = rand_r(&seed) % 500;
			__u64 time = rand_r(&seed) % 300 * TW_SEC;

			switch (rand_r(&seed) % 6) {
			case 0:
				tw_register_at(self->fd, id, time, 0);
				break;
			case 1:
				tw_touch(self->fd, 0, id);
				break;
			case 2:
				tw_move(self->fd, 0, id, time);
				break;
			case 3:
				tw_cancel(self->fd, 0, id);
				break;
			default:
				tw_touch_or_register(self->fd, id, time, 0);
			}
		}
		/* The hand goes back at times, or far ahead. */
		hand += rand_r(&seed) % 40;
		if (rand_r(&seed) % 10 == 0)
			hand = rand_r(&seed) % 1000;
		ASSERT_EQ(0, tw_advance(self->fd, hand));
		n = tw_read(self->fd, events, rand_r(&seed) % 200 + 1);
		if (n < 0)
			ASSERT_EQ(EAGAIN, errno);
		book(&expected, events, n);
		read += n < 0 ? 0 : n;
		info = expect_ledger(self->fd);
		EXPECT_EQ(read, info.delivered);
		ASSERT_EQ(0, get_stats(self->fd, &lateness));
		ASSERT_EQ(read, sum(&lateness));
	}
	expect_same(&expected, &lateness);
	EXPECT_LT(0ULL, read);
}

/* A token that is taken twice because of a fault counts once, when it is delivered. */
TEST_F(stats, put_back_counts_once)
{
	enum { N = 100 };
	const size_t page_size = sysconf(_SC_PAGESIZE);
	const size_t size = sizeof(struct timewheel_event);
	struct histogram expected = {}, lateness, none = {};
	struct timewheel_event events[N];
	struct timewheel_info info;
	char *end;

	NEEDS_KERNEL("EFAULT");
	end = mmap(NULL, 2 * page_size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, end);
	end += page_size;
	ASSERT_EQ(0, munmap(end, page_size));

	for (__u64 id = 1; id <= N; id++)
		ASSERT_EQ(0, tw_register(self->fd, id, id * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, N));
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(-EFAULT, tw_ret(read(self->fd, end, N * size)));
	ASSERT_EQ(0, get_stats(self->fd, &lateness));
	expect_same(&none, &lateness);
	info = expect_ledger(self->fd);
	EXPECT_LE(3ULL, info.put_back);
	EXPECT_EQ(0ULL, info.delivered);

	/* The read delivers the first seven tokens. The rest come later, and are later. */
	ASSERT_EQ((ssize_t)(7 * size), read(self->fd, end - 7 * size - 5,
					    N * size));
	memcpy(events, end - 7 * size - 5, 7 * size);
	book(&expected, events, 7);
	ASSERT_EQ(0, get_stats(self->fd, &lateness));
	expect_same(&expected, &lateness);
	ASSERT_EQ(0, tw_advance(self->fd, 10 * N));
	ASSERT_EQ(N - 7, tw_read(self->fd, events, N));
	EXPECT_EQ(10 * N * TW_SEC, events[0].taken);
	book(&expected, events, N - 7);
	ASSERT_EQ(0, get_stats(self->fd, &lateness));
	expect_same(&expected, &lateness);
	EXPECT_EQ((__u64)N, sum(&lateness));
}

/* On a real clock, too, the figures match the events. */
TEST(lateness_on_a_real_clock)
{
	const __u32 clocks[] = {
		TIMEWHEEL_CLOCK_MONOTONIC, TIMEWHEEL_CLOCK_BOOTTIME,
		TIMEWHEEL_CLOCK_REALTIME,
	};

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		struct histogram expected = {}, lateness;
		struct timewheel_event events[7];
		int fd = TW_OPEN(O_RDWR), n;

		ASSERT_EQ(0, tw_setup(fd, clocks[i], 31, TW_MS, 1000, 0, 0));
		for (int id = 0; id < 300; id++)
			ASSERT_EQ(0, tw_register(fd, id, id % 60 * TW_MS, 0,
						 NULL));
		for (int left = 300; left; left -= n) {
			n = tw_read(fd, events, 7);
			ASSERT_LT(0, n);
			book(&expected, events, n);
			if (left % 5 == 0)
				tw_sleep_ms(1);
		}
		ASSERT_EQ(0, get_stats(fd, &lateness));
		expect_same(&expected, &lateness);
		expect_ledger(fd);
		close(fd);
	}
}

/*
 * Registers a token and sleeps until the wheel's timer has gone off. A call on the
 * due tick may be faster than the timer, which then need not go off. The test
 * therefore asks after the tick, and begins again if the timer was later still.
 */
static bool let_timer_go_off(int fd, __u64 delay)
{
	struct timewheel_info before, info;
	struct timewheel_event event;

	for (int tries = 0; tries < 100; tries++) {
		if (tw_info(fd, &before) ||
		    tw_register(fd, 1, delay, 0, NULL))
			return false;
		tw_sleep_ms(delay / TW_MS + 2);
		if (tw_info(fd, &info))
			return false;
		if (info.callbacks == before.callbacks + 1)
			return true;
		/*
		 * A late timer of this round must not be taken for the next round's
		 * timer.
		 */
		tw_sleep_ms(20);
		if (tw_read(fd, &event, 1) != 1)
			return false;
	}
	return false;
}

/* INFO counts a timer as quiet that went off for a token that had been moved. */
TEST(timer_for_nothing)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info before, info;

	NEEDS_KERNEL("an fd is readable only while a token is due");
	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, 1000, 0,
			      0));
	for (int round = 0; round < 5; round++) {
		ASSERT_TRUE(let_timer_go_off(fd, 3 * TW_MS));
		ASSERT_EQ(0, tw_info(fd, &before));
		ASSERT_LE(0, tw_move(fd, 0, 1, 3600 * TW_SEC));
		EXPECT_FALSE(tw_readable(fd));
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(before.callbacks, info.callbacks);
		EXPECT_EQ(before.quiet + 1, info.quiet);
		ASSERT_EQ(0, tw_cancel(fd, 0, 1));
	}
	close(fd);
}

/* INFO counts a timer as quiet if a read finds that the timer's token was touched. */
TEST(read_for_nothing)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	struct timewheel_info info;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 100, 0));
	ASSERT_EQ(0, tw_register(fd, 1, 10 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(fd, 5));
	ASSERT_EQ(0, tw_touch(fd, 0, 1));
	ASSERT_EQ(0, tw_advance(fd, 10));
	for (int reads = 0; reads < 2; reads++) {
		EXPECT_EQ(-EAGAIN, tw_ret(tw_read(fd, &event, 1)));
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(1, info.quiet);
	}
	ASSERT_EQ(0, tw_advance(fd, 15));
	EXPECT_EQ(1, tw_read(fd, &event, 1));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1, info.quiet);
	close(fd);
}

/* Threads that register, touch, cancel and read as fast as they can. */
struct crowd {
	_Atomic bool stop;
	_Atomic unsigned long registered, touched, cancelled, delivered;
	_Atomic int wrong;
	pthread_t threads[4];
	int fd;
};

/* Touches a token in one of all ways. A touch of a missing token fails. */
static int touch_somehow(int fd, __u64 id, unsigned int how)
{
	struct timewheel_token token;

	switch (how % 5) {
	case 0:
		return tw_touch(fd, 0, id);
	case 1:
		if (tw_get(fd, 0, id, &token) < 0)
			return -1;
		return tw_touch(fd, TIMEWHEEL_OPF_BY_HANDLE, token.handle);
	case 2:
		return tw_touch_keys(fd, 0, &id, 1, NULL);
	case 3:
		return tw_key_op(fd, TIMEWHEEL_OP_TOUCH, 0, id, 0);
	default:
		return tw_touch_each(fd, id, 1) ? 0 : -1;
	}
}

static void *be_busy(void *arg)
{
	static _Atomic unsigned int seeds;
	struct crowd *c = arg;
	unsigned int seed = ++seeds;

	while (!c->stop) {
		struct timewheel_event events[9];
		__u64 id = rand_r(&seed) % 200;
		int ret, n;

		ret = tw_touch_or_register(c->fd, id, rand_r(&seed) % 4 * TW_MS,
					   0);
		if (ret >= 0 && ret & TIMEWHEEL_RES_REGISTERED)
			c->registered++;
		else if (ret >= 0)
			c->touched++;
		else if (errno != EINVAL)	/* a token without a timeout */
			c->wrong = errno;
		ret = touch_somehow(c->fd, rand_r(&seed) % 200, rand_r(&seed));
		c->touched += ret >= 0;
		if (tw_cancel(c->fd, 0, rand_r(&seed) % 200) >= 0)
			c->cancelled++;
		n = tw_read(c->fd, events, rand_r(&seed) % 9 + 1);
		if (n > 0)
			c->delivered += n;
	}
	return NULL;
}

/*
 * While the threads run, no figure decreases, the counters of each moment add up, and
 * the histogram has as many events as were read by then. At the end all figures match
 * the threads' own counts.
 */
TEST_F(stats, figures_of_a_busy_wheel)
{
	struct histogram lateness = {}, last = {};
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info before, after;
	struct crowd c = { .fd = fd };

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, 1000, 0,
			      0));
	for (size_t i = 0; i < ARRAY_SIZE(c.threads); i++)
		ASSERT_EQ(0, pthread_create(&c.threads[i], NULL, be_busy, &c));
	before = expect_ledger(fd);
	for (unsigned long i = 0; i < tw_scaled(2000); i++) {
		ASSERT_EQ(0, get_stats(fd, &lateness));
		after = expect_ledger(fd);
		ASSERT_LE(before.delivered, sum(&lateness));
		ASSERT_GE(after.delivered, sum(&lateness));
		for (int b = 0; b < BUCKETS; b++)
			ASSERT_LE(last.count[b], lateness.count[b]);
		ASSERT_LE(before.registered, after.registered);
		ASSERT_LE(before.cancelled, after.cancelled);
		ASSERT_LE(before.delivered, after.delivered);
		ASSERT_LE(before.touched, after.touched);
		ASSERT_LE(before.refiled, after.refiled);
		ASSERT_LE(before.callbacks, after.callbacks);
		ASSERT_LE(before.quiet, after.quiet);
		last = lateness;
		before = after;
		if (i % 50 == 0)
			tw_sleep_ms(1);
	}
	c.stop = true;
	for (size_t i = 0; i < ARRAY_SIZE(c.threads); i++)
		ASSERT_EQ(0, pthread_join(c.threads[i], NULL));
	EXPECT_EQ(0, c.wrong);
	after = expect_ledger(fd);
	EXPECT_EQ(c.registered, after.registered);
	EXPECT_EQ(c.touched, after.touched);
	EXPECT_EQ(c.cancelled, after.cancelled);
	EXPECT_EQ(c.delivered, after.delivered);
	EXPECT_EQ(0ULL, after.taken);
	ASSERT_EQ(0, get_stats(fd, &lateness));
	EXPECT_EQ(after.delivered, sum(&lateness));
	close(fd);
}

/* STATS writes the whole histogram and nothing else, at any alignment. */
TEST_F(stats, written_whole)
{
	struct {
		__u64 before;
		struct histogram h;
		__u64 behind;
	} area;
	struct histogram expected = {};
	struct timewheel_event event;

	memset(&area, 0xcc, sizeof(area));
	ASSERT_EQ(0, tw_register(self->fd, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 3));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	book(&expected, &event, 1);
	EXPECT_EQ(0, get_stats(self->fd, &area.h));
	EXPECT_EQ(0xccccccccccccccccULL, area.before);
	EXPECT_EQ(0xccccccccccccccccULL, area.behind);
	expect_same(&expected, &area.h);

	EXPECT_EQ(0, get_stats(self->fd, (void *)((char *)&area.h + 3)));
	memmove(&area.h, (char *)&area.h + 3, sizeof(area.h));
	expect_same(&expected, &area.h);
}

/* STATS fails with EFAULT if it cannot write, and the next call returns all figures. */
TEST_F(stats, bad_addresses)
{
	const size_t page_size = sysconf(_SC_PAGESIZE);
	struct histogram expected = {}, h;
	struct timewheel_event event;
	struct tw_state before, after;
	char *pages;
	__u64 at, end;

	NEEDS_KERNEL("EFAULT");
	ASSERT_EQ(0, tw_register(self->fd, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_register(self->fd, 2, 100 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 3));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	book(&expected, &event, 1);
	ASSERT_EQ(0, tw_get_state(self->fd, 0, 2, &before));

	/*
	 * The first page can only be read, the next two can be written, and the last
	 * is missing.
	 */
	pages = mmap(NULL, 4 * page_size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, pages);
	ASSERT_EQ(0, mprotect(pages, page_size, PROT_READ));
	at = (__u64)(uintptr_t)pages;
	end = at + 3 * page_size;
	ASSERT_EQ(0, munmap(pages + 3 * page_size, page_size));

	const __u64 bad[] = {
		0, 1, 8, at, at + page_size - 8, end - sizeof(h) + 1, end - 8, end,
		0xffff888000000000, 0x0000800000000000, 1ULL << 63, ~0ULL,
		~0ULL - 7, ~0ULL - sizeof(h) + 1,
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EFAULT, stats_to(self->fd, bad[i])) {
			TH_LOG("%#llx", bad[i]);
		}
	}
	ASSERT_EQ(0, get_stats(self->fd, &h));
	expect_same(&expected, &h);
	/* The histogram fits exactly into the end of the last page. */
	EXPECT_EQ(0, stats_to(self->fd, end - sizeof(h)));
	ASSERT_EQ(0, tw_get_state(self->fd, 0, 2, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
}

/* Creates the named wheel "stats" through a file of the device. Returns 0 or -errno. */
static int create_named(int control)
{
	static const struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 60, .tick = TW_SEC, .max_tokens = 100,
	};

	return tw_ret(tw_create_named(control, NAME, setup));
}

/*
 * Makes a wheel with leases and periodic tokens. Deliveries end in all ways: 3 are
 * acked, 3 are nacked, and 1 ends in each other way.
 */
static void use_deliveries(struct __test_metadata *_metadata, int fd)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 60, .tick = TW_SEC, .max_tokens = 100,
		.flags = TIMEWHEEL_SETUP_PERIODS, .lease = 10 * TW_SEC,
		.max_held = 10,
	};
	struct timewheel_event events[8];

	ASSERT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup));
	ASSERT_EQ(8UL, tw_register_many(fd, 1, 8, 0, 0));
	ASSERT_EQ(8, tw_read(fd, events, 8));
	for (__u64 id = 1; id <= 3; id++)
		ASSERT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_ACK, 0, id, 1, 0));
	for (__u64 id = 4; id <= 5; id++)
		ASSERT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_NACK, 0, id, 1,
				       3600 * TW_SEC));
	ASSERT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_DELETE, 0, 7, 0, 0));
	ASSERT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_NACK, 0, 6, 1, 0));
	ASSERT_EQ(1, tw_read(fd, events, 8));
	ASSERT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_EXTEND, 0, 6, 2, 100 * TW_SEC));
	/*
	 * The read ends one lease that is over, and one periodic token has missed 5
	 * periods.
	 */
	ASSERT_EQ(0, tw_register_periodic(fd, 0, 10, 10 * TW_SEC, TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 15));
	ASSERT_EQ(2, tw_read(fd, events, 8));
}

#define expect_fdinfo(fd, name, expected) do {				\
	char expected_[32], value_[80];					\
									\
	snprintf(expected_, sizeof(expected_), "%llu",			\
		 (unsigned long long)(expected));			\
	tw_fdinfo(fd, name, value_, sizeof(value_));			\
	EXPECT_STREQ(expected_, value_) {				\
		TH_LOG("%s", name);					\
	}								\
} while (0)

/* Does all operations, in different numbers, on a manual wheel at tick 0. */
static void use(struct __test_metadata *_metadata, int fd)
{
	struct timewheel_event events[3];
	struct iovec nowhere = { (void *)8, sizeof(events) };

	ASSERT_EQ(11UL, tw_register_many(fd, 1, 11, 0, TW_SEC));
	ASSERT_EQ(7UL, tw_touch_each(fd, 1, 7));
	ASSERT_EQ(0, tw_cancel(fd, 0, 1));
	ASSERT_EQ(0, tw_cancel(fd, 0, 2));
	ASSERT_EQ(0, tw_move(fd, 0, 3, 70 * TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 4));
	ASSERT_EQ(-EFAULT, tw_ret(readv(fd, &nowhere, 1)));
	ASSERT_EQ(3, tw_read(fd, events, 3));
}

TEST_F(stats, fdinfo_agrees_with_info)
{
	struct timewheel_info info;
	char name[80];
	int fd;

	NEEDS_KERNEL("fdinfo");
	/* The fdinfo of a file without a wheel has no figures. */
	fd = TW_OPEN(O_RDWR);
	EXPECT_TRUE(tw_fdinfo(fd, "flags", name, sizeof(name)));
	EXPECT_FALSE(tw_fdinfo(fd, "slots", name, sizeof(name)));
	close(fd);

	ASSERT_EQ(0, create_named(self->fd));
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	use(_metadata, fd);
	use(_metadata, self->fd);
	for (int i = 0; i < 2; i++) {
		int wheel = i ? fd : self->fd;

		ASSERT_EQ(0, tw_info(wheel, &info));
		tw_fdinfo(wheel, "name", name, sizeof(name));
		EXPECT_STREQ(i ? "stats" : "", name);
		EXPECT_EQ(11ULL, info.registered);
		EXPECT_EQ(7ULL, info.touched);
		EXPECT_EQ(3ULL, info.delivered);
		expect_fdinfo(wheel, "wheel", info.number);
		expect_fdinfo(wheel, "slots", info.slots);
		expect_fdinfo(wheel, "tick_ns", info.tick);
		expect_fdinfo(wheel, "hand", info.hand);
		expect_fdinfo(wheel, "next_ns", info.next);
		expect_fdinfo(wheel, "pending", info.pending);
		expect_fdinfo(wheel, "max_tokens", info.max_tokens);
		expect_fdinfo(wheel, "bytes", info.bytes);
		expect_fdinfo(wheel, "registered", info.registered);
		expect_fdinfo(wheel, "touched", info.touched);
		expect_fdinfo(wheel, "delivered", info.delivered);
	}
	/* A destroyed wheel with an open file does no harm. */
	EXPECT_EQ(0, tw_destroy_named(self->fd, NAME));
	tw_fdinfo(fd, "flags", name, sizeof(name));
	EXPECT_NE(0, name[0]);
	close(fd);
}

#define NEED_DEBUGFS() do {						\
	struct statfs fs_;						\
									\
	TW_NEEDS_ROOT();						\
	if (statfs(DEBUGFS, &fs_) || fs_.f_type != DEBUGFS_MAGIC)	\
		SKIP(return, "needs " DEBUGFS);				\
} while (0)

#define HEADER	"number name uid clock slots tick_ns max_tokens pending bytes " \
		"registered touched moved cancelled delivered put_back refiled " \
		"callbacks quiet acked nacked lapsed returned deleted missed\n"

/* The figures of a wheel, in the order of the list in debugfs. */
enum {
	SLOTS, TICK, MAX_TOKENS, PENDING, BYTES, REGISTERED, TOUCHED, MOVED,
	CANCELLED, DELIVERED, PUT_BACK, REFILED, CALLBACKS, QUIET, ACKED, NACKED,
	LAPSED, RETURNED, DELETED, MISSED, FIGURES
};

static void figures_of(const struct timewheel_info *info, __u64 *figures)
{
	const __u64 f[FIGURES] = {
		info->slots, info->tick, info->max_tokens, info->pending,
		info->bytes, info->registered, info->touched, info->moved,
		info->cancelled, info->delivered, info->put_back,
		info->refiled, info->callbacks, info->quiet, info->acked,
		info->nacked, info->lapsed, info->returned, info->deleted,
		info->missed,
	};

	memcpy(figures, f, sizeof(f));
}

/* A line of the list of wheels in debugfs. */
struct line {
	unsigned long number, uid;
	char name[TIMEWHEEL_NAME_SIZE], clock[16];
	__u64 figures[FIGURES];
};

/* Opens the list of wheels and reads its header. Returns NULL if it cannot be read. */
static FILE *open_wheels(void)
{
	FILE *file = fopen(DEBUGFS "/timewheel/wheels", "re");
	char header[256];

	if (file && fgets(header, sizeof(header), file) &&
	    !strcmp(header, HEADER))
		return file;
	if (file)
		fclose(file);
	return NULL;
}

/* Reads a decimal number and nothing else. */
static bool number(const char *text, __u64 *value)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	*value = strtoull(text, &end, 10);
	return !*end;
}

/* Reads a line. Returns 1, 0 at the end of the file, or -1 if the line is malformed. */
static int next_wheel(FILE *file, struct line *l)
{
	char text[512], *column[4 + FIGURES + 1], *at = text;
	__u64 wheel, uid;
	int n = 0;

	if (!fgets(text, sizeof(text), file))
		return 0;
	text[strcspn(text, "\n")] = 0;
	while (at && n < 4 + FIGURES + 1)
		column[n++] = strsep(&at, " ");
	if (n != 4 + FIGURES || !number(column[0], &wheel) ||
	    !number(column[2], &uid))
		return -1;
	for (n = 0; n < FIGURES; n++) {
		if (!number(column[4 + n], &l->figures[n]))
			return -1;
	}
	l->number = wheel;
	l->uid = uid;
	snprintf(l->name, sizeof(l->name), "%s", column[1]);
	snprintf(l->clock, sizeof(l->clock), "%s", column[3]);
	return 1;
}

/* Looks for a wheel. Returns the number of its lines, or -1. */
static int find_wheel(unsigned long number, struct line *found)
{
	FILE *file = open_wheels();
	struct line line;
	int ret, lines = 0;

	if (!file)
		return -1;
	while ((ret = next_wheel(file, &line)) > 0) {
		if (line.number == number) {
			*found = line;
			lines++;
		}
	}
	fclose(file);
	return ret < 0 ? ret : lines;
}

#define expect_listed(fd, name, uid, clock)				\
	_expect_listed(_metadata, fd, name, uid, clock, __LINE__)

static void _expect_listed(struct __test_metadata *_metadata, int fd,
			   const char *name, unsigned long uid,
			   const char *clock, int line)
{
	struct timewheel_info info;
	__u64 figures[FIGURES];
	struct line l = {};

	ASSERT_EQ(0, tw_info(fd, &info));
	ASSERT_EQ(1, find_wheel(info.number, &l)) {
		TH_LOG("wheel %u, in line %d", info.number, line);
	}
	EXPECT_STREQ(name, l.name);
	EXPECT_STREQ(clock, l.clock);
	EXPECT_EQ(uid, l.uid);
	figures_of(&info, figures);
	for (int i = 0; i < FIGURES; i++) {
		EXPECT_EQ(figures[i], l.figures[i]) {
			TH_LOG("column %d, in line %d", 5 + i, line);
		}
	}
}

/* Each living wheel has a line with the figures of INFO. */
TEST_F(stats, debugfs_wheels)
{
	static const struct {
		__u32 clock;
		const char *name;
	} clocks[] = {
		{ TIMEWHEEL_CLOCK_MONOTONIC, "monotonic" },
		{ TIMEWHEEL_CLOCK_BOOTTIME, "boottime" },
		{ TIMEWHEEL_CLOCK_REALTIME, "realtime" },
	};
	struct timewheel_event event;
	struct timewheel_info info;
	struct line line;
	int fd, real;

	NEEDS_KERNEL("debugfs");
	NEED_DEBUGFS();
	expect_listed(self->fd, "-", 0, "manual");
	use(_metadata, self->fd);
	expect_listed(self->fd, "-", 0, "manual");

	ASSERT_EQ(0, seteuid(48213));
	ASSERT_EQ(0, create_named(self->fd));
	ASSERT_EQ(0, seteuid(0));
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	use(_metadata, fd);
	expect_listed(fd, "stats", 48213, "manual");
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		real = TW_OPEN(O_RDWR);
		ASSERT_EQ(0, tw_setup(real, clocks[i].clock, 31, TW_MS, 10, 0, 0));
		ASSERT_EQ(0, tw_register(real, 1, TW_MS, 0, NULL));
		ASSERT_EQ(1, tw_read(real, &event, 1));
		ASSERT_EQ(0, tw_register(real, 1, 3600 * TW_SEC, 0, NULL));
		expect_listed(real, "-", 0, clocks[i].name);
		ASSERT_EQ(0, tw_info(real, &info));
		close(real);
		EXPECT_EQ(0, find_wheel(info.number, &line));
	}

	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0, tw_destroy_named(self->fd, NAME));
	close(fd);
	EXPECT_EQ(0, find_wheel(info.number, &line));
	real = TW_OPEN(O_RDWR | O_NONBLOCK);
	use_deliveries(_metadata, real);
	ASSERT_EQ(0, tw_info(real, &info));
	EXPECT_EQ(3ULL, info.acked);
	EXPECT_EQ(3ULL, info.nacked);
	EXPECT_EQ(1ULL, info.lapsed);
	EXPECT_EQ(1ULL, info.deleted);
	EXPECT_EQ(5ULL, info.missed);
	expect_listed(real, "-", 0, "manual");
	expect_fdinfo(real, "held", info.held);
	EXPECT_EQ(3ULL, info.held);
	close(real);
	/* A file that was never set up has no line. */
	real = TW_OPEN(O_RDWR);
	expect_listed(self->fd, "-", 0, "manual");
	close(real);
}

/* The names of the sums over all wheels. Only the first three sums may decrease. */
static const char *const total_names[] = {
	"wheels", "pending", "bytes", "registered", "touched", "moved",
	"cancelled", "delivered", "put_back", "refiled", "callbacks", "quiet",
	"acked", "nacked", "lapsed", "returned", "deleted", "missed",
};

#define TOTALS	ARRAY_SIZE(total_names)

struct totals {
	__u64 value[TOTALS];
	struct histogram lateness;
};

static bool read_bucket(const char *text, struct histogram *h)
{
	unsigned long long from, to, count;
	unsigned int bucket;

	if (sscanf(text, "%llu %llu %llu", &from, &to, &count) != 3)
		return false;
	bucket = bucket_of(from);
	/* Each bucket has at most one line, with both bounds and a count above 0. */
	if (from != low(bucket) || to != high(bucket) || !count ||
	    h->count[bucket])
		return false;
	h->count[bucket] = count;
	return true;
}

static bool read_total(const char *name, const char *text, struct totals *t,
		       unsigned int *seen)
{
	if (!strcmp(name, "lateness_ns"))
		return read_bucket(text, &t->lateness);
	for (size_t i = 0; i < TOTALS; i++) {
		if (strcmp(name, total_names[i]) || *seen & 1U << i)
			continue;
		*seen |= 1U << i;
		return number(text, &t->value[i]);
	}
	return false;
}

/* Returns whether the file has each expected line once, and nothing else. */
static bool read_totals(struct totals *t)
{
	FILE *file = fopen(DEBUGFS "/timewheel/stats", "re");
	unsigned int seen = 0;
	char line[128];
	bool ok = file;

	memset(t, 0, sizeof(*t));
	while (ok && fgets(line, sizeof(line), file)) {
		char *text = line, *name = strsep(&text, " ");

		line[sizeof(line) - 1] = 0;
		if (text)
			text[strcspn(text, "\n")] = 0;
		ok = text && read_total(name, text, t, &seen);
	}
	if (file)
		fclose(file);
	return ok && seen == (1U << TOTALS) - 1;
}

/* Adds the figures of the wheel @fd to the expected sums. */
static void add_wheel(struct __test_metadata *_metadata, struct totals *t,
		      int fd)
{
	struct timewheel_info info;
	struct histogram lateness;
	__u64 figures[FIGURES];

	ASSERT_EQ(0, tw_info(fd, &info));
	ASSERT_EQ(0, get_stats(fd, &lateness));
	figures_of(&info, figures);
	t->value[0]++;
	for (size_t i = 1; i < TOTALS; i++)
		t->value[i] += figures[PENDING + i - 1];
	for (int b = 0; b < BUCKETS; b++)
		t->lateness.count[b] += lateness.count[b];
}

#define expect_totals(expected)						\
	_expect_totals(_metadata, expected, __LINE__)

static void _expect_totals(struct __test_metadata *_metadata,
			   const struct totals *expected, int line)
{
	struct totals t;

	ASSERT_TRUE(read_totals(&t));
	for (size_t i = 0; i < TOTALS; i++) {
		EXPECT_EQ(expected->value[i], t.value[i]) {
			TH_LOG("%s, in line %d", total_names[i], line);
		}
	}
	_expect_same(_metadata, &expected->lateness, &t.lateness, line);
}

/* Resets the figures that count only living wheels to their values before the test. */
static void forget_living(struct totals *t, const struct totals *before)
{
	memcpy(t->value, before->value, 3 * sizeof(t->value[0]));
}

/* The module's figures are the sums over all living and ended wheels. */
TEST_F(stats, debugfs_stats)
{
	struct totals before, expected;
	struct timewheel_event event;
	int fd, real;

	NEEDS_KERNEL("debugfs");
	NEED_DEBUGFS();
	/* The figures include the fixture's wheel, which stays unused. */
	ASSERT_TRUE(read_totals(&before));
	real = TW_OPEN(O_RDWR);
	expect_totals(&before);
	ASSERT_EQ(0, tw_setup(real, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, 100,
			      0, 0));
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(0, tw_register(real, 1, TW_MS, 0, NULL));
		ASSERT_EQ(1, tw_read(real, &event, 1));
	}
	ASSERT_EQ(0, tw_register(real, 1, 3600 * TW_SEC, 0, NULL));
	expected = before;
	add_wheel(_metadata, &expected, real);
	expect_totals(&expected);

	ASSERT_EQ(0, create_named(self->fd));
	fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	use(_metadata, fd);
	add_wheel(_metadata, &expected, fd);
	expect_totals(&expected);

	/* The wheel is closed with a token, whose end is not counted. */
	close(real);
	EXPECT_EQ(0, tw_destroy_named(self->fd, NAME));
	close(fd);
	forget_living(&expected, &before);
	expect_totals(&expected);
}

/* Only root may read the files. */
TEST_F(stats, debugfs_is_roots)
{
	static const char *const files[] = { "wheels", "users", "stats" };
	char path[64];

	NEEDS_KERNEL("debugfs");
	NEED_DEBUGFS();
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		int fd;

		snprintf(path, sizeof(path), DEBUGFS "/timewheel/%s", files[i]);
		fd = open(path, O_RDONLY);
		EXPECT_LE(0, fd);
		close(fd);
		ASSERT_EQ(0, seteuid(48213));
		EXPECT_EQ(-EACCES, tw_ret(open(path, O_RDONLY)));
		ASSERT_EQ(0, seteuid(0));
	}
}

/* Returns whether a word of the file at @path may be an address of the kernel. */
static bool tells_an_address(const char *path)
{
	FILE *file = fopen(path, "re");
	char word[256];
	bool tells = !file;

	while (file && !tells && fscanf(file, "%255s", word) == 1) {
		for (int base = 10; base <= 16; base += 6) {
			__u64 value = strtoull(word, NULL, base);

			tells |= value >= 0xffff800000000000ULL &&
				 value != TIMEWHEEL_NEVER;
		}
	}
	if (file)
		fclose(file);
	return tells;
}

/* The files show figures, and no address of the kernel's memory. */
TEST_F(stats, no_addresses)
{
	char paths[5][64] = {
		DEBUGFS "/timewheel/wheels", DEBUGFS "/timewheel/users",
		DEBUGFS "/timewheel/namespaces",
		DEBUGFS "/timewheel/stats",
	};

	NEEDS_KERNEL("debugfs");
	NEED_DEBUGFS();
	ASSERT_EQ(0, tw_register(self->fd, 1, DAY, 2, NULL));
	snprintf(paths[4], sizeof(paths[4]), "/proc/self/fdinfo/%d", self->fd);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		EXPECT_FALSE(tells_an_address(paths[i])) {
			TH_LOG("%s", paths[i]);
		}
	}
}

/* Threads that make wheels, use them a little, and close or destroy them. */
struct makers {
	_Atomic bool stop;
	_Atomic unsigned long made;
	_Atomic int wrong;
	pthread_t threads[3];
	int control;
};

#define USED	5	/* tokens of each wheel: one is read, and one is touched */

static bool make_and_end(bool named)
{
	int fd = named ? tw_open_named(NAME, O_RDWR) :
			 open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	struct timewheel_event event;
	bool ok = fd >= 0 && (named || !tw_setup_manual(fd, 60, 10, 0)) &&
		  tw_register_many(fd, 1, USED, 0, TW_SEC) == USED &&
		  !tw_touch(fd, 0, 1) && !tw_advance(fd, 1) &&
		  tw_read(fd, &event, 1) == 1;

	close(fd);
	return ok;
}

static void *make_wheels(void *arg)
{
	struct makers *m = arg;
	static _Atomic int first;
	bool named = !first++;

	while (!m->stop) {
		bool ok = (!named || !create_named(m->control)) &&
			  make_and_end(named) &&
			  (!named || !tw_destroy_named(m->control, NAME));

		m->made += ok;
		m->wrong += !ok;
	}
	return NULL;
}

/* Makes wheels that have large counts when they end. */
static void *make_large_wheels(void *arg)
{
	struct makers *m = arg;

	while (!m->stop) {
		int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

		if (fd < 0 || tw_setup_manual(fd, 60, 500, 0) ||
		    tw_register_many(fd, 1, 500, 0, TW_SEC) != 500 ||
		    tw_touch_each(fd, 1, 500) != 500)
			m->wrong++;
		close(fd);
		m->made++;
	}
	return NULL;
}

#define LIVING	500

/* Makes wheels that stay. */
static void open_living(struct __test_metadata *_metadata, int *fds)
{
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 4096, 4096 }));
	for (int i = 0; i < LIVING; i++) {
		fds[i] = TW_OPEN(O_RDWR);
		ASSERT_EQ(0, tw_setup_manual(fds[i], 1, 1, 0));
	}
}

static void close_living(const int *fds)
{
	for (int i = 0; i < LIVING; i++)
		close(fds[i]);
}

/*
 * A wheel is always counted either as living or as ended. The sums therefore never
 * decrease while wheels end. Wheels that stay are summed up first, and meanwhile others end.
 */
TEST_F_TIMEOUT(stats, debugfs_stats_while_wheels_end, 120)
{
	static struct totals before, last, now;
	static int fds[LIVING];
	struct makers m = {};
	unsigned long reads = 0;

	NEEDS_KERNEL("debugfs");
	NEED_DEBUGFS();
	open_living(_metadata, fds);
	ASSERT_TRUE(read_totals(&before));
	last = before;
	ASSERT_EQ(0, pthread_create(&m.threads[0], NULL, make_large_wheels,
				    &m));
	for (; m.made < tw_scaled(500); reads++) {
		ASSERT_TRUE(read_totals(&now));
		for (size_t k = 3; k < TOTALS; k++) {
			ASSERT_LE(last.value[k], now.value[k]) {
				TH_LOG("%s", total_names[k]);
			}
		}
		last = now;
	}
	m.stop = true;
	ASSERT_EQ(0, pthread_join(m.threads[0], NULL));
	EXPECT_EQ(0, m.wrong);
	EXPECT_LT(0UL, reads);
	before.value[3] += m.made * 500;
	before.value[4] += m.made * 500;
	expect_totals(&before);
	close_living(fds);
}

/* Expects one complete line of each living wheel. */
static void expect_all_listed(struct __test_metadata *_metadata,
			      const __u32 *living)
{
	FILE *file = open_wheels();
	unsigned char lines[LIVING] = {};
	struct line line;
	int ret, listed = 0;

	ASSERT_NE(NULL, file);
	while ((ret = next_wheel(file, &line)) > 0) {
		for (int i = 0; i < LIVING; i++) {
			if (living[i] == line.number)
				listed += !lines[i]++;
		}
	}
	EXPECT_EQ(0, ret);
	EXPECT_EQ(LIVING, listed);
	for (int i = 0; i < LIVING; i++)
		EXPECT_EQ(1, lines[i]);
	fclose(file);
}

/*
 * The files can be read while wheels are made and ended. A wheel that stays is
 * neither missed nor listed twice, and at the end the sums include all wheels that
 * ever existed.
 */
TEST_F_TIMEOUT(stats, debugfs_while_wheels_come_and_go, 120)
{
	static struct totals before, now;
	struct makers m = { .control = self->fd };
	static __u32 living[LIVING];
	static int fds[LIVING];

	NEEDS_KERNEL("debugfs");
	NEED_DEBUGFS();
	open_living(_metadata, fds);
	for (int i = 0; i < LIVING; i++) {
		struct timewheel_info info;

		ASSERT_EQ(0, tw_info(fds[i], &info));
		living[i] = info.number;
	}
	ASSERT_TRUE(read_totals(&before));
	for (size_t i = 0; i < ARRAY_SIZE(m.threads); i++)
		ASSERT_EQ(0, pthread_create(&m.threads[i], NULL, make_wheels,
					    &m));
	for (unsigned long i = 0; i < tw_scaled(100); i++) {
		FILE *users = fopen(DEBUGFS "/timewheel/users", "re");
		char line[128];

		expect_all_listed(_metadata, living);
		ASSERT_TRUE(read_totals(&now));
		ASSERT_LE(before.value[0], now.value[0]);
		ASSERT_NE(NULL, users);
		while (fgets(line, sizeof(line), users))
			EXPECT_EQ('\n', line[strlen(line) - 1]);
		fclose(users);
	}
	m.stop = true;
	for (size_t i = 0; i < ARRAY_SIZE(m.threads); i++)
		ASSERT_EQ(0, pthread_join(m.threads[i], NULL));
	EXPECT_EQ(0, m.wrong);
	EXPECT_LT(0UL, m.made);

	before.value[3] += m.made * USED;	/* registered */
	before.value[4] += m.made;		/* touched */
	before.value[7] += m.made;		/* delivered */
	before.lateness.count[0] += m.made;
	ASSERT_TRUE(read_totals(&now));
	before.value[9] = now.value[9];		/* refiled: any number */
	expect_totals(&before);
	close_living(fds);
}

TEST_HARNESS_MAIN
