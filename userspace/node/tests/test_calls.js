// SPDX-License-Identifier: GPL-2.0-only
//
// Each call of the package that does not wait: its arguments reach the library, and its results
// and errors come back. The tests in C hold what wheels do.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const test = require('node:test');
const timewheel = require('timewheel');
const { members } = require('./declared');
const { MANUAL, MS, SEC, closes, fails, ids, isErrno, isRange, isType, named,
	needsKernel, opened, range, registered } = require('./common');

const { Result, Wheel } = timewheel;
const LEASED = { ...MANUAL, lease: 10_000 };
const MOST = 2n ** 64n - 1n;

// These are no ids, by their range or by their type.
const OUTSIDE = [-1, 1.5, NaN, Infinity, 2 ** 53, -1n, 2n ** 64n, { handle: 2n ** 64n }];
const NO_KEYS = [undefined, null, '7', true, Symbol('7'), () => 7, {}, { handle: '7' }];

// Returns the properties of an object with these names.
function some(object, ...names) {
	return names.map((name) => object[name]);
}

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

test('setups', (t) => {
	const info = opened(t, { slots: 31, tick: 1.001, maxTokens: 7, clock: 'manual',
		ids: false, cookies: false, start: 9 }).info();

	assert.deepEqual(some(info, 'slots', 'tick', 'maxTokens', 'clock', 'ids', 'cookies', 'hand'),
		[31, 1.001, 7, 'manual', false, false, 9]);
	assert.deepEqual(some(info, 'nextNs', 'next', 'now', 'offsetNs', 'touchWords', 'periods'),
		[null, null, null, 0n, false, false]);
	const policies = opened(t, { ...MANUAL, clock: 'realtime', start: undefined, tick: MS,
		lease: 1500, periods: true, slack: 250, maxTokens: 9n }).info();
	assert.deepEqual(some(policies, 'clock', 'tick', 'lease', 'periods', 'slack', 'maxHeld'),
		['realtime', 1, 1500, true, 250, 9]);
	assert.ok(Math.abs(policies.now - Date.now()) < 60_000);
	assert.deepEqual(some(opened(t).info(), 'ids', 'cookies', 'maxHeld', 'nowNs'),
		[true, true, 0, 100n * SEC]);
	assert.equal(opened(t, { ...LEASED, maxHeld: 7 }).info().maxHeld, 7);
	fails('EINVAL', 'open', () => Wheel.open({ ...MANUAL, slots: 0 }));
	for (const setup of [undefined, null, {}, { ...MANUAL, slots: '60' },
		{ ...MANUAL, clock: 'sundial' }, { ...MANUAL, ids: 1 }, { ...MANUAL, tick: '1s' }])
		assert.throws(() => Wheel.open(setup), TypeError);
	for (const wrong of [{ slots: 1.5 }, { maxTokens: -1 }, { tick: NaN }, { maxHeld: -1 },
		{ start: 2n ** 64n }])
		assert.throws(() => Wheel.open({ ...MANUAL, ...wrong }), isRange);
	for (const name of ['slots', 'process', 'ids'])
		assert.throws(() => Wheel.open({ ...MANUAL, get [name]() { throw new Error('mine'); } }),
			{ message: 'mine' });
});

test('caps', (t) => {
	const caps = timewheel.caps();

	assert.deepEqual(caps.clocks, ['monotonic', 'boottime', 'realtime', 'manual']);
	assert.ok(caps.idsOptional && caps.cookiesOptional && caps.leases && caps.periods);
	assert.deepEqual(some(caps, 'maxSlots', 'maxBatch', 'minTick', 'maxTick', 'maxWordTicks'),
		[65536, 65536, 0.1, 86_400_000, 2 ** 30]);
	assert.ok(caps.maxTokens > 65536);
	for (const clock of caps.clocks)
		assert.equal(opened(t, { slots: 1, tick: 1000, maxTokens: 1, clock }).info().clock,
			clock);
});

