# SPDX-License-Identifier: GPL-2.0-only
"""kills.py [COUNT]: a ledger over so many kills of the worker and of twjobd, 5 unless it is
told, while jobs are put. Each job that was put has to be done. Prints TAP."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from daemon import Daemon, eventually
from timewheel.jobs import JobError, Queue

KILLS = ("the worker", "twjobd", "the worker", "the worker, by SIGTERM", "the worker")


class Sender(threading.Thread):
    def __init__(self, queue: Queue) -> None:
        super().__init__(daemon=True)
        self.queue, self.sent, self.ends = queue, list[str](), False

    def run(self) -> None:
        number = 0
        while not self.ends:
            number += 1
            try:
                self.queue.add(f"j{number}", delay=number % 3 / 10)
                self.sent.append(f"j{number}")
            except JobError:
                pass          # the put was not promised
            time.sleep(0.002)


class Ledger:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.daemon = Daemon(store="disk")
        self.daemon("TW.CREATE", "q", "LEASE", 0.5, "TRIES", 0)
        self.path: Path = self.daemon.folder / "ledger"
        self.path.touch()
        self.sender = Sender(Queue("q", str(self.daemon.path)))

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "worker.py", self.kind,
                                 str(self.daemon.path), "q", str(self.path)])

    def kill(self, worker: subprocess.Popen[bytes], what: str) -> subprocess.Popen[bytes]:
        """Returns the worker that goes on."""
        if what == "twjobd":
            self.daemon.stop(signal.SIGKILL)
            self.daemon.start()
            return worker
        worker.send_signal(signal.SIGTERM if "SIGTERM" in what else signal.SIGKILL)
        status = worker.wait(60)
        assert status in (0, -signal.SIGKILL), status
        return self.start()

    def lost(self, count: int) -> list[str]:
        """Returns jobs that were put and never done, over so many kills."""
        worker = self.start()
        self.sender.start()
        for number in range(count):
            before = len(self.lines())
            eventually(lambda: len(self.lines()) > before + 10, 60)
            worker = self.kill(worker, KILLS[number % len(KILLS)])
        self.sender.ends = True
        self.sender.join()
        eventually(lambda: not self.daemon.jobs("q"), 120)
        worker.terminate()
        worker.wait(60)
        self.daemon.stop()
        done = self.lines()
        print(f"# {self.kind}: {count} kills, {len(self.sender.sent)} jobs put, "
              f"{len(done) - len(set(done))} done twice")
        return [name for name in self.sender.sent if name not in set(done)]


def main(count: int) -> bool:
    failed = False
    for number, kind in enumerate(("threads", "asyncio"), 1):
        ledger = Ledger(kind)
        lost = ledger.lost(count)
        bad = bool(lost) or not ledger.sender.sent
        failed |= bad
        print(f"# lost: {lost}" if lost else "# none was lost")
        print(f"{'not ok' if bad else 'ok'} {number} - {kind}: each job that was put is done, "
              f"over {count} kills", flush=True)
    print("1..2")
    return failed


sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
