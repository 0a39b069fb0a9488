# SPDX-License-Identifier: GPL-2.0-only
"""When data last came in on TCP connections; needs no device."""

import errno
import socket
import time
import unittest

import timewheel

JIFFY = 0.011


class Tcp(unittest.TestCase):
    def setUp(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.client = socket.create_connection(self.listener.getsockname())
        self.server, _ = self.listener.accept()
        for each in self.listener, self.client, self.server:
            self.addCleanup(each.close)

    def fails(self, err: int, what: socket.socket | int) -> None:
        with self.assertRaises(OSError) as caught:
            timewheel.tcp_idle(what)
        self.assertEqual(err, caught.exception.errno)

    def test_idle(self) -> None:
        for _ in range(2):
            before = time.monotonic()
            self.client.send(b"x")
            self.server.recv(1)
            after = time.monotonic()
            time.sleep(0.06)
            since = time.monotonic() - after
            idle = timewheel.tcp_idle(self.server)
            self.assertGreaterEqual(idle, since - JIFFY)
            self.assertLessEqual(idle, time.monotonic() - before + JIFFY)

    def test_fd(self) -> None:
        self.assertGreaterEqual(timewheel.tcp_idle(self.server.fileno()), 0)

    def test_refused(self) -> None:
        self.fails(errno.ENOTCONN, self.listener)
        self.fails(errno.EBADF, -1)
        one, other = socket.socketpair()
        self.addCleanup(one.close)
        self.addCleanup(other.close)
        self.fails(errno.EPROTONOSUPPORT, one)
