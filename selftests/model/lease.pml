/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lease.pml: the life of a token on a wheel with leases: which file holds a delivery, and which
 * operations end it.
 *
 * What is modelled, and where it is in the module:
 *   look()     tw_look_take_some() in kmod/look.c: a reader comes to the token's list. If the token is held,
 *              its lease is over, and tw_delivery_before_take() in kmod/delivery.c arms the token or
 *              buries it. If the token is armed and due, the reader takes it: tw_delivery_begin() in
 *              kmod/delivery.c counts the attempt and numbers the delivery.
 *   copy()     tw_events_copy() in kmod/events.c: the event is copied without the lock
 *   done()     tw_delivery_done() in kmod/delivery.c: the token is held; or, after a fault,
 *              tw_look_put_back() in kmod/look.c: it is pending again, filed by its due tick
 *   answerer   tw_delivery_check(), then tw_delivery_ack(), tw_delivery_rearm(), tw_delivery_nack() or
 *              tw_delivery_extend() in kmod/delivery.c, by the handle and number of a delivery that a
 *              reader has told of: from the reader's own file, from another one, or for any file
 *   release()  tw_named_release() in kmod/device.c and tw_delivery_return() in kmod/delivery.c: after the
 *              file's last read what the file holds is due again; then the taker's memory is freed
 *   toucher    tw_ring_touch() in kmod/ring.h: it raises the due tick without the lock, by
 *              compare-and-swap of the whole word
 *   kicker     tw_delivery_kick() in kmod/delivery.c
 *   deleter    tw_delivery_delete() in kmod/delivery.c
 *   burier     tw_delivery_bury() in kmod/delivery.c
 *   adder      tw_ring_register() in kmod/ring.c: it registers another token with the same id in the
 *              same place
 *
 * The word is {due, state, gen}. Only touches change it without the lock, so that what others do in one
 * exchange under the lock is one step. Memory is sequentially consistent here.
 *
 * Bounds: one place, two registrations, ticks 1..LAST, leases of LEASE ticks, 2 attempts, two readers
 * with a file each of which the second is released; a few operations of each kind. The clock only grows.
 *
 * Properties, for every interleaving:
 *   P1  nobody takes the token before the tick last promised by register, touch, kick, nack or an ack
 *       with a time, and no lease ends before it is over, as it was last extended
 *   P3  each registration ends once: acked, without a time, or deleted
 *   P4  a touch fails only if the token was not pending
 *   P5  when all else is over, the first reader comes to the end of every registration that is not
 *       buried (if not, it stands still: an invalid end state)
 *   filed   at each unlock: armed or held: in a list no later than its due tick; taken or buried: in none
 *   answer  an answer that is accepted is to the delivery that is out, and comes from the file that
 *           holds it, or is for any file
 *   number  the deliveries of a registration that readers have told of are numbered 1, 2, 3, ...
 *   taker   nobody looks at a taker whose file has been released
 *
 * With BY_ID answers name the id instead: an older life's answer can then meet a newer life's delivery
 * of the same number, which is why there are handles.
 *
 * Seeded bugs, each must be found: BUG_NO_NUMBER, BUG_NO_HOLDER, BUG_NUMBER_STAYS, BUG_LAPSE_HOLDS,
 * BUG_RELEASE_EARLY, BUG_RELEASE_FORGETS, BUG_EXTEND_STAYS, BUG_KICK_HELD, BUG_DELETE_TAKEN,
 * BUG_BURIED_FILED, BUG_TAKE_STORE.
 */

#ifndef TOUCHES
#define TOUCHES 0
#endif
#ifndef ANSWERS
#define ANSWERS 0
#endif
#ifndef KICKS
#define KICKS 0
#endif
#ifndef DELETES
#define DELETES 0
#endif
#ifndef BURIES
#define BURIES 0
#endif
#ifndef ADDS
#define ADDS 0
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef LEAVES
#define LEAVES 0	/* 1: there is a second reader, whose file is released */
#endif
#ifndef LAST
#define LAST 3
#endif

#ifndef LEASE
#define LEASE 1
#endif

#define NONE 15
#define NOBODY 3
#define ATTEMPTS 2

#define FREE 0
#define ARMED 1
#define TAKEN 2
#define HELD 3

/* The word. */
byte due;
byte state = FREE;
byte gen = 1;

/* The rest of the token, guarded by the lock. */
bit locked;
byte filed = NONE;
byte taker = NOBODY;
byte number;		/* of the last delivery */
byte attempts;

byte now = 1;

/* What readers have told of: the handle and number of their last delivery. */
byte told_gen[2];
byte told_number[2];

