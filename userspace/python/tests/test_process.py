# SPDX-License-Identifier: GPL-2.0-only
"""Wheels that this process keeps itself, with or without a module beside them."""

import asyncio
import errno
import os
from unittest import mock

import timewheel
from common import MANUAL, MONOTONIC, WheelTest, needs_kernel
from timewheel import Setup, Wheel


class InProcess(WheelTest):
    """The argument asks for the wheel, while the environment says nothing."""

    def setUp(self) -> None:
        self.enterContext(mock.patch.dict(os.environ))
        os.environ.pop("TIMEWHEEL", None)
        super().setUp()

    def opened(self, setup: Setup) -> Wheel:
        wheel = Wheel.open(setup, process=True)
        self.addCleanup(wheel.close)
        return wheel

    def test_tells_so(self) -> None:
        self.assertIs(True, self.wheel.in_process)
        with self.assertRaises(AttributeError):
            self.wheel.in_process = False  # type: ignore[misc]
        self.wheel.close()
        with self.assertRaises(ValueError):
            self.wheel.in_process

    def test_tasks(self) -> None:
        """The loop's poller sees the fd, and a wake-up that comes too early does no harm."""
        wheel = self.opened(MONOTONIC)

        async def read() -> list[int]:
            task = asyncio.create_task(wheel.aread())
            for id in (7, 8):
                wheel.register(id, 0.02)
            wheel.cancel(7)
            await asyncio.sleep(0.01)
            # On a slow machine the event may have come already.
            wheel.touch_or_register(8, 0.02)
            return [e.id for e in await task]

        self.assertEqual([8], asyncio.run(asyncio.wait_for(read(), 30)))

    def test_child(self) -> None:
        """A child has no wheels of its parent, and can make its own."""
        if not (pid := os.fork()):
            try:
                self.wheel.info()
            except OSError as error:
                with Wheel.open(MANUAL, process=True) as own:
                    own.register(7, 1)
                    self.wheel.close()
                    os._exit(0 if error.errno == errno.ENODEV else 1)
            finally:
                os._exit(2)
        self.assertEqual(0, os.waitpid(pid, 0)[1])
        self.wheel.register(7, 1)

    def test_fd_is_no_wheel_elsewhere(self) -> None:
        fd = os.dup(self.wheel.fileno())
        self.addCleanup(os.close, fd)
        with self.fails(errno.ENOTTY):
            Wheel.open_fd(fd)

    def test_has_no_name(self) -> None:
        """Only the environment gives names to wheels of the process."""
        with self.assertRaises(TypeError):
            Wheel.open_named("py", process=True)  # type: ignore[call-arg]
        with self.assertRaises(TypeError):
            Wheel.open_or_create("py", MANUAL, process=True)  # type: ignore[call-arg]
        with self.assertRaises(TypeError):
            timewheel.create("py", MANUAL, process=True)  # type: ignore[call-arg]


class Environment(WheelTest):
    def setUp(self) -> None:
        self.enterContext(mock.patch.dict(os.environ, TIMEWHEEL="process"))
        super().setUp()

    def test_opens(self) -> None:
        self.assertTrue(self.wheel.in_process)
        name, wheel = self.named()
        self.assertTrue(wheel.in_process)
        with Wheel.open_named(name) as other:
            self.assertTrue(other.in_process)
            wheel.register(7, 0)
            self.assertEqual([7], [e.id for e in other.read(0)])
        self.assertFalse(os.path.exists(f"/dev/timewheels/{name}"))

    def test_caps(self) -> None:
        """The limits are the ones of wheels of the process."""
        self.assertEqual(2**28, timewheel.caps().max_tokens)


@needs_kernel("one beside the process")
class Beside(WheelTest):
    def test_each_is_what_it_was_opened_as(self) -> None:
        self.assertIs(False, self.wheel.in_process)
        with Wheel.open(MANUAL, process=True) as other:
            self.assertTrue(other.in_process)
            other.register(7, 1)
            self.assertEqual(0, self.wheel.info().registered)
