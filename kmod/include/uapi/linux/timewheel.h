/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * timewheel: millions of timeouts behind one file descriptor.
 *
 * A wheel is a ring of slots turned by one timer. A token is one pending timeout, named by a
 * u64 id of the user's choice, or by a handle. timewheel(7) explains the concepts.
 *
 * Threads may make these calls at once. Times are u64 nanoseconds. A point of
 * time is one of the wheel's clock as the calling process sees it, in its time namespace.
 * Deadlines are rounded up to whole ticks.
 *
 * Structures have one layout for 32 and 64 bit callers. @size is that of the structure as the
 * caller knows it; @op_size and @token_size are those of an array's elements.
 *
 * A call that fails changes nothing, unless its description says otherwise. A call with a
 * field @done takes its elements in order, and tells there how many are done, also if it
 * fails. A signal ends it early, with 0. A call blocks only for memory of the caller that is
 * paged out, unless it may sleep. Every ioctl may fail with:
 *
 * ===========  ===============================================================
 * %EBADF       the file is not open for writing, or for GET and LIST not for reading; CAPS,
 *              INFO and STATS need neither
 * %EBADFD      the file is not set up; CAPS, CREATE and DESTROY need no wheel
 * %ENODEV      the wheel has been destroyed
 * %EFAULT      an address cannot be read or written
 * %EINVAL      a size is smaller than in the first release, @op_size or @token_size is more
 *              than a page or no multiple of 8, @count is out of range, a flag is not
 *              defined, or a reserved field is not 0
 * %E2BIG       @size is larger than a page, or than the kernel knows and the rest not zero
 * %ENOTTY      no such command
 * ===========  ===============================================================
 */
#ifndef _UAPI_LINUX_TIMEWHEEL_H
#define _UAPI_LINUX_TIMEWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Numbers without size and direction: structures may grow. */
#define TIMEWHEEL_IOC_TYPE		0xBE

#define TIMEWHEEL_IOC_CAPS		_IO(TIMEWHEEL_IOC_TYPE, 0x00)
#define TIMEWHEEL_IOC_SETUP		_IO(TIMEWHEEL_IOC_TYPE, 0x01)
#define TIMEWHEEL_IOC_INFO		_IO(TIMEWHEEL_IOC_TYPE, 0x02)
#define TIMEWHEEL_IOC_OP		_IO(TIMEWHEEL_IOC_TYPE, 0x03)
#define TIMEWHEEL_IOC_BATCH		_IO(TIMEWHEEL_IOC_TYPE, 0x04)
#define TIMEWHEEL_IOC_TOUCH		_IO(TIMEWHEEL_IOC_TYPE, 0x05)
#define TIMEWHEEL_IOC_ADVANCE		_IO(TIMEWHEEL_IOC_TYPE, 0x06)
#define TIMEWHEEL_IOC_LIST		_IO(TIMEWHEEL_IOC_TYPE, 0x07)
#define TIMEWHEEL_IOC_CREATE		_IO(TIMEWHEEL_IOC_TYPE, 0x08)
#define TIMEWHEEL_IOC_DESTROY		_IO(TIMEWHEEL_IOC_TYPE, 0x09)
#define TIMEWHEEL_IOC_STATS		_IO(TIMEWHEEL_IOC_TYPE, 0x0a)
#define TIMEWHEEL_IOC_TOUCH_MANY	_IO(TIMEWHEEL_IOC_TYPE, 0x0b)
#define TIMEWHEEL_IOC_CONTROL		_IO(TIMEWHEEL_IOC_TYPE, 0x0c)
#define TIMEWHEEL_IOC_GET		_IO(TIMEWHEEL_IOC_TYPE, 0x0d)
#define TIMEWHEEL_IOC_REGISTER_MANY	_IO(TIMEWHEEL_IOC_TYPE, 0x0e)
#define TIMEWHEEL_IOC_CANCEL_MANY	_IO(TIMEWHEEL_IOC_TYPE, 0x0f)

/* Most operations or keys of one call. */
#define TIMEWHEEL_MAX_BATCH	65536

/* Number of the last tick: 223 years of 100 us. No wheel goes beyond 2^63 ns. */
#define TIMEWHEEL_MAX_TICK	((1ULL << 46) - 1)

