// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits of a queue: see limit.h.
 *
 * The wheel counts the jobs that workers have, but notices the end of a lease only when it is
 * read. So this part remembers the deliveries of a queue with a LIMIT, and looks for ended leases
 * when the queue is at its limit.
 */
#include <time.h>

#include "limit.h"

/* A delivery that may be out. */
struct out {
	uint64_t handle;
	uint32_t delivery;
};

uint64_t limit_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

uint64_t limit_interval(const struct rate *rate)
{
	return (rate->per * NSEC_PER_MSEC + rate->jobs - 1) / rate->jobs;
}

uint64_t limit_bucket(const struct rate *rate, uint64_t *full, uint64_t now, uint64_t *next)
{
	uint64_t interval = limit_interval(rate), all = interval * rate->jobs;

	if (*full < now)
		*full = now;
	*next = *full - all + interval;
	return *full < now + all ? (now + all - *full) / interval : 0;
}

static void remember(struct queue *queue, const struct timewheel_token *token, void *unused)
{
	const struct out out = { token->handle, token->delivery };

	if (token->state == TIMEWHEEL_STATE_HELD)
		buffer_add(&queue->limits.out, &out, sizeof(out));
}

/*
 * Looks at all deliveries that are out. Returns how many leases have ended, and sets @next to the
 * next end of a lease. Deliveries that have been answered are forgotten.
 */
static uint64_t look(struct queue *queue, uint64_t *next)
{
	struct limits *limits = &queue->limits;
	struct out *out = (struct out *)limits->out.data;
	size_t n = 0, count = limits->out.length / sizeof(*out);
	uint64_t over = 0;

	*next = UINT64_MAX;
	limits->first = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		struct timewheel_token token;

		if (!queue_holds(queue, out[i].handle, out[i].delivery, &token))
			continue;
		out[n++] = out[i];
		over += !token.left;
		if (token.lease_end < limits->first)
			limits->first = token.lease_end;
		if (token.left && token.lease_end < *next)
			*next = token.lease_end;
	}
	limits->out.length = n * sizeof(*out);
	limits->many = 2 * n + 64;
	return over;
}

/* Returns how many more jobs workers may have. If there is no room, @next is when a lease ends. */
static int64_t work_room(struct queue *queue, uint64_t now, uint64_t *next)
{
	struct limits *limits = &queue->limits;
	struct timewheel_info info;
	int64_t room;

	if (!queue_counts(queue, &info))
		return 0;
	room = queue->row.limit - info.held;
	if (room > 0)
		return room;
	if (!limits->knows) {
		limits->out.length = 0;
		queue_each_token(queue, remember, NULL);
		limits->knows = true;
		limits->first = 0;
	}
	*next = limits->first;
	return limits->first > now ? room : room + (int64_t)look(queue, next);
}

int limit_room(struct queue *queue, int want)
{
	uint64_t now = limit_now(), next = UINT64_MAX;
	int64_t room = want, most;

	if (queue->row.limit) {
		most = work_room(queue, now, &next);
		room = most < room ? most : room;
	}
	if (room > 0 && queue->row.rate.jobs) {
		most = limit_bucket(&queue->row.rate, &queue->limits.full, now, &next);
		room = most < room ? most : room;
	}
	if (room <= 0)
		queue_shut(queue, next);
	return room > 0 ? room : 0;
}

void limit_count(struct queue *queue, const struct timewheel_event *event, uint64_t lease)
{
	const struct out out = { event->handle, event->delivery };
	struct limits *limits = &queue->limits;
	uint64_t end = event->taken + lease * NSEC_PER_MSEC, next;

	if (queue->row.rate.jobs)
		limits->full += limit_interval(&queue->row.rate);
	if (!queue->row.limit)
		return;
	buffer_add(&limits->out, &out, sizeof(out));
	if (end < limits->first)
		limits->first = end;
	if (limits->out.length / sizeof(out) >= limits->many)
		look(queue, &next);
}
