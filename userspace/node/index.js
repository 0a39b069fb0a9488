// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Wheels for Node; index.d.ts describes all that this module exports.
'use strict';

const { EventEmitter } = require('node:events');
const { endianness } = require('node:os');
const native = load();

const { codes } = native;
const Result = Object.freeze(native.results);

// The number of events at a time, unless the program asks for another number.
const EVENTS_AT_ONCE = 64;

// The number of tokens that one call of getMany() fetches.
const TOKENS_AT_ONCE = 1024;

// The most touches that wait in a batch until one call hands them to the library.
const TOUCHES_AT_ONCE = 512;

// The index of the lower half of a number of 64 bits.
const LOW = endianness() === 'LE' ? 0 : 1;

// This fd is never open.
const NO_FD = 2 ** 31 - 1;

// The native half, which needs the library.
function load() {
	try {
		return require('./build/Release/timewheel.node');
	} catch (error) {
		if (!error.message.includes('libtimewheel.so'))
			throw error;
		const message = `${error.message}: the library is in Debian's package ` +
			'libtimewheel1, which "make deb" in timewheel\'s source builds';
		throw Object.assign(new Error(message, { cause: error }), { code: error.code });
	}
}

// Carries out an operation, or adds it to a batch.
const run = Symbol('run it');
// These symbols are known only to the static methods of Wheel.
const by = Symbol('made by');
let opened;

function closedError() {
	return Object.assign(new Error('the wheel is closed'),
		{ code: 'ERR_WHEEL_CLOSED' });
}

function checkMax(max) {
	if (!Number.isInteger(max) || max < 1 || max > 0xffffffff)
		throw Object.assign(new RangeError('max has to be an integer from 1 on'),
			{ code: 'ERR_OUT_OF_RANGE' });
}

// Whether a key is the one of a handle; else it is an id, or no key.
function namesHandle(key) {
	return typeof key === 'object' && key !== null;
}

// Returns the fd of a net.Socket. A closed socket has no fd, which the kernel tells, too.
function fdOf(socket) {
	return typeof socket === 'number' ? socket : socket._handle?.fd ?? NO_FD;
}

// Keys as the library takes them, which are all ids or all handles. A call of the native
// half for each key would cost more than a touch.
class Keys {
	length = 0;
	#room;
	#keys;
	#halves;

	constructor(room, byHandle) {
		this.byHandle = byHandle;
		this.#room = room;
		this.#keys = new BigUint64Array(room);
		this.#halves = new Uint32Array(this.#keys.buffer);
	}

	get full() {
		return this.length === this.#room;
	}

	// The caller has made room, and the key is of the same kind as the other keys.
	add(key) {
		const number = this.byHandle ? key.handle : key;
		const at = 2 * this.length;

		if (Number.isSafeInteger(number) && number >= 0) {
			this.#halves[at + LOW] = number;
			this.#halves[at + 1 - LOW] = number / 2 ** 32;
		} else if (typeof number === 'bigint' && BigInt.asUintN(64, number) === number) {
			this.#keys[this.length] = number;
		} else {
			native.refuse(number);
		}
		this.length++;
	}

	some(from, to) {
		return this.#keys.subarray(from, Math.min(to, this.length));
	}
}

function keysOf(all) {
	const keys = new Keys(all.length, namesHandle(all[0]));

	for (const key of all) {
		if (namesHandle(key) !== keys.byHandle)
			throw Object.assign(new TypeError('keys are either ids or handles'),
				{ code: 'ERR_INVALID_ARG_TYPE' });
		keys.add(key);
	}
	return keys;
}

// The operations that wheels carry out and batches collect. They return the result of
// this[run]().
const withOperations = (Base) => class extends Base {
	register(id, due, { timeout, period, cookie } = {}) {
		return this[run](codes.REGISTER, id, due, timeout, period, cookie);
	}

	touch(key) {
		return this[run](codes.TOUCH, key);
	}

	touchOrRegister(id, timeout, { cookie } = {}) {
		return this[run](codes.TOUCH_OR_REGISTER, id, timeout, undefined,
			undefined, cookie);
	}

	move(key, due, { timeout } = {}) {
		return this[run](codes.MOVE, key, due, timeout);
	}

	cancel(key) {
		return this[run](codes.CANCEL, key);
	}

	#answer(code, event, due) {
		return this[run](code, event, due, undefined, undefined, undefined,
			event.delivery);
	}

	ack(event) {
		return this.#answer(codes.ACK, event);
	}

	nack(event, due = 0) {
		return this.#answer(codes.NACK, event, due);
	}

	extend(event, lease = 0) {
		return this.#answer(codes.EXTEND, event, lease);
	}

	delete(key) {
		return this[run](codes.DELETE, key);
	}
};

