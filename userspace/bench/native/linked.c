// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hierarchical wheel of linked timers, like the kernel's timer_list: 64 slots for
 * each level, and each level is 8 times coarser than the one before. A timer is never
 * filed again, so it is late by up to an eighth of its time. A tick is a millisecond.
 */
#include <stddef.h>

#include "bench.h"

#define SLOTS	64
#define LEVELS	9

struct timer {
	struct timer	*next;
	struct timer	**link;		/* the pointer to it; NULL: not armed */
	__u64		due;
	void		(*callback)(struct timer *timer);
	__u32		flags;
};

static struct timer *slots[LEVELS * SLOTS];
static __u64 occupied[LEVELS];
static struct timer *timers;
static __u64 clock;

/* Returns the slot for a deadline, rounded up to the level's next slot. */
static unsigned int slot_of(__u64 due)
{
	__u64 delta = due - clock;
	unsigned int level = 0;

	while (level < LEVELS - 1 &&
	       delta >= (SLOTS - 1ULL) << (3 * level))
		level++;
	if (level)
		due = (due >> (3 * level)) + 1;

	return level * SLOTS + due % SLOTS;
}

static void link_timer(struct timer *timer, __u64 due)
{
	unsigned int slot = slot_of(due);

	timer->due = due;
	timer->next = slots[slot];
	timer->link = &slots[slot];
	if (timer->next)
		timer->next->link = &timer->next;
	slots[slot] = timer;
	occupied[slot / SLOTS] |= 1ULL << slot % SLOTS;
	timer->flags = slot;
}

static void unlink_timer(struct timer *timer)
{
	*timer->link = timer->next;
	if (timer->next)
		timer->next->link = timer->link;
	timer->link = NULL;
	if (!slots[timer->flags])
		occupied[timer->flags / SLOTS] &= ~(1ULL << timer->flags % SLOTS);
}

static void callback(struct timer *timer)
{
	bench_fired(timer - timers);
}

static void setup(__u32 n)
{
	__u32 i;

	timers = bench_alloc(n, sizeof(*timers));
	for (i = 0; i < n; i++)
		timers[i].callback = callback;
}

static void arm(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		link_timer(&timers[which[i]],
			   bench_after(which[i]) * 1000 +
			   bench_mix(which[i]) % 1000);
}

/* A millisecond passes with every 256 touches. */
static void touch(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++) {
		struct timer *timer = &timers[which[i]];

		MUST(timer->link);
		unlink_timer(timer);
		link_timer(timer, TIMEOUT * 1000 + i / 256);
	}
}

static void cancel(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		unlink_timer(&timers[which[i]]);
}

static int slot(__u32 i)
{
	return timers[i].link ? (int)(timers[i].due / 1000) : -1;
}

static void soon(const __u32 *which, __u32 n)
{
	cancel(which, n);
	while (n--)
		link_timer(&timers[*which++], 1);
}

/* The whole list is taken, and then each timer is taken from it. */
static void run(void)
{
	struct timer *list = slots[1];

	clock = 1;
	slots[1] = NULL;
	occupied[0] &= ~(1ULL << 1);
	if (list)
		list->link = &list;
	while (list) {
		struct timer *timer = list;

		list = timer->next;
		if (list)
			list->link = &list;
		timer->link = NULL;
		timer->callback(timer);
	}
}

const struct contender linked_wheel = {
	.name = "linked-wheel",
	.what = "hierarchical wheel of linked timers, modelled on timer_list",
	.setup = setup, .arm = arm, .touch = touch, .cancel = cancel,
	.slot = slot, .soon = soon, .run = run,
};
