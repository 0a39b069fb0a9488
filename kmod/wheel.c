// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Wheel: a ring with the clock that turns it, the alarm that announces what is
 * due, and the readers and pollers that wait for it.
 *
 * Its locks, and what is done without them, are explained in LOCKING.
 */
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "clock.h"
#include "wheel.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/*
 * The generation of a wheel's first tokens. It differs from wheel to wheel, so
 * that a handle used on the wrong wheel is stale. Tests begin near the end, to
 * see generations wrap, or at 1, to repeat exactly.
 */
#ifndef TW_FIRST_GENERATION
#define TW_FIRST_GENERATION	get_random_u32()
#endif

/* The manual tells this size of a token with an id and a cookie. */
static_assert(sizeof(struct tw_id_token) + sizeof(u64) == 48);

/* The manual tells this size of a token with an id, a cookie and deliveries, out or not. */
static_assert(sizeof(struct tw_id_token) + sizeof(u64) + sizeof(struct tw_delivery) == 56);

/* The most tokens that one step looks at under the lock. */
#define TW_STEP		128

/* The most tokens that a poll looks at before it says "come and see". */
#define TW_POLL_WORK	4096

static void tw_wheel_wake(struct tw_wheel *wheel)
{
	/* The wake-up has no poll key: epoll and io_uring then ask whether the file is readable. */
	wake_up(&wheel->readers);
	wake_up(&wheel->pollers);
}

/* Called when the timer has gone off. Needs no lock. */
static void tw_wheel_went_off(struct tw_wheel *wheel)
{
	trace_alarm(wheel->number);
	WRITE_ONCE(wheel->callbacks, wheel->callbacks + 1);
	WRITE_ONCE(wheel->alarm, true);
}

/* The timer's callback does as much work for one due token as for a million. */
static enum hrtimer_restart tw_wheel_alarm(struct hrtimer *timer)
{
	struct tw_wheel *wheel = container_of(timer, struct tw_wheel, timer);

	tw_wheel_went_off(wheel);
	tw_wheel_wake(wheel);

	return HRTIMER_NORESTART;
}

/* Makes a wheel that is still to be set up, or returns NULL. */
struct tw_wheel *tw_wheel_new(void)
{
	struct tw_wheel *wheel = kzalloc(sizeof(*wheel), TW_GFP);

	if (!wheel)
		return NULL;
	mutex_init(&wheel->setup);
	init_waitqueue_head(&wheel->readers);
	init_waitqueue_head(&wheel->pollers);
	wheel->armed = TW_NEVER;

	return wheel;
}

static int tw_wheel_set_clock(struct tw_wheel *wheel,
			      const struct timewheel_setup *setup)
{
	u64 max_tick = min(TW_MAX_TICK, (u64)S64_MAX / setup->tick);

	wheel->clock = setup->clock;
	wheel->flags = setup->flags;
	wheel->slack = setup->slack;
	wheel->max_timeout = setup->flags & TIMEWHEEL_SETUP_TOUCH_WORDS ?
			     tw_words_max_timeout(setup->tick) : S64_MAX;
	wheel->manual = setup->start;
	hrtimer_setup(&wheel->timer, tw_wheel_alarm, tw_clock_id(wheel->clock),
		      HRTIMER_MODE_ABS);

	if (setup->clock == TIMEWHEEL_CLOCK_MANUAL)
		return setup->start > max_tick ? -ERANGE : 0;

	return tw_clock_ns(wheel->clock) / setup->tick > max_tick ? -ERANGE : 0;
}

static int tw_wheel_alloc_counters(struct tw_wheel *wheel)
{
	wheel->touched = alloc_percpu_gfp(u64, TW_GFP);
	wheel->lateness = kzalloc(sizeof(*wheel->lateness), TW_GFP);

	return wheel->touched && wheel->lateness ? 0 : -ENOMEM;
}

/* Frees counters, also if only some of them are there. */
static void tw_wheel_free_counters(struct tw_wheel *wheel)
{
	free_percpu(wheel->touched);
	kfree(wheel->lateness);
}

