// SPDX-License-Identifier: GPL-2.0-only
/* top: shows what the queues do at present. On a terminal the table is drawn again and again. */
#include <ctype.h>
#include <math.h>

#include "overview.h"

#define EVERY		(2 * NSEC_PER_SEC)
#define CLEAR		"\033[H\033[2J"
/* The lines of a screen that are no rows: the server's figures, the headings, the cursor's line. */
#define OTHER_LINES	3

enum {
	NAME, PENDING, DUE, OLDEST, HELD, WAITING, BURIED, RATE, P50, P99, STATE,
};

const struct column top_columns[] = {
	[NAME] = { "NAME", 0, "the queue's name; that with the most due jobs first" },
	[PENDING] = { "PENDING", COL_NUMBER, "jobs that wait until they are due, or taken" },
	[DUE] = { "DUE", COL_NUMBER, "jobs of these that are due" },
	[OLDEST] = { "OLDEST", COL_NUMBER, "how long the oldest of these has been due" },
	[HELD] = { "HELD", COL_NUMBER, "jobs that are worked on" },
	[WAITING] = { "WAITING", COL_NUMBER,
		      "jobs that wait for their group; nothing if the server has none" },
	[BURIED] = { "BURIED", COL_NUMBER, "jobs that are buried" },
	[RATE] = { "RATE", COL_NUMBER,
		   "deliveries in a second since the table before; nothing in the first" },
	[P50] = { "P50", COL_NUMBER,
		  "half of the jobs were not later than this when a worker got them" },
	[P99] = { "P99", COL_NUMBER, "99 of 100 were not; nothing if none was handed out" },
	[STATE] = { "STATE", 0,
		    "running, paused, draining, paused+draining or loading (after a boot)" },
	{ }
};

static void put_figure(struct out *out, int column, const redisReply *stats, const char *name)
{
	if (field(stats, name))
		out_number(out, column, number_field(stats, name));
}

static void put_late(struct out *out, int column, double seconds)
{
	if (seconds >= 0)
		out_span(out, column, llround(seconds * NSEC_PER_SEC));
}

static void put_queue(struct out *out, const struct overview_queue *queue)
{
	const redisReply *stats = queue->stats;

	out_row(out);
	out_text(out, NAME, "%s", queue->name);
	put_figure(out, PENDING, stats, "pending");
	put_figure(out, DUE, stats, "due");
	if (number_field(stats, "due"))
		out_span(out, OLDEST, number_field(stats, "oldest_ms") * NSEC_PER_MSEC);
	put_figure(out, HELD, stats, "held");
	put_figure(out, WAITING, stats, "waiting");
	put_figure(out, BURIED, stats, "buried");
	if (queue->rate >= 0)
		out_text(out, RATE, "%.1f", queue->rate);
	put_late(out, P50, queue->half);
	put_late(out, P99, queue->most);
	out_text(out, STATE, "%s", queue_state(stats));
}

static int by_due(const void *one, const void *other)
{
	const struct overview_queue *a = one, *b = other;
	long long due[] = { number_field(a->stats, "due"), number_field(b->stats, "due") };

	return due[0] != due[1] ? (due[0] < due[1] ? 1 : -1) : strcmp(a->name, b->name);
}

/* Characters that could disturb a terminal are left out. No figure's name has any. */
static void put_words(const redisReply *stats)
{
	size_t i;

	for (i = 0; i + 1 < stats->elements; i += 2) {
		const char *at = stats->element[i]->str;

		for (; at && *at; at++) {
			if (isalnum((unsigned char)*at) || *at == '_')
				putchar(*at);
		}
		printf(" %lld  ", stats->element[i + 1]->integer);
	}
	putchar('\n');
}

static enum status put_all(const struct args *args, bool again)
{
	struct out *out = out_begin(args, top_columns, "queues");
	size_t height = again ? screen_height() : 0, rows, i;
	enum status status = STATUS_OK;
	struct overview overview;
	redisReply *wrong;
	bool lost;

	wrong = overview_get(&overview, ask, &lost);
	if (wrong) {
		refused(wrong, NULL, &status);
		return status;
	}
	qsort(overview.queues, overview.count, sizeof(*overview.queues), by_due);
	if (again) {
		fputs(CLEAR, stdout);
		put_words(overview.daemon);
	}
	rows = height > OTHER_LINES ? height - OTHER_LINES : overview.count;
	for (i = 0; i < overview.count && i < rows; i++)
		put_queue(out, &overview.queues[i]);
	out_end(out);
	overview_free(&overview);
	return STATUS_OK;
}

enum status verb_top(const struct args *args)
{
	bool again = isatty(STDOUT_FILENO) && !args->option[OPT_JSON];
	enum status status;

	server_open(args);
	if (!again)
		return put_all(args, false);
	signals_begin();
	setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
	do {
		status = put_all(args, true);
		fflush(stdout);
	} while (!status && !stop_signal && !wait_for(NULL, 0, end_after(EVERY)));
	return status;
}
