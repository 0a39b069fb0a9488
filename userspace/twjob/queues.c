// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs about queues as a whole.
 */
#include "overview.h"

enum {
	NAME, JOBS, BYTES, HELD, BURIED, STATE, LEASE, TRIES, MAX_JOBS, MAX_BYTES,
	BACKOFF, BACKOFF_MOST, KEEP_BURIED, KEEP_DONE, WAITING, LIMIT, RATE, RATE_SPAN,
	GROUP_LIMIT, GROUP_RATE, GROUP_RATE_SPAN,
};

const struct column queue_columns[] = {
	[NAME] = { "NAME", 0, "the queue's name" },
	[JOBS] = { "JOBS", COL_NUMBER, "its jobs" },
	[BYTES] = { "BYTES", COL_NUMBER, "what they take of its --max-bytes" },
	[HELD] = { "HELD", COL_NUMBER, "jobs that are worked on" },
	[BURIED] = { "BURIED", COL_NUMBER, "jobs that are buried" },
	[STATE] = { "STATE", 0,
		    "running, paused, draining, paused+draining or loading (after a boot)" },
	[LEASE] = { "LEASE", COL_NUMBER | COL_HIDDEN,
		    "how long a worker has a job" },
	[TRIES] = { "TRIES", COL_NUMBER | COL_HIDDEN,
		    "tries after which a job is buried, 0 for never" },
	[MAX_JOBS] = { "MAX-JOBS", COL_NUMBER | COL_HIDDEN, "jobs it may hold" },
	[MAX_BYTES] = { "MAX-BYTES", COL_NUMBER | COL_HIDDEN,
			"bytes they may have" },
	[BACKOFF] = { "BACKOFF", COL_NUMBER | COL_HIDDEN,
		      "time after the first try that failed" },
	[BACKOFF_MOST] = { "BACKOFF-MOST", COL_NUMBER | COL_HIDDEN,
			   "the most it becomes, doubled with each try" },
	[KEEP_BURIED] = { "KEEP-BURIED", COL_NUMBER | COL_HIDDEN,
			  "how long a buried job is kept, 0 for ever" },
	[KEEP_DONE] = { "KEEP-DONE", COL_NUMBER | COL_HIDDEN,
			"how long done jobs are listed, 0 for not at all" },
	[WAITING] = { "WAITING", COL_NUMBER | COL_HIDDEN, "jobs that wait for their groups" },
	[LIMIT] = { "LIMIT", COL_NUMBER | COL_HIDDEN,
		    "jobs that workers may have at once, 0 for no limit" },
	[RATE] = { "RATE", COL_NUMBER | COL_HIDDEN,
		   "jobs that are handed out in its RATE-SPAN, 0 for no limit" },
	[RATE_SPAN] = { "RATE-SPAN", COL_NUMBER | COL_HIDDEN, "the time for RATE" },
	[GROUP_LIMIT] = { "GROUP-LIMIT", COL_NUMBER | COL_HIDDEN,
			  "as LIMIT, for the jobs of each group" },
	[GROUP_RATE] = { "GROUP-RATE", COL_NUMBER | COL_HIDDEN,
			 "as RATE, for the jobs of each group" },
	[GROUP_RATE_SPAN] = { "GROUP-RATE-SPAN", COL_NUMBER | COL_HIDDEN,
			      "the time for GROUP-RATE" },
	{ }
};

enum {
	QUEUE, FIGURE, VALUE,
};

const struct column figure_columns[] = {
	[QUEUE] = { "QUEUE", 0, "the queue; nothing for the server" },
	[FIGURE] = { "FIGURE", 0, "the name that twjob-protocol(7) gives the figure" },
	[VALUE] = { "VALUE", COL_NUMBER, "its value" },
	{ }
};

static void put_queue(struct out *out, const char *name, const redisReply *stats)
{
	out_row(out);
	out_text(out, NAME, "%s", name);
	out_number(out, JOBS, number_field(stats, "jobs"));
	out_size(out, BYTES, number_field(stats, "bytes"));
	out_number(out, HELD, number_field(stats, "held"));
	out_number(out, BURIED, number_field(stats, "buried"));
	out_text(out, STATE, "%s", queue_state(stats));
	out_span(out, LEASE, number_field(stats, "lease_ms") * NSEC_PER_MSEC);
	out_number(out, TRIES, number_field(stats, "tries"));
	out_number(out, MAX_JOBS, number_field(stats, "max_jobs"));
	out_size(out, MAX_BYTES, number_field(stats, "max_bytes"));
	out_span(out, BACKOFF, number_field(stats, "backoff_ms") * NSEC_PER_MSEC);
	out_span(out, BACKOFF_MOST, number_field(stats, "backoff_most_ms") * NSEC_PER_MSEC);
	out_span(out, KEEP_BURIED, number_field(stats, "keep_buried_ms") * NSEC_PER_MSEC);
	out_span(out, KEEP_DONE, number_field(stats, "keep_done_ms") * NSEC_PER_MSEC);
	out_number(out, WAITING, number_field(stats, "waiting"));
	out_number(out, LIMIT, number_field(stats, "limit"));
	out_number(out, RATE, number_field(stats, "rate"));
	out_span(out, RATE_SPAN, number_field(stats, "rate_ms") * NSEC_PER_MSEC);
	out_number(out, GROUP_LIMIT, number_field(stats, "group_limit"));
	out_number(out, GROUP_RATE, number_field(stats, "group_rate"));
	out_span(out, GROUP_RATE_SPAN, number_field(stats, "group_rate_ms") * NSEC_PER_MSEC);
}

