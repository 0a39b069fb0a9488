// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's statistics: the buckets cover all values without a gap, and a
 * wheel's histogram counts what has been read.
 */
#include <math.h>

#include "lib_test.h"

/* Each bucket begins where the one before ends; none is wider than a quarter. */
TEST(bounds)
{
	uint64_t low, high, expected = 0;

	for (unsigned int i = 0; i < TIMEWHEEL_BUCKETS; i++) {
		ASSERT_EQ(0, tw_histogram_bounds(i, &low, &high));
		ASSERT_EQ(expected, low);
		ASSERT_LE(low, high);
		EXPECT_LE(high - low, low / 4);
		expected = high + 1;
	}
	EXPECT_EQ(UINT64_MAX, high);
	EXPECT_EQ(0, tw_histogram_bounds(4, NULL, NULL));
	EXPECT_ERR(EDOM, tw_histogram_bounds(TIMEWHEEL_BUCKETS, &low, &high));
}

/* The histogram has 50 of the value 4, 49 of 8 and 9, and 1 of the greatest. */
TEST(percentile)
{
	const struct {
		double percent;
		uint64_t value;
	} cases[] = {
		{ 0, 4 }, { 1, 4 }, { 50, 4 }, { 50.1, 9 }, { 99, 9 },
		{ 99.1, UINT64_MAX }, { 100, UINT64_MAX },
	};
	uint64_t buckets[TIMEWHEEL_BUCKETS] = {
		[4] = 50, [8] = 49, [TIMEWHEEL_BUCKETS - 1] = 1,
	};
	uint64_t value;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_EQ(0, tw_histogram_percentile(buckets, cases[i].percent,
						     &value));
		EXPECT_EQ(cases[i].value, value) {
			TH_LOG("percentile %g", cases[i].percent);
		}
	}
	value = 5;
	EXPECT_ERR(EINVAL, tw_histogram_percentile(buckets, -0.1, &value));
	EXPECT_ERR(EINVAL, tw_histogram_percentile(buckets, 100.1, &value));
	EXPECT_ERR(EINVAL, tw_histogram_percentile(buckets, NAN, &value));
	memset(buckets, 0, sizeof(buckets));
	EXPECT_ERR(ENODATA, tw_histogram_percentile(buckets, 50, &value));
	EXPECT_EQ(5, value);
}

/* A percentile is found also when counts are beyond what a double holds exactly. */
TEST(percentile_of_very_many)
{
	uint64_t buckets[TIMEWHEEL_BUCKETS] = { [1] = (1ULL << 62) + 1, [2] = 1 };
	uint64_t value;

	ASSERT_EQ(0, tw_histogram_percentile(buckets, 100, &value));
	EXPECT_EQ(2, value);
	ASSERT_EQ(0, tw_histogram_percentile(buckets, 0, &value));
	EXPECT_EQ(1, value);
}

static uint64_t sum(const uint64_t *buckets)
{
	uint64_t total = 0;

	for (unsigned int i = 0; i < TIMEWHEEL_BUCKETS; i++)
		total += buckets[i];
	return total;
}

static void need_stats(const struct tw_wheel *wheel)
{
	if (tw_wheel_stats(wheel, NULL) < 0 && errno == ENOTTY)
		skip("the module has no statistics");
}

/* On a MANUAL wheel lateness is exact, and there is no timer. */
TEST(lateness)
{
	struct tw_wheel *wheel = open_wheel(&manual);
	struct tw_events *events = tw_events_new(4);
	uint64_t lateness[TIMEWHEEL_BUCKETS], value;

	NEEDS_KERNEL("EFAULT");
	need_stats(wheel);
	ASSERT_EQ(0, RUN(wheel, register, 1, SEC, 0, 0));
	ASSERT_EQ(0, RUN(wheel, register, 2, 5 * SEC, 0, 0));
	ASSERT_EQ(0, tw_wheel_advance(wheel, 105));
	ASSERT_EQ(2, tw_events_read(events, wheel, 0));
	ASSERT_EQ(0, tw_wheel_stats(wheel, lateness));
	EXPECT_EQ(2, sum(lateness));
	EXPECT_EQ(1, lateness[0]);
	ASSERT_EQ(0, tw_histogram_percentile(lateness, 100, &value));
	EXPECT_LE(4 * SEC, value);
	EXPECT_GT(5 * SEC, value);
	EXPECT_ERR(EFAULT, tw_wheel_stats(wheel, (uint64_t *)8));
	tw_events_free(events);
	tw_wheel_close(wheel);
}

TEST_HARNESS_MAIN
