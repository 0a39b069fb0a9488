// SPDX-License-Identifier: GPL-2.0-only
//
// Tokens that watch TCP connections.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const os = require('node:os');
const test = require('node:test');
const timewheel = require('timewheel');
const { members } = require('./declared');
const { fails, ids, opened } = require('./common');

const WATCHING = { slots: 64, tick: 1, maxTokens: 100, watch: true };
const IDLE = 200;

// Both ends of a connection, and the server that accepts it.
async function connected(t) {
	const server = net.createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const client = net.connect(server.address().port, '127.0.0.1');
	const [accepted] = await once(server, 'connection');

	if (client.connecting)
		await once(client, 'connect');
	t.after(() => {
		client.destroy();
		accepted.destroy();
		server.close();
	});
	return { server, client, accepted };
}

test('settings of watching', (t) => {
	assert.equal(timewheel.caps().watch, true);
	const info = opened(t, { ...WATCHING, tellEnded: true }).info();
	assert.deepEqual([info.watch, info.tellEnded], [true, true]);
	for (const bad of [{ tellEnded: true, watch: false }, { clock: 'boottime' },
		{ lease: 1000 }, { periods: true }])
		fails('EINVAL', 'open', () => timewheel.Wheel.open({ ...WATCHING, ...bad }));
});

test('an idle connection', async (t) => {
	const wheel = opened(t, WATCHING);
	const { client, accepted } = await connected(t);
	const handle = wheel.watch(7, accepted, IDLE, { cookie: 9 });
	const { connection } = wheel.get({ handle });

	assert.deepEqual(Object.keys(connection).sort(),
		members('export interface Connection'));
	assert.deepEqual([connection.local, connection.localPort, connection.remote,
		connection.remotePort, connection.interface],
	['127.0.0.1', accepted.localPort, '127.0.0.1', client.localPort, 0]);
	assert.notEqual(connection.socket, 0n);
	fails('EEXIST', 'watch', () => wheel.watch(7, accepted, IDLE));
	const sent = process.hrtime.bigint();
	client.write('.');
	accepted.resume();
	const [event] = await wheel.take();
	assert.deepEqual([event.id, event.cookie, event.error], [7n, 9n, 0]);
	assert.ok(event.takenNs >= sent + BigInt(IDLE) * 1_000_000n);
	assert.ok(wheel.info().asked > 0);
});

test('a connection that ends', async (t) => {
	const wheel = opened(t, { ...WATCHING, tellEnded: true });
	const [first, second, third] = [await connected(t), await connected(t),
		await connected(t)];

	wheel.watch(7, first.accepted, IDLE);
	first.accepted.destroy();
	const [event] = await wheel.take();
	assert.deepEqual([event.id, event.error], [7n, os.constants.errno.ENOTCONN]);
	wheel.watch(8, second.client, 60_000, { received: true });
	second.client.destroy();
	await once(second.client, 'close');
	fails('EBADF', 'watch', () => wheel.watch(9, second.client, IDLE));
	const batch = wheel.batch();
	batch.watch(8, third.accepted, 1);
	assert.equal(batch.run(), 0);
	const { result, handle } = batch.outcome(0);
	assert.equal(result, timewheel.Result.REPLACED);
	assert.equal(handle, wheel.get(8).handle);
	assert.deepEqual(ids(await wheel.take()), [8]);
	assert.equal(wheel.info().ended, 1);
});

test('what cannot be watched', async (t) => {
	const wheel = opened(t, WATCHING);
	const { server, accepted } = await connected(t);

	fails('EINVAL', 'watch', () => wheel.watch(7, accepted, 0));
	fails('ENOTSOCK', 'watch', () => wheel.watch(7, 0, IDLE));
	fails('EOPNOTSUPP', 'watch', () => wheel.watch(7, server, IDLE));
	fails('EINVAL', 'watch', () => opened(t, { ...WATCHING, watch: false })
		.watch(7, accepted, IDLE));
	wheel.watch(7, accepted, IDLE);
	fails('EINVAL', 'move', () => wheel.move(7, IDLE));
	assert.throws(() => wheel.watch(8, undefined, IDLE), TypeError);
	assert.throws(() => wheel.watch(8, -1, IDLE), RangeError);
	assert.equal(wheel.info().refused, 2);
});
