/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * alarm.pml: which sleeper is woken, and when: the alarm flag, the timer and the wait queues.
 *
 * What is modelled, and where it is in the module:
 *   arm_next() tw_wheel_arm_next() in kmod/wheel.c. tw_wheel_unlock() calls it at the end of every
 *              section under the wheel's lock.
 *   callback   tw_wheel_alarm() in kmod/wheel.c, the timer's callback, which takes no lock
 *   look()     tw_wheel_take() and tw_wheel_step() in kmod/wheel.c, with tw_look_take() and
 *              tw_look_find_due() in kmod/look.c: they read the clock, file touched tokens again,
 *              and find a due token. A reader takes the token, and a poller leaves it there.
 *   put_back() tw_wheel_finish() in kmod/wheel.c after a fault while copying: tw_look_put_back() in
 *              kmod/look.c files the token by its due tick
 *   reader     tw_wheel_wait() in kmod/wheel.c and its caller, a blocking read. The program may
 *              stay away after a delivery, and a signal may interrupt it.
 *   poller     tw_wheel_is_due() in kmod/wheel.c for an epoll instance, and the program that uses
 *              the instance: it reads without blocking until nothing is due
 *   hold()     on a wheel with leases, tw_wheel_finish() after the event was copied:
 *              tw_delivery_done() in kmod/delivery.c begins the lease. A look ends leases that are
 *              over, by tw_delivery_end_leases(), and takes nothing while HELD deliveries are out.
 *   answerer   tw_delivery_ack(), tw_delivery_nack() and tw_delivery_extend() in kmod/delivery.c
 *   writer     another process that registers, moves and cancels
 *   toucher    tw_ring_touch() in kmod/ring.h: it raises a due tick without the lock; the token
 *              stays on its list
 *   pauser     tw_wheel_control() and tw_wheel_set_stage() in kmod/wheel.c: the wheel is paused,
 *              and then resumed or left paused
 *
 * Every read or write of the clock, the flag, the timer and the wait queues that another party may
 * see is a step of its own. Accesses that only the lock's holder sees are one step together. Memory
 * is sequentially consistent here. The code needs a full barrier between queueing and the look at
 * the flag, and between setting the flag and a look for sleepers. The wait queue calls contain
 * both.
 *
 * Bounds: 2 tokens, ticks 1..3, batches of one token, up to 2 readers and 2 pollers, a few
 * operations of the writer. The clock runs and stops anywhere, and with BACK steps back once. With
 * leases HELD deliveries may be out at once, for a tick. Scenarios choose -D values, see check.sh.
 *
 * One rule makes the wake-ups work: a thread or callback that sets the flag from 0 to 1 then wakes
 * one reader and all pollers. A look by a poller therefore leaves it to arm_next() to set the flag.
 *
 * Properties, for every interleaving:
 *   quiet     When nothing can move any more and a reader or poller sleeps, then nothing is due, no
 *             alarm is pending and the timer is armed for exactly the next list, or for nothing if
 *             the wheel is empty. No wake-up is therefore ever lost, late or for nothing. When HELD
 *             deliveries are out, nothing is due, and the next tick is the end of a lease.
 *   round     A look that finds nothing leaves nothing that is due: no thread looks again and
 *             again.
 *   P9        At most HELD deliveries are out.
 *   P7        While an alarm is pending and nobody looks, at most two callbacks start: one if the
 *             timer was armed already, and one more if arm_next() looked at the flag just before it
 *             was set and then armed the timer. The timer is not armed again before a look.
 *   P5        A token that is put back is found again (part of "quiet").
 *   paused    When nothing can move any more and the wheel is paused, no timer is started. During a
 *             pause a reader gets up at most once, if it has looked before the pause, and does not
 *             look again and again. After the resume "quiet" holds again, also if a callback was
 *             late.
 */

#ifndef READERS
#define READERS 1
#endif
#ifndef POLLERS
#define POLLERS 0
#endif
#ifndef OPS
#define OPS 3		/* operations of the writer */
#endif
#ifndef SIGNALS
#define SIGNALS 0
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef BACK
#define BACK 0		/* steps of the clock back */
#endif
#ifndef TOUCHES
#define TOUCHES 0
#endif
#ifndef PAUSES
#define PAUSES 0
#endif
#ifndef ANSWERS
#define ANSWERS 0
#endif

