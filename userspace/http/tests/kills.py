# SPDX-License-Identifier: GPL-2.0-only
"""kills.py [COUNT]: a ledger over so many kills of twjob-http and of twjobd, 5 unless it is told,
while jobs are put and posted. Each job that was put has to be posted until its answer was 200.
Prints TAP."""
import itertools
import signal
import sys
import threading
import time

import redis
from daemon import Daemon, eventually
from server import Server, Worker

KILLS = ("twjob", "twjobd", "twjob, by SIGTERM", "twjob", "twjobd, by SIGTERM")


class Sender(threading.Thread):
    """Puts jobs, each with a body of its own."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.client = redis.Redis(unix_socket_path=str(daemon.path))
        self.sent, self.ends = [], False

    def run(self):
        for number in itertools.count():
            if self.ends:
                return
            try:
                self.client.execute_command("TW.PUT", "hooks", f"job {number}",
                                            "IN", number % 3 / 10)
                self.sent.append(f"job {number}")
            except redis.RedisError:
                pass          # the put was not promised
            time.sleep(0.005)


def receiver():
    """A server that refuses some posts, each in its way. Returns it, and which jobs it has done."""
    done, count = {}, itertools.count()

    def answer(post):
        time.sleep(0.01)
        status = (200, 500, 200, 503, 200, 302)[next(count) % 6]
        if status == 200:
            body = post.body.decode()
            done[body] = done.get(body, 0) + 1
        return status, {}, b"because"
    return Server({"/hook": answer}), done


def kill(daemon, worker, what, start):
    """Returns the worker that goes on."""
    number = signal.SIGTERM if "SIGTERM" in what else signal.SIGKILL
    if what.startswith("twjobd"):
        daemon.stop(number)
        daemon.start()
        return worker
    code, said = worker.stop(number)
    assert code in (0, -signal.SIGKILL), said
    return start()


def main(count):
    daemon = Daemon(store="disk")
    daemon("TW.CREATE", "hooks", "LEASE", 1, "TRIES", 0, "BACKOFF", 0.05, 0.1)
    server, done = receiver()
    sender = Sender(daemon)

    def start():
        return Worker(daemon, server.url(), "-j", "8")
    worker = start()
    sender.start()
    for number in range(count):
        before = len(done)
        eventually(lambda: len(done) > before + 20, 60)
        worker = kill(daemon, worker, KILLS[number % len(KILLS)], start)
    sender.ends = True
    sender.join()
    eventually(lambda: not daemon.jobs("hooks"), 120)
    code, said = worker.stop()
    lost = [body for body in sender.sent if body not in done]
    print(f"# {count} kills, {len(sender.sent)} jobs put, {len(server.posts)} posts, "
          f"{sum(done.values())} answered 200")
    print(f"# lost: {lost}" if lost else "# none was lost")
    good = sender.sent and not lost and code == 0
    print(f"{'ok' if good else 'not ok'} 1 - each job that was put has been posted until its "
          f"answer was 200, over {count} kills\n1..1")
    daemon.stop()
    server.close()
    return not good


sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
