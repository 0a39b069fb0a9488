// SPDX-License-Identifier: GPL-2.0-only
//
// node-redis with a version of the protocol: node-redis.js VERSION ADDRESS. See check.
'use strict';
const { createClient } = require('redis');
const { speak } = require('./speak.js');

const [version, where] = process.argv.slice(2);
const client = createClient({ RESP: Number(version), ...(where[0] === '/' ?
	{ socket: { path: where } } :
	{ socket: { port: Number(where) }, password: 'secret' }) });

async function transaction(commands)
{
	const multi = client.multi();

	for (const words of commands)
		multi.addCommand(words);
	return await multi.exec();
}

client.connect().then(() => speak((words) => client.sendCommand(words), transaction));
