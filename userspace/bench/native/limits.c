// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits to compare with: the least that a touch can cost on this machine, and its
 * cost with one timerfd for each timer.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"

#define TIMERFDS	10000

static __u64 *array;
static __u64 *handles;		/* a timer's place in the array, and a tag */
static __u64 *keys;		/* handles in the order of their use */
static __u32 size;
static __u64 tag;
static __u64 done;

static void setup(__u32 n)
{
	__u32 *order = bench_permutation(n, 17), i;

	array = bench_alloc(n, sizeof(*array));
	handles = bench_alloc(n, sizeof(*handles));
	keys = bench_alloc(n, sizeof(*keys));
	for (i = 0; i < n; i++)
		handles[i] = order[i];
	free(order);
	size = n;
}

/* The places come from a table, as a wheel's handles do, and fill the caches as much. */
static void prepare(const __u32 *which, __u32 n)
{
	__u32 i;

	tag++;
	for (i = 0; i < n; i++)
		keys[i] = tag << 32 | handles[which[i]];
}

static void touch_store(const __u32 *which, __u32 n)
{
	__u32 i;

	(void)which;
	for (i = 0; i < n; i++)
		__atomic_store_n(&array[(__u32)keys[i]], keys[i],
				 __ATOMIC_RELAXED);
	done += n;
}

/* Checks that all stores of the last round are there, each in its place. */
static bool check_array(void)
{
	__u32 i, last = 0;

	for (i = 0; i < size; i++) {
		if (array[i] && (__u32)array[i] != i)
			return false;
		last += array[i] >> 32 == tag;
	}

	return last && done == last * tag;
}

static int null;
static __u64 answered;

static void setup_null(__u32 n)
{
	(void)n;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	MUST(null >= 0);
}

/* The file refuses the ioctl, whose cost is the way to the kernel and back. */
static void touch_null(const __u32 *which, __u32 n)
{
	__u32 i;

	(void)which;
	for (i = 0; i < n; i++)
		answered += ioctl(null, 0x5457, 0) == -1;
	done += n;
}

static bool check_null(void)
{
	return done && answered == done;
}

static int *fds;
static bool *touched;
static __u32 nr_fds;

static void setup_timerfd(__u32 n)
{
	__u32 i;

	nr_fds = n < TIMERFDS ? n : TIMERFDS;
	fds = bench_alloc(nr_fds, sizeof(*fds));
	touched = bench_alloc(nr_fds, sizeof(*touched));
	for (i = 0; i < nr_fds; i++) {
		fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		if (fds[i] < 0)
			break;
	}
	nr_fds = i;
	MUST(nr_fds);
}

static void prepare_timerfd(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		touched[which[i] % nr_fds] = true;
}

static void touch_timerfd(const __u32 *which, __u32 n)
{
	const struct itimerspec later = { .it_value.tv_sec = TIMEOUT * UNIT };
	__u32 i;

	for (i = 0; i < n; i++)
		MUST(!timerfd_settime(fds[which[i] % nr_fds], 0, &later, NULL));
}

static bool check_timerfd(void)
{
	struct itimerspec left;
	__u32 i;

	for (i = 0; i < nr_fds; i++)
		if (timerfd_gettime(fds[i], &left) || touched[i] !=
		    (left.it_value.tv_sec >= (TIMEOUT - 1) * UNIT))
			return false;

	return true;
}

const struct contender store = {
	.name = "store", .what = "limit: a u64 store to an array of that size",
	.setup = setup, .prepare = prepare, .touch = touch_store,
	.check = check_array,
};

const struct contender ioctls = {
	.name = "ioctl", .what = "limit: an ioctl(2) that /dev/null refuses",
	.setup = setup_null, .touch = touch_null, .check = check_null,
};

const struct contender timerfds = {
	.name = "timerfd", .what = "timerfd_settime(2), 10,000 timerfds",
	.setup = setup_timerfd, .prepare = prepare_timerfd,
	.touch = touch_timerfd, .check = check_timerfd,
};
