// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Jobs that run again and again: a token is a job. The heartbeat keeps to its
 * times, however long other jobs take; of beats that were missed meanwhile one
 * comes, and tells how many. The backup rests between two runs, however long they
 * take.
 *
 *	cc periodic.c $(pkg-config --cflags --libs libtimewheel)
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include <timewheel.h>

#define MS	1000000ULL

/**
 * struct job - what a token stands for: its id is the job's index
 * @name: what it is
 * @period: ns from one run to the next
 * @flags: TIMEWHEEL_OPF_FIXED_DELAY: from the end of the one, else from its begin
 * @takes: how many ms it runs
 * @runs: how often it is still to run
 */
struct job {
	const char	*name;
	uint64_t	period;
	unsigned int	flags;
	int		takes;
	int		runs;
};

#define JOBS	2

static struct job jobs[JOBS] = {
	{ "heartbeat", 20 * MS, 0, 0, 20 },
	{ "backup", 50 * MS, TIMEWHEEL_OPF_FIXED_DELAY, 90, 3 },
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/*
 * The wheel, and a token for each job. With a lease the delay of the backup begins
 * with its ack. Ends the program without a device.
 */
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
		.misfire = TIMEWHEEL_MISFIRE_ONCE,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);

	if (!wheel && (errno == ENOENT || errno == ENODEV)) {
		puts("no device: is the module loaded?");
		exit(4);
	}
	if (!wheel)
		fail("no wheel");
	for (size_t i = 0; i < JOBS; i++)
		if (tw_wheel_register_periodic(wheel, i, jobs[i].period,
					       jobs[i].period, 0, jobs[i].flags,
					       NULL) < 0)
			fail("register");
	return wheel;
}

/* Runs a job; after the last time its token ends. */
static void run(struct tw_wheel *wheel, const struct timewheel_event *event)
{
	struct job *job = &jobs[event->id];

	printf("%s, %u missed\n", job->name, event->missed);
	poll(NULL, 0, job->takes);
	if (--job->runs) {
		if (tw_wheel_ack(wheel, event->id, 0, event->lease) < 0)
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
