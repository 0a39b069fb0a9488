/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * words.pml: the touch word of a token decides whether a touch came first or the take.
 *
 * What is modelled, and where it is in the module:
 *   word       a touch word, see kmod/words.h: generation and stamp, stored and swapped as one
 *   plain      a program's store of {generation of its handle, tick}, whatever the word is
 *   checked    a program's compare-and-swap while the generation is its handle's
 *   judge()    tw_look_apply_word() in kmod/look.c: a word of another generation, or with a stamp
 *              far ahead, is replaced by a touch of now. A stamp that adds nothing is cleared,
 *              unless it is ahead, and the due tick is raised. If the word has changed meanwhile,
 *              the module leaves the change to the next look, and no take succeeds by the old word.
 *              The model begins again instead.
 *   taker      tw_look_take() in kmod/look.c judges the word, files a token again that is not due,
 *              and takes a due token by swapping the word for 0. Then tw_look_delivered() in
 *              kmod/look.c ends the token, or tw_look_put_back() there, after a fault, makes it
 *              pending again. After the end tw_ring_register() in kmod/ring.c registers another
 *              token in the same place.
 *   looker     GET of the same key twice, by one reading of the clock: tw_look_apply_stamp() in
 *              kmod/look.c judges the word twice, and the token stays where it is
 *   mover      tw_look_apply_stamp() in kmod/look.c, then tw_ring_move() in kmod/ring.c
 *   canceller  tw_look_apply_stamp() in kmod/look.c, then tw_ring_cancel() in kmod/ring.c
 *
 * All accesses are to one u64. Only their order matters, and every machine has one order of them.
 * All processes but the programs that touch hold the wheel's lock. The lists are left to token.pml.
 *
 * Bounds: one place, up to 3 lives, a timeout of 1 tick, ticks 1..LAST. Users choose any handle
 * that has been given out, and may use it later. See check.sh for the scenarios.
 *
 * Properties, for every interleaving:
 *   P1  the token is not taken before the tick last promised by register, move, or a checked touch
 *       that succeeded, even if an older handle's store, which is a touch too, overwrites the word,
 *       or if the word is cleared
 *   P4  a checked touch succeeds only on a token that is pending, and fails only if the token is
 *       not pending, or if an older handle or nonsense has overwritten the word
 *   late  a store that is not true makes its token late once: two judgements raise it once
 *   P5  the taker ends every life (otherwise it stands still, which is an invalid end state)
 *
 * A plain touch of the same life may undo a touch of a later tick that was stored before it: its
 * promise replaces other promises. A plain touch by an older handle may do the same, because the
 * clock may go on between the reading of the clock and the judgement of the word. With STILL the
 * clock does not go on, and the older handle's store counts in full as a touch of now. A stamp of
 * the future is usually of a touch after the clock was read: it counts as now, and stays, also if
 * it adds nothing now. Only a stamp that is further ahead is replaced.
 */

#ifndef PLAIN
#define PLAIN 0
#endif
#ifndef CHECKED
#define CHECKED 0
#endif
#ifndef LOOKS
#define LOOKS 0
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef CANCELS
#define CANCELS 0
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef FUTURE
#define FUTURE 0	/* plain touches are so many ticks ahead */
#endif
#ifndef LIVES
#define LIVES 2
#endif
#ifndef LAST
#define LAST 4		/* last tick */
#endif

#define TIMEOUT 1
#define STALE 3		/* most ticks that pass between a reading of the clock and its use */
#define NONE 0

#define FREE 0
#define ARMED 1
#define TAKEN 2

/* The lock guards the token. */
bit locked;
byte gen = 1;
byte state = FREE;
byte due;

/* The lock does not guard the token's word. */
byte wgen;
byte stamp;

byte now = 1;

/* Ghosts exist only in the model. */
byte given;		/* handles up to this generation are known to users */
bit alive;		/* the word stands for a pending token */
bit spoiled;		/* a store that was not for this life has overwritten the word */
bit fresh;		/* a user has stored to the word since it was last judged */
byte promise;		/* the token must not come before this tick */
byte users = PLAIN + CHECKED;
byte faults = FAULTS;

