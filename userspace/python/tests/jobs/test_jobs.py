# SPDX-License-Identifier: GPL-2.0-only
"""Queues and workers, with a twjobd whose wheels are those of its process."""

import asyncio
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any, Callable

from daemon import Daemon, Proxy, eventually, free_port
from timewheel.jobs import AsyncQueue, AsyncWorker, Bury, Job, JobError, Queue, Worker

HOUR = 3600

daemon: Any


def setUpModule() -> None:
    global daemon
    daemon = Daemon("max-body = 1048576", store="disk")
    logging.getLogger("timewheel.jobs").addHandler(logging.NullHandler())


def tearDownModule() -> None:
    daemon.stop()


class InLoop:
    """An AsyncWorker with its loop in a thread."""

    def __init__(self, queue: str, handler: Callable[[Job], object], **options: Any) -> None:
        async def work(job: Job) -> None:
            if asyncio.iscoroutine(result := handler(job)):
                await result
        self.worker = AsyncWorker(queue, work, **options)
        self.stop = self.worker.stop

    def run(self) -> None:
        asyncio.run(self.worker.run())


class Case(unittest.TestCase):
    count = 0
    kinds: tuple[Any, ...] = (Worker, InLoop)

    def queue(self, *settings: Any, server: Any = None) -> Queue:
        """Makes a queue for the test alone."""
        Case.count += 1
        name = f"q{Case.count}"
        daemon("TW.CREATE", name, *settings)
        queue = Queue(name, str((server or daemon).path))
        self.addCleanup(queue.close)
        return queue

    def work(self, kind: Any, queue: Queue, handler: Callable[[Job], object],
             **options: Any) -> Callable[[], None]:
        """Lets a worker run. The returned function stops it and waits for its end."""
        worker = kind(queue.name, handler, **{"server": str(daemon.path), **options})
        thread = threading.Thread(target=worker.run)

        def end() -> None:
            worker.stop()
            thread.join()
        thread.start()
        self.addCleanup(end)
        return end

    def told(self, queue: Queue, number: int) -> dict[str, Any]:
        answer: list[Any] = daemon("TW.GET", queue.name, number) or []
        return {name.decode(): value for name, value in zip(answer[::2], answer[1::2])}

    def empty(self, queue: Queue) -> None:
        eventually(lambda: daemon.stats(queue.name)["jobs"] == 0)


class Queues(Case):
    def test_options_are_those_of_a_put(self) -> None:
        queue = self.queue()
        added = queue.add("x", delay=HOUR, key="a", lease=5, tries=3, backoff=(1, 60),
                          group="customer-17")
        self.assertEqual(added.outcome, "NEW")
        job = self.told(queue, added.id)
        self.assertEqual(
            [job[name] for name in ("state", "lease_ms", "tries", "backoff_ms",
                                    "backoff_most_ms", "group")],
            [b"delayed", 5000, 3, 1000, 60000, b"customer-17"])
        self.assertEqual(queue.add("y", key="a"), (added.id, "EXISTS"))
        self.assertEqual(queue.add("y", key="a", replace=True, delay=1000, unique=2).outcome,
                         "REPLACED")
        self.assertEqual(self.told(queue, added.id)["unique_ms"], 2000)
        at = datetime.now(timezone.utc) + timedelta(hours=2)
        self.assertTrue(queue.move("a", at=at))
        self.assertLess(abs(self.told(queue, added.id)["due"] - at.timestamp() * 1000), 2)
        self.assertTrue(queue.cancel("a"))
        self.assertFalse(queue.cancel("a"))
        self.assertFalse(queue.move("a", delay=0))
        with self.assertRaisesRegex(TypeError, "both given"):
            queue.add("x", delay=1, at=1)
        with self.assertRaisesRegex(ValueError, "time zone"):
            queue.add("x", at=datetime.now())

    def test_a_put_whose_answer_is_lost_puts_one_job(self) -> None:
        proxy = Proxy(daemon)
        proxy.cut = ["TW.PUT"]
        queue = self.queue(server=proxy)
        self.assertEqual(queue.add("x").outcome, "NEW")
        self.assertEqual(proxy.verbs().count("TW.PUT"), 2)
        self.assertEqual(daemon.stats(queue.name)["jobs"], 1)

    def test_a_put_that_cannot_be_accepted_now_is_sent_again(self) -> None:
        proxy = Proxy(daemon)
        proxy.refusals = {"TW.PUT": ["BUSY", "UNAVAILABLE the disk", "LOADING"]}
        queue = self.queue(server=proxy)
        self.assertEqual(queue.add("x").outcome, "NEW")
        self.assertEqual(daemon.stats(queue.name)["jobs"], 1)

    def test_a_call_after_a_restart_of_twjobd_needs_no_patience(self) -> None:
        queue = Queue(self.queue().name, str(daemon.path), patience=0)
        queue.add("x")
        daemon.stop()
        daemon.start()
        queue.add("x")
        queue.close()

    def test_libtimewheel_is_not_needed(self) -> None:
        queue = self.queue()
        with tempfile.TemporaryDirectory() as folder:
            # This file, which is no library, stands before one of the system.
            open(f"{folder}/libtimewheel.so.1", "w").close()
            subprocess.run([sys.executable, "-c", "import sys; from timewheel.jobs import Queue; "
                            "Queue(*sys.argv[1:]).add('x')", queue.name, str(daemon.path)],
                           env=os.environ | {"LD_LIBRARY_PATH": folder}, check=True)
        self.assertEqual(daemon.stats(queue.name)["jobs"], 1)

    def test_asyncio_has_the_same_calls(self) -> None:
        queue = self.queue()

        async def main() -> None:
            mails = AsyncQueue(queue.name, str(daemon.path))
            added = await asyncio.gather(*(mails.add({"n": i}, delay=HOUR, key=f"k{i}")
                                           for i in range(40)))
            self.assertEqual(len({one.id for one in added}), 40)
            self.assertTrue(await mails.move("k1", delay=0))
            self.assertTrue(await mails.cancel("k2"))
            with self.assertRaisesRegex(JobError, "^TOOBIG"):
                await mails.add(bytes(1 << 21))
            mails.close()
        asyncio.run(main())
        self.assertEqual(daemon.stats(queue.name)["jobs"], 39)


