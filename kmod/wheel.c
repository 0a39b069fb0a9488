// SPDX-License-Identifier: GPL-2.0-only
/*
 * Wheel: a ring with the clock that turns it, the alarm that announces what is
 * due, and those who wait for it.
 *
 * LOCKING
 *
 * Overview
 *
 *	User space registers, touches, moves and cancels tokens, and takes the
 *	expired ones. Nothing happens by itself: the timer's callback only sets
 *	the alarm and wakes. Whoever reads or polls then looks at the ring, in
 *	its own context, in steps of at most TW_STEP tokens, each a whole under
 *	the lock. Between any two steps the ring is as consistent as at rest, so
 *	it does not matter who does them, or how many at a time.
 *
 *	A private wheel has one open file and ends with it. A named one is
 *	referred to by its name and by each of its open files, see named.c:
 *	whoever destroys it marks it ended and wakes all; it is freed when
 *	nobody refers to it any more.
 *
 * Lock order, outer to inner
 *
 *	tw_named_lock		mutex: names; one creates or destroys at a time.
 *				Opening a file does not take it.
 *	wheel->setup		mutex: one sets up, once. Sleeps for memory.
 *	tw_limits_lock		mutex: who has how much. Nothing is taken inside.
 *	tw_stats_lock		mutex: the list of all wheels, and what those
 *				that are gone had counted. Not taken with
 *				wheel->setup or tw_limits_lock held.
 *	takers' bucket locks	inside rhashtable, to add and remove one. Looking
 *				one up takes none.
 *	wheel->ring.lock	spinlock: the tokens, lists, levels, id table
 *				and what is armed. Process context only: the
 *				callback does not take it, so interrupts stay
 *				on. Held for a bounded number of tokens. No
 *				user memory is touched, no memory allocated
 *				but what the id table takes GFP_ATOMIC.
 *	id table's bucket locks	inside rhashtable.
 *	timer base lock		inside hrtimer_start().
 *
 *	The wait queues' locks are taken with no other lock held, by the
 *	callback or after unlocking; they are irq safe.
 *
 * What protects what
 *
 *	The ring's fields name the lock at their definition. Two things are
 *	done without it:
 *
 *	A look-up, by handle or by id. Tokens' memory stays as long as the
 *	wheel. The word is read first (acquire), then generation or id: if these
 *	fit, they belong to that word, for they are written before the word
 *	says ARMED (release).
 *
 *	A touch: one compare-and-swap on that word, which fails if the token
 *	has been taken, cancelled, moved or touched since. It only raises the
 *	due tick, so the rule of ring.c holds: no list is looked at too late.
 *
 *	On a wheel with touch words both are done under the lock, and it is the
 *	touch word that changes without it, by who has it mapped. It is read
 *	once, made sense of and applied to the token's word whenever somebody
 *	comes to the token: then the token's word says all. A take replaces the
 *	touch word by 0, by compare-and-swap with what was read: a touch that came
 *	first voids it, and it looks again; a checked touch that comes second
 *	fails. See words.h.
 *
 * A token's states, and who changes them
 *
 *	HELD		a delivery is out, or it is buried; on wheels with leases.
 *			All of it is under the lock: see delivery.h
 *	FREE -> ARMED	register, under the lock: filed before it unlocks
 *	ARMED -> ARMED	touch: no lock, compare-and-swap, raises the due tick
 *			move: lock, exchange, filed again
 *	ARMED -> TAKEN	take: lock, compare-and-swap; leaves list and id table
 *	TAKEN -> FREE	delivered: lock; next generation
 *	TAKEN -> HELD	delivered, with leases: lock; filed by the lease's end
 *	TAKEN -> ARMED	put back: lock; filed in front, id entered again; or
 *			delivered, periodic: lock; filed by its next deadline
 *	ARMED -> FREE	cancel: lock, exchange to TAKEN; then as delivered
 *
 * Ways out of ARMED, and why each pair excludes the other
 *
 *	take, cancel, move	all hold the lock.
 *	touch and any of them	all change the whole word at once. A touch that
 *				comes first voids the taker's compare-and-swap:
 *				it looks again and leaves the token; a move or
 *				cancel outdoes it. A touch that comes second
 *				fails its compare-and-swap, reads the word again
 *				and raises what the move has set, or finds TAKEN
 *				or another generation and says so.
 *	wheel's end		the last who refers to it is gone, and with it
 *				all callers; hrtimer_cancel() waits for the
 *				callback.
 *
 *	A wheel that is destroyed while others use it says so in wheel->stage,
 *	set under the lock. Calls that have begun may still be carried out, as
 *	if they had come before; the next one gets ENODEV. No timer is started
 *	any more.
 *
 *	A wheel that is paused says so there too. It has no alarm and no timer,
 *	and who sleeps in a read stays asleep; a look that was under way may take
 *	what is due. Resuming it settles it like any change.
 *
 * Who holds a delivery
 *
 *	The token points to its taker, which stands for an open file. That one
 *	is there from the file's first read to its release, which is after its
 *	last call: so whoever finds a token HELD by a taker, under the lock, may
 *	look at it, and whoever releases a file comes to all that it holds before
 *	the taker goes.
 *
 * The alarm
 *
 *	Under the lock, whenever it is let go, one of these holds:
 *	  - nothing is pending, and the timer is not started;
 *	  - the timer is started for the ring's next tick;
 *	  - the alarm is set: somebody has been told and will look, or the
 *	    callback is about to tell them.
 *	While the alarm is set no timer is started: no interrupts for what
 *	nobody looks at. A look that finds nothing due ends the alarm and starts
 *	the timer; one that leaves something due leaves the alarm set. It is
 *	never cleared for a moment in between, because sleepers check it.
 *
 *	callback			reader
 *	  alarm = true			  queue on readers
 *	  wake readers, pollers		  alarm? then look again, else sleep
 *
 *	Both sides go through the wait queue's lock between their two steps: if
 *	the callback does not find the reader queued, the reader finds the
 *	alarm set. A poller is queued before it looks, under the lock. The same
 *	goes for whoever ends the wheel, with stage in place of alarm.
 *
 *	A callback that is late may set the alarm after somebody has looked: all
 *	are woken, look, find nothing and end it: one look for nothing, and one
 *	callback while that alarm is set, if the look had started the timer. A
 *	look may overwrite an alarm that came after it had read the clock: what
 *	was announced is then still ahead of its clock, so it starts the timer
 *	for it, which goes off at once.
 *
 *	Readers sleep exclusively: one alarm wakes one. It takes up to a batch;
 *	if it leaves something due behind it wakes the next. One that was woken
 *	and leaves because of a signal passes the wake-up on.
 */