/* Ghosts. */
bit alive;		/* the registration has not ended */
bit pending;		/* it can be touched, whatever the word says in between */
bit gone[2];		/* the taker's memory is freed */
byte delivery;		/* which delivery is out, of all there have been; 0 when none is */
byte deliveries;
byte copied;		/* deliveries of this registration that readers have told of */
byte told[2];
byte promise;		/* not before this tick */
byte users;		/* processes that may still change something */
byte faults = FAULTS;

#define BURIED (state == HELD && taker == NOBODY)
#define OUT (state == HELD && taker != NOBODY)

#define FILED_OK \
	(((state == ARMED || OUT) && filed <= due) || \
	 ((state == FREE || state == TAKEN || BURIED) && filed == NONE))

/* A section under the lock in which the word changes once is one step. */
#define SECTION d_step { !locked -> n = now;
#define END_SECTION ; assert(FILED_OK); n = 0 }

inline arm(when)
{
	due = when; filed = when; state = ARMED; pending = 1; promise = when
}

inline bury()
{
	state = HELD; due = n; taker = NOBODY; pending = 0;
#ifndef BUG_BURIED_FILED
	filed = NONE
#else
	filed = (filed == NONE -> n : filed)
#endif
}

/* No taker holds it any more: the one that did is looked at for the last time. */
inline let_go()
{
	assert(taker != NOBODY && !gone[taker]);
	taker = NOBODY;
	delivery = 0
}

/* What a delivery in vain comes to. */
inline retry(tick)
{
	if
	:: attempts >= ATTEMPTS -> bury()
	:: else -> arm(tick)
	fi
}

inline end()
{
	assert(alive);
	alive = 0; pending = 0; promise = 0;
	state = FREE; due = 0; filed = NONE; gen++
}

inline leave()
{
	users--
}

/* User space: touch, by the last handle that was given out at some time. */
proctype toucher()
{
	byte hg, wd, nd;

	atomic { hg = gen; select(nd : 2 .. LAST) };
	do
	:: d_step { !(state == ARMED && gen == hg) ->
		assert(!(pending && gen == hg)) } ->
		break
	:: d_step { state == ARMED && gen == hg && nd <= due ->
		promise = (promise < nd -> nd : promise) } ->
		break
	:: d_step { state == ARMED && gen == hg && nd > due -> wd = due } ->
		if
		:: d_step { state == ARMED && gen == hg && due == wd ->
			assert(pending);
			due = nd; promise = nd } ->
			break
		:: !(state == ARMED && gen == hg && due == wd)
		fi
	od;
	leave();
	d_step { hg = 0; wd = 0; nd = 0 }
}

/* Comes to the token's list: files it again, or sees that its lease is over. Then, if it is due, takes it. */
inline look()
{
	d_step { !locked && filed <= now ->
		locked = 1;
		n = now;
		do
		:: filed <= n && due > n -> filed = due
		:: filed <= n && due <= n && state == HELD ->
			assert(n >= promise);
#ifdef BUG_LAPSE_HOLDS
			if
			:: attempts >= ATTEMPTS -> filed = NONE
			:: else -> arm(due)
			fi
#else
			let_go();
			retry(due)
#endif
		:: else -> break
		od;
		wd = due
	};
	if
	:: d_step { filed > n -> locked = 0 }
	:: d_step { filed <= n &&
#ifndef BUG_TAKE_STORE
		    due == wd
#else
		    true
#endif
		    ->
		assert(alive && state == ARMED && n >= promise);
		due = wd; state = TAKEN; filed = NONE; pending = 0;
		attempts++; number++;
		deliveries++;
		took = deliveries;
		locked = 0 }
#ifndef BUG_TAKE_STORE
	:: d_step { filed <= n && due != wd -> locked = 0 }	/* touched meanwhile */
#endif
	fi;
	d_step { assert(FILED_OK); n = 0; wd = 0 }
}

/* Copied, but for a fault: then the read does not tell of it. */
inline copy()
{
	if
	:: d_step { told_gen[me] = gen; told_number[me] = number; told[me] = took }
	:: d_step { faults > 0 -> faults--; fault = 1 }
	fi
}

inline done()
{
	SECTION
		assert(state == TAKEN && alive);
		if
		:: fault ->
			attempts--;
#ifndef BUG_NUMBER_STAYS
			number--;
#endif
			filed = due; state = ARMED; pending = 1
		:: else ->
			copied++;
			assert(!gone[me] && number == copied);
			due = n + LEASE; filed = due; state = HELD;
			promise = due; taker = me; delivery = took
		fi;
		took = 0; fault = 0
	END_SECTION
}

inline read()
{
	look();
	if
	:: took -> copy(); done()
	:: else
	fi
}

