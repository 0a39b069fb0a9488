# SPDX-License-Identifier: GPL-2.0-only
"""Celery's workers as processes, and what they did."""
import atexit
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from daemon import eventually


class Work:
    """A folder with results and a ledger, and the workers on it."""

    def __init__(self, daemon, **environment):
        self.daemon = daemon
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=daemon.folder))
        self.ledger = self.folder / "ledger"
        self.ledger.touch()
        (self.folder / "results").mkdir()
        self.environment = {
            "BROKER": daemon.url, "RESULTS": f"file://{self.folder}/results",
            "LEDGER": str(self.ledger), "C_FORCE_ROOT": "1",
            **{name: str(value) for name, value in environment.items()}}
        self.workers = []

    def app(self):
        """Returns the module of tasks, with this environment."""
        os.environ.update(self.environment)
        sys.modules.pop("app", None)
        import app
        return app

    def start(self, *arguments, wait=True, app="app"):
        log = open(self.folder / f"worker{len(self.workers)}", "w+")
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", app, "worker", "-l", "INFO",
             "--without-mingle", "--without-gossip", "-n", f"w{len(self.workers)}@test",
             *arguments], stdout=log, stderr=log, env={**os.environ, **self.environment},
            start_new_session=True)
        worker.log = pathlib.Path(log.name)
        self.workers.append(worker)
        atexit.register(self.kill, worker)
        if wait:
            self.wait(worker)
        return worker

    @staticmethod
    def wait(worker):
        def ready():
            assert worker.poll() is None, worker.log.read_text()
            return " ready." in worker.log.read_text()
        eventually(ready, 60)

    @staticmethod
    def kill(worker):
        """Kills the worker at once, with the processes of its pool."""
        try:
            os.killpg(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        worker.wait()

    def stop(self):
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGTERM)
        for worker in self.workers:
            worker.wait(60)

    def lines(self):
        return [line.split() for line in self.ledger.read_text().splitlines()]

    def times(self, name):
        """Returns when the task of this name was begun."""
        return [float(line[1]) for line in self.lines() if line[0] == name]
