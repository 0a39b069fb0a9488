// SPDX-License-Identifier: GPL-2.0-only
//
// Tests when data last came in on TCP connections; needs no device.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const net = require('node:net');
const test = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { tcpIdle } = require('timewheel');

const JIFFY = 11;

test('for how long no data has come in', async () => {
	const server = net.createServer().listen(0, '127.0.0.1');
	await once(server, 'listening');
	const client = net.connect(server.address().port, '127.0.0.1');
	const [accepted] = await once(server, 'connection');
	const from = performance.now();
	client.write('x');
	await once(accepted, 'data');
	const to = performance.now();
	await sleep(60);
	const least = performance.now() - to - JIFFY;
	const idle = tcpIdle(accepted);
	assert.ok(idle >= least && idle <= performance.now() - from + JIFFY, `${idle}`);
	assert.throws(() => tcpIdle(server), { code: 'ENOTCONN' });
	assert.throws(() => tcpIdle(0), { code: /ENOTSOCK|EPROTONOSUPPORT/ });
	client.destroy();
	assert.throws(() => tcpIdle(client), { code: 'EBADF' });
	accepted.destroy();
	server.close();
});
