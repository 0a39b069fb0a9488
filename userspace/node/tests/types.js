// SPDX-License-Identifier: GPL-2.0-only
//
// Compares the names in index.d.ts with what the module exports: the methods and
// properties of its classes, and its constants. The tests with a device do the same for
// the objects that calls return.
'use strict';

const assert = require('node:assert/strict');
const EventEmitter = require('node:events');
const timewheel = require('timewheel');
const { exported, members } = require('./declared');

// These names are inherited and described elsewhere, or are not for programs.
const LEFT_OUT = ['constructor', 'addListener', 'prependListener', 'prependOnceListener', 'off',
	'on', 'once', 'removeListener', 'removeAllListeners', 'run it'];

// Returns the methods and properties that a prototype has above @base.
function had(prototype, base) {
	const names = new Set();

	for (; prototype !== base; prototype = Object.getPrototypeOf(prototype))
		Reflect.ownKeys(prototype).forEach((key) => names.add(key));
	return [...names].map((key) => typeof key === 'symbol' ?
		key.description.replace(/^nodejs\./, 'Symbol.') : key);
}

function told(names) {
	return names.map((name) => name.replace(/^\[(.*)\]$/, '$1'))
		.filter((name) => !LEFT_OUT.includes(name)).sort();
}

assert.deepEqual(Object.keys(timewheel).sort(), exported());
assert.deepEqual(Object.keys(timewheel.Result).sort(),
	members('export const Result'));
for (const name of ['Wheel', 'Batch', 'Histogram']) {
	const cls = timewheel[name];
	const base = name === 'Wheel' ? EventEmitter.prototype : Object.prototype;
	const statics = Object.getOwnPropertyNames(cls)
		.filter((one) => !['length', 'name', 'prototype'].includes(one));
	const own = had(cls.prototype, base);

	// The constructor of Histogram sets this property.
	if (name === 'Histogram')
		own.push('buckets');
	assert.deepEqual(told(own), told(members(`export class ${name}`)), name);
	assert.deepEqual(statics.sort(), members(`export class ${name}`, true), name);
}
// A batch collects the same operations that a wheel carries out.
for (const name of members('export interface Operations'))
	for (const { prototype } of [timewheel.Wheel, timewheel.Batch])
		assert.equal(typeof prototype[name], 'function', name);
