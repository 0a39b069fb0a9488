// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs that tell figures, to programs and to Prometheus. They change nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allow.h"
#include "figures.h"
#include "keep.h"
#include "verbs.h"

static bool ends_in(const char *text, const char *end)
{
	return strlen(text) > strlen(end) &&
	       !strcmp(text + strlen(text) - strlen(end), end);
}

static void daemon_figures(struct figures *figures)
{
	*figures = (struct figures) { NULL, 5, {
		{ "mended", queue_mended, "mended_total",
		  "Tokens that were not as the store has their jobs." },
		{ "loading", keep_is_loading(), "loading",
		  "Jobs are being loaded into the wheels." },
		{ "disk_full", store->is_full(), "disk_full",
		  "No new jobs are accepted, as the disk is full." },
		{ "rules", store->count_rules(), "rules",
		  "Rules by which jobs come again." },
		{ "process_wheels", wheels_in_process(), "process_wheels",
		  "The wheels are in this process, not in the kernel." },
	} };
	if (store->figures)
		store->figures(figures);
}

static void queue_figures(struct queue *queue, struct figures *figures)
{
	const struct queue_row *row = &queue->row;
	struct timewheel_info info;
	/* The stamp and parked tokens are pending, too: see queue_register(). */
	uint64_t now, age, others = 1 + (store->shared ? 0 : row->buried + row->done +
							     row->waiting);
	struct due due;

	if (!queue_counts(queue, &info))
		info.next = TIMEWHEEL_NEVER;
	due = queue_due(queue, &info);
	now = queue_deadline(now_ms());
	age = due.count && now > due.oldest ? now - due.oldest : 0;
	*figures = (struct figures) { row->name, 28, {
		{ "jobs", row->jobs, "jobs", "Jobs in the queue." },
		{ "bytes", row->bytes, "bytes", "Bytes of bodies and keys." },
		{ "pending", info.pending > others ? info.pending - others : 0,
		  "pending_jobs", "Jobs that wait until they are due, or taken." },
		{ "held", info.held, "held_jobs", "Jobs that are worked on." },
		{ "buried", row->buried, "buried_jobs", "Jobs that are kept aside." },
		{ "done", row->done, "done_jobs", "Jobs that are done, and whose keys are kept." },
		{ "waiting", row->waiting, "waiting_jobs", "Jobs that wait for their groups." },
		{ "due", due.count, "due_jobs", "Jobs that are due and not taken." },
		{ "oldest_ms", age / NSEC_PER_MSEC,
		  "oldest_due_seconds", "How long the oldest of these has been due." },
		{ "delivered", info.delivered, "delivered_total", "Deliveries." },
		{ "lapsed", info.lapsed, "lapsed_total",
		  "Leases that were over without an answer." },
		{ "paused", row->paused, "paused", "No jobs are handed out." },
		{ "draining", row->draining, "draining", "No new jobs are accepted." },
		{ "loading", !queue->loaded, "queue_loading",
		  "The queue's jobs are being loaded, or it has no wheel." },
		{ .name = "lease_ms", .value = row->lease },
		{ .name = "tries", .value = row->tries },
		{ .name = "backoff_ms", .value = row->backoff },
		{ .name = "backoff_most_ms", .value = row->backoff_most },
		{ .name = "keep_buried_ms", .value = row->keep_buried },
		{ .name = "keep_done_ms", .value = row->keep_done > 0 ? row->keep_done : 0 },
		{ .name = "limit", .value = row->limit },
		{ .name = "rate", .value = row->rate.jobs },
		{ .name = "rate_ms", .value = row->rate.per },
		{ .name = "group_limit", .value = row->group_limit },
		{ .name = "group_rate", .value = row->group_rate.jobs },
		{ .name = "group_rate_ms", .value = row->group_rate.per },
		{ "max_jobs", row->max_jobs, "max_jobs", "Jobs that it may hold." },
		{ "max_bytes", row->max_bytes, "max_bytes", "Bytes that it may hold." },
	} };
}

/* TW.STATS [queue] */
void verb_stats(struct request *request)
{
	struct figures figures;

	/* The wheel does not know the changes of this turn yet. */
	turn_end();
	if (request->queue)
		queue_figures(request->queue, &figures);
	else
		daemon_figures(&figures);
	reply_map(request->reply, figures.count);
	for (size_t i = 0; i < figures.count; i++) {
		reply_text(request->reply, figures.all[i].name);
		reply_integer(request->reply, figures.all[i].value);
	}
}

static void print_kind(FILE *file, const char *metric, const char *type,
		       const char *help)
{
	fprintf(file, "# HELP twjobd_%s %s\n# TYPE twjobd_%s %s\n", metric, help,
		metric, type);
}

static void print_figure(FILE *file, const struct figure *figure,
			 const char *queue)
{
	fprintf(file, "twjobd_%s", figure->metric);
	if (queue)
		fprintf(file, "{queue=\"%s\"}", queue);
	if (ends_in(figure->metric, "_seconds"))
		fprintf(file, " %.3f\n", figure->value / 1e3);
	else
		fprintf(file, " %" PRIu64 "\n", figure->value);
}

/* Prints each metric once, with its value in each of these @count groups of figures. */
static void print_figures(FILE *file, const struct figures *figures, size_t count)
{
	for (size_t i = 0; count && i < figures->count; i++) {
		const char *metric = figures->all[i].metric;

		if (!metric)
			continue;
		print_kind(file, metric, ends_in(metric, "_total") ?
			   "counter" : "gauge", figures->all[i].help);
		for (size_t j = 0; j < count; j++)
			print_figure(file, &figures[j].all[i], figures[j].queue);
	}
}

/* Prints the figures of queues that the client may look at. */
static void print_queues(FILE *file, const struct client *client)
{
	struct figures *figures;
	struct queue *queue;
	size_t count = 0;

	LIST_FOREACH(queue, &queues, next)
		count++;
	figures = calloc(count + 1, sizeof(*figures));
	if (!figures)
		die(ENOMEM, "figures");
	count = 0;
	LIST_FOREACH(queue, &queues, next)
		if (allow_look(client, queue))
			queue_figures(queue, &figures[count++]);
	print_figures(file, figures, count);
	free(figures);
}

static void print_histograms(FILE *file, const struct client *client)
{
	struct queue *queue;
	char label[NAME_SIZE + 16];

	print_kind(file, "commit_seconds", "histogram",
		   "How long commits took.");
	histogram_print(file, turn_commits(), "twjobd_commit_seconds", "");
	print_kind(file, "lateness_seconds", "histogram",
		   "From when a job was due until a worker got it.");
	LIST_FOREACH(queue, &queues, next) {
		if (!allow_look(client, queue))
			continue;
		snprintf(label, sizeof(label), "queue=\"%s\",", queue->row.name);
		histogram_print(file, &queue->lateness,
				"twjobd_lateness_seconds", label);
	}
}

/* TW.METRICS tells all figures in Prometheus' text format. */
void verb_metrics(struct request *request)
{
	struct figures figures;
	struct bytes text;
	FILE *file = open_memstream((char **)&text.data, &text.length);

	if (!file)
		die(ENOMEM, "metrics");
	turn_end();
	daemon_figures(&figures);
	print_figures(file, &figures, 1);
	print_queues(file, request->client);
	print_histograms(file, request->client);
	if (fclose(file))
		die(ENOMEM, "metrics");
	reply_bytes(request->reply, text);
	free((char *)text.data);
}
