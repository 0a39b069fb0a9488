// SPDX-License-Identifier: GPL-2.0-only
//
// jobs.js TWJOBD: queues and workers, with a twjobd whose wheels are those of its process.
// TW_KILLS is how often the ledger kills a worker or twjobd.
'use strict';

const assert = require('node:assert/strict');
const { spawn, execFileSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const Redis = require('ioredis');
const { Bury, JobError, Queue, Worker } = require('timewheel/jobs');

const KILLS = Number(process.env.TW_KILLS ?? 5);

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'jobs-'));
const server = path.join(folder, 'socket');
let twjobd, redis, port;

// Asks often until the check is true, however slow the machine is.
async function until(check) {
	for (;;) {
		const is = await check();

		if (is)
			return is;
		await sleep(20);
	}
}

async function start() {
	twjobd = spawn(process.env.TWJOBD, ['-c', path.join(folder, 'config')],
		{ stdio: ['ignore', 'ignore', fs.openSync(path.join(folder, 'log'), 'a')] });
	await until(() => new Promise((resolve) => {
		const socket = net.connect(server, () => { socket.destroy(); resolve(true); });

		socket.on('error', () => resolve(false));
	}));
}

async function kill() {
	twjobd.kill('SIGKILL');
	await once(twjobd, 'exit');
}

// A port that is free.
async function freePort() {
	const listener = net.createServer().listen(0, '127.0.0.1');

	await once(listener, 'listening');
	const { port } = listener.address();

	listener.close();
	return port;
}

test.before(async () => {
	port = await freePort();
	fs.writeFileSync(path.join(folder, 'config'), `listen = ${server}\n` +
		`listen = 127.0.0.1:${port}\npassword = secret\nwheels = process\n` +
		`store = ${path.join(folder, 'store')}\n`);
	await start();
	redis = new Redis({ path: server });
	redis.on('error', () => {});
});

// A test that waits in vain fails.
function check(name, run) {
	test(name, { timeout: 120_000 }, run);
}

test.after(async () => {
	redis.disconnect();
	twjobd.kill();
	await once(twjobd, 'exit');
	fs.rmSync(folder, { recursive: true });
});

let count = 0;

// Makes a queue for the test alone.
async function made(t, ...settings) {
	const queue = new Queue(`q${++count}`, server);

	await redis.call('TW.CREATE', queue.name, ...settings);
	t.after(() => queue.close());
	return queue;
}

// Makes a worker that is closed after the test, and collects its errors.
function working(t, queue, handler, options) {
	const worker = new Worker(queue.name, handler, { server, ...options });

	worker.told = [];
	worker.on('error', (error) => worker.told.push(error));
	t.after(() => worker.close());
	return worker;
}

async function told(queue, id) {
	const map = await redis.call('TW.GET', queue.name, id);

	return map && Object.fromEntries(
		Array.from({ length: map.length / 2 }, (_, i) => [map[2 * i], map[2 * i + 1]]));
}

async function figure(queue, name) {
	const map = await redis.call('TW.STATS', queue.name);

	return map[map.indexOf(name) + 1];
}

// Where a proxy before twjobd is. What asked() and answered() return something true for does
// not go on.
function before(t, asked, answered = () => false) {
	const where = path.join(folder, `proxy${++count}`);
	const proxy = net.createServer((client) => {
		const behind = net.connect(server);

		client.on('data', (data) => asked(data, client) || behind.write(data));
		behind.on('data', (data) => answered(data, client) || client.write(data));
		for (const [one, other] of [[client, behind], [behind, client]])
			one.on('error', () => {}).on('close', () => other.destroy());
	}).listen(where);

	t.after(() => proxy.close());
	return where;
}

check('what is added comes to the handler, and is done then', async (t) => {
	const queue = await made(t);
	const got = [];

	const first = await queue.add({ order: 7 }, { key: 'order-7' });
	assert.equal(first.outcome, 'NEW');
	await queue.add('text');
	await queue.add(Buffer.from([0, 255]), { at: new Date() });
	working(t, queue, (job) => { got.push(job); });
	await until(async () => await figure(queue, 'jobs') === 0);
	got.sort((a, b) => a.id - b.id);
	assert.deepEqual(got.map((job) => job.attempt), [1, 1, 1]);
	assert.equal(got[0].id, first.id);
	assert.equal(got[0].key, 'order-7');
	assert.deepEqual(got[0].json(), { order: 7 });
	assert.equal(got[1].body.toString(), 'text');
	assert.deepEqual(got[2].body, Buffer.from([0, 255]));
	assert.ok(got[2].due instanceof Date);
});

