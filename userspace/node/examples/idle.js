// SPDX-License-Identifier: LGPL-2.1-or-later
//
// node idle.js PORT SECONDS: an echo server that hangs up on silent clients.
//
// One wheel has a token for each connection. Each time that a client sends something, the
// server touches the client's token. The server does nothing else about time: it sets no timer
// for any client.
'use strict';

const { once } = require('node:events');
const net = require('node:net');
const { Wheel } = require('timewheel');

const MAX_CLIENTS = 100_000;

// Serves clients that may be silent for so many ms. Each has a token on the wheel.
function serve(wheel, idle) {
	const clients = new Map();
	let last = 0n;

	wheel.on('expired', (events) => {
		// A client that has left meanwhile is no longer in the map.
		for (const { id } of events)
			clients.get(id)?.destroy();
	});
	return net.createServer((socket) => {
		const id = ++last;

		try {
			wheel.register(id, idle);
		} catch {
			// ENOSPC: there is one client too many, and it is sent away.
			socket.destroy();
			return;
		}
		clients.set(id, socket);
		socket.on('data', (data) => {
			try {
				wheel.touch(id);
				socket.write(data);
			} catch {
				// ENOENT: the client has been silent for too long.
				socket.destroy();
			}
		});
		socket.on('error', () => socket.destroy());
		socket.on('close', () => {
			clients.delete(id);
			try {
				wheel.cancel(id);
			} catch {
				// ENOENT: the token's event has come, or comes next.
			}
		});
	});
}

async function main(port, seconds) {
	const wheel = Wheel.open({ slots: 64, tick: 250, maxTokens: MAX_CLIENTS });
	const server = serve(wheel, seconds * 1000);

	server.listen(port);
	await once(process, 'SIGINT');
	process.exit();
}

if (require.main === module)
	main(Number(process.argv[2]), Number(process.argv[3]));

module.exports = { serve };
