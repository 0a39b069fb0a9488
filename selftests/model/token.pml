/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * token.pml: the life of a token: its state word, its list, and the operations that change them.
 *
 * What is modelled, and where it is in the module:
 *   toucher     tw_ring_touch() in kmod/ring.h: it raises the due tick without any lock, by
 *               compare-and-swap of the whole word
 *   mover       tw_ring_move() in kmod/ring.c: it lowers or raises the due tick under the wheel's
 *               lock and files the token again
 *   canceller   tw_ring_cancel() in kmod/ring.c: under the lock the token becomes FREE, with the
 *               next generation
 *   adder       tw_ring_register() in kmod/ring.c: under the lock it takes a free slot of the
 *               arena, stores the word, and files the token
 *   take()      tw_look_take() in kmod/look.c: under the lock a reader looks at the list that comes
 *               first. A token there whose word says that it is due is taken (ARMED -> TAKEN). Any
 *               other token is filed again.
 *   give()      tw_events_copy() in kmod/events.c: it copies tokens to user space without the lock,
 *               in the order in which they were taken, up to the first fault
 *   finish()    tw_wheel_finish() in kmod/wheel.c: under the lock tw_look_delivered() in
 *               kmod/look.c frees the tokens that were copied, and tw_look_put_back() there makes
 *               the others pending again: each is filed by its due tick
 *
 * Every read, store and compare-and-swap of a word is a step of its own. The lists are only seen
 * under the lock. A list is known by the tick on which it is looked at, which stands for the work
 * of kmod/levels.c. A ghost, the number of its registration, is a token's true identity, which the
 * generation has to stand for. Memory is sequentially consistent here.
 *
 * Bounds: 2 slots, ticks 1..3, batches of 2, one or two readers, a few operations of each kind with
 * handles that may be old. The clock only grows. The model alarm.pml shows how readers are woken.
 * In this model a reader runs as soon as a list is due. See check.sh for the scenarios.
 *
 * Properties, for every interleaving:
 *   P1  no token is taken or delivered before the tick last promised by register, touch or move
 *   P3  each registration ends exactly once: delivered or cancelled
 *   P4  a touch that returned success holds: nobody delivers before its tick (P1's assertion), and
 *       a touch fails only if the registration was taken or had ended
 *   P5  nothing is lost: when all other processes have ended, the readers end every registration
 *       (otherwise they stand still, which is an invalid end state)
 *   order: a reader takes the token with the earliest due tick of all that are pending, and copies
 *       its tokens in the order of their due ticks, also after a put-back
 *   filed: at each unlock an armed token is in a list no later than its due tick, and any other
 *       token is in no list
 *   stale: an operation succeeds only on the registration that its handle was made for
 */

#ifndef READERS
#define READERS 1
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef TOUCHES
#define TOUCHES 0
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef CANCELS
#define CANCELS 0
#endif
#ifndef ADDS
#define ADDS 0
#endif
#ifndef FIRST
#define FIRST 2		/* tokens registered at the start */
#endif

#define NONE 7
#define LAST 3

#define FREE 0
#define ARMED 1
#define TAKEN 2

/* These variables are the state words. */
byte due[2];
byte state[2];
byte gen[2];

/* The lock guards the wheel. */
bit locked;
byte filed[2] = NONE;

byte now = 1;

/* User space knows the handle that was last published for each slot. */
byte handle[2] = 255;	/* no handle was ever given out */
byte handle_reg[2] = 255;

/* Ghosts exist only in the model. */
byte reg[2];		/* the live registration of a slot, 0 if none */
byte regs;		/* registrations so far */
byte promise[2];	/* the token must not come before this tick */
byte users;		/* processes that may still change something */
byte faults = FAULTS;

#define NEXT (filed[0] < filed[1] -> filed[0] : filed[1])

/* Token t is put back to this list, and is due up to this tick while it is on its list. */
#ifdef BUG_PUT_BACK_FRONT
#define PUT_BACK_TO 0
#define LIMIT (filed[t] == 0 -> n : filed[t])
#else
#define PUT_BACK_TO due[t]
#define LIMIT filed[t]
#endif

#define FILED_OK(t) ((state[t] == ARMED && filed[t] <= due[t]) || \
		     (state[t] != ARMED && filed[t] == NONE))

inline unlock()
{
	d_step { assert(FILED_OK(0) && FILED_OK(1)); locked = 0 }
}

/* A registration ends: its token was delivered or cancelled. */
inline end(r)
{
	assert(r != 0 && reg[t] == r);
	reg[t] = 0;
	promise[t] = 0
}

inline next_gen()
{
#ifndef BUG_KEEP_GENERATION
	gen[t]++
#else
	skip
#endif
}

/*
 * The variables of a user: its handle {t, hg} with the ghost hr, the word as read,
 * the new due tick.
 */
#define USER_VARS byte t, hg, hr, wd, nd

/*
 * A process has ended. Its variables are cleared, because this keeps the number of
 * states small.
 */
inline leave()
{
	d_step { users--; t = 0; hg = 0; hr = 0; wd = 0; nd = 0 }
}

inline pick_handle()
{
	atomic {
		select(t : 0 .. 1);
		hg = handle[t];
		hr = handle_reg[t];
		select(nd : 2 .. LAST)
	}
}

#define LIVE (state[t] == ARMED && gen[t] == hg)
#define UNCHANGED (LIVE && due[t] == wd)