/* Takes all that a wheel needs, or nothing. */
static int tw_wheel_acquire(struct tw_wheel *wheel,
			    const struct timewheel_setup *setup)
{
	const struct tw_ring_setup ring = {
		.tick		= setup->tick,
		.slots		= setup->slots,
		.max_tokens	= setup->max_tokens,
		.ids		= !(setup->flags & TIMEWHEEL_SETUP_NO_IDS),
		.cookies	= !(setup->flags & TIMEWHEEL_SETUP_NO_COOKIES),
		.words		= setup->flags & TIMEWHEEL_SETUP_TOUCH_WORDS,
		.periods	= setup->flags & TIMEWHEEL_SETUP_PERIODS,
		.max_held	= setup->max_held,
		.lease		= setup->lease,
		.first_generation = TW_FIRST_GENERATION,
	};
	int err;

	err = tw_limits_charge(&wheel->charge, ring.max_tokens);
	if (err)
		return err;
	err = tw_wheel_alloc_counters(wheel);
	if (!err)
		err = tw_ring_init(&wheel->ring, &ring);
	if (err) {
		tw_wheel_free_counters(wheel);
		tw_limits_uncharge(&wheel->charge);
	}

	return err;
}

/*
 * Sets a new wheel up, as the caller has checked it, and charges it to the calling user. May
 * sleep. Returns 0; -EBUSY when it has been set up; -EINVAL; -ERANGE; -EDQUOT; -ENOSPC;
 * -ENOMEM.
 */
int tw_wheel_setup(struct tw_wheel *wheel, const struct timewheel_setup *setup,
		   u32 number)
{
	int err;

	/* These ranges are checked here, as they are for new wheels only. */
	if (setup->tick < READ_ONCE(tw_min_tick_ns) ||
	    setup->max_tokens > READ_ONCE(tw_max_tokens))
		return -EINVAL;

	mutex_lock(&wheel->setup);
	err = READ_ONCE(wheel->stage) != TW_NEW ? -EBUSY :
						  tw_wheel_set_clock(wheel, setup);
	if (!err)
		err = tw_wheel_acquire(wheel, setup);
	if (!err) {
		wheel->number = number;
		trace_create(wheel->number, setup->clock, setup->slots,
			     setup->tick, setup->max_tokens);
		/* Pairs with the acquire in tw_wheel_ready(). */
		smp_store_release(&wheel->stage, TW_READY);
	}
	mutex_unlock(&wheel->setup);

	return err;
}

/* Frees a wheel that no file refers to any more. May sleep. */
void tw_wheel_free(struct tw_wheel *wheel)
{
	if (wheel->stage != TW_NEW) {
		hrtimer_cancel(&wheel->timer);
		trace_destroy(wheel->number, wheel->ring.pending);
		tw_limits_uncharge(&wheel->charge);
		tw_ring_destroy(&wheel->ring);
		tw_wheel_free_counters(wheel);
	}
	mutex_destroy(&wheel->setup);
	kfree(wheel);
}

/* Starts the timer for a tick, or stops it for TW_NEVER. */
static void tw_wheel_arm(struct tw_wheel *wheel, u64 tick)
{
	lockdep_assert_held(&wheel->ring.lock);
	wheel->armed = tick;
	if (wheel->clock == TIMEWHEEL_CLOCK_MANUAL)
		return;
	if (tick == TW_NEVER)
		hrtimer_try_to_cancel(&wheel->timer);
	else
		hrtimer_start_range_ns(&wheel->timer,
				       ns_to_ktime(tick * wheel->ring.tick),
				       wheel->slack, HRTIMER_MODE_ABS);
}

/*
 * Arms the wheel, so that a thread will look when the next tick comes. Returns whether the
 * tick has come and no thread has been told.
 */
static bool tw_wheel_arm_next(struct tw_wheel *wheel, u64 now)
{
	u64 next = tw_ring_next(&wheel->ring);

	lockdep_assert_held(&wheel->ring.lock);
	if (READ_ONCE(wheel->alarm) || wheel->stage != TW_READY)
		return false;
	if (next > now) {
		if (next != wheel->armed)
			tw_wheel_arm(wheel, next);
		return false;
	}
	WRITE_ONCE(wheel->alarm, true);
	tw_wheel_arm(wheel, TW_NEVER);

	return true;
}

