// SPDX-License-Identifier: GPL-2.0-only
/*
 * Real-time threads that watch for how long others keep them from running.
 */
#include <sched.h>

#include "bench.h"

#define PERIOD	(100 * 1000)

/*
 * Runs until @until or until stopped, and measures its longest gap, the last one
 * included.
 */
static void spin(struct watcher *w)
{
	u64 last = count_now(), now;
	bool last_round;

	do {
		last_round = w->over || now_of(CLOCK_MONOTONIC) >= w->until;
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
	} while (!w->over);
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

void start_watcher(struct watcher *w)
{
	struct sched_param param = { .sched_priority = 10 };
	pthread_attr_t attr;

	w->over = false;
	w->longest = 0;
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	NEED(!pthread_create(&w->thread, &attr, watch, w));
	pthread_attr_destroy(&attr);
}

/* Waits for a watcher that ends by itself. */
void join_watcher(struct watcher *w)
{
	NEED(!pthread_join(w->thread, NULL));
}

void stop_watcher(struct watcher *w)
{
	w->over = true;
	join_watcher(w);
}
