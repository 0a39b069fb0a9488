// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program changes the world around a wheel: the wall clock is set, processes have
 * time namespaces, the machine stands still, and other threads occupy all CPUs. The test
 * needs root, and skips without. It restores everything that it changes, but it should
 * run in a guest.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/timex.h>

#include "tw_clock.h"
#include "tw_process.h"
#include "tw_sleeper.h"
#include "tw_test.h"

#define HOUR	(3600 * TW_SEC)

FIXTURE(wall_clock) {
	struct tw_wall wall;
};

/*
 * Sets the speed of the clock: @tick is the number of us in a hundredth of a second,
 * usually 10000.
 */
static int slew_clock(long tick)
{
	struct timex timex = { .modes = ADJ_TICK, .tick = tick };

	return adjtimex(&timex);
}

FIXTURE_SETUP(wall_clock)
{
	TW_NEEDS_ROOT();
	if (tw_save_wall(&self->wall))
		SKIP(return, "cannot set the clock: %s", strerror(errno));
}

FIXTURE_TEARDOWN(wall_clock)
{
	slew_clock(10000);
	tw_restore_wall(&self->wall);
}

/*
 * P8: a REALTIME token is due when the clock shows its deadline, also if the clock
 * was set forward.
 */
TEST_F(wall_clock, forward)
{
	int fd = TW_OPEN(O_RDWR);
	struct tw_sleeper reader;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_REALTIME, 60, 10 * TW_MS, 10,
			      0, 0));
	ASSERT_EQ(0, tw_register(fd, 1, HOUR, 0, NULL));
	ASSERT_EQ(0, tw_register(fd, 2, 3 * HOUR, 0, NULL));
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	ASSERT_EQ(0, tw_shift_wall(&self->wall, HOUR + TW_SEC));
	ASSERT_EQ(0, pthread_join(reader.thread, NULL));
	ASSERT_EQ(1, reader.ret);
	EXPECT_EQ(1ULL, reader.event.id);
	EXPECT_LE(reader.event.deadline, reader.event.taken);
	EXPECT_FALSE(tw_readable(fd));
}

/* P1, P8: no token is early or lost when the clock is set back, forward and back. */
TEST_F(wall_clock, back_and_forth)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timewheel_event event;
	struct timewheel_token token;
	__u64 deadline;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_REALTIME, 60, 10 * TW_MS, 10,
			      0, 0));
	ASSERT_EQ(0, tw_register(fd, 1, 100 * TW_MS, 0, NULL));
	ASSERT_EQ(0, tw_get(fd, 0, 1, &token));
	deadline = token.deadline;

	/* The clock is set back by an hour, and the token is not due yet. */
	ASSERT_EQ(0, tw_shift_wall(&self->wall, -(__s64)HOUR));
	EXPECT_EQ(0, poll(&p, 1, 300));
	EXPECT_EQ(-1, tw_read(fd, &event, 1));
	ASSERT_EQ(0, tw_get(fd, 0, 1, &token));
	EXPECT_EQ(deadline, token.deadline);

	/* A token registered at the earlier time is due by the earlier time. */
	ASSERT_EQ(0, tw_register(fd, 2, 50 * TW_MS, 0, NULL));
	ASSERT_EQ(1, poll(&p, 1, -1));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(2ULL, event.id);
	EXPECT_LE(event.deadline, event.taken);
	EXPECT_LT(event.taken, deadline);

	/* The clock goes ahead by an hour and back again, without a read in between. */
	ASSERT_EQ(0, tw_shift_wall(&self->wall, HOUR));
	EXPECT_EQ(1, poll(&p, 1, 1000));
	ASSERT_EQ(0, tw_shift_wall(&self->wall, -(__s64)HOUR));
	EXPECT_EQ(0, poll(&p, 1, 0));
	EXPECT_EQ(-1, tw_read(fd, &event, 1));
	EXPECT_EQ(0, poll(&p, 1, 100));

	/*
	 * The clock is set to shortly before the deadline, for which the timer has to
	 * be armed.
	 */
	ASSERT_EQ(0, tw_shift_wall(&self->wall, deadline - 200 * TW_MS -
				   self->wall.offset -
				   tw_now(CLOCK_MONOTONIC)));
	ASSERT_EQ(1, poll(&p, 1, -1));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(1ULL, event.id);
	EXPECT_EQ(deadline, event.deadline);
	EXPECT_LE(deadline, event.taken);
}

