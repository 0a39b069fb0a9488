// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups: see group.h. This file knows only groups whose bucket is not full, and groups that have
 * jobs with workers.
 */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "group.h"
#include "job.h"
#include "limit.h"
#include "turn.h"

/* There are at most this many groups. Further groups have no limit. */
#define MAX_GROUPS	65536
#define BUCKETS		4096
/* Groups that are not needed any more are looked for at most once in this many ns. */
#define SWEEP		NSEC_PER_SEC
/* This many waiting jobs are looked at in one step. */
#define SLICE		100

/*
 * @full: see limit_bucket(). @freed is the number of @places that are free and that no waiting
 * job has got yet.
 */
struct group {
	LIST_ENTRY(group) next;
	LIST_ENTRY(group) opening;	/* in @opening while @freed is not 0 */
	struct queue *queue;
	uint64_t full, places, freed;
	uint8_t length;
	char name[];
};

/* A job has a place in its group. */
struct place {
	LIST_ENTRY(place) next;
	int64_t job;
	struct group *group;
};

static struct {
	LIST_HEAD(, group) buckets[BUCKETS], opening;
	LIST_HEAD(, place) places[BUCKETS];
	size_t count;
	uint64_t swept;
	sd_event_source *opener;
} groups;

static size_t bucket_of(const struct options *options)
{
	uint64_t hash;

	crypto_shorthash_siphash24((unsigned char *)&hash,
				   (const unsigned char *)options->group,
				   options->group_length, store_secret);
	return hash % BUCKETS;
}

/* Returns NULL if the group is not known. */
static struct group *find(const struct queue *queue, const struct options *options)
{
	struct group *group;

	LIST_FOREACH(group, &groups.buckets[bucket_of(options)], next)
		if (group->queue == queue && group->length == options->group_length &&
		    !memcmp(group->name, options->group, group->length))
			break;
	return group;
}

static struct place *find_place(int64_t job)
{
	struct place *place;

	LIST_FOREACH(place, &groups.places[job % BUCKETS], next)
		if (place->job == job)
			break;
	return place;
}

static void forget_places(const struct queue *queue)
{
	struct place *place, *next;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (place = LIST_FIRST(&groups.places[i]); place; place = next) {
			next = LIST_NEXT(place, next);
			if (place->group->queue != queue)
				continue;
			LIST_REMOVE(place, next);
			free(place);
		}
	}
}

static bool is_needed(const struct group *group, uint64_t now)
{
	return group->full > now || group->places || group->freed;
}

/* Forgets the groups of a queue or, if @queue is NULL, the groups that are not needed any more. */
static void forget(const struct queue *queue)
{
	uint64_t now = limit_now();
	struct group *group, *next;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (group = LIST_FIRST(&groups.buckets[i]); group; group = next) {
			next = LIST_NEXT(group, next);
			if (queue ? group->queue != queue : is_needed(group, now))
				continue;
			if (group->freed)
				LIST_REMOVE(group, opening);
			LIST_REMOVE(group, next);
			free(group);
			groups.count--;
		}
	}
}

void group_forget(struct queue *queue)
{
	if (groups.count) {
		forget_places(queue);
		forget(queue);
	}
	queue->groups = (struct groups) { .looks = queue->row.waiting };
}

/* Returns NULL if there are too many groups. */
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

/* Gives the job, which is with a worker, a place in its group. */
static void take_place(struct queue *queue, int64_t job, const struct options *options)
{
	struct place *place = find_place(job);
	struct group *group = place ? NULL : find_or_make(queue, options);

	if (!group)
		return;
	place = calloc(1, sizeof(*place));
	if (!place)
		die(ENOMEM, "a group");
	*place = (struct place) { .job = job, .group = group };
	LIST_INSERT_HEAD(&groups.places[job % BUCKETS], place, next);
	group->places++;
}

static void learn_one(struct queue *queue, const struct timewheel_token *token, void *unused)
{
	struct options options;

	if (token->state == TIMEWHEEL_STATE_HELD &&
	    !store->get_options(token->cookie, &options) && options.group_length)
		take_place(queue, token->cookie, &options);
}

void group_learn(struct queue *queue)
{
	if (queue->row.group_limit && !queue->groups.knows)
		queue_each_token(queue, learn_one, NULL);
	queue->groups.knows = true;
}

