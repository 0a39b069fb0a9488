// SPDX-License-Identifier: GPL-2.0-only
/* libuv: a heap of linked nodes, milliseconds. */
#include <unistd.h>
#include <uv.h>

#include "bench.h"

static uv_loop_t loop;
static uv_timer_t *timers;
static __u64 start;

static void callback(uv_timer_t *timer)
{
	bench_fired(timer - timers);
}

static void setup(__u32 n)
{
	__u32 i;

	MUST(!uv_loop_init(&loop));
	timers = bench_alloc(n, sizeof(*timers));
	for (i = 0; i < n; i++)
		MUST(!uv_timer_init(&loop, &timers[i]));
	start = uv_now(&loop);
}

/* A loop reads the clock once per turn, for example every 256 operations. */
static void turn(__u32 i)
{
	if (i % 256 == 0)
		uv_update_time(&loop);
}

static void arm(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		turn(i);
		/*
		 * The deadline is random within its second, because a heap with few keys is
		 * cheaper.
		 */
		MUST(!uv_timer_start(&timers[which[i]], callback,
				     bench_after(which[i]) * UNIT * 1000 +
				     bench_mix(which[i]) % (UNIT * 500), 0));
	}
}

static void touch(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		turn(i);
		MUST(!uv_timer_start(&timers[which[i]], callback,
				     TIMEOUT * UNIT * 1000, 0));
	}
}

static void cancel(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		MUST(!uv_timer_stop(&timers[which[i]]));
}

static int slot(__u32 i)
{
	if (!uv_is_active((uv_handle_t *)&timers[i]))
		return -1;

	return (uv_now(&loop) - start + uv_timer_get_due_in(&timers[i])) /
	       (UNIT * 1000);
}

static void soon(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		MUST(!uv_timer_start(&timers[which[i]], callback, 1, 0));
	usleep(5000);
}

static void run(void)
{
	uv_run(&loop, UV_RUN_NOWAIT);
}

const struct contender uv = {
	.name = "libuv", .what = "libuv", .setup = setup, .arm = arm,
	.touch = touch, .cancel = cancel, .slot = slot, .soon = soon,
	.run = run,
};
