// SPDX-License-Identifier: GPL-2.0-only
/*
 * @n timeouts are due in one tick. The program prints:
 *
 * interrupt: the longest time that a real-time thread which runs all the while
 *	stood still: only interrupts can stop it;
 * urgent: the longest time that a real-time thread, which wakes each 100 us while
 *	another reads, had to wait;
 * stall: the longest time that a thread which runs all the while stood still,
 *	beside a reader of the same priority; the scheduler gives each its turns;
 * each: instructions of that interrupt and of the reader, until the last one
 *	has been read, divided by the number of events.
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
		seen += kind->drain(true, NULL);
	NEED(seen == n);
}

static void crowd_of(const struct kind *kind, unsigned int n)
{
	struct watcher interrupt = { .urgent = true };
	struct watcher urgent = { .urgent = true, .sleeps = true };
	struct watcher equal = { .until = ~0ULL };
	u64 due, begun, took;

	kind->open(kind, n, 10 * MS);

	/* Time goes on while the real-time thread runs, and nobody reads. */
	due = arm_crowd(kind, n);
	interrupt.until = due + 50 * MS;
	start_watcher(&interrupt);
	join_watcher(&interrupt);
	start_watcher(&urgent);
	begun = now_of(CLOCK_THREAD_CPUTIME_ID);
	read_all(kind, n);
	took = now_of(CLOCK_THREAD_CPUTIME_ID) - begun;
	stop_watcher(&urgent);
	put("interrupt", kind->name, n, interrupt.longest);
	put("urgent", kind->name, n, urgent.longest);
	put("each", kind->name, n, (took + interrupt.longest) / (double)n);

	arm_crowd(kind, n);
	start_watcher(&equal);
	read_all(kind, n);
	stop_watcher(&equal);
	put("stall", kind->name, n, equal.longest);
	kind->close();
}

void run_crowd(unsigned int n)
{
	static const struct kind *const kinds[] = {
		&wheel_batch_handle, &wheel_batch_id, &timerfd, &posix_timers,
		&uring,
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		if (n <= kinds[i]->most)
			crowd_of(kinds[i], n);
}
