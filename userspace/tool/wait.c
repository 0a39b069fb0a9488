// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waits for files and for signals at once. Signals that end the program are blocked except
 * while it waits. A signal is therefore never missed between a look and a wait, and never
 * interrupts anything else.
 */
#include <time.h>

#include "tool.h"

atomic_int stop_signal;

/* The signal mask from before; it holds only while the program waits. */
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

/*
 * Returns the time of CLOCK_MONOTONIC after @span. A span that never ends, UINT64_MAX, stays
 * as it is.
 */
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
