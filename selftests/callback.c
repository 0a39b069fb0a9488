// SPDX-License-Identifier: GPL-2.0-only
/*
 * The timer callback does the same work however much is due (P6), and none if nothing
 * is due (P7). Work is counted in instructions by the kernel's own tracepoints, in a
 * guest that runs one instruction per nanosecond (TW_ICOUNT=1): there the time
 * stamp counter counts instructions.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/epoll.h>
#include <time.h>

#include "tw_test.h"

#define TRACING		"/sys/kernel/tracing/"
#define ALARM		"function=tw_wheel_alarm"

static bool trace_expiries(bool on)
{
	const char *value = on ? "1" : "0";

	return tw_write_file(TRACING "events/timer/hrtimer_expire_entry/enable",
			     value) &&
	       tw_write_file(TRACING "events/timer/hrtimer_expire_exit/enable",
			     value);
}

/*
 * Reads the trace: the shortest run of the wheel's callback, in cycles, and how often
 * the callback ran. The line of an exit names the timer only.
 */
static unsigned int parse_trace(__u64 *shortest)
{
	FILE *file = fopen(TRACING "trace", "r");
	char line[512], timer[64] = "", name[64];
	unsigned long long entered = 0, now;
	unsigned int runs = 0;

	*shortest = ~0ULL;
	while (file && fgets(line, sizeof(line), file)) {
		char *event = strstr(line, ": hrtimer_expire_");
		char *stamp = event;
		char *hrtimer = strstr(line, "hrtimer=");

		if (line[0] == '#' || !event || !hrtimer ||
		    sscanf(hrtimer, "hrtimer=%63s", name) != 1)
			continue;
		while (stamp > line && stamp[-1] != ' ')
			stamp--;
		now = strtoull(stamp, NULL, 10);
		if (strstr(event, "_entry:")) {
			timer[0] = 0;
			if (strstr(event, ALARM)) {
				memcpy(timer, name, sizeof(timer));
				entered = now;
			}
		} else if (timer[0] && !strcmp(timer, name)) {
			if (now - entered < *shortest)
				*shortest = now - entered;
			runs++;
			timer[0] = 0;
		}
	}
	if (file)
		fclose(file);
	return runs;
}

/* A thread waits for the wheel, so that the callback has a thread to wake. */
static void *wait_for_wheel(void *arg)
{
	struct pollfd p = { .fd = *(int *)arg, .events = POLLIN };

	poll(&p, 1, -1);
	return NULL;
}

#define MOST	1000000

FIXTURE(callback) {
};

FIXTURE_SETUP(callback)
{
	/* The mark helps a person who reads the trace of a failed test. */
	tw_write_file(TRACING "trace_marker", "timewheel callback test\n");
}

FIXTURE_TEARDOWN(callback)
{
}

/* Makes an epoll instance that waits for the wheel until the test ends. */
static int make_poller(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int poller = epoll_create1(EPOLL_CLOEXEC);

	return epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) ? -1 : poller;
}

/*
 * Returns how many instructions the callback takes with @n tokens due in one tick, or 0
 * if no callback was traced. The first of @waiters is a thread, the others are epoll
 * instances.
 */
static __u64 measure(struct __test_metadata *_metadata, int fd, unsigned long n,
		     unsigned int waiters)
{
	static struct timewheel_event events[1024];
	struct timespec at;
	__u64 due, cycles;
	unsigned int runs;
	pthread_t thread;
	size_t left = n;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 3600, 10 * TW_MS,
			      n, 0, 0));
	for (unsigned int i = 1; i < waiters; i++)
		ASSERT_LT(0, make_poller(fd));
	/* The deadline is soon, but after all registrations are done. */
	due = tw_now(CLOCK_MONOTONIC) + 500 * TW_MS + n * 10000;
	ASSERT_EQ(n, tw_register_many(fd, 0, n, TIMEWHEEL_OPF_ABSOLUTE, due));
	ASSERT_LT(tw_now(CLOCK_MONOTONIC) + 300 * TW_MS, due);
	if (waiters)
		ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_wheel, &fd));
	/* The test wakes 60 ms early: to empty the trace takes a grace period or two. */
	at.tv_sec = (due - 60 * TW_MS) / TW_SEC;
	at.tv_nsec = (due - 60 * TW_MS) % TW_SEC;
	ASSERT_EQ(0, clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL));

	ASSERT_TRUE(tw_write_file(TRACING "trace", ""));
	ASSERT_TRUE(tw_write_file(TRACING "tracing_on", "1"));
	ASSERT_LT(tw_now(CLOCK_MONOTONIC), due);
	/*
	 * The loop keeps the CPU busy, so that the tick goes on and is traced: the
	 * tracer takes a few more instructions for an event that comes long after the
	 * event before it.
	 */
	while (tw_now(CLOCK_MONOTONIC) < due + 30 * TW_MS)
		;
	ASSERT_TRUE(tw_write_file(TRACING "tracing_on", "0"));
	runs = parse_trace(&cycles);
	EXPECT_EQ(1U, runs);
	if (waiters)
		ASSERT_EQ(0, pthread_join(thread, NULL));

	while (left) {
		int got = tw_read(fd, events, 1024);

		ASSERT_LT(0, got);
		left -= got;
	}
	return runs ? cycles : 0;
}

