// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Statistics: functions that read a wheel's histogram.
 */
#include "internal.h"

int tw_wheel_stats(const struct tw_wheel *wheel, uint64_t *lateness)
{
	struct timewheel_stats stats = {
		.size = sizeof(stats),
		.lateness = (uintptr_t)lateness,
	};

	return tw_wheel_ioctl(wheel, TIMEWHEEL_IOC_STATS, &stats);
}

/* This is the formula of struct timewheel_stats. */
static uint64_t low_of(unsigned int bucket)
{
	if (bucket < 4)
		return bucket;
	return (4ULL + bucket % 4) << (bucket / 4 - 1);
}

int tw_histogram_bounds(unsigned int bucket, uint64_t *low, uint64_t *high)
{
	if (bucket >= TIMEWHEEL_BUCKETS) {
		errno = EDOM;
		return -1;
	}
	if (low)
		*low = low_of(bucket);
	/*
	 * The bucket after the last one begins at 2^64, which is 0, and the high end is right, too.
	 */
	if (high)
		*high = low_of(bucket + 1) - 1;
	return 0;
}

static uint64_t total(const uint64_t *buckets)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < TIMEWHEEL_BUCKETS; i++)
		sum += buckets[i];
	return sum;
}

/* Returns @percent of @count, rounded up, and at least 1. */
static uint64_t share(uint64_t count, double percent)
{
	double exact = (double)count * percent / 100;
	uint64_t whole = exact < (double)count ? (uint64_t)exact : count;

	if ((double)whole < exact && whole < count)
		whole++;
	return whole ? whole : 1;
}

int tw_histogram_percentile(const uint64_t *buckets, double percent,
			    uint64_t *value)
{
	uint64_t count = total(buckets), wanted, seen = 0;
	unsigned int bucket = 0;

	/* The condition is written in this way to be true also if @percent is not a number. */
	if (!(percent >= 0 && percent <= 100)) {
		errno = EINVAL;
		return -1;
	}
	if (!count) {
		errno = ENODATA;
		return -1;
	}
	wanted = share(count, percent);
	while (seen + buckets[bucket] < wanted)
		seen += buckets[bucket++];
	return tw_histogram_bounds(bucket, NULL, value);
}