test('a closed wheel', async (t) => {
	const wheel = opened(t);
	const batch = wheel.batch();
	const { fd } = wheel;
	const key = { handle: 1n, delivery: 1 };

	fs.fstatSync(fd);
	assert.equal(wheel.closed, false);
	wheel.close();
	wheel.close();
	assert.equal(wheel.closed, true);
	assert.throws(() => fs.fstatSync(fd), { code: 'EBADF' });
	for (const name of ['info', 'stats', 'tokens', 'batch', 'pause', 'resume', 'drain',
		'undrain', 'ref', 'unref', 'hasRef', 'register', 'touchOrRegister', 'advance',
		'touch', 'move', 'cancel', 'get', 'delete', 'ack', 'nack', 'extend'])
		assert.throws(() => wheel[name](key, 1), closes, name);
	for (const call of [() => wheel.fd, () => wheel.inProcess, () => wheel.read(),
		() => batch.run(), () => batch.touch(1)])
		assert.throws(call, closes);
	for (const name of ['touchMany', 'getMany']) {
		const other = opened(t);
		const closing = { get handle() { other.close(); return 1n; } };

		assert.throws(() => other[name]([closing]), closes);
	}
	await assert.rejects(wheel.take(), closes);
	assert.throws(() => new Wheel(Symbol('by'), {}), TypeError);
	for (const symbol of [Symbol.dispose, Symbol.asyncDispose].filter(Boolean)) {
		const other = opened(t);

		await other[symbol]();
		assert.ok(other.closed);
	}
});

test('register, get, and arguments that are refused', (t) => {
	const wheel = opened(t);
	const handle = wheel.register(7, 30_000, { cookie: MOST });
	const token = wheel.get(7);

	assert.deepEqual(token, {
		id: 7n, handle, cookie: MOST, deadlineNs: 130n * SEC, deadline: null,
		leaseEndNs: 0n, leaseEnd: null, left: 30_000,
		timeout: 30_000, period: 0, baseNs: 0n, base: null, cycle: 0, slot: 130 % 60,
		state: 'pending', delivery: 0, attempts: 0,
	});
	assert.deepEqual(wheel.get({ handle }), token);
	fails('EEXIST', 'register', () => wheel.register(7n, 1));
	fails('ENOENT', 'get', () => wheel.get(8));
	fails('ESTALE', 'get', () => wheel.get({ handle: 1 }));
	for (const call of [(id) => wheel.register(id, 1), (id) => wheel.touch(id),
		(id) => wheel.batch().touch(id), (id) => wheel.touchMany([id]),
		(id) => wheel.getMany([id])]) {
		for (const id of OUTSIDE)
			assert.throws(() => call(id), isRange);
		for (const id of NO_KEYS)
			assert.throws(() => call(id), isType);
	}
	for (const due of [-1, NaN, Infinity, -1n, 2n ** 64n, { at: -1n }])
		assert.throws(() => wheel.register(1, due), isRange);
	for (const due of ['1s', null, {}, { at: 1 }, new Date(), { at: new Date() }])
		assert.throws(() => wheel.register(1, due), isType);
	for (const options of [{ timeout: 0 }, { period: 0 }, { cookie: -1 }, { timeout: -1 },
		{ timeout: 1e-9 }])
		assert.throws(() => wheel.register(1, 1, options), isRange);
	assert.throws(() => wheel.get({ get handle() { throw new Error('mine'); } }),
		{ message: 'mine' });
	for (const max of [0, -1, 1.5, '7', 2 ** 32])
		assert.throws(() => wheel.read(max), isRange);
	assert.throws(() => wheel.ack(undefined), TypeError);
	assert.equal(wheel.info().registered, 1);
});

test('ids and durations of any size', (t) => {
	const wheel = opened(t, { ...MANUAL, tick: 0.1, start: 0 });
	const all = [0, 1n, Number.MAX_SAFE_INTEGER, 2n ** 53n, MOST];

	for (const id of all)
		wheel.register(id, 0, { cookie: id });
	const events = wheel.read();
	assert.deepEqual(new Set(events.map(({ id }) => id)), new Set(all.map(BigInt)));
	assert.ok(events.every(({ id, cookie }) => id === cookie));
	for (const [duration, ns] of [[0, 0n], [1000, SEC], [1.1, 1_100_000n], [0.3, 300_000n],
		[172_800_700, 172_800_700n * MS], [1e-7, 0n], [1_100_000n, 1_100_000n]]) {
		wheel.register(7, duration);
		assert.equal(BigInt(Math.round(wheel.get(7).left * 1e6)), ns);
		wheel.cancel(7);
	}
});

