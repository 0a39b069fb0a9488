// SPDX-License-Identifier: GPL-2.0-only
//
// node bench.js [ROUNDS RUNS]: measures what a touch costs in Node: a touch of a wheel, and of
// Node's own timers. A run has so many rounds of 512 touches.
'use strict';

const { Wheel } = require('timewheel');

const TOKENS = 10_000;
const BATCH = 512;
// Only the last run is told. Earlier runs are for work that is done once: V8 compiles a
// function again when it knows more of the function.
const [ROUNDS, RUNS] = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [20, 20];
const TIMEOUT = 30_000;

// Returns random tokens, which are the same each time.
function random(count) {
	const ids = [];
	let state = 1;

	while (ids.length < count) {
		state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
		ids.push((state >>> 8) % TOKENS);
	}
	return ids;
}

function told(kind, keys, run) {
	let start;

	for (let i = 0; i < RUNS; i++) {
		start = process.hrtime.bigint();
		run(keys);
	}
	const ns = Number(process.hrtime.bigint() - start) / keys.length;
	console.log(`= Node\t${kind}\t${TOKENS}\t${ns.toFixed(1)}`);
}

function wheelTouches(ids) {
	const wheel = Wheel.open({ slots: 31, tick: 1000, maxTokens: TOKENS });
	const registered = wheel.batch(TOKENS);
	for (let id = 0; id < TOKENS; id++)
		registered.register(id, TIMEOUT);
	registered.run();
	const handles = ids.map((id) => registered.outcome(id));
	const batch = wheel.batch(BATCH);

	const singly = (keys) => {
		for (const key of keys)
			wheel.touch(key);
	};
	const inBatches = (keys) => {
		for (let i = 0; i < keys.length; i += BATCH) {
			for (let j = i; j < i + BATCH; j++)
				batch.touch(keys[j]);
			if (batch.run())
				throw new Error('a touch has failed');
			batch.clear();
		}
	};

	const many = (keys) => {
		for (let i = 0; i < keys.length; i += BATCH)
			if (wheel.touchMany(keys.slice(i, i + BATCH)).length)
				throw new Error('a touch has failed');
	};

	told('wheel, singly', ids, singly);
	told('wheel, singly, by handle', handles, singly);
	told(`wheel, batch of ${BATCH}`, ids, inBatches);
	told(`wheel, batch of ${BATCH}, by handle`, handles, inBatches);
	told(`wheel, touchMany of ${BATCH}`, ids, many);
	told(`wheel, touchMany of ${BATCH}, by handle`, handles, many);
	wheel.close();
}

function ownTimers(ids) {
	const timers = Array.from({ length: TOKENS }, () => setTimeout(() => {}, TIMEOUT));

	told('setTimeout: refresh', ids, (keys) => {
		for (const id of keys)
			timers[id].refresh();
	});
	timers.forEach(clearTimeout);
}

const ids = random(BATCH * ROUNDS);
wheelTouches(ids);
ownTimers(ids);
