// SPDX-License-Identifier: GPL-2.0-only
//
// Wheels and their tokens: what each call does and tells, and how it fails.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const test = require('node:test');
const timewheel = require('timewheel');
const { members } = require('./declared');
const { MANUAL, MONOTONIC, SEC, fails, ids, isErrno, named, needsKernel, opened, program,
	registered } = require('./common');

const { Result, Wheel } = timewheel;
const MS = 1_000_000n;

test('objects have what index.d.ts says', (t) => {
	const wheel = opened(t);
	const batch = wheel.batch();

	batch.register(7, 0);
	batch.run();
	for (const [name, object] of Object.entries({
		Caps: timewheel.caps(), Info: wheel.info(), Token: wheel.get(7),
		Event: wheel.read()[0], Stats: wheel.stats(), Outcome: batch.outcome(0) }))
		assert.deepEqual(Object.keys(object).sort(),
			members(`export interface ${name}`), name);
});

test('settings arrive', (t) => {
	const info = opened(t, { slots: 31, tick: 250, maxTokens: 7, clock: 'manual',
		ids: false, cookies: false, start: 9 }).info();

	assert.equal(info.slots, 31);
	assert.equal(info.tick, 250);
	assert.equal(info.maxTokens, 7);
	assert.equal(info.clock, 'manual');
	assert.deepEqual([info.ids, info.cookies, info.hand], [false, false, 9]);
	assert.deepEqual([info.nextNs, info.next, info.now], [null, null, null]);
	const policies = opened(t, { slots: 60, tick: 1, maxTokens: 9n, clock: 'realtime',
		lease: 1500, periods: true, slack: 250 }).info();
	assert.deepEqual([policies.lease, policies.periods, policies.slack],
		[1500, true, 250]);
	assert.ok(Math.abs(policies.now - Date.now()) < 60_000);
	const plain = opened(t).info();
	assert.deepEqual([plain.ids, plain.cookies, plain.periods, plain.lease, plain.nowNs],
		[true, true, false, 0, 100n * SEC]);
	assert.deepEqual([plain.offsetNs, plain.touchWords, plain.paused, plain.draining],
		[0n, false, false, false]);
});

test('caps, and each clock', (t) => {
	const caps = timewheel.caps();

	assert.deepEqual(caps.clocks, ['monotonic', 'boottime', 'realtime', 'manual']);
	assert.ok(caps.idsOptional && caps.cookiesOptional && caps.leases && caps.periods);
	assert.deepEqual([caps.maxSlots, caps.maxBatch], [65536, 65536]);
	assert.ok(caps.minTick < caps.maxTick && caps.maxTokens > 0);
	assert.equal(caps.maxWordTicks, 2 ** 30);
	for (const clock of caps.clocks)
		assert.equal(opened(t, { slots: 1, tick: 1000, maxTokens: 1, clock }).info().clock,
			clock);
});

test('setups that are refused', () => {
	for (const [slots, tick] of [[0, 1000], [65537, 1000], [1, 0], [1, 1e-6], [1, 1e9]])
		fails('EINVAL', 'open', () => Wheel.open({ slots, tick, maxTokens: 1 }));
	fails('EINVAL', 'open', () => Wheel.open({ ...MANUAL, lease: 500 }));
	fails('ERANGE', 'open', () => Wheel.open({ ...MANUAL, start: 2n ** 46n }));
	for (const setup of [undefined, null, {}, { ...MANUAL, slots: '60' },
		{ ...MANUAL, clock: 'sundial' }, { ...MANUAL, ids: 1 }, { ...MANUAL, tick: '1s' }])
		assert.throws(() => Wheel.open(setup), TypeError);
	for (const setup of [{ ...MANUAL, slots: 1.5 }, { ...MANUAL, maxTokens: -1 },
		{ ...MANUAL, tick: NaN }, { ...MANUAL, start: 2n ** 64n }])
		assert.throws(() => Wheel.open(setup), { name: 'RangeError',
			code: 'ERR_OUT_OF_RANGE' });
	assert.throws(() => Wheel.open({ get slots() { throw new Error('mine'); } }),
		{ message: 'mine' });
});

test('a wheel is made by its own methods only', () => {
	assert.throws(() => new Wheel(), TypeError);
	assert.throws(() => new Wheel(Symbol('by'), {}), TypeError);
});

