// SPDX-License-Identifier: GPL-2.0-only
//
// This file has what the tests of clients for Node share.
'use strict';

function expect(condition, what)
{
	if (condition)
		return;
	console.log(`# ${what}`);
	process.exitCode = 1;
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

module.exports = { blocks, errorOf, expect, expectNumbers, run, sleep };
