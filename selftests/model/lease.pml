/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lease.pml: the life of a token on a wheel with leases: what a delivery is, and which operations
 * end it. The model alarm.pml shows how many deliveries may be out, and who is woken when there is
 * room.
 *
 * What is modelled, and where it is in the module:
 *   look()     tw_look_take() in kmod/look.c: tw_delivery_end_leases() in kmod/delivery.c arms the
 *              token if its lease is over. If the token is armed and due, the reader takes it:
 *              tw_delivery_begin() in kmod/delivery.c numbers the delivery.
 *   copy()     tw_events_copy() in kmod/events.c: the event is copied without the lock
 *   done()     tw_delivery_done() in kmod/delivery.c: the token is held; or, after a fault,
 *              tw_look_put_back() in kmod/look.c: it is pending again, filed by its due tick
 *   answerer   tw_delivery_check(), then tw_delivery_ack(), tw_delivery_nack() or
 *              tw_delivery_extend() in kmod/delivery.c, by the handle and number of a delivery that
 *              a reader knows
 *   release()  tw_named_release() in kmod/device.c and tw_delivery_return() in kmod/delivery.c:
 *              after the file's last read the tokens that the file holds are due again, and then
 *              the holder's memory is freed
 *   toucher    tw_ring_touch() in kmod/ring.h: it raises the due tick without the lock, by
 *              compare-and-swap of the whole word
 *   deleter    tw_delivery_delete() in kmod/delivery.c
 *   adder      tw_ring_register() in kmod/ring.c: it registers another token with the same id in
 *              the same place
 *
 * The word is {due, state, gen}. Only touches change it without the lock. An exchange of the word
 * by another operation under the lock is therefore one step. Memory is sequentially consistent
 * here.
 *
 * Bounds: one place, two registrations, ticks 1..LAST, leases of LEASE ticks, two readers with a
 * file each, of which the second file is released, and a few operations of each kind. The clock
 * only grows.
 *
 * Properties, for every interleaving:
 *   P1  no reader takes the token before the tick last promised by register, touch or nack, and no
 *       lease ends before a tick that was promised as its end
 *   P3  each registration ends once: acked or deleted
 *   P4  a touch fails only if the token was not pending
 *   P5  when all other processes have ended, the first reader ends every registration (otherwise it
 *       stands still, which is an invalid end state)
 *   filed   at each unlock an armed token is in a list no later than its due tick, and nobody holds
 *           it; a held token has a holder; any other token is in no list, and nobody holds it
 *   answer  an answer that is accepted is to the delivery that is out
 *   number  the deliveries of a registration that readers know are numbered 1, 2, 3, ...
 *   holder  nobody looks at a holder whose file has been released
 *
 * With BY_ID answers name the id instead: an older life's answer can then meet a newer life's
 * delivery of the same number, which is why there are handles.
 */

#ifndef TOUCHES
#define TOUCHES 0
#endif
#ifndef ANSWERS
#define ANSWERS 0
#endif
#ifndef DELETES
#define DELETES 0
#endif
#ifndef ADDS
#define ADDS 0
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef LEAVES
#define LEAVES 0	/* 1 if there is a second reader, whose file is released */
#endif
#ifndef LAST
#define LAST 3
#endif

#ifndef LEASE
#define LEASE 1
#endif

#define NONE 15
#define NOBODY 3

#define FREE 0
#define ARMED 1
#define TAKEN 2
#define HELD 3

/* These variables are the word. */
byte due;
byte state = FREE;
byte gen = 1;

/* The lock guards the rest of the token. */
bit locked;
byte filed = NONE;
byte holder = NOBODY;
byte end;		/* end of the lease */
byte number;		/* number of the last delivery */

byte now = 1;

/* Readers know the handle and the number of their last delivery. */
byte told_gen[2];
byte told_number[2];

/* Ghosts exist only in the model. */
bit alive;		/* the registration has not ended */
bit pending;		/* the token can be touched, whatever the word says in between */
bit gone[2];		/* the holder's memory is freed */
byte delivery;		/* number of the delivery that is out, of all deliveries, or 0 */
byte deliveries;
byte copied;		/* deliveries of this registration that readers know */
byte told[2];
byte promise;		/* the token must not come before this tick */
byte users;		/* processes that may still change something */
byte faults = FAULTS;

#define FILED_OK \
	((state == ARMED -> filed <= due : filed == NONE) && \
	 (state == HELD) == (holder != NOBODY))

/* A section under the lock in which the word changes once is one step. */
#define SECTION d_step { !locked -> n = now;
#define END_SECTION ; assert(FILED_OK); n = 0 }

inline arm(when)
{
	due = when; filed = when; state = ARMED; pending = 1; promise = when;
	end = 0
}

