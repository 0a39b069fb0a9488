// SPDX-License-Identifier: GPL-2.0-only
/*
 * @n timeouts are due in one tick. The program prints the longest time that a real-time
 * thread which runs all the while stood still: only interrupts can stop it.
 */
#include "bench.h"

/* Arms all timeouts for one moment, far enough ahead, and returns it. */
static u64 arm_crowd(const struct kind *kind, unsigned int n)
{
	u64 due = now_of(CLOCK_MONOTONIC) + 200 * MS + n * 20000ULL;

	due -= due % (100 * MS);
	arm_all(kind, n, due, true);
	NEED(now_of(CLOCK_MONOTONIC) + 100 * MS < due);
	sleep_until(due - 50 * MS);
	return due;
}

static void read_all(const struct kind *kind, unsigned int n)
{
	unsigned int seen = 0;

	while (seen < n)
		seen += kind->drain(true);
	NEED(seen == n);
}

static void crowd_of(const struct kind *kind, unsigned int n)
{
	struct watcher interrupt = { };
	u64 due;

	kind->open(kind, n, 10 * MS);
	due = arm_crowd(kind, n);
	interrupt.until = due + 50 * MS;
	start_watcher(&interrupt);
	join_watcher(&interrupt);
	read_all(kind, n);
	put("interrupt", kind->name, n, interrupt.longest);
	kind->close();
}

void run_crowd(unsigned int n)
{
	static const struct kind *const kinds[] = {
		&wheel_batch_handle, &wheel_batch_id, &timerfd, &uring,
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		if (n <= kinds[i]->most)
			crowd_of(kinds[i], n);
}