/* P8: if the clock is set back after an unseen alarm, the alarm is set again. */
TEST_F(wall_clock, back_over_an_alarm)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timewheel_event event;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_REALTIME, 60, 10 * TW_MS, 10,
			      0, 0));
	for (int round = 1; round <= 5; round++) {
		ASSERT_EQ(0, tw_register(fd, round, 50 * TW_MS, 0, NULL));
		tw_sleep_ms(100);
		ASSERT_EQ(0, tw_shift_wall(&self->wall, -round * 500LL * (__s64)TW_MS));
		/* The token is most likely not due again, and this look finds none. */
		tw_readable(fd);
		ASSERT_EQ(1, poll(&p, 1, -1));
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_LE(event.deadline, event.taken);
	}
}

/*
 * P3, P1: the clock is set hundreds of times, tokens are spread over an hour, and
 * each comes once and not early.
 */
TEST_F(wall_clock, many_steps)
{
	enum { TOKENS = 1000 };
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	int seen[TOKENS] = {}, n = 0, got;
	struct timewheel_event events[16];

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_REALTIME, 31, 10 * TW_MS,
			      TOKENS, 0, 0));
	for (int i = 0; i < TOKENS; i++)
		ASSERT_EQ(0, tw_register(fd, i, i * 7919ULL % 3600 * TW_SEC, 0,
					 NULL));
	for (int step = 0; step < 600; step++) {
		/*
		 * The time grows on the whole, but the clock goes back as often as
		 * forward.
		 */
		__s64 to = step * 10LL + (step % 2 ? -600 : 600);

		ASSERT_EQ(0, tw_shift_wall(&self->wall, to * (__s64)TW_SEC));
		while ((got = tw_read(fd, events, 16)) > 0) {
			for (int i = 0; i < got; i++, n++) {
				EXPECT_LE(events[i].deadline, events[i].taken);
				seen[events[i].id]++;
			}
		}
	}
	EXPECT_EQ(TOKENS, n);
	for (int i = 0; i < TOKENS; i++)
		EXPECT_EQ(1, seen[i]);
}

/* P1, P8: no token is early on a clock that is slower or faster by a tenth, as with NTP. */
TEST_F(wall_clock, slewed)
{
	static const struct {
		__u32 clock;
		clockid_t id;
	} clocks[] = {
		{ TIMEWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC },
		{ TIMEWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME },
		{ TIMEWHEEL_CLOCK_REALTIME, CLOCK_REALTIME },
	};
	static const long ticks[] = { 9000, 11000, 10000 };

	for (size_t c = 0; c < ARRAY_SIZE(clocks); c++) {
		int fd = TW_OPEN(O_RDWR);
		struct timewheel_event event;
		__u64 last = 0;

		ASSERT_EQ(0, tw_setup(fd, clocks[c].clock, 31, TW_MS, 100, 0,
				      0));
		for (__u64 i = 0; i < 100; i++)
			ASSERT_EQ(0, tw_register(fd, i, i * 3 * TW_MS, 0, NULL));
		for (__u64 i = 0; i < 100; i++) {
			ASSERT_LE(0, slew_clock(ticks[i / 34])) {
				TH_LOG("%s", strerror(errno));
			}
			ASSERT_EQ(1, tw_read(fd, &event, 1));
			EXPECT_EQ(i, event.id);
			EXPECT_LE(last, event.deadline);
			EXPECT_LE(event.deadline, event.taken);
			EXPECT_LE(event.taken, tw_now(clocks[c].id));
			last = event.deadline;
		}
		close(fd);
	}
}

