# SPDX-License-Identifier: LGPL-2.1-or-later
"""Jobs of twjobd(8): work that is to be done later, and that no crash may lose.

A queue takes jobs, and a worker has a handler work on them when they are due::

    from timewheel.jobs import Queue, Worker

    mails = Queue("mails")
    mails.add({"order": 4711}, delay=48 * 3600, key="rate-4711", tries=5)

    worker = Worker("mails", lambda job: send(job.json()), concurrency=10)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()

AsyncQueue and AsyncWorker do it with asyncio. Both are by the same threads, which are the
module's own: they extend the leases, so that neither a handler that computes for long nor
a loop that is held up loses a job.

A server is the path of twjobd's socket, or a URL: redis://:PASSWORD@HOST:PORT, or
unix://:PASSWORD@/PATH. Spans are seconds, int or float. twjob-protocol(7) tells more of each
option. What twjobd refuses is a JobError, which says what to do. The module needs redis-py,
and not libtimewheel.
"""

import asyncio
import json
import traceback
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from math import ceil
from typing import Any, Awaitable, Callable, Concatenate, NamedTuple, ParamSpec, TypeVar

from ._jobs_client import DEFAULT_SERVER, Client, JobError
from ._jobs_keeper import Job, Keeper, logger

__all__ = ["Added", "AsyncQueue", "AsyncWorker", "Bury", "Job", "JobError", "Queue", "Worker"]

LONGEST_REASON = 1024

P = ParamSpec("P")
T = TypeVar("T")


class Added(NamedTuple):
    """The number of a job, and NEW if it has been put. EXISTS, BURIED, REPLACED and DONE tell
    of the job of the key that is there."""

    id: int
    outcome: str


class Bury(Exception):
    """A handler that raises this error has its job buried, whatever tries are left."""


def _seconds(span: float) -> str:
    return f"{span:.6f}"


def _time(delay: float | None, at: datetime | float | None) -> tuple[Any, ...]:
    if delay is not None and at is not None:
        raise TypeError("delay and at are both given")
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise ValueError("at has no time zone; datetime.now(timezone.utc) has one")
        at = at.timestamp()
    if at is not None:
        return ("AT", ceil(at * 1000))
    return ("IN", _seconds(delay)) if delay else ()


class Queue:
    """Puts jobs; any number of threads may use it. A call waits for @patience seconds while
    twjobd is restarted."""

    def __init__(self, name: str, server: str = DEFAULT_SERVER, *,
                 patience: float = 10) -> None:
        self.name = name
        self._client = Client(server, patience)

    def add(self, body: Any, *, delay: float | None = None,
            at: datetime | float | None = None, key: str | None = None,
            replace: bool = False, unique: float | None = None, group: str | None = None,
            lease: float | None = None, tries: int | None = None,
            backoff: float | tuple[float, float] | None = None) -> Added:
        """Puts a job. A body that is neither str nor bytes becomes JSON. A job without a key
        gets one of its own, since a put whose answer is lost is sent again."""
        words: list[Any] = [*_time(delay, at), "KEY", key or uuid.uuid4().hex]
        if replace:
            words += ["REPLACE"]
        if unique is not None:
            words += ["UNIQUE", _seconds(unique)]
        if group is not None:
            words += ["GROUP", group]
        if lease is not None:
            words += ["LEASE", _seconds(lease)]
        if tries is not None:
            words += ["TRIES", tries]
        if backoff is not None:
            first, most = backoff if isinstance(backoff, tuple) else (backoff, backoff)
            words += ["BACKOFF", _seconds(first), _seconds(most)]
        text = body if isinstance(body, (str, bytes)) else json.dumps(body)
        number, word = self._client.ask("TW.PUT", self.name, text, *words)
        outcome = word.decode()
        return Added(int(number), "NEW" if key is None and outcome == "EXISTS" else outcome)

    def cancel(self, key: str) -> bool:
        """Ends the job of a key. Returns False if there is none."""
        return bool(self._client.ask("TW.CANCELKEY", self.name, key))

    def move(self, key: str, *, delay: float | None = None,
             at: datetime | float | None = None) -> bool:
        """Makes the job of a key due at another time. Returns False if there is none."""
        return bool(self._client.ask("TW.MOVEKEY", self.name, key,
                                     *(_time(delay, at) or ("IN", "0"))))

    def close(self) -> None:
        self._client.close()


