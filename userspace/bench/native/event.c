// SPDX-License-Identifier: GPL-2.0-only
/*
 * libevent: its heap, and its common timeouts, a queue for each length of
 * timeout, which it advises for many timers of one length.
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

static void arm(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		const struct timeval after = {
			.tv_sec = bench_after(which[i]) * UNIT +
				  bench_mix(which[i]) % (UNIT / 2),
		};

		MUST(!event_add(&events[which[i]], common ?: &after));
	}
}

static void add_all(const __u32 *which, __u32 n, const struct timeval *after)
{
	__u32 i;

	for (i = 0; i < n; i++)
		MUST(!event_add(&events[which[i]], after));
}

static void touch(const __u32 *which, __u32 n)
{
	const struct timeval whole = { .tv_sec = TIMEOUT * UNIT };

	add_all(which, n, common ?: &whole);
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

	add_all(which, n, common_soon ?: &after);
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
