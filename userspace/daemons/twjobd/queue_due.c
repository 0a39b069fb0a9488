// SPDX-License-Identifier: GPL-2.0-only
/*
 * This file counts the tokens of a queue's wheel and the jobs that are due in it, and tells when
 * a queue at its limit is looked at again: see queue.h. The wheel has no count of due tokens, so
 * all tokens are looked at, in slices between which commands are carried out.
 */
#include "queue.h"

void (*queue_opened)(struct queue *queue);

void queue_end_survey(struct queue *queue)
{
	tw_cursor_close(queue->survey);
	queue->survey = NULL;
	queue->surveys = sd_event_source_disable_unref(queue->surveys);
}

/* Counts a slice of the tokens. */
static void survey(struct queue *queue, uint64_t now)
{
	const struct timewheel_token *token;
	int left = SURVEY;

	while (left && tw_cursor_next(queue->survey, &token) > 0) {
		left--;
		if (token->state != TIMEWHEEL_STATE_PENDING || token->deadline > now)
			continue;
		queue->counting.count++;
		if (token->deadline < queue->counting.oldest)
			queue->counting.oldest = token->deadline;
	}
	if (left) {
		queue->counted = queue->counting;
		queue_end_survey(queue);
	}
}

/*
 * sd-event first runs the source that has been pending for longest, and a source of this kind is
 * pending as long as it exists. So each slice gets a new source. Otherwise commands would have to
 * wait for the last slice.
 */
static int on_survey(sd_event_source *source, void *data)
{
	struct queue *queue = data;

	survey(queue, queue_deadline(now_ms()));
	if (!queue->survey)
		return 0;
	sd_event_source_disable_unref(queue->surveys);
	must(sd_event_add_defer(event, &queue->surveys, on_survey, queue));
	return 0;
}

static void begin_survey(struct queue *queue)
{
	uint64_t now = queue_deadline(now_ms());

	queue->survey = tw_cursor_open(queue->plain, 0, TIMEWHEEL_NEVER);
	if (!queue->survey)
		return;
	queue->counting = (struct due) { 0, now };
	survey(queue, now);
	if (!queue->survey)
		return;
	must(sd_event_add_defer(event, &queue->surveys, on_survey, queue));
}

struct due queue_due(struct queue *queue, const struct timewheel_info *info)
{
	if (info->next > info->now) {
		queue_end_survey(queue);
		queue->counted.count = 0;
	} else if (!queue->survey) {
		begin_survey(queue);
	}
	/* During the first survey the answer is what the survey has counted up to now. */
	return queue->survey && !queue->counted.count ? queue->counting :
							queue->counted;
}

bool queue_counts(struct queue *queue, struct timewheel_info *info)
{
	*info = (struct timewheel_info) { .size = sizeof(*info) };
	return queue->plain && !tw_wheel_info(queue->plain, info);
}

static int on_open(sd_event_source *source, uint64_t time, void *data)
{
	struct queue *queue = data;

	queue->limits.shut = false;
	queue_opened(queue);
	return 0;
}

void queue_shut(struct queue *queue, uint64_t at)
{
	struct limits *limits = &queue->limits;
	uint64_t us = at < UINT64_MAX ? at / 1000 + 1 : UINT64_MAX;

	if (!limits->timer)
		must(sd_event_add_time(event, &limits->timer, CLOCK_REALTIME, us, 1, on_open,
				       queue));
	must(sd_event_source_set_time(limits->timer, us));
	must(sd_event_source_set_enabled(limits->timer, SD_EVENT_ONESHOT));
	limits->shut = true;
}

void queue_reopen(struct queue *queue)
{
	if (queue->limits.shut)
		queue_shut(queue, 0);
}

void queue_forget_leases(struct queue *queue)
{
	queue->limits.knows = false;
	buffer_free(&queue->limits.out);
	queue_reopen(queue);
}