#define FOREIGN (sg != gen)
#define AHEAD (!FOREIGN && ss > n)
#define FAR_AHEAD (!FOREIGN && ss > n + STALE)

#ifdef BUG_FUTURE_STAYS
#define SETTLES FOREIGN
#elif defined(BUG_NEAR_SETTLED)
#define SETTLES (FOREIGN || AHEAD)
#elif defined(BUG_FOREIGN_STAYS) || defined(BUG_FOREIGN_IGNORED)
#define SETTLES FAR_AHEAD
#else
#define SETTLES (FOREIGN || FAR_AHEAD)
#endif

inline lock()
{
	atomic { !locked -> locked = 1; n = now }
}

inline unlock()
{
	d_step { locked = 0; n = 0; sg = 0; ss = 0; pg = 0; ps = 0; to = 0; had = 0 }
}

/* The kernel resets the word for a life that begins or goes on. */
inline reset_word()
{
	wgen = gen; stamp = NONE; alive = 1; spoiled = 0; fresh = 0
}

proctype plain()
{
	byte h, t;

	atomic {
		given > 0;
		select(h : 1 .. given);
		t = now + FUTURE
	};
	d_step {
		wgen = h;
		stamp = t;
		fresh = 1;
		spoiled = spoiled || h != gen || !alive;
		if
#ifndef STILL
		:: h != gen && promise > due -> promise = due
#endif
		:: h == gen && alive && promise > due ->
			promise = (t + 1 + TIMEOUT > due -> t + 1 + TIMEOUT : due)
		:: else
		fi;
		users--; h = 0; t = 0
	}
}

proctype checked()
{
	byte h, t, sg, ss;

	atomic {
		given > 0;
		select(h : 1 .. given);
		t = now
	};
#define KEPT (alive && gen == h && promise < t + 1 + TIMEOUT -> t + 1 + TIMEOUT : promise)
#ifndef BUG_CHECKED_OLDER
#define AS_LATE (wgen == h && stamp >= t)	/* a stamp is not 0 */
#else
#define AS_LATE false
#endif
	do
	:: d_step { AS_LATE ->
		assert((alive && gen == h) || spoiled);
		promise = KEPT };
		break
	:: d_step { !AS_LATE -> sg = wgen; ss = stamp } ->
		if
		:: d_step { sg != h && wgen == sg && stamp == ss ->
			assert(!(alive && gen == h) || spoiled) };
			break
		:: d_step { sg == h && wgen == sg && stamp == ss ->
			assert((alive && gen == h) || spoiled);
			stamp = t;
			fresh = 1;
			promise = KEPT };
			break
		:: wgen != sg || stamp != ss
		fi
	od;
	atomic { users--; h = 0; t = 0; sg = 0; ss = 0 }
}

#ifdef BUG_CLEAR_AHEAD
#define MAY_ADD false
#else
#define MAY_ADD (pg == gen && ps > n)	/* the word may raise the token when its tick has come */
#endif

#ifdef BUG_CLEAR_STORES
#define CLEARS (ps == NONE)
#else
#define CLEARS false
#endif

/*
 * Finds out which word pg, ps replaces the word sg, ss, and to which tick it raises
 * the token.
 */
inline weigh()
{
	pg = (SETTLES -> gen : sg);
	ps = (SETTLES -> n : ss);
	if
#ifdef BUG_FOREIGN_IGNORED
	:: pg != gen -> to = 0
#else
	:: pg != gen -> to = n + 1 + TIMEOUT
#endif
	:: pg == gen && ps == NONE -> to = 0
	:: pg == gen && ps != NONE -> to = (ps > n -> n : ps) + 1 + TIMEOUT
	fi;
	if
	:: to <= due && !MAY_ADD -> pg = gen; ps = NONE
	:: else
	fi
}

/* Reads the word, keeps it as sg, ss, and raises the due tick as the word says. */
inline judge()
{
	d_step { sg = wgen; ss = stamp; had = fresh; fresh = 0; weigh() };
	do
	:: pg == sg && ps == ss -> break
	:: else ->
		if
		:: d_step { (wgen == sg && stamp == ss) || CLEARS ->
			wgen = pg; stamp = ps; sg = pg; ss = ps; spoiled = 0 };
			break
		:: d_step { !((wgen == sg && stamp == ss) || CLEARS) ->
#if defined(BUG_CLEAR_ONCE) || defined(BUG_FOREIGN_ONCE)
			ps = stamp;
			to = (ps == NONE -> 0 : (ps > n -> n : ps) + 1 + TIMEOUT);
#ifdef BUG_CLEAR_ONCE
			to = 0;
#endif
			sg = wgen; ss = stamp; had = 1 };
			break
#else
			sg = wgen; ss = stamp; had = 1; weigh() }