check('options are those of TW.PUT', async (t) => {
	const queue = await made(t);
	const { id } = await queue.add('x', { delay: 3_600_000, key: 'a', lease: 5000, tries: 3,
		backoff: [1000, 60_000], group: 'customer-17' });
	const job = await told(queue, id);

	assert.equal(job.state, 'delayed');
	assert.equal(job.lease_ms, 5000);
	assert.equal(job.tries, 3);
	assert.equal(job.backoff_ms, 1000);
	assert.equal(job.backoff_most_ms, 60_000);
	assert.equal(job.group, 'customer-17');
	assert.equal((await queue.add('y', { key: 'a' })).outcome, 'EXISTS');
	assert.equal((await queue.add('y', { key: 'a', replace: true, delay: 1e6 })).outcome,
		'REPLACED');
	assert.equal(await queue.move('a', { at: Date.now() + 7_200_000 }), true);
	assert.ok((await told(queue, id)).due > Date.now() + 7_000_000);
	assert.equal(await queue.cancel('a'), true);
	assert.equal(await queue.cancel('a'), false);
	assert.equal(await queue.move('a', { delay: 0 }), false);
	await assert.rejects(queue.add('x', { dealy: 1 }), /no option dealy; there are: delay, /);
	await assert.rejects(queue.add('x', { delay: 1, at: 1 }), /both given/);
});

// ioredis sends a command without an answer again.
check('a put whose answer is lost puts one job', async (t) => {
	const queue = await made(t);
	let cuts = 0, cut;
	const cutOff = new Queue(queue.name, before(t, (data, client) => {
		if (data.includes('cut') && !cuts++)
			cut = client;
	}, (data, client) => client === cut && client.destroy()));

	t.after(() => cutOff.close());
	assert.equal((await cutOff.add('cut')).outcome, 'NEW');
	assert.equal(cuts, 2);
	assert.equal(await figure(queue, 'jobs'), 1);
});

check('a job whose handler throws comes again with the reason, or is buried', async (t) => {
	const queue = await made(t);
	const { id } = await queue.add('x', { backoff: 3_600_000 });
	const bad = await queue.add('bad');
	const failed = [];

	working(t, queue, (job) => {
		throw job.id === id ? new Error('no paper') : new Bury('no such order');
	}).on('failed', (job, error) => failed.push([job.id, error.message]));
	await until(async () => (await told(queue, bad.id)).state === 'buried');
	assert.deepEqual(failed, [[id, 'no paper'], [bad.id, 'no such order']]);
	assert.equal((await told(queue, bad.id)).reason, 'no such order');
	const job = await told(queue, id);

	assert.deepEqual([job.state, job.reason, job.attempts], ['delayed', 'no paper', 1]);
});

check('no more are worked on at a time than was said', async (t) => {
	const queue = await made(t);
	let now = 0, most = 0;

	for (let i = 0; i < 20; i++)
		await queue.add('x');
	working(t, queue, async () => {
		most = Math.max(most, ++now);
		await sleep(5);
		now--;
	}, { concurrency: 4 });
	await until(async () => await figure(queue, 'jobs') === 0);
	assert.equal(most, 4);
	for (const concurrency of [0, 1.5, 1001])
		assert.throws(() => new Worker('q', () => {}, { concurrency, server }), RangeError);
});

// The thread that extends leases goes on while the loop is blocked.
check('a handler that computes for long loses no lease', async (t) => {
	const queue = await made(t, 'LEASE', '1.5');
	const attempts = [];
	// The worker has room for the job once more if the lease ends.
	const worker = working(t, queue, (job) => {
		attempts.push(job.attempt);
		execFileSync('sleep', ['4']);
	}, { concurrency: 2 });

	await queue.add('x');
	await until(async () => await figure(queue, 'jobs') === 0);
	assert.deepEqual(attempts, [1]);
	assert.equal(await figure(queue, 'lapsed'), 0);
	assert.deepEqual(worker.told, []);
});