/* Locks the wheel and reads its clock. */
struct tw_now tw_wheel_lock(struct tw_wheel *wheel)
	__acquires(&wheel->ring.lock)
{
	spin_lock(&wheel->ring.lock);

	return tw_wheel_now(wheel);
}

/* Unlocks the wheel after any change, and arms it for what comes next. */
void tw_wheel_unlock(struct tw_wheel *wheel, const struct tw_now *now)
	__releases(&wheel->ring.lock)
{
	bool wake = tw_wheel_arm_next(wheel, now->tick);

	spin_unlock(&wheel->ring.lock);
	tw_timer_settle(&wheel->timer);
	if (wake)
		tw_wheel_wake(wheel);
}

/*
 * Ends a wheel that others may be using. All their calls get -ENODEV from now on; sleeping
 * readers and pollers are woken.
 */
void tw_wheel_end(struct tw_wheel *wheel)
{
	tw_wheel_lock(wheel);
	WRITE_ONCE(wheel->stage, TW_ENDED);
	tw_wheel_arm(wheel, TW_NEVER);
	spin_unlock(&wheel->ring.lock);
	tw_timer_settle(&wheel->timer);
	wake_up_all(&wheel->readers);
	wake_up_all(&wheel->pollers);
}

/* Puts the hand of a MANUAL wheel. Returns 0; -EINVAL when it is not MANUAL; -ERANGE. */
int tw_wheel_advance(struct tw_wheel *wheel, u64 tick)
{
	struct tw_now now;

	if (wheel->clock != TIMEWHEEL_CLOCK_MANUAL)
		return -EINVAL;
	if (tick > wheel->ring.max_due)
		return -ERANGE;

	tw_wheel_lock(wheel);
	WRITE_ONCE(wheel->manual, tick);
	now = tw_wheel_now(wheel);
	tw_wheel_unlock(wheel, &now);

	return 0;
}

/*
 * Pauses or resumes a wheel. A callback that is late may have set the alarm while
 * the wheel was paused, and woken a reader that went back to sleep since it saw
 * TW_PAUSED. Clearing that alarm must not lose one that a reader needs:
 *
 *	resume				callback		reader
 *	  stage = READY			  alarm = true		  queue on readers
 *	  smp_mb()			  wake readers		  smp_mb()
 *	  alarm = false						  stage? alarm?
 *	  something due? then set the alarm
 *	  and wake, else start the timer
 *
 * An alarm that is set before the clearing is lost, but resuming then looks itself,
 * under the lock: it finds what the alarm announced and sets the alarm again, or
 * starts the timer for it, which goes off at once. An alarm that is set after the
 * clearing wakes a reader that sees the new stage, because of the barrier here and
 * the one in prepare_to_wait(). What cannot happen is that the reader sees
 * TW_PAUSED together with the alarm that came after it.
 */
static void tw_wheel_set_stage(struct tw_wheel *wheel, enum tw_stage stage)
{
	lockdep_assert_held(&wheel->ring.lock);
	WRITE_ONCE(wheel->stage, stage);
	/* Pairs with the barrier in prepare_to_wait(), as drawn above. */
	smp_mb();
	WRITE_ONCE(wheel->alarm, false);
	tw_wheel_arm(wheel, TW_NEVER);
}

/* Pauses, resumes, drains, by the states that are in @mask. Returns 0 or -ENODEV. */
int tw_wheel_control(struct tw_wheel *wheel, u32 state, u32 mask)
{
	struct tw_now now = tw_wheel_lock(wheel);
	enum tw_stage stage = state & TIMEWHEEL_CONTROL_PAUSED ?
			      TW_PAUSED : TW_READY;
	int err = wheel->stage == TW_ENDED ? -ENODEV : 0;

	if (!err && mask & TIMEWHEEL_CONTROL_PAUSED && wheel->stage != stage)
		tw_wheel_set_stage(wheel, stage);
	if (!err && mask & TIMEWHEEL_CONTROL_DRAINING)
		tw_ring_drain(&wheel->ring,
			      state & TIMEWHEEL_CONTROL_DRAINING);
	tw_wheel_unlock(wheel, &now);

	return err;
}

