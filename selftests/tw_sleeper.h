/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for a thread that sleeps in read, poll or epoll until a wheel has something
 * for it.
 */
#ifndef TW_SLEEPER_H
#define TW_SLEEPER_H

#include <pthread.h>
#include <sys/epoll.h>

#include "tw_test.h"

/* @ret, @events and @event are valid after the thread has been joined. */
struct tw_sleeper {
	pthread_t thread;
	pid_t tid;
	int fd;		/* of an epoll for tw_sleep_in_epoll() */
	void (*sleep)(struct tw_sleeper *sleeper);
	int ret;	/* result of the call, or -errno */
	__u32 events;	/* that poll or epoll told of */
	struct timewheel_event event;
};

static inline void tw_sleep_in_read(struct tw_sleeper *sleeper)
{
	sleeper->ret = tw_ret(tw_read(sleeper->fd, &sleeper->event, 1));
}

static inline void tw_sleep_in_poll(struct tw_sleeper *sleeper)
{
	struct pollfd p = { .fd = sleeper->fd, .events = POLLIN };

	sleeper->ret = tw_ret(poll(&p, 1, -1));
	sleeper->events = p.revents;
}

static inline void tw_sleep_in_epoll(struct tw_sleeper *sleeper)
{
	struct epoll_event event = {};

	sleeper->ret = tw_ret(epoll_wait(sleeper->fd, &event, 1, -1));
	sleeper->events = event.events;
}

static inline void *_tw_run_sleeper(void *arg)
{
	struct tw_sleeper *sleeper = arg;

	__atomic_store_n(&sleeper->tid, gettid(), __ATOMIC_RELEASE);
	sleeper->sleep(sleeper);
	return NULL;
}

/* Starts the thread, which may not sleep yet when this returns. */
static inline bool tw_start_sleeper(struct tw_sleeper *sleeper, int fd,
				    void (*sleep)(struct tw_sleeper *sleeper))
{
	*sleeper = (struct tw_sleeper) { .fd = fd, .sleep = sleep };
	return fd >= 0 && !pthread_create(&sleeper->thread, NULL,
					  _tw_run_sleeper, sleeper);
}

/* Starts the thread and waits until it sleeps. */
static inline bool tw_put_to_sleep(struct tw_sleeper *sleeper, int fd,
				   void (*sleep)(struct tw_sleeper *sleeper))
{
	if (!tw_start_sleeper(sleeper, fd, sleep))
		return false;
	while (!__atomic_load_n(&sleeper->tid, __ATOMIC_ACQUIRE))
		tw_sleep_ms(1);
	tw_wait_asleep(sleeper->tid);
	return true;
}

/* Returns the events that epoll has at once, or 0. */
static inline __u32 tw_epoll_now(int epoll)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, 0) == 1 ? event.events : 0;
}

#endif /* TW_SLEEPER_H */
