// SPDX-License-Identifier: GPL-2.0-only
/* Finds out what all queues do at present: see overview.h. */
#include <math.h>

#include "overview.h"

#define LATENESS	"\ntwjobd_lateness_seconds_"
/* An earlier look counts only if it was so long ago. */
#define SINCE		NSEC_PER_SEC

/* The figures of an earlier look. */
struct past {
	char		*name;
	long long	delivered;
	uint64_t	when;
	struct past	*next;
};

static struct past *pasts;

const char *queue_state(const redisReply *stats)
{
	bool draining = number_field(stats, "draining");

	if (number_field(stats, "loading"))
		return "loading";
	if (number_field(stats, "paused"))
		return draining ? "paused+draining" : "paused";
	return draining ? "draining" : "running";
}

static void *must_have(void *memory)
{
	if (!memory)
		die(STATUS_FAILED, "no memory for what the queues do");
	return memory;
}

static struct past *past_of(const char *name)
{
	struct past *past;

	for (past = pasts; past; past = past->next) {
		if (!strcmp(past->name, name))
			return past;
	}
	past = must_have(calloc(1, sizeof(*past)));
	past->name = must_have(strdup(name));
	past->next = pasts;
	pasts = past;
	return past;
}

/* A new wheel counts deliveries from 0, and there is no rate then. */
static double rate_of(const struct overview_queue *queue)
{
	struct past *past = past_of(queue->name);
	long long delivered = number_field(queue->stats, "delivered");
	uint64_t now = end_after(0), span = now - past->when;
	double rate = -1;

	if (past->when && span >= SINCE / 10 && delivered >= past->delivered)
		rate = (double)(delivered - past->delivered) * NSEC_PER_SEC / span;
	if (!past->when || span >= SINCE || delivered < past->delivered) {
		past->delivered = delivered;
		past->when = now;
	}
	return rate;
}

/*
 * Finds the line of this metric and queue behind @text. @label: where the rest of the line
 * begins.
 */
static const char *line_of(const char *text, const char *metric, const char *name,
			   const char **label)
{
	char *begin;
	int length = asprintf(&begin, LATENESS "%s{queue=\"%s\",", metric, name);
	const char *at;

	must_have(length < 0 ? NULL : begin);
	at = strstr(text, begin);
	free(begin);
	*label = at ? at + length : NULL;
	return at;
}

/* Returns the histogram's bound below which this part of the jobs is, or its greatest bound. */
static double quantile(const char *metrics, const char *name, double part)
{
	const char *at = metrics, *label, *value;
	double count = 0, bound = -1;

	at = line_of(metrics, "count", name, &label);
	value = at ? strchr(label, ' ') : NULL;
	count = value ? strtod(value, NULL) : 0;
	if (count <= 0)
		return -1;
	for (at = metrics; (at = line_of(at, "bucket", name, &label)); at++) {
		if (strncmp(label, "le=\"", 4) || isinf(strtod(label + 4, NULL)))
			break;
		bound = strtod(label + 4, NULL);
		value = strchr(label, ' ');
		if (value && strtod(value, NULL) >= part * count)
			break;
	}
	return bound;
}

static redisReply *ask_about(redisReply *(*ask)(struct request *request), const char *verb,
			     const char *queue)
{
	struct request request;

	request_begin(&request, verb, queue);
	return ask(&request);
}

/* A queue that was dropped since its name was told is left out. */
static bool add_queue(struct overview *overview, redisReply *(*ask)(struct request *request),
		      const redisReply *name, const char *metrics)
{
	struct overview_queue *queue = &overview->queues[overview->count];

	if (!name->str)
		return true;
	queue->stats = ask_about(ask, "TW.STATS", name->str);
	if (!queue->stats)
		return false;
	if (queue->stats->type != REDIS_REPLY_ARRAY) {
		freeReplyObject(queue->stats);
		return true;
	}
	overview->count++;
	queue->name = must_have(strdup(name->str));
	queue->rate = rate_of(queue);
	queue->half = quantile(metrics, name->str, 0.5);
	queue->most = quantile(metrics, name->str, 0.99);
	return true;
}

static bool add_queues(struct overview *overview, redisReply *(*ask)(struct request *request),
		       const redisReply *names)
{
	redisReply *metrics = ask_about(ask, "TW.METRICS", NULL);
	bool answered = metrics;
	size_t i;

	overview->queues = must_have(calloc(names->elements + 1, sizeof(*overview->queues)));
	for (i = 0; answered && i < names->elements; i++)
		answered = add_queue(overview, ask, names->element[i],
				     metrics->str ? metrics->str : "");
	if (metrics)
		freeReplyObject(metrics);
	return answered;
}

static int by_name(const void *one, const void *other)
{
	const struct overview_queue *a = one, *b = other;

	return strcmp(a->name, b->name);
}

redisReply *overview_get(struct overview *overview, redisReply *(*ask)(struct request *request),
			 bool *lost)
{
	redisReply *names;

	*overview = (struct overview) { };
	overview->daemon = ask_about(ask, "TW.STATS", NULL);
	names = overview->daemon ? ask_about(ask, "TW.QUEUES", NULL) : NULL;
	*lost = !names;
	if (names && names->type == REDIS_REPLY_ERROR)
		return names;
	if (names) {
		*lost = !add_queues(overview, ask, names);
		qsort(overview->queues, overview->count, sizeof(*overview->queues), by_name);
		freeReplyObject(names);
	}
	return NULL;
}

void overview_free(struct overview *overview)
{
	size_t i;

	for (i = 0; i < overview->count; i++) {
		freeReplyObject(overview->queues[i].stats);
		free(overview->queues[i].name);
	}
	free(overview->queues);
	if (overview->daemon)
		freeReplyObject(overview->daemon);
	*overview = (struct overview) { };
}