test('a closed wheel', (t) => {
	const wheel = opened(t);
	const batch = wheel.batch();
	const { fd } = wheel;
	const event = { handle: 1n, delivery: 1 };

	fs.fstatSync(fd);
	assert.equal(wheel.closed, false);
	wheel.close();
	wheel.close();
	assert.equal(wheel.closed, true);
	assert.throws(() => fs.fstatSync(fd), { code: 'EBADF' });
	for (const call of [() => wheel.fd, () => wheel.info(), () => wheel.stats(),
		() => wheel.read(), () => wheel.tokens(), () => wheel.register(1, 1),
		() => wheel.touch(1), () => wheel.touchOrRegister(1, 1), () => wheel.move(1, 1),
		() => wheel.cancel(1), () => wheel.get(1), () => wheel.getMany([1]),
		() => wheel.touchMany([1]), () => wheel.advance(1), () => wheel.delete(1),
		() => wheel.ack(event), () => wheel.nack(event), () => wheel.extend(event),
		() => wheel.pause(), () => wheel.resume(),
		() => wheel.drain(), () => wheel.undrain(), () => wheel.batch(),
		() => wheel.ref(), () => wheel.unref(), () => wheel.hasRef(),
		() => batch.run(), () => batch.touch(1)])
		assert.throws(call, { code: 'ERR_WHEEL_CLOSED' });
	return assert.rejects(wheel.take(), { code: 'ERR_WHEEL_CLOSED' });
});

test('dispose', { skip: !Symbol.dispose && 'this Node does not have it' }, async (t) => {
	const one = opened(t);
	const other = opened(t);

	one[Symbol.dispose]();
	assert.ok(one.closed);
	await other[Symbol.asyncDispose]();
	assert.ok(other.closed);
});

test('fds', needsKernel('an fd of a wheel makes another one'), (t) => {
	const { name, wheel } = named(t);
	const path = `/dev/timewheels/${name}`;
	const other = Wheel.openFd(fs.openSync(path, 'r+'));

	wheel.register(7, 1000);
	assert.equal(other.get(7).id, 7n);
	other.close();
	fails('EBADF', 'open', () => Wheel.openFd(2 ** 31 - 1));
	for (const [file, code] of [['/dev/null', 'ENOTTY'], ['/dev/timewheel', 'EBADFD']]) {
		const fd = fs.openSync(file, 'r');

		fails(code, 'open', () => Wheel.openFd(fd));
		fs.closeSync(fd);
	}
	assert.throws(() => Wheel.openFd(-1), RangeError);
});

test('register and get', (t) => {
	const wheel = opened(t);
	const handle = wheel.register(7, 30_000, { cookie: 2n ** 64n - 1n });
	const token = wheel.get(7);

	assert.equal(typeof handle, 'bigint');
	assert.deepEqual(token, {
		id: 7n, handle, cookie: 2n ** 64n - 1n, deadlineNs: 130n * SEC, deadline: null,
		leaseEndNs: 0n, leaseEnd: null, left: 30_000,
		timeout: 30_000, period: 0, baseNs: 0n, base: null, cycle: 0, slot: 130 % 60,
		state: 'pending', delivery: 0, attempts: 0,
	});
	assert.deepEqual(wheel.get({ handle }), token);
	assert.deepEqual(wheel.get(token), token);
	fails('EEXIST', 'register', () => wheel.register(7n, 1));
	fails('ENOENT', 'get', () => wheel.get(8));
	fails('ESTALE', 'get', () => wheel.get({ handle: 1 }));
});

test('ids of any size', (t) => {
	const wheel = opened(t);
	const all = [0, 1n, Number.MAX_SAFE_INTEGER, 2n ** 53n, 2n ** 64n - 1n];

	for (const id of all)
		wheel.register(id, 0, { cookie: id });
	const events = wheel.read();
	assert.deepEqual(new Set(events.map(({ id }) => id)), new Set(all.map(BigInt)));
	assert.ok(events.every(({ id, cookie }) => id === cookie));
});

