// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Jobs of twjobd for Node, over ioredis; jobs.d.ts describes all that this module exports.
'use strict';

const { randomUUID } = require('node:crypto');
const { EventEmitter } = require('node:events');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { Worker: Thread } = require('node:worker_threads');
const Redis = require('ioredis');

// The ms that a take waits. An idle connection shows so often that it is there.
const BLOCK = 60_000;

// The ms until an answer is sent again that twjobd cannot accept now.
const AGAIN = 500;

// A command that is sent again after one of these errors may be carried out.
const PASSING = /^(BUSY|UNAVAILABLE|LOADING)\b/;

// These are the meanings of twjobd's errors for the program, by their codes.
const ADVICE = {
	NOQUEUE: 'make it with "twjob create"',
	FULL: 'give the queue more room with "twjob create", or work faster',
	TOOBIG: 'raise max-body in twjobd.conf, or put less into a body',
	NOAUTH: 'give the password as "password" in the options of ioredis',
	WRONGPASS: 'give the password that twjobd.conf(5) tells',
	NOPERM: 'twjobd.conf(5) tells how it is allowed',
	DRAINING: 'the queue takes jobs again after "twjob resume"',
	HELD: 'a worker has the job now',
};

// What else it means, by its text.
const TOLD = [
	[/^ERR (unknown command|expected )/, 'this twjobd is too old; upgrade timewheel-jobs'],
	[/too many connections/, 'close some, or raise max-connections in twjobd.conf'],
];

class JobError extends Error {
	constructor(message, options) {
		super(message, options);
		this.name = 'JobError';
		this.code = /^[A-Z]+/.exec(message)?.[0] ?? 'ERR';
	}
}

// A handler that throws this error has its job buried, whatever tries are left.
class Bury extends Error {}

function explained(error, where) {
	const code = /^[A-Z]+/.exec(error.message)?.[0];
	const advice = TOLD.find(([text]) => text.test(error.message))?.[1] ?? ADVICE[code];

	if (error.name === 'MaxRetriesPerRequestError' || error.syscall)
		return new JobError(`UNAVAILABLE twjobd does not answer at ${where}: is it running?`,
			{ cause: error });
	return new JobError(error.message + (advice ? `: ${advice}` : ''), { cause: error });
}

function whereOf(options) {
	return options.path ?? `${options.host}:${options.port}`;
}

// Makes a connection of its own, like the one that the program gives, or by its options.
function connect(server, own) {
	const options = server instanceof Redis ? server.options :
		typeof server === 'string' ? { path: server } : server;
	const redis = new Redis({ ...options, ...own });

	// Each command tells its own error, and the connection none.
	redis.on('error', () => {});
	return redis;
}

function secondsOf(ms) {
	return String(ms / 1000);
}

function timeOf({ delay, at }) {
	if (delay !== undefined && at !== undefined)
		throw new TypeError('delay and at are both given');
	if (at !== undefined)
		return ['AT', String(at instanceof Date ? at.getTime() : at)];
	return delay ? ['IN', secondsOf(delay)] : [];
}

const known = new Set(['delay', 'at', 'key', 'replace', 'unique', 'group', 'lease', 'tries',
	'backoff']);

// The words of TW.PUT behind the body.
function wordsOf(options) {
	const words = timeOf(options);
	const wrong = Object.keys(options).find((name) => !known.has(name));

	if (wrong)
		throw new TypeError(`there is no option ${wrong}; there are: ${[...known].join(', ')}`);
	words.push('KEY', options.key ?? randomUUID());
	if (options.replace)
		words.push('REPLACE');
	if (options.unique !== undefined)
		words.push('UNIQUE', secondsOf(options.unique));
	if (options.group !== undefined)
		words.push('GROUP', options.group);
	if (options.lease !== undefined)
		words.push('LEASE', secondsOf(options.lease));
	if (options.tries !== undefined)
		words.push('TRIES', String(options.tries));
	if (options.backoff !== undefined) {
		const [first, most] = [options.backoff].flat();

		words.push('BACKOFF', secondsOf(first), secondsOf(most ?? first));
	}
	return words;
}

function bytesOf(body) {
	return typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
}

class Queue {
	#redis;

	constructor(name, server = '/run/twjobd/socket') {
		this.name = name;
		this.#redis = connect(server);
	}

	async #ask(...words) {
		try {
			return await this.#redis.call(...words);
		} catch (error) {
			throw explained(error, whereOf(this.#redis.options));
		}
	}

	// ioredis sends a command again whose answer was lost. A job without a key would be put
	// twice.
	async add(body, options = {}) {
		const words = wordsOf(options);
		const [id, outcome] = await this.#ask('TW.PUT', this.name, bytesOf(body), ...words);
		const own = options.key === undefined;

		return { id: Number(id), outcome: own && outcome === 'EXISTS' ? 'NEW' : outcome };
	}

	async cancel(key) {
		return await this.#ask('TW.CANCELKEY', this.name, key) === 1;
	}

	async move(key, when) {
		const time = timeOf(when);

		return await this.#ask('TW.MOVEKEY', this.name, key,
			...(time.length ? time : ['IN', '0'])) === 1;
	}

	close() {
		this.#redis.disconnect();
	}
}

// A job that a worker has.
class Job {
	#lost = new AbortController();

	constructor([queue, id, receipt, attempt, due, key, body]) {
		this.queue = queue.toString();
		this.id = Number(id);
		this.receipt = receipt.toString();
		this.attempt = Number(attempt);
		this.due = new Date(Number(due));
		this.key = key && key.toString();
		this.body = body;
	}

