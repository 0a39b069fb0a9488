/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * timewheel: millions of timeouts behind one file descriptor.
 *
 * A wheel is a ring of slots turned by one timer. A token is one pending timeout,
 * named by a u64 id that its user chose, or by the handle that its registration
 * returned. timewheel(7) tells how wheels are used and shared, and explains touch
 * words, leases and periods. Here is what each call takes and gives.
 *
 * Any number of threads and processes may make any of these calls at once. All
 * times are u64 nanoseconds. A point of time is one of the wheel's clock as the
 * calling process sees it: in a time namespace, with its offsets. A deadline is
 * rounded up to a whole tick, never down.
 *
 * Every structure has the same layout for 32 and 64 bit callers. @size is
 * sizeof() the structure as the caller knows it, @flags has only flags that are
 * defined for the call, reserved fields are 0. A call that fails has changed
 * nothing, unless its description says otherwise. Every ioctl may fail with:
 *
 * ===========  ===============================================================
 * %EBADF       the call changes the wheel and the file is not open for writing,
 *              or it lists tokens and the file is not open for reading
 * %EBADFD      the call needs a wheel and the file has not been set up
 * %ENODEV      the call needs a wheel and the named one has been destroyed
 * %EFAULT      an address cannot be read or written
 * %EINVAL      @size is smaller than in the first release, a flag is not defined,
 *              or a reserved field is not 0
 * %E2BIG       @size is larger than the kernel knows and the rest is not zero,
 *              or @size is larger than a page
 * %ENOTTY      there is no such command
 * ===========  ===============================================================
 */
#ifndef _UAPI_LINUX_TIMEWHEEL_H
#define _UAPI_LINUX_TIMEWHEEL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* The numbers have neither size nor direction: structures may grow. */
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

/* Most operations, or keys, of one call. */
#define TIMEWHEEL_MAX_BATCH	65536

/* Number of the last tick: 223 years of 100 us. */
#define TIMEWHEEL_MAX_TICK	((1ULL << 46) - 1)

/* Room for the longest name of a wheel, 63 bytes, and the zero behind it. */
#define TIMEWHEEL_NAME_SIZE	64

/* Buckets of a histogram, see struct timewheel_stats. */
#define TIMEWHEEL_BUCKETS	252

/* A delivery can be held for this many leases, however often it is extended. */
#define TIMEWHEEL_MAX_LEASES	1000

/* A time that is never reached. */
#define TIMEWHEEL_NEVER		(~0ULL)

/* Offset for mmap(2) of a wheel's touch words: see timewheel(7). */
#define TIMEWHEEL_MAP_WORDS	0ULL

/**
 * enum timewheel_clock - what turns a wheel
 * @TIMEWHEEL_CLOCK_MONOTONIC: CLOCK_MONOTONIC, which stands still while the
 *	machine is suspended
 * @TIMEWHEEL_CLOCK_BOOTTIME: CLOCK_BOOTTIME, which goes on meanwhile. What fell due
 *	expires on resume; a wheel never wakes the machine
 * @TIMEWHEEL_CLOCK_REALTIME: CLOCK_REALTIME, the wall clock. A token is due when
 *	the clock shows its deadline, also after the clock has been set
 * @TIMEWHEEL_CLOCK_MANUAL: a clock that moves only by TIMEWHEEL_IOC_ADVANCE
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
 * @clocks: bit n is set if the module has clock n of enum timewheel_clock
 * @setup_flags: flags that TIMEWHEEL_IOC_SETUP knows
 * @codes: bit n is set if the module has operation n of enum timewheel_code
 * @max_slots: most slots of a ring
 * @min_tick: shortest tick in ns (module parameter min_tick_ns)
 * @max_tick: longest tick in ns
 * @max_tokens: most tokens of a wheel (module parameter max_tokens)
 * @max_word_ticks: on a wheel with touch words the deadline of a token that
 *	has a timeout is less than this many ticks ahead
 * @max_batch: TIMEWHEEL_MAX_BATCH
 * @op_size: the module's sizeof(struct timewheel_op)
 * @token_size: the module's sizeof(struct timewheel_token)
 * @event_size: sizeof(struct timewheel_event), which never changes
 *
 * All fields but @size and @flags are written. The file need not be set up. Never
 * blocks. Only the common errors.
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
 * @TIMEWHEEL_SETUP_NO_IDS: tokens have no id, only the handle that their
 *	registration returned. Saves 16 bytes and an entry of a hash table each
 * @TIMEWHEEL_SETUP_NO_COOKIES: tokens carry no cookie. Saves 8 bytes each
 * @TIMEWHEEL_SETUP_TOUCH_WORDS: tokens have touch words, which programs may map
 *	and touch by a store. Costs 8 bytes each; touches by ioctl(2) then take the
 *	wheel's lock
 * @TIMEWHEEL_SETUP_PERIODS: tokens may be periodic. Costs 48 bytes each, which a
 *	wheel with leases has anyway
 */