/* Changes of the wall clock do not affect MONOTONIC and BOOTTIME wheels. */
TEST_F(wall_clock, others_unaffected)
{
	static const __u32 clocks[] = {
		TIMEWHEEL_CLOCK_MONOTONIC, TIMEWHEEL_CLOCK_BOOTTIME,
	};

	for (size_t c = 0; c < ARRAY_SIZE(clocks); c++) {
		int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
		struct pollfd p = { .fd = fd, .events = POLLIN };
		struct timewheel_event event;
		struct timewheel_info info;
		struct timewheel_token token;
		__u64 deadline;

		ASSERT_EQ(0, tw_setup(fd, clocks[c], 60, TW_MS, 10, 0, 0));
		ASSERT_EQ(0, tw_register(fd, 1, HOUR / 2, 0, NULL));
		ASSERT_EQ(0, tw_register(fd, 2, 200 * TW_MS, 0, NULL));
		ASSERT_EQ(0, tw_get(fd, 0, 2, &token));
		deadline = token.deadline;
		ASSERT_EQ(0, tw_shift_wall(&self->wall, HOUR));
		ASSERT_EQ(0, tw_shift_wall(&self->wall, -(__s64)HOUR));
		ASSERT_EQ(1, poll(&p, 1, -1));
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ(2ULL, event.id);
		EXPECT_EQ(deadline, event.deadline);
		EXPECT_LE(deadline, event.taken);
		/*
		 * The timer goes off once for each level, and never because of the
		 * wall clock.
		 */
		ASSERT_EQ(0, tw_info(fd, &info));
		EXPECT_GE(3ULL, info.callbacks);
		ASSERT_EQ(0, tw_shift_wall(&self->wall, HOUR));
		EXPECT_EQ(0, poll(&p, 1, 20));
		close(fd);
	}
}

/* On BOOTTIME the wall clock does not affect leases and periods. */
TEST_F(wall_clock, leases_and_periods)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_BOOTTIME,
		.slots = 60, .tick = 10 * TW_MS, .max_tokens = 10,
		.flags = TIMEWHEEL_SETUP_PERIODS, .lease = 300 * TW_MS,
		.max_held = 10,
	};
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	__u64 start = tw_now(CLOCK_MONOTONIC);
	struct timewheel_event event;

	ASSERT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup));
	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	ASSERT_EQ(0, tw_shift_wall(&self->wall, 5 * HOUR));
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_EQ(0, tw_shift_wall(&self->wall, -(__s64)HOUR));
	ASSERT_EQ(1, poll(&p, 1, -1));
	EXPECT_LE(start + 300 * TW_MS, tw_now(CLOCK_MONOTONIC));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(2U, event.delivery);
	EXPECT_EQ(0, tw_ack(fd, &event));

	/* No period is missed although the wall clock has been set ahead by hours. */
	ASSERT_EQ(0, tw_register_periodic(fd, 0, 2, 0, 600 * TW_SEC));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	ASSERT_EQ(0, tw_ack(fd, &event));
	ASSERT_EQ(0, tw_shift_wall(&self->wall, 5 * HOUR));
	EXPECT_FALSE(tw_readable(fd));
	close(fd);
}

