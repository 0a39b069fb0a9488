// SPDX-License-Identifier: GPL-2.0-only
//
// The tests share this: wheels to try things on, and checks that a call fails.
'use strict';

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const os = require('node:os');
const { setImmediate, setTimeout: sleep } = require('node:timers/promises');
const timewheel = require('timewheel');

const { Wheel } = timewheel;

const MS = 1_000_000n;
const SEC = 1000n * MS;

// The hand is on 100, and only the test moves it: all times are exact.
const MANUAL = { slots: 60, tick: 1000, maxTokens: 2000, clock: 'manual', start: 100 };

const MONOTONIC = { slots: 64, tick: 1, maxTokens: 100_000 };

// Skips a test of something that a wheel of the process does not have: timewheel(7) tells why.
function needsKernel(what) {
	return { skip: process.env.TIMEWHEEL === 'process' && `needs a kernel: ${what}` };
}

let count = 0;

// Makes a wheel that is closed after the test.
function opened(t, setup = MANUAL) {
	const wheel = Wheel.open(setup);

	t.after(() => wheel.close());
	return wheel;
}

// Makes a named wheel that is destroyed after the test.
function named(t, setup = MANUAL) {
	const name = `node-${process.pid}-${++count}`;
	const wheel = Wheel.openOrCreate(name, setup);

	t.after(() => {
		wheel.close();
		try {
			timewheel.destroy(name);
		} catch (error) {
			assert.equal(error.code, 'ENOENT');
		}
	});
	return { name, wheel };
}

// Whether an error is as the package describes errors of the kernel.
function isErrno(error, code, syscall) {
	assert.ok(error instanceof Error);
	assert.equal(error.code, code);
	assert.equal(error.errno, -os.constants.errno[code] || error.errno);
	assert.ok(error.errno < 0);
	assert.equal(error.syscall, syscall);
	assert.match(error.message, new RegExp(`^${code}: .+, ${syscall}`));
	return true;
}

function fails(code, syscall, call) {
	assert.throws(call, (error) => isErrno(error, code, syscall));
}

// These are what assert.throws() takes for an error of the package itself.
const isRange = { name: 'RangeError', code: 'ERR_OUT_OF_RANGE' };
const isType = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' };
const closes = { code: 'ERR_WHEEL_CLOSED' };

function range(from, to) {
	return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

function ids(events) {
	return events.map(({ id }) => Number(id));
}

// Registers tokens 1 to @count, due one tick after the other.
function registered(wheel, count) {
	const batch = wheel.batch(count);

	for (let id = 1; id <= count; id++)
		batch.register(id, id * 1000);
	assert.equal(batch.run(), 0);
}

// Lets the loop go round so many times.
async function turns(count) {
	for (let i = 0; i < count; i++)
		await setImmediate();
}

async function until(condition) {
	while (!condition())
		await sleep(10);
}

// Runs JavaScript in a process of its own, which may open few files. Returns its exit status
// and output.
async function program(source, ...options) {
	const child = spawn('sh', ['-c', 'ulimit -n 256; exec "$0" "$@"', process.execPath,
		...options, '-e', source], { stdio: ['ignore', 'pipe', 'pipe'] });
	let out = '';
	let err = '';

	child.stdout.on('data', (data) => { out += data; });
	child.stderr.on('data', (data) => { err += data; });
	const hangs = setTimeout(() => child.kill('SIGKILL'), 120_000);
	const [status, signal] = await once(child, 'close');
	clearTimeout(hangs);
	return { status, signal, out, err };
}

module.exports = {
	MANUAL, MONOTONIC, MS, SEC, closes, fails, ids, isErrno, isRange, isType, named,
	needsKernel, opened, program, range, registered, turns, until,
};