#include <linux/err.h>
#include <linux/percpu.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "clock.h"
#include "compat.h"
#include "limits.h"
#include "wheel.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Most tokens that one step looks at, under the lock. */
#define TW_STEP		256

/* Most tokens that a poll looks at before it says "come and see". */
#define TW_POLL_WORK	4096

static void tw_wheel_wake(struct tw_wheel *wheel)
{
	/* No poll key: epoll and io_uring then ask whether it is readable. */
	wake_up(&wheel->readers);
	wake_up(&wheel->pollers);
}

/* The timer's callback: as much work for one token due as for a million. */
static enum hrtimer_restart tw_wheel_alarm(struct hrtimer *timer)
{
	struct tw_wheel *wheel = container_of(timer, struct tw_wheel, timer);

	trace_alarm(wheel->number);
	WRITE_ONCE(wheel->callbacks, wheel->callbacks + 1);
	WRITE_ONCE(wheel->alarm, true);
	tw_wheel_wake(wheel);

	return HRTIMER_NORESTART;
}

/**
 * tw_wheel_new() - a wheel that is still to be set up
 *
 * Return: the wheel or NULL.
 */
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
	wheel->max_delay = setup->flags & TIMEWHEEL_SETUP_TOUCH_WORDS ?
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

/* Takes what a wheel needs, all or nothing. */
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
		.max_attempts	= setup->max_attempts,
		.lease		= setup->lease,
	};
	int err;

	wheel->user = tw_limits_charge(ring.max_tokens);
	if (IS_ERR(wheel->user))
		return PTR_ERR(wheel->user);
	err = tw_wheel_alloc_counters(wheel);
	if (!err && setup->lease)
		err = tw_takers_init(&wheel->takers);
	if (!err)
		err = tw_ring_init(&wheel->ring, &ring);
	if (err) {
		tw_takers_destroy(&wheel->takers);
		tw_wheel_free_counters(wheel);
		tw_limits_uncharge(wheel->user, ring.max_tokens);
	}

	return err;
}

/**
 * tw_wheel_setup() - set a new wheel up
 * @wheel: the wheel
 * @setup: how; the caller has checked the ranges
 *
 * Charges it to the calling user. May sleep.
 *
 * Return: 0; -EBUSY when it has been set up; -ERANGE; -EDQUOT; -ENOSPC; -ENOMEM.
 */
