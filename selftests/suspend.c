// SPDX-License-Identifier: GPL-2.0-only
/*
 * A machine with wheels is suspended to RAM: MONOTONIC wheels stand still while it
 * sleeps, BOOTTIME and REALTIME wheels go on. The RTC wakes the machine. Tokens that
 * became due can be read on resume, no token is early or lost, and no wheel has woken
 * the machine (P1, P3, P8). The test needs root, and a machine that may be sent to
 * sleep. An emulated machine does not sleep reliably a second time.
 */
#define _GNU_SOURCE
#include <pthread.h>

#include "tw_sleeper.h"
#include "tw_test.h"

#define ASLEEP	"5"	/* seconds, because the RTC counts whole seconds */
#define WAKE	"/sys/class/rtc/rtc0/wakealarm"
#define STATE	"/sys/power/state"
#define PRETEND	"/sys/power/pm_test"

static const struct {
	__u32 clock;
	clockid_t id;
	bool stands_still;
} clocks[] = {
	{ TIMEWHEEL_CLOCK_MONOTONIC, CLOCK_MONOTONIC, true },
	{ TIMEWHEEL_CLOCK_BOOTTIME, CLOCK_BOOTTIME, false },
	{ TIMEWHEEL_CLOCK_REALTIME, CLOCK_REALTIME, false },
};

#define CLOCKS	ARRAY_SIZE(clocks)
#define TOKENS	100	/* due within 4 s from the registration on */
#define FAR	TOKENS	/* id of a token that is due in an hour */

/* Two wheels of a clock. A reader sleeps in a read of @blocked, and no thread reads @fd. */
struct wheels {
	struct tw_sleeper reader;
	int blocked, fd;
	struct timewheel_token far;	/* state before the sleep */
	__u64 before;
};

static void prepare(struct __test_metadata *_metadata, struct wheels *w,
		    size_t i)
{
	w->fd = TW_OPEN(O_RDWR);
	ASSERT_EQ(0, tw_setup(w->fd, clocks[i].clock, 31, TW_MS, TOKENS + 1, 0,
			      0));
	for (int n = 0; n < TOKENS; n++)
		ASSERT_EQ(0, tw_register(w->fd, n, n * 40 * TW_MS, n, NULL));
	ASSERT_EQ(0, tw_register(w->fd, FAR, 3600 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_get(w->fd, 0, FAR, &w->far));

	w->blocked = TW_OPEN(O_RDWR);
	ASSERT_EQ(0, tw_setup(w->blocked, clocks[i].clock, 31, TW_MS, 10, 0, 0));
	ASSERT_EQ(0, tw_register(w->blocked, 1, 1500 * TW_MS, 7, NULL));
	w->before = tw_now(clocks[i].id);
	ASSERT_TRUE(tw_start_sleeper(&w->reader, w->blocked, tw_sleep_in_read));
}

/* The sleeping reader gets its event after the machine's sleep, and no error. */
static void expect_read(struct __test_metadata *_metadata, struct wheels *w,
			size_t i)
{
	const struct timewheel_event *event = &w->reader.event;

	ASSERT_EQ(0, pthread_join(w->reader.thread, NULL));
	ASSERT_EQ(1, w->reader.ret);
	EXPECT_EQ(7ULL, event->cookie);
	EXPECT_LE(event->deadline, event->taken);
	EXPECT_LE(event->taken, tw_now(clocks[i].id));
	/* The deadline is in the time of the wheel's own clock. */
	EXPECT_GE(w->before + 1501 * TW_MS, event->deadline);
}

/* Tokens due before, in and after the sleep come once, in order, and not early. */
static void expect_all(struct __test_metadata *_metadata, struct wheels *w)
{
	struct timewheel_event event;
	struct timewheel_info info;
	__u64 last = 0;

	for (__u64 n = 0; n < TOKENS; n++) {
		ASSERT_EQ(1, tw_read(w->fd, &event, 1));
		EXPECT_EQ(n, event.id);
		EXPECT_LE(event.deadline, event.taken);
		EXPECT_LE(last, event.deadline);
		last = event.deadline;
	}
	EXPECT_FALSE(tw_readable(w->fd));
	ASSERT_EQ(0, tw_info(w->fd, &info));
	EXPECT_EQ(1ULL, info.pending);
}

/* A far deadline has not changed. On MONOTONIC wheels the sleep does not count. */
static void expect_far(struct __test_metadata *_metadata, struct wheels *w,
		       size_t i, __u64 slept)
{
	struct timewheel_token far;
	__u64 before, after;

	before = tw_now(clocks[i].id);
	ASSERT_EQ(0, tw_get(w->fd, 0, FAR, &far));
	after = tw_now(clocks[i].id);
	EXPECT_EQ(w->far.deadline, far.deadline);
	EXPECT_LE(before, far.deadline - far.left);
	EXPECT_GE(after, far.deadline - far.left);
	if (!clocks[i].stands_still)
		EXPECT_LE(slept, w->far.left - far.left);
	EXPECT_EQ(0, tw_cancel(w->fd, 0, FAR));
}

static __u64 time_asleep(void)
{
	__u64 monotonic = tw_now(CLOCK_MONOTONIC);

	return tw_now(CLOCK_BOOTTIME) - monotonic;
}

/* A kernel without an RTC that can wake it only pretends to sleep, for a few seconds. */
static bool sleep_until_woken(void)
{
	bool pretends = access(WAKE, W_OK);
	bool ok = (pretends ? tw_write_file(PRETEND, "core") :
			      tw_write_file(WAKE, "+" ASLEEP)) &&
		  tw_write_file(STATE, "mem");

	if (pretends)
		tw_write_file(PRETEND, "none");
	return ok;
}

TEST(suspend_to_ram)
{
	struct wheels wheels[CLOCKS] = {};
	__u64 slept = time_asleep();

	if (geteuid() || access(STATE, W_OK) ||
	    (access(WAKE, W_OK) && access(PRETEND, W_OK)))
		SKIP(return, "cannot send this machine to sleep");
	for (size_t i = 0; i < CLOCKS; i++)
		prepare(_metadata, &wheels[i], i);
	tw_sleep_ms(50);
	ASSERT_TRUE(sleep_until_woken());
	slept = time_asleep() - slept;
	TH_LOG("slept for %llu ms", slept / TW_MS);
	/* No wheel has woken the machine, though tokens were due every 40 ms. */
	EXPECT_LE(TW_SEC, slept);
	for (size_t i = 0; i < CLOCKS; i++) {
		expect_read(_metadata, &wheels[i], i);
		expect_all(_metadata, &wheels[i]);
		expect_far(_metadata, &wheels[i], i, slept);
		close(wheels[i].fd);
		close(wheels[i].blocked);
	}
}

TEST_HARNESS_MAIN