check('extensions are for as long as the worker says', async (t) => {
	const queue = await made(t, 'LEASE', '2');

	working(t, queue, (job) => until(async () =>
		(await told(queue, job.id)).lease_left_ms > 100_000), { lease: 600_000 });
	await queue.add('x');
	await until(async () => await figure(queue, 'jobs') === 0);
	assert.equal(await figure(queue, 'lapsed'), 0);
});

check('a handler is told that its job is lost', async (t) => {
	const queue = await made(t, 'LEASE', '0.3');
	const worker = working(t, queue, async (job) => {
		await redis.call('TW.DELETE', queue.name, job.id);
		await until(() => job.signal.aborted);
		assert.match(job.signal.reason.message, /^STALE the lease of job \d+ is over/);
	});

	await queue.add('x');
	await until(() => worker.told.length);
	assert.equal(worker.told[0].code, 'STALE');
});

check('a worker that is closed finishes what it has, and takes no more', async (t) => {
	const queue = await made(t);
	const began = [], done = [];
	let go;
	const gate = new Promise((resolve) => { go = resolve; });
	const worker = working(t, queue, async (job) => {
		began.push(job.id);
		await gate;
		done.push(job.id);
	}, { concurrency: 2 });
	const { id } = await queue.add('x');

	await until(() => began.length);
	const closed = worker.close();
	const late = await queue.add('late');

	go();
	await closed;
	assert.deepEqual(done, [id]);
	assert.equal((await told(queue, late.id)).state, 'ready');
	assert.equal((await told(queue, late.id)).attempts, 0);
	assert.equal(await told(queue, id), null);
});

check('what is handed out too late is given back untried', async (t) => {
	const queue = await made(t, 'TRIES', '1');
	const begun = [];
	let takes, go;
	const gate = new Promise((resolve) => { go = resolve; });
	const where = before(t, (data, client) => {
		if (data.includes('TW.TAKE'))
			takes = client;
	}, (data, client) => client === takes && gate.then(() => client.write(data)));
	const worker = working(t, queue, (job) => begun.push(job.id), { server: where });
	const { id } = await queue.add('x');

	await until(async () => await figure(queue, 'held') === 1);
	const closed = worker.close();

	go();
	await closed;
	assert.deepEqual(begun, []);
	assert.equal((await told(queue, id)).state, 'ready');
	assert.equal((await told(queue, id)).attempts, 0);
});

check('workers go on when twjobd is killed and comes again', async (t) => {
	const queue = await made(t, 'LEASE', '5');
	const seen = new Set();
	const worker = working(t, queue, async (job) => {
		seen.add(job.id);
		await sleep(5);
	}, { concurrency: 2 });
	const ids = [];

	for (let i = 0; i < 40; i++)
		ids.push((await queue.add('x')).id);
	await until(() => seen.size > 5);
	await kill();
	await start();
	await until(async () => await figure(queue, 'jobs') === 0);
	assert.deepEqual([...seen].sort((a, b) => a - b), ids);
	for (const error of worker.told)
		assert.match(error.code, /^(STALE|UNAVAILABLE)$/);
});

check('what is in the way of a worker is told once, and it goes on', async (t) => {
	const queue = await made(t);
	const begin = async (advice) => {
		const got = [];
		const worker = working(t, queue, (job) => { got.push(job.id); });

		await until(() => worker.told.length);
		assert.match(worker.told[0].message, advice);
		await sleep(1_500);
		assert.equal(worker.told.length, 1);
		return async () => {
			const { id } = await queue.add('x');

			await until(() => got.length);
			assert.deepEqual(got, [id]);
			await worker.close();
		};
	};

	t.after(() => twjobd.signalCode && start());
	await kill();
	const away = await begin(/^UNAVAILABLE .*: is it running\?$/);

	await start();
	await away();
	await redis.call('TW.DROP', queue.name);
	const dropped = await begin(/^NOQUEUE .*: make it with "twjob create"$/);

	await redis.call('TW.CREATE', queue.name);
	await dropped();
});

