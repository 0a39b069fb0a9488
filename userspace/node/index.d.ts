// SPDX-License-Identifier: LGPL-2.1-or-later

/**
 * Millions of timeouts behind one file descriptor.
 *
 * A wheel is a ring of slots turned by a timer in the kernel; a token is one pending
 * timeout on it. Tokens are registered, touched, moved and cancelled, singly or in
 * batches; those that expire are read as events:
 *
 *     const { Wheel } = require('timewheel');
 *
 *     const wheel = Wheel.open({ slots: 31, tick: 1000, maxTokens: 100_000 });
 *     wheel.touchOrRegister(user, 30_000);
 *     wheel.on('expired', (events) => {
 *         for (const { id } of events)
 *             offline(id);
 *     });
 *
 * or `for await (const events of wheel)`. A read ends the token of an event. On a wheel
 * with leases it does not: the reader answers when it has dealt with the event; else the
 * event comes again:
 *
 *     const setup = { slots: 60, tick: 1000, maxTokens: 100_000, lease: 30_000 };
 *     const wheel = Wheel.openOrCreate('orders', setup);
 *     for await (const events of wheel)
 *         for (const event of events) {
 *             await remind(event.id);
 *             wheel.ack(event);
 *         }
 *
 * **Numbers.** Ids and cookies are numbers from 0 to 2**64-1. They are given as BigInts,
 * or as numbers up to 2**53-1; ids, cookies and handles are always told as BigInts: 7 is
 * told as 7n.
 *
 * **Times.** A duration is given as a number of milliseconds, which may have a fraction,
 * or as a BigInt of nanoseconds, and told as a number of milliseconds. A point of time
 * of the wheel's clock is told as a BigInt of nanoseconds, by a name that ends in Ns; and
 * on a wheel of the clock 'realtime' also as a Date, which is null on other wheels. It is
 * given as one or the other. A token is never early: its deadline is rounded up to a whole
 * tick.
 *
 * **What waits.** All calls are synchronous and return at once: none waits for an event
 * or for a disk. A call that opens a wheel or registers tokens may wait for memory. A
 * batch of 65,536 operations takes some ten milliseconds. Only take(), the iteration and
 * 'expired' wait; libuv's event loop waits for them, as for a socket, without a thread and
 * without polling.
 *
 * **Errors.** What the kernel refuses is an Error with `code` such as 'ENOENT', `errno`,
 * the negative number of that, and `syscall`, the name of the method. ENOENT: no token of
 * this id is pending, no wheel of this name, no device; EEXIST: a token has the id, the
 * name is in use; EACCES, EPERM: not allowed; ESTALE: the token of this handle is not
 * pending, or the answer to a delivery is too late; ESHUTDOWN: the wheel takes no new
 * tokens; ERANGE: a deadline is beyond the last tick or 2**63 ns, or too far ahead for
 * touch words; EINVAL: a value is out of its range, or an operation does not go with the
 * wheel or the token; ENOSPC: the wheel has its maxTokens tokens, or the batch is full;
 * EDQUOT: the user would have too many wheels or tokens; EBADF: the wheel was opened
 * only for reading or writing, and the call is of the other kind;
 * ENODEV: the wheel was a named one and has been destroyed; ENOMEM. Besides: TypeError and
 * RangeError for arguments of a wrong type or range, and an Error with the code
 * 'ERR_WHEEL_CLOSED'. A call that fails has changed nothing.
 *
 * **Kernel or process.** Where no module can be loaded, as for development and tests, a
 * process keeps a wheel itself: `Wheel.open(setup, { process: true })`. With
 * TIMEWHEEL=process in the environment all wheels that the process makes and opens are such,
 * with the names of named wheels known in this process only, and caps() tells of them. All
 * works as with a wheel of the kernel, but for what timewheel(7) tells; most of all: tokens
 * end with the process, and openFd() takes no fd of such a wheel: ENOTTY.
 *
 * **Threads.** Each worker thread may load the module. A wheel belongs to the thread that
 * opened it; threads, and processes, share a named wheel when each of them opens it.
 */

