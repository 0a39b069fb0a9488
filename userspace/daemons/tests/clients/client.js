// SPDX-License-Identifier: GPL-2.0-only
//
// This file has what the tests of clients for Node share. It tests every verb, by a function that
// sends a command and returns the promise of its answer.
'use strict';
const fs = require('fs');

// Returns an answer in the format of verbs.txt. The names and values of a map are counted.
function text(answer)
{
	if (answer === null || answer === undefined)
		return 'nil';
	if (Array.isArray(answer))
		return `[${answer.length}]`;
	if (answer instanceof Map)
		return `[${2 * answer.size}]`;
	if (typeof answer === 'object')
		return `[${2 * Object.keys(answer).length}]`;
	return String(answer);
}

function isAnswer(answer, wanted)
{
	switch (wanted) {
	case '#':
		return /^[0-9]+$/.test(answer);
	case '[]':
		return /^\[[0-9]+\]$/.test(answer);
	case '...':
		return answer.length > 100;
	default:
		return answer === wanted;
	}
}

function expect(condition, what)
{
	if (condition)
		return;
	console.log(`# ${what}`);
	process.exitCode = 1;
}

// Returns the answer, or the code of an error that the daemon answers.
async function answerOf(promise)
{
	try {
		return await promise;
	} catch (error) {
		return error.message.split(' ')[0];
	}
}

async function allVerbs(send)
{
	const known = {};

	for (const line of fs.readFileSync('verbs.txt', 'utf8').trim().split('\n')) {
		const [command, wanted] = line.split(' => ');
		const words = command.split(' ').map((word) => known[word] ?? word);
		const answer = await answerOf(send(words));

		expect(isAnswer(text(answer), wanted),
		       `${words.join(' ')}: ${text(answer)}, not ${wanted}`);
		if (words[0] === 'TW.PUT' && wanted === '#')
			known.$id = String(answer);
		if (words[0] === 'TW.TAKE' && wanted === '[1]')
			known.$receipt = answer[0][2];
	}
}

// Returns the error with which a promise ends, or null.
function errorOf(promise)
{
	return promise.then(() => null, (error) => error);
}

// Checks that each answer is in its place, and that no answer comes twice.
function expectNumbers(answers, count)
{
	expect(new Set(answers).size === count &&
	       answers.every((id) => Number.isInteger(id)),
	       `${count} puts were answered ${answers}`);
}

function sleep(ms)
{
	return new Promise((resolve) => setTimeout(resolve, ms));
}

// A take that waits on a connection of its own does not delay the other connection.
async function blocks(send, sendBlocking)
{
	const take = sendBlocking(['TW.TAKE', 'waited', 'BLOCK', '0']);
	const early = await Promise.race([take, sleep(200)]);

	expect(early === undefined, 'a take did not wait');
	expect(await send(['PING']) === 'PONG', 'a take holds up others');
	await send(['TW.PUT', 'waited', 'body']);
	const [job] = await take;

	expect(job[6] === 'body', 'a take that waited got no job');
	expect(await send(['TW.ACK', 'waited', job[2]]) === 1, 'no ack');
}

// Ends the program, also if there are still connections.
function run(main)
{
	main().catch((error) => {
		console.log(`# ${error.stack}`);
		process.exitCode = 1;
	}).finally(() => process.exit());
}

module.exports = { allVerbs, blocks, errorOf, expect, expectNumbers, run, sleep };