check('errors say what to do', async (t) => {
	const queue = await made(t, 'MAXJOBS', '1');
	const none = new Queue('none', server);
	const nobody = new Queue(queue.name, { path: path.join(folder, 'nobody'),
		maxRetriesPerRequest: 1 });
	const full = /^FULL .*: give the queue more room with "twjob create"/;

	t.after(() => { none.close(); nobody.close(); });
	await queue.add('x', { delay: 1e6 });
	await assert.rejects(queue.add('y'), { name: 'JobError', code: 'FULL', message: full });
	await assert.rejects(none.add('x'), { code: 'NOQUEUE', message: /make it with "twjob create"/ });
	await assert.rejects(queue.add(Buffer.alloc(2 ** 20 + 1)),
		{ code: 'TOOBIG', message: /raise max-body/ });
	await assert.rejects(nobody.add('x'), (error) => error instanceof JobError &&
		error.code === 'UNAVAILABLE' && /nobody: is it running\?$/.test(error.message));
	assert.equal(await figure(queue, 'jobs'), 1);
});

check('a password that is wrong, or none, is told with what to do', async (t) => {
	const { name } = await made(t);
	const by = (password) => {
		const queue = new Queue(name, { host: '127.0.0.1', port, password });

		t.after(() => queue.close());
		return queue;
	};

	for (const [password, code] of [['wrong', 'WRONGPASS'], [undefined, 'NOAUTH']])
		await assert.rejects(by(password).add('x'),
			{ name: 'JobError', code, message: /: give the password / });
	assert.equal((await by('secret').add('x')).outcome, 'NEW');
});

check('a twjobd that is too old is told with what to do', async (t) => {
	const { name } = await made(t);

	for (const text of ["ERR unknown command 'TW.PUT'", 'ERR expected IN or AT']) {
		const old = new Queue(name, before(t, (data, client) => data.includes('TW.PUT') &&
			client.write(`-${text}\r\n`)));

		t.after(() => old.close());
		await assert.rejects(old.add('x'), { name: 'JobError', code: 'ERR',
			message: `${text}: this twjobd is too old; upgrade timewheel-jobs` });
	}
});

// Puts jobs until it is told to end, and returns the numbers of those that were put.
async function putting(queue, ends) {
	const ids = [];

	while (!ends.aborted) {
		try {
			ids.push((await queue.add('x', { delay: ids.length % 3 * 100 })).id);
		} catch (error) {
			// The job was not promised.
			assert.ok(error instanceof JobError, error);
		}
		await sleep(2);
	}
	return ids;
}

const ENDS = ['SIGKILL', 'twjobd', 'SIGKILL', 'SIGTERM', 'SIGKILL'];

test('no job is lost by kills of workers and of twjobd', {
	timeout: 120_000 + 5_000 * KILLS,
}, async (t) => {
	const queue = await made(t, 'LEASE', '0.5', 'TRIES', '0');
	const done = path.join(folder, 'done');
	const lines = () => fs.readFileSync(done, 'utf8').split('\n').filter(Boolean).map(Number);
	const begin = () => spawn(process.execPath, [path.join(__dirname, 'worker.js'), server,
		queue.name, done], { stdio: 'inherit' });
	const ending = new AbortController();
	let child = begin();

	t.after(() => child.kill('SIGKILL'));
	fs.writeFileSync(done, '');
	const put = putting(queue, ending.signal);

	for (let kills = 0; kills < KILLS; kills++) {
		const before = lines().length;
		const what = ENDS[kills % ENDS.length];

		await until(() => lines().length > before + 10);
		if (what === 'twjobd') {
			await kill();
			await start();
			continue;
		}
		child.kill(what);
		const [code, signal] = await once(child, 'exit');

		assert.ok(code === 0 || signal === 'SIGKILL', `${code} ${signal}`);
		child = begin();
	}
	ending.abort();
	const ids = await put;

	await until(async () => await figure(queue, 'jobs') === 0);
	const seen = new Set(lines());

	assert.deepEqual(ids.filter((id) => !seen.has(id)), []);
	t.diagnostic(`${KILLS} kills, ${ids.length} jobs, ${lines().length - seen.size} twice`);
});
