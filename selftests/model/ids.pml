/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ids.pml: a touch by id finds its token without a lock, while ids come and go.
 *
 * What is modelled, and where it is in the module:
 *   toucher    tw_ring_by_id() in kmod/ring.c looks the id up in the table, reads the token's word,
 *              and then the token's own id once more. tw_ring_touch() in kmod/ring.h then does a
 *              compare-and-swap of the word. When the due tick stays as it is, it reads the word
 *              again instead, because only that proves that the word and the id that were read
 *              belonged to one registration.
 *   canceller  tw_ring_cancel() in kmod/ring.c, by id, under the lock: the id leaves the table
 *   adder      tw_ring_register() in kmod/ring.c, under the lock: it registers an id unless the
 *              table has it
 *   reader     tw_look_take() in kmod/look.c takes the token: the id leaves the table. Then
 *              tw_look_delivered() in kmod/look.c frees the token, or after a fault
 *              tw_look_put_back() there makes it pending again: the id enters the table again
 *              unless a newer registration has it by now.
 *
 * Lists and the clock are left to token.pml. In this model a reader may take an armed token at any
 * time. Memory is sequentially consistent: the code reads the word with acquire before the token's
 * id, and stores the id before the word with release.
 *
 * Bounds: 2 slots, ids 1 and 2 of which 1 is touched, due ticks 1..2. See check.sh for the
 * scenarios.
 *
 * Properties, for every interleaving:
 *   right     a touch by id that succeeds has touched an armed registration of that id, which was
 *             in the table at some time during the call, and its due tick is no less than requested
 *   missing   if a touch by id finds nothing, the table had no armed token of that id at some time
 *             during the call
 *   one       at each unlock the token that the table has for an id is armed and has that id, and
 *             only an armed token that was put back may be missing from the table
 */

#ifndef ADDS
#define ADDS 2
#endif
#ifndef CANCELS
#define CANCELS 1
#endif
#ifndef READS
#define READS 1
#endif
#ifndef TOUCHERS
#define TOUCHERS 1
#endif

#define NONE 7

#define FREE 0
#define ARMED 1
#define TAKEN 2

/* These variables are the state words. */
byte due[2];
byte state[2];
byte gen[2];

byte id[2];		/* each token's id, stored under the lock, read without the lock */
byte table[3] = NONE;	/* slot of an id; written under the lock, read without the lock */
bit locked;

/* Ghosts exist only in the model. */
byte reg_id[2];		/* id of the registration that the slot holds or held */
bit orphan[2];		/* the token was put back while a newer registration had its id */
bit absent;		/* id 1 had no armed token in the table since the touch began */

#define GONE(i) (table[i] == NONE || state[table[i]] != ARMED)
#define NAMED_OK(i) (table[i] == NONE || (state[table[i]] == ARMED && id[table[i]] == i))
#define TOKEN_OK(t) (state[t] != ARMED || orphan[t] || table[id[t]] == t)

inline unlock()
{
	d_step {
		assert(NAMED_OK(1) && NAMED_OK(2));
		assert(TOKEN_OK(0) && TOKEN_OK(1));
		locked = 0
	}
}

/* A step that makes id 1 absent notes its absence. */
#define NOTE absent = absent || GONE(1)

proctype toucher()
{
	byte t, wd, wg, nd;
	bit same;

	atomic { select(nd : 1 .. 2); absent = GONE(1) };
again:
	atomic { t = table[1]; wd = 0; wg = 0; same = 0 };
	if
	:: t == NONE -> goto missing
	:: else
	fi;
	if
	:: atomic { state[t] == ARMED -> wd = due[t]; wg = gen[t]; same = (reg_id[t] == 1) }
	:: state[t] != ARMED -> goto missing
	fi;
#ifndef BUG_NO_ID_CHECK
	if
	:: id[t] != 1 -> goto again
	:: else
	fi;
#endif
	if
#ifdef BUG_NO_RECHECK
	:: nd <= wd -> assert(same); goto out
#else
	:: d_step { nd <= wd && state[t] == ARMED && gen[t] == wg && due[t] == wd ->
		assert(reg_id[t] == 1) } ->
		goto out
	:: nd <= wd && (state[t] != ARMED || gen[t] != wg || due[t] != wd) -> goto again
#endif
	:: nd > wd
	fi;
	if
	:: d_step { state[t] == ARMED && gen[t] == wg && due[t] == wd ->
		assert(reg_id[t] == 1);
		due[t] = nd } ->
		goto out
	:: state[t] != ARMED || gen[t] != wg || due[t] != wd -> goto again
	fi;
missing:
	assert(absent);
out:
	atomic { t = 0; wd = 0; wg = 0; nd = 0; same = 0 }
}

proctype adder()
{
	byte t, i, d;

	atomic {
		if
		:: !locked && state[0] == FREE -> t = 0
		:: !locked && state[1] == FREE -> t = 1
		:: goto out
		fi;
		locked = 1;
		select(i : 1 .. 2);
		select(d : 1 .. 2)
	};
	if
	:: table[i] != NONE
	:: else ->
#ifndef BUG_LATE_ID
		id[t] = i;
#endif
		table[i] = t;
		d_step {
			due[t] = d; state[t] = ARMED;
			reg_id[t] = i; orphan[t] = 0
		};
#ifdef BUG_LATE_ID
		id[t] = i;
#endif
	fi;
	unlock();
out:
	atomic { t = 0; i = 0; d = 0 }
}

proctype canceller()
{
	byte t, i;

	atomic { !locked -> locked = 1; select(i : 1 .. 2); t = table[i] };
	if
	:: t == NONE
	:: else ->
		d_step { state[t] = FREE; gen[t]++; NOTE };
		d_step { table[i] = NONE; NOTE }
	fi;
	unlock();
	d_step { t = 0; i = 0 }
}

proctype reader()
{
	byte t;

	if
	:: atomic { !locked && state[0] == ARMED -> locked = 1; t = 0 }
	:: atomic { !locked && state[1] == ARMED -> locked = 1; t = 1 }
	:: goto out
	fi;
	d_step { state[t] = TAKEN; NOTE };
	if
	:: table[id[t]] == t -> d_step { table[id[t]] = NONE; NOTE }
	:: else
	fi;
	unlock();
	atomic { !locked -> locked = 1 };
	if
	:: d_step { state[t] = FREE; gen[t]++ }
	:: d_step { state[t] = ARMED; orphan[t] = (table[id[t]] != NONE) };
		if
#ifndef BUG_PUT_BACK_STEALS
		:: table[id[t]] != NONE
		:: else -> table[id[t]] = t
#else
		:: table[id[t]] = t
#endif
		fi
	fi;
	unlock();
out:
	t = 0
}

#define SPAWN(count, what) i = 0; do :: i < count -> run what(); i++ :: else -> break od

init {
	byte i;

	atomic {
		SPAWN(TOUCHERS, toucher);
		SPAWN(ADDS, adder);
		SPAWN(CANCELS, canceller);
		SPAWN(READS, reader)
	}
}
