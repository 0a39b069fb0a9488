# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands to twjobd and their answers, over a connection of redis-py."""
import os
import threading
import time
from collections import deque
from urllib.parse import unquote, urlparse

import redis
from kombu.log import get_logger

from .errors import AGAIN, Refused, Unreachable, told, unreachable

logger = get_logger("kombu.transport.timewheel")

DEFAULT_PORT = 7076
ANSWER = 30
"""Seconds after which a connection without an answer is given up."""
MOST_COMMANDS = 1000
"""Commands that are sent before an answer is read, and those of a transaction."""
PAUSE = 0.2
"""Seconds until something that was refused, or a connection, is tried again."""
REFUSALS = (redis.ResponseError, redis.BusyLoadingError, redis.AuthenticationError)
ENDS = ("LOADING", "NOAUTH")
"""Codes of errors at which redis-py closes the connection."""


class Address:
    """The place of twjobd, from the URL of a broker or from the parts of one."""

    def __init__(self, info):
        name = info.hostname or "localhost"
        url = urlparse(name if "://" in name else f"//{name}")
        self.path = unquote(url.path) if not url.hostname and len(url.path) > 1 else None
        self.host = url.hostname or "localhost"
        self.port = url.port or info.port or DEFAULT_PORT
        self.password = unquote(url.password) if url.password else info.password

    def __str__(self):
        return self.path or f"{self.host}:{self.port}"

    def connection(self):
        options = {"password": self.password, "socket_timeout": ANSWER}
        if self.path:
            return redis.UnixDomainSocketConnection(path=self.path, **options)
        return redis.Connection(host=self.host, port=self.port, socket_connect_timeout=5,
                                socket_keepalive=True, **options)


def answer_of(wire):
    """Returns the next answer of a connection. An error is Refused; a connection that has ended
    is redis.ConnectionError or redis.TimeoutError, and is closed."""
    try:
        return wire.read_response()
    except REFUSALS as error:
        raise Refused(error) from None


def can_read(wire):
    """Whether an answer has begun to come. redis-py 4.3 fails for a unix socket that was reset,
    as it wants to tell a host, and the socket has none."""
    try:
        return wire.can_read(0)
    except (AttributeError, OSError) as error:
        raise redis.ConnectionError(f"the connection has ended: {error!r}") from None


def connect(wire):
    """Connects, and finds out whether commands are let in."""
    try:
        wire.connect()
        wire.send_command("PING")
        wire.read_response()
    except REFUSALS as error:
        raise Refused(error) from None