/* Fills in all but @info's size and flags, in host time. */
void tw_wheel_info(struct tw_wheel *wheel, struct timewheel_info *info)
{
	struct tw_ring *ring = &wheel->ring;
	struct tw_now now = tw_wheel_lock(wheel);
	u64 next = tw_ring_next(ring);
	int cpu;

	info->clock = wheel->clock;
	info->setup_flags = wheel->flags;
	info->number = wheel->number;
	info->now = now.ns;
	info->hand = now.tick;
	info->next = next == TW_NEVER ? TIMEWHEEL_NEVER : next * ring->tick;
	info->state = wheel->stage == TW_PAUSED ? TIMEWHEEL_CONTROL_PAUSED : 0;
	if (!ring->room)
		info->state |= TIMEWHEEL_CONTROL_DRAINING;
	info->slack = wheel->slack;
	info->bytes = sizeof(*wheel) - sizeof(*ring) + tw_ring_bytes(ring) +
		      sizeof(*wheel->lateness) +
		      num_possible_cpus() * sizeof(*wheel->touched);
	info->callbacks = READ_ONCE(wheel->callbacks);
	info->quiet = wheel->quiet;
	tw_ring_info(ring, info);
	tw_delivery_info(ring, info);
	tw_wheel_unlock(wheel, &now);
	info->touched = 0;
	for_each_possible_cpu(cpu)
		info->touched += READ_ONCE(*per_cpu_ptr(wheel->touched, cpu));
}

/* Copies how late the wheel's events were, as of one moment. */
void tw_wheel_lateness(struct tw_wheel *wheel, struct tw_histogram *lateness)
{
	struct tw_now now = tw_wheel_lock(wheel);

	*lateness = *wheel->lateness;
	tw_wheel_unlock(wheel, &now);
}

/* This part is about tokens that expire. */

/*
 * Deals with a look that found nothing due: the alarm is over, and the timer is to be started.
 * @quiet: this look has found no token.
 */
static void tw_wheel_end_alarm(struct tw_wheel *wheel, bool quiet)
{
	lockdep_assert_held(&wheel->ring.lock);
	if (!READ_ONCE(wheel->alarm))
		return;
	WRITE_ONCE(wheel->alarm, false);
	wheel->armed = TW_NEVER;
	wheel->quiet += quiet;
}

/*
 * Takes at most @max expired tokens, in the order of their due ticks, and tells when they
 * were taken, and whether there is more to take. Taken tokens are the caller's until
 * tw_wheel_finish() has been told of them. Returns how many.
 */
unsigned int tw_wheel_take(struct tw_wheel *wheel, struct tw_now *now,
			   struct tw_taken *batch, unsigned int max, bool *more)
{
	unsigned int work = TW_STEP;
	unsigned int n;

	*now = tw_wheel_lock(wheel);
	n = tw_look_take(&wheel->ring, now->tick, &work, batch, max);
	if (TW_STEP - work > n)
		trace_sort(wheel->number, TW_STEP - work - n);
	if (n)
		trace_take(wheel->number, n);
	*more = tw_ring_next(&wheel->ring) <= now->tick;
	if (!*more)
		tw_wheel_end_alarm(wheel, !n);
	tw_wheel_unlock(wheel, now);

	/* The alarm woke this reader, and this reader wakes the next. */
	if (n && *more)
		tw_wheel_wake(wheel);

	return n;
}

/* Traces tokens that a reader has got, before their next life begins. */
static void tw_wheel_trace_deliver(const struct tw_wheel *wheel,
				   const struct tw_taken *batch, unsigned int n)
{
	const struct tw_ring *ring = &wheel->ring;
	unsigned int i;

	for (i = 0; i < n; i++) {
		const struct tw_token *token = batch[i].token;

		trace_deliver(wheel->number, tw_token_id(ring, token),
			      tw_token_handle(token, batch[i].index),
			      tw_token_due(token),
			      tw_ring_has_deliveries(ring) ?
			      tw_delivery_of(ring, token)->number : 0);
	}
}

