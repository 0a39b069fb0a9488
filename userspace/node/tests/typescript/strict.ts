// SPDX-License-Identifier: GPL-2.0-only
//
// This file is only compiled, by tsc --strict: it has what programs may write, and after
// "@ts-expect-error" what the compiler has to refuse.

import {
	Batch, Event, Histogram, Outcome, Result, Setup, Token, Wheel, caps, create, destroy,
} from 'timewheel';
import { Added, Bury, Job, Queue, Worker } from 'timewheel/jobs';

const setup: Setup = { slots: 31, tick: 1000, maxTokens: 100_000 };

export async function disposed(): Promise<void> {
	await using wheel = Wheel.open(setup);

	for await (const events of wheel)
		wheel.touch(events[0].id);
}

export function keptHere(): boolean {
	const wheel = Wheel.open(setup, { process: true });

	// @ts-expect-error: a wheel stays where it was opened
	wheel.inProcess = false;
	// @ts-expect-error: "process" is no part of a setup
	Wheel.open({ ...setup, process: true });
	// @ts-expect-error: only a private wheel can be of the process
	Wheel.openNamed('orders', { process: true });
	// @ts-expect-error: the same
	create('orders', setup, { process: true });
	return wheel.inProcess;
}

export function disposedAtOnce(): void {
	using wheel = Wheel.openOrCreate('orders', { ...setup, lease: 30_000 });

	wheel[Symbol.dispose]();
	const done: Promise<void> = wheel[Symbol.asyncDispose]();
	void done;
}

// Each way to listen knows the arguments of a listener, and returns the wheel.
function isBig(id: bigint): void {
	console.log(id);
}

function isText(text: string): void {
	console.log(text);
}

export function listens(wheel: Wheel): void {
	const listener = (events: Event[]): void => isBig(events[0].id);
	let same: Wheel;

	same = wheel.on('expired', (events) => isBig(events[0].id));
	same = wheel.on('error', (error) => isText(error.message));
	// @ts-expect-error: ids are told as BigInts
	wheel.on('expired', (events) => isText(events[0].id));
	same = wheel.once('expired', (events) => isBig(events[0].id));
	same = wheel.once('error', (error) => isText(error.message));
	// @ts-expect-error: ids are told as BigInts
	wheel.once('expired', (events) => isText(events[0].id));
	same = wheel.addListener('expired', (events) => isBig(events[0].id));
	same = wheel.addListener('error', (error) => isText(error.message));
	// @ts-expect-error: ids are told as BigInts
	wheel.addListener('expired', (events) => isText(events[0].id));
	same = wheel.prependListener('expired', (events) => isBig(events[0].id));
	same = wheel.prependListener('error', (error) => isText(error.message));
	// @ts-expect-error: ids are told as BigInts
	wheel.prependListener('expired', (events) => isText(events[0].id));
	same = wheel.prependOnceListener('expired', (events) => isBig(events[0].id));
	same = wheel.prependOnceListener('error', (error) => isText(error.message));
	// @ts-expect-error: ids are told as BigInts
	wheel.prependOnceListener('expired', (events) => isText(events[0].id));
	same = wheel.off('expired', (events) => isBig(events[0].id));
	same = wheel.off('error', (error) => isText(error.message));
	// @ts-expect-error: ids are told as BigInts
	wheel.off('expired', (events) => isText(events[0].id));
	same = wheel.removeListener('expired', (events) => isBig(events[0].id));
	same = wheel.removeListener('error', (error) => isText(error.message));
	// @ts-expect-error: ids are told as BigInts
	wheel.removeListener('expired', (events) => isText(events[0].id));
	same = wheel.on('expired', listener).off('expired', listener);
	same = wheel.removeAllListeners('expired');
	same.on('of the program', (text, id) => { isText(text); isBig(id); });
}

export function operates(wheel: Wheel): void {
	const handle: bigint = wheel.register(42, 30_000, { cookie: 7n });
	const result: number = wheel.touch({ handle }) & Result.WAS_DUE;
	const batch: Batch = wheel.batch(512);
	const index: number = batch.register(1n, new Date());
	const outcome: Outcome = batch.outcome(index);
	const token: Token = wheel.get(42);
	const lateness: Histogram = wheel.stats().lateness;
	const gone: number[] = wheel.touchMany([42, 43]);

	wheel.ack(token);
	wheel.nack(token, 5000);
	// @ts-expect-error: an ack has no time
	wheel.ack(token, 5000);
	wheel.move(42, { at: token.deadlineNs ?? 0n });
	console.log(result, outcome.error?.message, lateness.percentile(99), caps().maxSlots,
		gone);
	// @ts-expect-error: an id is a number or a BigInt
	wheel.touch('42');
	// @ts-expect-error: a wheel is made by open() and the like
	console.log(new Wheel());
	// @ts-expect-error: a wheel needs a number of tokens
	create('orders', { slots: 31, tick: 1000 });
	destroy('orders');
}

export async function jobs(): Promise<Added> {
	const queue = new Queue('sms', { host: '127.0.0.1', port: 7076, password: 'secret' });
	const worker = new Worker('sms', async (job: Job) => {
		if (job.signal.aborted)
			throw new Bury('no such order');
		console.log(job.json(), job.due.getTime());
	}, { concurrency: 4, lease: 30_000 });

	worker.on('failed', (job, error) => console.log(job.id, error));
	worker.on('error', (error) => console.log(error.code));
	// @ts-expect-error: there is no such option
	await queue.add('x', { dealy: 5000 });
	await worker.close();
	return await queue.add({ order: 7 }, { at: new Date(), key: 'order-7', backoff: [1, 9] });
}