import { EventEmitter } from 'events';

/** A number from 0 to 2**64-1; as a number up to 2**53-1. */
export type Id = number | bigint;

/** A number of milliseconds, or a BigInt of nanoseconds. */
export type Duration = number | bigint;

/** A BigInt of nanoseconds of the wheel's clock; a Date if that is 'realtime'. */
export type Point = Date | bigint;

/** The time when a token is due: after a duration, at a Date, or at a point of time. */
export type Due = Duration | Date | { at: Point };

/** The name of a token: its id, or its handle, as in an event or a token. */
export type Key = Id | { handle: Id };

/**
 * The clock that turns a wheel. 'monotonic' stands still while the machine is suspended,
 * 'boottime' goes on; 'realtime' is the wall clock, which may be set; 'manual' moves only by
 * advance().
 */
export type Clock = 'monotonic' | 'boottime' | 'realtime' | 'manual';

/**
 * The state of a token. 'pending': it waits for its deadline, or for a reader; 'taken', from
 * tokens() only: a reader is copying it; 'held': a delivery of it is out.
 */
export type State = 'pending' | 'taken' | 'held';

/** The access to a wheel: to read events and look at tokens, to change tokens, or both. */
export type Access = 'r' | 'w' | 'rw';

/** Bits that tell how an operation went, besides that it succeeded. */
export const Result: Readonly<{
	/** The token was past its deadline, but no reader had taken it. */
	WAS_DUE: number;
	/** touchOrRegister() found no token and registered one. */
	REGISTERED: number;
}>;

/** The description of a wheel. */
export interface Setup {
	/** Slots of the ring, 1 to 65536. */
	slots: number;
	/** Time from one slot to the next: 0.1 ms to a day. */
	tick: Duration;
	/** Most tokens at any one time. Memory for them is taken as they come. */
	maxTokens: Id;
	/** 'monotonic' unless given. */
	clock?: Clock;
	/** false: tokens have no id but only a handle; saves memory. */
	ids?: boolean;
	/** false: tokens carry no cookie; saves memory. */
	cookies?: boolean;
	/** The tick on which the hand of a 'manual' clock starts. */
	start?: Id;
	/** How long a reader holds a token until it answers; 0: a read ends tokens. */
	lease?: Duration;
	/**
	 * With a lease: how many deliveries may be out at once, 1 to maxTokens; tokens that are due
	 * beyond this number wait. Each takes 36 bytes, from the start. maxTokens unless given, but
	 * at most 65536. Without a lease 0.
	 */
	maxHeld?: number;
	/** true: tokens may be periodic; costs memory. */
	periods?: boolean;
	/** How late the timer may be, to save interrupts. */
	slack?: Duration;
}

/** An expired token. */
export interface Event {
	id: bigint;
	/** The handle, which is no longer valid if the read has ended the token. */
	handle: bigint;
	cookie: bigint;
	/** Its deadline, a whole tick. */
	deadlineNs: bigint;
	deadline: Date | null;
	/** When a reader took the token. */
	takenNs: bigint;
	taken: Date | null;
	/** Number of this delivery of the token; 0 on a wheel without leases. */
	delivery: number;
	/**
	 * Deliveries of the token so far, with this one; of a periodic token those for this
	 * period; 0 on a wheel without leases.
	 */
	attempts: number;
	/** Of a periodic token: how many periods before this one had no event. */
	missed: number;
}

/** A token on the wheel. A point of time that it does not have is 0n and null. */
export interface Token {
	id: bigint;
	handle: bigint;
	cookie: bigint;
	/** Of a pending token: its deadline, a whole tick. */
	deadlineNs: bigint;
	deadline: Date | null;
	/** Of a held token: when its lease ends. */
	leaseEndNs: bigint;
	leaseEnd: Date | null;
	/** Time until the deadline or the lease's end, 0 if that has passed. */
	left: number;
	/** Time from a touch to the deadline, 0 if the token cannot be touched. */
	timeout: number;
	/** Time between deadlines, 0 if it is not periodic. */
	period: number;
	/** Of a periodic token: the deadline, to the ns, of its next event. */
	baseNs: bigint;
	base: Date | null;
	/** Whole laps that the hand makes before the lap in which the token is due. */
	cycle: number;
	/** The slot of the ring in which it is due. */
	slot: number;
	state: State;
	/** Number of its last delivery, 0 if there was none. */
	delivery: number;
	/** Its deliveries since it was registered, or since its period began. */
	attempts: number;
}

