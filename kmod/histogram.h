/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Histogram: how often a number of ns came up. Each power of two has four buckets: a quarter
 * of the value is the largest error, from 1 ns to centuries.
 */
#ifndef TW_HISTOGRAM_H
#define TW_HISTOGRAM_H

#include <linux/bitops.h>
#include <linux/timewheel.h>
#include <linux/types.h>

/**
 * struct tw_histogram - counts
 * @bucket: how many values of each; guarded by a lock that the owner names
 */
struct tw_histogram {
	u64	bucket[TIMEWHEEL_BUCKETS];
};

/* Returns the bucket of a value. */
static inline unsigned int tw_bucket(u64 value)
{
	unsigned int shift;

	if (value < 4)
		return value;
	shift = fls64(value) - 3;

	return 4 * (shift + 1) + (value >> shift) % 4;
}

/* Returns the least value of a bucket. */
static inline u64 tw_bucket_low(unsigned int bucket)
{
	return bucket < 4 ? bucket : (4 + bucket % 4ULL) << (bucket / 4 - 1);
}

static inline void tw_histogram_add(struct tw_histogram *histogram,
				    const struct tw_histogram *more)
{
	unsigned int i;

	for (i = 0; i < TIMEWHEEL_BUCKETS; i++)
		histogram->bucket[i] += more->bucket[i];
}

#endif /* TW_HISTOGRAM_H */
