// SPDX-License-Identifier: GPL-2.0-only
//
// The example with 2,000 clients, most of which fall silent.
'use strict';

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const net = require('node:net');
const path = require('node:path');
const test = require('node:test');
const { setTimeout } = require('node:timers/promises');
const { MANUAL, opened, until } = require('./common');

const example = path.join(__dirname, '..', 'examples', 'idle.js');
const { serve } = require(example);

const CLIENTS = 2000;
const LIVELY = 100;

async function freePort() {
	const server = net.createServer().listen();

	await once(server, 'listening');
	const { port } = server.address();
	server.close();
	await once(server, 'close');
	return port;
}

test('the server hangs up on silent clients only', async (t) => {
	const wheel = opened(t, { ...MANUAL, maxTokens: CLIENTS });
	const server = serve(wheel, 30_000).listen(0, '127.0.0.1', 2 * CLIENTS);
	await once(server, 'listening');
	const { port } = server.address();
	const open = new Set();
	let echoed = 0;

	t.after(() => server.close());
	const connect = async () => {
		const socket = net.connect(port, '127.0.0.1');

		socket.on('data', (data) => { echoed += data.length; });
		socket.on('error', () => {});
		socket.on('close', () => open.delete(socket));
		await once(socket, 'connect');
		open.add(socket);
		return socket;
	};
	const sockets = [];
	while (sockets.length < CLIENTS)
		sockets.push(...await Promise.all(Array.from({ length: 100 }, connect)));
	await until(() => wheel.info().pending === CLIENTS);
	// This is one client too many.
	const refused = await connect();
	await until(() => !open.has(refused));
	wheel.advance(120);
	for (const socket of sockets.slice(0, LIVELY))
		socket.write('hello');
	await until(() => echoed === LIVELY * 5);
	wheel.advance(130);
	await until(() => open.size === LIVELY);
	assert.deepEqual(sockets.filter((socket) => open.has(socket)),
		sockets.slice(0, LIVELY));
	// One client leaves by itself; all others fall silent, too.
	sockets[0].destroy();
	await until(() => wheel.info().cancelled === 1);
	wheel.advance(150);
	await until(() => open.size === 0);
	const info = wheel.info();
	assert.deepEqual([info.registered, info.touched, info.delivered, info.pending],
		[CLIENTS, LIVELY, CLIENTS - 1, 0]);
});

test('the example as a program', async (t) => {
	const port = await freePort();
	const program = spawn(process.execPath, [example, String(port), '1'],
		{ stdio: 'inherit' });
	const exit = once(program, 'exit');
	let socket;

	t.after(() => program.kill());
	for (;;) {
		socket = net.connect(port, '127.0.0.1');
		try {
			await once(socket, 'connect');
			break;
		} catch {
			assert.equal(program.exitCode, null);
			await setTimeout(50);
		}
	}
	socket.write('hello');
	// On a slow machine the server may hang up before it has echoed.
	let echo = '';
	socket.on('data', (data) => { echo += data; });
	socket.on('error', () => {});
	await new Promise((resolve) => socket.on('close', resolve));
	assert.ok(echo === 'hello' || echo === '', echo);
	program.kill('SIGINT');
	assert.deepEqual(await exit, [0, null]);
});
