// SPDX-License-Identifier: GPL-2.0-only
//
// worker.js SOCKET QUEUE FILE: works on jobs until it is killed or told to end; FILE gets the
// number of each that is done.
'use strict';

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');
const { Worker } = require('timewheel/jobs');

const [server, queue, file] = process.argv.slice(2);

const worker = new Worker(queue, async (job) => {
	await sleep(Math.random() * 10);
	fs.appendFileSync(file, `${job.id}\n`);
}, { server, concurrency: 3 });

process.once('SIGTERM', () => worker.close());
