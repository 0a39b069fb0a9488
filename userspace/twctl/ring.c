// SPDX-License-Identifier: GPL-2.0-only
/* Finds what is in a wheel's slots, by listing its tokens. */
#include "twctl.h"

static void count_token(struct ring *ring, const struct timewheel_info *info,
			const struct timewheel_token *token)
{
	const size_t last = ARRAY_SIZE(ring->laps) - 1;
	struct slot *slot = &ring->slots[token->slot];
	uint64_t due = token_time(token);

	ring->tokens++;
	if (due <= info->now)
		ring->due++;
	ring->laps[token->cycle < last ? token->cycle : last]++;
	if (!token->cycle)
		slot->lap++;
	if (!slot->tokens++ || due < slot->earliest)
		slot->earliest = due;
}

/* Returns -1 and errno when the wheel does not answer. */
int ring_count(struct ring *ring, const struct wheel *wheel)
{
	const struct timewheel_token *token;
	struct tw_cursor *cursor;
	int more;

	*ring = (struct ring) { };
	ring->slots = calloc(wheel->info.slots, sizeof(*ring->slots));
	cursor = tw_cursor_open(wheel->wheel, 0, TIMEWHEEL_NEVER);
	if (!ring->slots || !cursor)
		die(STATUS_FAILED, "no memory for the slots");
	while ((more = tw_cursor_next(cursor, &token)) > 0)
		count_token(ring, &wheel->info, token);
	tw_cursor_close(cursor);
	return more;
}

void ring_free(struct ring *ring)
{
	free(ring->slots);
}
