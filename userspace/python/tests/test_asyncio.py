# SPDX-License-Identifier: GPL-2.0-only
"""Events, read by tasks of asyncio; and the example that does it."""

import asyncio
import errno
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

import idle
import timewheel
from common import MONOTONIC, WheelTest, registered
from timewheel import Event, Wheel


async def next_of(wheel: Wheel) -> Event:
    [event] = await wheel.aread(1)
    return event


async def turns(count: int) -> None:
    """Lets the loop go round so many times, with all that it has to do."""
    for _ in range(count):
        await asyncio.sleep(0)


class Tasks(WheelTest, unittest.IsolatedAsyncioTestCase):
    async def test_what_is_due(self) -> None:
        registered(self.wheel, 100)
        self.wheel.advance(1000)
        found = []
        async for events in self.wheel:
            found.append([e.id for e in events])
            if len(found) == 2:
                break
        self.assertEqual([list(range(1, 65)), list(range(65, 101))], found)

    async def test_lists(self) -> None:
        """Due events come at once, and later events when they fall due."""
        registered(self.wheel, 100)
        self.wheel.advance(150)
        self.assertEqual([30, 20], [len(await self.wheel.aread(30)) for _ in range(2)])
        task = asyncio.create_task(self.wheel.aread(30))
        await turns(3)
        self.assertFalse(task.done())
        self.wheel.advance(152)
        self.assertEqual([51, 52], [e.id for e in await task])

    async def test_waits(self) -> None:
        """Tasks of the loop run meanwhile; afterwards the loop is as it was."""
        task = asyncio.create_task(next_of(self.wheel))
        await turns(3)
        self.assertFalse(task.done())
        self.wheel.register(7, 1)
        self.wheel.advance(101)
        self.assertEqual(7, (await task).id)
        self.assertFalse(asyncio.get_running_loop().remove_reader(self.wheel))

    async def test_cancelled_at_each_moment(self) -> None:
        """An event has been handed out, or is still there. It never gets lost."""
        cancelled = 0
        for moment in range(8):
            task = asyncio.create_task(next_of(self.wheel))
            await turns(3)
            self.wheel.register(moment, 0)
            await turns(moment)
            task.cancel()
            try:
                found = [await task]
            except asyncio.CancelledError:
                cancelled += 1
                found = self.wheel.read(0)
            self.assertEqual([moment], [e.id for e in found])
            self.assertEqual([], self.wheel.read(0))
        self.assertIn(cancelled, range(1, 8))

    async def test_cancelled_again_and_again(self) -> None:
        wheel = self.opened(MONOTONIC)
        for id in range(200):
            wheel.register(id, id / 2000)
        found: list[int] = []
        while len(found) < 200:
            try:
                found.append((await asyncio.wait_for(next_of(wheel), 0.001)).id)
            except asyncio.TimeoutError:
                pass
        self.assertEqual(list(range(200)), sorted(found))
        self.assertEqual([], wheel.read(0))

    async def test_each_event_to_one_task(self) -> None:
        wheel = self.opened(MONOTONIC)
        found: list[int] = []
        all_found = asyncio.Event()

        async def read() -> None:
            async for events in wheel:
                found.extend(e.id for e in events)
                if len(found) == 500:
                    all_found.set()

        tasks = [asyncio.create_task(read()) for _ in range(4)]
        await turns(3)
        for id in range(500):
            wheel.register(id, id % 20 / 1000)
        # A task that is cancelled does not take the others' events along.
        for task in tasks[:3]:
            await turns(5)
            task.cancel()
        await all_found.wait()
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.assertEqual(list(range(500)), sorted(found))

    async def test_other_tasks_have_their_turn(self) -> None:
        """No more than 64 events come in a row, however many are due."""
        registered(self.wheel, 1000)
        self.wheel.advance(2000)
        read = 0
        in_a_row = []

        async def other() -> None:
            while True:
                in_a_row.append(read)
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        async for events in self.wheel:
            read += len(events)
            if read == 1000:
                break
        task.cancel()
        in_a_row.append(read)
        self.assertLessEqual(
            max(b - a for a, b in zip(in_a_row, in_a_row[1:])), 64)

    async def test_closed_meanwhile(self) -> None:
        tasks = [asyncio.create_task(next_of(self.wheel)) for _ in range(2)]
        await turns(3)
        self.wheel.close()
        for task in tasks:
            with self.assertRaises(ValueError):
                await task

    async def test_destroyed_meanwhile(self) -> None:
        name, wheel = self.named()
        task = asyncio.create_task(next_of(wheel))
        await turns(3)
        timewheel.destroy(name)
        with self.fails(errno.ENODEV):
            await task


