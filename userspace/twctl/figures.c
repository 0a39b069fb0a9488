// SPDX-License-Identifier: GPL-2.0-only
/*
 * A wheel's counters, the lateness of its events and its due tokens, for stats, for Prometheus
 * and for top. This file knows nothing of their tables.
 */
#include "twctl.h"

/*
 * Reads a wheel's figures. If the user did not name the wheel, it may be gone, or
 * the user may have no permission: then there is no message, and @slots is 0.
 */
enum status stats_take(struct stats *stats, const char *name, bool asked)
{
	struct tw_wheel *wheel = tw_wheel_open_named(name, O_RDONLY);
	bool done;

	*stats = (struct stats) { .info.size = sizeof(stats->info) };
	if (!wheel && errno == ENODEV)
		errno = ENOENT;
	done = wheel && !tw_wheel_info(wheel, &stats->info) &&
	       !tw_wheel_stats(wheel, stats->lateness);
	tw_wheel_close(wheel);
	if (done)
		return STATUS_OK;
	stats->info.slots = 0;
	return asked ? wheel_trouble(name) : STATUS_OK;
}

/* The last bucket has no upper end, and the longest time that can be told stands for it. */
void put_percentile(struct out *out, int column, const uint64_t *buckets,
		    double percent)
{
	uint64_t value;

	if (!tw_histogram_percentile(buckets, percent, &value))
		out_span(out, column, value < TIME_MAX_NS ? value : TIME_MAX_NS);
}

/*
 * This part counts tokens that are due and that no reader has taken. A wheel has no count of
 * such tokens. All its tokens are looked at, if one may be due.
 */

static void count_token(struct due *due, uint64_t now,
			const struct timewheel_token *token)
{
	uint64_t age = now - token_time(token);

	/* A token whose lease is over is due again. */
	if (token->state != TIMEWHEEL_STATE_PENDING &&
	    token->state != TIMEWHEEL_STATE_HELD)
		return;
	due->tokens++;
	if (age > due->oldest)
		due->oldest = age;
}

/* @info was read a moment ago. A wheel that has been destroyed since then has nothing due. */
struct due due_count(const char *name, const struct timewheel_info *info)
{
	const struct timewheel_token *token;
	struct tw_cursor *cursor = NULL;
	struct tw_wheel *wheel;
	struct due due = { };

	if (info->next > info->now)
		return due;
	wheel = tw_wheel_open_named(name, O_RDONLY);
	if (wheel)
		cursor = tw_cursor_open(wheel, 0, info->now);
	while (cursor && tw_cursor_next(cursor, &token) > 0)
		count_token(&due, info->now, token);
	tw_cursor_close(cursor);
	tw_wheel_close(wheel);
	return due;
}