class Errors(Case):
    def fails(self, queue: Queue, code: str, advice: str, body: Any = "x") -> None:
        with self.assertRaisesRegex(JobError, advice) as caught:
            queue.add(body)
        self.assertEqual(caught.exception.code, code)
        self.assertNotIn("secret", str(caught.exception))
        queue.close()

    def test_what_is_refused_says_what_to_do(self) -> None:
        queue = self.queue("MAXJOBS", 1)
        queue.add("x", delay=HOUR)
        self.fails(queue, "FULL", '^FULL .*: give the queue more room with "twjob create"')
        self.fails(Queue("none", str(daemon.path)), "NOQUEUE", 'make it with "twjob create"')
        self.fails(queue, "TOOBIG", "raise max-body", bytes(1 << 21))
        self.assertEqual(daemon.stats(queue.name)["jobs"], 1)

    def test_a_twjobd_that_does_not_answer(self) -> None:
        for server in str(daemon.folder / "nobody"), f"redis://:secret@localhost:{free_port()}":
            queue = Queue("q", server, patience=0)
            self.fails(queue, "UNAVAILABLE", "(nobody|localhost:[0-9]+): is it running?")

    def test_a_password(self) -> None:
        port = free_port()
        locked = Daemon(f"listen = 127.0.0.1:{port}", "password = secret")
        self.addCleanup(locked.stop)
        locked("TW.CREATE", "q")
        for server, code in ((f"redis://:wrong@127.0.0.1:{port}", "WRONGPASS"),
                             (f"redis://127.0.0.1:{port}", "NOAUTH")):
            self.fails(Queue("q", server), code, "give the password")
        Queue("q", f"redis://:secret@127.0.0.1:{port}").add("x")
        self.assertEqual(locked.stats("q")["jobs"], 1)

    def test_a_twjobd_that_is_too_old(self) -> None:
        for text in "unknown command 'TW.PUT'", "expected IN or AT":
            proxy = Proxy(daemon)
            proxy.refusals = {"TW.PUT": [f"ERR {text}"]}
            self.fails(Queue("q", str(proxy.path)), "ERR", "this twjobd is too old")


