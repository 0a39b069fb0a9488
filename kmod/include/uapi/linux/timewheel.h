/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * timewheel: millions of timeouts behind one file descriptor.
 *
 * A wheel is a ring of slots turned by one timer. A token is one pending
 * timeout, named by a u64 id of its user's choice or by the handle that its
 * registration returned. Tokens are registered, touched, moved and cancelled
 * by ioctl; expired ones are read(2) as struct timewheel_event and announced
 * by poll(2), epoll(7) and io_uring.
 *
 * Each open of /dev/timewheel is one private wheel once TIMEWHEEL_IOC_SETUP has
 * succeeded on it. dup(2), fork(2) and SCM_RIGHTS share that wheel, which ends
 * with the last of them. A named wheel, made by TIMEWHEEL_IOC_CREATE, is a node
 * /dev/timewheels/NAME: each open of the node is the one wheel, which turns,
 * with or without anybody, until TIMEWHEEL_IOC_DESTROY. All calls may be made by
 * any number of threads and processes at once.
 *
 * A read ends a token, unless the wheel was set up with leases, or the token is
 * periodic: see "Leases" and "Periods".
 *
 * All times are u64 nanoseconds. Absolute times are those of the wheel's clock
 * as the calling process sees it: in a time namespace, with its offsets.
 * A tick is one step of the hand; ticks are numbered from the clock's zero.
 * A deadline is rounded up to a whole tick, never down.
 *
 * Conventions of every structure here: the layout is the same for 32 and 64
 * bit callers; @size is sizeof() the structure as the caller knows it, @flags
 * holds only flags that are defined for the call, reserved fields are zero.
 * A smaller @size than that of the first release, an undefined flag or a
 * non-zero reserved field is EINVAL; a larger @size is fine when what the
 * kernel does not know is zero, else E2BIG. A call that fails has changed
 * nothing, unless it says otherwise.
 *
 * Errors that every ioctl may give besides its own:
 *
 * ===========  ===============================================================
 * %EBADF       the call changes the wheel and the file is not open for writing,
 *              or lists its tokens and the file is not open for reading
 * %EBADFD      the call needs a wheel and the file has not been set up
 * %ENODEV      the call needs a wheel and the named one has been destroyed
 * %EFAULT      an address cannot be read or written
 * %EINVAL      @size too small, undefined flag, reserved field not zero
 * %E2BIG       @size is larger than the kernel knows and the rest is not zero,
 *              or larger than a page
 * %ENOTTY      no such command
 * ===========  ===============================================================
 */
#ifndef _UAPI_LINUX_TIMEWHEEL_H
#define _UAPI_LINUX_TIMEWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * Command numbers carry neither size nor direction: structures may grow, the
 * numbers stay.
 */
#define TIMEWHEEL_IOC_TYPE	0xBE

#define TIMEWHEEL_IOC_CAPS		_IO(TIMEWHEEL_IOC_TYPE, 0x00)
#define TIMEWHEEL_IOC_SETUP		_IO(TIMEWHEEL_IOC_TYPE, 0x01)
#define TIMEWHEEL_IOC_INFO		_IO(TIMEWHEEL_IOC_TYPE, 0x02)
#define TIMEWHEEL_IOC_OP		_IO(TIMEWHEEL_IOC_TYPE, 0x03)
#define TIMEWHEEL_IOC_BATCH		_IO(TIMEWHEEL_IOC_TYPE, 0x04)
#define TIMEWHEEL_IOC_TOUCH		_IO(TIMEWHEEL_IOC_TYPE, 0x05)
#define TIMEWHEEL_IOC_ADVANCE	_IO(TIMEWHEEL_IOC_TYPE, 0x06)
#define TIMEWHEEL_IOC_LIST		_IO(TIMEWHEEL_IOC_TYPE, 0x07)
#define TIMEWHEEL_IOC_CREATE	_IO(TIMEWHEEL_IOC_TYPE, 0x08)
#define TIMEWHEEL_IOC_DESTROY	_IO(TIMEWHEEL_IOC_TYPE, 0x09)
#define TIMEWHEEL_IOC_STATS		_IO(TIMEWHEEL_IOC_TYPE, 0x0a)
#define TIMEWHEEL_IOC_TOUCH_MANY	_IO(TIMEWHEEL_IOC_TYPE, 0x0b)
#define TIMEWHEEL_IOC_CONTROL	_IO(TIMEWHEEL_IOC_TYPE, 0x0c)

/* Most operations of one TIMEWHEEL_IOC_BATCH, and keys of one TIMEWHEEL_IOC_TOUCH_MANY. */
#define TIMEWHEEL_MAX_BATCH	65536

/* Number of the last tick: 223 years of 100 us. */
#define TIMEWHEEL_MAX_TICK	((1ULL << 46) - 1)

/* Room for the longest name of a wheel, 63 bytes, and the zero behind it. */
#define TIMEWHEEL_NAME_SIZE	64

/* Buckets of a histogram, see struct timewheel_stats. */
#define TIMEWHEEL_BUCKETS	252

/* How many leases long a token can be held, however often it is extended. */
#define TIMEWHEEL_MAX_LEASES	1000

/* A time that is never reached. */
#define TIMEWHEEL_NEVER		(~0ULL)