#endif
		fi
	od;
	atomic {
		if
		:: to > due -> assert(had); due = to
		:: else
		fi;
		/* A touch after the reading of the clock counts in full at the next look. */
		fresh = fresh || (AHEAD && !FAR_AHEAD);
		pg = 0; ps = 0; to = 0; had = 0
	}
}

/* The caller has the lock. The handle is known to users when the lock is released. */
inline register()
{
	assert(state == FREE);
#ifndef BUG_REGISTER_KEEPS
	d_step { reset_word() };
#else
	alive = 1;
#endif
	d_step { state = ARMED; due = n + TIMEOUT; promise = due; given = gen }
}

inline finish()
{
	if
	:: d_step { faults > 0 -> faults-- } ->
#ifndef BUG_PUT_BACK_KEEPS
		d_step { reset_word() };
#else
		d_step { alive = 1; spoiled = 0 };
#endif
		state = ARMED
	:: d_step { state = FREE; gen++; promise = 0 };
		if
		:: gen <= LIVES -> register()
		:: else
		fi
	fi
}

proctype taker()
{
	byte n, sg, ss, pg, ps, to;
	bit had;

	lock();
	register();
	unlock();
	do
	:: atomic { !locked && state == ARMED && due <= now -> locked = 1; n = now };
again:
		judge();
		if
		:: due > n
		:: due <= n ->
#ifdef BUG_TAKE_STORES
			d_step { wgen = 0; stamp = NONE;
#else
			if
			:: wgen != sg || stamp != ss -> goto again
			:: d_step { wgen == sg && stamp == ss -> wgen = 0; stamp = NONE;
#endif
				alive = 0;
				state = TAKEN;
				assert(now >= promise)
			};
#ifndef BUG_TAKE_STORES
			fi;
#endif
			unlock();
			lock();
			finish()
		fi;
		unlock()
	:: atomic { !locked && state == FREE && gen <= LIVES -> locked = 1; n = now };
		register();
		unlock()
	:: users == 0 && state == FREE && gen > LIVES -> break
	/* The clock stops before the last deadline, and the model ends here. */
	:: users == 0 && now == LAST && state == ARMED && due > LAST -> break
	od
}

proctype looker()
{
	byte n, sg, ss, pg, ps, to;
	bit had;

	lock();
	if
	:: state == ARMED -> judge(); judge()
	:: else
	fi;
	unlock()
}

proctype mover()
{
	byte n, sg, ss, pg, ps, to;
	bit had;

	lock();
	if
	:: state == ARMED ->
		judge();
		due = n;
		/* A touch in between came before the move. */
		d_step { reset_word(); promise = n }
	:: else
	fi;
	unlock()
}

proctype canceller()
{
	byte n, sg, ss, pg, ps, to;
	bit had;

	lock();
	if
	:: state == ARMED ->
		judge();
		state = TAKEN;
#ifndef BUG_CANCEL_KEEPS
		d_step { wgen = 0; stamp = NONE; alive = 0 };
#else
		alive = 0;
#endif
		d_step { state = FREE; gen++; promise = 0 }
	:: else
	fi;
	unlock()
}

proctype clock()
{
	do
#ifdef STILL
	:: d_step { !locked && now < LAST -> now++ }
#else
	:: now < LAST -> now++
#endif
	:: now == LAST -> break
	od
}

#define SPAWN(count, what) i = 0; do :: i < count -> run what(); i++ :: else -> break od

init {
	byte i;

	atomic {
		run taker();
		SPAWN(PLAIN, plain);
		SPAWN(CHECKED, checked);
		SPAWN(LOOKS, looker);
		SPAWN(MOVES, mover);
		SPAWN(CANCELS, canceller);
		run clock()
	}
}
