# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a worker does besides its handler, in two threads of its own: one takes jobs, the
other one extends leases and sends answers, however long a handler computes. This module
does not know how handlers are run."""

import json
import threading
import time
from concurrent.futures import Future
from datetime import datetime, timezone
from logging import getLogger
from math import inf
from queue import Empty, SimpleQueue
from typing import Any, Callable

from ._jobs_client import AGAIN, ERRORS, LOST, PASSING, Client, JobError, explained, pool

logger = getLogger("timewheel.jobs")

BLOCK = 60
"""Seconds for a take to wait: so often an idle connection says that it is there."""
ANSWER = 30
"""Seconds after which a connection without an answer is given up."""
FIRST = 0.1
"""Seconds until the lease of a job is looked at: most jobs have ended before."""
STOPS = 0.05
"""Seconds until a take that waits is told once more to end."""


class Job:
    """A job that a worker has."""

    def __init__(self, words: list[Any]) -> None:
        queue, number, receipt, attempt, due, key, body = words
        self.queue: str = queue.decode()
        self.id = int(number)
        self.receipt: str = receipt.decode()
        self.attempt = int(attempt)
        """The number of the try, from 1 on."""
        self.due = datetime.fromtimestamp(int(due) / 1000, timezone.utc)
        self.key: str | None = None if key is None else key.decode(errors="surrogateescape")
        self.body: bytes = body
        self.lost = False
        """Whether the lease is over all the same, so that another worker may have the
        job."""

    def json(self) -> Any:
        return json.loads(self.body)


class Taker(threading.Thread):
    """Waits for jobs when the worker has room for some, and passes them on."""

    def __init__(self, queue: str, concurrency: int, server: str,
                 got: Callable[[Job | None], None]) -> None:
        super().__init__(name="timewheel-taker", daemon=True)
        self.queue, self.concurrency, self.server, self.got = queue, concurrency, server, got
        self.room = threading.Semaphore(concurrency)
        self.wire = pool(server, BLOCK + ANSWER).make_connection()
        self.number: int | None = None    # the number of the connection, if there is one
        self.stopping = False
        self.told = ""

    def run(self) -> None:
        try:
            while not self.stopping:
                count = self._room()
                jobs = self._take(count)
                for job in jobs:
                    self.got(job)
                for _ in range(count - len(jobs)):
                    self.room.release()
        finally:
            self.wire.disconnect()
            self.got(None)

    def _room(self) -> int:
        """Waits until there is room for one."""
        self.room.acquire()
        count = 1
        while count < self.concurrency and self.room.acquire(blocking=False):
            count += 1
        return count

    def _take(self, count: int) -> list[Job]:
        if self.stopping:
            return []
        try:
            if self.number is None:
                self.wire.connect()
                self.wire.send_command("CLIENT", "ID")
                self.number = int(self.wire.read_response())
            self.wire.send_command("TW.TAKE", self.queue, "COUNT", count,
                                   "BLOCK", BLOCK * 1000)
            jobs = [Job(words) for words in self.wire.read_response() or []]
            self.told = ""
            return jobs
        except ERRORS as error:
            self._refused(error)
            return []

    def _refused(self, error: BaseException) -> None:
        """The queue may be made, its jobs loaded, or twjobd started, later."""
        if self.number is None or isinstance(error, LOST):
            self.wire.disconnect()
            self.number = None
        text = str(explained(error, self.server))
        if text != self.told and not self.stopping:
            logger.warning("%s: no jobs are taken for now: %s", self.queue, text)
            self.told = text
        time.sleep(AGAIN)


class Held:
    """A job that the worker has, and the time of the next look at its lease."""

    def __init__(self, job: Job, lease: float | None) -> None:
        self.job = job
        self.look = time.monotonic() + FIRST
        self.span = lease and lease / 3


class Keeper(threading.Thread):
    """Has @begin run a handler for each job, which tells by end() how that went. The outcomes
    are in @done."""

    def __init__(self, queue: str, concurrency: int, lease: float | None, server: str) -> None:
        if not isinstance(concurrency, int) or not 1 <= concurrency <= 1000:
            raise ValueError("concurrency has to be an integer from 1 to 1000")
        super().__init__(name="timewheel-keeper", daemon=True)
        self.lease = lease
        self.begin: Callable[[Job], object]
        self.done: Future[None] = Future()
        self.client = Client(server, ANSWER)
        # Its put() is for signal handlers, too.
        self.inbox: SimpleQueue[tuple[Job | None, tuple[Any, ...]]] = SimpleQueue()
        self.taker = Taker(queue, concurrency, server, lambda job: self.inbox.put((job, ())))
        self.held: dict[str, Held] = {}
        self.answers: dict[str, tuple[Job, tuple[Any, ...]]] = {}
        self.rest = 0.0           # the earliest time to send answers
        self.gone = False         # twjobd cannot be told that the take is to end

    def stop(self) -> None:
        """Stops taking jobs. The thread ends when all jobs that have begun have ended."""
        self.taker.stopping = True
        self.inbox.put((None, ()))

    def end(self, job: Job, *words: str | bytes) -> None:
        self.inbox.put((job, words))

    def run(self) -> None:
        try:
            self.taker.start()
            while self._taking() or self.held or not self.inbox.empty():
                self._turn()
            self.client.close()
            self.done.set_result(None)
        except BaseException as error:
            self.done.set_exception(error)

    def _taking(self) -> bool:
        return self.taker.is_alive() and not self.gone

    def _turn(self) -> None:
        self._hear(self._pause())
        now = time.monotonic()
        if self.answers and now >= self.rest:
            self._answer()
        if due := [held for held in self.held.values() if held.look <= now]:
            self._look(due)
        if self.taker.stopping and self._taking():
            self._end_take()

    def _pause(self) -> float | None:
        if self.taker.stopping and self._taking():
            return STOPS
        times = [held.look for held in self.held.values()]
        if self.answers:
            times.append(self.rest)
        first = min(times, default=inf)
        return None if first == inf else max(0, first - time.monotonic())

    def _hear(self, pause: float | None) -> None:
        try:
            self._heard(*self.inbox.get(timeout=pause))
            while True:
                self._heard(*self.inbox.get_nowait())
        except Empty:
            pass

    def _heard(self, job: Job | None, words: tuple[Any, ...]) -> None:
        if job is None:
            return
        if not words:
            self.held[job.receipt] = Held(job, self.lease)
            words = self._begun(job)
        if words:
            self.answers[job.receipt] = (job, words)

    def _begun(self, job: Job) -> tuple[Any, ...]:
        """Returns the answer, if it is known already: twjobd handed out the job before it was told
        that no more are wanted, or nobody is left who runs handlers."""
        if not self.taker.stopping:
            try:
                self.begin(job)
                return ()
            except RuntimeError:
                self.stop()
        return ("TW.NACK", "UNTRIED")

    def _answer(self) -> None:
        """Sends answers, until twjobd has taken them or says that they come too late."""
        sent = list(self.answers.values())
        told = self.client.ask_all([(verb, job.queue, job.receipt, *words)
                                    for job, (verb, *words) in sent])
        for (job, words), answer in zip(sent, told):
            if isinstance(answer, JobError):
                if answer.code in PASSING:
                    self.rest = time.monotonic() + AGAIN
                    continue
                logger.warning("%s of job %d of %s: %s", words[0], job.id, job.queue, answer)
            del self.answers[job.receipt]
            del self.held[job.receipt]
            self.taker.room.release()

    def _look(self, due: list[Held]) -> None:
        """The first look sees how long the lease is, unless the worker tells so."""
        for held, answer in zip(due, self.client.ask_all([
                ("TW.EXTEND", held.job.queue, held.job.receipt, *self._seconds())
                if held.span else ("TW.GET", held.job.queue, held.job.id) for held in due])):
            if isinstance(answer, JobError) and answer.code == "STALE":
                held.job.lost, held.look = True, inf
            elif isinstance(answer, JobError):
                held.look = time.monotonic() + AGAIN
            else:
                held.span = held.span or max(self._left(answer) / 3, 0.001)
                held.look = time.monotonic() + held.span

    def _seconds(self) -> tuple[float, ...]:
        return () if self.lease is None else (self.lease,)

    @staticmethod
    def _left(answer: Any) -> float:
        """Returns the time of the lease, as TW.GET tells it. 0: the worker does not have the job
        any more."""
        if isinstance(answer, list):
            answer = dict(zip(answer[::2], answer[1::2]))
        return float((answer or {}).get(b"lease_left_ms", 0)) / 1000

    def _end_take(self) -> None:
        """A take that waits is answered when twjobd is told to answer it. A take that is only just
        being sent needs a second word."""
        if self.taker.number is None:
            self.taker.room.release()     # which the thread may wait for
            return
        answer, = self.client.ask_all([("CLIENT", "UNBLOCK", self.taker.number)])
        self.gone = isinstance(answer, JobError) and answer.code == "UNAVAILABLE"
        self.taker.room.release()
