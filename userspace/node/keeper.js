// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A worker's thread: it extends the leases of the jobs that the worker has, by a connection of
// its own. The worker tells it { id, receipt } of each job that begins, and { receipt } of each
// that ends; it tells the worker the receipts that are over.
'use strict';

const { parentPort, workerData } = require('node:worker_threads');
const Redis = require('ioredis');

const { options, queue, lease } = workerData;

// The ms until the next extension if twjobd does not tell how long a lease is.
const OFTEN = 1000;

const redis = new Redis({ ...options, maxRetriesPerRequest: null });
const timers = new Map();

redis.on('error', () => {});

// Returns how long the worker still has the job, in ms.
async function left(id) {
	try {
		const job = await redis.call('TW.GET', queue, id);
		const at = job.indexOf('lease_left_ms');

		return at < 0 ? 0 : Number(job[at + 1]);
	} catch {
		return 3 * OFTEN;
	}
}

// Extends a lease. Returns false when the lease is over.
async function extend(receipt) {
	try {
		await redis.call('TW.EXTEND', queue, receipt, ...lease);
	} catch (error) {
		return !error.message.startsWith('STALE');
	}
	return true;
}

async function keep(id, receipt, first) {
	if ((lease.length || !first) && !await extend(receipt)) {
		if (timers.delete(receipt))
			parentPort.postMessage(receipt);
		return;
	}
	const ms = await left(id);

	// The job may have ended meanwhile.
	if (timers.has(receipt))
		timers.set(receipt, setTimeout(keep, ms / 3, id, receipt, false));
}

parentPort.on('message', ({ id, receipt }) => {
	if (id === undefined) {
		clearTimeout(timers.get(receipt));
		timers.delete(receipt);
	} else {
		timers.set(receipt, undefined);
		keep(id, receipt, true);
	}
});