int tw_wheel_setup(struct tw_wheel *wheel, const struct timewheel_setup *setup)
{
	static atomic_t number;
	int err;

	/* Here, not with the other ranges: they are for new wheels only. */
	if (setup->tick < READ_ONCE(tw_min_tick_ns) ||
	    setup->max_tokens > READ_ONCE(tw_max_tokens))
		return -EINVAL;

	mutex_lock(&wheel->setup);
	err = READ_ONCE(wheel->stage) != TW_NEW ? -EBUSY :
						  tw_wheel_set_clock(wheel, setup);
	if (!err)
		err = tw_wheel_acquire(wheel, setup);
	if (!err) {
		wheel->number = atomic_inc_return(&number);
		trace_create(wheel->number, setup->clock, setup->slots,
			     setup->tick, setup->max_tokens);
		/* Pairs with the acquire in tw_wheel_ready(). */
		smp_store_release(&wheel->stage, TW_READY);
	}
	mutex_unlock(&wheel->setup);

	return err;
}

/* Frees a wheel that nobody uses any more. May sleep. */
void tw_wheel_free(struct tw_wheel *wheel)
{
	if (wheel->stage != TW_NEW) {
		hrtimer_cancel(&wheel->timer);
		trace_destroy(wheel->number, wheel->ring.pending);
		tw_limits_uncharge(wheel->user, wheel->ring.max_tokens);
		tw_ring_destroy(&wheel->ring);
		tw_takers_destroy(&wheel->takers);
		tw_wheel_free_counters(wheel);
	}
	mutex_destroy(&wheel->setup);
	kfree(wheel);
}