/* Returns why instructions cannot be counted here, or NULL and counting begins. */
static const char *begin_to_count(void)
{
	if (!getenv("TW_ICOUNT"))
		return "counts instructions: needs TW_ICOUNT=1";
	if (access(TRACING "trace", W_OK))
		return "no tracefs, or not root";
	if (!tw_write_file(TRACING "trace_clock", "x86-tsc"))
		return "no clock that counts instructions";
	if (!tw_write_file(TRACING "tracing_on", "0") || !trace_expiries(true))
		return "the timers' tracepoints cannot be enabled";
	return NULL;
}

static void end_to_count(void)
{
	trace_expiries(false);
	tw_write_file(TRACING "trace_clock", "local");
	tw_write_file(TRACING "tracing_on", "1");
}

/*
 * The callback raises its flag and wakes, nothing else, for one due token or a million
 * in the same tick. The readers do the work.
 */
TEST_F_TIMEOUT(callback, the_same_count_for_any_number_due, 280)
{
	const unsigned long numbers[] = { 1, 1000, tw_scaled(MOST) };
	const char *reason = begin_to_count();
	__u64 counts[3];

	if (reason)
		SKIP(return, "%s", reason);
	for (int waiter = 0; waiter < 2; waiter++) {
		for (int i = 0; i < 3; i++) {
			/*
			 * Code that runs for the first time takes longer, so the best
			 * of three tries counts.
			 */
			counts[i] = ~0ULL;
			for (int try = 0; try < 3; try++) {
				int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
				__u64 count = measure(_metadata, fd, numbers[i],
						      waiter);

				if (count < counts[i])
					counts[i] = count;
				close(fd);
			}
			TH_LOG("%lu due%s: %llu instructions in the callback",
			       numbers[i], waiter ? ", one waits" : "",
			       counts[i]);
		}
		EXPECT_LT(0ULL, counts[0]);
		for (int i = 1; i < 3; i++) {
			/*
			 * The scheduler chooses the task that is woken, and its work
			 * varies.
			 */
			__u64 slack = waiter ? counts[0] / 10 : 0;

			EXPECT_GE(counts[0] + slack, counts[i]);
			EXPECT_LE(counts[0], counts[i] + slack);
		}
	}
	end_to_count();
}

/*
 * The callback wakes all pollers (P6): each of 100,000 costs no more than each of
 * 1,000.
 */
TEST_F_TIMEOUT(callback, the_same_count_for_each_poller, 280)
{
	/*
	 * The first measurement only makes the code run once, because first runs take
	 * longer.
	 */
	const unsigned int pollers[] = { 0, 0, 1000, tw_scaled(100000) };
	const char *reason = begin_to_count();
	__u64 counts[4], each[4] = {};

	if (reason)
		SKIP(return, "%s", reason);
	for (int i = 0; i < 4; i++) {
		int fd = TW_OPEN(O_RDWR | O_NONBLOCK);

		counts[i] = measure(_metadata, fd, 1, 1 + pollers[i]);
		close(fd);
		ASSERT_LT(0ULL, counts[i]);
		if (pollers[i])
			each[i] = (counts[i] - counts[1]) / pollers[i];
		TH_LOG("%u poll: %llu instructions in the callback, %llu for each",
		       pollers[i], counts[i], each[i]);
	}
	EXPECT_LT(0ULL, each[2]);
	EXPECT_GE(each[2] + each[2] / 10, each[3]);
	end_to_count();
}

/* An empty wheel wakes nothing (P7). */
TEST_F(callback, none_for_an_empty_wheel)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info info;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_MS, 10, 0,
			      0));
	EXPECT_FALSE(tw_readable(fd));
	tw_sleep_ms(1000);
	/* A wheel that has become empty wakes nothing. */
	ASSERT_EQ(0, tw_register(fd, 1, 300 * TW_MS, 0, NULL));
	ASSERT_EQ(0, tw_cancel(fd, 0, 1));
	tw_sleep_ms(1000);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_GE(1ULL, info.callbacks);	/* for the cancelled token */
	EXPECT_EQ((__u64)TIMEWHEEL_NEVER, info.next);
	close(fd);
}

