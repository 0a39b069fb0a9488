// SPDX-License-Identifier: GPL-2.0-only
/*
 * DPDK's rte_timer: a skip list for each core. It runs without huge pages, which only other
 * parts of DPDK need.
 */
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_timer.h>
#include <unistd.h>

#include "bench.h"

static struct rte_timer *timers;
static __u64 unit;		/* cycles */
static __u64 start;

static void callback(struct rte_timer *timer, void *arg)
{
	(void)arg;
	bench_fired(timer - timers);
}

static void setup(__u32 n)
{
	static const char *const options[] = {
		"bench", "--no-huge", "--no-pci", "--no-shconf", "-m", "64",
		"--lcores", "0@(0-1)", "--log-level", "1",
	};
	char *args[ARRAY_SIZE(options) + 1] = { NULL };
	__u32 i;

	for (i = 0; i < ARRAY_SIZE(options); i++)
		args[i] = (char *)options[i];
	MUST(rte_eal_init(ARRAY_SIZE(options), args) >= 0);
	MUST(!rte_timer_subsystem_init());
	timers = bench_alloc(n, sizeof(*timers));
	for (i = 0; i < n; i++)
		rte_timer_init(&timers[i]);
	unit = rte_get_timer_hz() * UNIT;
	start = rte_get_timer_cycles();
}

static void reset(__u32 timer, __u64 after)
{
	MUST(!rte_timer_reset(&timers[timer], after, SINGLE, rte_lcore_id(),
			      callback, NULL));
}

static void arm(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		reset(which[i], bench_after(which[i]) * unit +
		      bench_mix(which[i]) % (unit / 2));
}

static void touch(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		reset(which[i], TIMEOUT * unit);
}

static void cancel(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		MUST(!rte_timer_stop(&timers[which[i]]));
}

static int slot(__u32 i)
{
	if (!rte_timer_pending(&timers[i]))
		return -1;

	return (timers[i].expire - start) / unit;
}

static void soon(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		reset(which[i], 1);
	usleep(5000);
}

static void run(void)
{
	rte_timer_manage();
}

const struct contender dpdk = {
	.name = "dpdk", .what = "DPDK rte_timer", .most = 1000000,
	.setup = setup, .arm = arm, .touch = touch, .cancel = cancel,
	.slot = slot, .soon = soon, .run = run,
};
