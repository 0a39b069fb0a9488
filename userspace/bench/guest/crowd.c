// SPDX-License-Identifier: GPL-2.0-only
/*
 * @n timeouts due in one tick. What is printed:
 *
 * interrupt: the longest time that a real-time thread, which runs all the while,
 *	stood still: nothing but interrupts gets in its way;
 * urgent: the longest time that a real-time thread, which wakes each 100 us while
 *	another reads, had to wait;
 * stall: the longest time that a thread which runs all the while stood still,
 *	beside a reader of the same priority; the scheduler gives each its turns;
 * each: instructions of that interrupt and of the reader, until the last one
 *	has been read, per event.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "bench.h"

#define PERIOD	(100 * 1000)

struct watcher {
	pthread_t thread;
	bool urgent, sleeps;
	u64 until;
	u64 longest;
};

static atomic_bool over;

/*
 * Runs, and measures its longest gap, until @until or until all is over: the last
 * gap may be the longest.
 */
static void spin(struct watcher *w)
{
	u64 last = count_now(), now;
	bool last_round;

	do {
		last_round = over || now_of(CLOCK_MONOTONIC) >= w->until;
		now = count_now();
		if (now - last > w->longest)
			w->longest = now - last;
		last = now;
	} while (!last_round);
}

static void wake_often(struct watcher *w)
{
	u64 at = now_of(CLOCK_MONOTONIC), late;

	do {
		at += PERIOD;
		sleep_until(at);
		late = now_of(CLOCK_MONOTONIC) - at;
		if (late > w->longest)
			w->longest = late;
		if (late > PERIOD)
			at += late;
	} while (!over);
}

static void *watch(void *arg)
{
	struct watcher *w = arg;

	if (w->sleeps)
		wake_often(w);
	else
		spin(w);
	return NULL;
}

static void start(struct watcher *w)
{
	struct sched_param param = { .sched_priority = 10 };
	pthread_attr_t attr;

	over = false;
	pthread_attr_init(&attr);
	if (w->urgent) {
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
		pthread_attr_setschedparam(&attr, &param);
	}
	NEED(!pthread_create(&w->thread, &attr, watch, w));
	pthread_attr_destroy(&attr);
}

static void stop(struct watcher *w)
{
	over = true;
	NEED(!pthread_join(w->thread, NULL));
}

/* Arms all for one moment, far enough away, and tells it. */
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

	/* While the real-time thread runs, time goes on and nobody reads. */
	due = arm_crowd(kind, n);
	interrupt.until = due + 50 * MS;
	start(&interrupt);
	NEED(!pthread_join(interrupt.thread, NULL));
	start(&urgent);
	begun = now_of(CLOCK_THREAD_CPUTIME_ID);
	read_all(kind, n);
	took = now_of(CLOCK_THREAD_CPUTIME_ID) - begun;
	stop(&urgent);
	put("interrupt", kind->name, n, interrupt.longest);
	put("urgent", kind->name, n, urgent.longest);
	put("each", kind->name, n, (took + interrupt.longest) / (double)n);

	arm_crowd(kind, n);
	start(&equal);
	read_all(kind, n);
	stop(&equal);
	put("stall", kind->name, n, equal.longest);
	kind->close();
}

void run_crowd(unsigned int n)
{
	static const struct kind *const kinds[] = {
		&wheel_batch_handle, &wheel_batch_id, &wheel_ring, &timerfd,
		&posix_timers, &uring,
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		if (n <= kinds[i]->most)
			crowd_of(kinds[i], n);
}
