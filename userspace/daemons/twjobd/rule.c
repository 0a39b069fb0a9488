// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules by which jobs come again: see rule.h.
 */
#include <errno.h>
#include <string.h>

#include "job.h"
#include "resp.h"
#include "rule.h"
#include "turn.h"

static int64_t now_seconds(void)
{
	return now_ms() / MSEC_PER_SEC;
}

static struct calendar *open_calendar(const struct rule *rule, char why[CALENDAR_WHY])
{
	return calendar_open(rule->text, rule->zone, rule->start, why);
}

uint64_t rule_size(const struct rule *rule)
{
	return strlen(rule->text) + strlen(rule->zone);
}

bool rule_begin(struct rule *rule, char why[CALENDAR_WHY])
{
	struct calendar *calendar;
	bool found;

	rule->start = now_seconds();
	calendar = open_calendar(rule, why);
	if (!calendar)
		return false;
	strcpy(rule->zone, calendar_zone(calendar));
	found = calendar_first(calendar, rule->start, &rule->at);
	if (!found)
		strcpy(why, "no time would come by it any more");
	calendar_close(calendar);
	return found;
}

/* Reads the rule of a job, and opens its calendar. Returns NULL and sets @error if this fails. */
static struct calendar *read_rule(const struct job *job, struct rule *rule, int *error)
{
	struct calendar *calendar = NULL;
	char why[CALENDAR_WHY];

	*error = store->get_rule(job->id, rule);
	if (!*error)
		calendar = open_calendar(rule, why);
	if (!*error && !calendar) {
		say("the rule \"%.100s\" of the job %lld: %s", rule->text,
		    (long long)job->id, why);
		*error = -EIO;
	}
	return calendar;
}

/* Saves that the job is the occurrence @rule->at. */
static int save_occurrence(struct job *job, const struct rule *rule, uint64_t attempts)
{
	job->due = rule->at.utc * MSEC_PER_SEC;
	job->attempts = attempts;
	job->buried = false;
	job->held_until = 0;
	return turn_begin() ?: turn_result(store->save_rule(job->id, rule)) ?:
	       turn_result(store->change(job, SAME_BODY));
}

/* Makes the job the occurrence @rule->at, which is pending. */
static int become(struct queue *queue, struct job *job, const struct rule *rule,
		  const struct timewheel_token *token, uint32_t delivery)
{
	int result = save_occurrence(job, rule, 0);

	if (!result)
		turn_changed(queue, job, token, delivery, CHANGE_TO_NEW);
	return result;
}

/*
 * Makes the job the occurrence @rule->at, which a worker gets. In a shared store the row says
 * that a worker has the job.
 */
static int hand_out(struct queue *queue, struct job *job, const struct rule *rule)
{
	struct options settings;
	int result = job_settings(queue, job, &settings) ?:
		     save_occurrence(job, rule, store->shared);

	if (!result && store->shared)
		result = turn_result(store->extend(job->id, settings.lease));
	return result;
}

/* Makes the key of an occurrence: the rule's key, "@", and the occurrence's name. */
static void add_name(struct job *job, const struct rule *rule)
{
	char name[CALENDAR_NAME];

	calendar_name(&rule->at, name);
	job->key[job->key_length++] = '@';
	memcpy(job->key + job->key_length, name, strlen(name));
	job->key_length += strlen(name);
}

static void copy_body(void *buffer, struct bytes body)
{
	buffer_add(buffer, body.data, body.length);
}

/* Adds a job of its own for the job's present occurrence. */
static int split_off(struct queue *queue, const struct job *job, const struct rule *rule)
{
	struct buffer body = { };
	struct job other = *job;
	int result;

	other.rule = false;
	other.version = 0;
	other.held_until = 0;
	other.foreign = false;
	add_name(&other, rule);
	other.size += other.key_length - job->key_length - rule_size(rule);
	if (store->is_full() || queue->row.jobs >= queue->row.max_jobs ||
	    queue->row.bytes + other.size > queue->row.max_bytes)
		return -ENOSPC;
	result = store->body(job->id, copy_body, &body);
	if (!result)
		result = turn_add(queue, &other, (struct bytes) { body.data, body.length });
	buffer_free(&body);
	if (!result)
		result = job_copy_more(job, &other);
	/* In a shared store another job may have this occurrence's key, or may be getting it. */
	return result == -EEXIST || result == -EALREADY ? -ENOSPC : result;
}

