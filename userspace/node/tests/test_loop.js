// SPDX-License-Identifier: GPL-2.0-only
//
// Events, in one loop and in many: taken, iterated over and listened for; and the ends of
// wheels that the loop, a thread or a collector of garbage has.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const test = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { Worker } = require('node:worker_threads');
const timewheel = require('timewheel');
const { serve } = require('../examples/idle');
const { MANUAL, MONOTONIC, closes, ids, isErrno, isRange, named, opened, program, range,
	registered, turns, until } = require('./common');

const { Wheel } = timewheel;

// The time is long enough to see that nothing comes.
const WHILE = 50;

test('read and take', async (t) => {
	const wheel = opened(t);
	const order = [];

	registered(wheel, 100);
	assert.deepEqual(wheel.read(), []);
	wheel.advance(180);
	assert.deepEqual(ids(wheel.read(5)), range(1, 5));
	assert.deepEqual(ids(wheel.read()), range(6, 69));
	// The last taker waits until more is due.
	const taken = range(0, 3).map(async (i) => {
		const events = await wheel.take({ max: 4 });

		order.push(i);
		return ids(events);
	});
	assert.deepEqual((await Promise.all(taken.slice(0, 3))).flat(), range(70, 80));
	await sleep(WHILE);
	assert.deepEqual(order, [0, 1, 2]);
	wheel.advance(182);
	assert.deepEqual(await taken[3], [81, 82]);
	await assert.rejects(wheel.take({ max: 0 }), isRange);
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
	await assert.rejects(wheel.take({ signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('iteration takes no more than it asks for, and ends with the wheel', async (t) => {
	const wheel = opened(t);
	let read = 0;

	registered(wheel, 300);
	wheel.advance(400);
	for await (const events of wheel) {
		read += events.length;
		// Nothing is read ahead, however long the body takes.
		await sleep(WHILE);
		assert.equal(wheel.info().delivered, read);
		if (read === 128)
			break;
	}
	await sleep(WHILE);
	assert.equal(wheel.info().delivered, 128);
	for await (const events of wheel)
		if ((read += events.length) === 300)
			wheel.close();
	for await (const events of wheel)
		assert.fail(String(events));
});

test('who waits when the wheel is closed or destroyed', async (t) => {
	const wheel = opened(t);
	const taken = [wheel.take(), wheel.take()];

	wheel.close();
	for (const one of taken)
		await assert.rejects(one, closes);
	const { name, wheel: other } = named(t);
	const listening = Wheel.openNamed(name);
	t.after(() => listening.close());
	const errors = [];
	listening.on('expired', () => assert.fail()).on('error', (error) => errors.push(error));
	const more = [other.take(), other.take(), (async () => {
		for await (const events of other)
			assert.fail(String(events));
	})()];
	timewheel.destroy(name);
	for (const one of [...more, other.take()])
		await assert.rejects(one, (error) => isErrno(error, 'ENODEV', 'read'));
	await until(() => errors.length);
	await sleep(WHILE);
	assert.equal(errors.length, 1);
	isErrno(errors[0], 'ENODEV', 'read');
});

test('listeners', async (t) => {
	const wheel = opened(t);
	const got = [];
	const listen = (events) => got.push(...ids(events));
	const comes = async (tick) => {
		wheel.advance(tick);
		await until(() => got.at(-1) === tick - 100);
	};

	registered(wheel, 200);
	wheel.on('expired', listen);
	await comes(102);
	wheel.off('expired', listen);
	wheel.advance(104);
	await sleep(WHILE);
	assert.deepEqual(ids((await once(wheel, 'expired'))[0]), [3, 4]);
	wheel.prependListener('expired', listen);
	// Callers of take() come before listeners.
	const taken = wheel.take();
	wheel.advance(106);
	assert.deepEqual(ids(await taken), [5, 6]);
	await comes(108);
	wheel.removeAllListeners();
	wheel.advance(110);
	await sleep(WHILE);
	assert.equal(wheel.info().delivered, 8);
	wheel.addListener('expired', listen);
	await comes(110);
	wheel.removeListener('expired', listen);
	wheel.on('expired', (events) => {
		listen(events);
		wheel.close();
	});
	wheel.advance(290);
	await until(() => wheel.closed);
	await sleep(WHILE);
	assert.deepEqual(got, [1, 2, 7, 8, ...range(9, 74)]);
});

test('threads and all ways to wait share a wheel: each event comes once', async (t) => {
	const count = 10_000;
	const { name, wheel } = named(t, MONOTONIC);
	const batch = wheel.batch(count);
	const got = [];
	const take = (events) => {
		assert.ok(events.every((one) => one.cookie === one.id + 1n &&
			one.deadlineNs <= one.takenNs));
		got.push(...ids(events));
	};
	const workers = range(1, 2).map(() => new Worker(`
		const { parentPort, workerData } = require('node:worker_threads');
		const { Wheel } = require('timewheel');
		const own = Wheel.open(workerData.setup);
		own.register(1, 1);
		own.on('expired', () => {
			own.close();
			const shared = Wheel.openNamed(workerData.name);
			shared.on('expired', (events) => parentPort.postMessage(events));
			parentPort.on('message', () => process.exit(0));
			parentPort.postMessage([]);
		});
	`, { eval: true, workerData: { name, setup: MONOTONIC } }));

	await Promise.all(workers.map((worker) => once(worker, 'message')));
	workers.forEach((worker) => worker.on('message', take));
	wheel.on('expired', take);
	const iterated = (async () => {
		for await (const events of wheel)
			take(events);
	})();
	for (let id = 0; id < count; id++)
		batch.register(id, id % 300, { cookie: id + 1 });
	assert.equal(batch.run(), 0);
	await until(() => got.length >= count);
	assert.deepEqual(got.sort((a, b) => a - b), range(0, count - 1));
	wheel.close();
	await iterated;
	// One worker ends by itself, and one is ended.
	workers[0].postMessage('');
	assert.deepEqual(await once(workers[0], 'exit'), [0]);
	assert.equal(await workers[1].terminate(), 1);
});

test('an exception of a listener in a worker', async () => {
	const worker = new Worker(`
		const wheel = require('timewheel').Wheel.open(${JSON.stringify(MONOTONIC)});
		wheel.register(1, 0);
		wheel.on('expired', () => { throw new Error('mine'); });
	`, { eval: true });
	const exit = new Promise((resolve) => worker.on('exit', resolve));
	const [error] = await once(worker, 'error');

	assert.deepEqual([error.message, await exit], ['mine', 1]);
});

// Each entry is a program of its own.
test('ends of processes', async () => {
	const begin = `
		const { Wheel } = require('timewheel');
		const wheel = Wheel.open(${JSON.stringify(MONOTONIC)});
	`;
	const ends = [
		// An exception of a listener is uncaught, and ends the process.
		[`${begin} wheel.register(1, 0);
			wheel.on('expired', () => { throw new Error('mine'); });`, 1, ''],
		// A handled exception does not end the process, and more events come. A wheel that
		// waits keeps the process running, until it no longer waits.
		[`${begin} wheel.register(1, 0);
			process.on('uncaughtException', ({ message }) => {
				console.log(message);
				if (!wheel.closed)
					wheel.register(2, 0);
			});
			wheel.on('expired', ([{ id }]) => {
				if (id === 2n) {
					wheel.close();
					other.register(1, 50);
					other.take().then(() => console.log('came'));
				}
				throw new Error(id);
			});
			const other = Wheel.open(${JSON.stringify(MONOTONIC)});
			other.on('expired', () => {}).removeAllListeners('expired');`,
		0, '1\n2\ncame\n'],
		// A wheel that waits does not keep the process running after unref().
		[`${begin} const other = Wheel.open(${JSON.stringify(MONOTONIC)});
			console.log(wheel.unref().hasRef(), wheel.ref().hasRef());
			wheel.unref();
			wheel.on('expired', () => { console.log('came'); clearTimeout(timer); });
			wheel.register(1, 0);
			const timer = setTimeout(() => {}, 60_000);
			other.take().then(() => console.log('not this'));
			other.unref();`,
		0, 'false true\ncame\n'],
		[`${begin} wheel.register(1, 0);
			wheel.on('expired', () => process.exit(3));`, 3, ''],
		// Nobody closes these wheels: the one that waits is kept, all others are collected.
		[`${begin} const fs = require('node:fs');
			let fds = [];
			for (let i = 0; i < 50; i++) {
				const one = Wheel.open(${JSON.stringify(MANUAL)});
				one.on('expired', () => {}).removeAllListeners();
				one.register(1, 1);
				one.tokens().next();
				one.batch().touch(1);
				fds.push(one.fd);
			}
			const name = 'node-' + process.pid;
			Wheel.openOrCreate(name, ${JSON.stringify(MANUAL)})
				.on('expired', () => {
					console.log('kept');
					require('timewheel').destroy(name);
					process.exit();
				});
			(function collect() {
				global.gc();
				fds = fds.filter((fd) => fs.existsSync('/proc/self/fd/' + fd));
				if (fds.length)
					setTimeout(collect, 1);
				else {
					console.log('collected');
					wheel.close();
					Wheel.openNamed(name, 'w').register(1, 0);
				}
			})();`, 0, 'collected\nkept\n'],
	];
	const results = await Promise.all(
		ends.map(([source]) => program(source, '--expose-gc')));

	for (const [i, { status, signal, out, err }] of results.entries()) {
		const [source, expected, printed] = ends[i];

		assert.deepEqual([status, signal, out], [expected, null, printed],
			`${source}\n${err}`);
	}
	assert.match(results[0].err, /Error: mine/);
});

test('the example hangs up on silent clients only', async (t) => {
	const wheel = opened(t, { ...MANUAL, maxTokens: 2 });
	const server = serve(wheel, 30_000).listen(0, '127.0.0.1');
	const connect = async () => {
		const socket = net.connect(server.address().port, '127.0.0.1').on('error', () => {});
		const closed = new Promise((resolve) => socket.on('close', resolve));

		await once(socket.resume(), 'connect');
		return { socket, closed };
	};

	t.after(() => server.close());
	await once(server, 'listening');
	const lively = await connect();
	const silent = await connect();
	await until(() => wheel.info().pending === 2);
	// This is one client too many.
	await (await connect()).closed;
	wheel.advance(120);
	lively.socket.write('hello');
	await once(lively.socket, 'data');
	wheel.advance(130);
	await silent.closed;
	assert.equal(lively.socket.destroyed, false);
	wheel.advance(150);
	await lively.closed;
	const { registered, touched, delivered } = wheel.info();
	assert.deepEqual([registered, touched, delivered], [2, 1, 2]);
});