/* A wheel's name, at most 63 bytes, and a zero. */
#define TIMEWHEEL_NAME_SIZE	64

/* Buckets of a histogram, see struct timewheel_stats. */
#define TIMEWHEEL_BUCKETS	252

/* A time that is never reached. */
#define TIMEWHEEL_NEVER		(~0ULL)

/* The mmap(2) offset of touch words, see timewheel(7). */
#define TIMEWHEEL_MAP_WORDS	0ULL

/**
 * enum timewheel_clock - what turns a wheel
 * @TIMEWHEEL_CLOCK_MONOTONIC: stands still while the machine is suspended
 * @TIMEWHEEL_CLOCK_BOOTTIME: goes on meanwhile, but never wakes the machine
 * @TIMEWHEEL_CLOCK_REALTIME: the wall clock; if it is set, deadlines stay
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
 * @size: sizeof(struct timewheel_caps)
 * @flags: 0
 * @clocks: bit n for clock n of enum timewheel_clock
 * @setup_flags: known flags of enum timewheel_setup_flags
 * @codes: bit n for operation n of enum timewheel_code
 * @max_slots: most slots of a ring
 * @min_tick: shortest tick
 * @max_tick: longest tick
 * @max_tokens: most tokens of a wheel
 * @max_word_ticks: with touch words a timeout, and the deadline of a token that has one, is
 *	less than this many ticks ahead
 * @max_batch: TIMEWHEEL_MAX_BATCH
 * @op_size: sizeof(struct timewheel_op)
 * @token_size: sizeof(struct timewheel_token)
 * @event_size: sizeof(struct timewheel_event), which never changes
 *
 * All fields but @size and @flags are out.
 */
struct timewheel_caps {
	__u32		size;
	__u32		flags;
	__u32		clocks;
	__u32		setup_flags;
	__u32		codes;
	__u32		max_slots;
	__aligned_u64	min_tick;
	__aligned_u64	max_tick;
	__aligned_u64	max_tokens;
	__aligned_u64	max_word_ticks;
	__u32		max_batch;
	__u32		op_size;
	__u32		token_size;
	__u32		event_size;
};

/**
 * enum timewheel_setup_flags - flags of struct timewheel_setup
 * @TIMEWHEEL_SETUP_NO_IDS: tokens have no id, only a handle
 * @TIMEWHEEL_SETUP_NO_COOKIES: tokens carry no cookie
 * @TIMEWHEEL_SETUP_TOUCH_WORDS: tokens have touch words, to be mapped and touched by a store
 * @TIMEWHEEL_SETUP_PERIODS: tokens may be periodic
 */
enum timewheel_setup_flags {
	TIMEWHEEL_SETUP_NO_IDS		= 0x1,
	TIMEWHEEL_SETUP_NO_COOKIES	= 0x2,
	TIMEWHEEL_SETUP_TOUCH_WORDS	= 0x4,
	TIMEWHEEL_SETUP_PERIODS		= 0x8,
};

/**
 * struct timewheel_setup - TIMEWHEEL_IOC_SETUP: make this file's private wheel
 * @size: sizeof(struct timewheel_setup)
 * @flags: of enum timewheel_setup_flags
 * @clock: of enum timewheel_clock
 * @slots: of the ring: 1 to 65536
 * @tick: from caps' min_tick to its max_tick (100 us to a day)
 * @max_tokens: most tokens at once, 1 to caps' max_tokens
 * @start: first tick of a MANUAL clock; else 0
 * @lease: how long, at least a tick, a reader holds a token until it answers; 0
 *	if a read ends tokens
 * @slack: by how much the timer may be late, to save interrupts; 0 if MANUAL
 * @max_held: with a lease: how many deliveries may be out at once, 1 to @max_tokens; what is
 *	due beyond that waits. Else 0
 * @reserved: 0
 *
 * The memory for @max_held deliveries, 36 bytes each, is taken now. The wheel counts towards
 * the limits in timewheel(7). May sleep.
 *
 * Errors: %EBUSY the file is set up; %EDQUOT the user would have too many wheels or
 * tokens; %EINVAL a value is out of range, or does not go with another; %ENOMEM; %ENOSPC the
 * machine, or the caller's user namespace, would have too many; %ERANGE the clock, or @start,
 * is beyond the last tick.
 */