/** The abilities of the kernel's module, and its limits. */
export interface Caps {
	clocks: Clock[];
	/** Whether wheels may be without ids; and so on. */
	idsOptional: boolean;
	cookiesOptional: boolean;
	leases: boolean;
	periods: boolean;
	maxSlots: number;
	minTick: number;
	maxTick: number;
	/** Most tokens of one wheel. */
	maxTokens: number;
	/** On a wheel with touch words a timeout has to be less than so many ticks. */
	maxWordTicks: number;
	/** Most operations of a batch. */
	maxBatch: number;
}

/** A wheel's settings, state and counters, all of one moment. */
export interface Info {
	clock: Clock;
	slots: number;
	tick: number;
	maxTokens: number;
	ids: boolean;
	cookies: boolean;
	/** Whether programs in other languages can map its touch words. */
	touchWords: boolean;
	periods: boolean;
	lease: number;
	/** The most deliveries that may be out at once; 0 on a wheel without leases. */
	maxHeld: number;
	slack: number;
	/** Names the wheel in traces, /proc/PID/fdinfo and debugfs. */
	number: number;
	/** The wheel's clock. */
	nowNs: bigint;
	now: Date | null;
	/** The tick on which the hand is. */
	hand: number;
	/** When the wheel next looks for expired tokens; null if it is empty. */
	nextNs: bigint | null;
	next: Date | null;
	/** How far the clock is ahead in this process's time namespace. */
	offsetNs: bigint;
	paused: boolean;
	draining: boolean;
	/** Counts of the tokens in each state. */
	pending: number;
	taken: number;
	held: number;
	/** Memory that the wheel holds. */
	bytes: number;
	/** Registrations since the wheel was made; the others likewise. */
	registered: number;
	cancelled: number;
	moved: number;
	/** Events read. */
	delivered: number;
	/** Tokens put back by readers whose buffer could not be written. */
	putBack: number;
	/** Tokens filed again, after a touch for instance. */
	refiled: number;
	/** Times that the wheel's timer went off. */
	callbacks: number;
	/** How many of these times found no token due. */
	quiet: number;
	touched: number;
	acked: number;
	nacked: number;
	/** Leases that ended without an answer. */
	lapsed: number;
	/** Deliveries that came back when a file was released. */
	returned: number;
	deleted: number;
	/** Periods that had no event. */
	missed: number;
}

/** Counts of values, in ms, by their size. */
export class Histogram {
	private constructor();
	/** How many values were counted in each bucket; bounds() tells which values. */
	readonly buckets: BigUint64Array;
	/** How many values were counted. */
	readonly count: number;
	/**
	 * The value that @percent of all do not exceed: 50 for the median, 99.9, 100 for
	 * the greatest; at most a quarter too high. ENODATA: nothing was counted; EINVAL:
	 * @percent is not within 0 and 100.
	 */
	percentile(percent: number): number;
	/** The least and the greatest value that a bucket counts. */
	static bounds(bucket: number): [number, number];
}

/** The lateness of a wheel's events. */
export interface Stats {
	/** The lateness of the events read: from the deadline until a reader took the token. */
	lateness: Histogram;
}

/** A socket such as a net.Socket, or the fd of a connection. */
export type Socket = object | number;

/**
 * Operations on tokens. A wheel carries them out at once; register() returns the token's
 * handle, all others return bits of Result. A batch collects them, and tells the index of
 * each.
 */