class Wheel extends withOperations(EventEmitter) {
	#wheel;
	// The callers of take(), in the order of their coming.
	#takers = [];
	// A listener was told of an error: no further event will come.
	#failed = false;
	#whenReadable = () => this.#readable();

	constructor(who, wheel) {
		if (who !== by)
			throw new TypeError('a wheel is made by Wheel.open() and the like');
		super();
		this.#wheel = wheel;
	}

	static open(setup, { process = false } = {}) {
		return new this(by, native.open(setup, process));
	}

	static openNamed(name, access = 'rw') {
		return new this(by, native.openNamed(name, access));
	}

	static openOrCreate(name, setup, access = 'rw') {
		return new this(by, native.openOrCreate(name, setup, access));
	}

	static openFd(fd) {
		return new this(by, native.openFd(fd));
	}

	static {
		opened = (wheel) => wheel.#opened();
		// The event loop looks at the wheel only while somebody listens or waits.
		for (const name of ['on', 'addListener', 'prependListener', 'off',
			'removeListener', 'removeAllListeners']) {
			const inherited = EventEmitter.prototype[name];
			const value = function (...args) {
				Reflect.apply(inherited, this, args);
				this.#attend();
				return this;
			};
			Object.defineProperty(this.prototype, name,
				{ value, writable: true, configurable: true });
		}
	}

	#opened() {
		if (!this.#wheel)
			throw closedError();
		return this.#wheel;
	}