struct timewheel_setup {
	__u32		size;
	__u32		flags;
	__u32		clock;
	__u32		slots;
	__aligned_u64	tick;
	__aligned_u64	max_tokens;
	__aligned_u64	start;
	__aligned_u64	lease;
	__aligned_u64	slack;
	__u32		max_held;
	__u32		reserved;
};

/**
 * enum timewheel_create_flags - flags of struct timewheel_create
 * @TIMEWHEEL_CREATE_EXCLUSIVE: fail if a wheel of this name exists
 */
enum timewheel_create_flags {
	TIMEWHEEL_CREATE_EXCLUSIVE	= 0x1,
};

/**
 * struct timewheel_create - TIMEWHEEL_IOC_CREATE: make a named wheel
 * @size: sizeof(struct timewheel_create)
 * @flags: of enum timewheel_create_flags
 * @setup: address of struct timewheel_setup
 * @name: 1 to 63 ASCII letters, digits, "-" and "_", then zeros
 *
 * The wheel is /dev/timewheels/NAME, owned by the caller's effective user and group, with
 * mode 0600. May sleep. Returns 0, or TIMEWHEEL_RES_EXISTED if a wheel of this name with the
 * same setup existed, perhaps another user's.
 *
 * Errors: those of TIMEWHEEL_IOC_SETUP but %EBUSY; %EEXIST the wheel exists, and the call is
 * exclusive or the setup differs; %EINVAL also for another @name; %ENAMETOOLONG @name has no
 * zero; %ENOTTY the file is not one of /dev/timewheel.
 */
struct timewheel_create {
	__u32		size;
	__u32		flags;
	__aligned_u64	setup;
	char		name[TIMEWHEEL_NAME_SIZE];
};

/**
 * struct timewheel_destroy - TIMEWHEEL_IOC_DESTROY: end a named wheel
 * @size: sizeof(struct timewheel_destroy)
 * @flags: 0
 * @name: as in struct timewheel_create
 *
 * Files that have the wheel open get EPOLLHUP, EPOLLERR and %ENODEV; sleeping readers wake up.
 * May sleep. Errors: %EINVAL, %ENAMETOOLONG, %ENOTTY as for TIMEWHEEL_IOC_CREATE; %ENOENT no
 * wheel has this name; %EPERM another effective user created the wheel, and the caller has no
 * CAP_SYS_ADMIN.
 */
struct timewheel_destroy {
	__u32	size;
	__u32	flags;
	char	name[TIMEWHEEL_NAME_SIZE];
};

/**
 * enum timewheel_code - operations on a token
 * @TIMEWHEEL_OP_REGISTER: make a token that is due at @time. With a @period it is periodic
 *	and cannot be touched. Errors: %EEXIST a token has this id; %EINVAL a cookie on a
 *	wheel without cookies, or a @period shorter than a tick, with a @timeout, or on a
 *	wheel without periods; %ENOMEM; %ENOSPC the wheel has max_tokens tokens; %ERANGE;
 *	%ESHUTDOWN the wheel is draining.
 * @TIMEWHEEL_OP_TOUCH: make the token due its whole timeout from now, unless it is due even
 *	later. Errors: %EINVAL the token has no timeout; %ENOENT, %ERANGE, %ESTALE.
 * @TIMEWHEEL_OP_TOUCH_OR_REGISTER: touch the token of this id, whose timeout and cookie stay;
 *	if there is none, register one for a delay of @time with that timeout. Errors: those
 *	of the other two but %ENOENT and %ESTALE; %EEXIST the token is held.
 * @TIMEWHEEL_OP_MOVE: make the token due at @time, earlier or later. A periodic token begins
 *	anew, without attempts. Errors: %EINVAL a @timeout for a periodic token; %ENOENT,
 *	%ERANGE, %ESTALE.
 * @TIMEWHEEL_OP_CANCEL: end the token without an event. Errors: %ENOENT, %ESTALE.
 * @TIMEWHEEL_OP_ACK: the reader has dealt with the delivery: its token ends, or is pending
 *	again for its next period.
 * @TIMEWHEEL_OP_NACK: the reader has not: the token is due again at @time. Errors: also
 *	%ERANGE.
 * @TIMEWHEEL_OP_EXTEND: the lease ends @time from now, if that is later than before; a @time
 *	of 0 stands for the wheel's lease. With a point of time it ends then, also earlier, as
 *	after the clock was set. Errors: also %ERANGE.
 * @TIMEWHEEL_OP_DELETE: end a pending or held token.
 *
 * %EINVAL: an id on a wheel without ids. %ENOENT: no token with this id is pending. %ESTALE:
 * none of this wheel with this handle is. %ERANGE: a point of time is beyond the last tick, a
 * duration is 2^63 ns or more, or caps' max_word_ticks forbids it.
 *
 * ACK, NACK, EXTEND and DELETE need a wheel with leases, else %EINVAL, and also find held
 * tokens; %ESTALE also if a reader is still copying the token. ACK, NACK and EXTEND answer a
 * delivery, by any file of the wheel that is open for writing: %ESTALE also if it is no longer
 * out.
 */
