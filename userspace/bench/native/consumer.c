// SPDX-License-Identifier: GPL-2.0-only
/*
 * The consumer's side of an event ring, as <linux/timewheel.h> describes it.
 * The largest ring, so that its events come from beyond the nearest caches.
 */
#include <linux/timewheel.h>

#include "wheel.h"

#define EVENTS	65536U
#define ROUNDS	20U

static struct timewheel_event *events;
static struct timewheel_produced *produced;
static struct timewheel_consumed *consumed;

static void setup(u32 n)
{
	(void)n;
	events = bench_alloc(EVENTS, sizeof(*events));
	produced = bench_alloc(1, sizeof(*produced));
	consumed = bench_alloc(1, sizeof(*consumed));
	produced->size = EVENTS;
}

static void produce(u32 n)
{
	u64 tail = produced->tail;
	u32 i;

	for (i = 0; i < n; i++, tail++)
		events[tail % EVENTS] = (struct timewheel_event) {
			.id = tail, .handle = tail, .cookie = tail,
		};
	/* Pairs with the acquire in consume(). */
	smp_store_release(&produced->tail, tail);
}

static u64 consume(void)
{
	u64 head = consumed->head;
	const u32 mask = produced->size - 1;
	u64 tail, sum = 0;

	/* Pairs with the release in produce(). */
	tail = smp_load_acquire(&produced->tail);
	for (; head != tail; head++)
		sum += READ_ONCE(events[head & mask].cookie);
	/* As for a producer that waits for room. */
	smp_store_release(&consumed->head, head);

	return sum;
}

static void extra(u32 n)
{
	double ns = 0;
	u64 sum = 0, all = (u64)ROUNDS * EVENTS;
	u32 i;

	(void)n;
	for (i = 0; i < ROUNDS; i++) {
		double start;

		produce(EVENTS);
		start = bench_cpu_ns();
		sum += consume();
		ns += bench_cpu_ns() - start;
	}
	MUST(sum == all * (all - 1) / 2);
	bench_report("consume", ns / all);
}

const struct contender consumer = {
	.name = "consumer", .what = "event ring, consumer's side", .ours = true,
	.setup = setup, .extra = extra,
};
