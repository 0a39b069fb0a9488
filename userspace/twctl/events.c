// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes expired tokens so that none is lost. It waits for tokens, for signals and
 * for the file that is written to, all at once, and puts back a token that it
 * cannot use.
 *
 * Signals that end the program are blocked except while it waits. So a signal is
 * never missed between a look and a wait, and never interrupts anything else.
 */
#include <time.h>

#include "twctl.h"

atomic_int stop_signal;

/* The signal mask as it was before; it holds while the program waits. */
static sigset_t waiting_mask;

static void on_signal(int number)
{
	if (number != SIGCHLD)
		stop_signal = number;
}

/* A signal that is ignored, as under nohup(1), stays ignored. */
static void handle(int number, sigset_t *blocked)
{
	struct sigaction action;

	sigaction(number, NULL, &action);
	if (action.sa_handler == SIG_IGN && number != SIGCHLD)
		return;
	action = (struct sigaction) { .sa_handler = on_signal };
	sigaction(number, &action, NULL);
	sigaddset(blocked, number);
}

void signals_begin(void)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	handle(SIGINT, &blocked);
	handle(SIGTERM, &blocked);
	handle(SIGHUP, &blocked);
	handle(SIGCHLD, &blocked);
	sigprocmask(SIG_BLOCK, &blocked, &waiting_mask);
	/* The parent process may have blocked the signals. */
	sigdelset(&waiting_mask, SIGINT);
	sigdelset(&waiting_mask, SIGTERM);
	sigdelset(&waiting_mask, SIGHUP);
	sigdelset(&waiting_mask, SIGCHLD);
	signal(SIGPIPE, SIG_IGN);
}

/* Ends the program by the signal, so that the exit status tells of it. */
__noreturn void signal_end(void)
{
	int number = stop_signal ? stop_signal : SIGPIPE;
	sigset_t set;

	fflush(stdout);
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
	exit(128 + number);
}

static uint64_t monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/* A time of CLOCK_MONOTONIC; TIMEWHEEL_NEVER stays what it is. */
uint64_t end_after(uint64_t span)
{
	return span > TIME_MAX_NS ? span : monotonic_now() + span;
}

/*
 * Polls until @end, with signals let through. Returns 0 at @end, or less than 0
 * after a signal, which may be one to stop.
 */
int wait_for(struct pollfd *fds, int count, uint64_t end)
{
	struct timespec left = { };
	uint64_t now = monotonic_now();
	int ready;

	if (end > now) {
		left.tv_sec = (end - now) / NSEC_PER_SEC;
		left.tv_nsec = (end - now) % NSEC_PER_SEC;
	}
	ready = ppoll(fds, count, end > TIME_MAX_NS ? NULL : &left,
		      &waiting_mask);
	if (ready < 0 && errno != EINTR)
		die(STATUS_FAILED, "poll: %s", strerror(errno));
	return ready;
}

/* Also opens for writing, if allowed, to be able to put tokens back. */
void wheel_open_to_read(struct wheel *wheel, const char *name)
{
	struct tw_wheel *both = tw_wheel_open_named(name, O_RDWR);

	wheel_open(wheel, name, both ? O_RDWR : O_RDONLY);
	tw_wheel_close(both);
}

/* Answers need the right to write. Takes the place of wheel_open_to_read(). */
void wheel_open_to_answer(struct wheel *wheel, const char *name)
{
	wheel_close(wheel);
	wheel_open(wheel, name, O_RDWR);
}

/* Reads up to @most due tokens without a wait. Ends the program on errors. */
struct tw_events *take(const struct wheel *wheel, size_t most)
{
	struct tw_events *events = tw_events_new(most);

	if (!events)
		die(STATUS_FAILED, "no memory for events");
	/* Only signals that stop and continue get through, and they give no EINTR. */
	if (tw_events_read(events, wheel->wheel, 0) < 0 && errno != EINTR) {
		tw_events_free(events);
		return NULL;
	}
	return events;
}

/*
 * Puts back a token that was taken in vain: registers it again with the deadline
 * that it had, so that it expires at once, for another reader. If this fails, a
 * message names the token, so that it is not lost. A token that is held under a lease is
 * nacked; if this fails, it comes back when the wheel is closed.
 */
void put_back(const struct wheel *wheel, const struct timewheel_event *event)
{
	struct timewheel_op op;

	if (event->delivery) {
		tw_op_nack(&op, event->handle, event->delivery, 0,
			   TIMEWHEEL_OPF_BY_HANDLE);
		tw_wheel_run(wheel->wheel, &op);
		return;
	}
	tw_op_register(&op, event->id, event->deadline, event->cookie,
		       TIMEWHEEL_OPF_ABSOLUTE);
	if (!tw_wheel_run(wheel->wheel, &op))
		return;
	trouble(STATUS_FAILED,
		"wheel '%s': taken in vain and not put back (%s): id %llu cookie %llu deadline %llu",
		wheel->name, tw_strerror(errno), (unsigned long long)event->id,
		(unsigned long long)event->cookie,
		(unsigned long long)event->deadline);
}
