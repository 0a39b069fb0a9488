# SPDX-License-Identifier: GPL-2.0-only
"""Leases and their answers, periodic tokens, pause and drain."""

import errno
from dataclasses import replace

import timewheel
from common import MANUAL, SEC, WheelTest
from timewheel import Batch, Clock, Event, Result, Setup, State, Wheel

LEASED = replace(MANUAL, lease=10)


class Answers(WheelTest):
    def setUp(self) -> None:
        """Returns a wheel whose token 7 has been delivered on tick 101."""
        super().setUp()
        self.name, self.wheel = self.named(LEASED)
        self.handle = self.wheel.register(7, 1, cookie=9)
        self.event = self.next_at(101)

    def next_at(self, tick: int) -> Event:
        """Returns the one event that comes when the hand is on @tick."""
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

    def test_close_gives_back(self) -> None:
        self.wheel.close()
        self.wheel = Wheel.open_named(self.name)
        self.addCleanup(self.wheel.close)
        self.assertEqual(2, self.next_at(101).delivery)
        self.assertEqual(1, self.wheel.info().returned)

    def test_successor_answers(self) -> None:
        """A process that has the same open file finds held tokens by a walk."""
        [token] = self.wheel.tokens()
        self.wheel.nack(token)
        self.assertEqual(2, self.next_at(101).delivery)

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
    """These are tests of Setup.max_held."""

    def test_arrives(self) -> None:
        """The default is max_tokens; on a wheel without leases it is 0."""
        for setup, expected in ((MANUAL, 0), (LEASED, MANUAL.max_tokens),
                                (replace(LEASED, max_held=7), 7)):
            self.assertEqual(expected, self.opened(setup).info().max_held)
        with self.assertRaises(OverflowError):
            Wheel.open(replace(LEASED, max_held=-1))


class Periods(WheelTest):
    def setUp(self) -> None:
        super().setUp()
        self.wheel = self.opened(replace(MANUAL, periods=True))

    def come(self, ticks: range) -> list[int]:
        """Returns the ticks on which an event came."""
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

    def test_missed(self) -> None:
        """One event comes for the last period, and tells how many periods had none."""
        self.wheel.register(7, period=2)
        self.wheel.advance(111)
        [event] = self.wheel.read(0)
        self.assertEqual(4, event.missed)
        self.assertEqual(4, self.wheel.info().missed)
        self.assertEqual([112, 114], self.come(range(112, 116)))

    def test_kept(self) -> None:
        """A token can be made again from what it tells of itself, to the ns."""
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
