# SPDX-License-Identifier: LGPL-2.1-or-later
"""idle.py PORT SECONDS: an echo server that hangs up on silent clients.

One wheel has a token for each connection. Each time that a client sends something, the
server touches the client's token. The server does nothing else about time: it sets no timer
for any client.
"""

import asyncio
import itertools
import sys

import timewheel
from timewheel import Wheel

MAX_CLIENTS = 100_000


class Server:
    """The server has clients, and a wheel on which each client has a token."""

    def __init__(self, wheel: Wheel, idle: float) -> None:
        """@idle: seconds that a client may be silent"""
        self._wheel = wheel
        self._idle = idle
        self._ids = itertools.count(1)
        self._clients: dict[int, asyncio.StreamWriter] = {}

    async def client(self, reader: asyncio.StreamReader,
                     writer: asyncio.StreamWriter) -> None:
        """Serves one client, from its first byte to its last."""
        id = next(self._ids)
        self._clients[id] = writer
        try:
            # OSError with ENOSPC: there is one client too many, and it is sent away.
            self._wheel.register(id, self._idle)
            while data := await reader.read(65536):
                self._wheel.touch(id)
                writer.write(data)
                await writer.drain()
            self._wheel.cancel(id)
        except (FileNotFoundError, ConnectionError):
            # The client has been silent for too long, or is gone. If it is gone, an event of its
            # token finds no client.
            pass
        finally:
            del self._clients[id]
            writer.close()

    async def hang_up(self) -> None:
        """Hangs up on all clients that have been silent for too long."""
        async for events in self._wheel:
            for event in events:
                client = self._clients.get(event.id)
                if client:
                    client.transport.abort()


async def serve(wheel: Wheel, port: int, idle: float) -> None:
    server = Server(wheel, idle)
    async with await asyncio.start_server(server.client, port=port):
        await server.hang_up()


def main(port: int, idle: float) -> None:
    setup = timewheel.Setup(slots=64, tick=0.25, max_tokens=MAX_CLIENTS)
    with Wheel.open(setup) as wheel:
        asyncio.run(serve(wheel, port, idle))


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]), float(sys.argv[2]))
    except KeyboardInterrupt:
        pass