enum timewheel_code {
	TIMEWHEEL_OP_REGISTER		= 0,
	TIMEWHEEL_OP_TOUCH		= 1,
	TIMEWHEEL_OP_TOUCH_OR_REGISTER	= 2,
	TIMEWHEEL_OP_MOVE		= 3,
	TIMEWHEEL_OP_CANCEL		= 4,
	TIMEWHEEL_OP_ACK		= 5,
	TIMEWHEEL_OP_NACK		= 6,
	TIMEWHEEL_OP_EXTEND		= 7,
	TIMEWHEEL_OP_DELETE		= 8,
};

/**
 * enum timewheel_op_flags - flags of operations, touches and GET
 * @TIMEWHEEL_OPF_BY_HANDLE: tokens are named by handle, not by id (not with
 *	REGISTER and TOUCH_OR_REGISTER)
 * @TIMEWHEEL_OPF_ABSOLUTE: @time is a point of time, not a delay (REGISTER, MOVE,
 *	NACK and EXTEND only)
 */
enum timewheel_op_flags {
	TIMEWHEEL_OPF_BY_HANDLE		= 0x1,
	TIMEWHEEL_OPF_ABSOLUTE		= 0x2,
};

/**
 * enum timewheel_result - bits of a result that is not negative
 * @TIMEWHEEL_RES_WAS_DUE: the token was past its deadline, but not taken
 * @TIMEWHEEL_RES_REGISTERED: TOUCH_OR_REGISTER has registered a token
 * @TIMEWHEEL_RES_EXISTED: TIMEWHEEL_IOC_CREATE found the wheel
 */
enum timewheel_result {
	TIMEWHEEL_RES_WAS_DUE		= 0x1,
	TIMEWHEEL_RES_REGISTERED	= 0x2,
	TIMEWHEEL_RES_EXISTED		= 0x4,
};

/**
 * struct timewheel_op - TIMEWHEEL_IOC_OP: one operation; also a batch's element
 * @size: sizeof(struct timewheel_op)
 * @flags: of enum timewheel_op_flags
 * @code: of enum timewheel_code
 * @result: out: bits of enum timewheel_result; in a batch also a negative errno
 * @id: any value
 * @handle: in with TIMEWHEEL_OPF_BY_HANDLE; out if the operation registered a
 *	token: never 0
 * @cookie: travels with a registered token
 * @time: a delay from now, or with TIMEWHEEL_OPF_ABSOLUTE a point of time; if it has passed,
 *	the token is due at once
 * @timeout: REGISTER, MOVE: from a touch to the deadline; 0 stands for the delay. If that is
 *	0, or @time a point of time, REGISTER makes a token that cannot be touched, and MOVE
 *	keeps the timeout
 * @period: REGISTER: between deadlines, 0 for a single one; counted to the ns from the @time
 *	of REGISTER or MOVE
 * @deadline: out, but not from ACK: the deadline after the operation, a whole tick; from
 *	CANCEL and DELETE the one before; from EXTEND, and from DELETE of a held token, the
 *	lease's end
 * @delivery: ACK, NACK, EXTEND: the number in the event; else 0
 * @reserved: 0
 *
 * Fields that an operation does not read are ignored; those that it does not write stay.
 * Registrations may sleep.
 *
 * Errors: those of the operation; %EINVAL no such @code, a flag or @delivery does not go with
 * it, or @reserved is not 0; %EFAULT also if @result cannot be written: the operation has then
 * been carried out.
 */
