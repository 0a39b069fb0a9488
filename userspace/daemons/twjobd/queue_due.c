// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a queue's wheel counts, and what is due in it: see queue.h. The wheel has no
 * count of the latter, so all tokens are looked at, in slices between which commands are
 * carried out.
 */
#include "queue.h"

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
 * What has been pending for longest comes first, and a source of this kind is pending as long
 * as it exists: so each slice gets a new one, or commands would have to wait for the last one.
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
	/* During the first survey: what it has found so far. */
	return queue->survey && !queue->counted.count ? queue->counting :
							queue->counted;
}

bool queue_counts(struct queue *queue, struct timewheel_info *info)
{
	*info = (struct timewheel_info) { .size = sizeof(*info) };
	return queue->plain && !tw_wheel_info(queue->plain, info);
}
