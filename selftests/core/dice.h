/* SPDX-License-Identifier: GPL-2.0-only */
/* Dice: what a test of random operations decides by. */
#ifndef DICE_H
#define DICE_H

#include "tap.h"

/* They fall by a generator, the same for the same seed, and for ever. */
void dice_seed(u64 seed);

/* They fall as a fuzzer has it: each takes its bytes, and is 0 after the last. */
void dice_bytes(const u8 *bytes, size_t size);
bool dice_left(void);

/* A number less than @n; any at all if that is 0. */
u64 roll(u64 n);

static inline u64 rnd(void)
{
	return roll(0);
}

static inline u64 below(u64 n)
{
	return roll(n);
}

/* Once in @n times. */
static inline bool once(u64 n)
{
	return !below(n);
}

/* Small numbers are as frequent as large ones; less than 2^bits. */
static inline u64 spread(unsigned int bits)
{
	unsigned int n = below(bits + 1);

	return roll(n < 64 ? 1ULL << n : 0);
}

#endif /* DICE_H */