/**
 * enum timewheel_clock - what turns a wheel
 * @TIMEWHEEL_CLOCK_MONOTONIC: CLOCK_MONOTONIC: stands still while suspended
 * @TIMEWHEEL_CLOCK_BOOTTIME: CLOCK_BOOTTIME: goes on while suspended; what
 *	fell due meanwhile expires on resume, the machine is never woken for it
 * @TIMEWHEEL_CLOCK_REALTIME: CLOCK_REALTIME: wall time, which may be set: a
 *	token is due when the clock shows its deadline, however it got there
 * @TIMEWHEEL_CLOCK_MANUAL: moves only by TIMEWHEEL_IOC_ADVANCE
 */
enum timewheel_clock {
	TIMEWHEEL_CLOCK_MONOTONIC	= 0,
	TIMEWHEEL_CLOCK_BOOTTIME	= 1,
	TIMEWHEEL_CLOCK_REALTIME	= 2,
	TIMEWHEEL_CLOCK_MANUAL		= 3,
};

/**
 * struct timewheel_caps - TIMEWHEEL_IOC_CAPS: what this module can do
 * @size: in: sizeof(struct timewheel_caps)
 * @flags: in: 0
 * @clocks: out: bit n is set when clock n of enum timewheel_clock is there
 * @setup_flags: out: flags that TIMEWHEEL_IOC_SETUP knows
 * @codes: out: bit n is set when operation n of enum timewheel_code is there
 * @max_slots: out: most slots of a ring
 * @min_tick: out: shortest tick in ns (module parameter min_tick_ns)
 * @max_tick: out: longest tick in ns
 * @max_tokens: out: most tokens of a wheel (module parameter max_tokens)
 * @max_batch: out: most operations of one batch
 * @op_size: out: the module's sizeof(struct timewheel_op)
 * @event_size: out: sizeof(struct timewheel_event), which never changes
 * @reserved: in: 0
 *
 * Needs no set-up. Never blocks. Only the common errors.
 */
struct timewheel_caps {
	__u32	size;
	__u32	flags;
	__u32	clocks;
	__u32	setup_flags;
	__u32	codes;
	__u32	max_slots;
	__u64	min_tick;
	__u64	max_tick;
	__u64	max_tokens;
	__u32	max_batch;
	__u32	op_size;
	__u32	event_size;
	__u32	reserved;
};

/*
 * Flags of struct timewheel_setup.
 *
 * TIMEWHEEL_SETUP_NO_IDS: tokens have no id, only the handle that their registration
 *	returned: saves 16 bytes and a hash table entry each.
 * TIMEWHEEL_SETUP_NO_COOKIES: tokens carry no cookie: saves 8 bytes each.
 * TIMEWHEEL_SETUP_TOUCH_WORDS: tokens have touch words, which may be mapped. Costs 8
 *	bytes each, and touches by ioctl(2) take the wheel's lock.
 * TIMEWHEEL_SETUP_PERIODS: tokens may be periodic. Costs 48 bytes each, which a wheel
 *	with leases has anyway.
 */
#define TIMEWHEEL_SETUP_NO_IDS	(1U << 0)
#define TIMEWHEEL_SETUP_NO_COOKIES	(1U << 1)
#define TIMEWHEEL_SETUP_TOUCH_WORDS	(1U << 2)
#define TIMEWHEEL_SETUP_PERIODS	(1U << 3)

/*
 * Mapping
 *
 * What a wheel has to be mapped is at these offsets for mmap(2), each for its
 * whole length and MAP_SHARED, any number of times, by all who have it open. A
 * mapping keeps the file open. It cannot be split, grown, moved or given other
 * rights; it is inherited by fork(2), and not dumped with a core.
 *
 * mmap(2) fails with %EACCES not open for reading, or PROT_WRITE without being
 * open for writing; %EBADFD not set up; %EINVAL the wheel has no touch words,
 * another offset or length, MAP_PRIVATE, PROT_EXEC; %ENODEV the wheel has been destroyed. Later, munmap(2) of a part of it fails
 * with %EINVAL, mremap(2) with %EINVAL or %EFAULT, mprotect(2) with %EACCES.
 *
 * TIMEWHEEL_MAP_WORDS: touch words, 8 times max_tokens bytes, rounded up to
 *	whole pages; to read and write.
 */
#define TIMEWHEEL_MAP_WORDS	0ULL

/*
 * Touch words
 *
 * Handle h's word is the u64 at index (u32)h. To touch its token on tick t,
 * store there, as one u64,
 *
 *	(h & 0xffffffff00000000) | ((u32)t ? (u32)t : 1)
 *
 * The token is then due its whole timeout after the end of tick t, if that is
 * later than it was. A tick of the future counts as one of now. Nothing tells
 * whether the token was still there: if it was not, the store does nothing to
 * it, and if another token has its place by then, that one is touched instead:
 * late by one timeout at most.
 *
 * A checked touch tells. It reads the word and fails if its upper half is not that
 * of the handle. It is done if the stamp there, not 0, is not older than its own;
 * else it replaces the word by compare-and-swap, and begins anew if that fails.
 * It tells the truth if all touch so: a plain touch may undo a checked one of the
 * same moment; one by the handle of a token that has ended lets a checked one by
 * that handle succeed, and one of the token that has its place now fail, until
 * a reader or an operation comes by. Of two plain touches at once the earlier one
 * may win.
 *
 * A token is judged by its word when a reader comes to it, or an operation: GET
 * and LIST tell what it says by then. Who may map a wheel for writing can
 * make any of its tokens late, and none early. Where no token has been yet there
 * is no word: SIGBUS. A touch of a token without timeout does nothing. Timeouts
 * are less than 2^30 - 1 ticks, else ERANGE: so long may readers be away.
 */

