# SPDX-License-Identifier: GPL-2.0-only
"""Events, read by threads that wait."""

import errno
import os
import signal
import threading
import time
from types import FrameType
from typing import Callable

from common import MONOTONIC, SEC, WheelTest, registered
from timewheel import Batch, Wheel


def asleep(thread: threading.Thread) -> None:
    """Waits until a thread sleeps, as it does in a call that blocks."""
    while thread.is_alive():
        with open(f"/proc/self/task/{thread.native_id}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] == "S":
                return
        time.sleep(0.001)


def reads_so_far() -> int:
    """Returns how many system calls of this process have read, as the kernel counts them."""
    with open("/proc/self/io", "rb", buffering=0) as file:
        return int(file.read().split(b"syscr:")[1].split()[0])


class Reading(WheelTest):
    def test_event(self) -> None:
        handle = self.wheel.register(7, 30, cookie=9)
        self.wheel.advance(132)
        [event] = self.wheel.read()
        self.assertEqual((event.id, event.handle, event.cookie, event.deadline_ns,
                          event.taken_ns), (7, handle, 9, 130 * SEC, 132 * SEC))
        with self.assertRaises(AttributeError):
            event.id = 1  # type: ignore[misc]
        self.assertEqual(1, len({event, event}))

    def test_order_and_maximum(self) -> None:
        ids = registered(self.wheel, 500)
        self.assertEqual([], self.wheel.read(0))
        self.wheel.advance(1000)
        read = [e.id for e in self.wheel.read(0, 3)]
        self.assertEqual([1, 2, 3], read)
        read += [e.id for e in self.wheel.read(0, 1000)]
        self.assertEqual(sorted(ids), read)
        with self.fails(errno.EINVAL):
            self.wheel.read(0, 0)

    def test_iteration_keeps_nothing_back(self) -> None:
        """Events that a loop has not handed out before its end go to other readers."""
        name, wheel = self.named()
        registered(wheel, 100)
        wheel.advance(1000)
        for events in wheel:
            self.assertEqual(list(range(1, 65)), [e.id for e in events])
            break
        self.assertEqual(64, wheel.info().delivered)
        with Wheel.open_named(name) as other:
            self.assertEqual([65], [e.id for e in other.read(maximum=1)])
        self.assertEqual(list(range(66, 101)), [e.id for e in next(wheel)])

    def test_cost_of_iteration(self) -> None:
        """One system call reads 64 events."""
        registered(self.wheel, 1920)
        self.wheel.advance(3000)
        left = 1920
        before = reads_so_far()
        for events in self.wheel:
            left -= len(events)
            if not left:
                break
        # The first look costs two reads: the figures, and the end of the file.
        self.assertLessEqual(reads_so_far() - before, 1920 // 64 + 2)

    def test_timeout(self) -> None:
        start = time.monotonic_ns()
        self.assertEqual([], self.wheel.read(0.02))
        self.assertGreaterEqual(time.monotonic_ns() - start, 20_000_000)


class Waiting(WheelTest):
    def reader(self, read: Callable[[], object]) -> threading.Thread:
        """Starts a thread that sleeps in @read, whose result goes to self.told."""
        self.told: object = None

        def run() -> None:
            try:
                self.told = read()
            except (OSError, ValueError) as error:
                self.told = error

        thread = threading.Thread(target=run)
        thread.start()
        asleep(thread)
        return thread

    def test_others_run_meanwhile(self) -> None:
        thread = self.reader(lambda: [e.id for e in next(self.wheel)])
        self.wheel.register(7, 1)
        self.wheel.advance(101)
        thread.join()
        self.assertEqual([7], self.told)

    def test_closed_meanwhile(self) -> None:
        """A thread that is in a call on the wheel can finish the call after a close."""
        name, wheel = self.named()
        with Wheel.open_named(name) as other:
            thread = self.reader(lambda: [e.id for e in wheel.read()])
            fd = wheel.fileno()
            wheel.close()
            os.fstat(fd)
            other.register(7, 0)
            thread.join()
        self.assertEqual([7], self.told)
        with self.fails(errno.EBADF):
            os.fstat(fd)


class Signals(WheelTest):
    """A call goes on after a signal, unless its handler raises."""

    def alarm(self, handler: Callable[[], None], interval: float = 0) -> None:
        def handle(_number: int, _frame: FrameType | None) -> None:
            self.signals += 1
            handler()

        self.signals = 0
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.02, interval)
        self.addCleanup(signal.signal, signal.SIGALRM, signal.SIG_DFL)
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)

    def test_read_goes_on(self) -> None:
        def third() -> None:
            if self.signals == 3:
                self.wheel.register(7, 0)

        self.alarm(third, 0.02)
        self.assertEqual([7], [e.id for e in next(self.wheel)])
        self.assertGreaterEqual(self.signals, 3)

    def test_read_goes_on_for_the_rest_of_its_time(self) -> None:
        start = time.monotonic_ns()
        self.alarm(lambda: None, 0.02)
        self.assertEqual([], self.wheel.read(0.1))
        self.assertGreaterEqual(time.monotonic_ns() - start, 100_000_000)
        self.assertGreaterEqual(self.signals, 1)

    def test_handler_that_raises(self) -> None:
        def stop() -> None:
            raise KeyboardInterrupt

        self.alarm(stop)
        with self.assertRaises(KeyboardInterrupt):
            self.wheel.read()
        self.wheel.register(7, 0)
        self.assertEqual([7], [e.id for e in next(self.wheel)])

    def test_batch_goes_on(self) -> None:
        wheel = self.opened(MONOTONIC)
        batch = Batch(20000)
        for id in range(20000):
            batch.register(id, 1000)
        self.alarm(lambda: None, 0.0005)
        # A signal comes in between in these rounds, most likely.
        for _ in range(5):
            self.assertEqual(0, batch.run(wheel))
            self.assertEqual(20000, wheel.info().pending)
            batch.clear()
            for id in range(20000):
                batch.move(id, 1000)