test('dates', (t) => {
	const wheel = opened(t, { slots: 64, tick: 1000, maxTokens: 9, clock: 'realtime' });
	const at = new Date('2100-01-01T00:00:00Z');

	wheel.register(1, at);
	wheel.register(2, { at });
	wheel.register(3, new Date(Date.now() - 5000));
	for (const id of [1, 2])
		assert.deepEqual(some(wheel.get(id), 'deadline', 'deadlineNs'), [at, BigInt(at) * MS]);
	wheel.move(2, new Date('2100-01-01T00:00:10Z'));
	assert.deepEqual(ids([...wheel.tokens({ from: at, to: at })]), [1]);
	const [event] = wheel.read();
	assert.equal(event.id, 3n);
	assert.ok(event.deadline <= event.taken && event.taken <= new Date());
	assert.throws(() => wheel.register(4, new Date(NaN)), isRange);
});

test('touch, touchOrRegister, move, cancel', (t) => {
	const wheel = opened(t);

	wheel.register(2, { at: 105n * SEC }, { timeout: 20_000 });
	assert.equal(wheel.touch(2), 0);
	assert.deepEqual(some(wheel.get(2), 'deadlineNs', 'timeout'), [120n * SEC, 20_000]);
	wheel.move(2, { at: 107n * SEC }, { timeout: 41_000n * MS });
	assert.deepEqual(some(wheel.get(2), 'deadlineNs', 'timeout'), [107n * SEC, 41_000]);
	wheel.move(2, 9000);
	wheel.cancel(2);
	assert.equal(wheel.touchOrRegister(1, 30_000, { cookie: 5 }), Result.REGISTERED);
	assert.equal(wheel.touchOrRegister(1, 99_000), 0);
	assert.deepEqual(some(wheel.get(1), 'deadlineNs', 'cookie'), [130n * SEC, 5n]);
	wheel.advance(130);
	assert.equal(wheel.touch({ handle: wheel.get(1).handle }), Result.WAS_DUE);
	assert.equal(wheel.move({ handle: wheel.get(1).handle }, 5000), 0);
	wheel.advance(135);
	assert.equal(wheel.cancel(1), Result.WAS_DUE);
	for (const name of ['touch', 'cancel', 'move']) {
		fails('ENOENT', name, () => wheel[name](1, 1));
		fails('ESTALE', name, () => wheel[name]({ handle: 1n << 32n }, 1));
	}
	assert.deepEqual(some(wheel.info(), 'registered', 'touched', 'moved', 'cancelled'),
		[2, 3, 3, 2]);
});

test('touchMany and getMany', (t) => {
	const wheel = opened(t);

	registered(wheel, 1500);
	wheel.advance(101);
	const keys = [7, 0, ...range(2, 1500).reverse(), MOST];
	assert.deepEqual(wheel.touchMany(keys), [0, MOST]);
	assert.equal(wheel.info().touched, 1500);
	assert.equal(wheel.get(1500).deadlineNs, 1601n * SEC);
	const found = wheel.getMany(keys);
	assert.deepEqual(found.map((token) => token?.id), keys.map((key) =>
		key === 0 || key === MOST ? undefined : BigInt(key)));
	const gone = { handle: 1 };
	assert.deepEqual(wheel.touchMany([found[0], gone, found[2]]), [gone]);
	assert.deepEqual(wheel.getMany([found[2], gone]), [wheel.get(1500), null]);
	wheel.register(2 ** 33 + 2, 1000);
	assert.deepEqual(wheel.touchMany(new Set([5n, 2 ** 33 + 2])), []);
	for (const name of ['touchMany', 'getMany']) {
		assert.deepEqual(wheel[name]([]), []);
		for (const bad of [[7, found[0]], [found[0], 7], 7])
			assert.throws(() => wheel[name](bad), TypeError);
		fails('EINVAL', name, () => opened(t, { ...MANUAL, ids: false })[name]([1]));
	}
});

