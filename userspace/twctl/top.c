// SPDX-License-Identifier: GPL-2.0-only
/*
 * top: looks at wheels again and again. It shows operations on tokens per second, and how late
 * events were since the last look.
 */
#include <time.h>

#include "twctl.h"

enum {
	NAME, PENDING, REGISTERED, TOUCHED, MOVED, CANCELLED, DELIVERED,
	P50, P99, MAX, STATE, HELD, ACKED, NACKED, LAPSED,
};

const struct column top_columns[] = {
	[NAME] = { "NAME", 0, "the wheel's name" },
	[PENDING] = { "PENDING", COL_NUMBER, "tokens that are pending" },
	[REGISTERED] = { "REGISTERED", COL_NUMBER,
		"registrations a second, since the look before" },
	[TOUCHED] = { "TOUCHED", COL_NUMBER, "touches a second" },
	[MOVED] = { "MOVED", COL_NUMBER | COL_HIDDEN, "moves a second" },
	[CANCELLED] = { "CANCELLED", COL_NUMBER, "cancellations a second" },
	[DELIVERED] = { "DELIVERED", COL_NUMBER, "events read a second" },
	[P50] = { "P50", COL_NUMBER | COL_HIDDEN,
		"half of the events since the look before were at most this late" },
	[P99] = { "P99", COL_NUMBER, "99 % of them" },
	[MAX] = { "MAX", COL_NUMBER, "all of them" },
	[STATE] = { "STATE", COL_HIDDEN,
		"running, paused, draining or paused+draining" },
	[HELD] = { "HELD", COL_NUMBER | COL_HIDDEN,
		"tokens that readers hold by a lease" },
	[ACKED] = { "ACKED", COL_NUMBER | COL_HIDDEN, "acks a second" },
	[NACKED] = { "NACKED", COL_NUMBER | COL_HIDDEN, "nacks a second" },
	[LAPSED] = { "LAPSED", COL_NUMBER | COL_HIDDEN,
		"leases a second that were over without an answer" },
	{ }
};

/* One look at a wheel. */
struct look {
	char		*name;
	uint64_t	time;
	struct stats	stats;
};

struct looks {
	struct look	*look;
	size_t		count;
};

static struct looks look_at_all(const struct args *args)
{
	char **names = wheel_names(args), **name;
	struct looks looks = { };
	enum status status;
	size_t count = 0;

	while (names[count])
		count++;
	looks.look = calloc(count + 1, sizeof(*looks.look));
	if (!looks.look)
		die(STATUS_FAILED, "no memory for figures");
	for (name = names; *name; name++) {
		struct look *look = &looks.look[looks.count];

		status = stats_take(&look->stats, *name, args->count);
		if (status)
			exit(status);
		if (!look->stats.info.slots)
			continue;
		look->name = strdup(*name);
		look->time = end_after(0);
		looks.count++;
	}
	if (!args->count)
		wheel_names_free(names);
	return looks;
}

static void forget(struct looks *looks)
{
	while (looks->count)
		free(looks->look[--looks->count].name);
	free(looks->look);
}

/* Finds the last look at the same wheel, by its number: its name may be another wheel's by now. */
static const struct look *before_of(const struct looks *before,
				    const struct look *look)
{
	size_t i;

	for (i = 0; i < before->count; i++) {
		if (before->look[i].stats.info.number == look->stats.info.number)
			return &before->look[i];
	}
	return NULL;
}

static void put_rate(struct out *out, int column, uint64_t count, uint64_t span)
{
	out_text(out, column, "%.0f", (double)count * NSEC_PER_SEC / (span + 1));
}

static void put_rates(struct out *out, const struct look *look,
		      const struct look *before)
{
	const struct timewheel_info *now = &look->stats.info;
	const struct timewheel_info *then = &before->stats.info;
	uint64_t span = look->time - before->time;
	uint64_t late[TIMEWHEEL_BUCKETS];
	int i;

	put_rate(out, REGISTERED, now->registered - then->registered, span);
	put_rate(out, TOUCHED, now->touched - then->touched, span);
	put_rate(out, MOVED, now->moved - then->moved, span);
	put_rate(out, CANCELLED, now->cancelled - then->cancelled, span);
	put_rate(out, DELIVERED, now->delivered - then->delivered, span);
	put_rate(out, ACKED, now->acked - then->acked, span);
	put_rate(out, NACKED, now->nacked - then->nacked, span);
	put_rate(out, LAPSED, now->lapsed - then->lapsed, span);
	for (i = 0; i < TIMEWHEEL_BUCKETS; i++)
		late[i] = look->stats.lateness[i] - before->stats.lateness[i];
	put_percentile(out, P50, late, 50);
	put_percentile(out, P99, late, 99);
	put_percentile(out, MAX, late, 100);
}

static void print_looks(const struct args *args, const struct looks *looks,
			const struct looks *before)
{
	struct out *out = out_begin(args, top_columns, "wheels");
	size_t i;

	for (i = 0; i < looks->count; i++) {
		const struct look *look = &looks->look[i];
		const struct look *then = before_of(before, look);

		out_row(out);
		out_text(out, NAME, "%s", look->name);
		out_number(out, PENDING, look->stats.info.pending);
		out_text(out, STATE, "%s", state_name(look->stats.info.state));
		out_number(out, HELD, look->stats.info.held);
		if (then)
			put_rates(out, look, then);
	}
	out_end(out);
}

/* On a terminal it draws over the last output. */
static void print_screen(const struct args *args, const struct looks *looks,
			 const struct looks *before)
{
	bool screen = isatty(STDOUT_FILENO) && !args->option[OPT_JSON];
	char now[TIME_TEXT];

	if (screen) {
		real_text(now, sizeof(now), real_now(), false);
		printf("\033[H\033[Jtwctl top  %s\n\n", now);
	}
	print_looks(args, looks, before);
	if (fflush(stdout))
		exit(STATUS_FAILED);
}

/* Waits for the next look. Signals to stop are let through here. */
static void pause_until(uint64_t end)
{
	while (wait_for(NULL, 0, end)) {
		if (stop_signal)
			signal_end();
	}
}

enum status verb_top(const struct args *args)
{
	uint64_t rounds = option_number(args, OPT_ROUNDS, 1, UINT64_MAX - 1,
					UINT64_MAX);
	uint64_t delay = option_span(args, OPT_DELAY, NSEC_PER_SEC);
	struct looks before, looks;
	uint64_t next;

	if (delay < NSEC_PER_SEC / 100)
		die_usage("--delay", args->option[OPT_DELAY], "10ms or more");
	signals_begin();
	next = end_after(delay);
	before = look_at_all(args);
	for (; rounds; rounds--) {
		pause_until(next);
		next = end_after(delay);
		looks = look_at_all(args);
		print_screen(args, &looks, &before);
		forget(&before);
		before = looks;
	}
	forget(&before);
	return STATUS_OK;
}
