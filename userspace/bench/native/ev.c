// SPDX-License-Identifier: GPL-2.0-only
/*
 * libev: a 4-ary heap with the deadlines in it. Its manual advises for idle timeouts to leave
 * the timer alone: a touch stores the time of the last activity, and the callback starts the
 * timer again if there was any (its "Be smart about timeouts", method 3). Each timer is
 * therefore started again once per timeout; "refile" is the cost of this.
 */
#include <ev.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

#define IDLE	((ev_tstamp)TIMEOUT * UNIT)

struct connection {
	ev_timer	timer;
	ev_tstamp	last;		/* the time of the last activity */
};

static struct ev_loop *loop;
static struct connection *connections;
static ev_tstamp start;

static void callback(struct ev_loop *of, ev_timer *timer, int revents)
{
	struct connection *connection = (struct connection *)timer;
	ev_tstamp after = connection->last - ev_now(of) + IDLE;

	(void)revents;
	if (after < 0) {
		bench_fired(connection - connections);
	} else {
		ev_timer_set(timer, after, 0.);
		ev_timer_start(of, timer);
	}
}

static void setup(__u32 n)
{
	__u32 i;

	loop = ev_loop_new(EVFLAG_AUTO);
	MUST(loop);
	connections = bench_alloc(n, sizeof(*connections));
	for (i = 0; i < n; i++)
		ev_init(&connections[i].timer, callback);
	start = ev_now(loop);
}

/* A loop reads the clock once per turn, for example every 256 operations. */
static void turn(__u32 i)
{
	if (i % 256 == 0)
		ev_now_update(loop);
}

/*
 * The last activity is set so far back that the timer is due after bench_after()
 * seconds. It is never in the future.
 */
static void arm(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		struct connection *connection = &connections[which[i]];

		turn(i);
		connection->last = ev_now(loop) - IDLE +
				   bench_after(which[i]) * UNIT +
				   bench_mix(which[i]) % (UNIT / 2);
		if (connection->last > ev_now(loop))
			connection->last = ev_now(loop);
		callback(loop, &connection->timer, 0);
	}
}

static void touch(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		turn(i);
		connections[which[i]].last = ev_now(loop);
	}
}

static void cancel(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		ev_timer_stop(loop, &connections[which[i]].timer);
}

static int slot(__u32 i)
{
	ev_tstamp due = connections[i].last + IDLE;

	if (!ev_is_active(&connections[i].timer))
		return -1;
	/* The timer goes off in time to see that the deadline has come. */
	MUST(ev_timer_remaining(loop, &connections[i].timer) <
	     due - ev_now(loop) + 1);

	/* Arithmetic of doubles may give a little less, which must not become a second less. */
	return (due - start + 0.001) / UNIT;
}

/*
 * Makes the timers go off at the next turn, whatever the last activity was. Their
 * deadlines are random within a millisecond: a heap of equal keys would be cheaper.
 */
static void go_off(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		ev_timer *timer = &connections[which[i]].timer;

		ev_timer_stop(loop, timer);
		ev_timer_set(timer, bench_mix(which[i]) % 1000 / 1e6, 0.);
		ev_timer_start(loop, timer);
	}
	usleep(5000);
}

static void soon(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		connections[i].last = ev_now(loop) - IDLE;
	go_off(which, n);
}

static void run(void)
{
	ev_run(loop, EVRUN_NOWAIT);
}

/*
 * A thirtieth of the timers goes off at a time, as in each second of the timeout. All
 * were touched since they were started, at random times: the callback starts each of
 * them again, and none is fired.
 */
static void extra(__u32 n)
{
	__u32 *order = bench_permutation(n, 20), i, some;
	double ns = 0;

	for (i = 0; i < n; i++)
		connections[i].last = ev_now(loop) -
				      bench_mix(i) % ((TIMEOUT - 1) * UNIT);
	for (i = 0; i < n; i += some) {
		double begun;

		some = n - i < n / TIMEOUT ? n - i : n / TIMEOUT;
		go_off(order + i, some);
		begun = bench_cpu_ns();
		run();
		ns += bench_cpu_ns() - begun;
	}
	bench_report("refile", ns / n);
	for (i = 0; i < n; i++)
		MUST(!fired[i] && slot(i) >= 0 &&
		     ev_timer_remaining(loop, &connections[i].timer) >
		     connections[i].last + IDLE - ev_now(loop) - 1);
	free(order);
}

const struct contender ev = {
	.name = "libev", .what = "libev, touched as its manual advises",
	.setup = setup, .arm = arm, .touch = touch, .cancel = cancel,
	.slot = slot, .soon = soon, .run = run, .extra = extra,
};
