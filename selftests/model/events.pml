/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * events.pml: the event ring between the kernel, which produces, and consumers that map it.
 *
 * What is modelled, and where it is in the module:
 *   poller     tw_events_fill() in kmod/events.c with kmod/event_ring.c, under the ring's lock: reads what
 *              has been consumed, writes events as far as there is room, then says so; tells whether
 *              there is something to consume, or may be
 *   consumer   as <linux/timewheel.h> has it: reads what has been produced, uses the events, then says so;
 *              polls when it finds none, waits when that says no; another takes its place at any time
 *   other      somebody else's poll of the same wheel
 *   expiry     makes tokens due, and wakes
 *
 * An event is two words, to see a torn one. Memory is weak here: what has no order in the code happens in
 * either order. A release comes after what was before it, an acquire before what follows. The BUG_
 * values that take one of them away let the two sides of it change places.
 *
 * Bounds: a ring of SIZE events, EVENTS in all, which is more than once around; MAX taken at a time.
 *
 * Properties, for every interleaving:
 *   P3  the consumer uses each event exactly once, whole, in order
 *   P5  none is lost: when all else is over, all have been used (if not, somebody stands still: an
 *       invalid end state); none is overwritten that was not said to be consumed, also when an index is
 *       said that is none (NONSENSE)
 *   bounds: never more is written than the ring holds
 *
 * Seeded bugs, each must be found: BUG_TAIL_EARLY, BUG_TAIL_LATE, BUG_HEAD_EARLY, BUG_HEAD_LATE,
 * BUG_TRUST_HEAD, BUG_TELL_PRODUCED, BUG_FULL_IS_NO, BUG_NO_LOCK.
 */

#ifndef SIZE
#define SIZE 2
#endif
#ifndef EVENTS
#define EVENTS 5
#endif
#ifndef OTHERS
#define OTHERS 0
#endif
#ifndef NONSENSE
#define NONSENSE 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif

#define MAX 2

/* Shared memory; events are numbered from 1 on. */
byte lo[SIZE];
byte hi[SIZE];
byte tail;
byte head;

bit ring_lock;
byte made;		/* produced so far, the kernel's own figure */

/* The wheel. */
byte due;		/* expired and not yet taken */
byte left = EVENTS;	/* not yet expired */
bit woken;

/* Ghosts. */
byte used;		/* events used, which a new consumer cannot know */
byte said;		/* of those, how many the consumers said they had consumed */
byte nonsense = NONSENSE;
byte restarts = RESTARTS;

/* Indices wrap at 256 here. What is beyond the ring either way is no room. */
#define USED(h) ((made - (h)) & 255)
#ifndef BUG_TRUST_HEAD
#define ROOM(h) (USED(h) < SIZE -> SIZE - USED(h) : 0)
#else
#define ROOM(h) ((SIZE - USED(h)) & 255)
#endif

/* Whole events of the number are written into their slots. */
inline write_event()
{
	d_step {
		assert(made + i - said < SIZE);
		lo[(made + i) % SIZE] = made + i + 1
	};
	hi[(made + i) % SIZE] = made + i + 1
}

inline write_events()
{
	i = 0;
	do
	:: i < n -> write_event(); i++
	:: else -> break
	od;
	i = 0
}

/* As many as are due and fit. */
inline take()
{
	d_step {
		n = ROOM(h);
		n = (n > MAX -> MAX : n);
		n = (n > due -> due : n);
		due = due - n
	}
}

/* yes: what the poll says. */
inline fill()
{
#ifndef BUG_NO_LOCK
	atomic { !ring_lock -> ring_lock = 1 };
#endif
	yes = 0;
	more = 1;
	do
	:: more ->
#ifdef BUG_HEAD_LATE
		/* Events may be written before the index is read: as if there were room. */
		h = made;
		take();
		write_events();
		h = head;
#else
		h = head;		/* acquire */
		if
		:: ROOM(h) == 0 -> break
		:: else
		fi;
		take();
#ifdef BUG_TAIL_EARLY
		d_step { tail = made + n };
#endif
		write_events();
#endif
		atomic {
			made = made + n;
			tail = made;	/* release */
			yes = yes || n > 0;
			more = due > 0;
			n = 0
		}
	:: !more -> break
	od;
#ifdef BUG_TELL_PRODUCED
	skip;
#elif defined(BUG_FULL_IS_NO)
	yes = !more && tail != head;
#else
	yes = more || tail != head;
#endif
	d_step { ring_lock = 0; more = 0; h = 0 }
}

inline use(number)
{
	assert(l == number && g == number);
	assert(used == number - 1);
	used = number
}

proctype consumer()
{
	byte n, i, h, at, to, l, g;
	bit yes, more;

again:
	at = head;
#ifdef BUG_TAIL_LATE
	/* Events may be read before the index is. */
	l = lo[at % SIZE];
	g = hi[at % SIZE];
	to = tail;
#else
	to = tail;			/* acquire */
#endif
	do
	:: at != to ->
#ifdef BUG_HEAD_EARLY
		d_step { head = at + 1; said = head };
#endif
#ifndef BUG_TAIL_LATE
		l = lo[at % SIZE];
		g = hi[at % SIZE];
#endif
		d_step { use(at + 1); l = 0; g = 0; at++ }
#ifdef BUG_TAIL_LATE
		to = at;
#endif
	:: else -> break
	od;
	if
	:: d_step { nonsense > 0 && at < EVENTS -> nonsense--; head = at + 100 };
		fill();
		yes = 0
	:: d_step { nonsense > 0 && at < EVENTS -> nonsense--; head = (at + 200) & 255 };
		fill();
		yes = 0
	:: true
	fi;
	d_step { head = at; said = at };	/* release */
	if
	/* It dies, and another goes on with what it finds. */
	:: d_step { restarts > 0 -> restarts--; at = 0; to = 0 }; goto again
	:: at == EVENTS -> goto out
	:: else
	fi;
	/* Empty: poll, and wait when that says no. What woke it before counts for nothing. */
	woken = 0;
	fill();
	if
	:: yes -> yes = 0; goto again
	:: else
	fi;
	woken;
	goto again;
out:
	assert(used == EVENTS)
}

proctype other()
{
	byte n, i, h;
	bit yes, more;

	fill();
	yes = 0
}

proctype expiry()
{
	do
	:: d_step { left > 0 -> left--; due++; woken = 1 }
	:: left == 0 -> break
	od
}

init {
	byte i;

	atomic {
		run consumer();
		run expiry();
		do
		:: i < OTHERS -> run other(); i++
		:: else -> break
		od
	}
}
