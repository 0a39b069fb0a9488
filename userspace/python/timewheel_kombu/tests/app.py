# SPDX-License-Identifier: GPL-2.0-only
"""The app of the workers in tests. Each run of a task is a line in the file LEDGER."""
import os
import signal
import time

from celery import Celery

app = Celery("app", broker=os.environ["BROKER"], backend=os.environ["RESULTS"])
app.conf.update(
    broker_transport_options={"lease": float(os.environ.get("LEASE", "2")),
                              "tries": int(os.environ.get("TRIES", "10"))},
    worker_prefetch_multiplier=4, result_chord_retry_interval=0.1)


def note(*words):
    with open(os.environ["LEDGER"], "a") as file:
        file.write(" ".join(map(str, words)) + "\n")


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)


@app.task(acks_late=True, reject_on_worker_lost=True)
def run(name, seconds=0):
    note(name, time.time())
    time.sleep(seconds)
    note(name + "-end", time.time())


@app.task(bind=True, max_retries=5, acks_late=True)
def third_time(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0.3)
    return self.request.retries


@app.task(acks_late=True, reject_on_worker_lost=True)
def kill_worker():
    note("kill")
    os.kill(int(os.environ.get("VICTIM", os.getpid())), signal.SIGKILL)


@app.task(bind=True, acks_late=True)
def refuse(self):
    from celery.exceptions import Reject
    raise Reject("no", requeue=False)
