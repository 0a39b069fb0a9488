# SPDX-License-Identifier: GPL-2.0-only
"""The tests share this: wheels to try things on, and checks that a call fails."""

import errno
import os
import unittest
from contextlib import contextmanager
from typing import Callable, Iterator, TypeVar

import timewheel
from timewheel import Clock, Setup, Wheel

SEC = 1_000_000_000

MANUAL = Setup(slots=60, tick=1, max_tokens=2000, clock=Clock.MANUAL, start=100)
"""Its hand is on 100 and moves by the test only: so all times are exact."""

MONOTONIC = Setup(slots=64, tick=0.001, max_tokens=100_000)

Test = TypeVar("Test", bound=Callable[..., object])


def needs_kernel(what: str) -> Callable[[Test], Test]:
    """Skips a test of @what, which a wheel of the process does not have: timewheel(7) tells
    why."""
    return unittest.skipIf(os.environ.get("TIMEWHEEL") == "process",
                           f"needs a kernel: {what}")


class WheelTest(unittest.TestCase):
    """A test with a manual wheel, self.wheel."""

    def setUp(self) -> None:
        self.wheel = self.opened(MANUAL)

    def opened(self, setup: Setup) -> Wheel:
        """Makes a wheel that is closed after the test. Skips the test without the device."""
        try:
            wheel = Wheel.open(setup)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENODEV):
                self.skipTest("no device: is the module loaded?")
            raise
        self.addCleanup(wheel.close)
        return wheel

    def named(self, setup: Setup = MANUAL) -> tuple[str, Wheel]:
        """Makes a named wheel that is destroyed after the test."""
        name = f"py-{os.getpid()}"
        wheel = Wheel.open_or_create(name, setup)
        self.addCleanup(destroy_if_there, name)
        self.addCleanup(wheel.close)
        return name, wheel

    @contextmanager
    def fails(self, err: int) -> Iterator[None]:
        """Checks that the block raises OSError with @err, of the class that Python has for it."""
        with self.assertRaises(OSError) as caught:
            yield
        self.assertEqual(errno.errorcode[err],
                         errno.errorcode.get(caught.exception.errno or 0))
        self.assertIs(type(OSError(err, "")), type(caught.exception))


def destroy_if_there(name: str) -> None:
    try:
        timewheel.destroy(name)
    except FileNotFoundError:
        pass


def registered(wheel: Wheel, count: int) -> set[int]:
    """Registers tokens 1 to @count, due one second after the other."""
    ids = set(range(1, count + 1))
    for id in ids:
        wheel.register(id, id)
    return ids