test('tokens', (t) => {
	const wheel = opened(t);
	const { fd } = wheel;

	registered(wheel, 1000);
	assert.deepEqual(ids([...wheel.tokens()]).sort((a, b) => a - b), range(1, 1000));
	assert.deepEqual(ids([...wheel.tokens({ from: 110n * SEC, to: 112n * SEC })]).sort(),
		[10, 11, 12]);
	// When the wheel is closed, one walk is under way and one has been left.
	const walk = wheel.tokens();
	const left = wheel.tokens();
	walk.next();
	left.next();
	left.return();
	wheel.close();
	fs.fstatSync(fd);
	assert.equal([...walk].length, 999);
	assert.throws(() => fs.fstatSync(fd), { code: 'EBADF' });
});

test('pause, drain and stats', (t) => {
	const wheel = opened(t);

	assert.throws(() => wheel.stats().lateness.percentile(50),
		(error) => isErrno(error, 'ENODATA', 'percentile'));
	wheel.register(7, 1000);
	wheel.advance(111);
	wheel.pause();
	assert.deepEqual(some(wheel.info(), 'paused', 'draining'), [true, false]);
	wheel.resume();
	wheel.drain();
	assert.deepEqual(some(wheel.info(), 'paused', 'draining'), [false, true]);
	fails('ESHUTDOWN', 'register', () => wheel.register(8, 1));
	assert.deepEqual(ids(wheel.read()), [7]);
	wheel.undrain();
	assert.equal(wheel.info().draining, false);
	const { lateness } = wheel.stats();
	const late = lateness.percentile(50);
	assert.ok(late >= 10_000 && late <= 12_500, String(late));
	assert.equal(lateness.count, 1);
	const [low, high] = timewheel.Histogram.bounds(lateness.buckets.indexOf(1n));
	assert.ok(low <= 10_000 && low < high && high === late);
	assert.throws(() => timewheel.Histogram.bounds(252), isRange);
	assert.throws(() => lateness.percentile(101),
		(error) => isErrno(error, 'EINVAL', 'percentile'));
	assert.throws(() => lateness.percentile('50'), isType);
	fails('EINVAL', 'advance', () => opened(t, { ...MANUAL, clock: 'boottime',
		start: undefined }).advance(1));
});

test('batches', (t) => {
	const wheel = opened(t);
	const batch = wheel.batch(5);

	assert.deepEqual([batch.register(1, 30_000, { cookie: 5 }), batch.touch(1),
		batch.cancel(2), batch.touchOrRegister(3, 7000), batch.move(3, 5000)], range(0, 4));
	fails('ENOSPC', 'touch', () => batch.touch(1));
	fails('ENOSPC', 'cancel', () => batch.cancel(1));
	isErrno(batch.outcome(0).error, 'EINPROGRESS', 'register');
	assert.equal(batch.run(), 1);
	const [first, second, third, fourth, fifth] = batch.outcomes();
	assert.deepEqual(first, { error: null, result: 0, handle: wheel.get(1).handle,
		deadlineNs: 130n * SEC });
	assert.deepEqual(second, { ...first, handle: null });
	isErrno(third.error, 'ENOENT', 'cancel');
	assert.deepEqual([third.handle, third.deadlineNs], [null, null]);
	assert.deepEqual([fourth.result, fourth.handle],
		[Result.REGISTERED, wheel.get(3).handle]);
	assert.equal(fifth.deadlineNs, 105n * SEC);
	assert.throws(() => batch.outcome(5), isRange);
	batch.clear();
	assert.deepEqual([batch.length, batch.run(), batch.outcomes()], [0, 0, []]);
	for (const capacity of [0, 65537])
		fails('EINVAL', 'batch', () => wheel.batch(capacity));
	assert.throws(() => wheel.batch(-1), isRange);
});

