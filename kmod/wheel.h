/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Wheel: a ring with the clock that turns it, the alarm that announces what is
 * due, and the readers and pollers that wait for it. It knows no file and no user
 * pointer.
 */
#ifndef TW_WHEEL_H
#define TW_WHEEL_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/timewheel.h>
#include <linux/wait.h>

#include "clock.h"
#include "histogram.h"
#include "limits.h"
#include "look.h"

/**
 * enum tw_stage - how far a wheel's life has come
 * @TW_NEW: it is still to be set up
 * @TW_READY: it can be used
 * @TW_PAUSED: it can be used, but nothing is delivered
 * @TW_ENDED: it was destroyed, and is freed with the last file that has it open
 */
enum tw_stage {
	TW_NEW,
	TW_READY,
	TW_PAUSED,
	TW_ENDED,
};

/**
 * struct tw_wheel - a wheel
 * @ring: the tokens; its lock is the wheel's lock
 * @name: the name of a named wheel, else NULL; constant
 * @number: names it in fdinfo and traces; constant
 * @setup: held while the wheel is set up; outermost
 * @stage: becomes TW_READY last under @setup, from then on changed under the
 *	lock; read anywhere
 * @charge: the users that are charged for it; constant
 * @clock: the clock that turns it, one of enum timewheel_clock; constant
 * @flags: the flags of the setup; constant
 * @slack: ns that the timer may be late; constant
 * @max_timeout: longest delay and timeout in ns that a token may have; constant
 * @manual: tick on which the hand of a MANUAL wheel is; the lock, or READ_ONCE
 * @timer: sets the alarm; started and cancelled under the lock
 * @armed: the tick that @timer is started for, or has gone off for while @alarm is
 *	set; else TW_NEVER; the lock
 * @alarm: something may be due, and the waiters have been told; set by the
 *	callback and under the lock, cleared under the lock, read anywhere
 * @callbacks: times that @timer went off; written by the callback only
 * @quiet: looks after an alarm that found nothing due; the lock
 * @touched: count, of each CPU; no lock
 * @lateness: ns from the deadline of each event until it was taken; the lock
 * @readers: threads that sleep in read, exclusively
 * @pollers: threads that sleep in poll, and epoll and io_uring instances
 */
struct tw_wheel {
	struct tw_ring		ring;
	const char		*name;
	u32			number;
	struct mutex		setup;	/* one caller sets up, once */
	enum tw_stage		stage;
	struct tw_charge	charge;
	u32			clock;
	u32			flags;
	u64			slack;
	u64			max_timeout;
	u64			manual;
	struct hrtimer		timer;
	u64			armed;
	bool			alarm;
	u64			callbacks;
	u64			quiet;
	u64 __percpu		*touched;
	struct tw_histogram	*lateness;
	wait_queue_head_t	readers;
	wait_queue_head_t	pollers;
};

struct tw_wheel *tw_wheel_new(void);
int tw_wheel_setup(struct tw_wheel *wheel, const struct timewheel_setup *setup,
		   u32 number);
void tw_wheel_end(struct tw_wheel *wheel);
void tw_wheel_free(struct tw_wheel *wheel);

struct tw_now tw_wheel_lock(struct tw_wheel *wheel)
	__acquires(&wheel->ring.lock);
void tw_wheel_unlock(struct tw_wheel *wheel, const struct tw_now *now)
	__releases(&wheel->ring.lock);

int tw_wheel_advance(struct tw_wheel *wheel, u64 tick);
int tw_wheel_control(struct tw_wheel *wheel, u32 state, u32 mask);
void tw_wheel_info(struct tw_wheel *wheel, struct timewheel_info *info);
void tw_wheel_lateness(struct tw_wheel *wheel, struct tw_histogram *lateness);

unsigned int tw_wheel_take(struct tw_wheel *wheel, struct tw_now *now,
			   struct tw_taken *batch, unsigned int max, bool *more);
void tw_wheel_finish(struct tw_wheel *wheel, const struct tw_now *then,
		     const struct tw_taken *batch, unsigned int n,
		     unsigned int delivered, struct tw_holder *holder);
void tw_wheel_return(struct tw_wheel *wheel, struct tw_holder *holder);
bool tw_wheel_is_due(struct tw_wheel *wheel);
int tw_wheel_wait(struct tw_wheel *wheel);
void tw_wheel_pass_on(struct tw_wheel *wheel);

/* Reads the wheel's clock. */
static inline struct tw_now tw_wheel_now(const struct tw_wheel *wheel)
{
	struct tw_now now;

	if (unlikely(wheel->clock == TIMEWHEEL_CLOCK_MANUAL)) {
		now.tick = READ_ONCE(wheel->manual);
		now.ns = now.tick * wheel->ring.tick;
	} else {
		now.ns = tw_clock_ns(wheel->clock);
		now.tick = now.ns / wheel->ring.tick;
	}

	return now;
}

/* Whether the wheel can be used and is not paused. */
static inline bool tw_wheel_ready(const struct tw_wheel *wheel)
{
	/* Pairs with the release in tw_wheel_setup(). */
	return smp_load_acquire(&wheel->stage) == TW_READY;
}

/* Returns why a wheel cannot be used, as an errno; 0 if it can. */
static inline int tw_wheel_check(const struct tw_wheel *wheel)
{
	/* Pairs with the release in tw_wheel_setup(). */
	enum tw_stage stage = smp_load_acquire(&wheel->stage);

	if (likely(stage == TW_READY))
		return 0;
	switch (stage) {
	case TW_PAUSED:
		return 0;
	case TW_ENDED:
		return -ENODEV;
	default:
		return -EBADFD;
	}
}

/* Returns why no token can be taken, as an errno: -EAGAIN while the wheel is paused; else 0. */
static inline int tw_wheel_check_due(const struct tw_wheel *wheel)
{
	int err = tw_wheel_check(wheel);

	return !err && READ_ONCE(wheel->stage) == TW_PAUSED ? -EAGAIN : err;
}

#endif /* TW_WHEEL_H */
