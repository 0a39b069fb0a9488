// SPDX-License-Identifier: GPL-2.0-only
//
// Processes end that have wheels open, and nobody closes some wheels.
'use strict';

const assert = require('node:assert/strict');
const test = require('node:test');
const { MANUAL, MONOTONIC, program } = require('./common');

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
			other.unref().take().then(() => console.log('not this'));`,
		0, 'false true\ncame\n'],
		[`${begin} wheel.register(1, 0);
			wheel.on('expired', () => process.exit(3));`, 3, ''],
		// Nobody closes these wheels: the one that waits is kept, all others are collected.
		[`${begin} const fs = require('node:fs');
			let fds = [];
			for (let i = 0; i < 50; i++) {
				const one = Wheel.open(${JSON.stringify(MANUAL)});
				one.on('expired', () => {}).removeAllListeners();
				one.tokens().next();
				one.batch().register(1, 1);
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
