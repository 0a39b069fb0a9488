# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of what a kill, a planned restart and a store that cannot be written leave.
import contextlib
import resource
import signal
import socket
import sqlite3
import time

from daemon import *


def limit_files(daemon, size=resource.RLIM_INFINITY):
    """No file can get longer, which is an error that does not mean that the disk is full."""
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@test("a delivery that no worker has got counts no try")
@with_daemon(store=folder / "untried")
def _(daemon):
    same(daemon("TW.CREATE", "q"), "+OK")
    large = daemon("TW.PUT", "q", b"x" * 900000, "IN", 1000)
    job = daemon("TW.PUT", "q", "x")
    for attempt in (1, 2, 3):
        for _ in range(2):
            # The commit fails.
            limit_files(daemon, 0)
            put_and_take = at_once(daemon, ("TW.PUT", "q", "y", "IN", 1000), ("TW.TAKE", "q"))
            same([answer[:6] for answer in put_and_take], ["-UNAVA"] * 2)
            limit_files(daemon)
            take_unsent(daemon, job, large)
        got = take(daemon)
        same(got[2], attempt)
        same(daemon("TW.NACK", "q", got[1]), "+OK")


@test("a queue that is made while another one is loaded is not LOADING")
def _():
    # The wheels end with a daemon, and the next daemon loads them.
    path = folder / "jobs"
    daemon = Daemon(store=path)
    same(daemon("TW.CREATE", "small"), "+OK")
    same(daemon("TW.PUT", "small", "x", "KEY", "a")[1], b"NEW")
    same(daemon("TW.CREATE", "large"), "+OK")
    for _ in range(10):
        assert all(n > 0 for n in at_once(daemon, *[("TW.PUT", "large", "x", "IN", 1000)] * 5000))
    daemon.stop()
    daemon.start()
    # All commands are sent at once, while the load goes on.
    daemon.client.send("TW.CREATE", "new")
    daemon.client.send("TW.PUT", "new", "x", "KEY", "a")
    daemon.client.send("TW.PUT", "small", "x", "KEY", "b")
    daemon.client.send("TW.STATS", "large")
    answers = [daemon.client.answer() for _ in range(4)]
    loading = answers[3][answers[3].index(b"loading") + 1]
    same(answers[0], "+OK")
    same(answers[1][1], b"NEW")
    if loading:
        same(answers[2][1], b"NEW")
    else:
        print("# the load was too fast to be seen")
    daemon.stop()


@test("a receipt stays good over planned restarts, however many")
@with_queue("LEASE", 100, store=folder / "planned")
def _(daemon):
    same(daemon("TW.CREATE", "r", "LEASE", 100), "+OK")
    keyed = daemon("TW.PUT", "q", "x", "KEY", "k")[0]
    jobs = [keyed, *(daemon("TW.PUT", "q", "x") for _ in range(4))]
    receipts = dict(take(daemon)[:2] for _ in jobs)
    other = daemon("TW.PUT", "r", "x", "LEASE", 50)
    receipts[other] = take(daemon, "r")[1]
    same(daemon("TW.EXTEND", "q", receipts[keyed], 300), "+OK")
    for planned in range(3):
        restart(daemon, signal.SIGTERM)
        same(rows(daemon, "held"), [0])
        same(daemon("TW.TAKE", "q", "r"), None)
        same(counts(daemon), [5, 0, 5, 0])
        assert 250 < lease_left(daemon, keyed)[0] <= 300
        assert all(0 < lease_left(daemon, j)[0] <= 100 for j in jobs[1:])
        assert 0 < get(daemon, other, "r")["lease_left_ms"] <= 50000
        assert daemon("TW.ACK", "r", receipts[keyed]).startswith("-STALE")
        assert daemon("TW.CANCELKEY", "q", "k").startswith("-HELD")
    same(daemon("TW.EXTEND", "q", receipts[jobs[1]], 400), "+OK")
    assert 390 < lease_left(daemon, jobs[1])[0] <= 400
    same(daemon("TW.EXTEND", "q", receipts[jobs[2]], receipts[jobs[3]], 400), [1, 1])
    same(daemon("TW.ACK", "q", receipts[keyed]), 1)
    same(daemon("TW.ACK", "q", receipts[jobs[1]], receipts[jobs[1]]), [1, 0])
    same(daemon("TW.BURY", "q", receipts[jobs[2]]), "+OK")
    same(daemon("TW.NACK", "q", receipts[jobs[3]]), "+OK")
    again = take(daemon)
    same((again[0], again[2]), (jobs[3], 2))
    same(daemon("TW.NACK", "q", receipts[jobs[4]], "UNTRIED"), "+OK")
    same(take(daemon)[::2], (jobs[4], 1))
    same(daemon("TW.ACK", "r", receipts[other]), 1)
    for job in jobs:
        assert daemon("TW.ACK", "q", receipts[job]).startswith("-STALE")
    # Jobs that have ended do not come back.
    restart(daemon, signal.SIGTERM)
    same(daemon("TW.TAKE", "q", "r"), None)
    same(counts(daemon), [3, 0, 2, 1])
    for job in jobs[:4]:
        assert daemon("TW.ACK", "q", receipts[job]).startswith("-STALE")
    same(daemon("TW.ACK", "q", again[1]), 1)