	[run](...operation) {
		return native.run(this.#opened(), ...operation);
	}

	// This is the shortest way, for speed.
	touch(key) {
		const byHandle = namesHandle(key);
		const number = byHandle ? key.handle : key;

		// A getter may have closed the wheel.
		return native.touch(this.#opened(), number, byHandle);
	}

	touchMany(keys) {
		const all = Array.isArray(keys) ? keys : [...keys];
		const named = keysOf(all);

		return native.touchMany(this.#opened(), named.some(0, all.length), named.byHandle)
			.map((index) => all[index]);
	}

	get closed() {
		return !this.#wheel;
	}

	get inProcess() {
		return native.inProcess(this.#opened());
	}

	get fd() {
		return native.fd(this.#opened());
	}

	close() {
		if (!this.#wheel)
			return;
		native.close(this.#wheel);
		this.#wheel = undefined;
		for (const taker of this.#takers.splice(0))
			taker.reject(closedError());
	}

	get(key) {
		return native.get(this.#opened(), key);
	}

	getMany(keys) {
		const named = keysOf([...keys]);
		const wheel = this.#opened();
		const found = [];

		for (let i = 0; i < named.length; i += TOKENS_AT_ONCE)
			found.push(...native.getMany(wheel, named.some(i, i + TOKENS_AT_ONCE),
				named.byHandle));
		return found;
	}

	tokens({ from, to } = {}) {
		return this.#walk(native.walk(this.#opened(), from, to));
	}

	*#walk(walk) {
		try {
			for (let some; (some = native.next(walk)).length;)
				yield* some;
		} finally {
			native.end(walk);
		}
	}

	batch(capacity = 1024) {
		return new Batch(this, capacity);
	}

	pause() {
		native.pause(this.#opened());
	}

	resume() {
		native.resume(this.#opened());
	}

	drain() {
		native.drain(this.#opened());
	}

	undrain() {
		native.undrain(this.#opened());
	}

	advance(tick) {
		native.advance(this.#opened(), tick);
	}

	info() {
		return native.info(this.#opened());
	}

	stats() {
		return { lateness: new Histogram(native.stats(this.#opened())) };
	}

	ref() {
		native.ref(this.#opened(), true);
		return this;
	}

	unref() {
		native.ref(this.#opened(), false);
		return this;
	}

	hasRef() {
		return native.hasRef(this.#opened());
	}

	read(max = EVENTS_AT_ONCE) {
		checkMax(max);
		return native.read(this.#opened(), max);
	}

	take({ max = EVENTS_AT_ONCE, signal } = {}) {
		return new Promise((resolve, reject) => {
			checkMax(max);
			this.#opened();
			signal?.throwIfAborted();
			const taker = { max, resolve, reject };
			const give = (how) => (what) => {
				signal?.removeEventListener('abort', abort);
				how(what);
			};
			const abort = () => {
				this.#takers.splice(this.#takers.indexOf(taker), 1);
				this.#attend();
				reject(signal.reason);
			};
			taker.resolve = give(resolve);
			taker.reject = give(reject);
			signal?.addEventListener('abort', abort, { once: true });
			this.#takers.push(taker);
			this.#attend();
		});
	}

	async *[Symbol.asyncIterator]() {
		while (this.#wheel) {
			let events;

			try {
				events = await this.take();
			} catch (error) {
				if (error.code === 'ERR_WHEEL_CLOSED')
					return;
				throw error;
			}
			yield events;
		}
	}

	#listened() {
		return !this.#failed && this.listenerCount('expired') > 0;
	}

	// Lets the loop look at the wheel, or stops it.
	#attend() {
		if (!this.#wheel)
			return;
		if (this.#takers.length || this.#listened())
			native.start(this.#wheel, this.#whenReadable);
		else
			native.stop(this.#wheel);
	}

	// The loop says that there may be events.
	#readable() {
		try {
			while (this.#takers.length)
				if (!this.#serve())
					return;
			if (this.#wheel && this.#listened())
				this.#emit();
		} finally {
			this.#attend();
		}
	}

	// Gives events to the taker that has waited longest. Returns whether there may be more.
	#serve() {
		const taker = this.#takers[0];
		let events;

		try {
			events = native.read(this.#wheel, taker.max);
		} catch (error) {
			this.#takers.shift();
			taker.reject(error);
			return true;
		}
		if (!events.length)
			return false;
		this.#takers.shift();
		taker.resolve(events);
		return true;
	}

	#emit() {
		let events;

		try {
			events = native.read(this.#wheel, EVENTS_AT_ONCE);
		} catch (error) {
			this.#failed = true;
			this.emit('error', error);
			return;
		}
		if (events.length)
			this.emit('expired', events);
	}
}

// Node 18 may not have these symbols.
function disposeBy(symbol, value) {
	if (symbol)
		Object.defineProperty(Wheel.prototype, symbol,
			{ value, writable: true, configurable: true });
}

disposeBy(Symbol.dispose, function () { this.close(); });
disposeBy(Symbol.asyncDispose, async function () { this.close(); });

class Batch extends withOperations(Object) {
	#wheel;
	#batch;
	#capacity;
	#length = 0;
	// The keys of the last touches that are not in the library's batch yet.
	#keys;

	constructor(wheel, capacity) {
		super();
		opened(wheel);
		this.#wheel = wheel;
		this.#batch = native.batch(capacity);
		this.#capacity = capacity;
	}

	// Returns the library's batch, with all operations in it.
	#whole() {
		const keys = this.#keys;

		if (keys?.length) {
			native.addTouches(this.#batch, keys.some(0, keys.length), keys.byHandle);
			keys.length = 0;
		}
		return this.#batch;
	}

	[run](...operation) {
		native.add(opened(this.#wheel), this.#whole(), ...operation);
		return this.#length++;
	}

	// This is the shortest way, for speed.
	touch(key) {
		const byHandle = namesHandle(key);

		opened(this.#wheel);
		if (this.#length === this.#capacity)
			return super.touch(key);
		this.#keys ??= new Keys(TOUCHES_AT_ONCE, byHandle);
		if (this.#keys.byHandle !== byHandle || this.#keys.full) {
			this.#whole();
			this.#keys.byHandle = byHandle;
		}
		this.#keys.add(key);
		return this.#length++;
	}

	get length() {
		return this.#length;
	}

	run() {
		return native.runBatch(opened(this.#wheel), this.#whole());
	}

	clear() {
		native.clear(this.#whole());
		this.#length = 0;
	}

	outcome(index) {
		const [error, result, handle, deadlineNs] = native.outcome(this.#whole(), index);

		return { error, result, handle, deadlineNs };
	}

	outcomes() {
		return Array.from({ length: this.length }, (_, index) => this.outcome(index));
	}
}

class Histogram {
	constructor(buckets) {
		this.buckets = buckets;
	}

	get count() {
		return Number(this.buckets.reduce((sum, one) => sum + one, 0n));
	}

	percentile(percent) {
		return native.percentile(this.buckets, percent);
	}

	static bounds(bucket) {
		return native.bounds(bucket);
	}
}

function caps() {
	return native.caps();
}

function tcpIdle(socket) {
	return native.tcpIdle(fdOf(socket));
}

function create(name, setup, { exclusive = false, process } = {}) {
	if (process !== undefined)
		throw Object.assign(new TypeError('process is for a wheel without a name'),
			{ code: 'ERR_INVALID_ARG_TYPE' });
	return native.create(name, setup, exclusive);
}

function destroy(name) {
	native.destroy(name);
}

module.exports = { Batch, Histogram, Result, Wheel, caps, create, destroy, tcpIdle };
