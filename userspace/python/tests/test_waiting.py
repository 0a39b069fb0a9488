# SPDX-License-Identifier: GPL-2.0-only
"""Calls that wait: in threads, with signals, and in tasks of asyncio; and the example of tasks."""

import asyncio
import contextlib
import errno
import operator
import os
import pathlib
import signal
import socket
import threading
import time
import unittest
from typing import Any, Callable
from unittest import mock

import idle
from test_wheel import WheelTest, registered, rows
from timewheel import Batch, Clock, Wheel, _abi

MONOTONIC = {"clock": Clock.MONOTONIC, "start": 0, "tick": 0.001}


class Threads(WheelTest):
    def test_others_run_meanwhile(self) -> None:
        """A thread that is in a call on the wheel can finish the call after a close."""
        name, wheel = self.named()
        fd = wheel.fileno()
        told: list[int] = []
        thread = threading.Thread(target=lambda: told.extend(e.id for e in next(wheel)))
        thread.start()
        state = ""
        while state != "S":
            # The thread can run meanwhile, and then waits for nothing but an event.
            time.sleep(0.02)
            stat = pathlib.Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
            state = stat.rpartition(")")[2].split()[0]
        wheel.close()
        os.fstat(fd)
        with Wheel.open_named(name) as other:
            other.register(7, 0)
        thread.join()
        self.assertEqual([7], told)
        self.fails(errno.EBADF, os.fstat, fd)


class Signals(WheelTest):
    """A call goes on after a signal, unless its handler raises."""

    def alarm(self, handler: Callable[[], object]) -> None:
        """Has a signal come each 20 ms."""
        self.addCleanup(signal.signal, signal.SIGALRM,
                        signal.signal(signal.SIGALRM, lambda _number, _frame: handler()))
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)

    def test_read(self) -> None:
        came = iter(range(3))
        self.alarm(lambda: next(came, None) == 2 and self.wheel.register(7, 0))
        self.assertEqual([7], [e.id for e in self.wheel.read()])

    def test_read_for_the_rest_of_its_time(self) -> None:
        start = time.monotonic_ns()
        self.alarm(lambda: None)
        self.assertEqual([], self.wheel.read(0.1))
        self.assertGreaterEqual(time.monotonic_ns() - start, 100_000_000)

    def test_handler_that_raises(self) -> None:
        self.alarm(lambda: signal.setitimer(signal.ITIMER_REAL, 0) and 1 // 0)
        self.fails(ZeroDivisionError, self.wheel.read)

    def test_others(self) -> None:
        """The library tells that a signal came."""
        for function, call, expected in rows(
                ("tw_batch_run", lambda: Batch().run(self.wheel), 5),
                ("tw_wheel_get_many", lambda: self.wheel.get_many([7]), [None])):
            with mock.patch.object(_abi, function, side_effect=[InterruptedError, 5]):
                self.assertEqual(expected, call())


async def next_of(wheel: Wheel) -> int:
    [event] = await wheel.aread(1)
    return event.id


async def turns(count: int) -> None:
    """Lets the loop go round so many times, with all that it has to do."""
    for _ in range(count):
        await asyncio.sleep(0)


class Tasks(WheelTest, unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.lost: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: self.lost.append(told))

    async def asyncTearDown(self) -> None:
        self.assertEqual([], self.lost)

    async def waiting(self, wheel: Wheel) -> list["asyncio.Task[int]"]:
        """Returns two tasks that wait for one event each."""
        tasks = [asyncio.create_task(next_of(wheel)) for _ in range(2)]
        await turns(3)
        return tasks

    async def test_others_have_their_turn(self) -> None:
        """No more than 64 events come in a row, however many are due."""
        registered(self.wheel, 1000)
        self.wheel.advance(2000)
        found = [await next_of(self.wheel)]
        in_a_row = [1]

        async def other() -> None:
            while True:
                in_a_row.append(len(found))
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        async for events in self.wheel:
            found += [e.id for e in events]
            self.assertIn(len(events), (64, 999 % 64))
            if len(found) == 1000:
                break
        task.cancel()
        self.assertEqual(list(range(1, 1001)), found)
        in_a_row.append(1000)
        self.assertLessEqual(max(map(operator.sub, in_a_row[1:], in_a_row)), 64)

    async def test_one_after_the_other(self) -> None:
        """Tasks are served in the order of their coming; afterwards the loop is as it was."""
        for _ in range(2):
            one, two = await self.waiting(self.wheel)
            for id, task in enumerate((one, two)):
                self.assertFalse(two.done())
                self.wheel.register(id, 0)
                self.assertEqual(id, await task)
                await turns(3)
            self.assertFalse(asyncio.get_running_loop().remove_reader(self.wheel))

    async def test_cancelled_at_each_moment(self) -> None:
        """An event has been handed out, or goes to the next task. It never gets lost."""
        cancelled = 0
        for moment in range(8):
            one, two = await self.waiting(self.wheel)
            self.wheel.register(moment, 0)
            await turns(moment)
            one.cancel()
            try:
                self.assertEqual(moment, await one)
                two.cancel()
            except asyncio.CancelledError:
                cancelled += 1
                self.assertEqual(moment, await two)
            await asyncio.wait([two])
            self.assertEqual([], self.wheel.read(0))
        self.assertIn(cancelled, range(1, 8))

    async def test_wheel_is_closed_meanwhile(self) -> None:
        tasks, fd = await self.waiting(self.wheel), self.wheel.fileno()
        self.wheel.close()
        self.assertFalse(asyncio.get_running_loop().remove_reader(fd))
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            self.assertIsInstance(error, ValueError)


class Loops(WheelTest):
    def test_at_once(self) -> None:
        """Two loops read one wheel, in two threads."""
        wheel = self.opened(**MONOTONIC)
        found: list[int] = []
        threads = [threading.Thread(target=lambda: found.append(asyncio.run(next_of(wheel))))
                   for _ in range(2)]
        for id, thread in enumerate(threads):
            thread.start()
            wheel.register(id, 0.2)
        for thread in threads:
            thread.join()
        self.assertEqual([0, 1], sorted(found))


class Example(WheelTest, unittest.IsolatedAsyncioTestCase):
    async def test_idle(self) -> None:
        """The server hangs up on a silent client, not on one that speaks."""
        with socket.create_server(("", 0)) as listener:
            port = listener.getsockname()[1]
        serving = asyncio.create_task(idle.serve(self.wheel, port, 30))
        clients: list[Any] = []
        while len(clients) < 3:
            with contextlib.suppress(ConnectionRefusedError):
                await asyncio.sleep(0.001)
                clients.append(await asyncio.open_connection("127.0.0.1", port))
        (silent, _), (lively, out), (_, gone) = clients
        while self.wheel.info().pending < 3:
            await asyncio.sleep(0.001)
        gone.close()
        while not self.wheel.info().cancelled:
            await asyncio.sleep(0.001)
        for hand in 120, 130:
            self.wheel.advance(hand)
            out.write(b"word")
            self.assertEqual(b"word", await lively.readexactly(4))
        self.assertEqual(b"", await silent.read())
        self.wheel.advance(160)
        self.assertEqual(b"", await lively.read())
        for _, out in clients:
            out.close()
            await asyncio.gather(out.wait_closed(), return_exceptions=True)
        serving.cancel()