class Loops(WheelTest):
    def test_one_after_the_other(self) -> None:
        for id in range(3):
            self.wheel.register(id, 0)
            self.assertEqual(id, asyncio.run(next_of(self.wheel)).id)

    def test_in_two_threads(self) -> None:
        wheel = self.opened(MONOTONIC)
        found: list[int] = []

        async def read() -> None:
            while True:
                event = await next_of(wheel)
                found.append(event.id)
                if event.id >= 1000:
                    return

        threads = [threading.Thread(target=asyncio.run, args=(read(),))
                   for _ in range(2)]
        for thread in threads:
            thread.start()
        for id in range(300):
            wheel.register(id, id % 20 / 1000)
        # These events end the two loops, and come last.
        wheel.register(1000, 0.2)
        wheel.register(1001, 0.2)
        for thread in threads:
            thread.join()
        self.assertEqual([*range(300), 1000, 1001], sorted(found))


class Example(WheelTest, unittest.IsolatedAsyncioTestCase):
    async def test_idle(self) -> None:
        """The server hangs up on a silent client, not on one that speaks."""
        server = idle.Server(self.wheel, 30)
        hanging_up = asyncio.create_task(server.hang_up())
        listening = await asyncio.start_server(server.client, "127.0.0.1", 0)
        address = listening.sockets[0].getsockname()
        silent, silent_out = await asyncio.open_connection(*address)
        lively, lively_out = await asyncio.open_connection(*address)

        async def say(text: bytes) -> None:
            lively_out.write(text)
            self.assertEqual(text, await lively.readexactly(len(text)))

        while self.wheel.info().pending < 2:
            await asyncio.sleep(0.001)
        self.wheel.advance(120)
        await say(b"one")
        self.wheel.advance(130)
        self.assertEqual(b"", await silent.read())
        await say(b"two")
        self.wheel.advance(160)
        self.assertEqual(b"", await lively.read())

        _, gone = await asyncio.open_connection(*address)
        while not self.wheel.info().pending:
            await asyncio.sleep(0.001)
        gone.close()
        while self.wheel.info().pending:
            await asyncio.sleep(0.001)
        self.assertEqual(1, self.wheel.info().cancelled)

        for out in (silent_out, lively_out, gone):
            out.close()
            try:
                await out.wait_closed()
            except ConnectionError:
                pass
        hanging_up.cancel()
        listening.close()
        await listening.wait_closed()

    def test_as_a_program(self) -> None:
        """The program echoes, hangs up, and ends by Ctrl-C."""
        port = free_port()
        program = subprocess.Popen([sys.executable, "-m", "idle", str(port), "1"])
        self.addCleanup(program.kill)
        with connected(program, port) as client:
            # On a slow machine the server may hang up at any time.
            try:
                client.sendall(b"hello")
                self.assertIn(client.recv(5, socket.MSG_WAITALL), (b"hello", b""))
                self.assertEqual(b"", client.recv(1))
            except ConnectionError:
                pass
        program.send_signal(signal.SIGINT)
        self.assertEqual(0, program.wait())


def free_port() -> int:
    with socket.create_server(("", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def connected(program: "subprocess.Popen[bytes]", port: int) -> socket.socket:
    """Connects to a server that may take a while to start."""
    while program.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise AssertionError(f"the program ended: {program.returncode}")