/*
 * Leases
 *
 * On a wheel set up with a lease, a read does not end a token: it is held for
 * the reader until that has answered, at most until the lease is over. Each
 * delivery has a number, the event's @lease, one more than the one before: an
 * answer names the token, by id or handle, and that number.
 *
 *	pending --read--> held --ACK----------------------> ended
 *	   ^  ^            |---NACK, after its delay--+
 *	   |  |            |---lease over-------------+--> pending, or, after
 *	   |  |            |---file closed, at once---+    max_attempts, buried
 *	   |  |            +---BURY--------------> buried
 *	   |  +------KICK--------------------------------+
 *	   +---------KICK: due now
 *
 * A delivery is held by the open file that read it. When that is released, by
 * the exit of all who have it or by close(2), what it holds is due again at
 * once, for the others; fork(2), dup(2), SCM_RIGHTS and mappings keep it. An
 * answer that comes by another file is EPERM, unless it has TIMEWHEEL_OPF_ANY_FILE.
 *
 * A new token's deliveries are counted from 1, also one whose id was another's
 * before: where ids are used again while old answers may be under way, answers
 * are safe by handle.
 *
 * The id stays taken, and the handle valid, until the token has ended; touch,
 * move and cancel find it only while it is pending. What the read has not copied
 * out was not delivered, and counts for nothing.
 */

/*
 * Periods
 *
 * A periodic token, by TIMEWHEEL_OP_REGISTER_PERIODIC, is pending again after each
 * delivery, on a wheel with leases after its ACK; one event of it is out at a
 * time. It is due @period after it was due before, to the ns and without drift,
 * whenever it was read. If several periods have passed because no reader came or
 * an answer was late, there is one event, at once, for the last of them: its
 * @missed tells how many before it had no event of their own. A token that is moved is periodic from its new deadline
 * on; one that is kicked is delivered besides, and keeps to its times. It ends by
 * CANCEL, on a wheel with leases also by DELETE, or with the wheel; it cannot be
 * touched.
 */

/**
 * struct timewheel_setup - TIMEWHEEL_IOC_SETUP: make this file's private wheel;
 *	also how a named one is to be
 * @size: sizeof(struct timewheel_setup)
 * @flags: TIMEWHEEL_SETUP_NO_IDS, TIMEWHEEL_SETUP_NO_COOKIES, TIMEWHEEL_SETUP_TOUCH_WORDS,
 *	TIMEWHEEL_SETUP_PERIODS
 * @clock: one of enum timewheel_clock
 * @slots: slots of the ring, 1..65536; no power of two needed
 * @tick: ns per tick, from caps' min_tick to max_tick (100 us to a day)
 * @max_tokens: most tokens at any one time, 1 to caps' max_tokens; memory for
 *	them is taken, and charged to the caller's memory cgroup, as they come
 * @start: MANUAL: the tick on which the hand starts, at most
 *	TIMEWHEEL_MAX_TICK; else 0
 * @lease: ns for which a delivered token is held, a tick and more, or 0: a read
 *	ends tokens. Costs 48 bytes a token
 * @slack: ns by which the timer may be late, so that expirations that near to each
 *	other, and other timers of the CPU, share one interrupt; not with a MANUAL
 *	clock
 * @max_attempts: with a lease: after how many deliveries without ACK, lease over
 *	or NACK, a token is buried; 0 for never
 * @reserved: 0
 *
 * The wheel and its @max_tokens count towards what the caller, by its effective
 * user id, may have (module parameters max_user_wheels and max_user_tokens; a
 * caller with CAP_SYS_RESOURCE may have more), and towards what there may be in
 * all (max_all_wheels and max_all_tokens), until the wheel is gone. In a user
 * namespace that a user other than root has made, that user is charged. May
 * sleep for memory, which is charged to the caller's memory cgroup.
 *
 * Errors: %EBUSY this file has been set up; %EDQUOT the user would have more
 * wheels or tokens than a user may; %EINVAL a value outside its range, or one that
 * does not go with another; %ENOMEM;
 * %ENOSPC there would be more wheels or tokens than there may be in all;
 * %ERANGE with such short ticks the clock is, or @start would be, beyond the
 * last tick or 2^63 ns.
 */
struct timewheel_setup {
	__u32	size;
	__u32	flags;
	__u32	clock;
	__u32	slots;
	__u64	tick;
	__u64	max_tokens;
	__u64	start;
	__u64	lease;
	__u64	slack;
	__u32	max_attempts;
	__u32	reserved;
};

/*
 * Flag of struct timewheel_create.
 *
 * TIMEWHEEL_CREATE_EXCLUSIVE: only a new wheel will do.
 */
#define TIMEWHEEL_CREATE_EXCLUSIVE	(1U << 0)

/* What TIMEWHEEL_IOC_CREATE returns when the wheel was there already. */
#define TIMEWHEEL_RES_EXISTED	(1 << 4)