/* Returns the result of a child in a time namespace, as an exit status. */
static int in_namespace(int fd, int shared, clockid_t id, __u32 clock,
			__u64 outside_deadline, __u64 offset)
{
	struct timewheel_event event;
	struct timewheel_info info;
	struct timewheel_token token, listed = {};
	struct timewheel_list list = {
		.size = sizeof(list), .count = 1, .tokens = (uintptr_t)&listed,
		.token_size = sizeof(listed),
	};
	__u64 before, after, wish;

	/* The child's own wheel has the time that the clock shows in the namespace. */
	if (tw_setup(fd, clock, 31, TW_MS, 10, 0, 0))
		return 1;
	before = tw_now(id);
	if (tw_info(fd, &info))
		return 2;
	after = tw_now(id);
	if (info.now < before || info.now > after)
		return 3;
	if (info.next != TIMEWHEEL_NEVER)
		return 15;
	/* A time that a busy machine does not reach before the registration. */
	wish = after + 500 * TW_MS;
	if (tw_register_at(fd, 7, wish, 0))
		return 4;
	if (tw_get(fd, 0, 7, &token) < 0 || token.deadline < wish ||
	    token.deadline >= wish + TW_MS)
		return 5;
	if (tw_info(fd, &info) || info.next > token.deadline)
		return 6;
	if (tw_read(fd, &event, 1) != 1 || event.deadline != token.deadline)
		return 7;
	if (event.taken < event.deadline || event.taken > tw_now(id) ||
	    tw_now(id) < wish)
		return 8;

	/* On a wheel from outside, the child sees the same moment in its own time. */
	if (tw_get(shared, 0, 1, &token) < 0)
		return 9;
	if (token.deadline != outside_deadline + offset ||
	    token.slot != outside_deadline / TW_MS % 31)
		return 10;
	list.from = token.deadline;
	list.to = token.deadline;
	if (ioctl(shared, TIMEWHEEL_IOC_LIST, &list) || list.listed != 1 ||
	    listed.id != 1 || listed.deadline != token.deadline)
		return 16;
	if (tw_read(shared, &event, 1) != 1 || event.id != 1 ||
	    event.deadline != outside_deadline + offset ||
	    event.taken > tw_now(id) || event.taken < event.deadline)
		return 11;
	/* The child registers a token for the parent, at a time of the namespace. */
	wish = tw_now(id) + 500 * TW_MS;
	if (tw_register_at(shared, 2, wish, wish))
		return 12;
	/* Time 0 of the child's clock has passed long ago. */
	if (tw_register_at(fd, 8, 0, 0) || tw_read(fd, &event, 1) != 1)
		return 13;
	if (tw_register_at(fd, 9, UINT64_MAX, 0) != -1 || errno != ERANGE)
		return 14;
	return 0;
}

/* A caller in a time namespace gives and gets absolute times of its namespace. */
FIXTURE(time_namespace) {
	int unused;
};

FIXTURE_VARIANT(time_namespace) {
	__u32 clock;
	clockid_t id;
	__s64 offset;	/* in seconds; -1 sets the clock back almost to zero */
};

FIXTURE_VARIANT_ADD(time_namespace, monotonic_ahead) {
	.clock = TIMEWHEEL_CLOCK_MONOTONIC, .id = CLOCK_MONOTONIC,
	.offset = 100000,
};

FIXTURE_VARIANT_ADD(time_namespace, monotonic_behind) {
	.clock = TIMEWHEEL_CLOCK_MONOTONIC, .id = CLOCK_MONOTONIC,
	.offset = -1,
};

FIXTURE_VARIANT_ADD(time_namespace, boottime_ahead) {
	.clock = TIMEWHEEL_CLOCK_BOOTTIME, .id = CLOCK_BOOTTIME,
	.offset = 200000,
};

FIXTURE_VARIANT_ADD(time_namespace, realtime_same) {
	.clock = TIMEWHEEL_CLOCK_REALTIME, .id = CLOCK_REALTIME,
	.offset = 0,
};

FIXTURE_SETUP(time_namespace)
{
	TW_NEEDS_ROOT();
}

FIXTURE_TEARDOWN(time_namespace)
{
}

TEST_F(time_namespace, times_are_the_callers)
{
	int fd = TW_OPEN(O_RDWR);
	int shared = TW_OPEN(O_RDWR);
	__s64 seconds = variant->offset;
	struct timewheel_event event;
	struct timewheel_token token;
	char offsets[128];
	pid_t child;

	if (seconds < 0)
		seconds = -(__s64)(tw_now(variant->id) / TW_SEC);
	if (unshare(CLONE_NEWTIME))
		SKIP(return, "no time namespaces: %s", strerror(errno));
	snprintf(offsets, sizeof(offsets), "%d %lld 0\n",
		 variant->id == CLOCK_BOOTTIME ? CLOCK_BOOTTIME :
		 CLOCK_MONOTONIC, (long long)seconds);
	ASSERT_TRUE(tw_write_file("/proc/self/timens_offsets", offsets));

	ASSERT_EQ(0, tw_setup(shared, variant->clock, 31, TW_MS, 10, 0, 0));
	ASSERT_EQ(0, tw_register(shared, 1, 200 * TW_MS, 0, NULL));
	ASSERT_EQ(0, tw_get(shared, 0, 1, &token));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(in_namespace(fd, shared, variant->id, variant->clock,
				   token.deadline, seconds * TW_SEC));
	ASSERT_EQ(0, tw_reap(child));

	ASSERT_EQ(1, tw_read(shared, &event, 1));
	EXPECT_EQ(2ULL, event.id);
	/* The token's cookie is the requested time, in the time of the child. */
	EXPECT_GE(event.deadline, event.cookie - seconds * TW_SEC);
	EXPECT_LT(event.deadline, event.cookie - seconds * TW_SEC + TW_MS);
	EXPECT_LE(event.deadline, event.taken);
	EXPECT_LE(event.taken, tw_now(variant->id));
}