#define NONE 7
#define LAST 3

/*
 * The lock guards the wheel. A slot of the arena is free when it is neither filed nor
 * taken.
 */
bit locked;
byte filed[2] = NONE;	/* tick of the list that the token is in */
byte due[2] = NONE;
bit taken[2];
#ifdef HELD
byte end[2] = NONE;	/* end of the token's lease, if it is held */
#endif
byte armed = NONE;	/* the tick for which the timer is armed, as the lock's holders believe */

/* The lock does not guard these variables. */
byte now = 1;
byte timer = NONE;	/* the tick on which the real timer fires */
bit alarm;
bit queued[2];		/* a reader waits; a wake-up takes it off the queue */
bit polled[2];		/* a poller is on the wait queue and stays there */
bit ready[2];		/* its epoll item was woken */

#if PAUSES
bit paused;		/* written under the lock */
#else
#define paused 0
#endif

/* Ghosts and budgets exist only in the model. */
bit dozing[2];		/* a poller sleeps */
byte late;		/* callbacks that started with an alarm pending, since the last look */
byte rounds[2];		/* times that a reader got up since the wheel was paused */
byte signals = SIGNALS;
byte faults = FAULTS;

#define MIN(a, b) (a < b -> a : b)
#define FILED MIN(filed[0], filed[1])
#ifdef HELD
#define END MIN(end[0], end[1])
#define OUT (taken[0] + taken[1] + (end[0] != NONE) + (end[1] != NONE))
#define FULL (OUT >= HELD)
#define WANTED (FULL -> END : MIN(FILED, END))
#else
#define FULL false
#define WANTED FILED
#endif
/* The code takes this tick for the next tick with something to look at. */
#if defined(BUG_FULL_LOOKS)
#define NEXT MIN(FILED, END)
#elif defined(BUG_LEASE_FORGOTTEN)
#define NEXT (FULL -> NONE : FILED)
#else
#define NEXT WANTED
#endif
#define DUE (NEXT <= n)
#define LATER (NEXT != NONE && NEXT > n)
#ifdef BUG_ARM_PAUSED
#define RUNS true
#else
#define RUNS (!paused)
#endif

inline wake_reader()
{
	atomic {
		if
		:: queued[0] -> queued[0] = 0
		:: queued[1] -> queued[1] = 0
		:: else
		fi
	}
}

inline wake_pollers()
{
	d_step { ready[0] = ready[0] || polled[0]; ready[1] = ready[1] || polled[1] }
}

inline unlock_and_tell()
{
	if
	:: d_step { !tell -> locked = 0; n = 0 }
	:: d_step { tell -> locked = 0; n = 0; tell = 0 }
	   wake_reader();
	   wake_pollers()
	fi
}

inline arm_next()
{
	if
#ifdef BUG_ARM_PAUSED
	:: false
#else
	:: paused
#endif
	:: d_step { RUNS && NEXT == NONE -> timer = NONE; armed = NONE }
	:: RUNS && DUE && alarm		/* a sleeper was told already */
	:: RUNS && DUE && !alarm -> d_step { alarm = 1; tell = 1 }
	:: RUNS && LATER && (alarm || NEXT == armed)	/* with alarm, a sleeper was told */
	:: RUNS && LATER && !alarm && NEXT != armed -> d_step { armed = NEXT; timer = armed }
	fi
}

#ifdef HELD
inline lapse(t)
{
	if
	:: end[t] <= n -> filed[t] = end[t]; due[t] = end[t]; end[t] = NONE
	:: else
	fi
}

inline end_leases()
{
	lapse(0);
	lapse(1)
}
#else
#define end_leases() skip
#endif
#ifdef BUG_FULL_TAKES
#define MAY_TAKE true
#else
#define MAY_TAKE (!FULL)
#endif

/*
 * Takes the lock, reads the clock and sorts the due tokens: found is the first token
 * that is really due, or NONE. The look is one step, because nobody else can see
 * whether the lock is taken earlier or later than the rest.
 */
