// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Timer: a wheel's timer and its alarm are one timerfd, which programs poll.
 *
 * The timerfd is readable if the alarm is set, or the timer has gone off and no thread has
 * looked since. No thread waits for it in the library's name: what the timer's callback does
 * in the kernel is done by the next thread that looks, in tw_timer_catch_up(). Nobody reads
 * the timerfd: it stays readable, for all that poll it, until it is told another time.
 *
 * The timerfd is told as rarely as possible, because each time costs a system call: when a
 * nearer deadline has come up, and when it is readable but must not be. For a deadline that
 * has been put off it goes off too early: a look then finds nothing, and tells it the new
 * deadline.
 *
 * Code under the wheel's lock only notes the time that is wanted. After that lock is let go,
 * tw_timer_settle() compares this time with the time that was told last. Only a thread that
 * holds @telling tells, and before that it reads the wanted time under the wheel's lock. The
 * time told last is therefore the time wanted last. A thread may find nothing to tell because
 * another thread is about to tell: that thread has seen the same or newer wishes.
 */
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#include "wheel.h"

/* The kernel's linux/timerfd.h has this macro, but cannot be included beside fcntl.h. */
#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS	_IOW('T', 0, u64)
#endif

static struct tw_wheel *wheel_of(struct hrtimer *timer)
{
	return container_of(timer, struct tw_wheel, timer);
}

/* Whether the fd has to be readable at any time. */
static bool is_called(const struct tw_wheel *wheel)
{
	return READ_ONCE(wheel->alarm) || READ_ONCE(wheel->stage) == TW_ENDED;
}

static void hrtimer_setup(struct hrtimer *timer,
			  enum hrtimer_restart (*function)(struct hrtimer *timer),
			  clockid_t clock, enum hrtimer_mode mode)
{
	(void)function;
	(void)mode;
	timer->wanted = TW_TIMER_NEVER;
	timer->told = TW_TIMER_NEVER;
	mutex_init(&timer->telling);
	timer->fd = timerfd_create(clock, TFD_CLOEXEC);
	if (timer->fd < 0)
		timer->fd = -errno;
}

static void hrtimer_cancel(struct hrtimer *timer)
{
	mutex_destroy(&timer->telling);
	if (timer->fd >= 0)
		close(timer->fd);
}

/*
 * Makes the timerfd readable anew. Kernels with CONFIG_CHECKPOINT_RESTORE have a call for it.
 * With other kernels the timer has to go off, which costs an interrupt: under a hypervisor 15
 * us in place of 0.3 us.
 */
static bool tell_now(const struct hrtimer *timer)
{
	const u64 ticks = 1;

	return !ioctl(timer->fd, TFD_IOC_SET_TICKS, &ticks);
}

static void tell(const struct hrtimer *timer, u64 when)
{
	struct itimerspec at = { };

	if (when == TW_TIMER_NOW) {
		if (tell_now(timer))
			return;
		at.it_value.tv_nsec = 1;
	} else if (when != TW_TIMER_NEVER) {
		at.it_value.tv_sec = when / NSEC_PER_SEC;
		at.it_value.tv_nsec = when % NSEC_PER_SEC;
	}
	/* This call does not fail: the fd is a timerfd and the time is valid. */
	timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Whether the timerfd has to be told of a time. */
static bool differs(u64 wanted, u64 told)
{
	return wanted < told || (told == TW_TIMER_NOW && wanted != TW_TIMER_NOW);
}

/* @ring: makes a readable timerfd readable anew, for threads that know that it is readable. */
static void settle(struct hrtimer *timer, bool ring)
{
	struct tw_wheel *wheel = wheel_of(timer);
	bool news;
	u64 want;

	mutex_lock(&timer->telling);
	spin_lock(&wheel->ring.lock);
	want = is_called(wheel) ? TW_TIMER_NOW : timer->wanted;
	news = differs(want, timer->told) || (ring && want == TW_TIMER_NOW);
	if (news)
		WRITE_ONCE(timer->told, want);
	spin_unlock(&wheel->ring.lock);
	if (news)
		tell(timer, want);
	mutex_unlock(&timer->telling);
}

/* Tells the timerfd after any change. A thread that sets the alarm calls tw_timer_ring(). */
static void tw_timer_settle(struct hrtimer *timer)
{
	if (!is_called(wheel_of(timer)) &&
	    unlikely(differs(READ_ONCE(timer->wanted), READ_ONCE(timer->told))))
		settle(timer, false);
}

/* Called after the alarm was set, or after the wheel has ended: all pollers see it. */
static void tw_timer_ring(struct hrtimer *timer)
{
	settle(timer, true);
}

/**
 * tw_timer_catch_up() - before a look: if the timer has gone off, do what it does
 * @timer: the timer
 * @readable: the timerfd is readable, as the caller has seen
 *
 * The clock does not tell all: one that was set back is before a time that has come.
 */
static void tw_timer_catch_up(struct hrtimer *timer, bool readable)
{
	struct tw_wheel *wheel = wheel_of(timer);
	u64 told = READ_ONCE(timer->told);
	struct tw_now now;

	if (told == TW_TIMER_NOW || told == TW_TIMER_NEVER ||
	    wheel->clock == TIMEWHEEL_CLOCK_MANUAL ||
	    (!readable && told > tw_wheel_now(wheel).ns))
		return;
	now = tw_wheel_lock(wheel);
	told = timer->told;
	if (told != TW_TIMER_NOW && told != TW_TIMER_NEVER &&
	    (readable || told <= now.ns)) {
		WRITE_ONCE(timer->told, TW_TIMER_NOW);
		if (timer->wanted <= now.ns) {
			WRITE_ONCE(timer->wanted, TW_TIMER_NEVER);
			tw_wheel_went_off(wheel);
		}
	}
	tw_wheel_unlock(wheel, &now);
}

/* Whether the timerfd is readable. @timeout: as of poll(2). Returns 1, 0 or -errno. */
static int wait_for(const struct hrtimer *timer, int timeout)
{
	struct pollfd pollfd = { .fd = timer->fd, .events = POLLIN };
	int ret = poll(&pollfd, 1, timeout);

	return ret < 0 ? -errno : ret;
}

/* Sleeps until the timerfd is readable. Return: 0, or -EINTR. */
static int tw_timer_sleep(struct hrtimer *timer)
{
	int ret = wait_for(timer, -1);

	if (ret < 0)
		return ret;
	tw_timer_catch_up(timer, true);

	return 0;
}
