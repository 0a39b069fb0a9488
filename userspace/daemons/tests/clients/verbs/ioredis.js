// SPDX-License-Identifier: GPL-2.0-only
//
// ioredis: see check.
'use strict';
const Redis = require('ioredis');
const { speak } = require('./speak.js');

const where = process.argv[2];
const redis = new Redis(where[0] === '/' ? { path: where } :
			{ port: Number(where), password: 'secret' });

async function transaction(commands)
{
	const multi = redis.multi();

	for (const words of commands)
		multi.call(...words);
	return (await multi.exec()).map(([error, answer]) => error ?? answer);
}

speak((words) => redis.call(...words), transaction);