@test("a lease ends after a planned restart as it would have ended, and counts a try")
@with_queue("TRIES", 2, "LEASE", 1.5, store=folder / "over")
def _(daemon):
    # Only the wheel knows of the first job's try. The store knows of the second job's try, too.
    first, second = daemon("TW.PUT", "q", "x"), daemon("TW.PUT", "q", "y", "TRIES", 3)
    taken = {job: receipt for job, receipt, *_ in (take(daemon), take(daemon))}
    same(daemon("TW.NACK", "q", taken[second]), "+OK")
    same(take(daemon)[::2], (second, 2))
    begin = time.monotonic()
    restart(daemon, signal.SIGTERM)
    same(daemon("TW.TAKE", "q"), None)
    again = dict(take(daemon)[::2] for _ in range(2))
    assert time.monotonic() - begin > 0.5
    same(again, {first: 2, second: 3})
    assert daemon("TW.ACK", "q", taken[first]).startswith("-STALE")
    # The lease ends while there is no daemon.
    daemon.stop()
    time.sleep(2)
    daemon.start()
    same(take(daemon, seconds=1), None)
    same([state(daemon, job) for job in (first, second)], ["buried"] * 2)
    same([daemon("TW.GET", "q", job)[7] for job in (first, second)], [2, 3])
    third = daemon("TW.PUT", "q", "z")
    receipt = take(daemon)[1]
    daemon.stop()
    time.sleep(2)
    daemon.start()
    same(take(daemon, seconds=0.5)[::2], (third, 2))
    assert daemon("TW.ACK", "q", receipt).startswith("-STALE")


@test("a first try that is over counts over a planned restart, also a BOUND one")
@with_queue("LEASE", 0.2, store=folder / "first")
def _(daemon):
    lapsed = daemon("TW.PUT", "q", "x")
    same(take(daemon)[::2], (lapsed, 1))
    time.sleep(0.3)
    same(daemon("TW.PAUSE", "q"), "+OK")
    same(daemon("TW.CREATE", "r", "LEASE", 100), "+OK")
    bound = daemon("TW.PUT", "r", "y")
    client = Client(daemon.path)
    client.send("TW.TAKE", "r", "BOUND")
    receipt = client.answer()[0][2]
    restart(daemon, signal.SIGTERM)
    assert daemon("TW.ACK", "r", receipt).startswith("-STALE")
    same(take(daemon, "r", seconds=0.5)[::2], (bound, 2))
    same(daemon("TW.RESUME", "q"), "+OK")
    same(take(daemon)[::2], (lapsed, 2))