class Client:
    """Sends commands of any thread. Receipts are good from any connection, and each put has a
    key, so that a command whose answer was lost is sent again."""

    def __init__(self, address, patience):
        self.address, self.patience = address, patience
        self.wire = address.connection()
        self.connected = False
        self.lock = threading.RLock()
        self.pid = os.getpid()
        self.unsent = deque()     # posted commands
        self.sent = deque()       # commands without an answer yet
        self.rest = 0             # the earliest time of the next try

    def foreign(self):
        """A child of fork() has its parent's connections, and must leave them alone."""
        return os.getpid() != self.pid

    def connect(self):
        """Tries once to connect."""
        with self.lock:
            if self.connected:
                return
            try:
                connect(self.wire)
            except (redis.RedisError, Refused) as error:
                self._lost()
                raise unreachable(self.address, error) from None
            self.connected = True

    def _lost(self):
        self.wire.disconnect()
        self.connected = False
        self.rest = time.monotonic() + PAUSE
        self.unsent.extendleft(reversed(self.sent))
        self.sent.clear()

    def _insist(self, end):
        """Connects, also while twjobd is being restarted."""
        while True:
            try:
                return self.connect()
            except Unreachable:
                if time.monotonic() >= end:
                    raise
            time.sleep(PAUSE)

    def _send_posted(self):
        while self.unsent:
            self.wire.send_command(*self.unsent[0])
            self.sent.append(self.unsent.popleft())

    def _posted_answer(self):
        words = self.sent[0]
        try:
            answer_of(self.wire)
        except Refused as refused:
            if refused.code in ENDS:
                raise redis.ConnectionError(refused) from None
            if refused.code in AGAIN:
                self.unsent.append(words)
                self.rest = time.monotonic() + PAUSE
            else:
                logger.warning("%s %s: %s", words[0], words[1], refused)
        self.sent.popleft()

    def _exchange(self, commands):
        self._send_posted()
        self.wire.send_packed_command(self.wire.pack_commands(commands))
        while self.sent:
            self._posted_answer()
        answers = []
        for _ in commands:
            try:
                answers.append(answer_of(self.wire))
            except Refused as refused:
                if refused.code in ENDS:
                    self._lost()
                    raise
                answers.append(refused)
        return answers

    def exchange(self, commands, patience=None):
        """Returns the answers to commands, some of which may be Refused. If the connection ends,
        all commands are sent again."""
        end = time.monotonic() + (self.patience if patience is None else patience)
        with self.lock:
            while True:
                self._insist(end)
                try:
                    return self._exchange(commands)
                except redis.RedisError as error:
                    self._lost()
                    if time.monotonic() >= end:
                        raise unreachable(self.address, error) from None

    def _patiently(self, ask, what):
        """Returns the result of ask(). If the answer is "again", it asks again."""
        end = time.monotonic() + self.patience
        while True:
            try:
                return ask()
            except Refused as refused:
                if refused.code not in AGAIN:
                    raise
                if time.monotonic() > end:
                    raise told(refused, what) from None
            time.sleep(PAUSE)

    def call(self, *words):
        def ask():
            answer, = self.exchange([words])
            if isinstance(answer, Refused):
                raise answer
            return answer
        return self._patiently(ask, words[0])

    def ask_all(self, commands):
        """Returns the answers to commands, some of which may be Refused, but never with the word to
        send them again."""
        def ask(some):
            answers = self.exchange(some)
            for answer in answers:
                if isinstance(answer, Refused) and answer.code in AGAIN:
                    raise answer
            return answers
        found = []
        for at in range(0, len(commands), MOST_COMMANDS):
            some = commands[at:at + MOST_COMMANDS]
            found += self._patiently(lambda: ask(some), some[0][0])
        return found

    def transaction(self, commands):
        """Returns the answers to commands that are carried out all or not at all."""
        def ask():
            answers = self.exchange([("MULTI",), *commands, ("EXEC",)])
            for at, answer in enumerate(answers[1:-1]):
                if isinstance(answer, Refused):
                    raise Refused(answer, at)
            if isinstance(answers[-1], Refused):
                raise answers[-1]
            return answers[-1]
        return self._patiently(ask, "EXEC")

    def attempt(self, *words):
        """Returns the answer, which may be Refused, or None if there is none now."""
        try:
            return self.exchange([words], patience=0)[0]
        except (Unreachable, Refused):
            return None

    def post(self, *words):
        """Sends a command now or later, until it has been answered. Nobody waits for the answer."""
        self.unsent.append(words)
        self.pump()

    def pump(self):
        """Sends the posted commands, and takes the answers that have come."""
        with self.lock:
            if not (self.unsent or self.sent):
                return
            try:
                if time.monotonic() >= self.rest:
                    self.connect()
                    self._send_posted()
                while self.sent and can_read(self.wire):
                    self._posted_answer()
            except redis.RedisError:
                self._lost()
            except Unreachable as error:
                logger.debug("%s", error)

    def close(self):
        """Waits for the answers to posted commands."""
        if self.foreign():
            return self.wire.disconnect()
        end = time.monotonic() + self.patience
        while (self.unsent or self.sent) and time.monotonic() < end:
            self.pump()
            time.sleep(0.01)
        left = len(self.unsent) + len(self.sent)
        if left:
            logger.error("%s: %d answers of workers did not reach twjobd: their tasks come "
                         "again when their leases are over", self.address, left)
        with self.lock:
            self.wire.disconnect()
            self.connected = False