class Workers(Case):
    def each(self, test: Callable[[Any], None]) -> None:
        for kind in self.kinds:
            with self.subTest(kind.__name__):
                test(kind)

    def test_what_is_added_comes_to_the_handler_and_is_done_then(self) -> None:
        def test(kind: Any) -> None:
            queue, got = self.queue(), list[Job]()
            first = queue.add({"order": 7}, key="order-7")
            queue.add("text")
            queue.add(b"\0\xff", at=datetime.now(timezone.utc))
            self.work(kind, queue, got.append)
            self.empty(queue)
            got.sort(key=lambda job: job.id)
            self.assertEqual([job.attempt for job in got], [1, 1, 1])
            self.assertEqual((got[0].id, got[0].key), (first.id, "order-7"))
            self.assertEqual(got[0].json(), {"order": 7})
            self.assertEqual([job.body for job in got[1:]], [b"text", b"\0\xff"])
            self.assertLess(got[0].due, datetime.now(timezone.utc))
        self.each(test)

    def test_a_job_whose_handler_raises_comes_again_or_is_buried(self) -> None:
        def test(kind: Any) -> None:
            queue = self.queue()
            one = queue.add("x", backoff=HOUR).id
            bad = queue.add("bad", backoff=HOUR).id

            def fail(job: Job) -> None:
                raise Bury("no such order") if job.id == bad else \
                    ValueError("no paper" + "\udcff" * (1 << 20))
            self.work(kind, queue, fail)
            eventually(lambda: self.told(queue, bad)["state"] == b"buried")
            eventually(lambda: self.told(queue, one)["state"] == b"delayed")
            self.assertEqual(self.told(queue, bad)["reason"], b"no such order")
            self.assertRegex(self.told(queue, one)["reason"], rb"^ValueError: no paper\?")
            self.assertEqual(self.told(queue, one)["attempts"], 1)
        self.each(test)

    def test_no_more_are_worked_on_at_a_time_than_was_said(self) -> None:
        def test(kind: Any) -> None:
            queue, lock = self.queue(), threading.Lock()
            now = most = 0

            def begin() -> None:
                nonlocal now, most
                with lock:
                    now += 1
                    most = max(most, now)

            def end() -> None:
                nonlocal now
                with lock:
                    now -= 1

            def handle(job: Job) -> Any:
                async def wait() -> None:
                    begin()
                    await asyncio.sleep(0.05)
                    end()
                if kind is InLoop:
                    return wait()
                begin()
                time.sleep(0.05)
                end()
            for _ in range(20):
                queue.add("x")
            self.work(kind, queue, handle, concurrency=4)
            self.empty(queue)
            self.assertEqual(most, 4)
        self.each(test)
        for concurrency in 0, 1.5, 1001:
            with self.assertRaises(ValueError):
                Worker("q", print, concurrency=concurrency)    # type: ignore[arg-type]

    def test_a_handler_that_computes_for_long_loses_no_lease(self) -> None:
        def test(kind: Any) -> None:
            for lease, own in (1.5, None), (2, 1.5):
                queue, attempts = self.queue("LEASE", lease), list[int]()

                def compute(job: Job) -> None:
                    attempts.append(job.attempt)
                    end = time.monotonic() + 4
                    while time.monotonic() < end:
                        sum(range(1000))
                queue.add("x")
                # The worker has room for the job once more if the lease ends.
                end = self.work(kind, queue, compute, lease=own, concurrency=2)
                self.empty(queue)
                end()
                self.assertEqual(attempts, [1])
                self.assertEqual(daemon.stats(queue.name)["lapsed"], 0)
        self.each(test)

    def test_extensions_are_for_as_long_as_the_worker_says(self) -> None:
        def test(kind: Any) -> None:
            queue = self.queue("LEASE", 2)
            self.work(kind, queue, lambda job: eventually(
                lambda: self.told(queue, job.id)["lease_left_ms"] > 100000), lease=600)
            queue.add("x")
            self.empty(queue)
            self.assertEqual(daemon.stats(queue.name)["lapsed"], 0)
        self.each(test)

    def test_a_handler_is_told_that_its_job_is_lost(self) -> None:
        def test(kind: Any) -> None:
            queue, ended = self.queue("LEASE", 0.3), threading.Event()

            def handle(job: Job) -> None:
                daemon("TW.DELETE", queue.name, job.id)
                eventually(lambda: job.lost)
                ended.set()
            with self.assertLogs("timewheel.jobs") as logs:
                queue.add("x")
                end = self.work(kind, queue, handle)
                ended.wait()
                end()
            self.assertRegex(logs.output[-1], "TW.ACK of job .* STALE ")
        self.each(test)

    def test_an_answer_is_sent_again_until_it_is_taken(self) -> None:
        def test(kind: Any) -> None:
            proxy, queue, attempts = Proxy(daemon), self.queue("LEASE", 0.5), list[int]()
            proxy.refusals = {"TW.ACK": ["BUSY", "UNAVAILABLE", "LOADING"]}
            proxy.cut = ["TW.EXTEND"]
            queue.add("x")
            self.work(kind, queue, lambda job: attempts.append(job.attempt),
                      server=str(proxy.path))
            self.empty(queue)
            self.assertEqual(attempts, [1])
            self.assertEqual(proxy.verbs().count("TW.ACK"), 4)
        self.each(test)

    def test_a_worker_that_is_stopped_finishes_what_it_has_and_takes_no_more(self) -> None:
        def test(kind: Any) -> None:
            queue, began, go = self.queue(), threading.Event(), threading.Event()
            one = queue.add("x").id

            def handle(job: Job) -> None:
                began.set()
                go.wait()
            worker = kind(queue.name, handle, concurrency=2, server=str(daemon.path))
            thread = threading.Thread(target=worker.run)
            thread.start()
            began.wait()
            worker.stop()
            late = queue.add("late").id
            go.set()
            thread.join()
            self.assertEqual(self.told(queue, one), {})
            self.assertEqual(self.told(queue, late)["state"], b"ready")
            self.assertEqual(self.told(queue, late)["attempts"], 0)
        self.each(test)

    def test_what_is_handed_out_too_late_is_given_back_untried(self) -> None:
        def test(kind: Any) -> None:
            proxy, queue, got = Proxy(daemon), self.queue("TRIES", 1), list[Job]()
            proxy.gates = {"TW.TAKE": threading.Event()}
            one = queue.add("x").id
            worker = kind(queue.name, got.append, server=str(proxy.path))
            thread = threading.Thread(target=worker.run)
            thread.start()
            eventually(lambda: daemon.stats(queue.name)["held"] == 1)
            worker.stop()
            proxy.gates["TW.TAKE"].set()
            thread.join()
            self.assertEqual(got, [])
            self.assertEqual(self.told(queue, one)["state"], b"ready")
            self.assertEqual(self.told(queue, one)["attempts"], 0)
        self.each(test)

    def test_a_worker_goes_on_when_twjobd_is_killed_and_comes_again(self) -> None:
        def test(kind: Any) -> None:
            queue, seen = self.queue("LEASE", 5), set[int]()

            def handle(job: Job) -> None:
                seen.add(job.id)
                time.sleep(0.005)
            self.work(kind, queue, handle, concurrency=2)
            ids = {queue.add("x").id for _ in range(40)}
            eventually(lambda: len(seen) > 5)
            daemon.stop(9)
            daemon.start()
            ids |= {queue.add("x").id for _ in range(10)}
            self.empty(queue)
            self.assertEqual(seen, ids)
        self.each(test)

    def test_a_worker_can_be_stopped_while_twjobd_is_away(self) -> None:
        def test(kind: Any) -> None:
            queue = self.queue()
            with self.assertLogs("timewheel.jobs") as logs:
                end = self.work(kind, queue, print)
                eventually(lambda: b"cmd=TW.TAKE" in daemon("CLIENT", "LIST"))
                daemon.stop(9)
                eventually(lambda: logs.output)
                end()
            daemon.start()
            self.assertRegex(logs.output[0], "is it running?")
        self.each(test)

    def test_a_worker_may_begin_before_its_queue_is_made(self) -> None:
        def test(kind: Any) -> None:
            queue, got = self.queue(), list[Job]()
            daemon("TW.DROP", queue.name)
            with self.assertLogs("timewheel.jobs") as logs:
                self.work(kind, queue, got.append)
                eventually(lambda: logs.output)
            self.assertRegex(logs.output[0], 'NOQUEUE .*make it with "twjob create"')
            daemon("TW.CREATE", queue.name)
            queue.add("x")
            eventually(lambda: got)
        self.each(test)

    def test_what_a_cancelled_run_had_comes_again(self) -> None:
        queue = self.queue()
        numbers = [queue.add("x", backoff=HOUR).id for _ in range(2)]
        began = set[int]()

        async def handle(job: Job) -> None:
            began.add(job.id)
            await asyncio.sleep(HOUR)

        async def main() -> None:
            worker = AsyncWorker(queue.name, handle, concurrency=3, server=str(daemon.path))
            run = asyncio.create_task(worker.run())
            while len(began) < 2:
                await asyncio.sleep(0.01)
            run.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await run
        asyncio.run(main())
        for number in numbers:
            self.assertEqual(self.told(queue, number)["state"], b"delayed")
            self.assertEqual(self.told(queue, number)["reason"], b"asyncio.exceptions.CancelledError")
