// SPDX-License-Identifier: GPL-2.0-only
//
// node-redis.js PORT PROXY: tests node-redis with twjobd. See ioredis.js.
'use strict';
const { createClient, createClientPool } = require('redis');
const { blocks, errorOf, expect, expectNumbers, run, sleep } = require('./client.js');

const [port, proxy] = process.argv.slice(2).map(Number);

function options(to, more)
{
	return { socket: { host: '127.0.0.1', port: to }, password: 'secret', ...more };
}

async function connect(to, more)
{
	const client = createClient(options(to, more));

	// Connections that end are a part of this test.
	client.on('error', () => {});
	await client.connect();
	return client;
}

async function pipelines(client)
{
	const pipeline = client.multi();

	for (let i = 0; i < 50; i++)
		pipeline.addCommand(['TW.PUT', 'pipe', String(i)]);
	expectNumbers(await pipeline.execAsPipeline(), 50);
}

async function pools()
{
	const pool = createClientPool(options(port), { minimum: 4, maximum: 8 });

	pool.on('error', () => {});
	await pool.connect();
	const puts = [...Array(50).keys()].map((i) =>
		pool.sendCommand(['TW.PUT', 'pipe', String(i)]));

	expectNumbers(await Promise.all(puts), 50);
}

// A command whose answer was lost ends with an error, and the client connects again.
async function isCut(client, queue, body, ...more)
{
	const error = await errorOf(client.sendCommand(['TW.PUT', queue, body, ...more]));

	expect(error, `${body}: there was no error`);
	while (await errorOf(client.sendCommand(['PING'])))
		await sleep(20);
}

async function reconnects()
{
	const client = await connect(proxy);

	await isCut(client, 'unkeyed', 'cut-a');
	await isCut(client, 'keyed', 'cut-b', 'KEY', 'b');
	await isCut(client, 'keyed', 'kill-c', 'KEY', 'c');
	// The program then sends the command again.
	const [, word] = await client.sendCommand(['TW.PUT', 'keyed', 'kill-c', 'KEY', 'c']);

	expect(word === 'EXISTS', `a put with a key, repeated: ${word}`);
}

// No command waits for another connection.
async function isToldNotToQueue()
{
	const client = await connect(proxy, { disableOfflineQueue: true });

	await isCut(client, 'set', 'cut-d');
	const cut = errorOf(client.sendCommand(['TW.PUT', 'set', 'cut-e']));

	await new Promise((resolve) => { client.once('reconnecting', resolve); });
	expect(await errorOf(client.sendCommand(['TW.PUT', 'set', 'unsent'])),
	       'a command was queued');
	expect(await cut, 'cut-e: there was no error');
}

run(async () => {
	const client = await connect(port);

	await pipelines(client);
	await pools();
	const blocking = client.duplicate();

	blocking.on('error', () => {});
	await blocking.connect();
	await blocks((words) => client.sendCommand(words),
		     (words) => blocking.sendCommand(words));
	await reconnects();
	await isToldNotToQueue();
});
