# SPDX-License-Identifier: GPL-2.0-only
"""Watched connections: nobody touches, and what cannot be watched is refused."""

import errno
import ipaddress
import socket
import time
from dataclasses import replace

import timewheel
from common import MONOTONIC, SEC, WheelTest
from timewheel import Batch, Clock, Connection, Result, Setup, Wheel

WATCHING = replace(MONOTONIC, watch=True)
LOOPBACK = ipaddress.IPv4Address("127.0.0.1")

IDLE = 0.2


class Watching(WheelTest):
    def setUp(self) -> None:
        super().setUp()
        if not timewheel.caps().watch:
            self.skipTest("this kernel has no TCP")
        self.watching = self.opened(WATCHING)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        self.client, self.server = self.connected()

    def connected(self) -> tuple[socket.socket, socket.socket]:
        client = socket.create_connection(self.listener.getsockname())
        self.addCleanup(client.close)
        server, _ = self.listener.accept()
        self.addCleanup(server.close)
        return client, server

    def test_settings(self) -> None:
        self.assertFalse(self.wheel.info().watch)
        info = self.opened(replace(WATCHING, tell_ended=True)).info()
        self.assertEqual((True, True), (info.watch, info.tell_ended))
        for bad in (Setup(slots=1, tick=1, max_tokens=1, tell_ended=True),
                    replace(WATCHING, clock=Clock.BOOTTIME),
                    replace(WATCHING, lease=1), replace(WATCHING, periods=True)):
            with self.fails(errno.EINVAL):
                Wheel.open(bad)

    def test_idle(self) -> None:
        self.watching.watch(7, self.server, IDLE, cookie=9)
        for _ in range(8):
            before = time.monotonic_ns()
            self.client.send(b".")
            self.server.recv(1)
            time.sleep(IDLE / 4)
            # A machine that is too slow for this says nothing of the wheel.
            if time.monotonic_ns() - before < IDLE * SEC:
                self.assertEqual([], self.watching.read(0))
        event, = self.watching.read(10)
        self.assertEqual((7, 9, 0), (event.id, event.cookie, event.error))
        self.assertGreaterEqual(event.taken_ns, before + IDLE * SEC)
        self.assertGreater(self.watching.info().asked, 0)

    def test_received(self) -> None:
        self.client.send(b".")
        self.server.recv(1)
        self.watching.watch(7, self.server, IDLE, received=True)
        time.sleep(IDLE / 2)
        sent = time.monotonic_ns()
        self.server.send(b".")
        event, = self.watching.read(10)
        self.assertLess(event.deadline_ns, sent + IDLE * SEC)

    def test_token(self) -> None:
        handle = self.watching.watch(7, self.server.fileno(), 60)
        token = self.watching.get(handle=handle)
        connection = token.connection
        assert connection
        self.assertEqual(
            Connection(connection.socket, LOOPBACK, self.server.getsockname()[1],
                       LOOPBACK, self.client.getsockname()[1], 0), connection)
        self.assertNotEqual(0, connection.socket)
        self.assertEqual([token.id], [t.id for t in self.watching.tokens()])
        self.watching.register(8, 60)
        self.assertIsNone(self.watching.get(8).connection)

    def test_ended(self) -> None:
        told = self.opened(replace(WATCHING, tell_ended=True))
        for wheel in self.watching, told:
            wheel.watch(7, self.server, IDLE)
        self.server.close()
        self.assertEqual([errno.ENOTCONN], [e.error for e in told.read(10)])
        self.assertEqual([], self.watching.read(IDLE))
        self.assertEqual(1, self.watching.info().ended)

    def test_replaced(self) -> None:
        self.watching.watch(7, self.server, 60)
        with self.fails(errno.EEXIST):
            self.watching.watch(7, self.server, 60)
        _, server = self.connected()
        self.server.close()
        batch = Batch()
        batch.watch(7, server, 60)
        self.assertEqual(0, batch.run(self.watching))
        self.assertEqual(Result.REPLACED, batch.outcome(0).result)
        self.assertIsNotNone(batch.outcome(0).handle)

    def test_refused(self) -> None:
        for kind, err in (
                ((socket.AF_INET, socket.SOCK_STREAM), errno.ENOTCONN),
                ((socket.AF_INET, socket.SOCK_DGRAM), errno.EPROTOTYPE),
                ((socket.AF_UNIX, socket.SOCK_STREAM), errno.EAFNOSUPPORT)):
            with socket.socket(*kind) as other, self.fails(err):
                self.watching.watch(7, other, 60)
        with self.fails(errno.EOPNOTSUPP):
            self.watching.watch(7, self.listener, 60)
        with self.fails(errno.ENOTSOCK):
            self.watching.watch(7, self.watching, 60)
        with self.fails(errno.EBADF):
            self.watching.watch(7, -1, 60)
        with self.fails(errno.EINVAL):
            self.wheel.watch(7, self.server, 60)
        with self.fails(errno.ERANGE):
            self.watching.watch(7, self.server, 100_000_000)
        with self.assertRaises(ValueError):
            self.watching.watch(7, self.server, 0)
        with self.assertRaises(OverflowError):
            self.watching.watch(7, 2**31, 60)
        self.assertEqual(6, self.watching.info().refused)