inline look(take)
{
	d_step {
		!locked -> locked = 1;
		n = now;
		found = NONE;
		end_leases();
		do
		:: found == NONE && FILED <= n && MAY_TAKE ->
			found = (filed[0] <= filed[1] -> 0 : 1);
			if
			:: due[found] <= filed[found]
			:: else -> filed[found] = due[found]; found = NONE
			fi
		:: else -> break
		od;
		if
		:: take && found != NONE -> filed[found] = NONE; taken[found] = 1
		:: else
		fi;
		assert(found != NONE || NEXT > n)
	};
	if
	:: d_step { NEXT > n ->
		alarm = 0;
		late = 0;
#ifndef BUG_KEEP_ARMED
		armed = NONE
#endif
	   }
#ifdef BUG_WAKE_NOBODY
	:: d_step { take && NEXT <= n -> alarm = alarm || !paused; late = 0 }
#else
	:: d_step { take && NEXT <= n -> alarm = alarm || !paused; late = 0; tell = 1 }
#endif
#ifdef BUG_POLL_TELLS_NOBODY
	:: d_step { !take && NEXT <= n -> alarm = alarm || !paused; late = 0 }
#else
	:: d_step { !take && NEXT <= n -> late = 0 }
#endif
	fi;
	arm_next();
	unlock_and_tell()
}

inline put_back()
{
	d_step { !locked -> locked = 1; n = now; taken[found] = 0; filed[found] = due[found] };
#ifndef BUG_PUT_BACK_QUIET
	arm_next();
#endif
	unlock_and_tell()
}

#ifdef HELD
inline hold()
{
	d_step {
		!locked -> locked = 1;
		n = now;
		assert(OUT <= HELD);
		taken[found] = 0; due[found] = NONE; end[found] = n + 1
	};
#ifndef BUG_HOLD_QUIET
	arm_next();
#endif
	unlock_and_tell()
}
#else
inline hold()
{
	atomic { !locked -> taken[found] = 0; due[found] = NONE }
}
#endif

/*
 * The event is copied to user space. The copy may fault. Otherwise the token is freed
 * or held.
 */
inline deliver()
{
	if
	:: d_step { faults > 0 -> faults-- } -> put_back()
	:: hold()
	fi
}

proctype reader(byte me)
{
	byte n, found;
	bit tell;

again:
#if PAUSES
	if
	:: paused -> goto wait
	:: else
	fi;
#endif
	look(true);
	if
	:: found != NONE ->
		deliver();
		found = NONE;
		if
		:: goto again
		:: goto out	/* the program stays away */
		fi
	:: else
	fi;
wait:
#ifdef BUG_CHECK_FIRST
	if
	:: alarm -> goto again
	:: else
	fi;
	queued[me] = 1;
#else
	queued[me] = 1;
#if PAUSES && !defined(BUG_SLEEP_BY_ALARM)
	if
	:: paused -> goto end_sleep
	:: else
	fi;
#endif
	if
	:: d_step { alarm -> queued[me] = 0; rounds[me] = rounds[me] + paused; assert(rounds[me] <= 1) } ->
		goto again
	:: else
	fi;
#endif
end_sleep:
	if
	:: !queued[me] ->
		if
#if PAUSES
		:: goto wait
#else
		:: goto again
#endif
		:: atomic { signals > 0 -> signals-- }
		fi
	:: atomic { signals > 0 -> signals-- }
	fi;
	queued[me] = 0;
#ifndef BUG_NO_HAND_ON
	if
	:: alarm -> wake_reader()
	:: else
	fi;
#endif
out:
	found = 0
}

proctype poller(byte me)
{
	byte n, found;
	bit tell;

#ifndef BUG_POLL_LATE
	polled[me] = 1;
#endif
poll:
	ready[me] = 0;
#if PAUSES
	if
	:: paused -> goto rest
	:: else
	fi;
#endif
	look(false);
	if
	:: found == NONE -> goto rest
#ifdef HANG
	:: found != NONE -> goto out	/* the program was told and hangs */
#endif
	:: found != NONE
	fi;
read:
#if PAUSES
	if
	:: paused -> goto rest
	:: else
	fi;
#endif
	look(true);
	if
	:: found != NONE -> deliver(); goto read
	:: else
	fi;
#ifndef EDGE
	goto poll;
#endif
rest:
#ifdef BUG_POLL_LATE
	polled[me] = 1;
#endif
	dozing[me] = 1;
end_sleep:
	ready[me];
	dozing[me] = 0;
	goto poll;
out:
	found = 0
}

