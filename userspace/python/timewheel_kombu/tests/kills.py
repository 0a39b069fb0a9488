# SPDX-License-Identifier: GPL-2.0-only
"""kills.py [COUNT]: a ledger over so many kills of the worker and of twjobd, 6 unless it is
told, while tasks are sent. Each task that was sent has to end. Prints TAP."""
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from daemon import Daemon, eventually
from worker import Work

from kombu.exceptions import OperationalError

KILLS = ("the worker", "twjobd", "the worker's main process", "twjobd, by SIGTERM",
         "the worker, by SIGTERM", "a process of the worker's pool")


class Sender(threading.Thread):
    def __init__(self, app):
        super().__init__(daemon=True)
        self.app, self.sent, self.ends = app, [], False

    def run(self):
        number = 0
        while not self.ends:
            number += 1
            try:
                self.app.run.apply_async((f"t{number}", 0.02), countdown=number % 3)
                self.sent.append(f"t{number}")
            except OperationalError:
                pass          # the task was not promised
            time.sleep(0.02)


def kill(work, worker, what):
    """Returns the worker that goes on."""
    if what.startswith("twjobd"):
        work.daemon.stop(signal.SIGTERM if "SIGTERM" in what else signal.SIGKILL)
        work.daemon.start()
        return worker
    if "pool" in what:
        pool = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
        os.kill(int(pool[0]), signal.SIGKILL)
        return worker
    if what == "the worker":
        work.kill(worker)
    else:
        worker.send_signal(signal.SIGTERM if "SIGTERM" in what else signal.SIGKILL)
        worker.wait(60)
    heir = work.start("-c", "2")
    work.kill(worker)         # children of its pool may be left
    return heir


def main(count):
    work = Work(Daemon(store="disk"), LEASE=1, TRIES=1000)
    sender = Sender(work.app())
    worker = work.start("-c", "2")
    sender.start()
    for number in range(count):
        before = len(work.lines())
        try:
            eventually(lambda: len(work.lines()) > before + 10, 60)
        except AssertionError:
            print(f"# after {number} kills nothing is run; sending: {sender.is_alive()}, "
                  f"{len(sender.sent)} sent; {work.daemon.stats('celery')}")
            print("# " + "\n# ".join(worker.log.read_text().splitlines()[-30:]))
            raise
        worker = kill(work, worker, KILLS[number % len(KILLS)])
    sender.ends = True
    sender.join()
    eventually(lambda: not work.daemon.jobs("celery"), 120)
    work.stop()
    ended = Counter(line[0] for line in work.lines() if line[0].endswith("-end"))
    lost = [name for name in sender.sent if f"{name}-end" not in ended]
    print(f"# {count} kills, {len(sender.sent)} tasks sent, {sum(ended.values())} runs ended")
    print(f"# lost: {lost}" if lost else "# none was lost")
    print(f"{'not ok' if lost or not sender.sent else 'ok'} 1 - "
          f"each task that was sent has ended, over {count} kills\n1..1")
    work.daemon.stop()
    return bool(lost)


sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else len(KILLS)))
