/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wheel's core for the benchmarks. They use it as the module does, with as many operations
 * under one hold of the lock, and as many tokens in one look.
 */
#ifndef BENCH_WHEEL_H
#define BENCH_WHEEL_H

#include "bench.h"
#include "look.h"

#define BASE		(1U << 20)	/* the tick at the start */
#define TICK_NS		1000000000ULL
#define HOLD		16		/* operations under one hold of the lock */
#define KEYS		64		/* touches that fetch their tokens together */
#define STEP		128		/* most tokens in one look */
#define BATCH		64		/* most tokens taken at once */

extern struct tw_ring ring;		/* the one wheel of most measurements */
extern u64 *handles;			/* the handle of each timer */
extern u64 *words;			/* the words as a user has mapped them */

void wheel_setup(struct tw_ring *wheel, u32 n, bool with_ids, bool with_words);
void wheel_register(struct tw_ring *wheel, const u32 *which, u64 *to, u32 n,
		    const struct tw_now *now);
void wheel_cancel(struct tw_ring *wheel, const u64 *keys, u32 n);
void wheel_touch(const u64 *keys, u32 n, const struct tw_now *now);
void wheel_stamp(const u64 *keys, u32 n, u32 tick);

static inline struct tw_now wheel_at(u64 tick)
{
	return (struct tw_now) { .ns = tick * TICK_NS, .tick = tick };
}

#endif /* BENCH_WHEEL_H */
