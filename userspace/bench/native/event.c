// SPDX-License-Identifier: GPL-2.0-only
/*
 * libevent: its heap, and its common timeouts, a queue for each length of timeout, which it
 * advises for many timers of one length. Timers are armed and touched inside a callback of its
 * loop, as in a program. In a callback libevent takes the time that it has read for the turn;
 * elsewhere it would read the clock each time.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/time.h>
#include <unistd.h>

#include "bench.h"

static struct event_base *base;
static struct event *events;
static const struct timeval *common, *common_soon;
static struct timeval start;

/* This work is done inside a callback of the loop. */
struct work {
	struct event event;
	void (*work)(const __u32 *which, __u32 n);
	const __u32 *which;
	__u32 n;
};

static void do_work(evutil_socket_t fd, short what, void *arg)
{
	struct work *work = arg;

	(void)fd;
	(void)what;
	work->work(work->which, work->n);
	work->n = 0;
}

static void in_loop(void (*action)(const __u32 *which, __u32 n),
		    const __u32 *which, __u32 n)
{
	struct work work = { .work = action, .which = which, .n = n };

	MUST(!evtimer_assign(&work.event, base, do_work, &work));
	event_active(&work.event, EV_TIMEOUT, 0);
	MUST(!event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK));
	MUST(!work.n);
}

/* A loop reads the clock once per turn, for example every 256 operations. */
static void turn(__u32 i)
{
	if (i % 256 == 0)
		MUST(!event_base_update_cache_time(base));
}

static void callback(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	bench_fired((struct event *)arg - events);
}

static void setup(__u32 n)
{
	__u32 i;

	base = event_base_new();
	MUST(base);
	events = bench_alloc(n, sizeof(*events));
	for (i = 0; i < n; i++)
		MUST(!evtimer_assign(&events[i], base, callback, &events[i]));
	gettimeofday(&start, NULL);
}

static void setup_common(__u32 n)
{
	const struct timeval whole = { .tv_sec = TIMEOUT * UNIT };
	const struct timeval short_one = { .tv_usec = 1000 };

	setup(n);
	common = event_base_init_common_timeout(base, &whole);
	common_soon = event_base_init_common_timeout(base, &short_one);
	MUST(common && common_soon);
}

static void arm_inside(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		const struct timeval after = {
			.tv_sec = bench_after(which[i]) * UNIT +
				  bench_mix(which[i]) % (UNIT / 2),
		};

		turn(i);
		MUST(!event_add(&events[which[i]], common ?: &after));
	}
}

static void arm(const __u32 *which, __u32 n)
{
	in_loop(arm_inside, which, n);
}

static void touch_inside(const __u32 *which, __u32 n)
{
	const struct timeval whole = { .tv_sec = TIMEOUT * UNIT };
	__u32 i;

	for (i = 0; i < n; i++) {
		turn(i);
		MUST(!event_add(&events[which[i]], common ?: &whole));
	}
}

static void touch(const __u32 *which, __u32 n)
{
	in_loop(touch_inside, which, n);
}

static void cancel(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		MUST(!event_del(&events[which[i]]));
}

static int slot(__u32 i)
{
	struct timeval due;

	if (!event_pending(&events[i], EV_TIMEOUT, &due))
		return -1;

	return (due.tv_sec - start.tv_sec) / UNIT;
}

static void soon(const __u32 *which, __u32 n)
{
	const struct timeval after = { .tv_usec = 1000 };
	__u32 i;

	for (i = 0; i < n; i++)
		MUST(!event_add(&events[which[i]], common_soon ?: &after));
	usleep(5000);
}

static void run(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

const struct contender event_heap = {
	.name = "libevent-heap", .what = "libevent, its heap", .setup = setup,
	.arm = arm, .touch = touch, .cancel = cancel, .slot = slot,
	.soon = soon, .run = run,
};

const struct contender event_common = {
	.name = "libevent-common", .what = "libevent, common timeouts",
	.one_timeout = true, .setup = setup_common, .arm = arm, .touch = touch,
	.cancel = cancel, .slot = slot, .soon = soon, .run = run,
};
