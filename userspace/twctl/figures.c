// SPDX-License-Identifier: GPL-2.0-only
/*
 * A wheel's counters and the lateness of its events, for stats, for Prometheus and
 * for top. This file knows nothing of their tables.
 */
#include "twctl.h"

/*
 * Reads a wheel's figures. If the user did not name the wheel, it may be gone, or
 * the user may have no permission: then there is no message, and @slots is 0.
 */
enum status stats_take(struct stats *stats, const char *name, bool asked)
{
	struct tw_wheel *wheel = tw_wheel_open_named(name, O_RDONLY);
	bool done;

	*stats = (struct stats) { .info.size = sizeof(stats->info) };
	if (!wheel && errno == ENODEV)
		errno = ENOENT;
	done = wheel && !tw_wheel_info(wheel, &stats->info) &&
	       !tw_wheel_stats(wheel, stats->lateness);
	tw_wheel_close(wheel);
	if (done)
		return STATUS_OK;
	stats->info.slots = 0;
	return asked ? wheel_trouble(name) : STATUS_OK;
}

/* The last bucket has no upper end, and the longest time that can be told stands for it. */
void put_percentile(struct out *out, int column, const uint64_t *buckets,
		    double percent)
{
	uint64_t value;

	if (!tw_histogram_percentile(buckets, percent, &value))
		out_span(out, column, value < TIME_MAX_NS ? value : TIME_MAX_NS);
}
