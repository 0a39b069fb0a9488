// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Jobs that run again and again: a token is a job. The heartbeat keeps to its times, however
 * long other jobs take: its token is periodic. If beats were missed meanwhile, only one of
 * them comes, and tells how many were missed. The backup rests between two runs, however long
 * they take: its token ends with each run, and another one is registered.
 *
 *	cc periodic.c $(pkg-config --cflags --libs libtimewheel)
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <timewheel.h>

/**
 * struct job - what a token stands for: its id is the job's index
 * @name: its name
 * @period: ns from one run to the next
 * @rests: the period is from the end of one run, else from its start
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
	{ "heartbeat", TW_MS(20), false, 0, 20 },
	{ "backup", TW_MS(50), true, 90, 3 },
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int register_job(struct tw_wheel *wheel, uint64_t id)
{
	const struct job *job = &jobs[id];
	struct timewheel_op op;

	if (job->rests)
		tw_op_register(&op, id, job->period, 0, 0);
	else
		tw_op_register_periodic(&op, id, job->period, job->period, 0, 0);
	return tw_wheel_run(wheel, &op);
}

/* Makes the wheel, and a token for each job. Ends the program without a device. */
static struct tw_wheel *begin(void)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = TIMEWHEEL_SETUP_PERIODS,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 64,
		.tick = TW_MS(1),
		.max_tokens = JOBS,
		.lease = TW_MIN(1),
		.max_held = JOBS,
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

/* Runs a job. After the last run its token ends. */
static void run(struct tw_wheel *wheel, const struct timewheel_event *event)
{
	struct job *job = &jobs[event->id];
	struct timewheel_op op;

	printf("%s, %u missed\n", job->name, event->missed);
	poll(NULL, 0, job->takes);
	if (!--job->runs)
		tw_op_delete(&op, event->id, 0);
	else
		tw_op_ack(&op, event->id, event->delivery, 0);
	if (tw_wheel_run(wheel, &op) < 0)
		fail("answer");
	if (job->runs && job->rests && register_job(wheel, event->id) < 0)
		fail("register");
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