enum timewheel_setup_flags {
	TIMEWHEEL_SETUP_NO_IDS		= 1 << 0,
	TIMEWHEEL_SETUP_NO_COOKIES	= 1 << 1,
	TIMEWHEEL_SETUP_TOUCH_WORDS	= 1 << 2,
	TIMEWHEEL_SETUP_PERIODS		= 1 << 3,
};

/**
 * struct timewheel_setup - TIMEWHEEL_IOC_SETUP: make this file's private wheel
 * @size: sizeof(struct timewheel_setup)
 * @flags: of enum timewheel_setup_flags
 * @clock: one of enum timewheel_clock
 * @slots: slots of the ring, 1..65536; any number, not only powers of two
 * @tick: ns per tick, from caps' min_tick to its max_tick (100 us to a day)
 * @max_tokens: most tokens at any one time, 1 to caps' max_tokens. The wheel takes
 *	memory for tokens as they come
 * @start: MANUAL clock: the tick on which the hand starts, at most
 *	TIMEWHEEL_MAX_TICK; else 0
 * @lease: 0: a read ends tokens. Else for how many ns, a tick and more, a reader
 *	holds a token that it has read, until it answers. Costs 48 bytes each
 * @slack: ns by which the timer may be late, so that expirations that are that
 *	close, and other timers of the CPU, share one interrupt; 0 with a MANUAL
 *	clock
 * @max_attempts: with a lease: a token is buried after this many deliveries that
 *	ended without ACK; 0 for never
 * @reserved: 0
 *
 * The wheel and its @max_tokens count towards the limits of the calling user and
 * of the machine until the wheel is gone: see timewheel(7). Memory is charged to
 * the caller's memory cgroup. May sleep for memory.
 *
 * Errors: %EBUSY this file has been set up; %EDQUOT the user would have more
 * wheels or tokens than a user may have; %EINVAL a value is outside its range, or
 * does not go with another; %ENOMEM; %ENOSPC there would be more wheels or tokens
 * than the machine may have; %ERANGE with such short ticks the clock, or @start,
 * is beyond the last tick or 2^63 ns.
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
	__u32		max_attempts;
	__u32		reserved;
};

/**
 * enum timewheel_create_flags - flags of struct timewheel_create
 * @TIMEWHEEL_CREATE_EXCLUSIVE: fail if a wheel of this name exists
 */
enum timewheel_create_flags {
	TIMEWHEEL_CREATE_EXCLUSIVE	= 1 << 0,
};

/**
 * struct timewheel_create - TIMEWHEEL_IOC_CREATE: make a named wheel
 * @size: sizeof(struct timewheel_create)
 * @flags: of enum timewheel_create_flags
 * @setup: address of a struct timewheel_setup that describes the wheel
 * @name: 1 to 63 ASCII letters, digits, "-" and "_", then zeros. The machine has
 *	one space of names
 *
 * For a file of /dev/timewheel, which need not be set up. When the call returns,
 * the wheel exists as /dev/timewheels/NAME, owned by the caller's effective user
 * and group, with mode 0600. It is charged as by TIMEWHEEL_IOC_SETUP and keeps the
 * module loaded. May sleep. If something else has the node's path, the wheel
 * exists without a node.
 *
 * Returns 0 if the call made the wheel, or TIMEWHEEL_RES_EXISTED if a wheel of
 * this name and with the same setup existed, perhaps another user's.
 *
 * Errors: those of TIMEWHEEL_IOC_SETUP without %EBUSY; %EEXIST a wheel of this
 * name exists, and the call is exclusive or the setup differs; %EINVAL also if
 * the name is empty, has another byte in it, or something behind its zero;
 * %ENAMETOOLONG the name has no zero; %ENOTTY the file is a named wheel's.
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
 * @name: its name, as in struct timewheel_create
 *
 * For a file of /dev/timewheel, by the user that created the wheel (by effective
 * user id), or with CAP_SYS_ADMIN. Files that still have the wheel open get
 * EPOLLHUP and EPOLLERR, and %ENODEV from each call that needs a wheel; sleeping
 * readers wake up. The wheel's memory is freed, and its creator credited, with the
 * last such file. May sleep.
 *
 * Errors: %EINVAL, %ENAMETOOLONG, %ENOTTY as for TIMEWHEEL_IOC_CREATE; %ENOENT
 * no wheel has this name; %EPERM the wheel is another user's.
 */