@test("kill -9 and another wheel forget what workers have, also what a restart has kept")
@with_queue("LEASE", 100, store=folder / "forgets")
def _(daemon):
    job = daemon("TW.PUT", "q", "x")
    receipt = take(daemon)[1]
    restart(daemon, signal.SIGTERM)
    same(daemon("TW.TAKE", "q"), None)
    restart(daemon, signal.SIGKILL)
    assert daemon("TW.ACK", "q", receipt).startswith("-STALE")
    again, receipt, *_ = take(daemon)
    restart(daemon, signal.SIGTERM)
    same((again, daemon("TW.TAKE", "q")), (job, None))
    same(daemon("TW.CREATE", "q", "LEASE", 50), "+OK")
    assert daemon("TW.ACK", "q", receipt).startswith("-STALE")
    last = take(daemon)
    same(last[0], job)
    # The daemon distinguishes two receipts of one job.
    restart(daemon, signal.SIGTERM)
    assert daemon("TW.ACK", "q", receipt).startswith("-STALE")
    same(daemon("TW.ACK", "q", last[1]), 1)


@test("J1: while the store cannot be written, nothing changes, and all goes on afterwards")
@with_queue("LEASE", 60, store=folder / "unwritable")
def _(daemon):
    other = Client(daemon.path)
    put(daemon, 1)
    plain = take(daemon)[1]
    bound = put(daemon, 1)[0]
    # The message also goes to a file, which stays below this limit.
    limit_files(daemon, 4096)
    refuses(daemon, """UNAVAILABLE | TW. | PUT q x | PUT q x KEY k | CREATE more | DROP q
                       UNAVAILABLE | TW. | PAUSE q | ACK q $plain | NACK q $plain""", plain=plain)
    # A first delivery is not written, but its end would be.
    _, job, receipt, *_ = other("TW.TAKE", "q", "BOUND")[0]
    waits = waiting_take(daemon)
    same((job, other("TW.ACK", "q", receipt)[:12]), (bound, "-UNAVAILABLE"))
    same((counts(daemon), figure(daemon, "q", b"paused")), ([2, 0, 2, 0], 0))
    same(daemon.said().count("see what the kernel's log tells"), 1)
    limit_files(daemon)
    same(daemon("TW.ACK", "q", plain), 1)
    # The worker has the job until its connection ends.
    other.socket.shutdown(socket.SHUT_RDWR)
    _, job, again, *_ = waits.answer()[0]
    same((job, daemon("TW.ACK", "q", receipt)[:6]), (bound, "-STALE"))
    same((daemon("TW.ACK", "q", again), counts(daemon)), (1, [0] * 4))


@test("the jobs of a dropped queue go, also if their removal fails at first")
@with_queue(store=folder / "undropped")
def _(daemon):
    at_once(daemon, *[("TW.PUT", "q", "x", "IN", 1000)] * 2000)
    same(daemon("TW.DROP", "q"), "+OK")
    limit_files(daemon, 0)
    time.sleep(1.5)
    same(daemon("TW.QUEUES"), [])
    limit_files(daemon)
    assert eventually(lambda: rows(daemon, "job", "queue") == [0, 0]), rows(daemon, "job")
    same((daemon("TW.CREATE", "q"), counts(daemon)), ("+OK", [0] * 4))


@test("a stop that cannot write what workers have says so")
@with_queue("LEASE", 100, store=folder / "unwritten")
def _(daemon):
    job = daemon("TW.PUT", "q", "x")
    receipt = take(daemon)[1]
    # The message also goes to a file, which stays below this limit.
    limit_files(daemon, 4096)
    daemon.stop()
    assert "what workers have is handed out again" in (folder / "daemon.log").read_text()
    daemon.start()
    assert daemon("TW.ACK", "q", receipt).startswith("-STALE")
    same(take(daemon)[0], job)


