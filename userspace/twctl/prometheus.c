// SPDX-License-Identifier: GPL-2.0-only
/*
 * stats --prometheus: metrics in Prometheus' text format, to stdout or to a file
 * that a collector of text files reads: the collector sees all the new metrics, or
 * the file as it was before.
 */
#include "twctl.h"

/*
 * The bounds of a histogram's buckets are powers of two from 1 us to 18 min, minus 1 ns. The
 * wheel's own buckets end at these bounds, too: the wheel has four buckets for each power of
 * two.
 */
#define FIRST_POWER	10
#define LAST_POWER	40

struct figures {
	char		**names;
	struct stats	*stats;
	struct due	*due;
	size_t		count;
};

static const struct metric {
	const char	*name;
	const char	*type;
	const char	*help;
	size_t		offset;
} metrics[] = {
#define METRIC(name, type, field, help) \
	{ "timewheel_" name, type, help, offsetof(struct timewheel_info, field) }
	METRIC("pending_tokens", "gauge", pending, "Tokens that are pending."),
	METRIC("held_tokens", "gauge", held,
	       "Tokens that readers hold by a lease."),
	METRIC("max_tokens", "gauge", max_tokens, "Tokens it may hold."),
	METRIC("memory_bytes", "gauge", bytes, "Memory that it holds."),
	METRIC("registered_total", "counter", registered, "Registrations."),
	METRIC("touched_total", "counter", touched, "Touches."),
	METRIC("moved_total", "counter", moved, "Moves."),
	METRIC("cancelled_total", "counter", cancelled, "Cancellations."),
	METRIC("delivered_total", "counter", delivered, "Events read."),
	METRIC("put_back_total", "counter", put_back,
	       "Tokens put back that could not be copied to a reader."),
	METRIC("refiled_total", "counter", refiled, "Tokens filed again."),
	METRIC("callbacks_total", "counter", callbacks,
	       "Times that the timer went off."),
	METRIC("acked_total", "counter", acked, "Acks."),
	METRIC("nacked_total", "counter", nacked, "Nacks."),
	METRIC("lapsed_total", "counter", lapsed,
	       "Leases that were over without an answer."),
	METRIC("returned_total", "counter", returned,
	       "Deliveries that came back from readers that ended."),
	METRIC("deleted_total", "counter", deleted, "Deletions."),
	METRIC("missed_total", "counter", missed,
	       "Periods that were missed and had no event of their own."),
	METRIC("quiet_total", "counter", quiet,
	       "Looks after the timer that found nothing due."),
};

