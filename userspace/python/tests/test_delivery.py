# SPDX-License-Identifier: GPL-2.0-only
"""Leases and their answers, periodic tokens, pause and drain."""

import errno
import os
import select
from dataclasses import replace
from typing import Callable

import timewheel
from common import MANUAL, MONOTONIC, SEC, WheelTest
from timewheel import Batch, Clock, Event, Result, Setup, State, Wheel

LEASED = replace(MANUAL, lease=10)


class Answers(WheelTest):
    def setUp(self) -> None:
        """Token 7 has been delivered on tick 101."""
        super().setUp()
        self.name, self.wheel = self.named(LEASED)
        self.handle = self.wheel.register(7, 1, cookie=9)
        self.event = self.next_at(101)

    def next_at(self, tick: int) -> Event:
        """The one event that comes when the hand is on @tick."""
        self.wheel.advance(tick)
        [event] = self.wheel.read(0)
        self.assertEqual(7, event.id)
        return event

    def test_event_and_token(self) -> None:
        self.assertEqual((1, 1, 0), (self.event.delivery, self.event.attempts,
                                     self.event.missed))
        token = self.wheel.get(7)
        self.assertEqual(
            (State.HELD, 0, 111 * SEC, 10 * SEC, 1, 1),
            (token.state, token.deadline_ns, token.lease_end_ns, token.left_ns,
             token.delivery, token.attempts))
        self.assertEqual([token], list(self.wheel.tokens()))

    def test_ack(self) -> None:
        self.assertEqual(Result(0), self.wheel.ack(self.event))
        with self.fails(errno.ENOENT):
            self.wheel.get(7)
        with self.fails(errno.ESTALE):
            self.wheel.ack(self.event)
        info = self.wheel.info()
        self.assertEqual((1, 1, 0), (info.delivered, info.acked, info.held))

    def test_again_after_its_work(self) -> None:
        """An ack ends the token; a new one of its id may follow in the same call."""
        batch = Batch()
        batch.ack(self.event)
        batch.register(7, 5)
        self.assertEqual(0, batch.run(self.wheel))
        self.wheel.advance(105)
        self.assertEqual([], self.wheel.read(0))
        event = self.next_at(106)
        self.assertNotEqual(self.handle, event.handle)
        self.assertEqual(1, event.attempts)

    def test_nack(self) -> None:
        self.wheel.nack(self.event, 5)
        self.wheel.advance(105)
        self.assertEqual([], self.wheel.read(0))
        self.wheel.nack(self.next_at(106), at_ns=120 * SEC)
        self.wheel.advance(119)
        self.assertEqual([], self.wheel.read(0))
        event = self.next_at(120)
        self.assertEqual((3, 3), (event.delivery, event.attempts))
        self.assertEqual(3, self.wheel.get(7).attempts)
        self.assertEqual(Result(0), self.wheel.nack(event))
        token = self.wheel.get(7)
        self.assertEqual((State.PENDING, 120 * SEC, 0),
                         (token.state, token.deadline_ns, token.lease_end_ns))
        self.assertEqual(3, self.wheel.info().nacked)

    def test_nack_is_at_once(self) -> None:
        self.wheel.nack(self.event)
        self.assertEqual(2, self.next_at(101).delivery)

    def test_extend(self) -> None:
        self.wheel.advance(105)
        self.wheel.extend(self.event)
        self.assertEqual(115 * SEC, self.wheel.get(7).lease_end_ns)
        self.wheel.extend(self.event, 30)
        self.assertEqual(135 * SEC, self.wheel.get(7).lease_end_ns)
        self.wheel.extend(self.event, 100_000)
        self.assertEqual(100_105 * SEC, self.wheel.get(7).lease_end_ns)
        # An extension never shortens a lease.
        self.wheel.extend(self.event, 1)
        self.assertEqual(100_105 * SEC, self.wheel.get(7).lease_end_ns)
        with self.fails(errno.ERANGE):
            self.wheel.extend(self.event, 2**34)

    def test_delete(self) -> None:
        self.wheel.delete(7)
        with self.fails(errno.ESTALE):
            self.wheel.ack(self.event)
        with self.fails(errno.ENOENT):
            self.wheel.delete(7)
        self.assertEqual(1, self.wheel.info().deleted)

    def test_lease_over(self) -> None:
        event = self.next_at(111)
        self.assertEqual(2, event.delivery)
        with self.fails(errno.ESTALE):
            self.wheel.ack(self.event)
        self.wheel.ack(event)
        self.assertEqual(1, self.wheel.info().lapsed)

    def test_whose(self) -> None:
        """Any open file answers, if it is open for writing."""
        with Wheel.open_named(self.name, os.O_RDONLY) as reader:
            with self.fails(errno.EBADF):
                reader.ack(self.event)
        with Wheel.open_named(self.name, os.O_WRONLY) as other:
            other.extend(self.event, 30)
            other.nack(self.event)
            other.ack(self.next_at(101))
        info = self.wheel.info()
        self.assertEqual((1, 1, 0), (info.nacked, info.acked, info.returned))

    def test_close_gives_back(self) -> None:
        self.wheel.close()
        self.wheel = Wheel.open_named(self.name)
        self.addCleanup(self.wheel.close)
        self.assertEqual(2, self.next_at(101).delivery)
        self.assertEqual(1, self.wheel.info().returned)

    def test_successor_answers(self) -> None:
        """A process that has the same open file finds what is out by a walk."""
        [token] = self.wheel.tokens()
        self.wheel.nack(token)
        self.assertEqual(2, self.next_at(101).delivery)

    def test_plain_wheel(self) -> None:
        """Has no answers: its events have no number."""
        plain = self.opened(MANUAL)
        plain.register(7, 0)
        [event] = plain.read(0)
        self.assertEqual((0, 0, 0), (event.delivery, event.attempts, event.missed))
        plain.register(7, 0)
        calls: tuple[Callable[[], object], ...] = (
            lambda: plain.ack(event), lambda: plain.nack(event),
            lambda: plain.extend(event), lambda: plain.delete(7),
        )
        for call in calls:
            with self.fails(errno.EINVAL):
                call()

    def test_batch(self) -> None:
        batch = Batch()
        for id in (1, 2, 3, 4):
            self.wheel.register(id, 0)
        one, two, three, four = sorted(self.wheel.read(0), key=lambda event: event.id)
        calls = (batch.ack(one), batch.nack(two, 5), batch.extend(three, 30),
                 batch.delete(4), batch.ack(four))
        self.assertEqual(tuple(range(5)), calls)
        self.assertEqual(1, batch.run(self.wheel))
        error = batch.outcome(4).error
        assert error
        self.assertEqual(errno.ESTALE, error.errno)
        self.assertEqual(131 * SEC, batch.outcome(2).deadline_ns)
        token = self.wheel.get(3)
        self.assertEqual((State.HELD, 131 * SEC), (token.state, token.lease_end_ns))
        info = self.wheel.info()
        self.assertEqual((1, 1, 1), (info.acked, info.nacked, info.deleted))


