# SPDX-License-Identifier: GPL-2.0-only
"""Each call: whether its arguments reach the library, and its results and errors come back.

What wheels do is for the tests of the kernel and the library.
"""

import copy
import errno
import gc
import math
import operator
import os
import pathlib
import pickle
import socket
import time
import unittest
from dataclasses import asdict, fields, replace
from typing import Any, Callable
from unittest import mock

import timewheel
from timewheel import Batch, Clock, Event, Histogram, Result, Setup, State, Wheel, _abi, _uapi

SEC = 1_000_000_000

MANUAL = Setup(slots=60, tick=1, max_tokens=2000, clock=Clock.MANUAL, start=100)
"""Its hand is on 100 and moves by the test only: so all times are exact."""

EVENT = Event(7, 1, 0, 0, 0, 1, 1, 0)

by_id = operator.attrgetter("id")


class WheelTest(unittest.TestCase):
    """A test with a manual wheel, self.wheel."""

    def setUp(self) -> None:
        self.wheel = self.opened()

    def opened(self, **changes: Any) -> Wheel:
        """Makes a wheel that is closed after the test."""
        wheel = Wheel.open(replace(MANUAL, **changes))
        self.addCleanup(wheel.close)
        return wheel

    def named(self) -> tuple[str, Wheel]:
        """Makes a named wheel that is destroyed after the test."""
        name = f"py-{os.getpid()}"
        wheel = Wheel.open_or_create(name, MANUAL)
        self.addCleanup(timewheel.destroy, name)
        self.addCleanup(wheel.close)
        return name, wheel

    def fails(self, error: Any, call: Any, *arguments: Any, **more: Any) -> Any:
        """Checks that a call raises @error, or OSError with this errno, of the class that Python
        has for it; returns what it raised."""
        kind = OSError if isinstance(error, int) else error
        with self.assertRaises(kind, msg=(call, arguments, more)) as caught:
            call(*arguments, **more)
        if kind is OSError:
            self.assertEqual(repr(OSError(error, caught.exception.strerror)),
                             repr(caught.exception))
        return caught.exception


def rows(*rows: Any) -> tuple[Any, ...]:
    """Returns rows of a table, of any types."""
    return rows


def registered(wheel: Wheel, count: int) -> list[int]:
    """Registers tokens 1 to @count, due one second after the other."""
    for id in range(1, count + 1):
        wheel.register(id, id)
    return list(range(1, count + 1))


def read_at(wheel: Wheel, tick: int) -> Event:
    wheel.advance(tick)
    [event] = wheel.read(0)
    return event


def calls(wheel: Wheel) -> list[tuple[Any, ...]]:
    """Returns each call that asks the library about an open wheel, with its arguments."""
    return [(wheel.register, 1, 1), (wheel.touch, 7), (wheel.touch_or_register, 1, 1),
            (wheel.move, 7, 1), (wheel.cancel, 7), (wheel.delete, 7), (wheel.ack, EVENT),
            (wheel.nack, EVENT), (wheel.extend, EVENT), (wheel.get, 7), (wheel.get_many, [7]),
            (wheel.advance, 1), (wheel.info,), (wheel.stats,), (wheel.read,), (next, wheel),
            (wheel.pause,), (wheel.resume,), (wheel.drain,), (wheel.undrain,),
            (Batch().run, wheel)]