static void print_kind(FILE *file, const char *name, const char *type,
		       const char *help)
{
	fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_metric(FILE *file, const struct metric *metric,
			 const struct figures *figures)
{
	size_t i;

	print_kind(file, metric->name, metric->type, metric->help);
	for (i = 0; i < figures->count; i++) {
		const char *info = (const char *)&figures->stats[i].info;
		uint64_t value = *(const uint64_t *)(info + metric->offset);

		fprintf(file, "%s{wheel=\"%s\"} %llu\n", metric->name,
			figures->names[i], (unsigned long long)value);
	}
}

/* The settings of the wheel as labels; times are in seconds. */
static void print_setups(FILE *file, const struct figures *figures)
{
	size_t i;

	print_kind(file, "timewheel_info", "gauge", "Its settings.");
	for (i = 0; i < figures->count; i++) {
		const struct timewheel_info *info = &figures->stats[i].info;

		fprintf(file, "timewheel_info{wheel=\"%s\",clock=\"%s\",slots=\"%u\"",
			figures->names[i], clock_name(info->clock), info->slots);
		fprintf(file, ",tick=\"%.10g\",lease=\"%.10g\"} 1\n",
			info->tick / 1e9, info->lease / 1e9);
	}
}

static void print_span(FILE *file, const char *name, const char *wheel, uint64_t ns)
{
	fprintf(file, "%s{wheel=\"%s\"} %llu.%09llu\n", name, wheel,
		(unsigned long long)(ns / NSEC_PER_SEC),
		(unsigned long long)(ns % NSEC_PER_SEC));
}

static void print_due(FILE *file, const struct figures *figures)
{
	size_t i;

	print_kind(file, "timewheel_due_tokens", "gauge",
		   "Tokens that are due and that no reader has taken.");
	for (i = 0; i < figures->count; i++)
		fprintf(file, "timewheel_due_tokens{wheel=\"%s\"} %llu\n",
			figures->names[i],
			(unsigned long long)figures->due[i].tokens);
	print_kind(file, "timewheel_oldest_due_seconds", "gauge",
		   "For how long the first of these has been due.");
	for (i = 0; i < figures->count; i++)
		print_span(file, "timewheel_oldest_due_seconds",
			   figures->names[i], figures->due[i].oldest);
	print_kind(file, "timewheel_slack_seconds", "gauge",
		   "By how much its timer may be late.");
	for (i = 0; i < figures->count; i++)
		print_span(file, "timewheel_slack_seconds", figures->names[i],
			   figures->stats[i].info.slack);
}

/* 1 while the wheel is in that state, else 0. */
static void print_state(FILE *file, const char *name, const char *help,
			const struct figures *figures, uint32_t state)
{
	size_t i;

	print_kind(file, name, "gauge", help);
	for (i = 0; i < figures->count; i++)
		fprintf(file, "%s{wheel=\"%s\"} %d\n", name, figures->names[i],
			!!(figures->stats[i].info.state & state));
}

/* A wheel counts no sum of its lateness, and for this reason there is no _sum. */
static void print_histogram(FILE *file, const char *name, const char *wheel,
			    const uint64_t *buckets)
{
	unsigned int bucket = 0, power;
	uint64_t count = 0, high;

	for (power = FIRST_POWER; power <= LAST_POWER; power++) {
		for (; bucket < TIMEWHEEL_BUCKETS; bucket++) {
			tw_histogram_bounds(bucket, NULL, &high);
			if (high >= 1ULL << power)
				break;
			count += buckets[bucket];
		}
		high = (1ULL << power) - 1;
		fprintf(file, "%s_bucket{wheel=\"%s\",le=\"%llu.%09llu\"} %llu\n",
			name, wheel, (unsigned long long)(high / NSEC_PER_SEC),
			(unsigned long long)(high % NSEC_PER_SEC),
			(unsigned long long)count);
	}
	for (; bucket < TIMEWHEEL_BUCKETS; bucket++)
		count += buckets[bucket];
	fprintf(file, "%s_bucket{wheel=\"%s\",le=\"+Inf\"} %llu\n", name, wheel,
		(unsigned long long)count);
	fprintf(file, "%s_count{wheel=\"%s\"} %llu\n", name, wheel,
		(unsigned long long)count);
}

static void print_lateness(FILE *file, const struct figures *figures)
{
	size_t i;

	print_kind(file, "timewheel_lateness_seconds", "histogram",
		   "From the deadline until a reader took the token.");
	for (i = 0; i < figures->count; i++)
		print_histogram(file, "timewheel_lateness_seconds",
				figures->names[i], figures->stats[i].lateness);
}

static void print_all(FILE *file, const struct figures *figures)
{
	size_t i;

	print_setups(file, figures);
	for (i = 0; i < ARRAY_SIZE(metrics); i++)
		print_metric(file, &metrics[i], figures);
	print_due(file, figures);
	print_state(file, "timewheel_paused", "It delivers nothing.", figures,
		    TIMEWHEEL_CONTROL_PAUSED);
	print_state(file, "timewheel_draining", "No token can be registered.",
		    figures, TIMEWHEEL_CONTROL_DRAINING);
	print_lateness(file, figures);
}

static enum status take_all(const struct args *args, struct figures *figures)
{
	enum status status = STATUS_OK, each;
	char **name = wheel_names(args);
	size_t count = 0;

	while (name[count])
		count++;
	figures->names = calloc(count + 1, sizeof(*figures->names));
	figures->stats = calloc(count + 1, sizeof(*figures->stats));
	figures->due = calloc(count + 1, sizeof(*figures->due));
	if (!figures->names || !figures->stats || !figures->due)
		die(STATUS_FAILED, "no memory for the figures");
	for (; *name; name++) {
		struct stats *stats = &figures->stats[figures->count];

		each = stats_take(stats, *name, args->count);
		if (each && !status)
			status = each;
		if (!stats->info.slots)
			continue;
		figures->due[figures->count] = due_count(*name, &stats->info);
		figures->names[figures->count++] = *name;
	}
	return status;
}

static void write_file(const char *path, const struct figures *figures)
{
	struct replacement new;

	if (replace_begin(&new, path)) {
		print_all(new.file, figures);
		if (replace_end(&new, 0644))
			return;
	}
	die(STATUS_FAILED, "--output-file '%s': %s", path, strerror(errno));
}

enum status prometheus(const struct args *args)
{
	struct figures figures = { };
	enum status status = take_all(args, &figures);

	/* Nothing is written after an error: the old file is better than a part of the new one. */
	if (status)
		return status;
	if (args->option[OPT_OUTPUT_FILE])
		write_file(args->option[OPT_OUTPUT_FILE], &figures);
	else
		print_all(stdout, &figures);
	free(figures.names);
	free(figures.stats);
	free(figures.due);
	return STATUS_OK;
}