struct timewheel_destroy {
	__u32	size;
	__u32	flags;
	char	name[TIMEWHEEL_NAME_SIZE];
};

/**
 * enum timewheel_code - operations on a token
 * @TIMEWHEEL_OP_REGISTER: make a token, due after a delay of @time ns, or with
 *	TIMEWHEEL_OPF_ABSOLUTE at the point of time @time. If that has passed, the
 *	token is due at once. Its timeout, which touches use, is @timeout, or if
 *	that is 0 the delay; a token registered for a point of time, or for a delay
 *	of 0, then has none. With a @period the token is periodic: @time is the
 *	first deadline, periods are counted from there to the ns, and the token
 *	has no timeout.
 *	Errors: %EEXIST a token has this id; %EINVAL an id or a cookie on a wheel
 *	without them, @period is shorter than a tick, or given together with
 *	@timeout or on a wheel without periods; %ENOMEM; %ENOSPC the wheel has
 *	max_tokens tokens; %ERANGE the deadline is beyond the last tick or 2^63 ns,
 *	@timeout or @period is 2^63 ns or more, or on a wheel with touch words the
 *	deadline or the timeout is too far ahead (caps' max_word_ticks);
 *	%ESHUTDOWN the wheel is draining.
 * @TIMEWHEEL_OP_TOUCH: restart the token's timeout: it is due its whole timeout
 *	from now. A touch never brings a deadline nearer. Takes no lock, unless an
 *	id is not found. Errors: %ENOENT, %ESTALE; %EINVAL the token has no timeout;
 *	%ERANGE the deadline would be beyond the last tick.
 * @TIMEWHEEL_OP_TOUCH_OR_REGISTER: touch the token of this id, or, if there is
 *	none, register one for a delay of @time with that timeout. The timeout and
 *	cookie of an existing token stay as they are.
 *	Errors: those of the other two without %ENOENT and %ESTALE; %EEXIST the
 *	token is held or buried.
 * @TIMEWHEEL_OP_MOVE: make the token due after @time ns from now, or with
 *	TIMEWHEEL_OPF_ABSOLUTE at @time, earlier or later than before. Its timeout
 *	becomes @timeout, or if that is 0 the delay; with a point of time, or a
 *	delay of 0, it stays. A periodic token counts its periods from there.
 *	Errors: %ENOENT, %ESTALE, %ERANGE.
 * @TIMEWHEEL_OP_CANCEL: end the token: no event of it will come.
 *	Errors: %ENOENT, %ESTALE.
 * @TIMEWHEEL_OP_ACK: the reader has dealt with the delivery: its token ends, or
 *	is pending again for its next period. With a delay @time other than 0, or
 *	TIMEWHEEL_OPF_ABSOLUTE, the token is pending again until then, with all its
 *	attempts before it; a periodic one counts its periods from there.
 *	Errors: also %ERANGE.
 * @TIMEWHEEL_OP_NACK: the reader has not dealt with it: the token is due again
 *	after @time ns, or with TIMEWHEEL_OPF_ABSOLUTE at @time; after max_attempts
 *	deliveries it is buried. Errors: also %ERANGE.
 * @TIMEWHEEL_OP_EXTEND: the lease ends @time ns from now; 0 stands for the
 *	wheel's lease. Errors: also %ERANGE that is beyond the last tick, or more
 *	than TIMEWHEEL_MAX_LEASES leases after the delivery.
 * @TIMEWHEEL_OP_BURY: keep the token aside until KICK or DELETE. With a @delivery
 *	of 0 for a token that is pending.
 * @TIMEWHEEL_OP_KICK: make a buried or pending token due now, with all its
 *	attempts before it. Errors: also %EBUSY the token is held.
 * @TIMEWHEEL_OP_DELETE: end the token, whether it is pending, held or buried.
 *
 * %ENOENT: no token with this id is pending. %ESTALE: the token of this handle
 * is not pending, or the handle is another wheel's.
 *
 * ACK, NACK, EXTEND, BURY, KICK and DELETE need a wheel with leases, else %EINVAL.
 * For them %ENOENT means that no token has this id, %ESTALE that none has this
 * handle or that a reader is still copying it. ACK, NACK, EXTEND and BURY answer
 * a delivery: %ESTALE also if delivery @delivery is no longer out; %EPERM another
 * open file holds it.
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
	TIMEWHEEL_OP_BURY		= 8,
	TIMEWHEEL_OP_KICK		= 9,
	TIMEWHEEL_OP_DELETE		= 10,
};

/**
 * enum timewheel_op_flags - flags of operations, of touches and of GET
 * @TIMEWHEEL_OPF_BY_HANDLE: tokens are named by handle, not by id (not with the
 *	operations that register)
 * @TIMEWHEEL_OPF_ABSOLUTE: @time is a point of time of the wheel's clock, not a
 *	delay (REGISTER, MOVE, ACK and NACK only)
 * @TIMEWHEEL_OPF_ANY_FILE: the answer holds also if another open file has the
 *	delivery (ACK, NACK, EXTEND and BURY only)
 */