/**
 * struct timewheel_create - TIMEWHEEL_IOC_CREATE: make a named wheel
 * @size: sizeof(struct timewheel_create)
 * @flags: TIMEWHEEL_CREATE_EXCLUSIVE
 * @setup: address of a struct timewheel_setup: how it is to be
 * @name: its name: 1 to 63 ASCII letters, digits, "-" and "_", then zeros. There
 *	is one space of names for the whole machine
 *
 * A call on a file of /dev/timewheel, which need not be set up and stays as it
 * is. The wheel is there when the call returns, as /dev/timewheels/NAME: owned
 * by the caller's effective user and group, mode 0600 until chmod(1) and
 * chown(1) say otherwise; how they last where udev(7) manages nodes, its rules
 * say. Whoever may open the node for reading may read events and list tokens;
 * for writing, register and change them; for either, GET one, and see INFO and
 * STATS. It is charged to its creator, as by TIMEWHEEL_IOC_SETUP, whoever owns the
 * node later. It keeps the module loaded. May sleep. Where no node can be made,
 * because something else has its path, the wheel is there without one.
 *
 * Returns 0 when it made the wheel, or TIMEWHEEL_RES_EXISTED when one of this name
 * and set up the same is there, without TIMEWHEEL_CREATE_EXCLUSIVE. That may be
 * another user's, who can end it: fstat(2) of the node tells whose it is, and
 * open(2) whether the caller may open it.
 *
 * Errors: those of TIMEWHEEL_IOC_SETUP but %EBUSY; %EEXIST there is one of this
 * name, and the call is exclusive or the setup another; %EINVAL also when the
 * name is empty, has another byte in it, or something behind its zero;
 * %ENAMETOOLONG the name has no zero; %ENOTTY the file is a named wheel's.
 */
struct timewheel_create {
	__u32	size;
	__u32	flags;
	__u64	setup;
	char	name[TIMEWHEEL_NAME_SIZE];
};

/**
 * struct timewheel_destroy - TIMEWHEEL_IOC_DESTROY: end a named wheel
 * @size: sizeof(struct timewheel_destroy)
 * @flags: 0
 * @name: its name, as in struct timewheel_create
 *
 * For the user who created it (by effective user id), or with CAP_SYS_ADMIN, on
 * a file of /dev/timewheel. The node goes, the name is free, its tokens come to
 * nothing. Those who still have the wheel open get EPOLLHUP and EPOLLERR, and
 * %ENODEV from read(2) and every command that needs a wheel; who sleeps in a
 * read is woken. Its memory is freed, and its creator's account credited, with
 * the last file. May sleep.
 *
 * Errors: %EINVAL, %ENAMETOOLONG, %ENOTTY as TIMEWHEEL_IOC_CREATE; %ENOENT no wheel
 * of this name; %EPERM it is not the caller's.
 */
struct timewheel_destroy {
	__u32	size;
	__u32	flags;
	char	name[TIMEWHEEL_NAME_SIZE];
};

/**
 * enum timewheel_code - operations on a token
 * @TIMEWHEEL_OP_REGISTER: a new token, due after @time ns or, with
 *	TIMEWHEEL_OPF_ABSOLUTE, at @time. A deadline that has passed is due at once.
 *	A token registered for a delay has that delay as its timeout; one
 *	registered for a time, or for a delay of 0, has none.
 *	Errors: %EEXIST the id is pending, held or buried; %EINVAL an id or a
 *	cookie on a wheel without;
 *	%ENOSPC the wheel has max_tokens tokens; %ENOMEM; %ERANGE the deadline is
 *	beyond the last tick or 2^63 ns, or the delay too long for a wheel with
 *	touch words; %ESHUTDOWN the wheel is draining.
 * @TIMEWHEEL_OP_TOUCH: it lives: due its whole timeout from now. A touch
 *	never brings a deadline nearer (moving does). Takes no lock, unless an
 *	id is not found.
 *	Errors: %ENOENT, %ESTALE; %EINVAL the token has no timeout; %ERANGE.
 * @TIMEWHEEL_OP_TOUCH_OR_REGISTER: touch the token of this id, or register one
 *	with timeout @time if there is none ("a packet of this user arrived").
 *	@time and @cookie of a pending token stay as they are. By id only, for a
 *	delay only. Errors: those of the other two without %ENOENT and %ESTALE;
 *	%EEXIST the token is held or buried.
 * @TIMEWHEEL_OP_MOVE: due after @time ns from now, which becomes the timeout, or
 *	with TIMEWHEEL_OPF_ABSOLUTE at @time; earlier or later than before. A time,
 *	or a delay of 0, leaves the timeout as it was.
 *	Errors: %ENOENT, %ESTALE, %ERANGE.
 * @TIMEWHEEL_OP_CANCEL: no event will come of this token.
 *	Errors: %ENOENT, %ESTALE.
 * @TIMEWHEEL_OP_GET: tell about the token, change nothing, also when it is held or
 *	buried. Needs no file open for writing. Errors: %ENOENT, %ESTALE.
 * @TIMEWHEEL_OP_ACK: a delivery has been dealt with: its token ends, or, if it is
 *	periodic, is pending again. With a @time other than 0, or with
 *	TIMEWHEEL_OPF_ABSOLUTE, the token does not end but is due again after
 *	@time ns, or at @time, with all its attempts before it; the periods of one
 *	that is periodic are counted from there. Errors: also %ERANGE.
 * @TIMEWHEEL_OP_NACK: it has not: the token is due again after @time ns, or at @time
 *	with TIMEWHEEL_OPF_ABSOLUTE; after max_attempts deliveries it is buried.
 *	Errors: also %ERANGE.
 * @TIMEWHEEL_OP_EXTEND: it takes longer: the lease is over after @time ns from now,
 *	0 for the wheel's lease. Errors: also %ERANGE it would be beyond the last
 *	tick, or more than TIMEWHEEL_MAX_LEASES leases after the delivery.
 * @TIMEWHEEL_OP_BURY: it cannot be dealt with: the token is kept aside until KICK or
 *	DELETE. With a @lease of 0 it is one that is pending.
 * @TIMEWHEEL_OP_KICK: a token that is buried or pending is due now, and has all its
 *	attempts before it. Errors: also %EBUSY it is held.
 * @TIMEWHEEL_OP_DELETE: the token ends, whether it is pending, held or buried.
 * @TIMEWHEEL_OP_REGISTER_PERIODIC: as REGISTER, and again and again: first after
 *	@time ns, or at @time, then every @period ns. It has no timeout.
 *	Errors: those of REGISTER; %EINVAL also when @period is shorter than a
 *	tick, or the wheel was set up without TIMEWHEEL_SETUP_PERIODS; %ERANGE also when
 *	it is 2^63 ns and more.
 *
 * %ENOENT: no token with this id is pending: never registered, cancelled, or
 * taken by a reader. %ESTALE: the token of this handle is no longer pending.
 *
 * Of the answers ACK, NACK, EXTEND and BURY, and of KICK and DELETE, %ENOENT: no
 * token has this id; %ESTALE: none has this handle, or a reader is still about
 * to copy it; of an answer also when delivery @lease is not out any more: it was
 * answered, its lease is over and it was delivered again or buried. %EPERM: the
 * delivery is another file's. %EINVAL: the wheel has no leases. They need a file
 * that is open for writing, and change nothing when they fail.
 */