export interface Operations<Told, Registered> {
	/**
	 * Registers a token. Its delay is also its timeout, which a touch begins anew, unless
	 * @timeout is given. A token for a point of time, or for a delay of 0, has no timeout
	 * without it and cannot be touched. With @period the token is due again and again, until
	 * cancel() or delete(). EEXIST, EINVAL, ENOMEM, ENOSPC, ERANGE, ESHUTDOWN.
	 */
	register(id: Id, due: Due, options?: {
		timeout?: Duration; period?: Duration; cookie?: Id;
	}): Registered;
	/**
	 * Makes a token due its whole timeout from now; never brings a deadline nearer.
	 * ENOENT, ESTALE, EINVAL: the token has no timeout; ERANGE.
	 */
	touch(key: Key): Told;
	/**
	 * Touches the token of this id, whose timeout and cookie stay; or registers one.
	 * EEXIST: the token is held; else as register() and touch().
	 */
	touchOrRegister(id: Id, timeout: Duration, options?: { cookie?: Id }): Told;
	/**
	 * Gives a token another deadline, earlier or later. A delay becomes the token's
	 * timeout, unless @timeout is given. ENOENT, ESTALE, EINVAL, ERANGE.
	 */
	move(key: Key, due: Due, options?: { timeout?: Duration }): Told;
	/** Ends a token: no event of it will come. ENOENT, ESTALE, EINVAL. */
	cancel(key: Key): Told;
	/**
	 * Tells that a delivery has been dealt with: its token ends, or is pending for its next
	 * period. The number of the delivery is the right to answer, for each that has the wheel
	 * open for writing. A reader that wants the token again after its work registers a new
	 * token after the ack, or behind the ack in a batch. ESTALE: the answer is too late;
	 * EINVAL: the wheel has no leases.
	 */
	ack(event: Event | Token): Told;
	/**
	 * Tells that a delivery has not been dealt with: it comes again, at once unless
	 * @due is given. A token that is nacked each time comes again without an end: its events
	 * tell the attempts, and ack() gives it up. Errors: those of ack(); ERANGE.
	 */
	nack(event: Event | Token, due?: Due): Told;
	/** Holds a delivery for longer: for @lease from now, or for the wheel's lease, unless
	 * it is held even longer. Errors: those of ack(); ERANGE. */
	extend(event: Event | Token, lease?: Duration): Told;
	/** Ends a token, whether it is pending or held. ENOENT, ESTALE, EINVAL. */
	delete(key: Key): Told;
}

export interface TakeOptions {
	/** Most events; 64 unless given. */
	max?: number;
	/** Ends the wait, and no event is lost. */
	signal?: AbortSignal;
}

/**
 * A wheel that this process has open. It emits 'expired' with an array of at most 64
 * events, in the order of their due ticks; and 'error' when reading fails, after which
 * nothing is emitted. An exception of a listener is an uncaught exception.
 *
 * Events are read only when they are wanted: while there is a listener for 'expired', a taker,
 * or an iteration that waits. A busy program therefore takes no more events than it can work
 * on; all others stay in the kernel, for other readers, too. Takers come first, the one that
 * waits longest before the others, then listeners.
 *
 * While it waits for events, the wheel keeps the process running, unless unref() was
 * called. A wheel that nobody refers to, and that waits for no events, is closed some time
 * later. The first wait makes the wheel's fd non-blocking, for all that share it. The end
 * of the block of `using wheel` or `await using wheel` closes the wheel.
 */
