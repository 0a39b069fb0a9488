// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Jobs that run again and again: a token is a job. The heartbeat keeps to its
 * times, however long other jobs take: its token is periodic. Of beats that were
 * missed meanwhile one comes, and tells how many. The backup rests between two
 * runs, however long they take: its token is acked with a delay.
 *
 *	cc periodic.c $(pkg-config --cflags --libs libtimewheel)
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <timewheel.h>

#define MS	1000000ULL

/**
 * struct job - what a token stands for: its id is the job's index
 * @name: what it is
 * @period: ns from one run to the next
 * @rests: that is from the end of the one, else from its begin
 * @takes: how many ms it runs
 * @runs: how often it is still to run
 */
struct job {
	const char	*name;
	uint64_t	period;
	bool		rests;
	int		takes;
	int		runs;
};

#define JOBS	2

static struct job jobs[JOBS] = {
	{ "heartbeat", 20 * MS, false, 0, 20 },
	{ "backup", 50 * MS, true, 90, 3 },
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int register_job(struct tw_wheel *wheel, uint64_t id)
{
	const struct job *job = &jobs[id];

	if (job->rests)
		return tw_wheel_register(wheel, id, job->period, 0, 0, NULL);
	return tw_wheel_register_periodic(wheel, id, job->period, job->period, 0,
					  0, NULL);
}

/* The wheel, and a token for each job. Ends the program without a device. */
static struct tw_wheel *begin(void)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = TIMEWHEEL_SETUP_PERIODS,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 64,
		.tick = MS,
		.max_tokens = JOBS,
		.lease = 60000 * MS,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);

	if (!wheel && (errno == ENOENT || errno == ENODEV)) {
		puts("no device: is the module loaded?");
		exit(4);
	}
	if (!wheel)
		fail("no wheel");
	for (uint64_t id = 0; id < JOBS; id++)
		if (register_job(wheel, id) < 0)
			fail("register");
	return wheel;
}

/* Runs a job; after the last time its token ends. */
static void run(struct tw_wheel *wheel, const struct timewheel_event *event)
{
	struct job *job = &jobs[event->id];
	/* With a time, the token does not end but is pending again. */
	struct timewheel_op ack = {
		.size = sizeof(ack),
		.code = TIMEWHEEL_OP_ACK,
		.id = event->id,
		.time = job->rests ? job->period : 0,
		.lease = event->lease,
	};

	printf("%s, %u missed\n", job->name, event->missed);
	poll(NULL, 0, job->takes);
	if (--job->runs) {
		if (tw_wheel_op(wheel, &ack) < 0)
			fail("ack");
	} else if (tw_wheel_delete(wheel, event->id, 0) < 0) {
		fail("delete");
	}
}

int main(void)
{
	struct timewheel_info info = { .size = sizeof(info) };
	struct tw_wheel *wheel = begin();
	struct tw_events *events = tw_events_new(1);

	if (!events)
		fail("no room");
	while (!tw_wheel_info(wheel, &info) && info.deleted < JOBS)
		if (tw_events_read(events, wheel, TIMEWHEEL_NEVER) == 1)
			run(wheel, tw_events_at(events, 0));
	printf("%llu runs, %llu beats missed\n", info.delivered, info.missed);
	tw_wheel_close(wheel);
	tw_events_free(events);
	return info.delivered != 23 || !info.missed;
}
