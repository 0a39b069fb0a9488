// SPDX-License-Identifier: GPL-2.0-only
//
// Wheels that this process keeps itself, with or without a module beside them.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const test = require('node:test');
const { setTimeout } = require('node:timers/promises');
const timewheel = require('timewheel');
const { MANUAL, MONOTONIC, fails, ids, named, needsKernel, opened,
	program } = require('./common');

const { Wheel } = timewheel;

// Sets TIMEWHEEL to this value, or unsets it, for the test.
function environment(t, value) {
	const before = process.env.TIMEWHEEL;
	const set = (to) => {
		delete process.env.TIMEWHEEL;
		if (to !== undefined)
			process.env.TIMEWHEEL = to;
	};

	set(value);
	t.after(() => set(before));
}

// Makes a wheel by the option, while the environment says nothing.
function inProcess(t, setup = MANUAL) {
	environment(t, undefined);
	const wheel = Wheel.open(setup, { process: true });

	t.after(() => wheel.close());
	return wheel;
}

test('a wheel of the process tells so', (t) => {
	const wheel = inProcess(t);

	assert.equal(wheel.inProcess, true);
	assert.throws(() => { wheel.inProcess = false; }, TypeError);
	wheel.register(7, 30_000);
	wheel.advance(129);
	assert.deepEqual(wheel.read(), []);
	wheel.advance(130);
	assert.deepEqual(ids(wheel.read()), [7]);
	wheel.close();
	assert.throws(() => wheel.inProcess, { code: 'ERR_WHEEL_CLOSED' });
});

// The loop is woken too early for tokens that were touched or cancelled, which does no harm.
test('the event loop delivers from a wheel of the process', async (t) => {
	const wheel = inProcess(t, MONOTONIC);
	const got = [];
	const taken = wheel.take();

	wheel.register(7, 20);
	wheel.register(8, 20);
	wheel.cancel(7);
	await setTimeout(10);
	// On a slow machine the event may have come already.
	wheel.touchOrRegister(8, 20);
	assert.deepEqual(ids(await taken), [8]);
	await new Promise((resolve) => {
		wheel.on('expired', (events) => {
			got.push(...ids(events).filter((id) => id !== 8));
			if (got.length === 100)
				resolve();
		});
		for (let id = 100; id < 200; id++)
			wheel.register(id, id % 20);
	});
	assert.deepEqual(got.sort(), Array.from({ length: 100 }, (_, i) => 100 + i));
});

test('an fd of a wheel of the process makes no other', (t) => {
	const wheel = inProcess(t);

	fails('ENOTTY', 'open', () => Wheel.openFd(wheel.fd));
	assert.equal(wheel.info().registered, 0);
});

test('what does not go with the process', (t) => {
	environment(t, undefined);
	for (const bad of ['yes', 1, null])
		assert.throws(() => Wheel.open(MANUAL, { process: bad }), TypeError);
	for (const call of [
		() => Wheel.open({ ...MANUAL, process: true }),
		() => Wheel.openNamed('node', { process: true }),
		() => Wheel.openOrCreate('node', MANUAL, { process: true }),
		() => timewheel.create('node', MANUAL, { process: true })])
		assert.throws(call, TypeError);
	assert.throws(() => Wheel.open({ ...MANUAL, get process() { throw new Error('mine'); } }),
		{ message: 'mine' });
});

test('the environment makes all wheels those of the process', (t) => {
	environment(t, 'process');
	assert.equal(opened(t).inProcess, true);
	const { name, wheel } = named(t);
	const other = Wheel.openNamed(name);
	assert.deepEqual([wheel.inProcess, other.inProcess], [true, true]);
	assert.equal(fs.existsSync(`/dev/timewheels/${name}`), false);
	wheel.register(7, 0);
	assert.deepEqual(ids(other.read()), [7]);
	other.close();
	assert.equal(timewheel.caps().maxTokens, 2 ** 28);
});

// The program begins with this environment.
test('a program that knows nothing of it', async (t) => {
	environment(t, 'process');
	const { status, out, err } = await program(`
		const wheel = require('timewheel').Wheel.open(${JSON.stringify(MONOTONIC)});
		wheel.register(7, 20);
		wheel.on('expired', ([{ id }]) => {
			console.log(id, wheel.inProcess);
			wheel.close();
		});
	`);

	assert.deepEqual([status, out], [0, '7n true\n'], err);
});

test('wheels of the process and of the kernel', needsKernel('one beside the process'), (t) => {
	const wheel = opened(t);
	const other = Wheel.open(MANUAL, { process: true });

	t.after(() => other.close());
	assert.deepEqual([wheel.inProcess, other.inProcess], [false, true]);
	other.register(7, 1000);
	assert.equal(wheel.info().registered, 0);
});