// Touches are collected, and keep their place among other operations.
test('touches of batches', (t) => {
	const wheel = opened(t);
	const first = { handle: wheel.register(1, 10_000) };
	const batch = wheel.batch(2000);

	wheel.register(2 ** 33 + 2, 20_000);
	assert.deepEqual([batch.touch(1), batch.touch(first), batch.cancel(1), batch.touch(1),
		batch.touch(BigInt(2 ** 33) + 2n), batch.touch(2 ** 33 + 2), batch.touch(first)],
	range(0, 6));
	assert.throws(() => batch.touch(-1), isRange);
	assert.equal(batch.length, 7);
	isErrno(batch.outcome(6).error, 'EINPROGRESS', 'touch');
	assert.equal(batch.run(), 2);
	assert.deepEqual(batch.outcomes().map(({ error }) => error?.code ?? null),
		[null, null, null, 'ENOENT', null, null, 'ESTALE']);
	batch.touch(2);
	batch.clear();
	registered(wheel, 1900);
	for (const id of range(1, 1900).reverse())
		batch.touch(id);
	assert.equal(batch.run(), 0);
	assert.deepEqual(batch.outcomes().map(({ deadlineNs }) => deadlineNs),
		range(1, 1900).reverse().map((id) => BigInt(100 + id) * SEC));
	const { name, wheel: other } = named(t);
	const left = other.batch();
	left.touch(1);
	timewheel.destroy(name);
	fails('ENODEV', 'run', () => left.run());
});

test('answers to deliveries, and periods', (t) => {
	const wheel = opened(t, { ...LEASED, periods: true });
	const handle = wheel.register(7, 1000, { cookie: 9 });
	const nextAt = (tick) => {
		wheel.advance(tick);
		return wheel.read()[0];
	};
	const event = nextAt(102);

	assert.deepEqual(event, { id: 7n, handle, cookie: 9n, deadlineNs: 101n * SEC,
		deadline: null, takenNs: 102n * SEC, taken: null, delivery: 1, attempts: 1,
		missed: 0 });
	assert.deepEqual(some(wheel.get(7), 'state', 'deadlineNs', 'leaseEndNs', 'left', 'delivery',
		'attempts'), ['held', 0n, 112n * SEC, 10_000, 1, 1]);
	wheel.extend(event, 30_000);
	assert.equal(wheel.get(7).leaseEndNs, 132n * SEC);
	wheel.nack(event, 5000);
	assert.deepEqual(some(wheel.get(7), 'state', 'deadlineNs'), ['pending', 107n * SEC]);
	wheel.nack(nextAt(107));
	const last = nextAt(107);
	assert.deepEqual(some(last, 'delivery', 'attempts'), [3, 3]);
	wheel.advance(109);
	wheel.extend(last);
	assert.equal(wheel.get(7).leaseEndNs, 119n * SEC);
	// This lease ends without an answer.
	assert.equal(wheel.ack(nextAt(119)), 0);
	for (const name of ['ack', 'nack', 'extend'])
		fails('ESTALE', name, () => wheel[name](last));
	fails('ENOENT', 'delete', () => wheel.delete(7));
	wheel.register(7, 0);
	const batch = wheel.batch();
	const again = nextAt(120);
	batch.extend(again, 20_000);
	batch.nack(again, 5000);
	batch.ack(again);
	batch.delete(7);
	assert.equal(batch.run(), 1);
	isErrno(batch.outcome(2).error, 'ESTALE', 'ack');
	assert.equal(batch.outcome(1).deadlineNs, 125n * SEC);
	wheel.register(8, 1);
	wheel.delete(8);
	assert.deepEqual(some(wheel.info(), 'delivered', 'acked', 'nacked', 'lapsed', 'returned',
		'deleted', 'held'), [5, 1, 3, 1, 0, 2, 0]);

	wheel.register(7, 1000, { period: 3000 });
	assert.deepEqual(some(wheel.get(7), 'period', 'baseNs', 'timeout'), [3000, 121n * SEC, 0]);
	assert.equal(nextAt(131).missed, 3);
	assert.equal(wheel.info().missed, 3);
});