enum status verb_queues(const struct args *args)
{
	struct out *out = out_begin(args, queue_columns, "queues");
	enum status status = STATUS_OK;
	struct request request;
	redisReply *names;
	size_t i;

	server_open(args);
	request_begin(&request, "TW.QUEUES", NULL);
	names = ask(&request);
	if (refused(names, NULL, &status))
		return status;
	for (i = 0; i < names->elements; i++) {
		const char *name = names->element[i]->str;
		redisReply *stats;

		request_begin(&request, "TW.STATS", name);
		stats = ask(&request);
		/* An error means that the queue was dropped since. */
		if (stats->type == REDIS_REPLY_ARRAY)
			put_queue(out, name, stats);
		freeReplyObject(stats);
	}
	freeReplyObject(names);
	out_end(out);
	return STATUS_OK;
}

/* Returns the status. */
static enum status ask_for_ok(struct request *request, const char *queue)
{
	enum status status = STATUS_OK;
	redisReply *reply = ask(request);

	refused(reply, queue, &status);
	freeReplyObject(reply);
	return status;
}

enum status verb_create(const struct args *args)
{
	static const struct {
		int		option;
		const char	*word;
	} numbers[] = {
		{ OPT_MAX_JOBS, "MAXJOBS" },
		{ OPT_MAX_BYTES, "MAXBYTES" },
		{ OPT_LIMIT, "LIMIT" },
		{ OPT_GROUP_LIMIT, "GROUPLIMIT" },
	}, rates[] = {
		{ OPT_RATE, "RATE" },
		{ OPT_GROUP_RATE, "GROUPRATE" },
	}, spans[] = {
		{ OPT_KEEP_BURIED, "KEEPBURIED" },
		{ OPT_KEEP_DONE, "KEEPDONE" },
	};
	struct request request;
	size_t i;

	request_begin(&request, "TW.CREATE", args->arg[0]);
	request_add_settings(&request, args);
	for (i = 0; i < ARRAY_SIZE(spans); i++) {
		if (!args->option[spans[i].option])
			continue;
		request_add(&request, "%s", spans[i].word);
		request_add_span(&request, option_span(args, spans[i].option, 0));
	}
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		if (!args->option[rates[i].option])
			continue;
		request_add(&request, "%s", rates[i].word);
		request_add_rate(&request, args, rates[i].option);
	}
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!args->option[numbers[i].option])
			continue;
		request_add(&request, "%s", numbers[i].word);
		request_add(&request, "%llu", (unsigned long long)
			    option_number(args, numbers[i].option, 0, INT64_MAX,
					  0));
	}
	server_open(args);
	return ask_for_ok(&request, args->arg[0]);
}

/* Says a verb to each queue. The status is the one of the first queue that failed. */
static enum status each_queue(const struct args *args, const char *verb)
{
	enum status status = STATUS_OK, one;
	struct request request;
	int i;

	server_open(args);
	for (i = 0; i < args->count; i++) {
		request_begin(&request, verb, args->arg[i]);
		one = ask_for_ok(&request, args->arg[i]);
		status = status ? status : one;
	}
	return status;
}

enum status verb_drop(const struct args *args)
{
	return each_queue(args, "TW.DROP");
}

enum status verb_pause(const struct args *args)
{
	return each_queue(args, "TW.PAUSE");
}

enum status verb_resume(const struct args *args)
{
	return each_queue(args, "TW.RESUME");
}

enum status verb_drain(const struct args *args)
{
	return each_queue(args, "TW.DRAIN");
}

/* @queue: NULL for the figures of the server. */
static enum status put_figures(struct out *out, const char *queue)
{
	enum status status = STATUS_OK;
	struct request request;
	redisReply *reply;
	size_t i;

	request_begin(&request, "TW.STATS", queue);
	reply = ask(&request);
	refused(reply, queue, &status);
	for (i = 0; i + 1 < reply->elements; i += 2) {
		if (reply->element[i + 1]->type != REDIS_REPLY_INTEGER)
			continue;
		out_row(out);
		if (queue)
			out_text(out, QUEUE, "%s", queue);
		out_text(out, FIGURE, "%s", reply->element[i]->str);
		out_number(out, VALUE, reply->element[i + 1]->integer);
	}
	freeReplyObject(reply);
	return status;
}

enum status verb_stats(const struct args *args)
{
	struct out *out = out_begin(args, figure_columns, "figures");
	enum status status = STATUS_OK, one;
	int i;

	server_open(args);
	if (!args->count)
		status = put_figures(out, NULL);
	for (i = 0; i < args->count; i++) {
		one = put_figures(out, args->arg[i]);
		status = status ? status : one;
	}
	out_end(out);
	return status;
}

enum status verb_metrics(const struct args *args)
{
	struct request request = { };
	enum status status = STATUS_OK;
	redisReply *reply;

	server_open(args);
	request_begin(&request, "TW.METRICS", NULL);
	reply = ask(&request);
	if (!refused(reply, NULL, &status))
		fwrite(reply->str, 1, reply->len, stdout);
	freeReplyObject(reply);
	return status;
}
