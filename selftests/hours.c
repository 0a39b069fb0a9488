// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timeouts of hours end on time, in a guest that skips idle time: with TW_HOURS=48 the
 * test waits 48 hours by the guest's real clock.
 */
#define _GNU_SOURCE
#include "tw_test.h"

#define DAY	86400ULL

FIXTURE(real_clock) {
	int fd;
};

FIXTURE_SETUP(real_clock)
{
	self->fd = TW_OPEN(O_RDWR);
}

FIXTURE_TEARDOWN(real_clock)
{
	close(self->fd);
}

/*
 * On a real clock hours are as exact as seconds, and cost a few interrupts (P1, P2,
 * P7). In a guest that skips idle time a reader is never late by a tick of one second.
 */
TEST_F_TIMEOUT(real_clock, hours, 100 * 86400)
{
	static const __u64 seconds[] = {
		1, 60, 3599, 3600, 3601, 5 * 3600, DAY - 1, DAY, 2 * DAY,
		30 * DAY,
	};
	__u64 hours = getenv("TW_HOURS") ? atoi(getenv("TW_HOURS")) : 0;
	struct timewheel_event event;
	struct timewheel_info info;
	__u64 wish[ARRAY_SIZE(seconds)];
	size_t n;

	if (!hours)
		SKIP(return, "TW_HOURS does not say how long");
	ASSERT_EQ(0, tw_setup(self->fd, TIMEWHEEL_CLOCK_MONOTONIC, 3600, TW_SEC,
			      100, 0, 0));
	for (n = 0; n < ARRAY_SIZE(seconds); n++) {
		if (seconds[n] > hours * 3600)
			break;
		wish[n] = tw_now(CLOCK_MONOTONIC) + seconds[n] * TW_SEC;
		ASSERT_EQ(0, tw_register(self->fd, n, seconds[n] * TW_SEC, 0,
					 NULL));
	}
	for (size_t i = 0; i < n; i++) {
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		EXPECT_EQ(i, event.id);
		EXPECT_GE(event.deadline, wish[i]);
		EXPECT_LT(event.deadline, wish[i] + TW_SEC + TW_SEC / 2);
		EXPECT_GE(event.taken, event.deadline);
		EXPECT_LT(event.taken, event.deadline + TW_SEC);
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_LE(info.callbacks, 4 * n);
	TH_LOG("%zu tokens, %llu interrupts", n, info.callbacks);
}

TEST_HARNESS_MAIN