static void tw_wheel_arm(struct tw_wheel *wheel, u64 tick)
{
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
 * Sees to it that somebody will look when the next tick comes. Returns whether
 * it has come and nobody has been told.
 */
static bool tw_wheel_settle(struct tw_wheel *wheel, u64 now)
{
	u64 next = tw_ring_next(&wheel->ring);

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

/* Lets go of the wheel after whatever was done to it. */
void tw_wheel_unlock(struct tw_wheel *wheel, const struct tw_now *now)
	__releases(&wheel->ring.lock)
{
	bool wake = tw_wheel_settle(wheel, now->tick);

	spin_unlock(&wheel->ring.lock);
	if (wake)
		tw_wheel_wake(wheel);
}

/**
 * tw_wheel_end() - end a wheel that others may be using
 * @wheel: the wheel, ready
 *
 * They get -ENODEV from now on, and those who sleep are woken to learn of it.
 */
void tw_wheel_end(struct tw_wheel *wheel)
{
	tw_wheel_lock(wheel);
	WRITE_ONCE(wheel->stage, TW_ENDED);
	tw_wheel_arm(wheel, TW_NEVER);
	spin_unlock(&wheel->ring.lock);
	wake_up_all(&wheel->readers);
	wake_up_all(&wheel->pollers);
}

/**
 * tw_wheel_advance() - put the hand of a MANUAL wheel
 * @wheel: the wheel
 * @tick: on which tick
 *
 * Return: 0; -EINVAL when it is not MANUAL; -ERANGE.
 */
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

/* A wheel that delivers is to pause, or the other way round. */
static void tw_wheel_enter(struct tw_wheel *wheel, enum tw_stage stage)
{
	WRITE_ONCE(wheel->stage, stage);
	/* A callback that is late may have set the alarm while the wheel was
	 * paused. One that sets it from now on wakes who sees the new stage. Pairs
	 * with the barrier in prepare_to_wait().
	 */
	smp_mb();
	WRITE_ONCE(wheel->alarm, false);
	tw_wheel_arm(wheel, TW_NEVER);
}

/**
 * tw_wheel_control() - pause, resume, drain
 * @wheel: the wheel
 * @flags: TIMEWHEEL_CONTROL_PAUSED, TIMEWHEEL_CONTROL_DRAINING
 * @mask: which of them are to change
 *
 * Return: 0, or -ENODEV when it has ended.
 */
int tw_wheel_control(struct tw_wheel *wheel, u32 flags, u32 mask)
{
	struct tw_now now = tw_wheel_lock(wheel);
	enum tw_stage stage = flags & TIMEWHEEL_CONTROL_PAUSED ? TW_PAUSED : TW_READY;
	int err = wheel->stage == TW_ENDED ? -ENODEV : 0;

	if (!err && mask & TIMEWHEEL_CONTROL_PAUSED && wheel->stage != stage)
		tw_wheel_enter(wheel, stage);
	if (!err && mask & TIMEWHEEL_CONTROL_DRAINING)
		wheel->ring.room = flags & TIMEWHEEL_CONTROL_DRAINING ?
				   0 : wheel->ring.max_tokens;
	tw_wheel_unlock(wheel, &now);

	return err;
}

/* What deliveries add to what there is to tell. Under the lock. */
static void tw_wheel_info_deliveries(const struct tw_wheel *wheel,
				     struct timewheel_info *info)
{
	const struct tw_deliveries *delivery = &wheel->ring.delivery;

	info->state = wheel->stage == TW_PAUSED ? TIMEWHEEL_CONTROL_PAUSED : 0;
	if (!wheel->ring.room)
		info->state |= TIMEWHEEL_CONTROL_DRAINING;
	info->lease = delivery->lease;
	info->slack = wheel->slack;
	info->max_attempts = delivery->max_attempts;
	info->held = delivery->held;
	info->buried = delivery->buried;
	info->acked = delivery->acked;
	info->nacked = delivery->nacked;
	info->lapsed = delivery->lapsed;
	info->returned = delivery->returned;
	info->kicked = delivery->kicked;
	info->deleted = delivery->deleted;
	info->missed = delivery->missed;
}

/* Fills in all but @info's size and flags, in host time. */
void tw_wheel_info(struct tw_wheel *wheel, struct timewheel_info *info)
{
	struct tw_ring *ring = &wheel->ring;
	struct tw_now now = tw_wheel_lock(wheel);
	u64 next = tw_ring_next(ring);
	int cpu;

	info->clock = wheel->clock;
	info->slots = ring->slots;
	info->tick = ring->tick;
	info->max_tokens = ring->max_tokens;
	info->setup_flags = wheel->flags;
	info->number = wheel->number;
	info->now = now.ns;
	info->hand = now.tick;
	info->next = next == TW_NEVER ? TIMEWHEEL_NEVER : next * ring->tick;
	info->pending = ring->pending;
	info->taken = ring->tokens.used - ring->pending -
		      ring->delivery.held - ring->delivery.buried;
	info->bytes = sizeof(*wheel) - sizeof(*ring) + tw_ring_bytes(ring) +
		      sizeof(*wheel->lateness) +
		      num_possible_cpus() * sizeof(*wheel->touched);
	info->registered = ring->registered;
	info->cancelled = ring->cancelled;
	info->moved = ring->moved;
	info->delivered = ring->delivered;
	info->put_back = ring->put_back;
	info->refiled = ring->refiled;
	info->callbacks = READ_ONCE(wheel->callbacks);
	info->quiet = wheel->quiet;
	tw_wheel_info_deliveries(wheel, info);
	info->touched = 0;
	for_each_possible_cpu(cpu)
		info->touched += READ_ONCE(*per_cpu_ptr(wheel->touched, cpu));
	tw_wheel_unlock(wheel, &now);
}

/* Copies how late the wheel was, as of one moment. */
void tw_wheel_lateness(struct tw_wheel *wheel, struct tw_lateness *lateness)
{
	struct tw_now now = tw_wheel_lock(wheel);

	*lateness = *wheel->lateness;
	tw_wheel_unlock(wheel, &now);
}

/*
 * Expiring.
 */

/* Somebody looks: the first to do so after the timer went off tells how late. */
static void tw_wheel_look(struct tw_wheel *wheel, const struct tw_now *now)
{
	u64 late;

	if (!READ_ONCE(wheel->alarm) || wheel->armed > now->tick)
		return;
	late = now->ns - wheel->armed * wheel->ring.tick;
	wheel->lateness->looks.bucket[tw_bucket(late)]++;
	wheel->armed = TW_NEVER;
}

/* Nothing is due: the alarm is over, the timer is to be started. */
static void tw_wheel_rest(struct tw_wheel *wheel, bool quiet)
{
	if (!READ_ONCE(wheel->alarm))
		return;
	WRITE_ONCE(wheel->alarm, false);
	wheel->armed = TW_NEVER;
	wheel->quiet += quiet;
}

static void tw_wheel_trace_sort(const struct tw_wheel *wheel,
				unsigned int refiled)
{
	if (refiled)
		trace_sort(wheel->number, refiled);
}

/**
 * tw_wheel_take() - take expired tokens, in the order of their due ticks
 * @wheel: the wheel
 * @now: when they were taken
 * @batch: where their indices go
 * @max: how many at most
 * @more: whether more may be due
 *
 * They are the caller's then, until tw_wheel_taken() has been told of them.
 *
 * Return: how many.
 */
unsigned int tw_wheel_take(struct tw_wheel *wheel, struct tw_now *now,
			   u32 *batch, unsigned int max, bool *more)
{
	unsigned int work = TW_STEP;
	unsigned int n;

	*now = tw_wheel_lock(wheel);
	tw_wheel_look(wheel, now);
	n = tw_ring_take(&wheel->ring, now->tick, &work, batch, max);
	tw_wheel_trace_sort(wheel, TW_STEP - work - n);
	if (n)
		trace_take(wheel->number, n);
	*more = tw_ring_next(&wheel->ring) <= now->tick;
	if (!*more)
		tw_wheel_rest(wheel, !n);
	tw_wheel_unlock(wheel, now);

	/* The alarm woke one reader: it is for this one to wake the next. */
	if (n && *more)
		tw_wheel_wake(wheel);

	return n;
}

/*
 * Does what is to be done with tokens that were delivered, and counts how late
 * they were: many in a row are equally so.
 */
static void tw_wheel_delivered(struct tw_wheel *wheel, u64 then,
			       const u32 *batch, unsigned int n,
			       const struct tw_now *now, struct tw_taker *taker)
{
	u64 *bucket = wheel->lateness->events.bucket;
	struct tw_ring *ring = &wheel->ring;

	while (n) {
		u64 due;
		unsigned int some = tw_ring_has_deliveries(ring) ?
			tw_ring_delivered_to(ring, batch, n, &due, now, taker) :
			tw_ring_delivered(ring, batch, n, &due);

		bucket[tw_bucket(then - due * wheel->ring.tick)] += some;
		batch += some;
		n -= some;
	}
}

/**
 * tw_wheel_taken() - tell what became of tokens that were taken
 * @wheel: the wheel
 * @then: when they were taken
 * @batch: the tokens
 * @n: how many
 * @delivered: how many of them, from the first on, were delivered; the others
 *	are put back
 * @taker: who has got them, on a wheel with leases
 */
void tw_wheel_taken(struct tw_wheel *wheel, const struct tw_now *then,
		    const u32 *batch, unsigned int n, unsigned int delivered,
		    struct tw_taker *taker)
{
	struct tw_now now = tw_wheel_lock(wheel);

	tw_wheel_delivered(wheel, then->ns, batch, delivered, &now, taker);
	tw_ring_put_back(&wheel->ring, batch + delivered, n - delivered);
	if (n > delivered)
		trace_put_back(wheel->number, n - delivered);
	tw_wheel_unlock(wheel, &now);
}

/**
 * tw_wheel_return() - somebody reads no more: what it holds is due again
 * @wheel: the wheel
 * @taker: who; nobody uses it
 *
 * May sleep.
 */
void tw_wheel_return(struct tw_wheel *wheel, struct tw_taker *taker)
{
	bool more = true;
	u32 next = 0;

	while (more) {
		struct tw_now now = tw_wheel_lock(wheel);

		more = tw_delivery_return(&wheel->ring, taker, &next, TW_STEP,
					  &now);
		tw_wheel_unlock(wheel, &now);
		cond_resched();
	}
}

/* One step of a poll. Returns whether it is over; then *due is the answer. */
static bool tw_wheel_step(struct tw_wheel *wheel, bool *due)
{
	struct tw_now now = tw_wheel_lock(wheel);
	unsigned int work = TW_STEP;

	tw_wheel_look(wheel, &now);
	*due = tw_ring_find_due(&wheel->ring, now.tick, &work) != TW_NIL;
	tw_wheel_trace_sort(wheel, TW_STEP - work);
	if (!*due && work)
		tw_wheel_rest(wheel, true);
	tw_wheel_unlock(wheel, &now);

	return *due || work;
}

/**
 * tw_wheel_is_due() - whether a token has expired
 * @wheel: the wheel
 *
 * The caller is queued on @wheel->pollers.
 *
 * Return: whether one has, or true when it would take long to find out.
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

/* A reader that was woken leaves: it is the next one's turn to look. */
void tw_wheel_pass_on(struct tw_wheel *wheel)
{
	wake_up(&wheel->readers);
}

/* Whether a sleeper has to get up. */
static bool tw_wheel_called(const struct tw_wheel *wheel)
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

/**
 * tw_wheel_wait() - sleep until there is something to look at, or it has ended
 * @wheel: the wheel
 *
 * Return: 0, or -ERESTARTSYS when a signal came.
 */
int tw_wheel_wait(struct tw_wheel *wheel)
{
	int err = wait_event_interruptible_exclusive(wheel->readers,
						     tw_wheel_called(wheel));

	/* A task that is to die would take tokens along. */
	if (!err && signal_pending(current)) {
		tw_wheel_pass_on(wheel);
		err = -ERESTARTSYS;
	}

	return err;
}