enum timewheel_op_flags {
	TIMEWHEEL_OPF_BY_HANDLE		= 1 << 0,
	TIMEWHEEL_OPF_ABSOLUTE		= 1 << 1,
	TIMEWHEEL_OPF_ANY_FILE		= 1 << 2,
};

/**
 * enum timewheel_result - bits of a result that is not negative
 * @TIMEWHEEL_RES_WAS_DUE: the token was past its deadline, but no reader had
 *	taken it: the operation won
 * @TIMEWHEEL_RES_REGISTERED: TOUCH_OR_REGISTER found no token and registered one
 * @TIMEWHEEL_RES_BURIED: NACK has buried the token
 * @TIMEWHEEL_RES_EXISTED: TIMEWHEEL_IOC_CREATE found the wheel
 */
enum timewheel_result {
	TIMEWHEEL_RES_WAS_DUE		= 1 << 0,
	TIMEWHEEL_RES_REGISTERED	= 1 << 1,
	TIMEWHEEL_RES_BURIED		= 1 << 2,
	TIMEWHEEL_RES_EXISTED		= 1 << 3,
};

/**
 * struct timewheel_op - TIMEWHEEL_IOC_OP: one operation; also a batch's element
 * @size: sizeof(struct timewheel_op); in a batch the same as its op_size
 * @flags: of enum timewheel_op_flags
 * @code: one of enum timewheel_code
 * @result: out: bits of enum timewheel_result; in a batch also a negative errno
 * @id: in: the token's id, any value
 * @handle: in with TIMEWHEEL_OPF_BY_HANDLE; out from each operation that
 *	registered a token: its handle, never 0
 * @cookie: in, REGISTER and TOUCH_OR_REGISTER: travels with the token
 * @time: in: a delay in ns, or with TIMEWHEEL_OPF_ABSOLUTE a point of time, read
 *	by REGISTER, TOUCH_OR_REGISTER, MOVE, ACK, NACK and EXTEND
 * @timeout: in, REGISTER and MOVE: ns from a touch to the deadline
 * @period: in, REGISTER: ns between deadlines, 0 for a single one
 * @deadline: out: the token's deadline after the operation; from CANCEL and
 *	DELETE the one that it had (of a held token its lease's end); from EXTEND
 *	the lease's end. A whole tick
 * @delivery: in: the delivery's number, from its event, read by ACK, NACK, EXTEND
 *	and BURY; 0 for all others
 * @reserved: 0
 *
 * If the operation fails, the structure stays as it was. Fields that an operation
 * does not read are ignored; fields that it does not write stay. Registrations may
 * sleep for memory, other operations never block.
 *
 * Errors: those of the operation; %EINVAL no such @code, a flag or a @delivery
 * does not go with it, or an id on a wheel without ids; %EFAULT also if @result
 * cannot be written: the operation has then been carried out.
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
 * @ops: address of an array of @count struct timewheel_op
 * @count: operations in the array, 0..TIMEWHEEL_MAX_BATCH
 * @op_size: bytes from one to the next: sizeof(struct timewheel_op)
 * @done: out: how many of them, from the first on, were carried out
 * @reserved: 0
 *
 * Each operation gets its own @result; one that fails does not end the batch.
 * Returns 0 with @done equal to @count, or less after a signal: the caller goes on
 * from there. May sleep for memory.
 *
 * Errors: %EINVAL also if @count is too large, or @op_size is too small, larger
 * than a page or no multiple of 8; %EFAULT an operation cannot be read or a result
 * cannot be written: @done operations were carried out all the same, the results
 * of the last of them may be missing.
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
 * @key: the token's id, or with TIMEWHEEL_OPF_BY_HANDLE its handle
 *
 * Returns 0, or TIMEWHEEL_RES_WAS_DUE. Never blocks. Errors: those of
 * TIMEWHEEL_OP_TOUCH.
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
 * @keys: address of an array of @count u64, ids or handles
 * @count: keys in the array, 0..TIMEWHEEL_MAX_BATCH
 * @done: out: how many tokens, from that of the first key on, were touched
 *
 * For callers that serve many connections in one turn of their loop. Touches in
 * the order of the keys, up to the first key that fails: the error is that of key
 * @done, and the keys behind it have not been looked at. Returns 0 with @done
 * equal to @count, or less after a signal: the caller goes on from there. Blocks
 * only for memory that is paged out.
 *
 * Errors: those of TIMEWHEEL_OP_TOUCH; %EINVAL also if @count is too large, then
 * without @done; %EFAULT key @done cannot be read, or @done itself cannot be
 * written: the tokens before it have been touched all the same.
 */
