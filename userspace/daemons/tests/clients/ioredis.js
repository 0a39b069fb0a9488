// SPDX-License-Identifier: GPL-2.0-only
//
// ioredis.js PORT PROXY: tests ioredis with twjobd. The proxy cuts a connection when the first
// command with a word like "cut-a" has been carried out, before its answer.
'use strict';
const Redis = require('ioredis');
const { blocks, errorOf, expect, expectNumbers, run, sleep } = require('./client.js');

const [port, proxy] = process.argv.slice(2).map(Number);

function connect(to, options)
{
	const redis = new Redis({ host: '127.0.0.1', port: to, password: 'secret',
				  ...options });

	// Connections that end are a part of this test.
	redis.on('error', () => {});
	return redis;
}

async function pipelines(redis)
{
	const pipeline = redis.pipeline();

	for (let i = 0; i < 50; i++)
		pipeline.call('TW.PUT', 'pipe', String(i));
	expectNumbers((await pipeline.exec()).map(([, id]) => id), 50);
	const puts = [...Array(50).keys()].map((i) =>
		redis.call('TW.PUT', 'pipe', String(i)));

	expectNumbers(await Promise.all(puts), 50);
}

// By default ioredis sends a command again whose answer was lost. Without a key there are two
// jobs then.
async function sendsAgain()
{
	const redis = connect(proxy);

	await redis.call('TW.PUT', 'unkeyed', 'cut-a');
	const cut = await redis.call('TW.PUT', 'keyed', 'cut-b', 'KEY', 'b');

	expect(cut[1] === 'EXISTS', `a put with a key, cut: ${cut}`);
	const killed = await redis.call('TW.PUT', 'keyed', 'kill-c', 'KEY', 'c');

	expect(killed[1] === 'EXISTS', `a put with a key, killed: ${killed}`);
}

async function isToldNotTo()
{
	const redis = connect(proxy, { maxRetriesPerRequest: 0 });
	const error = await errorOf(redis.call('TW.PUT', 'set', 'cut-d'));

	expect(error?.name === 'MaxRetriesPerRequestError', `cut: ${error}`);
	while (await errorOf(redis.ping()))
		await sleep(20);
	await redis.call('TW.PUT', 'set', 'second');
}

// With only this setting the call never ends.
async function neverEnds()
{
	const redis = connect(proxy, { autoResendUnfulfilledCommands: false });
	let ended = false;

	redis.call('TW.PUT', 'unended', 'cut-e').finally(() => { ended = true; })
		.catch(() => {});
	await new Promise((resolve) => { redis.once('close', resolve); });
	await redis.ping();
	await sleep(200);
	expect(!ended, 'the call has ended');
}

run(async () => {
	const redis = connect(port);

	await pipelines(redis);
	const blocking = redis.duplicate();

	blocking.on('error', () => {});
	await blocks((words) => redis.call(...words),
		     (words) => blocking.call(...words));
	await sendsAgain();
	await isToldNotTo();
	await neverEnds();
});
