// SPDX-License-Identifier: GPL-2.0-only
/*
 * stats: shows counters and lateness as a table or for Prometheus.
 */
#include "twctl.h"

enum {
	NAME, PENDING, REGISTERED, TOUCHED, MOVED, CANCELLED, DELIVERED,
	PUT_BACK, REFILED, CALLBACKS, QUIET, BYTES, P50, P90, P99, P999, MAX,
	HELD, ACKED, NACKED, LAPSED, RETURNED, DELETED, MISSED,
};

const struct column stats_columns[] = {
	[NAME] = { "NAME", 0, "the wheel's name" },
	[PENDING] = { "PENDING", COL_NUMBER, "tokens that are pending" },
	[REGISTERED] = { "REGISTERED", COL_NUMBER, "registrations so far" },
	[TOUCHED] = { "TOUCHED", COL_NUMBER, "touches so far" },
	[MOVED] = { "MOVED", COL_NUMBER, "moves so far" },
	[CANCELLED] = { "CANCELLED", COL_NUMBER, "cancellations so far" },
	[DELIVERED] = { "DELIVERED", COL_NUMBER, "events read so far" },
	[PUT_BACK] = { "PUT-BACK", COL_NUMBER | COL_HIDDEN,
		"tokens put back that could not be copied to a reader" },
	[REFILED] = { "REFILED", COL_NUMBER | COL_HIDDEN,
		"tokens filed again: they had been touched, or their block opened" },
	[CALLBACKS] = { "CALLBACKS", COL_NUMBER | COL_HIDDEN,
		"times that the wheel's timer went off" },
	[QUIET] = { "QUIET", COL_NUMBER | COL_HIDDEN,
		"looks at the ring after that which found nothing due" },
	[BYTES] = { "BYTES", COL_NUMBER | COL_HIDDEN, "memory it holds" },
	[P50] = { "P50", COL_NUMBER, "half of the events were at most this late" },
	[P90] = { "P90", COL_NUMBER | COL_HIDDEN, "90 % of the events" },
	[P99] = { "P99", COL_NUMBER, "99 % of the events" },
	[P999] = { "P999", COL_NUMBER | COL_HIDDEN, "99.9 % of the events" },
	[MAX] = { "MAX", COL_NUMBER, "all events" },
	[HELD] = { "HELD", COL_NUMBER, "tokens that readers hold by a lease" },
	[ACKED] = { "ACKED", COL_NUMBER | COL_HIDDEN, "acks so far" },
	[NACKED] = { "NACKED", COL_NUMBER | COL_HIDDEN, "nacks so far" },
	[LAPSED] = { "LAPSED", COL_NUMBER | COL_HIDDEN,
		"leases so far that were over without an answer" },
	[RETURNED] = { "RETURNED", COL_NUMBER | COL_HIDDEN,
		"deliveries so far that came back from readers that ended" },
	[DELETED] = { "DELETED", COL_NUMBER | COL_HIDDEN, "deletions so far" },
	[MISSED] = { "MISSED", COL_NUMBER | COL_HIDDEN,
		"periods so far that were missed and had no event of their own" },
	{ }
};

static void put_deliveries(struct out *out, const struct timewheel_info *info)
{
	out_number(out, HELD, info->held);
	out_number(out, ACKED, info->acked);
	out_number(out, NACKED, info->nacked);
	out_number(out, LAPSED, info->lapsed);
	out_number(out, RETURNED, info->returned);
	out_number(out, DELETED, info->deleted);
	out_number(out, MISSED, info->missed);
}

static void put_stats(struct out *out, const char *name,
		      const struct stats *stats)
{
	const struct timewheel_info *info = &stats->info;

	out_row(out);
	out_text(out, NAME, "%s", name);
	out_number(out, PENDING, info->pending);
	out_number(out, REGISTERED, info->registered);
	out_number(out, TOUCHED, info->touched);
	out_number(out, MOVED, info->moved);
	out_number(out, CANCELLED, info->cancelled);
	out_number(out, DELIVERED, info->delivered);
	out_number(out, PUT_BACK, info->put_back);
	out_number(out, REFILED, info->refiled);
	out_number(out, CALLBACKS, info->callbacks);
	out_number(out, QUIET, info->quiet);
	out_size(out, BYTES, info->bytes);
	put_percentile(out, P50, stats->lateness, 50);
	put_percentile(out, P90, stats->lateness, 90);
	put_percentile(out, P99, stats->lateness, 99);
	put_percentile(out, P999, stats->lateness, 99.9);
	put_percentile(out, MAX, stats->lateness, 100);
	put_deliveries(out, info);
}

static enum status put_each(const struct args *args, struct out *out)
{
	enum status status = STATUS_OK;
	struct stats stats;
	char **name;

	for (name = wheel_names(args); *name; name++) {
		enum status each = stats_take(&stats, *name, args->count);

		if (each && !status)
			status = each;
		if (!each && stats.info.slots)
			put_stats(out, *name, &stats);
	}
	return status;
}

enum status verb_stats(const struct args *args)
{
	enum status status;
	struct out *out;

	if (args->option[OPT_OUTPUT_FILE] && !args->option[OPT_PROMETHEUS])
		die(STATUS_USAGE, "--output-file: only with --prometheus");
	if (args->option[OPT_PROMETHEUS])
		return prometheus(args);
	out = out_begin(args, stats_columns, "stats");
	status = put_each(args, out);
	out_end(out);
	return status;
}
