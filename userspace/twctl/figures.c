// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a wheel counts, and how late its events have been: for stats, also in
 * Prometheus' format, and for top. This knows nothing of their tables.
 */
#include "twctl.h"

/*
 * A wheel's figures. A wheel that was not @asked for by name may be gone, or the
 * caller may not open it: then nothing is said of it, and it has no slots.
 */
enum status stats_take(struct stats *stats, const char *name, bool asked)
{
	struct tw_wheel *wheel = tw_wheel_open_named(name, O_RDONLY);
	bool done;

	*stats = (struct stats) { .info.size = sizeof(stats->info) };
	if (!wheel && errno == ENODEV)
		errno = ENOENT;
	done = wheel && !tw_wheel_info(wheel, &stats->info) &&
	       !tw_wheel_stats(wheel, stats->lateness, stats->wake);
	tw_wheel_close(wheel);
	if (done)
		return STATUS_OK;
	stats->info.slots = 0;
	return asked ? wheel_trouble(name) : STATUS_OK;
}

/* The last bucket has no end: what is in it is just told to be late. */
void put_percentile(struct out *out, int column, const uint64_t *buckets,
		    double percent)
{
	uint64_t value;

	if (!tw_histogram_percentile(buckets, percent, &value))
		out_span(out, column, value < TIME_MAX_NS ? value : TIME_MAX_NS);
}