export class Wheel extends EventEmitter implements Operations<number, bigint>, Disposable,
	AsyncDisposable {
	private constructor();

	/**
	 * Makes a private wheel, which ends when it is closed. With @process this process
	 * keeps it, which needs neither the module nor a right. ENOENT, ENODEV, ENXIO: the
	 * module is not loaded; EACCES, EPERM; EINVAL; EDQUOT; ENOSPC; ERANGE; EMFILE;
	 * ENFILE; ENOMEM; ENOSYS: a process of 32 bits cannot keep a wheel.
	 */
	static open(setup: Setup, options?: { process?: boolean }): Wheel;
	/** Opens a named wheel. ENOENT, ENODEV, ENXIO: there is none; EACCES, EPERM;
	 * EINVAL, ENAMETOOLONG; EMFILE; ENFILE; ENOMEM. */
	static openNamed(name: string, access?: Access): Wheel;
	/** Opens a named wheel, makes it if there is none. Errors: those of create() and
	 * openNamed(). */
	static openOrCreate(name: string, setup: Setup, access?: Access): Wheel;
	/**
	 * Makes a wheel of an fd, which then belongs to the wheel. EBADF, ENOTTY: it is no fd of a
	 * wheel; EBADFD: the wheel has not been set up; ENODEV; ENOMEM.
	 */
	static openFd(fd: number): Wheel;

	readonly closed: boolean;
	/** Whether this process keeps the wheel; else the kernel keeps it. */
	readonly inProcess: boolean;
	/** The wheel's fd, which still belongs to the wheel. */
	readonly fd: number;
	/**
	 * Closes the wheel; more than once does no harm. A private wheel ends, a named one
	 * stays. Deliveries that were not answered are due again. take() rejects with the
	 * code 'ERR_WHEEL_CLOSED', iterations end. While a walk by tokens() is under way,
	 * the fd stays open.
	 */
	close(): void;
	[Symbol.dispose](): void;
	[Symbol.asyncDispose](): Promise<void>;

	register(id: Id, due: Due, options?: {
		timeout?: Duration; period?: Duration; cookie?: Id;
	}): bigint;
	touch(key: Key): number;
	touchOrRegister(id: Id, timeout: Duration, options?: { cookie?: Id }): number;
	move(key: Key, due: Due, options?: { timeout?: Duration }): number;
	cancel(key: Key): number;
	ack(event: Event | Token): number;
	nack(event: Event | Token, due?: Due): number;
	extend(event: Event | Token, lease?: Duration): number;
	delete(key: Key): number;

	/**
	 * Touches many tokens, in a fraction of the time. The keys are all ids or all handles.
	 * Returns the keys that name no pending token, and leaves them out. EINVAL: a token has no
	 * timeout, or the wheel no ids; tokens before it have been touched.
	 */
	touchMany<K extends Key>(keys: Iterable<K>): K[];
	/** Tells about a token, in whatever state. ENOENT, ESTALE, EINVAL. */
	get(key: Key): Token;
	/** Tells about many tokens, in the order of their keys, which are all ids or all
	 * handles; null for a key that names no token. EINVAL. */
	getMany(keys: Iterable<Key>): (Token | null)[];
	/**
	 * All tokens, or tokens whose deadline or lease's end is from @from to @to, in no order of
	 * time. A token that is there throughout comes once.
	 */
	tokens(options?: { from?: Point; to?: Point }): IterableIterator<Token>;
	/** A batch of at most @capacity operations, 1 to 65536; 1024 unless given. */
	batch(capacity?: number): Batch;

	/** Delivers nothing, to no reader of the wheel, until resume(). */
	pause(): void;
	resume(): void;
	/** Takes no new tokens, from any user, until undrain(): ESHUTDOWN. */
	drain(): void;
	undrain(): void;
	/** Puts the hand of a 'manual' clock on a tick, forward or back. EINVAL, ERANGE. */
	advance(tick: Id): void;
	info(): Info;
	stats(): Stats;

	/** Events that are due now, at most @max, or 64; none if there are none. */
	read(max?: number): Event[];
	/** Waits for events: for one event, or for as many as are due. */
	take(options?: TakeOptions): Promise<Event[]>;
	[Symbol.asyncIterator](): AsyncGenerator<Event[], void, undefined>;

	/** Lets the wheel keep the process running while it waits for events, as at first. */
	ref(): this;
	unref(): this;
	hasRef(): boolean;

	on(event: 'expired', listener: (events: Event[]) => void): this;
	on(event: 'error', listener: (error: Error) => void): this;
	on(event: string | symbol, listener: (...args: any[]) => void): this;
	once(event: 'expired', listener: (events: Event[]) => void): this;
	once(event: 'error', listener: (error: Error) => void): this;
	once(event: string | symbol, listener: (...args: any[]) => void): this;
	addListener(event: 'expired', listener: (events: Event[]) => void): this;
	addListener(event: 'error', listener: (error: Error) => void): this;
	addListener(event: string | symbol, listener: (...args: any[]) => void): this;
	prependListener(event: 'expired', listener: (events: Event[]) => void): this;
	prependListener(event: 'error', listener: (error: Error) => void): this;
	prependListener(event: string | symbol, listener: (...args: any[]) => void): this;
	prependOnceListener(event: 'expired', listener: (events: Event[]) => void): this;
	prependOnceListener(event: 'error', listener: (error: Error) => void): this;
	prependOnceListener(event: string | symbol, listener: (...args: any[]) => void): this;
	off(event: 'expired', listener: (events: Event[]) => void): this;
	off(event: 'error', listener: (error: Error) => void): this;
	off(event: string | symbol, listener: (...args: any[]) => void): this;
	removeListener(event: 'expired', listener: (events: Event[]) => void): this;
	removeListener(event: 'error', listener: (error: Error) => void): this;
	removeListener(event: string | symbol, listener: (...args: any[]) => void): this;
}

