// SPDX-License-Identifier: GPL-2.0-only
/* libev: a 4-ary heap with the deadlines in it; a touch is ev_timer_again(). */
#include <ev.h>
#include <unistd.h>

#include "bench.h"

static struct ev_loop *loop;
static ev_timer *timers;
static ev_tstamp start;

static void callback(struct ev_loop *of, ev_timer *timer, int revents)
{
	(void)revents;
	ev_timer_stop(of, timer);
	bench_fired(timer - timers);
}

static void setup(__u32 n)
{
	__u32 i;

	loop = ev_loop_new(EVFLAG_AUTO);
	MUST(loop);
	timers = bench_alloc(n, sizeof(*timers));
	for (i = 0; i < n; i++)
		ev_init(&timers[i], callback);
	start = ev_now(loop);
}

/* A loop reads the clock once per turn: say, every 256 operations. */
static void turn(__u32 i)
{
	if (i % 256 == 0)
		ev_now_update(loop);
}

static void again_all(const __u32 *which, __u32 n, ev_tstamp after)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		turn(i);
		timers[which[i]].repeat = after;
		ev_timer_again(loop, &timers[which[i]]);
	}
}

static void arm(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		turn(i);
		timers[which[i]].repeat = bench_after(which[i]) * UNIT +
					  bench_mix(which[i]) % (UNIT / 2);
		ev_timer_again(loop, &timers[which[i]]);
	}
}

static void touch(const __u32 *which, __u32 n)
{
	again_all(which, n, TIMEOUT * UNIT);
}

static void cancel(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		ev_timer_stop(loop, &timers[which[i]]);
}

static int slot(__u32 i)
{
	if (!ev_is_active(&timers[i]))
		return -1;

	/* Arithmetic of doubles: a little less must not be a second less. */
	return (ev_now(loop) - start + ev_timer_remaining(loop, &timers[i]) +
		0.001) / UNIT;
}

static void soon(const __u32 *which, __u32 n)
{
	again_all(which, n, 0.001);
	usleep(5000);
}

static void run(void)
{
	ev_run(loop, EVRUN_NOWAIT);
}

const struct contender ev = {
	.name = "libev", .what = "libev", .setup = setup, .arm = arm,
	.touch = touch, .cancel = cancel, .slot = slot, .soon = soon,
	.run = run,
};