enum timewheel_code {
	TIMEWHEEL_OP_REGISTER		= 0,
	TIMEWHEEL_OP_TOUCH		= 1,
	TIMEWHEEL_OP_TOUCH_OR_REGISTER	= 2,
	TIMEWHEEL_OP_MOVE			= 3,
	TIMEWHEEL_OP_CANCEL		= 4,
	TIMEWHEEL_OP_GET			= 5,
	TIMEWHEEL_OP_ACK			= 6,
	TIMEWHEEL_OP_NACK			= 7,
	TIMEWHEEL_OP_EXTEND		= 8,
	TIMEWHEEL_OP_BURY			= 9,
	TIMEWHEEL_OP_KICK			= 10,
	TIMEWHEEL_OP_DELETE		= 11,
	TIMEWHEEL_OP_REGISTER_PERIODIC	= 12,
};

/*
 * Flags of struct timewheel_op, struct timewheel_touch and struct
 * timewheel_touch_many.
 *
 * TIMEWHEEL_OPF_BY_HANDLE: the token is named by its handle, not by its id
 *	(not with those that register).
 * TIMEWHEEL_OPF_ABSOLUTE: @time is a time of the wheel's clock, not a delay
 *	(REGISTER, REGISTER_PERIODIC, MOVE, ACK and NACK only).
 * TIMEWHEEL_OPF_ANY_FILE: also when another open file holds the delivery (ACK, NACK,
 *	EXTEND and BURY only).
 */
#define TIMEWHEEL_OPF_BY_HANDLE	(1U << 0)
#define TIMEWHEEL_OPF_ABSOLUTE	(1U << 1)
#define TIMEWHEEL_OPF_ANY_FILE	(1U << 2)

/*
 * Bits of a result that is not negative.
 *
 * TIMEWHEEL_RES_WAS_DUE: the token was past its deadline, but no reader had taken
 *	it: the operation won. From GET: it is pending, and past its deadline.
 * TIMEWHEEL_RES_REGISTERED: TOUCH_OR_REGISTER found none and registered one.
 * TIMEWHEEL_RES_HELD: from GET: a delivery of the token is out.
 * TIMEWHEEL_RES_BURIED: the token is buried: from GET; from NACK, which did so.
 */
#define TIMEWHEEL_RES_WAS_DUE	(1 << 0)
#define TIMEWHEEL_RES_REGISTERED	(1 << 1)
#define TIMEWHEEL_RES_HELD	(1 << 2)
#define TIMEWHEEL_RES_BURIED	(1 << 3)

/**
 * struct timewheel_op - TIMEWHEEL_IOC_OP: one operation; also a batch's element
 * @size: sizeof(struct timewheel_op); in a batch the same as its op_size
 * @flags: TIMEWHEEL_OPF_BY_HANDLE, TIMEWHEEL_OPF_ABSOLUTE, TIMEWHEEL_OPF_ANY_FILE
 * @code: one of enum timewheel_code
 * @result: out: bits TIMEWHEEL_RES_WAS_DUE, TIMEWHEEL_RES_REGISTERED, TIMEWHEEL_RES_HELD,
 *	TIMEWHEEL_RES_BURIED; in a batch also a negative errno
 * @id: the token's id, any value; out, from GET by handle (0 without ids)
 * @handle: in with TIMEWHEEL_OPF_BY_HANDLE; out, from GET and from whatever
 *	registered a token: its handle, never 0
 * @time: in: delay or deadline in ns, read by those that register, MOVE, ACK, NACK
 *	and EXTEND. Out, from GET: ns until the deadline, 0 when it has passed
 * @cookie: in: travels with the token, read by those that register;
 *	out: the token's cookie, from GET
 * @deadline: out: the deadline in ns of the wheel's clock, a whole tick; from
 *	CANCEL and DELETE: the one that it had; of a token that is held, when its
 *	lease is over; of one that is buried, when it was
 * @cycle: out, from GET: Cycle-Num, the whole laps that the hand still makes
 *	before the lap in which the token is due: (d - 1) / slots with d >= 1
 *	ticks to go, 0 when due
 * @period: in: ns, read by REGISTER_PERIODIC, in the place of @cycle
 * @slot: out, from GET: the slot of the ring: due tick % slots
 * @lease: in: number of the delivery, from the event: read by ACK, NACK, EXTEND
 *	and BURY, 0 for all others. Out, from GET: of the last delivery, 0 when
 *	there was none
 *
 * TIMEWHEEL_IOC_OP returns 0 and @result when the operation succeeded, else -1
 * with errno and the structure as it was. Fields that an operation does not
 * read are ignored; fields not named as its outputs stay as they were. May
 * sleep for memory when it registers, else never blocks.
 *
 * Errors: those of the operation; %EINVAL no such @code, or a flag that does
 * not go with it, or by id on a wheel without ids; %EFAULT also when @result
 * cannot be written: the operation has then been carried out.
 */
