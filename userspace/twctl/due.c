// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tokens that are due and that no reader has taken. A wheel has no count of such tokens. All
 * its tokens are looked at, if one may be due.
 */
#include "twctl.h"

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