	get signal() {
		return this.#lost.signal;
	}

	json() {
		return JSON.parse(this.body);
	}

	// Tells the handler that another worker may have the job now.
	lose() {
		this.#lost.abort(new JobError(`STALE the lease of job ${this.id} is over`));
	}
}

class Worker extends EventEmitter {
	#queue;
	#handler;
	#concurrency;
	#name = `timewheel-${randomUUID()}`;
	#takes;
	#answers;
	#keeper;
	#jobs = new Map();
	#waiting = [];
	#closing = false;
	#said = '';
	#running;

	constructor(queue, handler, { concurrency = 1, lease, server = '/run/twjobd/socket' } = {}) {
		super();
		if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000)
			throw new RangeError('concurrency has to be an integer from 1 to 1000');
		this.#queue = queue;
		this.#handler = handler;
		this.#concurrency = concurrency;
		this.#takes = connect(server, { maxRetriesPerRequest: null,
			connectionName: this.#name });
		this.#takes.on('error', (error) => this.#hindered(error));
		this.#takes.on('ready', () => { this.#said = ''; });
		this.#answers = connect(server, { maxRetriesPerRequest: null });
		this.#keep(lease);
		this.#running = this.#run();
	}

	// A thread of its own extends the leases: a handler that computes for long loses none.
	#keep(lease) {
		// No thread can be given the functions that ioredis adds to its options.
		const options = JSON.parse(JSON.stringify(this.#answers.options));

		this.#keeper = new Thread(path.join(__dirname, 'keeper.js'), {
			workerData: { options, queue: this.#queue,
				lease: lease === undefined ? [] : [secondsOf(lease)] },
		});
		this.#keeper.on('message', (receipt) => this.#jobs.get(receipt)?.lose());
		this.#keeper.on('error', (error) => this.#tell(error));
	}

	#tell(error) {
		this.#say(explained(error, whereOf(this.#answers.options)));
	}

	// What is in the way of taking jobs is told once, for it is tried again and again.
	#hindered(error) {
		const told = explained(error, whereOf(this.#takes.options));

		if (this.#said !== told.message && !this.#closing)
			this.#say(told);
		this.#said = told.message;
	}

	#say(told) {
		if (this.listenerCount('error'))
			this.emit('error', told);
		else
			process.emitWarning(told);
	}

	// Waits until a job has ended, or the worker is to close.
	#change() {
		return new Promise((resolve) => this.#waiting.push(resolve));
	}

	#changed() {
		for (const resolve of this.#waiting.splice(0))
			resolve();
	}

	async #take() {
		const count = String(this.#concurrency - this.#jobs.size);

		try {
			const jobs = await this.#takes.callBuffer('TW.TAKE', this.#queue, 'COUNT', count,
				'BLOCK', String(BLOCK));

			this.#said = '';
			return jobs ?? [];
		} catch (error) {
			if (!this.#closing) {
				// The queue may be made, or its jobs loaded, later.
				this.#hindered(error);
				await sleep(AGAIN);
			}
			return [];
		}
	}

	async #run() {
		while (!this.#closing) {
			for (const words of await this.#take())
				this.#work(new Job(words));
			if (this.#jobs.size >= this.#concurrency && !this.#closing)
				await this.#change();
		}
	}

	async #work(job) {
		this.#jobs.set(job.receipt, job);
		// twjobd answered the take before it was told that no more jobs are wanted.
		if (this.#closing) {
			await this.#answer(job, 'TW.NACK', 'UNTRIED');
			return;
		}
		this.#keeper.postMessage({ id: job.id, receipt: job.receipt });
		try {
			await this.#handler(job);
		} catch (error) {
			const reason = String(error?.message ?? error).slice(0, 1024);

			this.emit('failed', job, error);
			await this.#answer(job, error instanceof Bury ? 'TW.BURY' : 'TW.NACK',
				'REASON', reason);
			return;
		}
		await this.#answer(job, 'TW.ACK');
	}

	// Sends an answer until twjobd has taken it, or says that it comes too late.
	async #answer(job, verb, ...words) {
		for (;;) {
			try {
				await this.#answers.call(verb, this.#queue, job.receipt, ...words);
				break;
			} catch (error) {
				if (!PASSING.test(error.message)) {
					this.#tell(error);
					break;
				}
				await sleep(AGAIN);
			}
		}
		this.#jobs.delete(job.receipt);
		this.#keeper.postMessage({ receipt: job.receipt });
		this.#changed();
	}

	// Takes no more jobs, and waits for the jobs that have begun.
	async close() {
		this.#closing = true;
		this.#changed();
		await this.#endTake();
		while (this.#jobs.size)
			await this.#change();
		this.#takes.disconnect();
		this.#answers.disconnect();
		await this.#keeper.terminate();
	}

	// A take that waits is answered when twjobd is told to answer it. A take that is only just
	// being sent needs a second word.
	async #endTake() {
		const ended = this.#running.then(() => true);

		do {
			if (this.#takes.status !== 'ready')
				this.#takes.disconnect();
			else
				this.#unblock().catch(() => {});
		} while (!await Promise.race([ended, sleep(50)]));
	}

	async #unblock() {
		const clients = await this.#answers.call('CLIENT', 'LIST');
		const own = clients.split('\n').find((line) => line.includes(` name=${this.#name} `));

		if (own)
			await this.#answers.call('CLIENT', 'UNBLOCK', /^id=(\d+)/.exec(own)[1]);
	}
}

module.exports = { Bury, JobError, Queue, Worker };
