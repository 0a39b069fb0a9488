# SPDX-License-Identifier: GPL-2.0-only
"""figures.py [BROKER [COUNT]]: what so many tasks for in an hour, 20,000 unless it is told, cost a
worker's main process; and how late tasks begin of which one is due each 20 ms. BROKER is the
URL of another broker to compare with."""
import contextlib
import re
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

from daemon import Daemon, eventually
from worker import Work

import timewheel_kombu

DUE = 1000
"""Tasks of which it is seen how late they begin."""


def memory(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def remember(app, worker, count, together):
    app.add.delay(1, 2).get(timeout=60)
    before = memory(worker)
    with together():
        for i in range(count):
            app.add.apply_async((i, i), countdown=3600)
    app.add.delay(1, 2).get(timeout=60)
    time.sleep(5)
    print(f"{count} tasks for in an hour; the worker's main process: {before:.1f} MB before, "
          f"{memory(worker):.1f} MB after")


def begin_in_time(work, app, together):
    due = {f"t{i}": time.time() + 5 + i / 50 for i in range(DUE)}
    with together():
        for name, at in due.items():
            app.run.apply_async((name,), eta=datetime.fromtimestamp(at, timezone.utc))
    eventually(lambda: len(work.lines()) == 2 * DUE, 120)
    late = sorted(1000 * (float(at) - due[name]) for name, at in work.lines() if name in due)
    print(f"{DUE} tasks, one each 20 ms, began {late[0]:.1f} ms late at least, "
          f"{late[DUE // 2]:.1f} ms at the median, {late[DUE * 99 // 100]:.1f} ms at 99 % and "
          f"{late[-1]:.1f} ms at most")


def main(broker=None, count=20000):
    work = Work(Daemon())
    together = timewheel_kombu.together
    if broker:
        work.environment["BROKER"], together = broker, contextlib.nullcontext
    app = work.app()
    worker = work.start("-c", "1")
    remember(app, worker, int(count), together)
    begin_in_time(work, app, together)
    work.stop()
    work.daemon.stop()


main(*sys.argv[1:])