test('arguments that are refused', (t) => {
	const wheel = opened(t);

	for (const id of [-1, 1.5, NaN, Infinity, 2 ** 53, -1n, 2n ** 64n])
		assert.throws(() => wheel.register(id, 1), { name: 'RangeError',
			code: 'ERR_OUT_OF_RANGE' });
	for (const id of [undefined, null, '7', true, Symbol('7'), () => 7, {}])
		assert.throws(() => wheel.touch(id), { name: 'TypeError',
			code: 'ERR_INVALID_ARG_TYPE' });
	for (const due of [-1, NaN, Infinity, -1n, 2n ** 64n, { at: -1n }])
		assert.throws(() => wheel.register(1, due), RangeError);
	for (const due of ['1s', null, {}, { at: 1 }, new Date(), { at: new Date() }])
		assert.throws(() => wheel.register(1, due), TypeError);
	for (const options of [{ timeout: 0 }, { period: 0 }, { cookie: -1 }, { timeout: -1 }])
		assert.throws(() => wheel.register(1, 1, options), RangeError);
	assert.throws(() => wheel.get({ get handle() { throw new Error('mine'); } }),
		{ message: 'mine' });
	for (const max of [0, -1, 1.5, '7', 2 ** 32])
		assert.throws(() => wheel.read(max), RangeError);
	assert.throws(() => wheel.ack(undefined), TypeError);
	assert.equal(wheel.info().registered, 0);
});

test('timeouts', (t) => {
	const wheel = opened(t);

	wheel.register(1, 5000, { timeout: 30_000 });
	wheel.register(2, { at: 105n * SEC }, { timeout: 30_000 });
	wheel.register(3, 0);
	for (const id of [1, 2]) {
		assert.deepEqual([wheel.get(id).deadlineNs, wheel.get(id).timeout],
			[105n * SEC, 30_000]);
		assert.equal(wheel.touch(id), 0);
		assert.equal(wheel.get(id).deadlineNs, 130n * SEC);
	}
	wheel.move(1, 5000, { timeout: 40_000 });
	wheel.move(2, { at: 107n * SEC }, { timeout: 41_000n * MS });
	assert.deepEqual([1, 2].map((id) => wheel.get(id).timeout), [40_000, 41_000]);
	fails('EINVAL', 'touch', () => wheel.touch(3));
	assert.throws(() => wheel.move(1, 1, { timeout: 1e-9 }), RangeError);
});

test('durations', (t) => {
	const wheel = opened(t, { slots: 60, tick: 0.1, maxTokens: 100, clock: 'manual' });
	const durations = [[0, 0n], [1000, SEC], [1.1, 1_100_000n], [0.3, 300_000n],
		[172_800_700, 172_800_700n * MS], [1e-7, 0n], [1_100_000n, 1_100_000n]];

	for (const [i, [duration, expected]] of durations.entries()) {
		wheel.register(i, duration);
		assert.equal(BigInt(Math.round(wheel.get(i).left * 1e6)), expected);
	}
	assert.equal(opened(t, { slots: 1, tick: 1.001, maxTokens: 1 }).info().tick, 1.001);
});

test('dates', (t) => {
	const wheel = opened(t, { ...MONOTONIC, tick: 1000, clock: 'realtime' });
	const at = new Date('2100-01-01T00:00:00Z');

	wheel.register(1, at);
	wheel.register(2, { at });
	wheel.register(3, new Date(Date.now() - 5000));
	for (const id of [1, 2]) {
		assert.deepEqual(wheel.get(id).deadline, at);
		assert.equal(wheel.get(id).deadlineNs, BigInt(at) * MS);
	}
	wheel.move(2, new Date('2100-01-01T00:00:10Z'));
	assert.deepEqual([...wheel.tokens({ from: at, to: at })].map(({ id }) => id), [1n]);
	const [event] = wheel.read();
	assert.equal(event.id, 3n);
	assert.ok(event.deadline <= event.taken && event.taken <= new Date());
	assert.throws(() => wheel.register(4, new Date(NaN)), RangeError);
});

test('touch, touchOrRegister, move, cancel', (t) => {
	const wheel = opened(t);

	assert.equal(wheel.touchOrRegister(1, 30_000, { cookie: 5 }), Result.REGISTERED);
	wheel.advance(110);
	assert.equal(wheel.touchOrRegister(1, 99_000, { cookie: 6 }), 0);
	assert.deepEqual([wheel.get(1).deadlineNs, wheel.get(1).cookie], [140n * SEC, 5n]);
	wheel.advance(140);
	assert.equal(wheel.touch(1), Result.WAS_DUE);
	assert.equal(wheel.move(1, 1000), 0);
	wheel.advance(141);
	assert.equal(wheel.move({ handle: wheel.get(1).handle }, 5000), Result.WAS_DUE);
	wheel.advance(146);
	assert.equal(wheel.cancel(1), Result.WAS_DUE);
	for (const name of ['touch', 'cancel'])
		fails('ENOENT', name, () => wheel[name](1));
	fails('ENOENT', 'move', () => wheel.move(1, 1));
	for (const name of ['touch', 'cancel'])
		fails('ESTALE', name, () => wheel[name]({ handle: 1n << 32n }));
	fails('ERANGE', 'register', () => wheel.register(1, 2n ** 63n));
	const info = wheel.info();
	assert.deepEqual([info.registered, info.touched, info.moved, info.cancelled],
		[1, 2, 2, 1]);
});