struct timewheel_op {
	__u32	size;
	__u32	flags;
	__u32	code;
	__s32	result;
	__u64	id;
	__u64	handle;
	__u64	time;
	__u64	cookie;
	__u64	deadline;
	union {
		__u64	cycle;
		__u64	period;
	};
	__u32	slot;
	__u32	lease;
};

/**
 * struct timewheel_batch - TIMEWHEEL_IOC_BATCH: many operations, in order
 * @size: sizeof(struct timewheel_batch)
 * @flags: 0
 * @ops: address of an array of @count struct timewheel_op
 * @count: operations in the array, 0..TIMEWHEEL_MAX_BATCH
 * @op_size: bytes from one to the next: sizeof(struct timewheel_op)
 * @done: out: how many of them, from the first on, were carried out
 * @reserved: 0
 *
 * Each operation is carried out by itself and gets its own @result, 0 and
 * more or a negative errno; a failed one does not end the batch. Returns 0
 * with @done equal to @count, or less when a signal came: go on from there.
 *
 * Errors: %EINVAL also when @count is too large or @op_size is too small,
 * larger than a page or no multiple of 8; %EFAULT: an operation could not be
 * read or a result not be written: @done operations were carried out all the
 * same, the results of the last of them may be missing. May sleep for memory,
 * else never blocks.
 */
struct timewheel_batch {
	__u32	size;
	__u32	flags;
	__u64	ops;
	__u32	count;
	__u32	op_size;
	__u32	done;
	__u32	reserved;
};

/**
 * struct timewheel_touch - TIMEWHEEL_IOC_TOUCH: a touch, in the fewest instructions
 * @size: sizeof(struct timewheel_touch)
 * @flags: TIMEWHEEL_OPF_BY_HANDLE
 * @key: the token's id, or its handle with TIMEWHEEL_OPF_BY_HANDLE
 *
 * Returns 0, or TIMEWHEEL_RES_WAS_DUE when the token was past its deadline.
 * Never blocks. Errors: those of TIMEWHEEL_OP_TOUCH.
 */
struct timewheel_touch {
	__u32	size;
	__u32	flags;
	__u64	key;
};

/**
 * struct timewheel_touch_many - TIMEWHEEL_IOC_TOUCH_MANY: touches, by keys alone
 * @size: sizeof(struct timewheel_touch_many)
 * @flags: TIMEWHEEL_OPF_BY_HANDLE
 * @keys: address of an array of @count u64: the tokens' ids, or their handles
 *	with TIMEWHEEL_OPF_BY_HANDLE
 * @count: keys in the array, 0..TIMEWHEEL_MAX_BATCH
 * @done: out: how many tokens, from that of the first key on, were touched
 *
 * For who has heard from many connections at once. Tokens are touched in the
 * order of the keys, as by TIMEWHEEL_IOC_TOUCH, up to the first that cannot be: the
 * error is that of key @done, and those behind it have not been looked at.
 * Returns 0 with @done equal to @count, or less when a signal came: go on from
 * there. Never blocks but for memory that is paged out.
 *
 * Errors: those of TIMEWHEEL_OP_TOUCH; %EINVAL also when @count is too large,
 * then without @done; %EFAULT: key @done could not be read, or @done itself not be
 * written: those before have been touched all the same.
 */
struct timewheel_touch_many {
	__u32	size;
	__u32	flags;
	__u64	keys;
	__u32	count;
	__u32	done;
};

/**
 * struct timewheel_advance - TIMEWHEEL_IOC_ADVANCE: put a MANUAL wheel's hand
 * @size: sizeof(struct timewheel_advance)
 * @flags: 0
 * @tick: the tick to which the hand goes, forward or back
 *
 * What is due by then can be read at once. Never blocks.
 *
 * Errors: %EINVAL the wheel's clock is not MANUAL; %ERANGE @tick is beyond
 * TIMEWHEEL_MAX_TICK or 2^63 ns.
 */
struct timewheel_advance {
	__u32	size;
	__u32	flags;
	__u64	tick;
};

