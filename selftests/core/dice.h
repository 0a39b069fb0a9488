/* SPDX-License-Identifier: GPL-2.0-only */
/* The dice by which a test of random operations decides. */
#ifndef DICE_H
#define DICE_H

#include "tap.h"

/*
 * The numbers come from a generator, without an end. The same seed gives the same
 * numbers.
 */
void dice_seed(u64 seed);

/* The numbers come from a fuzzer's bytes. Each takes some bytes, and is 0 after the last. */
void dice_bytes(const u8 *bytes, size_t size);
bool dice_left(void);

/* Returns a number less than @n, or any number if @n is 0. */
u64 roll(u64 n);

static inline u64 rnd(void)
{
	return roll(0);
}

static inline u64 below(u64 n)
{
	return roll(n);
}

/* Returns true once in @n times, on average. */
static inline bool once(u64 n)
{
	return !below(n);
}

/* Returns a number below 2^bits. Small numbers are as frequent as large ones. */
static inline u64 spread(unsigned int bits)
{
	unsigned int n = below(bits + 1);

	return roll(n < 64 ? 1ULL << n : 0);
}

#endif /* DICE_H */
