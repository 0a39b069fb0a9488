// SPDX-License-Identifier: GPL-2.0-only
//
// Events: taken, iterated over and listened for, in one loop and in many.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const test = require('node:test');
const { setTimeout } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const timewheel = require('timewheel');
const { MANUAL, MONOTONIC, ids, isErrno, named, opened, registered,
	turns, until } = require('./common');

const { Wheel } = timewheel;

// The time is long enough to see that nothing comes.
const WHILE = 50;

function range(from, to) {
	return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

test('read', (t) => {
	const wheel = opened(t);

	registered(wheel, 100);
	assert.deepEqual(wheel.read(), []);
	wheel.advance(180);
	assert.deepEqual(ids(wheel.read(10)), range(1, 10));
	assert.deepEqual(ids(wheel.read()), range(11, 74));
	assert.deepEqual(ids(wheel.read()), range(75, 80));
	assert.deepEqual(wheel.read(), []);
});

test('take, what is due and what comes', async (t) => {
	const wheel = opened(t);

	registered(wheel, 100);
	wheel.advance(150);
	assert.deepEqual(ids(await wheel.take({ max: 30 })), range(1, 30));
	assert.deepEqual(ids(await wheel.take()), range(31, 50));
	const taken = wheel.take();
	let came = false;
	taken.then(() => { came = true; });
	await setTimeout(WHILE);
	assert.equal(came, false);
	wheel.advance(152);
	assert.deepEqual(ids(await taken), [51, 52]);
});

test('takers are served in turn', async (t) => {
	const wheel = opened(t);
	const order = [];
	const taken = range(0, 4).map(async (i) => {
		const events = await wheel.take({ max: 10 });

		order.push(i);
		return ids(events);
	});

	registered(wheel, 100);
	wheel.advance(135);
	const got = await Promise.all(taken.slice(0, 4));
	assert.deepEqual(got.flat(), range(1, 35));
	assert.deepEqual(order, range(0, 3));
	wheel.advance(140);
	assert.deepEqual(await taken[4], range(36, 40));
});

test('a wait that is aborted loses no event', async (t) => {
	const wheel = opened(t);
	let aborted = 0;

	for (const moment of range(0, 7)) {
		const controller = new AbortController();
		const taken = wheel.take({ signal: controller.signal });

		await turns(2);
		wheel.register(moment, 0);
		await turns(moment % 4);
		controller.abort();
		try {
			assert.deepEqual(ids(await taken), [moment]);
		} catch (error) {
			assert.equal(error.name, 'AbortError');
			aborted++;
			assert.deepEqual(ids(wheel.read()), [moment]);
		}
		assert.deepEqual(wheel.read(), []);
	}
	assert.ok(aborted > 0 && aborted < 8, String(aborted));
	await assert.rejects(wheel.take({ signal: AbortSignal.abort() }),
		{ name: 'AbortError' });
	await assert.rejects(wheel.take({ signal: AbortSignal.timeout(1) }),
		{ name: 'TimeoutError' });
	await assert.rejects(wheel.take({ max: 0 }), RangeError);
});

test('iteration takes events in batches, and no more than it asks for', async (t) => {
	const wheel = opened(t);
	const sizes = [];

	registered(wheel, 300);
	wheel.advance(300);
	for await (const events of wheel) {
		sizes.push(events.length);
		// Nothing is read ahead, however long the body takes.
		await setTimeout(WHILE);
		assert.equal(wheel.info().delivered, 64 * sizes.length);
		if (sizes.length === 2)
			break;
	}
	assert.deepEqual(sizes, [64, 64]);
	await setTimeout(WHILE);
	assert.equal(wheel.info().delivered, 128);
	assert.deepEqual(ids(wheel.read(100)), range(129, 200));
});

test('iteration ends when the wheel is closed', async (t) => {
	const wheel = opened(t);
	let batches = 0;

	wheel.register(1, 0);
	setTimeout(WHILE).then(() => wheel.close());
	for await (const events of wheel)
		batches += events.length;
	assert.equal(batches, 1);
	for await (const events of wheel)
		assert.fail(String(events));
});

test('takers when the wheel is closed or destroyed', async (t) => {
	const wheel = opened(t);
	const taken = [wheel.take(), wheel.take()];

	wheel.close();
	for (const one of taken)
		await assert.rejects(one, { code: 'ERR_WHEEL_CLOSED' });
	const { name, wheel: other } = named(t);
	const more = [other.take(), other.take()];
	const iterated = (async () => {
		for await (const events of other)
			assert.fail(String(events));
	})();
	timewheel.destroy(name);
	for (const one of [...more, iterated, other.take()])
		await assert.rejects(one, (error) => isErrno(error, 'ENODEV', 'read'));
});

test('listeners', async (t) => {
	const wheel = opened(t);
	const got = [];
	const listen = (events) => got.push(...ids(events));

	registered(wheel, 100);
	wheel.advance(102);
	wheel.on('expired', listen);
	await until(() => got.length === 2);
	assert.deepEqual(got, [1, 2]);
	wheel.off('expired', listen);
	wheel.advance(104);
	await setTimeout(WHILE);
	assert.deepEqual(got, [1, 2]);
	assert.deepEqual(ids((await once(wheel, 'expired'))[0]), [3, 4]);
	wheel.prependListener('expired', listen);
	// Callers of take() come before listeners.
	const taken = wheel.take();
	wheel.advance(106);
	assert.deepEqual(ids(await taken), [5, 6]);
	wheel.advance(108);
	await until(() => got.length === 4);
	assert.deepEqual(got, [1, 2, 7, 8]);
	wheel.removeAllListeners();
	wheel.advance(110);
	await setTimeout(WHILE);
	assert.equal(wheel.info().delivered, 8);
	wheel.addListener('expired', listen);
	await until(() => got.length === 6);
	assert.deepEqual(got.slice(4), [9, 10]);
});

test('a listener that closes the wheel', async (t) => {
	const wheel = opened(t);
	const got = [];

	registered(wheel, 100);
	wheel.advance(300);
	wheel.on('expired', (events) => {
		got.push(...events);
		wheel.close();
	});
	await until(() => got.length);
	await setTimeout(WHILE);
	assert.deepEqual(ids(got), range(1, 64));
});

test('listeners learn of an error once', async (t) => {
	const { name, wheel } = named(t);
	const errors = [];

	wheel.on('expired', () => assert.fail());
	wheel.on('error', (error) => errors.push(error));
	await turns(2);
	timewheel.destroy(name);
	await until(() => errors.length);
	await setTimeout(WHILE);
	assert.equal(errors.length, 1);
	isErrno(errors[0], 'ENODEV', 'read');
	const writer = named(t);
	const other = Wheel.openNamed(writer.name, 'w');
	t.after(() => other.close());
	other.register(1, 0);
	await assert.rejects(other.take(), { code: 'EBADF' });
});

test('other work of the loop has its turn', async (t) => {
	const wheel = opened(t);
	let read = 0;
	const seen = [];
	let over = false;
	const other = (async () => {
		while (!over) {
			seen.push(read);
			await turns(1);
		}
	})();

	registered(wheel, 1000);
	wheel.advance(1200);
	for await (const events of wheel)
		if ((read += events.length) === 1000)
			break;
	over = true;
	await other;
	seen.push(read);
	for (let i = 1; i < seen.length; i++)
		assert.ok(seen[i] - seen[i - 1] <= 64, String(seen));
});

test('many events, by all ways at once: each comes once', async (t) => {
	const count = 10_000;
	const wheel = opened(t, MONOTONIC);
	const { name, wheel: shared } = named(t, MONOTONIC);
	const another = Wheel.openNamed(name);
	const got = new Map();
	let left = 2 * count;
	const done = new Promise((resolve) => {
		wheel.on('expired', (events) => take(0, events));
		for (const iterated of [wheel, shared, another])
			(async () => {
				for await (const events of iterated)
					take(iterated === wheel ? 0 : 1, events);
			})();

		function take(which, events) {
			for (const { id, cookie, deadlineNs, takenNs } of events) {
				assert.equal(cookie, id + 1n);
				assert.ok(deadlineNs <= takenNs);
				const key = Number(id) * 2 + which;
				got.set(key, (got.get(key) ?? 0) + 1);
				if (!--left)
					resolve();
			}
		}
	});

	for (const one of [wheel, shared]) {
		const batch = one.batch(count);

		for (let id = 0; id < count; id++)
			batch.register(id, id % 300, { cookie: id + 1 });
		assert.equal(batch.run(), 0);
		await turns(5);
	}
	await done;
	assert.equal(got.size, 2 * count);
	assert.ok([...got.values()].every((times) => times === 1));
	await setTimeout(WHILE);
	for (const one of [wheel, shared]) {
		const info = one.info();

		assert.deepEqual([info.registered, info.delivered, info.pending, left],
			[count, count, 0, 0]);
	}
	another.close();
});

test('each worker thread has wheels of its own, and shares a named one', async (t) => {
	const count = 2000;
	const { name, wheel } = named(t, MONOTONIC);
	const source = `
		const { parentPort, workerData } = require('node:worker_threads');
		const { Wheel } = require('timewheel');
		const own = Wheel.open(workerData.setup);
		own.register(1, 1);
		own.on('expired', () => {
			own.close();
			const shared = Wheel.openNamed(workerData.name);
			shared.on('expired', (events) =>
				parentPort.postMessage(events.map(({ id }) => Number(id))));
			parentPort.on('message', () => process.exit(0));
			parentPort.postMessage([]);
		});
	`;
	const got = [];
	const workers = range(1, 3).map(() =>
		new Worker(source, { eval: true, workerData: { name, setup: MONOTONIC } }));
	await Promise.all(workers.map((worker) => once(worker, 'message')));
	const done = new Promise((resolve) => {
		for (const worker of workers)
			worker.on('message', (some) => {
				got.push(...some);
				if (got.length === count)
					resolve();
			});
	});
	const batch = wheel.batch(count);
	for (let id = 0; id < count; id++)
		batch.register(id, id % 100);
	assert.equal(batch.run(), 0);
	await done;
	assert.deepEqual(got.sort((a, b) => a - b), range(0, count - 1));
	// One worker ends by itself, one is ended, and one throws from a listener.
	workers[0].postMessage('');
	assert.deepEqual(await once(workers[0], 'exit'), [0]);
	assert.equal(await workers[1].terminate(), 1);
	await workers[2].terminate();
});

test('an exception of a listener in a worker', async () => {
	const worker = new Worker(`
		const wheel = require('timewheel').Wheel.open(${JSON.stringify(MONOTONIC)});
		wheel.register(1, 0);
		wheel.on('expired', () => { throw new Error('mine'); });
	`, { eval: true });

	// Both events may come before a wait for the second would begin.
	const exit = new Promise((resolve) => worker.on('exit', resolve));
	const [error] = await once(worker, 'error');
	assert.equal(error.message, 'mine');
	assert.equal(await exit, 1);
});