/* P8: when the whole machine has stood still, all due tokens come, in order. */
TEST(machine_stands_still)
{
	const char *stop = getenv("TW_VM_STOP");
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_event event;
	__u64 last = 0, jump = 0, before;
	struct timewheel_info info;

	if (!stop)
		SKIP(return, "TW_VM_STOP does not say how");
	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, 10 * TW_MS,
			      100, 0, 0));
	before = tw_now(CLOCK_MONOTONIC);
	for (int i = 0; i < 80; i++)
		ASSERT_EQ(0, tw_register(fd, i, i * 100 * TW_MS, 0, NULL));
	ASSERT_TRUE(tw_write_file(stop, "5\n"));
	for (int i = 0; i < 80; i++) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ((__u64)i, event.id);
		EXPECT_LE(last, event.deadline);
		EXPECT_LE(event.deadline, event.taken);
		if (event.taken - event.deadline > jump)
			jump = event.taken - event.deadline;
		last = event.deadline;
	}
	EXPECT_GE(tw_now(CLOCK_MONOTONIC), before + 7900 * TW_MS);
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.pending);
	TH_LOG("the latest was %llu ms late", jump / TW_MS);
}

/*
 * Other threads occupy all CPUs for a while. Tokens that become due meanwhile are
 * late, but they come, and in order (P8).
 */
static _Atomic __u64 hogged_until;

static void *hog(void *arg)
{
	struct sched_param param = { .sched_priority = 50 };
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET((intptr_t)arg, &cpu);
	if (pthread_setaffinity_np(pthread_self(), sizeof(cpu), &cpu) ||
	    pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		return "cannot";
	while (!hogged_until)
		tw_sleep_ms(1);
	while (tw_now(CLOCK_MONOTONIC) < hogged_until)
		;
	return NULL;
}

TEST(hogged_cpus)
{
	enum { TOKENS = 100, MOST_CPUS = 64 };
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t hogs[MOST_CPUS];
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_event event;
	__u64 last = 0, latest = 0;
	void *error;

	TW_NEEDS_ROOT();
	ASSERT_GE(MOST_CPUS, cpus);
	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, TOKENS,
			      0, 0));
	for (long i = 0; i < cpus; i++)
		ASSERT_EQ(0, pthread_create(&hogs[i], NULL, hog, (void *)i));
	tw_sleep_ms(20);
	for (int i = 0; i < TOKENS; i++)
		ASSERT_EQ(0, tw_register(fd, i, (50 + 9 * i) * TW_MS, 0, NULL));
	hogged_until = tw_now(CLOCK_MONOTONIC) + 1200 * TW_MS;
	for (int i = 0; i < TOKENS; i++) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ((__u64)i, event.id);
		EXPECT_LE(event.deadline, event.taken);
		EXPECT_LE(last, event.deadline);
		last = event.deadline;
		if (event.taken - event.deadline > latest)
			latest = event.taken - event.deadline;
	}
	for (long i = 0; i < cpus; i++) {
		ASSERT_EQ(0, pthread_join(hogs[i], &error));
		EXPECT_NULL(error);
	}
	/* No token is left, and the wheel works as before. */
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_EQ(0, tw_register(fd, 1, 5 * TW_MS, 0, NULL));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	TH_LOG("%ld CPUs, the latest was %llu ms late", cpus, latest / TW_MS);
}

TEST_HARNESS_MAIN