class MostHeld(WheelTest):
    """Setup.max_held."""

    def readable(self, wheel: Wheel) -> bool:
        return bool(select.select([wheel], [], [], 0)[0])

    def test_what_is_beyond_waits(self) -> None:
        """Until an answer, or the end of a lease, makes room."""
        wheel = self.opened(replace(LEASED, max_held=2))
        for id in (1, 2, 3, 4):
            wheel.register(id, id)
        wheel.advance(104)
        self.assertTrue(self.readable(wheel))
        one, two = wheel.read(0)
        self.assertEqual((1, 2), (one.id, two.id))
        self.assertFalse(self.readable(wheel))
        self.assertEqual([], wheel.read(0))
        wheel.ack(one)
        self.assertTrue(self.readable(wheel))
        [three] = wheel.read(0)
        self.assertEqual(3, three.id)
        self.assertEqual((2, 2, 1), (wheel.info().max_held, wheel.info().held,
                                     wheel.info().pending))
        wheel.extend(two, 60)
        wheel.advance(113)
        self.assertEqual([], wheel.read(0))
        wheel.advance(114)
        [again] = wheel.read(0)
        self.assertIn(again.id, (3, 4))
        self.assertEqual([], wheel.read(0))

    def test_unless_given(self) -> None:
        """It is max_tokens, at most 65536; on a wheel without leases 0."""
        for setup, expected in ((MANUAL, 0), (LEASED, MANUAL.max_tokens),
                                (replace(LEASED, max_tokens=65537), 65536),
                                (replace(LEASED, max_tokens=65537, max_held=65537),
                                 65537)):
            self.assertEqual(expected, self.opened(setup).info().max_held)

    def test_what_it_cannot_be(self) -> None:
        for setup in (replace(MANUAL, max_held=1), replace(LEASED, max_held=2001)):
            with self.fails(errno.EINVAL):
                Wheel.open(setup)
        with self.assertRaises(OverflowError):
            Wheel.open(replace(LEASED, max_held=-1))