proctype toucher()
{
	USER_VARS;

	pick_handle();
	do
	:: d_step { !LIVE ->
		assert(reg[t] != hr || state[t] == TAKEN) } ->
		break
	:: d_step { LIVE && nd <= due[t] ->
		assert(reg[t] == hr);
		promise[t] = (promise[t] < nd -> nd : promise[t]) } ->
		break
	:: d_step { LIVE && nd > due[t] -> wd = due[t] } ->
		if
#ifdef BUG_TOUCH_STORE
		:: d_step {
			due[t] = nd; state[t] = ARMED; gen[t] = hg;
			promise[t] = nd } ->
			break
#else
		:: d_step { UNCHANGED ->
			assert(reg[t] == hr);
			due[t] = nd;
			promise[t] = nd } ->
			break
		:: !UNCHANGED
#endif
		fi
	od;
	leave()
}

/*
 * Move and cancel exchange the word without a comparison: the lock keeps all operations but touches
 * away, and a touch that they overwrite came before them.
 */
proctype mover()
{
	USER_VARS;

	pick_handle();
	nd--;
	atomic { !locked -> locked = 1 }
	if
	:: !LIVE
	:: d_step { LIVE ->
		assert(reg[t] == hr);
		due[t] = nd;
		promise[t] = nd };
#ifndef BUG_MOVE_KEEPS_LIST
		filed[t] = nd;
#endif
	fi;
	unlock();
	leave()
}

proctype canceller()
{
	USER_VARS;

	pick_handle();
	atomic { !locked -> locked = 1 }
	if
	:: !LIVE
	:: d_step { LIVE ->
		end(hr);
		state[t] = FREE;
		next_gen() };
		filed[t] = NONE
	fi;
	unlock();
	leave()
}

/*
 * The caller has the lock, and slot t is free. A touch may come before the token is
 * filed.
 */
inline add(tick)
{
	d_step {
		due[t] = tick;
		state[t] = ARMED;
		regs++;
		reg[t] = regs;
		promise[t] = tick;
		handle[t] = gen[t];
		handle_reg[t] = reg[t]
	}
	filed[t] = tick
}

proctype adder()
{
	byte t, nd;

	atomic {
		!locked && (state[0] == FREE || state[1] == FREE) ->
		locked = 1;
		if
		:: state[0] == FREE -> t = 0
		:: state[1] == FREE -> t = 1
		fi;
		select(nd : 1 .. LAST)
	};
	add(nd);
	unlock();
	d_step { users--; t = 0; nd = 0 }
}

inline take()
{
	do
	:: NEXT <= n ->
		d_step {
			t = (filed[0] <= filed[1] -> 0 : 1);
			wd = due[t]
		};
		if
		:: wd > LIMIT ->
			filed[t] = wd	/* a touched token is filed again */
#ifdef BUG_TAKE_STORE
		:: else -> d_step {
			due[t] = wd;
#else
		:: d_step { wd <= LIMIT && due[t] != wd -> skip }
		:: d_step { wd <= LIMIT && due[t] == wd ->
			assert(state[t] == ARMED);
#endif
			state[t] = TAKEN;
			filed[t] = NONE;
			assert(now >= promise[t]);
			assert(state[1 - t] != ARMED || due[1 - t] >= due[t]);
			first = (mine[1 - t] == 0 -> t : first);
			mine[t] = reg[t] }
		fi
	:: else -> break
	od
}

/*
 * A fault may end the copying before any token. The tokens that were copied have been
 * delivered.
 */
inline give()
{
	copy(first);
	copy(1 - first)
}

inline copy(i)
{
	t = i;
	if
	:: mine[t] == 0 || fault
	:: d_step { mine[t] != 0 && !fault -> deliver() }
	:: d_step { mine[t] != 0 && !fault && faults > 0 -> faults--; fault = 1 }
	fi
}

inline deliver()
{
	assert(now >= promise[t]);
	assert(!copied[first] || due[first] <= due[t]);
	end(mine[t]);
	copied[t] = 1
}

/*
 * Under the lock again, a token that was copied is freed, and any other token is put
 * back.
 */
inline finish(i)
{
	t = i;
	if
	:: mine[t] == 0
	:: mine[t] != 0 && copied[t] ->
		d_step { state[t] = FREE; next_gen() }
	:: mine[t] != 0 && !copied[t] ->
#ifdef BUG_PUT_BACK_FORGETS
		if
		:: i == 1 && !copied[0] && mine[0] != 0
		:: else -> filed[t] = PUT_BACK_TO
		fi;
#else
		filed[t] = PUT_BACK_TO;
#endif
		d_step {
			assert(state[t] == TAKEN && reg[t] == mine[t]);
			state[t] = ARMED;
#ifdef BUG_PUT_BACK_GENERATION
			next_gen()
#endif
		}
	fi
}

proctype reader()
{
	byte n, t, wd;
	byte mine[2];		/* the registrations in the batch */
	bit copied[2], fault;
	bit first;		/* the slot of the token that was taken first */

	do
	:: atomic { !locked && NEXT <= now -> locked = 1; n = now };
		take();
		unlock();
		give();
		atomic { !locked -> locked = 1 };
		finish(0);
		finish(1);
		d_step {
			mine[0] = 0; mine[1] = 0;
			copied[0] = 0; copied[1] = 0;
			fault = 0; first = 0; n = 0; t = 0; wd = 0
		};
		unlock()
	:: users == 0 && reg[0] == 0 && reg[1] == 0 -> break
	od
}

proctype clock()
{
	do
	:: now < LAST -> now++
	:: else -> break
	od
}

#define SPAWN(count, what) i = 0; do :: i < count -> run what(); i++ :: else -> break od

init {
	byte t, i;

	atomic {
		do
		:: t < FIRST -> add(t + 1); t++
		:: else -> break
		od;
		t = 0;
		users = TOUCHES + MOVES + CANCELS + ADDS;
		SPAWN(READERS, reader);
		SPAWN(TOUCHES, toucher);
		SPAWN(MOVES, mover);
		SPAWN(CANCELS, canceller);
		SPAWN(ADDS, adder);
		run clock()
	}
}