struct timewheel_touch_many {
	__u32		size;
	__u32		flags;
	__aligned_u64	keys;
	__u32		count;
	__u32		done;
};

/**
 * struct timewheel_advance - TIMEWHEEL_IOC_ADVANCE: put a MANUAL wheel's hand
 * @size: sizeof(struct timewheel_advance)
 * @flags: 0
 * @tick: the tick to which the hand goes, forward or back
 *
 * What is due by then can be read at once. Never blocks.
 *
 * Errors: %EINVAL also if the wheel's clock is not MANUAL; %ERANGE @tick is beyond
 * TIMEWHEEL_MAX_TICK or 2^63 ns.
 */
struct timewheel_advance {
	__u32		size;
	__u32		flags;
	__aligned_u64	tick;
};

/**
 * enum timewheel_control_state - what a wheel may be told to be
 * @TIMEWHEEL_CONTROL_PAUSED: time passes and all operations go on, but no event is
 *	delivered: a read blocks, or fails with %EAGAIN, and poll(2) says no
 * @TIMEWHEEL_CONTROL_DRAINING: no token can be registered: %ESHUTDOWN. Periodic
 *	tokens go on
 */
enum timewheel_control_state {
	TIMEWHEEL_CONTROL_PAUSED	= 1 << 0,
	TIMEWHEEL_CONTROL_DRAINING	= 1 << 1,
};