/* Stays until all has come to an end, and answers in the end. */
proctype reader()
{
	byte me = 0, n, wd, took;
	bit fault;

	do
	:: read()
	:: atomic { users == 0 && !locked && OUT && taker == me -> let_go(); end() }
	:: users == 0 && !locked && (!alive || BURIED) -> break
	od
}

/* Takes back what the second reader holds; then it is forgotten. */
inline release()
{
	SECTION
		if
#ifndef BUG_RELEASE_FORGETS
		:: OUT && taker == 1 -> let_go(); retry(n)
#endif
		:: else
		fi
	END_SECTION;
	gone[1] = 1
}

/* The second reader: its file is released after its last read. */
proctype leaver()
{
	byte me = 1, n, wd, took;
	bit fault;

	do
	:: read()
	:: break
	od;
#ifndef BUG_RELEASE_EARLY
	release();
#endif
	leave()
}

proctype releaser()
{
	byte n;

	release();
	leave()
}

#ifdef BY_ID
#define BY_NAME true
#else
#define BY_NAME (gen == hg)
#endif
#ifdef BUG_NO_NUMBER
#define BY_NUMBER true
#else
#define BY_NUMBER (number == hn)
#endif
#ifdef BUG_NO_HOLDER
#define BY_HOLDER true
#else
#define BY_HOLDER (any || taker == who)
#endif

/* Answers to what one of the readers was told, from its file, the other, or for any. */
proctype answerer()
{
	byte n, hg, hn, hd, who, tick, what;
	bit any;

	if
	:: atomic { told[0] -> who = 0 }
#if LEAVES
	:: atomic { told[1] -> who = 1 }
#endif
	:: goto out
	fi;
	atomic {
		hg = told_gen[who]; hn = told_number[who]; hd = told[who];
		if
		:: true
		:: who = 1 - who
		:: any = 1
		fi;
		select(tick : 1 .. 2);
		select(what : 0 .. 3)
	};
	SECTION
		if
		:: OUT && BY_NAME && BY_NUMBER && BY_HOLDER ->
			assert(delivery == hd);
			assert(any || taker == who);
			if
			:: what == 0 -> let_go(); end()
			:: what == 1 -> let_go(); retry(n + tick - 1)
			:: what == 2 ->
				due = n + tick;
				promise = due;
#ifndef BUG_EXTEND_STAYS
				filed = due
#endif
			:: what == 3 -> let_go(); attempts = 0; arm(n + tick)
			fi
		:: else
		fi
	END_SECTION;
out:
	leave();
	d_step { hg = 0; hn = 0; hd = 0; who = 0; tick = 0; what = 0; any = 0 }
}

proctype kicker()
{
	byte n;

#ifdef BUG_KICK_HELD
	if
	:: d_step { !locked && state == ARMED -> locked = 1; state = HELD; filed = NONE };
	   d_step { attempts = 0; arm(now); locked = 0 }
	:: !locked && state != ARMED
	fi;
#else
	SECTION
		if
		:: state == ARMED || BURIED -> attempts = 0; arm(n)
		:: else
		fi
	END_SECTION;
#endif
	leave()
}

proctype deleter()
{
	byte n;

	SECTION
		if
		:: state == ARMED || BURIED -> end()
		:: OUT -> let_go(); end()
#ifdef BUG_DELETE_TAKEN
		:: state == TAKEN -> end()
#endif
		:: else
		fi
	END_SECTION;
	leave()
}

/* Of one that is pending. */
proctype burier()
{
	byte n;

	SECTION
		if
		:: state == ARMED -> bury()
		:: else
		fi
	END_SECTION;
	leave()
}

inline add(tick)
{
	alive = 1; number = 0; copied = 0; attempts = 0; arm(tick)
}

proctype adder()
{
	if
	:: d_step { !locked && state == FREE -> add(now) }
	:: true
	fi;
	leave()
}

/* Goes on until the last deadline. */
proctype clock()
{
end_of_time:
	do
	:: now < LAST -> now++
	:: now >= LAST && users == 0 && now < filed && filed != NONE -> now++
	od
}

#define SPAWN(count, what) i = 0; do :: i < count -> run what(); i++ :: else -> break od

init {
	byte i;

	atomic {
		d_step { add(1) };
		users = TOUCHES + ANSWERS + KICKS + DELETES + BURIES + ADDS + LEAVES;
		run reader();
		SPAWN(LEAVES, leaver);
#ifdef BUG_RELEASE_EARLY
		users++;
		run releaser();
#endif
		SPAWN(TOUCHES, toucher);
		SPAWN(ANSWERS, answerer);
		SPAWN(KICKS, kicker);
		SPAWN(DELETES, deleter);
		SPAWN(BURIES, burier);
		SPAWN(ADDS, adder);
		run clock()
	}
}