/**
 * struct timewheel_info - TIMEWHEEL_IOC_INFO: a wheel's state and counters
 * @size: in: sizeof(struct timewheel_info)
 * @flags: in: 0
 * @clock: out: as set up
 * @slots: out: as set up
 * @tick: out: as set up
 * @max_tokens: out: as set up
 * @setup_flags: out: as set up
 * @number: out: names the wheel in traces, fdinfo and debugfs
 * @now: out: the wheel's clock in ns
 * @hand: out: the tick on which the hand is: @now / @tick of the host's clock
 * @next: out: ns time at which the wheel next looks for expired tokens, no
 *	later than the earliest deadline; TIMEWHEEL_NEVER when it is empty
 * @pending: out: tokens that wait for their deadline, or for a reader
 * @taken: out: tokens that readers have taken and are copying
 * @bytes: out: memory that the wheel holds, in bytes
 * @registered: out: registrations so far
 * @cancelled: out: cancellations so far
 * @moved: out: moves so far
 * @delivered: out: events read so far, each delivery of a token one
 * @put_back: out: tokens put back by readers whose buffer could not be written
 * @refiled: out: tokens filed again because they had been touched or their
 *	block had been opened
 * @callbacks: out: times that the wheel's timer went off
 * @quiet: out: looks at the ring after such a callback that found no token due
 * @touched: out: touches that succeeded so far; those that are under way on
 *	other CPUs may be missing; those of mapped touch words are not counted
 * @offset: out: ns that the clock is ahead for the caller, in a time namespace,
 *	of what the wheel counts its ticks by: tick = (time - @offset) / @tick
 * @lease: out: as set up
 * @slack: out: as set up
 * @state: out: TIMEWHEEL_CONTROL_PAUSED, TIMEWHEEL_CONTROL_DRAINING
 * @max_attempts: out: as set up
 * @held: out: tokens of which a delivery is out
 * @buried: out: tokens that are buried
 * @acked: out: ACKs so far
 * @nacked: out: NACKs so far
 * @lapsed: out: leases so far that were over without an answer
 * @returned: out: deliveries so far that came back when a file was released
 * @kicked: out: KICKs so far
 * @deleted: out: DELETEs so far
 * @missed: out: periods so far that were missed and had no event of their own
 *
 * At any time @registered is the sum of the tokens that have ended, by CANCEL,
 * DELETE, a read, or, with leases, an ACK, and of those that are pending, taken,
 * held and buried. The figures are taken at one moment. Never blocks. Only the common errors.
 */
struct timewheel_info {
	__u32	size;
	__u32	flags;
	__u32	clock;
	__u32	slots;
	__u64	tick;
	__u64	max_tokens;
	__u32	setup_flags;
	__u32	number;
	__u64	now;
	__u64	hand;
	__u64	next;
	__u64	pending;
	__u64	taken;
	__u64	bytes;
	__u64	registered;
	__u64	cancelled;
	__u64	moved;
	__u64	delivered;
	__u64	put_back;
	__u64	refiled;
	__u64	callbacks;
	__u64	quiet;
	__u64	touched;
	__s64	offset;
	__u64	lease;
	__u64	slack;
	__u32	state;
	__u32	max_attempts;
	__u64	held;
	__u64	buried;
	__u64	acked;
	__u64	nacked;
	__u64	lapsed;
	__u64	returned;
	__u64	kicked;
	__u64	deleted;
	__u64	missed;
};

/*
 * What a wheel may be told to be, by TIMEWHEEL_IOC_CONTROL.
 *
 * TIMEWHEEL_CONTROL_PAUSED: time passes and all operations go on, but nothing is
 *	delivered: a read blocks, or says %EAGAIN, and poll(2) says no.
 * TIMEWHEEL_CONTROL_DRAINING: no token can be registered: %ESHUTDOWN. Those that are
 *	periodic go on.
 */
#define TIMEWHEEL_CONTROL_PAUSED	(1U << 0)
#define TIMEWHEEL_CONTROL_DRAINING	(1U << 1)

/**
 * struct timewheel_control - TIMEWHEEL_IOC_CONTROL: pause, resume, drain
 * @size: sizeof(struct timewheel_control)
 * @flags: TIMEWHEEL_CONTROL_PAUSED, TIMEWHEEL_CONTROL_DRAINING: what the wheel is from now on; 0
 *	for neither
 * @mask: which of these are to change; the others stay as they are
 * @reserved: 0
 *
 * A read that is under way when a wheel is paused may still bring events. Never
 * blocks. Errors: %EINVAL also when @mask has another bit, or @flags
 * one that is not in @mask.
 */
struct timewheel_control {
	__u32	size;
	__u32	flags;
	__u32	mask;
	__u32	reserved;
};

/**
 * struct timewheel_stats - TIMEWHEEL_IOC_STATS: how late a wheel's events have been
 * @size: sizeof(struct timewheel_stats)
 * @flags: 0
 * @lateness: address of TIMEWHEEL_BUCKETS u64, or 0: of the events read so far,
 *	ns from the deadline until a reader took the token
 * @wake: address of TIMEWHEEL_BUCKETS u64, or 0: of the times that the wheel's
 *	timer went off, ns from when it should have until somebody looked
 *
 * Each is a histogram: bucket b counts what is at least low(b) and less than
 * low(b + 1), where low(b) is b for the first 4, then
 * (4 + b % 4) << (b / 4 - 1): four buckets to a power of two, the last one
 * up to 2^64. Both are of one moment. Needs no file open for writing. May sleep
 * for memory. Errors: %ENOMEM, and the common ones.
 */
