// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups: see group.h. Only those are known here whose bucket is not full.
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "group.h"
#include "limit.h"
#include "turn.h"

/* With so many groups further ones have no limit. */
#define MAX_GROUPS	65536
#define BUCKETS		4096
/* Groups that are not needed any more are looked for so often, ns. */
#define SWEEP		NSEC_PER_SEC

/* @full: see limit_bucket(). */
struct group {
	LIST_ENTRY(group) next;
	struct queue *queue;
	uint64_t full;
	uint8_t length;
	char name[];
};

static struct {
	LIST_HEAD(, group) buckets[BUCKETS];
	size_t count;
	uint64_t swept;
} groups;

static size_t bucket_of(const struct options *options)
{
	uint64_t hash;

	crypto_shorthash_siphash24((unsigned char *)&hash,
				   (const unsigned char *)options->group,
				   options->group_length, store_secret);
	return hash % BUCKETS;
}

/* NULL: it is not known. */
static struct group *find(const struct queue *queue, const struct options *options)
{
	struct group *group;

	LIST_FOREACH(group, &groups.buckets[bucket_of(options)], next)
		if (group->queue == queue && group->length == options->group_length &&
		    !memcmp(group->name, options->group, group->length))
			break;
	return group;
}

/* Forgets groups: those of a queue, or with NULL those that are not needed any more. */
static void forget(const struct queue *queue)
{
	uint64_t now = limit_now();
	struct group *group, *next;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (group = LIST_FIRST(&groups.buckets[i]); group; group = next) {
			next = LIST_NEXT(group, next);
			if (queue ? group->queue != queue : group->full > now)
				continue;
			LIST_REMOVE(group, next);
			free(group);
			groups.count--;
		}
	}
}

void group_forget(struct queue *queue)
{
	if (groups.count)
		forget(queue);
}

/* NULL: there are too many. */
static struct group *find_or_make(struct queue *queue, const struct options *options)
{
	struct group *group = find(queue, options);
	uint64_t now = limit_now();

	if (group)
		return group;
	if (groups.count >= MAX_GROUPS && groups.swept + SWEEP < now) {
		forget(NULL);
		groups.swept = now;
	}
	if (groups.count >= MAX_GROUPS)
		return NULL;
	group = calloc(1, sizeof(*group) + options->group_length);
	if (!group)
		die(ENOMEM, "a group");
	group->queue = queue;
	group->length = options->group_length;
	memcpy(group->name, options->group, group->length);
	LIST_INSERT_HEAD(&groups.buckets[bucket_of(options)], group, next);
	groups.count++;
	return group;
}

/* A new token counts no delivery, so the store has to. */
static int keep_count(struct job *job, const struct timewheel_event *event)
{
	if (job->attempts || event->delivery < 2)
		return 0;
	job->attempts = 1;
	return turn_begin() ?: turn_result(store->change(job, SAME_BODY));
}

int group_check(struct queue *queue, struct job *job, const struct options *options,
		const struct timewheel_event *event)
{
	const struct rate *rate = &queue->row.group_rate;
	uint64_t next;
	struct group *group;
	int result;

	if (!rate->jobs || queue_is_granted(event, job))
		return 0;
	group = find(queue, options);
	if (!group || limit_bucket(rate, &group->full, limit_now(), &next))
		return 0;
	result = keep_count(job, event);
	if (result)
		return result;
	group->full += limit_interval(rate);
	queue_grant(queue, event, next / NSEC_PER_MSEC + 1);
	return -EAGAIN;
}

void group_count(struct queue *queue, const struct job *job, const struct options *options,
		 const struct timewheel_event *event)
{
	const struct rate *rate = &queue->row.group_rate;
	struct group *group;
	uint64_t next;

	if (!rate->jobs || queue_is_granted(event, job))
		return;
	group = find_or_make(queue, options);
	if (!group)
		return;
	limit_bucket(rate, &group->full, limit_now(), &next);
	group->full += limit_interval(rate);
}

bool group_may_wait(struct queue *queue, const struct options *options, uint64_t deadline)
{
	const struct group *group = find(queue, options);

	return group && deadline <= group->full;
}