struct timewheel_op {
	__u32		size;
	__u32		flags;
	__u32		code;
	__s32		result;
	__aligned_u64	id;
	__aligned_u64	handle;
	__aligned_u64	cookie;
	__aligned_u64	time;
	__aligned_u64	timeout;
	__aligned_u64	period;
	__aligned_u64	deadline;
	__u32		delivery;
	__u32		reserved;
};

/**
 * struct timewheel_batch - TIMEWHEEL_IOC_BATCH: many operations, in order
 * @size: sizeof(struct timewheel_batch)
 * @flags: 0
 * @ops: address of @count struct timewheel_op
 * @count: 0..TIMEWHEEL_MAX_BATCH
 * @op_size: sizeof(struct timewheel_op)
 * @done: out: operations carried out
 * @reserved: 0
 *
 * An operation that fails does not end the batch. May sleep. Errors: %EFAULT an element cannot
 * be read, or a result or @done not be written: @done were carried out, but the last results
 * may be missing.
 */
struct timewheel_batch {
	__u32		size;
	__u32		flags;
	__aligned_u64	ops;
	__u32		count;
	__u32		op_size;
	__u32		done;
	__u32		reserved;
};

/**
 * struct timewheel_touch - TIMEWHEEL_IOC_TOUCH: touch in the fewest instructions
 * @size: sizeof(struct timewheel_touch)
 * @flags: TIMEWHEEL_OPF_BY_HANDLE
 * @key: its id, or with TIMEWHEEL_OPF_BY_HANDLE its handle
 *
 * Returns 0, or TIMEWHEEL_RES_WAS_DUE. Errors: those of TIMEWHEEL_OP_TOUCH.
 */
struct timewheel_touch {
	__u32		size;
	__u32		flags;
	__aligned_u64	key;
};

/**
 * struct timewheel_touch_many - TIMEWHEEL_IOC_TOUCH_MANY: touch by keys alone
 * @size: sizeof(struct timewheel_touch_many)
 * @flags: TIMEWHEEL_OPF_BY_HANDLE
 * @keys: address of @count u64, ids or handles
 * @count: 0..TIMEWHEEL_MAX_BATCH
 * @done: out: tokens touched
 *
 * The first key that fails, key @done, ends the call with its error: those before it have been
 * touched. Errors: those of TIMEWHEEL_OP_TOUCH; %EFAULT also if key @done cannot be read, or
 * @done written.
 */
struct timewheel_touch_many {
	__u32		size;
	__u32		flags;
	__aligned_u64	keys;
	__u32		count;
	__u32		done;
};

/**
 * struct timewheel_entry - a token of TIMEWHEEL_IOC_REGISTER_MANY
 * @id: as of TIMEWHEEL_OP_REGISTER
 * @cookie: as of TIMEWHEEL_OP_REGISTER
 * @time: as of TIMEWHEEL_OP_REGISTER
 * @handle: out, if @result is 0
 * @result: out: 0, or a negative errno of TIMEWHEEL_OP_REGISTER
 * @reserved: 0, else @result is -EINVAL
 *
 * Its size never changes.
 */
struct timewheel_entry {
	__aligned_u64	id;
	__aligned_u64	cookie;
	__aligned_u64	time;
	__aligned_u64	handle;
	__s32		result;
	__u32		reserved;
};

/**
 * struct timewheel_register_many - TIMEWHEEL_IOC_REGISTER_MANY: in few instructions
 * @size: sizeof(struct timewheel_register_many)
 * @flags: TIMEWHEEL_OPF_ABSOLUTE, for all entries
 * @entries: address of @count struct timewheel_entry
 * @timeout: of all, as of TIMEWHEEL_OP_REGISTER
 * @count: 0..TIMEWHEEL_MAX_BATCH
 * @done: out: entries carried out
 *
 * An entry that fails does not end the call. May sleep. Errors: %EFAULT as from
 * TIMEWHEEL_IOC_BATCH.
 */
