// SPDX-License-Identifier: GPL-2.0-only
/*
 * News: the line for a user that has fallen silent, and the line for a user that has
 * come. Standard output and the subscribers get the same lines; this file knows
 * neither of them.
 */
#include <inttypes.h>
#include <stdio.h>

#include "twidled.h"

size_t news_format(const struct timewheel_event *news, char *line)
{
	switch (news->missed) {
	case NEWS_OFFLINE:
		return sprintf(line, "offline %" PRIu64 " %" PRIu64 ".%09" PRIu64
			       "\n", (uint64_t)news->id,
			       (uint64_t)(news->deadline / NSEC_PER_SEC),
			       (uint64_t)(news->deadline % NSEC_PER_SEC));
	case NEWS_ONLINE:
		return sprintf(line, "online %" PRIu64 "\n", (uint64_t)news->id);
	default:
		return 0;
	}
}