class Fields(WheelTest):
    def told(self, function: str, call: Callable[[], Any], true: str, **values: int) -> None:
        """Has a function of the library tell another number in each field, but @values where they
        are given. Checks that each comes in the field of its name, and which fields are true."""
        struct: Any = None

        def tell(*arguments: Any) -> None:
            nonlocal struct
            struct = arguments[-1]._obj
            for number, (field, _) in enumerate(struct._fields_, 1000):
                setattr(struct, field, values.get(field, number))

        with mock.patch.object(_abi, function, tell):
            told = call()
        for field in fields(told):
            if (name := field.name.removesuffix("_ns")) != "clocks" and hasattr(struct, name):
                self.assertEqual(getattr(struct, name), getattr(told, field.name), name)
        self.assertEqual(true.split(), [n for n, value in asdict(told).items() if value is True])

    def test_told(self) -> None:
        names = {name.removeprefix("TIMEWHEEL_"): value for name, value in vars(_uapi).items()}
        for flag, codes, true in (
                ("NO_IDS", 0, "ids_optional"), ("NO_COOKIES", 0, "cookies_optional"),
                ("PERIODS", 0, "periods"), ("TOUCH_WORDS", 1 << names["OP_ACK"], "leases")):
            self.told("tw_device_caps", timewheel.caps, true, codes=codes,
                      setup_flags=names[f"SETUP_{flag}"])
        for flag, state, true in (
                ("NO_IDS", 0, "cookies"), ("NO_COOKIES", 0, "ids"),
                ("TOUCH_WORDS", names["CONTROL_PAUSED"], "ids cookies touch_words paused"),
                ("PERIODS", names["CONTROL_DRAINING"], "ids cookies draining periods")):
            self.told("tw_wheel_info", self.wheel.info, true, clock=Clock.REALTIME, state=state,
                      setup_flags=names[f"SETUP_{flag}"])
        self.told("tw_wheel_get", lambda: self.wheel.get(7), "", state=State.HELD)
        self.assertEqual((set(Clock), None), (timewheel.caps().clocks, self.wheel.info().next_ns))

    def test_event(self) -> None:
        wheel = self.opened(lease=10, periods=True)
        handle = wheel.register(7, period=2, cookie=2**64 - 1)
        wheel.ack(read_at(wheel, 102))
        event = read_at(wheel, 109)
        self.assertEqual(Event(7, handle, 2**64 - 1, 108 * SEC, 109 * SEC, 2, 1, 2), event)
        self.assertEqual(1, len({event, copy.copy(event)}))
        self.fails(AttributeError, setattr, event, "id", 1)

    def test_setup(self) -> None:
        for setup, told in rows(
                ({"slots": 31, "max_tokens": 7, "ids": False, "start": 9},
                 {"slots": 31, "max_tokens": 7, "ids": False, "cookies": True, "hand": 9,
                  "clock": Clock.MANUAL, "max_held": 0, "periods": False}),
                ({"clock": Clock.REALTIME, "start": 0, "tick": 1.001, "cookies": False,
                  "lease": 1.5, "max_held": 3, "periods": True, "slack": 0.25},
                 {"clock": Clock.REALTIME, "tick_ns": 1_001_000_000, "cookies": False, "ids": True,
                  "lease_ns": 1_500_000_000, "max_held": 3, "periods": True, "slack_ns": SEC // 4}),
                ({"max_tokens": 5, "lease": 1}, {"max_held": 5}),
                ({"max_tokens": 70_000, "lease": 1}, {"max_held": 65536})):
            info = asdict(self.opened(**setup).info())
            self.assertEqual(info | told, info)

    def test_stats(self) -> None:
        """A manual wheel's lateness is exact: deadline to hand."""
        registered(self.wheel, 1)
        read_at(self.wheel, 104)
        lateness = self.wheel.stats().lateness
        low, high = lateness.bounds(lateness.buckets.index(1))
        self.assertTrue(low <= 3 * SEC <= high)
        self.assertEqual((1, high), (lateness.count, lateness.percentile(100)))
        wide = Histogram((0, 9995, 5, *[0] * 249))
        self.assertEqual((wide.bounds(1)[1], wide.bounds(2)[1]),
                         (wide.percentile(99.95), wide.percentile(99.96)))
        self.fails(errno.EINVAL, lateness.percentile, 101)
        for bucket in -1, 252, 2**32:
            self.fails(IndexError, lateness.bounds, bucket)


class Operations(WheelTest):
    def times(self, wheel: Wheel, id: int) -> list[float]:
        token = wheel.get(id)
        return [ns / SEC for ns in (token.deadline_ns, token.timeout_ns, token.period_ns)]

    def test_times(self) -> None:
        """Tests each way to say when a token is due, on its registration and by a move."""
        wheel = self.opened(periods=True)
        ways = rows(
            ({"delay": 5}, 105, 5, 0), ({"delay": 5, "timeout": 30}, 105, 30, 0),
            ({"at_ns": 107 * SEC, "timeout": 41}, 107, 41, 0), ({"timeout": 42}, 142, 42, 0),
            ({"period": 3}, 103, 0, 3), ({"delay": 1, "period": 3.5}, 101, 0, 3.5))
        for way, *expected in ways:
            wheel.register(1, **way)
            self.assertEqual(expected, self.times(wheel, 1), way)
            wheel.cancel(1)
        handle = wheel.register(1, 50)
        for way, *expected in ways[:4]:
            for key in {"id": 1}, {"handle": handle}:
                wheel.move(**key, delay=200, timeout=200)
                wheel.move(**key, **way)
                self.assertEqual(expected, self.times(wheel, 1), way)
        for call in wheel.register, wheel.move:
            self.fails(ValueError, call, 2, 1, timeout=1e-10)

    def test_durations(self) -> None:
        """A float means the number as it was written."""
        wheel = self.opened(tick=0.0001, start=0)
        for seconds, expected in ((0, 0), (1.1, 1_100_000_000), (0.3, 300_000_000), (True, SEC),
                                  (172800.7, 172_800_700_000_000), (1e-10, 0), (1e-9, 100_000)):
            wheel.register(1, seconds)
            self.assertEqual(expected, wheel.get(1).left_ns, seconds)
            wheel.cancel(1)

    def test_operations(self) -> None:
        """Each names its token by id or by handle, and tells its result."""
        id = 2**64 - 1
        for error in errno.ENOENT, errno.ESTALE:
            self.assertIs(Result.REGISTERED, self.wheel.touch_or_register(id, 30, cookie=5))
            token = self.wheel.get(id)
            self.assertEqual((id, 30 * SEC, 5), (token.id, token.left_ns, token.cookie))
            self.fails(errno.EEXIST, self.wheel.register, id, 1)
            key = {"id": id} if error == errno.ENOENT else {"handle": token.handle}
            self.assertEqual(Result(0), self.wheel.touch(**key))
            self.wheel.advance(token.deadline_ns // SEC)
            self.assertIs(Result.WAS_DUE, self.wheel.touch(**key))
            self.assertEqual(30 * SEC, self.wheel.get(**key).left_ns)
            self.assertEqual(Result(0), self.wheel.move(**key, delay=0))
            self.assertIs(Result.WAS_DUE, self.wheel.touch_or_register(id, 1, cookie=6))
            token = self.wheel.get(**key)
            self.assertEqual((30 * SEC, 5), (token.left_ns, token.cookie))
            self.assertEqual(Result(0), self.wheel.cancel(**key))
            for call in self.wheel.touch, self.wheel.get, self.wheel.cancel:
                self.fails(error, call, **key)

    def test_answers(self) -> None:
        wheel = self.opened(lease=10)
        for id in range(1, 6):
            handle = wheel.register(id, 0)
        one, two, three, four, five = sorted(wheel.read(0), key=by_id)
        self.fails(errno.ESTALE, wheel.ack, replace(one, delivery=2))
        self.assertEqual(Result(0), wheel.ack(one))
        wheel.nack(two, 5)
        wheel.nack(three, at_ns=120 * SEC)
        wheel.nack(wheel.get(4))
        self.assertEqual([105 * SEC, 120 * SEC, 100 * SEC],
                         [wheel.get(id).deadline_ns for id in (2, 3, 4)])
        for lease, end in (0, 110), (30, 130), (1.5, 130):
            wheel.extend(five, lease)
            self.assertEqual(end * SEC, wheel.get(5).lease_end_ns)
        # A token that is held can be deleted, but not be cancelled.
        self.fails(errno.ENOENT, wheel.cancel, 5)
        wheel.delete(handle=handle)
        wheel.delete(4)
        self.assertEqual([2, 3], sorted(map(by_id, wheel.tokens())))

    def test_get_many_and_tokens(self) -> None:
        """A walk goes on when its wheel is closed."""
        ids = registered(self.wheel, 1500)
        found = self.wheel.get_many(iter([0, *ids]))
        self.assertEqual([None, *ids], [token and token.id for token in found])
        self.assertEqual([*found[1:2], None],
                         self.wheel.get_many(handles=(self.wheel.get(1).handle, 1)))
        self.assertEqual([], self.wheel.get_many([]))
        some = self.wheel.tokens(110 * SEC, 120 * SEC)
        self.assertEqual(list(range(10, 21)), sorted(map(by_id, some)))
        self.assertEqual([], list(self.wheel.tokens(0, 0)))
        walk = self.wheel.tokens()
        first = next(walk)
        self.wheel.close()
        self.assertEqual(found[1:], sorted([first, *walk], key=by_id))

    def test_pause_and_drain(self) -> None:
        for call, expected in ((self.wheel.pause, (True, False)), (self.wheel.drain, (True, True)),
                               (self.wheel.resume, (False, True)),
                               (self.wheel.undrain, (False, False))):
            call()
            info = self.wheel.info()
            self.assertEqual(expected, (info.paused, info.draining))

    def test_read(self) -> None:
        ids = registered(self.wheel, 197)
        start = time.monotonic_ns()
        self.assertEqual([], self.wheel.read(0.02))
        self.assertGreaterEqual(time.monotonic_ns() - start, 20_000_000)
        self.wheel.advance(1000)
        found = [self.wheel.read(0, 5)]
        # A loop that ends keeps no event back.
        for events in self.wheel:
            found.append(events)
            if len(found) == 3:
                break
        found.append(self.wheel.read())
        self.assertEqual([5, 64, 64, 64], list(map(len, found)))
        self.assertEqual(ids, [event.id for events in found for event in events])
        self.fails(errno.EINVAL, self.wheel.read, 0, 0)


class Refused(WheelTest):
    def test_numbers_that_do_not_fit(self) -> None:
        """C would cut such numbers off, and do something else."""
        wheel, batch = self.wheel, Batch()
        for n in -1, 2**64:
            for call, *arguments in rows(
                    (wheel.register, n, 1), (wheel.touch, n), (wheel.touch_or_register, n, 1),
                    (wheel.get_many, [n]), (wheel.advance, n), (wheel.tokens, n),
                    (wheel.tokens, 0, n), (wheel.read, 0, n), (batch.cancel, n), (Batch, n),
                    (batch.touch, n), (batch.touch_many, [n])):
                self.fails(OverflowError, call, *arguments)
            self.fails(OverflowError, wheel.touch, handle=n)
            for cookie in wheel.register, wheel.touch_or_register:
                self.fails(OverflowError, cookie, 1, 1, cookie=n)
            self.fails(OverflowError, wheel.register, 1, at_ns=n)
        self.fails(OverflowError, timewheel.tcp_idle, 2**32)
        self.fails(OverflowError, self.opened, slots=2**32 + 1)
        for seconds, error in rows((-1e-12, ValueError), (math.nan, ValueError),
                                   (math.inf, OverflowError), (1e30, OverflowError)):
            self.fails(error, wheel.register, 1, seconds)
            self.fails(error, wheel.read, seconds)
        self.assertEqual((0, 0), (wheel.info().registered, len(batch)))

    def test_one_key_one_time(self) -> None:
        batch = Batch()
        batch.touch(handle=1)
        for call in self.wheel.touch, batch.touch, batch.cancel:
            self.fails(TypeError, call)
            self.fails(TypeError, call, 1, handle=1)
            self.fails(TypeError, call, 1.5)
        for many in self.wheel.get_many, batch.touch_many:
            self.fails(TypeError, many)
            self.fails(TypeError, many, [1], handles=[1])
        self.fails(TypeError, self.wheel.register, 1)
        self.fails(TypeError, self.wheel.register, 1, 1, at_ns=1)

    def test_closed(self) -> None:
        self.wheel.close()
        self.wheel.close()
        self.assertTrue(self.wheel.closed)
        for call, *arguments in [*calls(self.wheel), (self.wheel.tokens,), (self.wheel.fileno,),
                                 (self.wheel.__enter__,), (getattr, self.wheel, "in_process")]:
            self.fails(ValueError, call, *arguments)
        self.assertIn("closed", repr(self.wheel))

    def test_destroyed(self) -> None:
        """Every call passes on the library's error."""
        name, wheel = self.named()
        timewheel.destroy(name)
        for call, *arguments in [*calls(wheel), (next, wheel.tokens())]:
            self.fails(errno.ENODEV, call, *arguments)
        self.assertIs(True, timewheel.create(name, MANUAL, exclusive=True))


class Batches(WheelTest):
    def test_outcomes(self) -> None:
        """Each is the one of the single operation, in the order in which they were added."""
        handle = self.wheel.register(1, 10)
        self.wheel.register(2, 20)
        self.wheel.advance(101)
        batch = Batch(13)
        indexes = [
            batch.register(7, 30, cookie=9), batch.register(7, 30), batch.touch_or_register(8, 5),
            batch.touch_or_register(8, 5), batch.touch(1), batch.touch(handle=handle),
            batch.move(handle=handle, at_ns=150 * SEC), batch.cancel(1), batch.touch(1),
            *batch.touch_many([2, 3]), *batch.touch_many(handles=[handle])]
        self.assertEqual((list(range(12)), 12), (indexes, len(batch)))
        self.assertIsInstance(batch.outcome(11).error, BlockingIOError)
        self.fails(errno.ENOSPC, batch.touch_many, [1, 2])
        self.assertEqual(4, batch.run(self.wheel))
        # An operation that has been carried out is not carried out again.
        self.assertEqual(12, batch.touch(2))
        self.assertEqual(4, batch.run(self.wheel))
        seven, eight = self.wheel.get(7).handle, self.wheel.get(8).handle
        done, none = Result(0), (Result(0), None, None)
        self.assertEqual(
            [(None, done, seven, 131 * SEC), (errno.EEXIST, *none),
             (None, Result.REGISTERED, eight, 106 * SEC), (None, done, None, 106 * SEC),
             (None, done, None, 111 * SEC), (None, done, None, 111 * SEC),
             (None, done, None, 150 * SEC), (None, done, None, 150 * SEC), (errno.ENOENT, *none),
             (None, done, None, 121 * SEC), (errno.ENOENT, *none), (errno.ESTALE, *none),
             (None, done, None, 121 * SEC)],
            [(o.error and o.error.errno, o.result, o.handle, o.deadline_ns)
             for o in batch.outcomes()])
        error = self.fails(errno.EEXIST, self.wheel.register, 7, 30)
        self.assertEqual(repr(error), repr(batch.outcome(1).error))
        for index in -1, 13:
            self.fails(IndexError, batch.outcome, index)
        for call in batch.touch, batch.cancel:
            self.fails(errno.ENOSPC, call, 2)

    def test_clear(self) -> None:
        batch = Batch(2)
        for _ in range(2):
            self.assertEqual(range(2), batch.touch_many([1, 2]))
            batch.clear()
            self.assertEqual((0, 0), (len(batch), batch.run(self.wheel)))
        batch.register(1, 1)
        batch.clear()
        batch.register(2, 1)
        self.assertEqual((0, [2]), (batch.run(self.wheel), list(map(by_id, self.wheel.tokens()))))
        self.fails(errno.EINVAL, Batch, 0)


class Ownership(WheelTest):
    def test_context_manager_closes(self) -> None:
        with self.assertRaises(KeyError), Wheel.open(MANUAL) as wheel:
            fd = wheel.fileno()
            self.assertEqual((False, False), (wheel.closed, os.get_inheritable(fd)))
            raise KeyError
        self.fails(errno.EBADF, os.fstat, fd)

    def test_unclosed_is_told_of_and_closed(self) -> None:
        with self.assertWarns(ResourceWarning) as told:
            fd = Wheel.open(MANUAL).fileno()
            gc.collect()
        self.assertIn(f"fd={fd}", str(told.warning))
        del told
        self.fails(errno.EBADF, os.fstat, fd)

    def test_library_gets_its_memory_back(self) -> None:
        def pages() -> int:
            return int(pathlib.Path("/proc/self/statm").read_text().split()[0])

        registered(self.wheel, 1)
        before = pages()
        for _ in range(200):
            Batch(65536)
            self.wheel.read(0, 65536)
        for _ in range(5000):
            next(self.wheel.tokens())
        self.assertLess((pages() - before) * os.sysconf("SC_PAGESIZE"), 40_000_000)

    def test_pointers_are_the_library_s(self) -> None:
        """A wheel is made neither of a number nor of a copy."""
        for call in copy.copy, pickle.dumps, lambda wheel: Wheel(wheel.fileno()):
            self.fails(TypeError, call, self.wheel)

    @unittest.skipIf(os.environ.get("TIMEWHEEL") == "process", "needs a kernel: a wheel of it")
    def test_open_fd(self) -> None:
        self.assertIs(False, self.wheel.in_process)
        self.wheel.register(7, 1)
        with Wheel.open_fd(fd := os.dup(self.wheel.fileno())) as other:
            self.assertEqual((7, fd), (other.get(7).id, other.fileno()))
        self.fails(errno.EBADF, Wheel.open_fd, fd)

    def test_process(self) -> None:
        """The argument asks for a wheel of the process, while the environment says nothing."""
        with mock.patch.dict(os.environ):
            os.environ.pop("TIMEWHEEL", None)
            with Wheel.open(MANUAL, process=True) as wheel:
                self.assertIs(True, wheel.in_process)
                self.fails(errno.ENOTTY, Wheel.open_fd, wheel.fileno())


class Tcp(WheelTest):
    def test_idle(self) -> None:
        with (socket.create_server(("127.0.0.1", 0)) as listener,
              socket.create_connection(listener.getsockname()) as client):
            self.assertTrue(0 <= timewheel.tcp_idle(client) < 60)
            self.fails(errno.ENOTCONN, timewheel.tcp_idle, listener)
        with mock.patch.object(_abi, "tw_tcp_idle", lambda fd: 2**40 + fd):
            fd = self.wheel.fileno()
            for connection in rows(self.wheel, fd):
                self.assertEqual((2**40 + fd) / 1e9, timewheel.tcp_idle(connection))


class Named(WheelTest):
    def test_access(self) -> None:
        name, wheel = self.named()
        wheel.register(7, 0)
        for opened, *arguments in rows((Wheel.open_named, name),
                                       (Wheel.open_or_create, name, MANUAL)):
            with opened(*arguments, os.O_RDONLY) as reader:
                self.fails(errno.EBADF, reader.touch, 7)
                self.assertEqual(7, reader.get(7).id)
            with opened(*arguments, os.O_WRONLY) as writer:
                self.fails(errno.EBADF, writer.read, 0)
                self.assertEqual(Result.WAS_DUE, writer.move(7, 0))
            with opened(*arguments) as other:
                fd = other.fileno()
                self.assertEqual([7], list(map(by_id, other.read(0))))
                other.register(7, 0)
            self.fails(errno.EBADF, os.fstat, fd)

    def test_names(self) -> None:
        name, _ = self.named()
        self.assertIs(False, timewheel.create(name, MANUAL))
        self.fails(errno.EEXIST, timewheel.create, name, MANUAL, exclusive=True)
        self.fails(errno.EEXIST, Wheel.open_or_create, name, replace(MANUAL, slots=1))
        # The words are the library's.
        words = _abi.tw_strerror(errno.ENOENT).decode()
        self.assertNotEqual(os.strerror(errno.ENOENT), words)
        for call, *setup in rows((Wheel.open_named,), (timewheel.destroy,),
                                 (timewheel.create, MANUAL)):
            error = self.fails(errno.EINVAL, call, "ä", *setup)
            self.assertEqual("ä", error.filename)
            self.fails(ValueError, call, f"{name}\0x", *setup)
        self.assertEqual(words, self.fails(errno.ENOENT, timewheel.destroy, "py-none").strerror)