/**
 * struct timewheel_control - TIMEWHEEL_IOC_CONTROL: pause, resume, drain, undrain
 * @size: sizeof(struct timewheel_control)
 * @flags: 0
 * @state: of enum timewheel_control_state: what the wheel is from now on
 * @mask: which bits of @state count; the others stay as they are
 *
 * A read that is under way while a wheel is paused may still bring events. Never
 * blocks. Errors: %EINVAL also if @mask has an undefined bit, or @state has a bit
 * that is not in @mask.
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
 * @clock: as set up
 * @slots: as set up
 * @tick: as set up
 * @max_tokens: as set up
 * @setup_flags: as set up
 * @number: names the wheel in traces, fdinfo and debugfs
 * @now: the wheel's clock in ns
 * @hand: the tick on which the hand is: @now / @tick of the host's clock
 * @next: the point of time at which the wheel next looks for expired tokens,
 *	no later than the earliest deadline; TIMEWHEEL_NEVER if there is none
 * @pending: tokens that wait for their deadline, or for a reader
 * @taken: tokens that readers are copying
 * @bytes: memory that the wheel holds, in bytes
 * @registered: registrations
 * @cancelled: cancellations
 * @moved: moves
 * @delivered: events read, each delivery of a token one
 * @put_back: tokens put back because a reader's buffer could not be written
 * @refiled: tokens filed again, because they had been touched or their
 *	block had been opened
 * @callbacks: how often the wheel's timer went off
 * @quiet: looks at the wheel after such a callback that found no token due
 * @touched: touches by ioctl(2), without those under way on other CPUs
 * @offset: ns that the clock of the caller's time namespace is ahead of the
 *	clock that ticks are counted by: tick = (time - @offset) / @tick
 * @lease: as set up
 * @slack: as set up
 * @state: of enum timewheel_control_state
 * @max_attempts: as set up
 * @held: tokens of which a delivery is out
 * @buried: tokens that are buried
 * @acked: ACKs
 * @nacked: NACKs
 * @lapsed: leases that ended without an answer
 * @returned: deliveries that came back when a file was released
 * @kicked: KICKs
 * @deleted: DELETEs
 * @missed: periods that had no event of their own
 *
 * All fields but @size and @flags are written, as of one moment; counters count
 * from the wheel's beginning. Never blocks. Only the common errors.
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
	__u32		max_attempts;
	__aligned_u64	held;
	__aligned_u64	buried;
	__aligned_u64	acked;
	__aligned_u64	nacked;
	__aligned_u64	lapsed;
	__aligned_u64	returned;
	__aligned_u64	kicked;
	__aligned_u64	deleted;
	__aligned_u64	missed;
};

/**
 * struct timewheel_stats - TIMEWHEEL_IOC_STATS: how late a wheel's events were
 * @size: sizeof(struct timewheel_stats)
 * @flags: 0
 * @lateness: address of TIMEWHEEL_BUCKETS u64, or 0: of the events read so far,
 *	ns from the deadline until a reader took the token
 * @wake: address of TIMEWHEEL_BUCKETS u64, or 0: of the times that the wheel's
 *	timer went off, ns from when it should have until a program looked
 *
 * Each is a histogram: bucket b counts values of at least low(b) and less than
 * low(b + 1), where low(b) is b for the first 4, then
 * (4 + b % 4) << (b / 4 - 1): four buckets to a power of two, the last one
 * up to 2^64. Both are of one moment. The file need not be open for writing. May
 * sleep for memory. Errors: %ENOMEM, and the common ones.
 */
struct timewheel_stats {
	__u32		size;
	__u32		flags;
	__aligned_u64	lateness;
	__aligned_u64	wake;
};

/**
 * enum timewheel_state - what a token is doing
 * @TIMEWHEEL_STATE_NONE: from GET: the wheel has no such token
 * @TIMEWHEEL_STATE_PENDING: it waits for its deadline, or for a reader
 * @TIMEWHEEL_STATE_TAKEN: from LIST: a reader is copying it; GET finds none
 * @TIMEWHEEL_STATE_HELD: a delivery of it is out
 * @TIMEWHEEL_STATE_BURIED: it is kept aside
 */
enum timewheel_state {
	TIMEWHEEL_STATE_NONE	= 0,
	TIMEWHEEL_STATE_PENDING	= 1,
	TIMEWHEEL_STATE_TAKEN	= 2,
	TIMEWHEEL_STATE_HELD	= 3,
	TIMEWHEEL_STATE_BURIED	= 4,
};

/**
 * struct timewheel_token - a token, as GET and LIST tell of it
 * @id: its id, 0 on a wheel without ids
 * @handle: its handle
 * @cookie: as registered, 0 on a wheel without cookies
 * @deadline: of a pending or taken token: its deadline, a whole tick; else 0
 * @lease_end: of a held token: the point of time at which its lease ends; else 0
 * @buried_at: of a buried token: the tick on which it was buried, in ns; else 0
 * @left: ns from now until @deadline or @lease_end, 0 if that has passed
 * @timeout: ns from a touch to the deadline, 0 if the token cannot be touched
 * @period: of a periodic token: ns between deadlines; else 0
 * @base: of a periodic token: the deadline to the ns of the period that its next
 *	event is for, or that the delivery which is out is for; else 0
 * @cycle: Cycle-Num, the whole laps that the hand still makes before the lap in
 *	which the token is due: (d - 1) / slots with d >= 1 ticks to go, 0 when due
 * @slot: the slot of the ring: due tick % slots
 * @state: one of enum timewheel_state
 * @delivery: number of its last delivery, or of one after it whose event could not
 *	be copied; 0 if there was none
 * @attempts: its deliveries since it was registered, acked or kicked
 *
 * A REGISTER with the same @id, @cookie, @timeout and @period, TIMEWHEEL_OPF_ABSOLUTE
 * and a @time of @deadline, or of @base if the token is periodic, makes the token
 * again as it was. @delivery, @attempts and a delivery that is out do not survive.
 */