struct timewheel_register_many {
	__u32		size;
	__u32		flags;
	__aligned_u64	entries;
	__aligned_u64	timeout;
	__u32		count;
	__u32		done;
};

/**
 * struct timewheel_cancel_many - TIMEWHEEL_IOC_CANCEL_MANY: cancel by keys alone
 * @size: sizeof(struct timewheel_cancel_many)
 * @flags: TIMEWHEEL_OPF_BY_HANDLE
 * @keys: address of @count u64, ids or handles
 * @results: address of @count s32, out: what TIMEWHEEL_OP_CANCEL says of each key: 0,
 *	TIMEWHEEL_RES_WAS_DUE, or a negative errno
 * @count: 0..TIMEWHEEL_MAX_BATCH
 * @done: out: keys carried out
 *
 * A key that fails does not end the call. Errors: %EFAULT as from TIMEWHEEL_IOC_BATCH.
 */
struct timewheel_cancel_many {
	__u32		size;
	__u32		flags;
	__aligned_u64	keys;
	__aligned_u64	results;
	__u32		count;
	__u32		done;
};

/**
 * struct timewheel_advance - TIMEWHEEL_IOC_ADVANCE: put a MANUAL wheel's hand
 * @size: sizeof(struct timewheel_advance)
 * @flags: 0
 * @tick: where the hand goes, forward or back
 *
 * Errors: %EINVAL also if the clock is not MANUAL; %ERANGE @tick is beyond the last tick.
 */
struct timewheel_advance {
	__u32		size;
	__u32		flags;
	__aligned_u64	tick;
};

/**
 * enum timewheel_control_state - what a wheel may be told to be
 * @TIMEWHEEL_CONTROL_PAUSED: no event is delivered, while time passes and operations go on
 * @TIMEWHEEL_CONTROL_DRAINING: no token can be registered: %ESHUTDOWN. Periodic tokens go on
 */
enum timewheel_control_state {
	TIMEWHEEL_CONTROL_PAUSED	= 0x1,
	TIMEWHEEL_CONTROL_DRAINING	= 0x2,
};

/**
 * struct timewheel_control - TIMEWHEEL_IOC_CONTROL: pause, resume, drain, undrain
 * @size: sizeof(struct timewheel_control)
 * @flags: 0
 * @state: of enum timewheel_control_state
 * @mask: which bits of @state count; the others stay
 *
 * Errors: %EINVAL also if @mask has an undefined bit, or @state one that @mask has not.
 */
struct timewheel_control {
	__u32	size;
	__u32	flags;
	__u32	state;
	__u32	mask;
};

/**
 * struct timewheel_info - TIMEWHEEL_IOC_INFO: a wheel's state and counters
 * @size: sizeof(struct timewheel_info)
 * @flags: 0
 * @clock: from SETUP
 * @slots: from SETUP
 * @tick: from SETUP
 * @max_tokens: from SETUP
 * @setup_flags: from SETUP
 * @number: names it in traces, fdinfo and debugfs
 * @now: the wheel's clock
 * @hand: its tick: (@now - @offset) / @tick
 * @next: when the wheel next looks, at or before the earliest deadline; or TIMEWHEEL_NEVER
 * @pending: tokens in TIMEWHEEL_STATE_PENDING
 * @taken: tokens in TIMEWHEEL_STATE_TAKEN
 * @bytes: memory that the wheel holds
 * @registered: registrations
 * @cancelled: cancellations
 * @moved: moves
 * @delivered: events read
 * @put_back: tokens put back, as a read could not copy them
 * @refiled: tokens filed again, after a touch or from a coarser ring
 * @callbacks: times that the timer went off
 * @quiet: callbacks after which no token was due
 * @touched: touches by ioctl(2), without those under way on other CPUs
 * @offset: ns that the caller's time namespace is ahead of the host
 * @lease: from SETUP
 * @slack: from SETUP
 * @state: of enum timewheel_control_state
 * @max_held: from SETUP
 * @held: tokens in TIMEWHEEL_STATE_HELD
 * @acked: ACKs
 * @nacked: NACKs
 * @lapsed: leases that ended without an answer
 * @returned: deliveries that a released file gave back
 * @deleted: DELETEs
 * @missed: periods that had no event
 *
 * All fields but @size and @flags are out, as of one moment. Counters begin with the wheel.
 */
