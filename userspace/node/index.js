// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Wheels for Node; index.d.ts describes all that this module exports.
'use strict';

const { EventEmitter } = require('node:events');
const native = load();

const { codes } = native;
const Result = Object.freeze(native.results);

// So many events at a time, unless the program asks for another number.
const EVENTS_AT_ONCE = 64;

// So many tokens that one call of getMany() fetches at a time.
const TOKENS_AT_ONCE = 1024;

// It is never open.
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
// What only the static methods of Wheel know.
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

// That of a net.Socket; one that has been closed has none, which the kernel says, too.
function fdOf(socket) {
	return typeof socket === 'number' ? socket : socket._handle?.fd ?? NO_FD;
}

// The operations that wheels carry out and batches collect. What this[run]() returns
// is what they return.
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

	#answer(code, event, due, { anyFile } = {}) {
		return this[run](code, event, due, undefined, undefined, undefined,
			event.delivery, anyFile);
	}

	ack(event, due, options) {
		return this.#answer(codes.ACK, event, due, options);
	}

	nack(event, due = 0, options) {
		return this.#answer(codes.NACK, event, due, options);
	}

	extend(event, lease = 0, options) {
		return this.#answer(codes.EXTEND, event, lease, options);
	}

	delete(key) {
		return this[run](codes.DELETE, key);
	}
};

class Wheel extends withOperations(EventEmitter) {
	#wheel;
	// Those of take(), in the order of their coming.
	#takers = [];
	// A listener was told of an error: there is nothing more to listen for.
	#failed = false;
	#whenReadable = () => this.#readable();

	constructor(who, wheel) {
		if (who !== by)
			throw new TypeError('a wheel is made by Wheel.open() and the like');
		super();
		this.#wheel = wheel;
	}

	static open(setup) {
		return new this(by, native.open(setup));
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
		// Only while somebody listens, or waits, the event loop looks at the wheel.
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

	// The shortest way.
	touch(key) {
		return native.touch(this.#opened(), key);
	}

	get closed() {
		return !this.#wheel;
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
		const all = Array.from(keys);
		const found = [];
		const wheel = this.#opened();

		for (let i = 0; i < all.length; i += TOKENS_AT_ONCE)
			found.push(...native.getMany(wheel, all.slice(i, i + TOKENS_AT_ONCE)));
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
		const [lateness, wake] = native.stats(this.#opened());

		return { lateness: new Histogram(lateness), wake: new Histogram(wake) };
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

	// Has the loop look at the wheel, or not.
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

	// Gives events to the taker that has waited longest. Whether there may be more.
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

	constructor(wheel, capacity) {
		super();
		opened(wheel);
		this.#wheel = wheel;
		this.#batch = native.batch(capacity);
	}

	[run](...operation) {
		return native.add(opened(this.#wheel), this.#batch, ...operation);
	}

	get length() {
		return native.count(this.#batch);
	}

	run() {
		return native.runBatch(opened(this.#wheel), this.#batch);
	}

	clear() {
		native.clear(this.#batch);
	}

	outcome(index) {
		const [error, result, handle, deadlineNs] = native.outcome(this.#batch, index);

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

function create(name, setup, { exclusive = false } = {}) {
	return native.create(name, setup, exclusive);
}

function destroy(name) {
	native.destroy(name);
}

module.exports = { Batch, Histogram, Result, Wheel, caps, create, destroy, tcpIdle };