struct timewheel_stats {
	__u32	size;
	__u32	flags;
	__u64	lateness;
	__u64	wake;
};

/**
 * enum timewheel_state - what a listed token is doing
 * @TIMEWHEEL_STATE_PENDING: it waits for its deadline, or for a reader
 * @TIMEWHEEL_STATE_TAKEN: a reader has taken it and is copying it
 * @TIMEWHEEL_STATE_HELD: a delivery of it is out
 * @TIMEWHEEL_STATE_BURIED: it is kept aside
 */
enum timewheel_state {
	TIMEWHEEL_STATE_PENDING	= 0,
	TIMEWHEEL_STATE_TAKEN		= 1,
	TIMEWHEEL_STATE_HELD		= 2,
	TIMEWHEEL_STATE_BURIED	= 3,
};

/**
 * struct timewheel_token - a token, as TIMEWHEEL_IOC_LIST tells of it
 * @id: its id, 0 on a wheel without ids
 * @handle: its handle
 * @cookie: as registered, 0 on a wheel without cookies
 * @deadline: its deadline in ns, a whole tick of the wheel's clock
 * @cycle: Cycle-Num, as in struct timewheel_op
 * @slot: its slot: due tick % slots
 * @state: one of enum timewheel_state
 * @lease: number of its last delivery, or of one after it whose event could not be
 *	copied; 0 when there was none
 * @attempts: its deliveries since it was registered, acked or kicked
 *
 * Of a held token @deadline is when its lease is over, of a buried one when it was
 * buried.
 */
struct timewheel_token {
	__u64	id;
	__u64	handle;
	__u64	cookie;
	__u64	deadline;
	__u64	cycle;
	__u32	slot;
	__u32	state;
	__u32	lease;
	__u32	attempts;
};

/**
 * struct timewheel_list - TIMEWHEEL_IOC_LIST: a wheel's tokens, in no order of time
 * @size: sizeof(struct timewheel_list)
 * @flags: 0
 * @cursor: in: 0 to begin, else as it came out; out: where to go on, or
 *	TIMEWHEEL_NEVER when all have been listed
 * @from: only tokens whose deadline is this time or later, in ns
 * @to: only tokens whose deadline is this time or earlier, in ns;
 *	TIMEWHEEL_NEVER for all
 * @tokens: address of an array of @count struct timewheel_token
 * @count: room in the array, 1 and more
 * @token_size: bytes from one to the next: sizeof(struct timewheel_token); what
 *	the kernel does not know of a larger one is zeroed
 * @listed: out: how many were written
 * @reserved: 0
 *
 * Called until @cursor is TIMEWHEEL_NEVER, it lists each token that was pending
 * throughout exactly once, whatever is registered, touched, moved, cancelled
 * and read meanwhile; a token that came or went meanwhile at most once. Tokens
 * are touched, registered and read while it runs: no lock is held for more than
 * a few hundred. It may end early, with fewer than @count or none: go on while
 * @cursor says so. Needs no file open for writing. Never blocks but for memory
 * that is paged out.
 *
 * Errors: %EINVAL also when @cursor cannot be one that came out, @count is 0, or
 * @token_size is too small, larger than a page or no multiple of 8; %EFAULT: the
 * array could not be written: nothing is lost, list again from the same
 * @cursor.
 */
struct timewheel_list {
	__u32	size;
	__u32	flags;
	__u64	cursor;
	__u64	from;
	__u64	to;
	__u64	tokens;
	__u32	count;
	__u32	token_size;
	__u32	listed;
	__u32	reserved;
};

/**
 * struct timewheel_event - what read(2) returns: one expired token
 * @id: the token's id, 0 on a wheel without ids
 * @handle: its handle, no longer valid if the read ends the token
 * @cookie: as registered, 0 on a wheel without cookies
 * @deadline: its deadline in ns, a whole tick of the wheel's clock; when it comes
 *	again, when it was due again; of a periodic token, that of the period which
 *	the event is for
 * @taken: the wheel's clock, in ns, when it was taken for delivery
 * @lease: number of this delivery of the token, on a wheel with leases; else 0
 * @missed: of a periodic token, periods since the event before that had none
 *
 * read(2) returns whole events, as many as are due and fit, in the order of
 * their due ticks. It blocks until there is one, unless O_NONBLOCK or
 * RWF_NOWAIT is given. Each event goes to one reader only, and ends its token,
 * unless the wheel has leases or the token is periodic.
 * A signal ends a read early, with the events that it has by then.
 *
 * poll(2) and epoll(7) say EPOLLIN while an expired token is there. All who
 * poll are told when one has expired, and need not be told again until all that
 * is due has been read: edge-triggered waiters must read until EAGAIN. With
 * EPOLLEXCLUSIVE one of them is told: it should not be one that goes away
 * without reading.
 *
 * Errors: %EAGAIN nothing is due and the call may not block; %EBADF not open
 * for reading; %EBADFD not set up; %EFAULT the buffer cannot be written: what
 * was not copied will be read again; %EINTR a signal came first; %EINVAL the
 * buffer is smaller than one event; %ENODEV the wheel has been destroyed; %ENOMEM
 * only the first read by a file of a wheel with leases.
 */
struct timewheel_event {
	__u64	id;
	__u64	handle;
	__u64	cookie;
	__u64	deadline;
	__u64	taken;
	__u32	lease;
	__u32	missed;
};

#endif /* _UAPI_LINUX_TIMEWHEEL_H */
