/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all queues do at present, as 'twjob top' and 'twjob web' show it.
 */
#ifndef TWJOB_OVERVIEW_H
#define TWJOB_OVERVIEW_H

#include "twjob.h"

/*
 * A queue. @stats: the answer of TW.STATS. @rate: deliveries in a second since an earlier
 * look. @half, @most: half of the jobs, and all but one in a hundred, were not later than so
 * many seconds. What is not known is less than 0.
 */
struct overview_queue {
	char		*name;
	redisReply	*stats;
	double		rate, half, most;
};

/* @daemon: the answer of TW.STATS without a queue. @queues: by their names. */
struct overview {
	redisReply		*daemon;
	struct overview_queue	*queues;
	size_t			count;
};

/*
 * @ask: as ask(), or returns NULL when there is no answer. Returns NULL, or what has gone
 * wrong: an answer that is an error, or no answer, which @lost tells.
 */
redisReply *overview_get(struct overview *overview, redisReply *(*ask)(struct request *request),
			 bool *lost);
void overview_free(struct overview *overview);
/* "running" and the like, by the answer of TW.STATS. */
const char *queue_state(const redisReply *stats);

#endif /* TWJOB_OVERVIEW_H */