struct timewheel_token {
	__aligned_u64	id;
	__aligned_u64	handle;
	__aligned_u64	cookie;
	__aligned_u64	deadline;
	__aligned_u64	lease_end;
	__aligned_u64	buried_at;
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
 * @keys: address of an array of @count u64, ids or handles
 * @tokens: address of an array of @count struct timewheel_token
 * @count: keys in the array, 0..TIMEWHEEL_MAX_BATCH
 * @token_size: bytes from one token to the next: sizeof(struct timewheel_token);
 *	what the kernel does not know of a larger one is zeroed
 * @done: out: how many tokens, from that of the first key on, were written
 * @reserved: 0
 *
 * A key that names no token gets one that is all zeros, its state
 * TIMEWHEEL_STATE_NONE. Changes nothing; the file need not be open for writing.
 * Returns 0 with @done equal to @count, or less after a signal: the caller goes on
 * from there. Blocks only for memory that is paged out.
 *
 * Errors: %EINVAL also if @count is too large, @token_size is too small, larger
 * than a page or no multiple of 8, or an id on a wheel without ids; %EFAULT a key
 * cannot be read, or the arrays cannot be written.
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
 * @cursor: in: 0 to begin, else as it came out; out: where to go on, or
 *	TIMEWHEEL_NEVER when all have been listed
 * @from: only tokens whose deadline, lease's end or time of burial is this point
 *	of time or later
 * @to: only tokens for which it is this point of time or earlier; TIMEWHEEL_NEVER
 *	for all
 * @tokens: address of an array of @count struct timewheel_token
 * @count: room in the array, 1 and more
 * @token_size: bytes from one to the next, as in struct timewheel_get
 * @listed: out: how many were written
 * @reserved: 0
 *
 * A caller that repeats the call until @cursor is TIMEWHEEL_NEVER gets each token
 * that was there throughout exactly once, whatever other callers do meanwhile,
 * and a token that came or went meanwhile at most once. The call may end early,
 * with fewer than @count or none. The file need not be open for writing. Blocks
 * only for memory that is paged out.
 *
 * Errors: %EINVAL also if @cursor cannot be one that came out, @count is 0, or
 * @token_size is too small, larger than a page or no multiple of 8; %EFAULT the
 * array cannot be written: the caller can list again from the same @cursor.
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
 * @id: the token's id, 0 on a wheel without ids
 * @handle: its handle, no longer valid if the read ends the token
 * @cookie: as registered, 0 on a wheel without cookies
 * @deadline: its deadline, a whole tick: of a token that comes again the last one,
 *	of a periodic token that of the period which the event is for
 * @taken: the wheel's clock, in ns, when a reader took the token
 * @delivery: number of this delivery of the token, on a wheel with leases; else 0
 * @missed: of a periodic token: how many periods before this one had no event
 *
 * read(2) returns whole events, as many as are due and fit, in the order of
 * their due ticks; within one tick there is no order. It blocks until there is
 * one, unless O_NONBLOCK or RWF_NOWAIT is given. Each event goes to one reader
 * only, and ends its token unless the wheel has leases or the token is periodic.
 * A signal ends a read early, with the events that it has by then.
 *
 * poll(2), epoll(7) and io_uring say EPOLLIN while an expired token is there;
 * edge-triggered waiters must read until %EAGAIN to be told again. A poll that
 * meets many touched tokens may say EPOLLIN although nothing is due: callers that
 * must not block set O_NONBLOCK.
 *
 * Errors: %EAGAIN nothing is due and the call may not block; %EBADF the file is
 * not open for reading; %EBADFD it is not set up; %EFAULT the buffer cannot be
 * written: what was not copied will be read again; %EINTR a signal came first;
 * %EINVAL the buffer is smaller than one event; %ENODEV the wheel has been
 * destroyed; %ENOMEM only the first read by a file of a wheel with leases.
 */
struct timewheel_event {
	__aligned_u64	id;
	__aligned_u64	handle;
	__aligned_u64	cookie;
	__aligned_u64	deadline;
	__aligned_u64	taken;
	__u32		delivery;
	__u32		missed;
};

#endif /* _UAPI_LINUX_TIMEWHEEL_H */