def _threaded(method: Callable[Concatenate[Queue, P], T]) -> \
        Callable[Concatenate["AsyncQueue", P], Awaitable[T]]:
    async def call(self: "AsyncQueue", /, *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, partial(method, self._queue, *args, **options))
    call.__doc__ = method.__doc__
    return call


class AsyncQueue:
    """A Queue for asyncio: its calls are coroutines. One that is cancelled may be carried out
    all the same."""

    def __init__(self, name: str, server: str = DEFAULT_SERVER, *,
                 patience: float = 10) -> None:
        self._queue = Queue(name, server, patience=patience)
        self._threads = ThreadPoolExecutor(32, "timewheel-queue")

    add = _threaded(Queue.add)
    cancel = _threaded(Queue.cancel)
    move = _threaded(Queue.move)

    def close(self) -> None:
        self._threads.shutdown(wait=False)
        self._queue.close()


class _Working:
    """The common part of both workers: the answer after the end of a handler."""

    def __init__(self, queue: str, concurrency: int, lease: float | None, server: str) -> None:
        self._keeper = Keeper(queue, concurrency, lease, server)

    def stop(self) -> None:
        """Takes no more jobs; run() returns when those that have begun have ended. Signal
        handlers and other threads may call it."""
        self._keeper.stop()

    def _failed(self, job: Job, error: BaseException) -> None:
        logger.warning("job %d of %s has failed", job.id, job.queue, exc_info=error)
        reason = traceback.format_exception_only(type(error), error)[-1].strip()
        self._keeper.end(job, "TW.BURY" if isinstance(error, Bury) else "TW.NACK", "REASON",
                         reason.removeprefix(f"{__name__}.Bury: ")
                         .encode(errors="replace")[:LONGEST_REASON])


class Worker(_Working):
    """Takes jobs that are due, and has the handler work on them, @concurrency at a time, in
    threads. A job is done when the handler returns. If it raises, the job comes again as its
    BACKOFF tells, with the exception as the reason. Extensions are for @lease seconds, or for
    the lease of the job; none makes a lease shorter."""

    def __init__(self, queue: str, handler: Callable[[Job], object], *, concurrency: int = 1,
                 lease: float | None = None, server: str = DEFAULT_SERVER) -> None:
        super().__init__(queue, concurrency, lease, server)
        self._handler = handler
        self._concurrency = concurrency

    def run(self) -> None:
        """Works until stop() is called, once. Errors of twjobd are told to the logger
        timewheel.jobs, and the worker goes on."""
        with ThreadPoolExecutor(self._concurrency, "timewheel-handler") as threads:
            self._keeper.begin = lambda job: threads.submit(self._work, job)
            self._keeper.start()
            try:
                self._keeper.done.result()
            except BaseException:         # as by Ctrl-C
                self.stop()
                self._keeper.join()
                raise

    def _work(self, job: Job) -> None:
        try:
            self._handler(job)
        except BaseException as error:
            self._failed(job, error)
        else:
            self._keeper.end(job, "TW.ACK")


class AsyncWorker(_Working):
    """A Worker for asyncio: its handler is a coroutine function. What it has begun is
    cancelled when run() is, and comes again."""

    def __init__(self, queue: str, handler: Callable[[Job], Awaitable[object]], *,
                 concurrency: int = 1, lease: float | None = None,
                 server: str = DEFAULT_SERVER) -> None:
        super().__init__(queue, concurrency, lease, server)
        self._handler = handler
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._keeper.begin = lambda job: loop.call_soon_threadsafe(self._start, job)
        self._keeper.start()
        ended = asyncio.wrap_future(self._keeper.done)
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            self.stop()
            for task in self._tasks:
                task.cancel()
            await ended
            raise

    def _start(self, job: Job) -> None:
        task = asyncio.create_task(self._work(job))
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, job))

    async def _work(self, job: Job) -> None:
        await self._handler(job)

    def _ended(self, job: Job, task: asyncio.Task[None]) -> None:
        """The handler of a task that is cancelled may not have begun."""
        self._tasks.discard(task)
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self._keeper.end(job, "TW.ACK")
        else:
            self._failed(job, error)