/** The outcome of one operation of a batch. */
export interface Outcome {
	/** Why it failed; null if it succeeded. EINPROGRESS: it has not been carried out. */
	error: Error | null;
	/** Bits of Result. */
	result: number;
	/** The handle of the token that it registered. */
	handle: bigint | null;
	/**
	 * The token's deadline, also the last one of a cancelled token; null if the operation
	 * failed.
	 */
	deadlineNs: bigint | null;
}

/** Operations that one call carries out, in their order. */
export class Batch implements Operations<number, number> {
	private constructor();

	register(id: Id, due: Due, options?: {
		timeout?: Duration; period?: Duration; cookie?: Id;
	}): number;
	touch(key: Key): number;
	touchOrRegister(id: Id, timeout: Duration, options?: { cookie?: Id }): number;
	move(key: Key, due: Due, options?: { timeout?: Duration }): number;
	cancel(key: Key): number;
	ack(event: Event | Token): number;
	nack(event: Event | Token, due?: Due): number;
	extend(event: Event | Token, lease?: Duration): number;
	delete(key: Key): number;

	/** How many operations it has. */
	readonly length: number;
	/**
	 * Carries out the operations that have not been carried out, and tells how many of all have
	 * failed. An operation that fails does not end the batch. EBADF, ENODEV.
	 */
	run(): number;
	/** Empties the batch, to use it again. */
	clear(): void;
	/** The outcome of the operation with this index. RangeError: there is none. */
	outcome(index: number): Outcome;
	outcomes(): Outcome[];
}

/** The abilities of the kernel's module. ENOENT, ENODEV, ENXIO: it is not loaded; EACCES. */
export function caps(): Caps;
/**
 * For how many ms no data has come in on a TCP connection. The token of a connection need
 * not be touched:
 *
 *	for await (const { id } of wheel) {
 *		const idle = tcpIdle(Number(id));
 *		if (idle < 30_000)
 *			wheel.register(id, 30_000 - idle);
 *		else
 *			hangUp(id);
 *	}
 *
 * ENOTCONN: the socket is not connected, or its connection has ended; EPROTONOSUPPORT: its
 * protocol is not TCP, but MPTCP, say; ENOTSOCK; EBADF: it has been closed.
 */
export function tcpIdle(socket: Socket): number;

/**
 * Makes a named wheel, /dev/timewheels/NAME, without opening it; its name is of 1 to 63
 * ASCII letters, digits, "-" and "_". It turns until destroy(). Tells whether the call made
 * it: if not, one with the same setup was there. EEXIST: there is one with another setup,
 * or the call is exclusive; ENAMETOOLONG, and EINVAL for a name with other characters;
 * those of Wheel.open().
 */
export function create(name: string, setup: Setup, options?: {
	exclusive?: boolean;
}): boolean;

/** Ends a named wheel, with all its tokens. ENOENT, EPERM, EINVAL, ENAMETOOLONG. */
export function destroy(name: string): void;