/* Ends the job's wait: the job is due as it was before. */
static int open_job(struct queue *queue, int64_t id)
{
	struct timewheel_token token;
	struct job job;
	int result = job_find(queue, id, true, &job, &token);

	return result ?: job_end_wait(queue, &job) ?:
	       job_change(queue, &job, &token, 0, CHANGE_TO_NEW);
}

/* Opens the first @count waiting jobs of the group, or all of them if there are fewer. */
static int open_first(const struct group *group, uint64_t count)
{
	struct bytes name = { group->name, group->length };
	struct options options;
	int64_t id;
	int result = 0;

	while (!result && count--) {
		result = store->first_waiting(group->queue->row.id, name, &options, &id);
		if (!result && (options.group_length != name.length ||
				memcmp(options.group, name.data, name.length)))
			result = -ENOENT;
		if (!result)
			result = open_job(group->queue, id);
	}
	return result;
}

static int on_freed(sd_event_source *source, void *unused)
{
	struct group *group;

	while ((group = LIST_FIRST(&groups.opening))) {
		struct queue *queue = group->queue;
		uint64_t freed = group->freed;
		int result;

		LIST_REMOVE(group, opening);
		group->freed = 0;
		result = open_first(group, freed);
		if ((result && result != -ENOENT) || turn_end())
			queue->groups.looks = true;
	}
	return 0;
}

void group_release(int64_t job)
{
	struct place *place = groups.count ? find_place(job) : NULL;
	struct group *group;

	if (!place)
		return;
	group = place->group;
	group->places--;
	LIST_REMOVE(place, next);
	free(place);
	if (!group->queue->row.waiting)
		return;
	if (!group->freed++)
		LIST_INSERT_HEAD(&groups.opening, group, opening);
	if (!groups.opener)
		must(sd_event_add_defer(event, &groups.opener, on_freed, NULL));
	must(sd_event_source_set_enabled(groups.opener, SD_EVENT_ONESHOT));
}

/* Opens the next waiting job, or leaves the job to wait. @from is at the job's group, or behind. */
static int look_at_next(struct queue *queue)
{
	struct groups *at = &queue->groups;
	struct bytes from = { at->from, at->length };
	const struct group *group;
	struct options options;
	int64_t id;
	int result = store->first_waiting(queue->row.id, from, &options, &id);

	if (result)
		return result;
	if (options.group_length != at->length ||
	    memcmp(options.group, at->from, at->length)) {
		at->opened = 0;
		at->length = options.group_length;
		memcpy(at->from, options.group, at->length);
	}
	group = find(queue, &options);
	if (!queue->row.group_limit ||
	    (group ? group->places : 0) + at->opened < queue->row.group_limit) {
		at->opened++;
		return open_job(queue, id);
	}
	/* A zero byte at the end makes the next name in the order. */
	at->from[at->length++] = '\0';
	at->opened = 0;
	return 0;
}

bool group_open_some(struct queue *queue)
{
	int result = 0;

	group_learn(queue);
	for (int i = 0; !result && i < SLICE; i++)
		result = look_at_next(queue);
	if (turn_end())
		return false;
	if (result == -ENOENT)
		queue->groups = (struct groups) { .knows = true };
	return !result;
}

/* A new token begins its count of deliveries again, so the store has to keep the count. */
static int keep_count(struct job *job, const struct timewheel_event *event)
{
	if (job->attempts || event->delivery < 2)
		return 0;
	job->attempts = 1;
	return turn_begin() ?: turn_result(store->change(job, SAME_BODY));
}

/* Lets the job wait. Its token is parked. */
static int wait_for_place(struct queue *queue, struct job *job, const struct options *options,
			  const struct timewheel_event *event)
{
	const struct timewheel_token token = { .id = event->id, .handle = event->handle };
	int result;

	if (!job->attempts && event->delivery > 1)
		job->attempts = 1;
	result = job_wait(queue, job, options);
	if (result)
		return result;
	turn_changed(queue, job, &token, event->delivery, CHANGE_TO_NEW);
	return -EAGAIN;
}

static bool has_place(struct queue *queue, const struct job *job,
		      const struct options *options)
{
	const struct group *group = find(queue, options);

	return !group || group->places < queue->row.group_limit || find_place(job->id);
}

int group_check(struct queue *queue, struct job *job, const struct options *options,
		const struct timewheel_event *event)
{
	const struct rate *rate = &queue->row.group_rate;
	struct group *group;
	uint64_t next;
	int result;

	if (queue->row.group_limit && !has_place(queue, job, options))
		return wait_for_place(queue, job, options, event);
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

	if (queue->row.group_limit)
		take_place(queue, job->id, options);
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