class Periods(WheelTest):
    def setUp(self) -> None:
        super().setUp()
        self.wheel = self.opened(replace(MANUAL, periods=True))

    def come(self, ticks: range) -> list[int]:
        """On which of the ticks an event came."""
        came = []
        for tick in ticks:
            self.wheel.advance(tick)
            came += [tick for _ in self.wheel.read(0)]
        return came

    def test_fixed_rate(self) -> None:
        handle = self.wheel.register(7, period=3)
        token = self.wheel.get(7)
        self.assertEqual((handle, 3 * SEC, 103 * SEC, 0),
                         (token.handle, token.period_ns, token.base_ns,
                          token.timeout_ns))
        self.assertEqual([103, 106, 109], self.come(range(100, 112)))
        self.wheel.cancel(7)
        self.assertEqual([], self.come(range(112, 120)))

    def test_first_time(self) -> None:
        self.wheel.register(7, 1, period=5)
        self.wheel.register(8, at_ns=110 * SEC, period=5)
        self.assertEqual([101, 106, 110, 111, 115], self.come(range(100, 116)))

    def test_missed(self) -> None:
        """One event for the last period, which tells how many had none."""
        self.wheel.register(7, period=2)
        self.wheel.advance(111)
        [event] = self.wheel.read(0)
        self.assertEqual(4, event.missed)
        self.assertEqual(4, self.wheel.info().missed)
        self.assertEqual([112, 114], self.come(range(112, 116)))

    def test_attempts(self) -> None:
        """They are counted anew for each period."""
        wheel = self.opened(replace(LEASED, periods=True))
        wheel.register(7, period=3)
        wheel.advance(103)
        [event] = wheel.read(0)
        wheel.nack(event)
        [event] = wheel.read(0)
        self.assertEqual((2, 2), (event.delivery, event.attempts))
        wheel.ack(event)
        wheel.advance(106)
        [event] = wheel.read(0)
        self.assertEqual((3, 1), (event.delivery, event.attempts))

    def test_errors(self) -> None:
        with self.fails(errno.EINVAL):
            self.wheel.register(7, period=0.5)
        with self.fails(errno.EINVAL):
            self.wheel.register(7, timeout=1, period=1)
        with self.assertRaises(ValueError):
            self.wheel.register(7, 1, period=0)
        with self.fails(errno.EINVAL):
            self.opened(MANUAL).register(7, period=1)
        self.wheel.register(7, period=1)
        with self.fails(errno.EEXIST):
            self.wheel.register(7, period=1)
        with self.fails(errno.EINVAL):
            self.wheel.touch(7)

    def test_kept(self) -> None:
        """What a token tells of itself makes it again, to the ns."""
        self.wheel.register(7, at_ns=110 * SEC + 1, period=3.5, cookie=5)
        before = self.wheel.get(7)
        self.assertEqual((110 * SEC + 1, 111 * SEC),
                         (before.base_ns, before.deadline_ns))
        self.wheel.cancel(7)
        self.wheel.register(7, at_ns=before.base_ns, period=before.period_ns / SEC,
                            cookie=before.cookie)
        self.assertEqual(before, replace(self.wheel.get(7), handle=before.handle))

    def test_batch(self) -> None:
        batch = Batch()
        batch.register(7, 1, period=3, cookie=5)
        self.assertEqual(0, batch.run(self.wheel))
        self.assertEqual((self.wheel.get(7).handle, 101 * SEC),
                         (batch.outcome(0).handle, batch.outcome(0).deadline_ns))
        self.assertEqual([101, 104], self.come(range(100, 106)))


class Policies(WheelTest):
    def test_settings_arrive(self) -> None:
        setup = Setup(slots=60, tick=0.001, max_tokens=9, clock=Clock.REALTIME,
                      lease=1.5, periods=True, slack=0.25)
        info = self.opened(setup).info()
        self.assertEqual(
            (info.lease_ns, info.periods, info.slack_ns),
            (1_500_000_000, True, SEC // 4))
        info = self.wheel.info()
        self.assertEqual(
            (info.lease_ns, info.periods, info.slack_ns), (0, False, 0))
        caps = timewheel.caps()
        self.assertTrue(caps.leases and caps.periods)

    def test_what_does_not_go_together(self) -> None:
        for setup in (replace(MANUAL, lease=0.5), replace(MANUAL, slack=1)):
            with self.fails(errno.EINVAL):
                Wheel.open(setup)

    def test_pause(self) -> None:
        self.wheel.register(7, 0)
        self.wheel.pause()
        self.assertEqual((True, False), (self.wheel.info().paused,
                                         self.wheel.info().draining))
        self.assertEqual([], self.wheel.read(0))
        self.wheel.resume()
        self.assertEqual([7], [e.id for e in self.wheel.read(0)])
        self.assertFalse(self.wheel.info().paused)

    def test_drain(self) -> None:
        self.wheel.register(7, 0)
        self.wheel.drain()
        self.assertTrue(self.wheel.info().draining)
        with self.fails(errno.ESHUTDOWN):
            self.wheel.register(8, 1)
        self.assertEqual(Result.WAS_DUE, self.wheel.move(7, 0))
        self.wheel.undrain()
        self.wheel.register(8, 1)
        self.assertFalse(self.wheel.info().draining)

    def test_real_clock(self) -> None:
        """A job that comes again and again, each time after its ack."""
        wheel = self.opened(replace(MONOTONIC, lease=60, periods=True))
        wheel.register(7, period=0.002)
        for number in range(1, 21):
            [event] = next(wheel)
            self.assertEqual((7, number), (event.id, event.delivery))
            self.assertLessEqual(event.deadline_ns, event.taken_ns)
            wheel.ack(event)
        wheel.delete(7)
        self.assertEqual((20, 20, 0), (wheel.info().delivered, wheel.info().acked,
                                       wheel.info().pending))
