// SPDX-License-Identifier: LGPL-2.1-or-later
/* Cursors: a wheel's tokens are fetched by the hundred, and handed out one by one. */
#include "internal.h"

#define TOKENS	128

/**
 * struct tw_cursor - a walk
 * @wheel: the wheel
 * @list: how far the kernel has come, and how many it gave the last time
 * @next: index of the token to hand out next
 * @tokens: what the kernel gave the last time
 */
struct tw_cursor {
	const struct tw_wheel	*wheel;
	struct timewheel_list	list;
	uint32_t		next;
	struct timewheel_token	tokens[TOKENS];
};

struct tw_cursor *tw_cursor_open(const struct tw_wheel *wheel, uint64_t from,
				 uint64_t to)
{
	struct tw_cursor *cursor = malloc(sizeof(*cursor));

	if (!cursor)
		return NULL;
	cursor->wheel = wheel;
	cursor->next = 0;
	cursor->list = (struct timewheel_list) {
		.size = sizeof(cursor->list),
		.from = from,
		.to = to,
		.tokens = (uintptr_t)cursor->tokens,
		.count = TOKENS,
		.token_size = sizeof(cursor->tokens[0]),
	};
	return cursor;
}

void tw_cursor_close(struct tw_cursor *cursor)
{
	free(cursor);
}

/* Fetches more tokens. Returns 1, 0 when all have been listed, or -1 and errno. */
static int fetch(struct tw_cursor *cursor)
{
	if (cursor->list.cursor == TIMEWHEEL_NEVER)
		return 0;
	cursor->next = 0;
	cursor->list.listed = 0;
	if (tw_wheel_ioctl(cursor->wheel, TIMEWHEEL_IOC_LIST, &cursor->list) < 0)
		return -1;
	return 1;
}

int tw_cursor_next(struct tw_cursor *cursor,
		   const struct timewheel_token **token)
{
	/* The kernel may give no token and yet have more to come. */
	while (cursor->next == cursor->list.listed) {
		int ret = fetch(cursor);

		if (ret <= 0)
			return ret;
	}
	*token = &cursor->tokens[cursor->next++];
	return 1;
}