/*
 * Ends tokens that were delivered, or lets them go on, and counts how late they were. Many in
 * a row are equally late.
 */
static void tw_wheel_delivered(struct tw_wheel *wheel, u64 then,
			       const struct tw_taken *batch, unsigned int n,
			       const struct tw_now *now, struct tw_holder *holder)
{
	u64 *bucket = wheel->lateness->bucket;
	struct tw_ring *ring = &wheel->ring;

	lockdep_assert_held(&wheel->ring.lock);
	if (trace_deliver_enabled())
		tw_wheel_trace_deliver(wheel, batch, n);
	while (n) {
		u64 due;
		unsigned int some = tw_look_delivered(ring, batch, n, &due, now,
						      holder);

		bucket[tw_bucket(then - due * wheel->ring.tick)] += some;
		batch += some;
		n -= some;
	}
}

/*
 * Ends tokens that were taken @then. The first @delivered of them were delivered to @holder;
 * the others are put back.
 */
void tw_wheel_finish(struct tw_wheel *wheel, const struct tw_now *then,
		     const struct tw_taken *batch, unsigned int n,
		     unsigned int delivered, struct tw_holder *holder)
{
	struct tw_now now = tw_wheel_lock(wheel);

	tw_wheel_delivered(wheel, then->ns, batch, delivered, &now, holder);
	tw_look_put_back(&wheel->ring, batch + delivered, n - delivered);
	if (n > delivered)
		trace_put_back(wheel->number, n - delivered);
	tw_wheel_unlock(wheel, &now);
}

/* Releases a file, which no call uses any more: all that it holds is due again. May sleep. */
void tw_wheel_return(struct tw_wheel *wheel, struct tw_holder *holder)
{
	bool more;

	do {
		struct tw_now now = tw_wheel_lock(wheel);

		more = tw_delivery_return(&wheel->ring, holder, TW_STEP, &now);
		tw_wheel_unlock(wheel, &now);
		cond_resched();
	} while (more);
}

/* Does one step of a poll. Returns whether the poll is over; then *due is the answer. */
static bool tw_wheel_step(struct tw_wheel *wheel, bool *due)
{
	struct tw_now now = tw_wheel_lock(wheel);
	unsigned int work = TW_STEP;

	*due = tw_look_find_due(&wheel->ring, now.tick, &work) != TW_NIL;
	if (work < TW_STEP)
		trace_sort(wheel->number, TW_STEP - work);
	if (!*due && work)
		tw_wheel_end_alarm(wheel, true);
	tw_wheel_unlock(wheel, &now);

	return *due || work;
}

/*
 * Whether a token has expired; true also when it would take long to find out. The caller is
 * queued on @wheel->pollers.
 */
bool tw_wheel_is_due(struct tw_wheel *wheel)
{
	unsigned int work;
	bool due;

	for (work = 0; work < TW_POLL_WORK; work += TW_STEP) {
		if (tw_wheel_step(wheel, &due))
			return due;
		cond_resched();
	}

	return true;
}

/* A reader that was woken leaves, and the next one has to look. */
void tw_wheel_pass_on(struct tw_wheel *wheel)
{
	wake_up(&wheel->readers);
}

/* Whether a thread that sleeps has to wake up. */
static bool tw_wheel_must_wake(const struct tw_wheel *wheel)
{
	switch (READ_ONCE(wheel->stage)) {
	case TW_READY:
		return READ_ONCE(wheel->alarm);
	case TW_PAUSED:
		return false;
	default:
		return true;
	}
}

/*
 * Sleeps until there is something to look at, or the wheel has ended. Returns 0, or
 * -ERESTARTSYS when a signal came.
 */
int tw_wheel_wait(struct tw_wheel *wheel)
{
	int err = wait_event_interruptible_exclusive(wheel->readers,
						     tw_wheel_must_wake(wheel));

	/* A task that is about to die would take tokens along. */
	if (!err && task_sigpending(current)) {
		tw_wheel_pass_on(wheel);
		err = -ERESTARTSYS;
	}

	return err;
}
