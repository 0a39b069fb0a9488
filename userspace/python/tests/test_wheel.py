# SPDX-License-Identifier: GPL-2.0-only
"""Wheels and their tokens: what each call does and tells, and how it fails."""

import copy
import errno
import gc
import math
import os
import pickle
import stat
import unittest
import warnings
from dataclasses import replace
from typing import Callable

import timewheel
from common import MANUAL, MONOTONIC, SEC, WheelTest, needs_kernel, registered
from timewheel import Batch, Clock, Result, Setup, State, Wheel, _abi


# Each of these calls has to fail.
Calls = tuple[Callable[[], object], ...]


class Opening(WheelTest):
    def test_settings_arrive(self) -> None:
        setup = Setup(slots=31, tick=0.25, max_tokens=7, clock=Clock.MANUAL,
                      ids=False, cookies=False, start=9)
        info = self.opened(setup).info()
        self.assertEqual(
            (info.slots, info.tick_ns, info.max_tokens, info.clock, info.ids,
             info.cookies, info.hand, info.next_ns),
            (31, SEC // 4, 7, Clock.MANUAL, False, False, 9, None))
        info = self.wheel.info()
        self.assertEqual((True, True, 100 * SEC),
                         (info.ids, info.cookies, info.now_ns))

    def test_each_clock(self) -> None:
        for clock in timewheel.caps().clocks:
            setup = Setup(slots=1, tick=1, max_tokens=1, clock=clock)
            self.assertEqual(clock, self.opened(setup).info().clock)

    def test_caps(self) -> None:
        caps = timewheel.caps()
        self.assertEqual(set(Clock), caps.clocks)
        self.assertTrue(caps.ids_optional and caps.cookies_optional)
        self.assertEqual((65536, 65536), (caps.max_slots, caps.max_batch))
        self.assertLess(caps.min_tick_ns, caps.max_tick_ns)
        self.assertGreater(caps.max_tokens, 0)
        self.assertEqual(2**30, caps.max_word_ticks)

    def test_context_manager_closes(self) -> None:
        with Wheel.open(MANUAL) as wheel:
            fd = wheel.fileno()
            os.fstat(fd)
            self.assertFalse(wheel.closed)
            self.assertFalse(os.get_inheritable(fd))
        self.assertTrue(wheel.closed)
        with self.fails(errno.EBADF):
            os.fstat(fd)

    def test_closed(self) -> None:
        """Every call tells that the wheel is closed, and another file of this fd is left alone."""
        self.wheel.close()
        self.wheel.close()
        calls: Calls = (
            self.wheel.fileno, self.wheel.info, self.wheel.stats,
            self.wheel.read, self.wheel.tokens, self.wheel.__enter__,
            lambda: self.wheel.register(1, 1),
            lambda: self.wheel.touch(1), lambda: self.wheel.cancel(1),
            lambda: self.wheel.touch_or_register(1, 1),
            lambda: self.wheel.move(1, 1), lambda: self.wheel.get(1),
            lambda: self.wheel.advance(1), lambda: next(self.wheel),
            lambda: self.wheel.register(1, period=1),
            lambda: self.wheel.get_many([1]),
            lambda: self.wheel.delete(1),
            self.wheel.pause, self.wheel.resume, self.wheel.drain,
            self.wheel.undrain,
            lambda: Batch().run(self.wheel),
        )
        for call in calls:
            with self.assertRaises(ValueError):
                call()
        self.assertIn("closed", repr(self.wheel))

    def test_unclosed_is_told_of_and_closed(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fd = Wheel.open(MANUAL).fileno()
            gc.collect()
        # Each warning names its wheel for the program.
        self.assertEqual([ResourceWarning], [w.category for w in caught])
        caught.clear()
        with self.fails(errno.EBADF):
            os.fstat(fd)

    @needs_kernel("an fd of a wheel makes another one")
    def test_open_fd(self) -> None:
        self.wheel.register(7, 1)
        with Wheel.open_fd(os.dup(self.wheel.fileno())) as other:
            self.assertEqual(7, other.get(7).id)
        with self.fails(errno.EBADF):
            Wheel.open_fd(-1)
        with open("/dev/null") as file, self.fails(errno.ENOTTY):
            Wheel.open_fd(file.fileno())
        with open("/dev/timewheel", "rb", 0) as raw, self.fails(errno.EBADFD):
            Wheel.open_fd(raw.fileno())

    def test_is_made_of_a_wheel_only(self) -> None:
        with self.assertRaises(TypeError):
            Wheel(self.wheel.fileno())  # type: ignore[arg-type]

    def test_is_not_copied(self) -> None:
        """Nor is a wheel pickled: the result would have a pointer of another process."""
        with self.assertRaises(TypeError):
            copy.copy(self.wheel)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with self.assertRaises(TypeError):
                pickle.dumps(self.wheel, protocol)


class Tokens(WheelTest):
    def test_register_and_get(self) -> None:
        handle = self.wheel.register(7, 30, cookie=2**64 - 1)
        token = self.wheel.get(7)
        self.assertEqual(
            (token.id, token.handle, token.cookie, token.deadline_ns,
             token.cycle, token.slot, token.state, token.left_ns,
             token.timeout_ns),
            (7, handle, 2**64 - 1, 130 * SEC, 0, 130 % 60, State.PENDING,
             30 * SEC, 30 * SEC))
        self.assertEqual(
            (0, 0, 0, 0, 0),
            (token.lease_end_ns, token.period_ns, token.base_ns, token.delivery,
             token.attempts))
        self.assertEqual(token, self.wheel.get(handle=handle))
        with self.fails(errno.EEXIST):
            self.wheel.register(7, 30)

    def test_get_many(self) -> None:
        registered(self.wheel, 1500)
        found = self.wheel.get_many([7, 0, *range(1500, 0, -1)])
        self.assertEqual([7, None, *range(1500, 0, -1)],
                         [token and token.id for token in found])
        token = self.wheel.get(7)
        self.assertEqual([token, None],
                         self.wheel.get_many(handles=(token.handle, 1)))
        self.assertEqual([], self.wheel.get_many([]))
        wheel = self.opened(replace(MANUAL, ids=False))
        with self.fails(errno.EINVAL):
            wheel.get_many([7])

    def test_timeout(self) -> None:
        """A timeout may differ from the delay, and go with a point of time."""
        self.wheel.register(1, 5, timeout=30)
        self.wheel.register(2, at_ns=105 * SEC, timeout=30)
        self.wheel.register(3, timeout=30)
        self.assertEqual(
            [(105 * SEC, 30 * SEC), (105 * SEC, 30 * SEC), (130 * SEC, 30 * SEC)],
            [(t.deadline_ns, t.timeout_ns) for t in map(self.wheel.get, (1, 2, 3))])
        for id in (1, 2):
            self.wheel.touch(id)
            self.assertEqual(130 * SEC, self.wheel.get(id).deadline_ns)
        self.wheel.move(1, 5, timeout=40)
        self.wheel.move(2, at_ns=107 * SEC, timeout=41)
        self.wheel.move(3, timeout=42)
        self.assertEqual(
            [(105 * SEC, 40 * SEC), (107 * SEC, 41 * SEC), (142 * SEC, 42 * SEC)],
            [(t.deadline_ns, t.timeout_ns) for t in map(self.wheel.get, (1, 2, 3))])
        with self.assertRaises(ValueError):
            self.wheel.register(4, 1, timeout=0)
        with self.assertRaises(ValueError):
            self.wheel.move(1, 1, timeout=1e-10)

    def test_durations(self) -> None:
        """A float means the number as it was written."""
        wheel = self.opened(Setup(slots=60, tick=0.0001, max_tokens=100,
                                  clock=Clock.MANUAL))
        for i, (seconds, expected) in enumerate((
                (0, 0), (1, SEC), (1.1, 1_100_000_000), (0.3, 300_000_000),
                (172800.7, 172_800_700_000_000), (0.0001, 100_000),
                (1e-10, 0), (True, SEC))):
            wheel.register(i, seconds)
            self.assertEqual(expected, wheel.get(i).left_ns, seconds)
        wheel = self.opened(Setup(slots=1, tick=1.001, max_tokens=1))
        self.assertEqual(1_001_000_000, wheel.info().tick_ns)

    def test_numbers_that_do_not_fit(self) -> None:
        """C would cut such numbers off, and do something else."""
        for id in (-1, 2**64):
            calls: Calls = (
                lambda: self.wheel.register(id, 1),
                lambda: self.wheel.touch(id),
                lambda: self.wheel.touch(handle=id),
                lambda: self.wheel.register(1, 1, cookie=id),
                lambda: self.wheel.register(1, at_ns=id),
                lambda: self.wheel.touch_or_register(id, 1),
                lambda: self.wheel.touch_or_register(1, 1, cookie=id),
                lambda: self.wheel.move(1, at_ns=id),
                lambda: self.wheel.advance(id),
                lambda: self.wheel.tokens(id),
                lambda: self.wheel.tokens(0, id),
                lambda: self.wheel.read(0, id),
                lambda: self.wheel.get_many([id]),
                lambda: Batch().cancel(id),
                lambda: Batch(id),
            )
            for call in calls:
                with self.assertRaises(OverflowError):
                    call()
        with self.assertRaises(OverflowError):
            Wheel.open(Setup(slots=2**32 + 1, tick=1, max_tokens=1))
        for seconds, error in ((-1e-12, ValueError), (math.nan, ValueError),
                               (math.inf, OverflowError), (1e30, OverflowError)):
            with self.assertRaises(error):
                self.wheel.register(1, seconds)
            with self.assertRaises(error):
                self.wheel.read(seconds)
        self.assertEqual(0, self.wheel.info().registered)

    def test_one_key_one_time(self) -> None:
        calls: Calls = (
            lambda: self.wheel.touch(),
            lambda: self.wheel.touch(1, handle=1),
            lambda: self.wheel.register(1),
            lambda: self.wheel.register(1, 1, at_ns=1),
            lambda: self.wheel.move(1),
            lambda: self.wheel.get_many(),
            lambda: self.wheel.get_many([1], handles=[1]),
        )
        for call in calls:
            with self.assertRaises(TypeError):
                call()
        with self.assertRaises(TypeError):
            self.wheel.touch(1.5)  # type: ignore[arg-type]

    def test_touch(self) -> None:
        handle = self.wheel.register(7, 30)
        self.wheel.advance(120)
        self.assertEqual(Result(0), self.wheel.touch(7))
        self.assertEqual(30 * SEC, self.wheel.get(7).left_ns)
        self.wheel.advance(150)
        self.assertEqual(0, self.wheel.get(7).left_ns)
        self.assertEqual(Result.WAS_DUE, self.wheel.touch(handle=handle))
        self.wheel.advance(180)
        self.assertEqual([180 * SEC],
                         [e.deadline_ns for e in self.wheel.read(0)])
        with self.fails(errno.ENOENT):
            self.wheel.touch(7)
        with self.fails(errno.ESTALE):
            self.wheel.touch(handle=handle)

    def test_touch_or_register(self) -> None:
        self.assertEqual(Result.REGISTERED,
                         self.wheel.touch_or_register(7, 30, cookie=5))
        self.wheel.advance(110)
        self.assertFalse(self.wheel.touch_or_register(7, 1, cookie=6))
        token = self.wheel.get(7)
        self.assertEqual((140 * SEC, 5), (token.deadline_ns, token.cookie))
        self.wheel.advance(140)
        self.assertEqual(Result.WAS_DUE, self.wheel.touch_or_register(7, 30))

    def test_move(self) -> None:
        handle = self.wheel.register(7, 30)
        self.assertFalse(self.wheel.move(7, 10))
        self.assertEqual(110 * SEC, self.wheel.get(7).deadline_ns)
        self.assertFalse(self.wheel.move(handle=handle, at_ns=200 * SEC))
        self.assertEqual(200 * SEC, self.wheel.get(7).deadline_ns)
        self.wheel.advance(200)
        self.assertEqual(Result.WAS_DUE, self.wheel.move(handle=handle, timeout=1))
        with self.fails(errno.ENOENT):
            self.wheel.move(8, 1)

    def test_cancel(self) -> None:
        handle = self.wheel.register(7, 30)
        self.assertEqual(Result(0), self.wheel.cancel(7))
        with self.fails(errno.ENOENT):
            self.wheel.cancel(7)
        with self.fails(errno.ESTALE):
            self.wheel.cancel(handle=handle)
        handle = self.wheel.register(7, 0)
        self.assertEqual(Result.WAS_DUE, self.wheel.cancel(handle=handle))
        self.assertEqual([], self.wheel.read(0))

    def test_listing(self) -> None:
        ids = registered(self.wheel, 500)
        found = list(self.wheel.tokens())
        self.assertEqual(sorted(ids), sorted(t.id for t in found))
        self.assertEqual(found, self.wheel.get_many(t.id for t in found))
        by_id = {t.id: t for t in found}
        self.assertEqual(
            (by_id[61].deadline_ns, by_id[61].cycle, by_id[61].slot,
             by_id[61].state, by_id[61].handle),
            (161 * SEC, 1, 161 % 60, State.PENDING, self.wheel.get(61).handle))
        some = self.wheel.tokens(110 * SEC, 120 * SEC)
        self.assertEqual(list(range(10, 21)), sorted(t.id for t in some))
        self.assertEqual([], list(self.wheel.tokens(0, 100 * SEC)))

    def test_listing_of_a_wheel_that_is_closed_meanwhile(self) -> None:
        ids = registered(self.wheel, 500)
        walk = self.wheel.tokens()
        first = next(walk)
        self.wheel.close()
        self.assertEqual(ids, {first.id} | {t.id for t in walk})

    def test_info(self) -> None:
        registered(self.wheel, 5)
        self.wheel.touch(1)
        self.wheel.move(2, 50)
        self.wheel.cancel(3)
        self.wheel.advance(101)
        self.wheel.read(0)
        info = self.wheel.info()
        self.assertEqual(
            (info.registered, info.touched, info.moved, info.cancelled,
             info.delivered, info.pending, info.hand, info.taken),
            (5, 1, 1, 1, 1, 3, 101, 0))
        # The count is 1 if the memory for the events was not there at once.
        self.assertIn(info.put_back, (0, 1))
        self.assertIsNotNone(info.next_ns)
        self.assertGreater(info.bytes, 0)

    def test_stats(self) -> None:
        """A manual wheel's lateness is exact: deadline to hand."""
        registered(self.wheel, 4)
        self.wheel.advance(104)
        self.assertEqual(4, len(self.wheel.read(0)))
        stats = self.wheel.stats()
        self.assertEqual(4, stats.lateness.count)
        low, high = stats.lateness.bounds(
            max(b for b, n in enumerate(stats.lateness.buckets) if n))
        self.assertTrue(low <= 3 * SEC <= high)
        self.assertEqual(high, stats.lateness.percentile(100))
        self.assertEqual(0, stats.lateness.percentile(0))
        with self.fails(errno.EINVAL):
            stats.lateness.percentile(101)
        with self.fails(errno.ENODATA):
            self.opened(MONOTONIC).stats().lateness.percentile(50)

    def test_bounds(self) -> None:
        """Buckets follow each other from 0 to 2**64-1."""
        bounds = [timewheel.Histogram.bounds(b) for b in range(252)]
        self.assertEqual(0, bounds[0][0])
        self.assertEqual(2**64 - 1, bounds[-1][1])
        for before, after in zip(bounds, bounds[1:]):
            self.assertEqual(before[1] + 1, after[0])
        for bucket in (-1, 252):
            with self.assertRaises(IndexError):
                timewheel.Histogram.bounds(bucket)


class Batches(WheelTest):
    def test_outcomes(self) -> None:
        """Each outcome is the one of the single operation."""
        self.wheel.register(1, 10, cookie=4)
        batch = Batch()
        handle = self.wheel.get(1).handle
        calls = (batch.register(7, 30, cookie=9), batch.register(7, 30),
                 batch.touch(handle=handle), batch.touch_or_register(8, 5),
                 batch.touch_or_register(8, 5), batch.move(1, at_ns=150 * SEC),
                 batch.cancel(1), batch.cancel(handle=handle))
        self.assertEqual(tuple(range(8)), calls)
        self.assertEqual(2, batch.run(self.wheel))
        self.assertEqual(8, len(batch))
        got = list(batch.outcomes())
        self.assertEqual([None, "EEXIST", None, None, None, None, None, "ESTALE"],
                         [o.error and errno.errorcode[o.error.errno or 0] for o in got])
        self.assertIsInstance(got[1].error, FileExistsError)
        self.assertEqual(self.wheel.get(7).handle, got[0].handle)
        self.assertEqual(130 * SEC, got[0].deadline_ns)
        self.assertEqual((None, None), (got[1].handle, got[1].deadline_ns))
        self.assertEqual((Result.REGISTERED, self.wheel.get(8).handle),
                         (got[3].result, got[3].handle))
        self.assertEqual((Result(0), None), (got[4].result, got[4].handle))
        self.assertEqual(150 * SEC, got[5].deadline_ns)
        self.assertEqual(150 * SEC, got[6].deadline_ns)

    def test_goes_on_and_begins_anew(self) -> None:
        batch = Batch(2)
        batch.register(1, 1)
        self.assertIsInstance(batch.outcome(0).error, BlockingIOError)
        self.assertEqual(0, batch.run(self.wheel))
        batch.register(2, 1)
        # An operation that has been carried out is not carried out again: 1 is pending.
        self.assertEqual(0, batch.run(self.wheel))
        with self.fails(errno.ENOSPC):
            batch.register(3, 1)
        for index in (-1, 2):
            with self.assertRaises(IndexError):
                batch.outcome(index)
        batch.clear()
        self.assertEqual(0, len(batch))
        self.assertEqual(2, self.wheel.info().registered)

    def test_touches(self) -> None:
        """Touches are collected, and keep their place among other operations."""
        handle = self.wheel.register(1, 10)
        self.wheel.register(2, 20)
        self.wheel.advance(101)
        batch = Batch(9)
        indexes = (batch.touch(1), batch.touch(handle=handle), batch.cancel(1),
                   batch.touch(1), *batch.touch_many([2, 3]),
                   *batch.touch_many(handles=[handle]), batch.touch(2))
        self.assertEqual(tuple(range(8)), indexes)
        self.assertEqual(8, len(batch))
        with self.fails(errno.ENOSPC):
            batch.touch_many([1, 2])
        for bad in (-1, 2**64):
            with self.assertRaises(OverflowError):
                batch.touch(bad)
            with self.assertRaises(OverflowError):
                batch.touch_many([bad])
        for ids, handles in ((None, None), ([1], [1])):
            with self.assertRaises(TypeError):
                batch.touch_many(ids, handles=handles)
        for id in (None, 1):
            with self.assertRaises(TypeError):
                batch.touch(id, handle=id)
        self.assertEqual(3, batch.run(self.wheel))
        self.assertEqual([None, None, None, "ENOENT", None, "ENOENT", "ESTALE", None],
                         [o.error and errno.errorcode[o.error.errno or 0]
                          for o in batch.outcomes()])
        self.assertEqual(121 * SEC, batch.outcome(7).deadline_ns)
        self.assertEqual(8, batch.touch(2))
        with self.fails(errno.ENOSPC):
            batch.touch(2)
        self.assertEqual(3, batch.run(self.wheel))

    def test_capacity(self) -> None:
        for capacity in (0, 65537):
            with self.fails(errno.EINVAL):
                Batch(capacity)


class Named(WheelTest):
    def test_life(self) -> None:
        name, wheel = self.named()
        self.assertFalse(timewheel.create(name, MANUAL))
        with self.fails(errno.EEXIST):
            timewheel.create(name, MANUAL, exclusive=True)
        with self.fails(errno.EEXIST):
            Wheel.open_or_create(name, MONOTONIC)
        wheel.register(7, 1)
        with Wheel.open_named(name) as other:
            self.assertEqual(7, other.get(7).id)
        timewheel.destroy(name)
        with self.fails(errno.ENOENT):
            timewheel.destroy(name)
        with self.fails(errno.ENOENT):
            Wheel.open_named(name)
        calls: Calls = (
            wheel.info, wheel.read, lambda: wheel.touch(7),
            lambda: list(wheel.tokens()),
        )
        for call in calls:
            with self.fails(errno.ENODEV):
                call()
        self.assertTrue(timewheel.create(name, MANUAL, exclusive=True))

    @needs_kernel("device nodes")
    def test_node(self) -> None:
        name, _ = self.named()
        self.assertTrue(stat.S_ISCHR(os.stat(f"/dev/timewheels/{name}").st_mode))

    def test_error_names_the_wheel(self) -> None:
        with self.assertRaises(FileNotFoundError) as caught:
            Wheel.open_named("py-none")
        self.assertEqual("py-none", caught.exception.filename)
        self.assertEqual(_abi.tw_strerror(errno.ENOENT).decode(),
                         caught.exception.strerror)
        self.assertNotEqual(os.strerror(errno.ENOENT), caught.exception.strerror)

    def test_access(self) -> None:
        name, wheel = self.named()
        wheel.register(7, 0)
        with Wheel.open_named(name, os.O_RDONLY) as reader:
            with self.fails(errno.EBADF):
                reader.touch(7)
            batch = Batch()
            batch.touch(7)
            with self.fails(errno.EBADF):
                batch.run(reader)
            self.assertIsInstance(batch.outcome(0).error, BlockingIOError)
            self.assertEqual(7, reader.get(7).id)
            self.assertEqual([7], [t.id for t in reader.tokens()])
            self.assertEqual([7], [e.id for e in next(reader)])
        with Wheel.open_named(name, os.O_WRONLY) as writer:
            with self.fails(errno.EBADF):
                writer.read(0)
            writer.register(7, 1)
            batch = Batch()
            batch.touch(7)
            self.assertEqual(0, batch.run(writer))
        with self.fails(errno.EINVAL):
            Wheel.open_named(name, 77)

    def test_names(self) -> None:
        for name, err in (("", errno.EINVAL), ("a/b", errno.EINVAL),
                          ("..", errno.EINVAL), ("ä", errno.EINVAL),
                          ("x" * 64, errno.ENAMETOOLONG)):
            calls: Calls = (
                lambda: timewheel.create(name, MANUAL),
                lambda: timewheel.destroy(name),
                lambda: Wheel.open_named(name),
            )
            for call in calls:
                with self.fails(err):
                    call()
        # C would take the part before the NUL for the name.
        with self.assertRaises(ValueError):
            timewheel.create("py\0x", MANUAL)


class WithoutDevice(unittest.TestCase):
    @needs_kernel("a device")
    def test_says_so(self) -> None:
        """The error of a module that is not loaded is passed on as it is."""
        pid = os.fork()
        if not pid:
            os.chroot("/sys")
            try:
                Wheel.open(MANUAL)
            except FileNotFoundError:
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(0, os.waitpid(pid, 0)[1])