test('getMany', (t) => {
	const wheel = opened(t);

	registered(wheel, 1500);
	const keys = [7, 0, ...Array.from({ length: 1500 }, (_, i) => 1500 - i)];
	const found = wheel.getMany(keys);
	assert.deepEqual(found.map((token) => token && Number(token.id)),
		keys.map((key) => key || null));
	assert.deepEqual(wheel.getMany([found[0], { handle: 1 }]), [found[0], null]);
	assert.deepEqual(wheel.getMany(new Set()), []);
	assert.throws(() => wheel.getMany([7, found[0]]), TypeError);
});

test('touchMany', (t) => {
	const wheel = opened(t);

	registered(wheel, 1500);
	wheel.advance(101);
	const keys = [7, 0, ...Array.from({ length: 1499 }, (_, i) => 1500 - i), 2n ** 64n - 1n];
	assert.deepEqual(wheel.touchMany(keys), [0, 2n ** 64n - 1n]);
	assert.equal(wheel.get(1500).deadlineNs, 1601n * SEC);
	assert.equal(wheel.info().touched, 1500);
	const found = wheel.getMany([3, 4]);
	const gone = { handle: 1 };
	assert.deepEqual(wheel.touchMany([found[0], gone, found[1]]), [gone]);
	assert.deepEqual(wheel.touchMany(new Set([5n, 2])), []);
	assert.deepEqual(wheel.touchMany([]), []);
	const { touched } = wheel.info();
	for (const name of ['touchMany', 'getMany']) {
		const other = opened(t);
		const closing = { get handle() { other.close(); return 1n; } };

		assert.throws(() => other[name]([closing]), { code: 'ERR_WHEEL_CLOSED' });
	}
	for (const bad of [[7, found[0]], [7, '8'], [7, null], [7, {}], [{ handle: 'h' }], 7])
		assert.throws(() => wheel.touchMany(bad), TypeError);
	for (const bad of [-1, 0.5, NaN, 2 ** 53, -1n, 2n ** 64n])
		assert.throws(() => wheel.touchMany([7, bad]), { name: 'RangeError',
			code: 'ERR_OUT_OF_RANGE' });
	assert.equal(wheel.info().touched, touched);
	wheel.register(2000, { at: 9000n * SEC });
	fails('EINVAL', 'touchMany', () => wheel.touchMany([1, 2000, 2]));
	assert.equal(wheel.info().touched, touched + 1);
	fails('EINVAL', 'touchMany', () => opened(t, { ...MANUAL, ids: false }).touchMany([1]));
});

test('tokens', (t) => {
	const wheel = opened(t);

	registered(wheel, 1000);
	assert.deepEqual(ids([...wheel.tokens()]).sort((a, b) => a - b),
		Array.from({ length: 1000 }, (_, i) => i + 1));
	assert.deepEqual(
		ids([...wheel.tokens({ from: 110n * SEC, to: 112n * SEC })]).sort(),
		[10, 11, 12]);
	// When the wheel is closed, one walk is under way and one has been left.
	const walk = wheel.tokens();
	const left = wheel.tokens();
	walk.next();
	left.next();
	left.return();
	wheel.close();
	assert.equal([...walk].length, 999);
	assert.throws(() => wheel.tokens(), { code: 'ERR_WHEEL_CLOSED' });
});

test('pause and drain', (t) => {
	const wheel = opened(t);

	wheel.register(7, 0);
	wheel.pause();
	assert.deepEqual([wheel.info().paused, wheel.info().draining], [true, false]);
	assert.deepEqual(wheel.read(), []);
	wheel.resume();
	wheel.drain();
	assert.deepEqual([wheel.info().paused, wheel.info().draining], [false, true]);
	fails('ESHUTDOWN', 'register', () => wheel.register(8, 1));
	assert.deepEqual(ids(wheel.read()), [7]);
	wheel.undrain();
	wheel.register(8, 1);
});

