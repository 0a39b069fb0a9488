// SPDX-License-Identifier: GPL-2.0-only
/*
 * A 4-ary heap in an array. A deadline and its timer are beside each other, and each timer
 * knows its place.
 */
#include "bench.h"

#define NOWHERE	(~0U)

struct entry {
	__u64	due;
	__u32	timer;
};

static struct entry *heap;
static __u32 *place;
static __u32 used;
static __u64 now;		/* in seconds / 2^20, and no two are equal */

static void put(__u32 at, struct entry entry)
{
	heap[at] = entry;
	place[entry.timer] = at;
}

static void sift_up(__u32 at, struct entry entry)
{
	while (at && heap[(at - 1) / 4].due > entry.due) {
		put(at, heap[(at - 1) / 4]);
		at = (at - 1) / 4;
	}
	put(at, entry);
}

static void sift_down(__u32 at, struct entry entry)
{
	for (;;) {
		__u32 child = 4 * at + 1, end = child + 4, least;

		if (child >= used)
			break;
		if (end > used)
			end = used;
		for (least = child; ++child < end;)
			if (heap[child].due < heap[least].due)
				least = child;
		if (heap[least].due >= entry.due)
			break;
		put(at, heap[least]);
		at = least;
	}
	put(at, entry);
}

static void insert(__u32 timer, __u64 due)
{
	sift_up(used++, (struct entry) { .due = due, .timer = timer });
}

static void take_out(__u32 at)
{
	struct entry last = heap[--used];

	place[heap[at].timer] = NOWHERE;
	if (at == used)
		return;
	if (at && heap[(at - 1) / 4].due > last.due)
		sift_up(at, last);
	else
		sift_down(at, last);
}

static void setup(__u32 n)
{
	__u32 i;

	heap = bench_alloc(n, sizeof(*heap));
	place = bench_alloc(n, sizeof(*place));
	for (i = 0; i < n; i++)
		place[i] = NOWHERE;
}

static void arm(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		insert(which[i], ((__u64)bench_after(which[i]) << 20) +
		       bench_mix(which[i]) % (1 << 20));
}

/* Puts a later deadline in the place of the old one, and the entry sinks. */
static void touch(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		MUST(place[which[i]] != NOWHERE);
		sift_down(place[which[i]], (struct entry) {
			.due = ((__u64)TIMEOUT << 20) + now++,
			.timer = which[i],
		});
	}
}

static void cancel(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		take_out(place[which[i]]);
}

static int slot(__u32 i)
{
	return place[i] == NOWHERE ? -1 : (int)(heap[place[i]].due >> 20);
}

static void soon(const __u32 *which, __u32 n)
{
	cancel(which, n);
	while (n--)
		insert(*which++, 1);
}

static void run(void)
{
	while (used && heap[0].due <= 1) {
		__u32 timer = heap[0].timer;

		take_out(0);
		bench_fired(timer);
	}
}

const struct contender heap4 = {
	.name = "heap4", .what = "4-ary heap in an array", .setup = setup,
	.arm = arm, .touch = touch, .cancel = cancel, .slot = slot,
	.soon = soon, .run = run,
};