struct timewheel_info {
	__u32		size;
	__u32		flags;
	__u32		clock;
	__u32		slots;
	__aligned_u64	tick;
	__aligned_u64	max_tokens;
	__u32		setup_flags;
	__u32		number;
	__aligned_u64	now;
	__aligned_u64	hand;
	__aligned_u64	next;
	__aligned_u64	pending;
	__aligned_u64	taken;
	__aligned_u64	bytes;
	__aligned_u64	registered;
	__aligned_u64	cancelled;
	__aligned_u64	moved;
	__aligned_u64	delivered;
	__aligned_u64	put_back;
	__aligned_u64	refiled;
	__aligned_u64	callbacks;
	__aligned_u64	quiet;
	__aligned_u64	touched;
	__s64		offset;
	__aligned_u64	lease;
	__aligned_u64	slack;
	__u32		state;
	__u32		max_held;
	__aligned_u64	held;
	__aligned_u64	acked;
	__aligned_u64	nacked;
	__aligned_u64	lapsed;
	__aligned_u64	returned;
	__aligned_u64	deleted;
	__aligned_u64	missed;
};

/**
 * struct timewheel_stats - TIMEWHEEL_IOC_STATS: how late events were
 * @size: sizeof(struct timewheel_stats)
 * @flags: 0
 * @lateness: address of TIMEWHEEL_BUCKETS u64: of the events read, ns from the deadline until a
 *	reader took the token
 *
 * Bucket b counts values from low(b) to below low(b+1), where low(b) is b for b < 4, else
 * (4 + b%4) << (b/4 - 1). May sleep. Errors: %ENOMEM.
 */
struct timewheel_stats {
	__u32		size;
	__u32		flags;
	__aligned_u64	lateness;
};

/**
 * enum timewheel_state - what a token is doing
 * @TIMEWHEEL_STATE_NONE: from GET: the wheel has no such token
 * @TIMEWHEEL_STATE_PENDING: it waits for its deadline, or for a reader
 * @TIMEWHEEL_STATE_TAKEN: from LIST, for a moment: a reader is copying it; GET finds none
 * @TIMEWHEEL_STATE_HELD: a delivery of it is out
 */
enum timewheel_state {
	TIMEWHEEL_STATE_NONE	= 0,
	TIMEWHEEL_STATE_PENDING	= 1,
	TIMEWHEEL_STATE_TAKEN	= 2,
	TIMEWHEEL_STATE_HELD	= 3,
};

/**
 * struct timewheel_token - a token, as GET and LIST tell
 * @id: 0 on a wheel without ids
 * @handle: never 0
 * @cookie: 0 on a wheel without cookies
 * @deadline: of a pending or taken token, a whole tick; else 0
 * @lease_end: of a held token: when its lease ends; else 0
 * @left: from now until @deadline or @lease_end, 0 if that has passed
 * @timeout: from a touch to the deadline, 0 if the token cannot be touched
 * @period: between deadlines, 0 if it is not periodic
 * @base: of a periodic token: the deadline, to the ns, of its next event, or of the delivery
 *	that is out; else 0
 * @cycle: Cycle-Num: (d-1) / slots with d >= 1 ticks to go, 0 when due
 * @slot: due tick % slots
 * @state: of enum timewheel_state
 * @delivery: number of its last delivery, 0 for none
 * @attempts: deliveries since it was registered, or since a periodic token's ACK or MOVE
 */
struct timewheel_token {
	__aligned_u64	id;
	__aligned_u64	handle;
	__aligned_u64	cookie;
	__aligned_u64	deadline;
	__aligned_u64	lease_end;
	__aligned_u64	left;
	__aligned_u64	timeout;
	__aligned_u64	period;
	__aligned_u64	base;
	__aligned_u64	cycle;
	__u32		slot;
	__u32		state;
	__u32		delivery;
	__u32		attempts;
};

