# SPDX-License-Identifier: GPL-2.0-only
"""A twidled for each test, as its users, its subscribers and its administrator see it.

The service tells the test that it is ready, as it tells systemd. Standard output is a socket, as
under systemd, unless the test is about another kind. $TWIDLED is the program. This module does
not know where the service has its wheel.
"""

import calendar
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

PATIENCE = 20
"""Seconds that a slow machine may need for anything."""
SEC = 1_000_000_000
OF_THE_HOST = re.compile(rb"twidled: (wheels = process: |no more than \d+ connections: )")
"""Messages that depend on where a test runs."""
TIMED = re.compile(r"(.*) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z")


class Stream:
    """The lines of the service's output, or of a socket, but for some that are of no interest."""

    def __init__(self, file, ignored=None):
        self.file, self.lines, self.rest, self.ignored = file, [], b"", ignored

    def comes(self, seconds):
        poll = select.poll()
        poll.register(self.file, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def read(self, seconds):
        """Returns False if the stream has ended, or nothing comes."""
        try:
            text = self.comes(seconds) and os.read(self.file.fileno(), 65536)
        except ConnectionError:
            text = b""
        *lines, self.rest = (self.rest + (text or b"")).split(b"\n")
        self.lines += [line.decode() for line in lines
                       if not self.ignored or not self.ignored.match(line)]
        return bool(text)

    def line(self, seconds=PATIENCE):
        """Returns the next line, or None if the stream has ended or no line comes."""
        while not self.lines:
            if not self.read(seconds):
                return None
        return self.lines.pop(0)

    def take(self, count, seconds=PATIENCE):
        """Returns this many lines, or fewer if the stream has ended or no more come."""
        while len(self.lines) < count and self.read(seconds):
            pass
        lines, self.lines = self.lines[:count], self.lines[count:]
        return lines

    def is_quiet(self, seconds):
        """Tells whether no line comes for a while, though the stream does not end."""
        return not self.lines and not self.comes(seconds)

    def has_ended(self):
        return self.line() is None and self.comes(0)


def without_time(line):
    """Cuts the wall time, which has to be about now, off a line."""
    found = TIMED.fullmatch(line or "")
    assert found, f"no time in RFC 3339 with milliseconds: {line!r}"
    wall = calendar.timegm(time.strptime(found[2], "%Y-%m-%dT%H:%M:%S"))
    assert abs(wall - time.time()) < 300, f"a time that is far from now: {line}"
    return found[1]


def offline_at(line, user):
    """Returns the deadline in ns of "offline USER DEADLINE TIME"."""
    word, name, deadline = without_time(line).split(" ")
    assert (word, name) == ("offline", str(user)), line
    assert re.fullmatch(r"\d+\.\d{9}", deadline), line
    return int(deadline.replace(".", ""))


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def ready(check, seconds=PATIENCE):
    """Tells whether the check succeeds before long."""
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class ServiceTest(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="twidled."))
        self.addCleanup(shutil.rmtree, self.dir)
        self.config, self.users, self.events, self.state, notify = (
            self.dir / name for name in ("config", "users", "events", "state", "notify"))
        self.wheel = f"twidled-test-{os.getpid()}"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.notify = self.opened(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.notify.bind(str(notify))
        notify.chmod(0o777)
        out, self.out_end = map(self.opened, socket.socketpair())
        self.out, self.log, self.process = Stream(out), None, None
        self.is_new, self.files = True, None
        self.addCleanup(lambda: self.process and self.process.poll() is None and
                        self.end(signal.SIGKILL))

    def opened(self, file):
        self.addCleanup(file.close)
        return file

    def configure(self, *lines):
        self.config.write_text("\n".join((
            f"wheel = {self.wheel}", f"listen = {self.users}", f"events = {self.events}",
            f"state = {self.state}", "tick = 50ms", *lines)) + "\n")

    def drop_privilege(self):
        """Takes all privileges from the service, which has this limit of files."""
        # A guest's Python does not have this module.
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.files, self.files))
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

    def spawn(self, *options):
        """Starts the service without a wait."""
        program = os.environ["TWIDLED"]
        if self.files:
            # A user without privileges may have no way to where the program is built.
            program = shutil.copy(program, self.dir)
        self.process = subprocess.Popen(
            [program, "--config", self.config, *options], stdout=self.out_end,
            stderr=subprocess.PIPE, preexec_fn=self.files and self.drop_privilege,
            env={**os.environ, "NOTIFY_SOCKET": self.notify.getsockname()})
        self.log = Stream(self.opened(self.process.stderr), OF_THE_HOST)

    def is_told(self, what):
        """Tells whether the service sends systemd this message before long."""
        self.notify.settimeout(PATIENCE)
        try:
            while what not in self.notify.recv(4096).decode():
                pass
        except TimeoutError:
            return False
        return True

    def start(self, *lines):
        """Starts the service with these lines in its configuration, or with its last ones. On a
        new wheel the service's first line tells this."""
        if lines:
            self.configure(*lines)
        self.spawn()
        self.assertTrue(self.is_told("READY=1"), self.log.lines)
        if self.is_new:
            self.tells("anew")
        self.is_new = False

    def status(self):
        """Returns the service's exit status, or minus the signal that killed it."""
        return self.process.wait(PATIENCE)

    def end(self, number=signal.SIGTERM):
        """Returns the exit status, which is 0 after SIGTERM."""
        self.process.send_signal(number)
        return self.status()

    def killed(self):
        self.assertEqual(self.end(signal.SIGKILL), -signal.SIGKILL)

    def stopped(self):
        self.assertEqual(self.end(), 0)

    def reload(self, *lines):
        self.configure(*lines)
        self.process.send_signal(signal.SIGHUP)
        self.assertTrue(self.is_told("READY=1"))

    def connect(self, path):
        client = self.opened(socket.socket(socket.AF_UNIX))
        client.connect(str(path))
        return Stream(client)

    def log_in(self, name):
        """Returns a user's connection, on which the user has said its name."""
        user = self.connect(self.users)
        self.say(user, f"user {name}\n")
        return user

    def log_in_by_tcp(self, name):
        user = Stream(self.opened(socket.create_connection(("127.0.0.1", self.port))))
        self.say(user, f"user {name}\n")
        return user

    def by_tcp(self):
        """Returns the line that lets users come by TCP."""
        return f"listen = 127.0.0.1:{self.port}"

    def log_in_many(self, count):
        """Users with the names 0, 1, ... log in, and are silent from then on. The output is read
        meanwhile: online lines are left out if nobody reads for long."""
        for user in range(count):
            if user % 500 == 0:
                self.out.read(0)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(self.users))
                client.sendall(b"user %d\n" % user)

    def say(self, user, text):
        user.file.sendall(text.encode())

    def subscribe(self, online=0):
        """Connects a subscriber, who is told that so many users are online."""
        stream = self.connect(self.events)
        for _ in range(online):
            self.assertRegex(stream.line(), "^is-online ")
        self.tells(f"listed {online}", stream)
        return stream

    def tells(self, text, stream=None):
        """Expects this line and a time."""
        self.assertEqual(without_time((stream or self.out).line()), text)

    def online(self, login, name):
        """A user logs in, and its line is told. Returns the user's connection."""
        user = login(name)
        self.tells(f"online {name}")
        return user

    def offline(self, user):
        """Expects that the next line says that this user is offline, and returns the deadline."""
        deadline = offline_at(self.out.line(), user)
        self.assertGreaterEqual(now(), deadline)
        return deadline

    def all_offline(self, count, lines):
        """Expects each of the users 0, 1, ... to be offline once, in any order."""
        self.assertEqual(sorted(line.split()[:2] for line in lines),
                         sorted(["offline", str(user)] for user in range(count)))

    def is_closed(self, user, line):
        """Expects that the user's connection gets this line, and ends."""
        self.assertEqual(user.line(), line)
        self.assertTrue(user.has_ended())

    def logged(self, text):
        self.assertEqual(self.log.line(), text)
