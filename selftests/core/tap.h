/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of the core share: checks that print where they failed, TAP
 * lines, and random numbers that come again with the same seed.
 */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/types.h>

/* Prints what is needed to come to the same place again; each test has one. */
void print_context(void);

/* Nothing can be trusted after a failed check: the program ends. */
#define CHECK(condition, ...) do {					\
	if (!(condition)) {						\
		printf("# %s:%d: not so: %s\n# ", __FILE__, __LINE__,	\
		       #condition);					\
		printf(__VA_ARGS__);					\
		printf("\n");						\
		print_context();					\
		exit(1);						\
	}								\
} while (0)

#define CHECK_EQ(a, b) do {						\
	long long a_ = (long long)(a), b_ = (long long)(b);		\
									\
	CHECK(a_ == b_, "%s is %lld, %s is %lld", #a, a_, #b, b_);	\
} while (0)

/* splitmix64: every state is a good one. */
static inline u64 random_next(u64 *state)
{
	u64 z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;

	return z ^ z >> 31;
}

#endif /* TAP_H */