test('stats', (t) => {
	const wheel = opened(t);

	assert.throws(() => wheel.stats().lateness.percentile(50),
		(error) => isErrno(error, 'ENODATA', 'percentile'));
	wheel.register(1, 1000);
	wheel.advance(111);
	wheel.read();
	const { lateness } = wheel.stats();
	assert.equal(lateness.count, 1);
	const late = lateness.percentile(50);
	assert.ok(late >= 10_000 && late <= 12_500, String(late));
	const bucket = lateness.buckets.indexOf(1n);
	const [low, high] = timewheel.Histogram.bounds(bucket);
	assert.ok(low <= 10_000 && high === late);
	assert.deepEqual(timewheel.Histogram.bounds(3), [3e-6, 3e-6]);
	assert.throws(() => timewheel.Histogram.bounds(252), RangeError);
	assert.throws(() => lateness.percentile(101),
		(error) => isErrno(error, 'EINVAL', 'percentile'));
	assert.throws(() => lateness.percentile('50'), TypeError);
});

test('batches', (t) => {
	const wheel = opened(t);
	const batch = wheel.batch(5);

	assert.deepEqual([batch.register(1, 30_000, { cookie: 5 }), batch.touch(1),
		batch.cancel(2), batch.touchOrRegister(3, 7000), batch.move(3, 5000)],
	[0, 1, 2, 3, 4]);
	fails('ENOSPC', 'touch', () => batch.touch(1));
	isErrno(batch.outcome(0).error, 'EINPROGRESS', 'register');
	assert.equal(batch.run(), 1);
	const [first, second, third, fourth, fifth] = batch.outcomes();
	const { handle } = wheel.get(1);
	assert.deepEqual(first, { error: null, result: 0, handle, deadlineNs: 130n * SEC });
	assert.deepEqual(second, { error: null, result: 0, handle: null,
		deadlineNs: 130n * SEC });
	isErrno(third.error, 'ENOENT', 'cancel');
	assert.deepEqual([third.handle, third.deadlineNs], [null, null]);
	assert.deepEqual([fourth.result, fourth.handle],
		[Result.REGISTERED, wheel.get(3).handle]);
	assert.equal(fifth.deadlineNs, 105n * SEC);
	assert.equal(batch.length, 5);
	assert.throws(() => batch.outcome(5), RangeError);
	batch.clear();
	assert.equal(batch.length, 0);
	batch.delete(1);
	assert.equal(batch.run(), 1);
	isErrno(batch.outcome(0).error, 'EINVAL', 'delete');
	for (const capacity of [0, 65537])
		fails('EINVAL', 'batch', () => wheel.batch(capacity));
	assert.throws(() => wheel.batch(-1), RangeError);
});

// Touches are collected, and keep their place among other operations.
test('touches of batches', (t) => {
	const wheel = opened(t);
	const first = { handle: wheel.register(1, 10_000) };
	wheel.register(2 ** 33 + 2, 20_000);
	wheel.register(2n ** 64n - 1n, 30_000);
	wheel.advance(101);
	const batch = wheel.batch(10);
	const touch = (...keys) => keys.map((key) => batch.touch(key));

	assert.deepEqual(touch(1, first), [0, 1]);
	assert.equal(batch.cancel(1), 2);
	assert.deepEqual(touch(1, 2 ** 33 + 2, BigInt(2 ** 33) + 2n, 2, first), [3, 4, 5, 6, 7]);
	for (const bad of [-1, 1.5, NaN, 2 ** 53, -1n, 2n ** 64n, { handle: 2n ** 64n }])
		assert.throws(() => batch.touch(bad), { name: 'RangeError',
			code: 'ERR_OUT_OF_RANGE' });
	for (const bad of [undefined, null, '7', true, {}, { handle: '7' }, [7], () => 7])
		assert.throws(() => batch.touch(bad), TypeError);
	assert.equal(batch.length, 8);
	isErrno(batch.outcome(7).error, 'EINPROGRESS', 'touch');
	assert.equal(batch.touch(2n ** 64n - 1n), 8);
	assert.equal(batch.run(), 3);
	assert.deepEqual(batch.outcomes().map(({ error }) => error?.code),
		[undefined, undefined, undefined, 'ENOENT', undefined, undefined, 'ENOENT', 'ESTALE',
			undefined]);
	assert.equal(batch.outcome(8).deadlineNs, 131n * SEC);
	assert.equal(batch.touch(2), 9);
	fails('ENOSPC', 'touch', () => batch.touch(2));
	fails('ENOSPC', 'cancel', () => batch.cancel(2));
	assert.equal(batch.run(), 4);
	batch.clear();
	assert.deepEqual([batch.length, batch.touch(2)], [0, 0]);
	batch.clear();
	assert.deepEqual([batch.length, batch.run(), batch.outcomes()], [0, 0, []]);
});

