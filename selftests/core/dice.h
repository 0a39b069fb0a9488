/* SPDX-License-Identifier: GPL-2.0-only */
/* Dice: what a test of random operations decides by. */
#ifndef DICE_H
#define DICE_H

#include "tap.h"

extern u64 random_state;

static inline u64 rnd(void)
{
	return random_next(&random_state);
}

static inline u64 below(u64 n)
{
	return rnd() % n;
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

	return n ? rnd() >> (64 - n) : 0;
}

#endif /* DICE_H */