/* Users are active for some seconds: none of their slots falls due. */
TEST_F(callback, none_for_slots_that_are_not_due)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_info info;
	const __u64 users = 1000;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_SEC, users,
			      0, 0));
	ASSERT_EQ(users, tw_register_many(fd, 0, users, 0, 30 * TW_SEC));
	for (int second = 0; second < 5; second++) {
		for (__u64 id = 0; id < users; id++)
			ASSERT_EQ(0, tw_touch(fd, 0, id));
		EXPECT_FALSE(tw_readable(fd));
		tw_sleep_ms(1000);
	}
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.callbacks);
	EXPECT_EQ(0ULL, info.quiet);
	EXPECT_EQ(0ULL, info.refiled);
	close(fd);
}

/* An alarm that nobody looks at is not repeated, however much falls due. */
TEST_F(callback, one_while_nobody_looks)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event events[16];
	struct timewheel_info info;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_MS, 10, 0,
			      0));
	for (__u64 id = 0; id < 10; id++)
		ASSERT_EQ(0, tw_register(fd, id, (id + 1) * 100 * TW_MS, 0,
					 NULL));
	tw_sleep_ms(1500);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1ULL, info.callbacks);
	EXPECT_EQ(10, tw_read(fd, events, 16));
	close(fd);
}

static void *read_one(void *arg)
{
	static struct timewheel_event event;

	return tw_read(*(int *)arg, &event, 1) == 1 ? &event : NULL;
}

/*
 * A lone token goes down the levels while a reader waits, with at most one callback for
 * each level. A wheel with 60 slots of 1 ms has slots of 30 ms on level 1, which
 * reaches 1920 ms far, and slots of 960 ms on level 2.
 */
TEST_F(callback, one_for_each_level_of_a_lone_token)
{
	const struct {
		__u64 delay, levels;
	} cases[] = {
		{ 50 * TW_MS, 1 }, { 1000 * TW_MS, 2 }, { 4000 * TW_MS, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd = TW_OPEN(O_RDWR);
		struct timewheel_event *event;
		struct timewheel_info info;
		pthread_t thread;
		__u64 start;

		ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_MS,
				      10, 0, 0));
		start = tw_now(CLOCK_MONOTONIC);
		ASSERT_EQ(0, tw_register(fd, 7, cases[i].delay, 0, NULL));
		ASSERT_EQ(0, pthread_create(&thread, NULL, read_one, &fd));
		ASSERT_EQ(0, pthread_join(thread, (void **)&event));
		ASSERT_NE(NULL, event);
		EXPECT_EQ(7ULL, event->id);
		EXPECT_LE(start + cases[i].delay, event->taken);
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_GE(cases[i].levels, info.callbacks) {
			TH_LOG("after %llu ms", cases[i].delay / TW_MS);
		}
		EXPECT_LE(1ULL, info.callbacks);
		EXPECT_GT(cases[i].levels, info.quiet);
		close(fd);
	}
}

/* Reads @n events, one by one. Returns how often the timer went off. */
static __u64 callbacks_of(struct __test_metadata *_metadata, int fd,
			  __u64 slack, int n)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 60, .tick = 100000, .max_tokens = n, .slack = slack,
	};
	struct timewheel_event event;
	struct timewheel_info info;

	ASSERT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup));
	for (int id = 0; id < n; id++)
		ASSERT_EQ(0, tw_register(fd, id, 100 * TW_MS + id * 500000ULL,
					 0, NULL));
	for (int id = 0; id < n; id++) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ((__u64)id, event.id);
		EXPECT_LE(event.deadline, event.taken);
	}
	ASSERT_EQ(0, tw_info(fd, &info));
	return info.callbacks;
}

/*
 * 40 tokens come due, one each half a millisecond, while the machine sleeps. Without
 * slack there is an interrupt for each token. A longer slack needs few interrupts: one
 * for each time that something else has woken the machine.
 */
TEST_F(callback, few_within_the_slack)
{
	enum { N = 40 };
	int plain = TW_OPEN(O_RDWR), slack = TW_OPEN(O_RDWR);
	__u64 with, without;

	if (!getenv("TW_ICOUNT"))
		SKIP(return, "wants a machine without other work: TW_ICOUNT=1");
	without = callbacks_of(_metadata, plain, 0, N);
	with = callbacks_of(_metadata, slack, 50 * TW_MS, N);
	TH_LOG("%llu callbacks, with slack %llu", without, with);
	EXPECT_LE((__u64)N, without);
	EXPECT_GE(N / 4ULL, with);
	EXPECT_LE(1ULL, with);
	close(plain);
	close(slack);
}

TEST_HARNESS_MAIN
