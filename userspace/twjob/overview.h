/* SPDX-License-Identifier: GPL-2.0-only */
/* All that the queues do at present, as 'twjob top' and 'twjob web' show it. */
#ifndef TWJOB_OVERVIEW_H
#define TWJOB_OVERVIEW_H

#include "twjob.h"

/*
 * A queue. @stats: the answer of TW.STATS. @rate: deliveries in a second since an earlier
 * look. @half, @most: half of the jobs, and all but one in a hundred, were not later than so
 * many seconds. A value less than 0 is not known.
 */
struct overview_queue {
	char		*name;
	redisReply	*stats;
	double		rate, half, most;
};

/* @daemon: the answer of TW.STATS without a queue. @queues: sorted by their names. */
struct overview {
	redisReply		*daemon;
	struct overview_queue	*queues;
	size_t			count;
};

/*
 * @ask: a function like ask(), which may also return NULL when there is no answer. Returns
 * NULL, or what has gone wrong: an error as answer, or NULL with @lost set.
 */
redisReply *overview_get(struct overview *overview, redisReply *(*ask)(struct request *request),
			 bool *lost);
void overview_free(struct overview *overview);
/* Returns "running" and the like, from the answer of TW.STATS. */
const char *queue_state(const redisReply *stats);

#endif /* TWJOB_OVERVIEW_H */
