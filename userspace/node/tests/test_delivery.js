// SPDX-License-Identifier: GPL-2.0-only
//
// Leases and their answers, and periodic tokens.
'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');
const { MANUAL, SEC, fails, ids, isErrno, named, opened } = require('./common');

const { Wheel } = require('timewheel');

const LEASED = { ...MANUAL, lease: 10_000 };

// Returns the one event that comes when the hand is on @tick: token 7's.
function nextAt(wheel, tick) {
	wheel.advance(tick);
	const events = wheel.read();
	assert.deepEqual(ids(events), [7]);
	return events[0];
}

// Makes a named wheel on which token 7 has been delivered on tick 101.
function delivered(t) {
	const { name, wheel } = named(t, LEASED);
	const handle = wheel.register(7, 1000, { cookie: 9 });

	return { name, wheel, handle, event: nextAt(wheel, 101) };
}

test('event and token', (t) => {
	const { wheel, handle, event } = delivered(t);
	const token = wheel.get(7);

	assert.deepEqual(event, { id: 7n, handle, cookie: 9n, deadlineNs: 101n * SEC,
		deadline: null, takenNs: 101n * SEC, taken: null, delivery: 1, attempts: 1,
		missed: 0 });
	assert.deepEqual([token.state, token.deadlineNs, token.leaseEndNs, token.left],
		['held', 0n, 111n * SEC, 10_000]);
	assert.deepEqual([token.delivery, token.attempts], [1, 1]);
});

test('ack', (t) => {
	const { wheel, event } = delivered(t);

	assert.equal(wheel.ack(event), 0);
	fails('ENOENT', 'get', () => wheel.get(7));
	for (const name of ['ack', 'nack', 'extend'])
		fails('ESTALE', name, () => wheel[name](event));
	const info = wheel.info();
	assert.deepEqual([info.delivered, info.acked, info.held], [1, 1, 0]);
});

// An ack ends the token; a new token with its id may follow in the same call.
test('nack', (t) => {
	const { wheel, event } = delivered(t);

	wheel.nack(event, 5000);
	wheel.advance(105);
	assert.deepEqual(wheel.read(), []);
	wheel.nack(nextAt(wheel, 106));
	const last = nextAt(wheel, 106);
	assert.deepEqual([last.delivery, last.attempts], [3, 3]);
	assert.equal(wheel.get(7).attempts, 3);
	assert.equal(wheel.nack(last, 5000), 0);
	assert.deepEqual([wheel.get(7).state, wheel.get(7).deadlineNs],
		['pending', 111n * SEC]);
});

test('extend', (t) => {
	const { wheel, event } = delivered(t);

	wheel.advance(105);
	wheel.extend(event);
	assert.equal(wheel.get(7).leaseEndNs, 115n * SEC);
	wheel.extend(event, 30_000);
	assert.equal(wheel.get(7).leaseEndNs, 135n * SEC);
	wheel.extend(event, 100_000_000);
	// An extension never shortens a lease.
	wheel.extend(event, 1000);
	assert.equal(wheel.get(7).leaseEndNs, 100_105n * SEC);
	fails('ERANGE', 'extend', () => wheel.extend(event, 2n ** 63n));
});

test('delete', (t) => {
	const { wheel, event } = delivered(t);

	wheel.delete(7);
	fails('ESTALE', 'ack', () => wheel.ack(event));
	fails('ENOENT', 'delete', () => wheel.delete(7));
	assert.equal(wheel.info().deleted, 1);
});

test('a lease that is over', (t) => {
	const { wheel, event } = delivered(t);
	const again = nextAt(wheel, 111);

	assert.equal(again.delivery, 2);
	fails('ESTALE', 'ack', () => wheel.ack(event));
	wheel.ack(again);
	assert.equal(wheel.info().lapsed, 1);
});

// A due token waits until an answer, or the end of a lease, makes room.
test('what a closed wheel held comes back', (t) => {
	const { name, wheel } = delivered(t);
	const other = Wheel.openNamed(name);

	t.after(() => other.close());
	wheel.close();
	assert.equal(nextAt(other, 101).delivery, 2);
	assert.equal(other.info().returned, 1);
});

test('maxHeld arrives', (t) => {
	for (const [setup, expected] of [[MANUAL, 0], [LEASED, MANUAL.maxTokens],
		[{ ...LEASED, maxHeld: 7 }, 7]])
		assert.equal(opened(t, setup).info().maxHeld, expected);
	assert.throws(() => Wheel.open({ ...LEASED, maxHeld: -1 }), RangeError);
});

test('answers need a wheel with leases', (t) => {
	const wheel = opened(t);

	for (const name of ['ack', 'nack', 'extend'])
		fails('EINVAL', name, () => wheel[name]({ handle: 1n, delivery: 1 }));
	fails('EINVAL', 'delete', () => wheel.delete(1));
});

test('answers in a batch', (t) => {
	const { wheel, event } = delivered(t);
	const batch = wheel.batch();

	batch.extend(event, 20_000);
	batch.nack(event, 5000);
	batch.ack(event);
	batch.delete(7);
	assert.equal(batch.run(), 1);
	assert.deepEqual(batch.outcomes().map(({ error }) => error && error.code),
		[null, null, 'ESTALE', null]);
	isErrno(batch.outcome(2).error, 'ESTALE', 'ack');
	assert.equal(batch.outcome(1).deadlineNs, 106n * SEC);
});

test('periodic tokens', (t) => {
	const wheel = opened(t, { ...MANUAL, periods: true });
	const came = [];

	wheel.register(7, 3000, { period: 3000, cookie: 4 });
	assert.deepEqual([wheel.get(7).period, wheel.get(7).baseNs, wheel.get(7).timeout],
		[3000, 103n * SEC, 0]);
	for (let tick = 100; tick < 112; tick++) {
		wheel.advance(tick);
		came.push(...wheel.read().map(() => tick));
	}
	assert.deepEqual(came, [103, 106, 109]);
	wheel.advance(122);
	const [event] = wheel.read();
	assert.deepEqual([event.missed, event.cookie, wheel.info().missed], [3, 4n, 3]);
	fails('EINVAL', 'touch', () => wheel.touch(7));
	fails('EINVAL', 'register', () => wheel.register(8, 0, { period: 500 }));
	fails('EINVAL', 'register', () => wheel.register(8, 0, { period: 1000, timeout: 1 }));
	fails('EINVAL', 'register', () => opened(t).register(8, 0, { period: 1000 }));
	wheel.cancel(7);
});
