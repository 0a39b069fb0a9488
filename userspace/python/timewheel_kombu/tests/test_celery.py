# SPDX-License-Identifier: GPL-2.0-only
"""An unchanged app, and real workers."""
import os
import signal
import subprocess
import sys
import unittest
from datetime import datetime, timedelta, timezone

from daemon import Daemon, eventually
from worker import Work

import timewheel_kombu
from celery import chain, chord, group


class Case(unittest.TestCase):
    queue = "celery"

    def begin(self, **environment):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.stop)
        work = Work(self.daemon, **environment)
        self.addCleanup(lambda: [work.kill(worker) for worker in work.workers])
        return work, work.app()


class Prefork(Case):
    def test_what_celery_can_do(self):
        work, app = self.begin(LEASE=1)
        work.start("-c", "2")
        self.assertEqual(app.add.delay(1, 2).get(timeout=30), 3)
        due = datetime.now(timezone.utc) + timedelta(seconds=0.8)
        app.run.apply_async(("eta",), eta=due)
        app.run.apply_async(("moved",), countdown=1000, task_id="moved")
        self.assertTrue(timewheel_kombu.move(app.app, "moved", due))
        long = app.run.apply_async(("long", 3))
        retried = app.third_time.delay()
        app.refuse.apply_async(task_id="refused")
        self.assertEqual(chain(app.add.s(1, 2), app.add.s(3))().get(timeout=30), 6)
        self.assertEqual(group(app.add.s(i, i) for i in range(20))().get(timeout=30),
                         [2 * i for i in range(20)])
        self.assertEqual(
            chord([app.add.s(i, i) for i in range(10)], app.total.s())().get(timeout=30), 90)
        self.assertEqual(retried.get(timeout=30), 2)
        long.get(timeout=30)
        for name in "eta", "moved":
            time_of, = eventually(lambda: work.times(name))
            self.assertGreaterEqual(time_of, due.timestamp())
        # The task's lease of a second was extended.
        self.assertEqual(len(work.times("long")), 1)
        eventually(lambda: [job["state"] for job in self.daemon.jobs("celery")] == [b"buried"])
        self.assertEqual(self.daemon.stats("celery")["lapsed"], 0)
        self.assertEqual(self.daemon.jobs("celery")[0]["key"], b"refused.0")
        work.stop()

    def test_a_worker_that_stops_ends_what_it_has_begun_and_gives_back_the_rest(self):
        work, app = self.begin()
        worker = work.start("-c", "1")
        for i in range(4):
            app.run.delay(f"t{i}", 3)
        eventually(lambda: self.daemon.stats("celery")["held"] == 4 and work.lines())
        # Tasks that are due at once may be begun in any order.
        begun = work.lines()[0][0]
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)
        self.assertEqual([line[0] for line in work.lines()], [begun, f"{begun}-end"])
        jobs = self.daemon.jobs("celery")
        self.assertEqual((len(jobs), {job["state"] for job in jobs}), (3, {b"ready"}))
        self.assertEqual({job[3] for job in self.daemon("TW.TAKE", "celery", "COUNT", 9)}, {1})

    def test_a_task_that_kills_its_workers_is_buried_after_its_tries(self):
        work, app = self.begin(LEASE=0.5, TRIES=2)
        app.kill_worker.delay()
        for _ in range(2):
            work.start("-P", "solo", wait=False).wait(60)
        # The next one who asks gets nothing.
        job, = eventually(lambda: self.daemon("TW.TAKE", "celery") or
                          self.daemon.jobs("celery", "buried"))
        self.assertEqual(job["reason"], b"the lease was over")
        self.assertEqual(len(work.lines()), 2)

    def test_a_task_whose_process_of_the_pool_is_killed_comes_again(self):
        """As the kernel does it when memory is short. The worker itself goes on. On a busy machine
        the pool may lose a try before the task has begun."""
        work, app = self.begin(TRIES=4)
        work.start("-c", "1")
        app.kill_worker.delay()
        eventually(lambda: self.daemon.jobs("celery", "buried"))
        self.assertIn(len(work.lines()), (2, 3, 4))
        self.assertEqual(app.add.delay(1, 2).get(timeout=30), 3)

    def test_an_unknown_task_is_buried_with_its_name(self):
        work, app = self.begin()
        work.start("-c", "1")
        app.app.send_task("no.such.task")
        job, = eventually(lambda: self.daemon.jobs("celery", "buried"))
        self.assertIn(b"no.such.task", job["reason"])
        self.assertEqual(app.add.delay(1, 2).get(timeout=30), 3)


class OtherPools(Case):
    POOLS = (("-P", "solo"), ("-P", "threads", "-c", "2"), ("-P", "gevent", "-c", "2"))

    def test_tasks_that_are_longer_than_the_lease_run_once(self):
        """The tasks are taken before they can begin, too."""
        begun = [(pool, *self.begin(LEASE=1)) for pool in self.POOLS]
        for pool, work, app in begun:
            for i in range(3):
                app.run.delay(f"t{i}", 1.5)
            work.start(*pool, wait=False)
        for pool, work, _ in begun:
            with self.subTest(pool=pool):
                eventually(lambda: not work.daemon.jobs("celery"), 60)
                self.assertEqual([len(work.times(f"t{i}")) for i in range(3)], [1, 1, 1])
                self.assertEqual(work.daemon.stats("celery")["lapsed"], 0)
                work.stop()


class Examples(Case):
    EXAMPLES = (("flask", "shop:celery", "shop"), ("django", "shop", "order"))

    def test_flask_and_django(self):
        works = []
        for folder, app, module in self.EXAMPLES:
            work, _ = self.begin(DELAY=1)
            work.environment["PYTHONPATH"] = ":".join(
                [os.path.abspath(f"../examples/{folder}"), *filter(None, sys.path)])
            work.start("-c", "1", wait=False, app=app)
            done = subprocess.run([sys.executable, "-m", module], text=True, timeout=60,
                                  env={**os.environ, **work.environment},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)
            works.append(work)
        for work in works:
            eventually(lambda: "rate your order 4711" in work.workers[0].log.read_text(), 60)
            work.stop()
