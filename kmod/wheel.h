/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wheel: a ring with the clock that turns it, the alarm that announces what is
 * due, and those who wait for it. It knows no file and no user pointer.
 */
#ifndef TW_WHEEL_H
#define TW_WHEEL_H

#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/timewheel.h>
#include <linux/wait.h>

#include "ring.h"

/**
 * struct tw_wheel - a wheel
 * @ring: the tokens; its lock is the wheel's lock
 * @number: names it in fdinfo and traces; constant
 * @setup: held while the wheel is set up; outermost
 * @ready: set up; set last under @setup, read anywhere
 * @clock: one of enum timewheel_clock; constant
 * @flags: as set up; constant
 * @manual: tick on which the hand of a MANUAL wheel is; the lock, or READ_ONCE
 * @timer: sets the alarm; started and cancelled under the lock
 * @armed: the tick that @timer is started for, TW_NEVER when it is not, or when
 *	it has gone off and somebody has looked since; the lock
 * @alarm: something may be due, and all who wait have been told; set by the
 *	callback and under the lock, cleared under the lock, read anywhere
 * @callbacks: times that @timer went off; written by the callback only
 * @quiet: looks after an alarm that found nothing due; the lock
 * @readers: those who sleep in read, exclusively
 * @pollers: those who sleep in poll, and epoll and io_uring instances
 */
struct tw_wheel {
	struct tw_ring		ring;
	u32			number;
	struct mutex		setup;	/* one sets up, once */
	bool			ready;
	u32			clock;
	u32			flags;
	u64			manual;
	struct hrtimer		timer;
	u64			armed;
	bool			alarm;
	u64			callbacks;
	u64			quiet;
	wait_queue_head_t	readers;
	wait_queue_head_t	pollers;
};

struct tw_wheel *tw_wheel_new(void);
int tw_wheel_setup(struct tw_wheel *wheel, const struct timewheel_setup *setup);
void tw_wheel_free(struct tw_wheel *wheel);

struct tw_now tw_wheel_now(const struct tw_wheel *wheel);
struct tw_now tw_wheel_lock(struct tw_wheel *wheel)
	__acquires(&wheel->ring.lock);
void tw_wheel_unlock(struct tw_wheel *wheel, const struct tw_now *now)
	__releases(&wheel->ring.lock);

int tw_wheel_advance(struct tw_wheel *wheel, u64 tick);
void tw_wheel_info(struct tw_wheel *wheel, struct timewheel_info *info);

unsigned int tw_wheel_take(struct tw_wheel *wheel, struct tw_now *now,
			   u32 *batch, unsigned int max, bool *more);
void tw_wheel_taken(struct tw_wheel *wheel, const u32 *batch, unsigned int n,
		    unsigned int delivered);
bool tw_wheel_is_due(struct tw_wheel *wheel);
int tw_wheel_wait(struct tw_wheel *wheel);
void tw_wheel_pass_on(struct tw_wheel *wheel);

/* Whether the wheel has been set up; all else needs that. */
static inline bool tw_wheel_ready(const struct tw_wheel *wheel)
{
	/* Pairs with the release in tw_wheel_setup(). */
	return smp_load_acquire(&wheel->ready);
}

#endif /* TW_WHEEL_H */