test('named wheels', (t) => {
	const { name, wheel } = named(t);
	const [reader, writer] = ['r', 'w'].map((access) => Wheel.openNamed(name, access));
	const other = Wheel.openOrCreate(name, MANUAL, 'r');

	t.after(() => [reader, writer, other].forEach((one) => one.close()));
	assert.equal(timewheel.create(name, MANUAL), false);
	assert.throws(() => timewheel.create(name, MANUAL, { exclusive: true }), (error) => {
		assert.match(error.message, new RegExp(`'${name}'$`));
		return isErrno(error, 'EEXIST', 'create');
	});
	fails('EEXIST', 'open', () => Wheel.openOrCreate(name, { ...MANUAL, slots: 1 }));
	writer.register(7, 0);
	fails('EBADF', 'touch', () => reader.touch(7));
	fails('EBADF', 'touch', () => other.touch(7));
	fails('EBADF', 'get', () => writer.get(7));
	fails('EBADF', 'read', () => writer.read());
	assert.deepEqual(ids(reader.read()), [7]);
	assert.throws(() => Wheel.openNamed(name, 'x'), TypeError);
	timewheel.destroy(name);
	fails('ENOENT', 'destroy', () => timewheel.destroy(name));
	fails('ENOENT', 'open', () => Wheel.openNamed(name));
	for (const call of [() => wheel.touch(7), () => wheel.read(), () => wheel.info(),
		() => wheel.getMany([7]), () => [...wheel.tokens()], () => wheel.pause(),
		() => wheel.stats(), () => wheel.advance(1)])
		assert.throws(call, { code: 'ENODEV' });
	assert.equal(timewheel.create(name, MANUAL), true);
	timewheel.destroy(name);
	fails('ENAMETOOLONG', 'create', () => timewheel.create('x'.repeat(10_000), MANUAL));
	for (const bad of ['a\0b', 7, undefined])
		assert.throws(() => timewheel.destroy(bad), TypeError);
});

test('wheels of the process', (t) => {
	const before = process.env.TIMEWHEEL;
	process.env.TIMEWHEEL = 'process';
	assert.equal(opened(t).inProcess, true);
	delete process.env.TIMEWHEEL;
	t.after(() => Object.assign(process.env, before && { TIMEWHEEL: before }));
	const wheel = Wheel.open(MANUAL, { process: true });
	t.after(() => wheel.close());
	assert.equal(wheel.inProcess, true);
	fails('ENOTTY', 'open', () => Wheel.openFd(wheel.fd));
	fails('EBADF', 'open', () => Wheel.openFd(2 ** 31 - 1));
	assert.throws(() => Wheel.openFd(-1), isRange);
	for (const bad of ['yes', 1, null])
		assert.throws(() => Wheel.open(MANUAL, { process: bad }), TypeError);
	for (const call of [
		() => Wheel.open({ ...MANUAL, process: true }),
		() => Wheel.openNamed('node', { process: true }),
		() => Wheel.openOrCreate('node', MANUAL, { process: true }),
		() => timewheel.create('node', MANUAL, { process: true })])
		assert.throws(call, TypeError);
});

test('wheels of the kernel', needsKernel('an fd of a wheel makes another one'), (t) => {
	const { name, wheel } = named(t);
	const other = Wheel.openFd(fs.openSync(`/dev/timewheels/${name}`, 'r+'));

	t.after(() => other.close());
	assert.deepEqual([wheel.inProcess, other.inProcess], [false, false]);
	wheel.register(7, 1000);
	assert.equal(other.get(7).id, 7n);
});

test('tcpIdle', async (t) => {
	const server = net.createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const from = performance.now();
	const client = net.connect(server.address().port, '127.0.0.1');
	const [accepted] = await once(server, 'connection');

	t.after(() => { accepted.destroy(); server.close(); });
	// The kernel counts in jiffies.
	const idle = timewheel.tcpIdle(accepted);
	assert.ok(idle >= 0 && idle <= performance.now() - from + 11, `${idle}`);
	fails('ENOTCONN', 'tcpIdle', () => timewheel.tcpIdle(server));
	client.destroy();
	fails('EBADF', 'tcpIdle', () => timewheel.tcpIdle(client));
});
