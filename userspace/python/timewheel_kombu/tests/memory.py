# SPDX-License-Identifier: GPL-2.0-only
"""What tasks for in an hour cost a worker's main process: its memory before and after."""
import re
import time
from pathlib import Path

from daemon import Daemon
from worker import Work

import timewheel_kombu

TASKS = 20000


def memory(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def main():
    work = Work(Daemon())
    app = work.app()
    worker = work.start("-c", "1")
    app.add.delay(1, 2).get(timeout=60)
    before = memory(worker)
    with timewheel_kombu.together():
        for i in range(TASKS):
            app.add.apply_async((i, i), countdown=3600)
    app.add.delay(1, 2).get(timeout=60)
    time.sleep(5)
    print(f"{TASKS} tasks for in an hour; the worker's main process: {before:.1f} MB before, "
          f"{memory(worker):.1f} MB after; pending: {work.daemon.stats('celery')['pending']}")
    work.stop()
    work.daemon.stop()


main()
