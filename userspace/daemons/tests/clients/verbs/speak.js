// SPDX-License-Identifier: GPL-2.0-only
//
// What the clients for Node share: see check.
'use strict';
const readline = require('readline');

function text(answer)
{
	if (answer === null)
		return 'nil';
	if (Array.isArray(answer))
		return `[${answer.map(text).join('|')}]`;
	if (answer instanceof Error)
		return `!${answer.message}`;
	// A map of version 3 of the protocol.
	return typeof answer === 'object' ? text(Object.entries(answer).flat()) : String(answer);
}

// A function that sends a command, and one that sends a transaction, each of which gives the
// promise of an answer.
async function speak(send, transaction)
{
	let gathered = null;

	for await (const line of readline.createInterface({ input: process.stdin })) {
		const words = line.split(' ');
		let answer;

		if (line === 'MULTI') {
			gathered = [];
			continue;
		}
		if (gathered && line !== 'EXEC') {
			gathered.push(words);
			continue;
		}
		answer = await (gathered ? transaction(gathered) : send(words))
			.catch((error) => error);
		gathered = null;
		console.log(text(answer).replaceAll('\n', ' '));
	}
	process.exit();
}

module.exports = { speak };