/**
 * struct timewheel_get - TIMEWHEEL_IOC_GET: tell about tokens, by their keys
 * @size: sizeof(struct timewheel_get)
 * @flags: TIMEWHEEL_OPF_BY_HANDLE
 * @keys: address of @count u64, ids or handles
 * @tokens: address of @count struct timewheel_token
 * @count: 0..TIMEWHEEL_MAX_BATCH
 * @token_size: sizeof(struct timewheel_token); what the kernel does not know is zeroed
 * @done: out: tokens written
 * @reserved: 0
 *
 * For a key that names no token all fields are 0: TIMEWHEEL_STATE_NONE.
 * Errors: %EINVAL also for ids on a wheel without ids.
 */
struct timewheel_get {
	__u32		size;
	__u32		flags;
	__aligned_u64	keys;
	__aligned_u64	tokens;
	__u32		count;
	__u32		token_size;
	__u32		done;
	__u32		reserved;
};

/**
 * struct timewheel_list - TIMEWHEEL_IOC_LIST: a wheel's tokens, in no order of time
 * @size: sizeof(struct timewheel_list)
 * @flags: 0
 * @cursor: in: 0 to begin, else as it came out; out: where to go on, or TIMEWHEEL_NEVER
 * @from: earliest deadline or lease's end to list
 * @to: the latest one to list; TIMEWHEEL_NEVER for all
 * @tokens: address of @count struct timewheel_token
 * @count: 1 and more
 * @token_size: as in struct timewheel_get
 * @listed: out: tokens written
 * @reserved: 0
 *
 * A caller that repeats the call until @cursor is TIMEWHEEL_NEVER gets each token that was there
 * throughout exactly once, one that came or went meanwhile at most once. A call may end with
 * fewer than @count or none. Errors: %EINVAL also if @cursor cannot have come out.
 */
struct timewheel_list {
	__u32		size;
	__u32		flags;
	__aligned_u64	cursor;
	__aligned_u64	from;
	__aligned_u64	to;
	__aligned_u64	tokens;
	__u32		count;
	__u32		token_size;
	__u32		listed;
	__u32		reserved;
};

/**
 * struct timewheel_event - what read(2) returns: one expired token
 * @id: 0 on a wheel without ids
 * @handle: no longer valid if the read ends the token
 * @cookie: 0 on a wheel without cookies
 * @deadline: a whole tick; of a periodic token that of the event's period
 * @taken: when a reader took the token
 * @delivery: number of this delivery, 0 on a wheel without leases
 * @attempts: deliveries of the token so far, with this one, 0 on a wheel without leases; of a
 *	periodic token those for this period
 * @missed: of a periodic token: how many periods before had no event
 * @reserved: 0
 *
 * read(2) returns whole events, as many as are due and fit, in the order of their due ticks. It
 * blocks until there is one, unless O_NONBLOCK or RWF_NOWAIT is given. Each event goes to one
 * reader only, and ends its token unless the wheel has leases or the token is periodic.
 *
 * While max_held deliveries are out, a wheel is as if nothing were due: until one has been
 * answered, its lease has ended, or the file that read it is released.
 *
 * Every call waits for memory of the buffer that is paged out, with no token taken. Only a
 * signal that kills ends this wait.
 *
 * poll(2), epoll(7) and io_uring say EPOLLIN while an expired token is there, perhaps also when
 * nothing is due: callers that must not block set O_NONBLOCK.
 *
 * Errors: %EAGAIN the call may not block, and there is no event; %EBADF, %EBADFD, %ENODEV as for
 * TIMEWHEEL_IOC_LIST; %EFAULT the buffer cannot be written: what was not copied will be read
 * again; %EINTR a signal came first; %EINVAL the buffer is smaller than one event.
 */
__extension__
struct timewheel_event {
	__aligned_u64	id;
	__aligned_u64	handle;
	__aligned_u64	cookie;
	__aligned_u64	deadline;
	__aligned_u64	taken;
	__u32		delivery;
	__u32		attempts;
	__u32		missed;
	__u32		reserved;
};

#endif /* _UAPI_LINUX_TIMEWHEEL_H */