test('a batch of many touches', (t) => {
	const wheel = opened(t);
	const batch = wheel.batch(2000);

	registered(wheel, 2000);
	for (let id = 2000; id; id--)
		batch.touch(id);
	fails('ENOSPC', 'touch', () => batch.touch(1));
	assert.equal(batch.run(), 0);
	assert.deepEqual(batch.outcomes().map(({ deadlineNs }) => deadlineNs),
		Array.from({ length: 2000 }, (_, i) => (2100n - BigInt(i)) * SEC));
});

test('the life of a named wheel', (t) => {
	const { name, wheel } = named(t);

	assert.equal(timewheel.create(name, MANUAL), false);
	assert.throws(() => timewheel.create(name, MANUAL, { exclusive: true }), (error) => {
		assert.match(error.message, new RegExp(`'${name}'$`));
		return isErrno(error, 'EEXIST', 'create');
	});
	fails('EEXIST', 'create', () => timewheel.create(name, { ...MANUAL, slots: 1 }));
	fails('EEXIST', 'open', () => Wheel.openOrCreate(name, { ...MANUAL, slots: 1 }));
	wheel.register(7, 1000);
	const other = Wheel.openNamed(name);
	t.after(() => other.close());
	assert.equal(other.get(7).id, 7n);
	timewheel.destroy(name);
	fails('ENOENT', 'destroy', () => timewheel.destroy(name));
	fails('ENOENT', 'open', () => Wheel.openNamed(name));
	for (const call of [() => wheel.touch(7), () => wheel.read(), () => wheel.info(),
		() => wheel.getMany([7]), () => [...wheel.tokens()], () => wheel.pause(),
		() => wheel.stats(), () => wheel.advance(1)])
		assert.throws(call, { code: 'ENODEV' });
	assert.equal(timewheel.create(name, MANUAL), true);
	timewheel.destroy(name);
});

test('access', (t) => {
	const { name } = named(t);
	const reader = Wheel.openNamed(name, 'r');
	const writer = Wheel.openNamed(name, 'w');

	t.after(() => [reader, writer].forEach((wheel) => wheel.close()));
	writer.register(7, 0);
	assert.equal(reader.get(7).id, 7n);
	fails('EBADF', 'touch', () => reader.touch(7));
	fails('EBADF', 'get', () => writer.get(7));
	fails('EBADF', 'read', () => writer.read());
	assert.deepEqual(ids(reader.read()), [7]);
	assert.throws(() => Wheel.openNamed(name, 'x'), TypeError);
});

test('names', () => {
	for (const [name, code] of [['', 'EINVAL'], ['a/b', 'EINVAL'], ['..', 'EINVAL'],
		['ä', 'EINVAL'], ['x'.repeat(64), 'ENAMETOOLONG'],
		['x'.repeat(10_000), 'ENAMETOOLONG']]) {
		fails(code, 'create', () => timewheel.create(name, MANUAL));
		fails(code, 'open', () => Wheel.openNamed(name));
		fails(code, 'destroy', () => timewheel.destroy(name));
	}
	for (const name of ['a\0b', 7, undefined])
		assert.throws(() => timewheel.create(name, MANUAL), TypeError);
});

test('too many files', async () => {
	const { status, err } = await program(`
		const fs = require('node:fs');
		const { Wheel } = require('timewheel');
		const assert = require('node:assert');
		const setup = ${JSON.stringify(MANUAL)};
		const fds = [];
		Wheel.open(setup).close();
		try {
			for (;;)
				fds.push(fs.openSync('/dev/null'));
		} catch {}
		assert.throws(() => Wheel.open(setup), { code: 'EMFILE', syscall: 'open' });
		fds.forEach((fd) => fs.closeSync(fd));
		Wheel.open(setup).close();
	`);

	assert.equal(status, 0, err);
});