proctype callback()
{
end_idle:
	do
	:: d_step { timer <= now ->
		timer = NONE;
		late = late + alarm;
		assert(late <= 2)
	   };
	   alarm = 1;
	   wake_reader();
	   wake_pollers()
	od
}

#ifdef HELD
#define IS_HELD(t) (end[t] != NONE)
#else
#define IS_HELD(t) false
#endif

proctype writer()
{
	byte n, t, d, ops = OPS;
	bit tell;

	do
	:: ops > 0 ->
		atomic {
			ops--;
			select(t : 0 .. 1);
			select(d : 1 .. LAST)
		};
end_it_is_held:
		if
		:: d_step { !locked && !taken[t] && !IS_HELD(t) ->	/* register, or move */
			locked = 1; n = now; filed[t] = d; due[t] = d; t = 0; d = 0 }
		:: d_step { !locked && filed[t] != NONE ->	/* cancel */
			locked = 1; n = now; filed[t] = NONE; due[t] = NONE; t = 0; d = 0 }
		fi;
		arm_next();
		unlock_and_tell()
	:: break
	od
}

#if ANSWERS
proctype answerer()
{
	byte n, t, ops = ANSWERS;
	bit tell;

	do
	:: ops > 0 ->
		atomic { ops--; select(t : 0 .. 1) };
end_none_is_held:
		if
		:: d_step { !locked && IS_HELD(t) ->	/* ack */
			locked = 1; n = now; end[t] = NONE; t = 0 }
		:: d_step { !locked && IS_HELD(t) ->	/* nack */
			locked = 1; n = now; end[t] = NONE; filed[t] = n; due[t] = n; t = 0 }
		:: d_step { !locked && IS_HELD(t) ->	/* extend */
			locked = 1; n = now; end[t] = MIN(end[t], n + 1) + 1; t = 0 }
		fi;
#ifndef BUG_ANSWER_QUIET
		arm_next();
#endif
		unlock_and_tell()
	:: break
	od
}
#endif

#if TOUCHES
proctype toucher()
{
	if
	:: atomic { filed[0] != NONE && due[0] < LAST -> due[0] = LAST }
	:: true
	fi
}
#endif

#if PAUSES
inline stop()
{
	d_step { alarm = 0; late = 0 };
#ifdef BUG_PAUSE_KEEPS_TIMER
	armed = NONE
#else
	d_step { timer = NONE; armed = NONE }
#endif
}

proctype pauser()
{
	byte n, left = PAUSES;
	bit tell;

	do
	:: left > 0 ->
		left--;
		d_step { !locked -> locked = 1; n = now; paused = 1; rounds[0] = 0; rounds[1] = 0 };
		stop();
		arm_next();
		unlock_and_tell();
		if
		:: break		/* the wheel stays paused */
		:: true
		fi;
#ifdef BUG_RESUME_LATE
		d_step { !locked -> locked = 1; n = now };
		stop();
		paused = 0;
#else
		d_step { !locked -> locked = 1; n = now; paused = 0 };
#ifndef BUG_RESUME_KEEPS_ALARM
		stop();
#endif
#endif
#ifndef BUG_RESUME_QUIET
		arm_next();
#endif
		unlock_and_tell()
	:: left == 0 -> break
	od
}
#endif

proctype clock()
{
	byte back = BACK;

	do
	:: now < LAST -> now++
	:: now > 1 && back > 0 -> d_step { now--; back-- }
	:: break
	od
}

init {
	byte i;

	atomic {
		run callback();
		run writer();
		run clock();
#if TOUCHES
		run toucher();
#endif
#if PAUSES
		run pauser();
#endif
#if ANSWERS
		run answerer();
#endif
		do
		:: i < READERS -> run reader(i); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < POLLERS -> run poller(i); i++
		:: else -> break
		od
	};
	timeout;
	assert(!locked);
	if
	:: paused -> assert(timer == NONE)
	:: !paused && (queued[0] || queued[1] || (dozing[0] && !ready[0]) || (dozing[1] && !ready[1])) ->
		assert(WANTED > now);
		assert(timer == WANTED);
		assert(!alarm)
	:: else
	fi
}