/*
 * An occurrence is missed if the next one is already due. If the rule says this about missed
 * occurrences, @rule goes on to a later occurrence. Returns whether @rule has gone on.
 */
static bool skip_missed(struct calendar *calendar, struct rule *rule)
{
	struct occurrence last = rule->at, next;

	if (rule->missed == MISSED_ALL)
		return false;
	calendar_last(calendar, now_seconds(), &last);
	if (last.local == rule->at.local && last.again == rule->at.again)
		return false;
	rule->at = last;
	if (rule->missed == MISSED_NONE && calendar_first(calendar, now_seconds(), &next))
		rule->at = next;
	return true;
}

/*
 * Makes the occurrence a job of its own, and lets the rule go on while a worker has that job.
 * Returns -EAGAIN after this, and 0 if there is no room for another job, or no next occurrence.
 */
static int split_and_go_on(struct queue *queue, struct job *job,
			   struct calendar *calendar, const struct rule *rule,
			   const struct timewheel_token *token, uint32_t delivery)
{
	struct job other = *job;
	struct rule next = *rule;
	int result;

	if (!calendar_next(calendar, &next.at))
		return 0;
	/*
	 * A shared store's row has counted this delivery, which will be a delivery of the other
	 * job.
	 */
	other.attempts -= store->shared;
	result = split_off(queue, &other, rule);
	if (result == -ENOSPC)
		return 0;
	return result ?: become(queue, job, &next, token, delivery) ?: -EAGAIN;
}

int rule_take(struct queue *queue, struct job *job, const struct timewheel_token *token,
	      uint32_t delivery, bool first)
{
	struct rule rule;
	int result;
	struct calendar *calendar = read_rule(job, &rule, &result);

	if (!calendar)
		return result;
	if (first && skip_missed(calendar, &rule)) {
		if (rule.at.utc > now_seconds())
			result = become(queue, job, &rule, token, delivery) ?: -EAGAIN;
		else
			result = hand_out(queue, job, &rule);
	}
	if (!result && rule.overlap)
		result = split_and_go_on(queue, job, calendar, &rule, token, delivery);
	calendar_close(calendar);
	if (!result)
		add_name(job, &rule);
	return result;
}

int rule_end(struct queue *queue, struct job *job, const struct timewheel_token *token,
	     uint32_t delivery)
{
	struct rule rule, next;
	int result;
	struct calendar *calendar = read_rule(job, &rule, &result);
	bool found;

	if (!calendar)
		return result;
	next = rule;
	found = calendar_next(calendar, &next.at);
	calendar_close(calendar);
	if (!found)
		return -ENOENT;
	if (job->buried)
		result = split_off(queue, job, &rule);
	return result ?: become(queue, job, &next, token, delivery);
}

/*
 * Tells whether the time zone's file now gives the occurrence another time, which @rule gets. An
 * occurrence that has been moved, or is tried again, stays as it is.
 */
static bool is_elsewhere(const struct job *job, struct rule *rule)
{
	int64_t utc;

	if (job->foreign || job->attempts || job->buried || job->waiting ||
	    store->get_rule(job->id, rule))
		return false;
	utc = rule->at.utc;
	calendar_update(rule->zone, &rule->at);
	return rule->at.utc != utc && job->due == utc * MSEC_PER_SEC;
}

void rule_compare(struct queue *queue, struct job *job, const struct timewheel_token *token)
{
	struct rule rule;

	if (!is_elsewhere(job, &rule))
		return;
	/* Another user of the store may have changed the job meanwhile. */
	if (!turn_begin() && !store->get(job->id, true, job) && is_elsewhere(job, &rule))
		become(queue, job, &rule, token, 0);
	turn_end();
}