/* Nobody holds the token any more. The holder is looked at for the last time. */
inline let_go()
{
	assert(holder != NOBODY && !gone[holder]);
	holder = NOBODY;
	delivery = 0
}

inline over()
{
	assert(alive);
	alive = 0; pending = 0; promise = 0;
	state = FREE; due = 0; filed = NONE; end = 0; gen++
}

inline leave()
{
	users--
}

/* A program touches the token by a handle that was the last one at some time. */
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

/*
 * A look ends the lease if it is over, files a touched token again, and takes a token
 * that is due.
 */
inline look()
{
	d_step { !locked && (filed <= now || (state == HELD && end <= now)) ->
		locked = 1;
		n = now;
		if
		:: state == HELD && end <= n ->
			assert(n >= promise);
#ifndef BUG_LAPSE_HOLDS
			let_go();
#endif
			arm(end)
		:: else
		fi;
		do
		:: filed <= n && due > n -> filed = due
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
		number++;
		deliveries++;
		took = deliveries;
		locked = 0 }
#ifndef BUG_TAKE_STORE
	:: d_step { filed <= n && due != wd -> locked = 0 }	/* touched meanwhile */
#endif
	fi;
	d_step { assert(FILED_OK); n = 0; wd = 0 }
}

/*
 * The event is copied, unless there is a fault. After a fault the reader does not
 * know the delivery.
 */
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
#ifndef BUG_NUMBER_STAYS
			number--;
#endif
			filed = due; state = ARMED; pending = 1
		:: else ->
			copied++;
			assert(!gone[me] && number == copied);
			state = HELD; end = n + LEASE; promise = end;
			holder = me; delivery = took
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

/*
 * The first reader stays until all registrations have ended, and answers the last
 * delivery.
 */
proctype reader()
{
	byte me = 0, n, wd, took;
	bit fault;

	do
	:: read()
	:: atomic { users == 0 && !locked && holder == me -> let_go(); over() }
	:: users == 0 && !locked && !alive -> break
	od
}

/*
 * A release takes back the token that the second reader holds. Then the holder's
 * memory is freed.
 */
inline release()
{
	SECTION
		if
#ifndef BUG_RELEASE_FORGETS
		:: holder == 1 -> let_go(); arm(n)
#endif
		:: else
		fi
	END_SECTION;
	gone[1] = 1
}

/* The file of the second reader is released after its last read. */
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

/* An answer is to a delivery that a reader knows, and comes from any file. */
proctype answerer()
{
	byte n, hg, hn, hd, tick, what;

	if
	:: atomic { told[0] -> hg = told_gen[0]; hn = told_number[0]; hd = told[0] }
#if LEAVES
	:: atomic { told[1] -> hg = told_gen[1]; hn = told_number[1]; hd = told[1] }
#endif
	:: goto out
	fi;
	atomic {
		select(tick : 1 .. 2);
		select(what : 0 .. 2)
	};
	SECTION
		if
		:: state == HELD && BY_NAME && BY_NUMBER ->
			assert(delivery == hd);
			if
			:: what == 0 -> let_go(); over()
			:: what == 1 -> let_go(); arm(n + tick - 1)
			:: what == 2 ->
				promise = (promise < n + tick -> n + tick : promise);
#ifndef BUG_EXTEND_SHORTENS
				end = (end < n + tick -> n + tick : end)
#else
				end = n + tick
#endif
			fi
		:: else
		fi
	END_SECTION;
out:
	leave();
	d_step { hg = 0; hn = 0; hd = 0; tick = 0; what = 0 }
}

proctype deleter()
{
	byte n;

	SECTION
		if
		:: state == ARMED -> over()
		:: state == HELD -> let_go(); over()
#ifdef BUG_DELETE_TAKEN
		:: state == TAKEN -> over()
#endif
		:: else
		fi
	END_SECTION;
	leave()
}

inline add(tick)
{
	alive = 1; number = 0; copied = 0; arm(tick)
}

proctype adder()
{
	if
	:: d_step { !locked && state == FREE -> add(now) }
	:: true
	fi;
	leave()
}

/* The clock goes on until the last deadline. */
proctype clock()
{
end_of_time:
	do
	:: now < LAST -> now++
	:: now >= LAST && users == 0 && state == ARMED && now < filed -> now++
	od
}

#define SPAWN(count, what) i = 0; do :: i < count -> run what(); i++ :: else -> break od

init {
	byte i;

	atomic {
		d_step { add(1) };
		users = TOUCHES + ANSWERS + DELETES + ADDS + LEAVES;
		run reader();
		SPAWN(LEAVES, leaver);
#ifdef BUG_RELEASE_EARLY
		users++;
		run releaser();
#endif
		SPAWN(TOUCHES, toucher);
		SPAWN(ANSWERS, answerer);
		SPAWN(DELETES, deleter);
		SPAWN(ADDS, adder);
		run clock()
	}
}