@test("J4: after a reboot all jobs are loaded, and come when they are due, as they were")
@with_queue(store=folder / "reboot")
def _(daemon):
    put(daemon, 1)
    same(daemon("TW.BURY", "q", take(daemon)[1]), "+OK")
    put(daemon, 1)
    held, receipt, *_ = take(daemon)
    for i in range(5):
        assert all(job[1] == b"NEW" for job in at_once(daemon, *[
            ("TW.PUT", "q", "x", "IN", 10000, "KEY", f"key-{1000 * i + j}") for j in range(1000)]))
    job = put(daemon, 3, "IN", 10000)[2]
    daemon.stop(signal.SIGKILL)
    daemon.start()
    # By its number a job is known at once. By its key it may still be loading.
    same(daemon("TW.MOVE", "q", job, "IN", 0), 1)
    assert eventually(lambda: figure(daemon, "q", b"loading") == 0)
    same(counts(daemon), [5005, 5004, 0, 1])
    assert daemon("TW.ACK", "q", receipt).startswith("-STALE")
    same(daemon("TW.CANCELKEY", "q", "key-4999"), 1)
    same(daemon("TW.PUT", "q", "again", "KEY", "key-0")[1], b"EXISTS")
    # The job that was held when the machine went down is handed out again.
    same(sorted((take(daemon)[0], take(daemon)[0])), [held, job])
    takes_nothing(daemon)


@test("a daemon that is killed within a drop ends the drop at its next start")
@with_daemon(store=folder / "dropped")
def _(daemon):
    same(daemon("TW.CREATE", "gone"), "+OK")
    daemon.stop(signal.SIGKILL)
    with contextlib.closing(sqlite3.connect(daemon.store)) as db:
        db.execute("update queue set dropped = 1 where name = 'gone'")
        db.commit()
    daemon.start()
    assert daemon("TW.PUT", "gone", "x").startswith("-NOQUEUE")
    # A new queue with this name is another one.
    same(daemon("TW.CREATE", "gone"), "+OK")
    put(daemon, 1, "IN", 1000, queue="gone")
    same(daemon("TW.DROP", "gone"), "+OK")


@test("a daemon that has stood still hands out each job once")
@with_queue()
def _(daemon):
    jobs = put(daemon, 10, "IN", 0.5)
    daemon.send_signal(signal.SIGSTOP)
    daemon.client.socket.sendall(encoded(("TW.PUT", "q", "x", "IN", 0.1)) * 10)
    time.sleep(1)
    daemon.send_signal(signal.SIGCONT)
    jobs += [daemon.client.answer() for _ in range(10)]
    taken = [take(daemon) for _ in jobs]
    same(sorted(job[0] for job in taken), sorted(jobs))
    same([daemon("TW.ACK", "q", job[1]) for job in taken], [1] * 20)
    same((counts(daemon), figure(daemon, "q", b"delivered")), ([0] * 4, 20))


def move_all(daemon, first, count):
    same(set(at_once(daemon, *[("TW.MOVE", "q", first + i, "IN", 5000) for i in range(count)])),
         {1})


@test("J5: the store stays small when jobs are moved, and gives room back when they end")
@with_queue(store=folder / "small")
def _(daemon):
    def size():
        return daemon.store.stat().st_size

    count = 2000
    first = at_once(daemon, *[("TW.PUT", "q", "x" * 50, "IN", 10000)] * count)[0]
    move_all(daemon, first, count)
    # A start writes the log back.
    restart(daemon, signal.SIGKILL)
    before = size()
    for _ in range(10):
        move_all(daemon, first, count)
    assert (folder / "small-wal").stat().st_size <= 6 << 20
    restart(daemon, signal.SIGKILL)
    print(f"# {count} jobs: {before} bytes, after all have been moved 10 times {size()}")
    # Pages of a tree that changes in no order are 69 % full. A tree in order takes 1/1.45 of
    # their room.
    assert size() <= before * 1.5
    # Room is given back, also by a daemon with nothing to do.
    same(set(at_once(daemon, *[("TW.CANCEL", "q", first + i) for i in range(count)])), {1})
    assert eventually(lambda: size() <= before / 2), size()
