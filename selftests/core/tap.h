/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The common parts of the core's tests: checks that print where they failed, and
 * random numbers that are the same for the same seed.
 */
#ifndef TAP_H
#define TAP_H

#include "shim.h"

/* Prints how to come to the same place again. Each test has this function. */
void print_context(void);

/* The program ends after a failed check, because no later result can be trusted. */
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

/* The generator is splitmix64, for which every state is good. */
static inline u64 random_next(u64 *state)
{
	u64 z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;

	return z ^ z >> 31;
}

#endif /* TAP_H */
