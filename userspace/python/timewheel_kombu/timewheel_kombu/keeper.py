# SPDX-License-Identifier: LGPL-2.1-or-later
"""The thread that takes tasks and keeps their leases, whatever the worker's main thread
does: with the pool "solo" the main thread runs the tasks.
"""
import select
import socket
import threading
import time
from collections import deque

import redis
from kombu.log import get_logger

from .client import ENDS, PAUSE, answer_of, can_read, connect
from .errors import Refused

logger = get_logger("kombu.transport.timewheel")

WAIT = 30
"""Seconds after which a take that waits for a task is sent again."""
TICK = 1
"""Seconds between two looks at leases and at what was posted."""
MOST_RECEIPTS = 1000


class Bell:
    """Wakes a thread that waits in select()."""

    def __init__(self):
        self.ear, self.mouth = socket.socketpair()
        self.ear.setblocking(False)
        self.mouth.setblocking(False)

    def fileno(self):
        return self.ear.fileno()

    def ring(self):
        try:
            self.mouth.send(b"!")
        except OSError:
            pass              # it rings already, or has been closed

    def silence(self):
        try:
            self.ear.recv(4096)
        except OSError:
            pass

    def close(self):
        self.ear.close()
        self.mouth.close()


class Keeper(threading.Thread):
    """At most one take is out, and only when the consumer has asked for it."""

    def __init__(self, client):
        super().__init__(name="timewheel-keeper", daemon=True)
        self.client = client
        self.wire, self.number = client.address.connection(), None
        self.bell, self.consumers_bell = Bell(), Bell()
        self.wish = None          # the names of queues and the number of jobs, if it has room
        self.asked = None         # the names in the take that is out
        self.deadline = 0         # when the take has to be answered
        self.rest = 0             # the earliest time of the next take
        self.jobs = deque()       # the jobs that were taken, for the consumer
        self.missing = False      # a queue was not there
        self.down = False         # no tasks can be taken
        self.held = {}            # (queue, receipt): [when its lease was begun]
        self.leases = {}          # seconds of each queue's lease
        self.ends = False

    # This part is the consumer's side.

    def want(self, names, count):
        if self.asked == names or self.wish == (names, count):
            return
        self.wish = (names, count)
        self.bell.ring()

    def want_nothing(self):
        if self.wish or self.asked:
            self.wish = ((), 0)
            self.bell.ring()

    def ring(self):
        self.consumers_bell.ring()

    def silence(self):
        self.consumers_bell.silence()

    def fileno(self):
        """Returns an fd, readable when there are jobs, or when the consumer should tell its room.
        """
        return self.consumers_bell.fileno()

    def hold(self, queue, receipt):
        self.held[queue, receipt] = [time.monotonic()]

    def end(self):
        """Ends the thread. Jobs that come to a take that is out are given back."""
        self.ends = True
        self.bell.ring()
        self.join()

    def close(self):
        self.bell.close()
        self.consumers_bell.close()

    # This part is the thread's side.

    def run(self):
        while not (self.ends and self.asked is None):
            try:
                self._turn()
            except redis.RedisError as error:
                self._lost(error)
            except Refused as refused:
                self._refused(refused)
            except Exception as error:
                # Without this thread nobody would take tasks and keep their leases any more.
                logger.exception("the thread that takes tasks goes on")
                self._lost(error)
        self.wire.disconnect()

    def _turn(self):
        if self.asked is None and self.wish and time.monotonic() >= self.rest:
            self._ask()
        select.select([self.bell] + ([self.wire._sock] if self.asked else []), [], [],
                      self._pause())
        self.bell.silence()
        self._keep()
        if self.asked and can_read(self.wire):
            self._take()
        if self.asked and (self.ends or self.wish and self.wish[0] != self.asked):
            self.client.attempt("CLIENT", "UNBLOCK", self.number)
        if self.asked and time.monotonic() > self.deadline:
            raise redis.TimeoutError("a take was not answered in time")

    def _pause(self):
        if self.ends or self.client.unsent or self.asked and self.wish:
            return PAUSE / 4
        return PAUSE if self.wish else min([TICK, *(s / 4 for s in self.leases.values())])

    def _ask(self):
        names, count = self.wish
        self.wish = None
        if not names or self.ends:
            return
        if self.number is None:
            connect(self.wire)
            self.wire.send_command("CLIENT", "ID")
            self.number = answer_of(self.wire)
        self.wire.send_command("TW.TAKE", *names, "COUNT", count, "BLOCK", WAIT * 1000)
        self.asked, self.deadline = names, time.monotonic() + WAIT + 10

    def _take(self):
        jobs = answer_of(self.wire) or []
        self.asked = None
        if self.down:
            logger.warning("%s: tasks are taken again", self.client.address)
            self.down = False
        for job in jobs:
            if self.ends:
                self.client.post("TW.NACK", job[0], job[2], "UNTRIED")
            else:
                self.hold(job[0].decode(), job[2].decode())
                self.jobs.append(job)
        self.ring()

    def _lost(self, error):
        """Disconnects: twjobd is being restarted, or the network is down. Receipts stay good."""
        self.wire.disconnect()
        self.number = None
        self._cannot(error)

    def _cannot(self, error):
        if not self.ends and not self.down:
            self.down = True
            logger.warning("%s: no tasks are taken for now: %s", self.client.address,
                           str(error).strip())
        self.asked, self.wish = None, None
        self.rest = time.monotonic() + PAUSE
        self.ring()

    def _refused(self, refused):
        self.missing |= refused.code == "NOQUEUE"
        if refused.code in ENDS or self.number is None:
            self._lost(refused)
        else:
            self._cannot(refused)

    def _keep(self):
        """Lets leases begin again when a third of them is over."""
        now = time.monotonic()
        if self.client.unsent or self.client.sent:
            self.client.pump()
        due = {}
        for (queue, receipt), (since,) in list(self.held.items()):
            if now - since > self.leases.get(queue, 60) / 3:
                due.setdefault(queue, []).append(receipt)
        for queue, receipts in due.items():
            for at in range(0, len(receipts), MOST_RECEIPTS):
                self._extend(queue, receipts[at:at + MOST_RECEIPTS])

    def _extend(self, queue, receipts):
        now = time.monotonic()
        answer = self.client.attempt("TW.EXTEND", queue, *receipts)
        if isinstance(answer, Refused) and answer.code == "STALE":
            answer = [0]
        elif answer is None or isinstance(answer, Refused):
            return
        for receipt, good in zip(receipts, answer if isinstance(answer, list) else [1]):
            if not good:
                self.held.pop((queue, receipt), None)
            elif (entry := self.held.get((queue, receipt))):
                entry[0] = now
