# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of options of a job: its reason, lease, tries and times, and what lists tell of it.
import random
import signal
import socket
import time

from daemon import *


@each_store("an untried delivery counts no try")
@in_stores("TRIES", 2)
def _(daemon):
    first = daemon("TW.PUT", "q", "a")
    for expected in (1, 1, 1):
        job, receipt, attempt, _ = take(daemon)
        same((job, attempt), (first, expected))
        same(daemon("TW.NACK", "q", receipt, "UNTRIED"), "+OK")
        assert daemon("TW.ACK", "q", receipt).startswith("-STALE")
    job, receipt, attempt, _ = take(daemon)
    same((job, daemon("TW.NACK", "q", receipt, "IN", 0)), (first, "+OK"))
    for _ in range(3):
        job, receipt, attempt, _ = take(daemon)
        same((job, attempt), (first, 2))
        same(daemon("TW.NACK", "q", receipt, "UNTRIED", "IN", "0.01"), "+OK")
    job, receipt, attempt, _ = take(daemon)
    same((job, attempt, daemon("TW.NACK", "q", receipt)), (first, 2, "+BURIED"))
    same(daemon("TW.STATS")[1], 0)


@each_store("TW.CREATE with IFNEW leaves a queue as it is")
@with_queue("IFNEW", "TRIES", 3)
def _(daemon):
    same(daemon("TW.CREATE", "q", "TRIES", 5, "LEASE", 1, "IFNEW"), "+OK")
    stats = daemon("TW.STATS", "q")
    same((stats[stats.index(b"tries") + 1], stats[stats.index(b"lease_ms") + 1]), (3, 60000))


def has_failed(daemon, job, reason):
    """Checks that TW.GET and TW.LIST tell this reason and its time."""
    for told in told_twice(daemon, job):
        same(told.get("reason"), reason)
        assert abs(told["failed"] / 1000 - time.time()) < 20, told


@each_store("the last failure's reason is kept with its time, through kill -9, until the job ends")
@on_nodes("TRIES", 3, "LEASE", 0.3)
def _(a, b, c):
    def failed(reason):
        for node in a, b, c:
            has_failed(node, job, reason)

    job = a("TW.PUT", "q", "x", "KEY", "k")[0]
    assert "reason" not in get(b, job) and "failed" not in get(b, job)
    same(b("TW.NACK", "q", take(a)[1], "REASON", b"no \xff route"), "+OK")
    failed(b"no \xff route")
    # The next NACK gives no reason.
    same(c("TW.NACK", "q", take(a)[1]), "+OK")
    restart(a, signal.SIGKILL)
    failed(b"no \xff route")
    # This is the lease of the last try.
    same(take(a, seconds=20)[2], 3)
    assert eventually(lambda: take(a, seconds=0.1) is None and state(a, job) == "buried")
    failed(b"the lease was over")
    same(b("TW.KICK", "q", job), 1)
    failed(b"the lease was over")
    for last, reason in (((), b"the lease was over"), (("REASON", "r" * 2000), b"r" * 1024),
                         (("REASON", ""), b"")):
        same(c("TW.BURY", "q", take(a)[1], *last), "+OK")
        failed(reason)
        same(b("TW.KICK", "q", job), 1)
    same(a("TW.ACK", "q", take(a)[1]), 1)
    job = a("TW.PUT", "q", "x", "KEY", "k")[0]
    assert "reason" not in get(a, job)
    same(a("TW.NACK", "q", take(a)[1], "UNTRIED", "REASON", "a", "IN", 0), "+OK")
    failed(b"a")


@each_store("an answer with a reason is a part of a transaction, or not at all")
@in_stores()
def _(daemon):
    job = daemon("TW.PUT", "q", "x")
    receipt = take(daemon)[1]
    same(gathered(daemon, ("TW.NACK", "q", receipt, "REASON", "a"),
                  ("TW.CANCEL", "none", 1))[:21], "-EXECABORT 2: NOQUEUE")
    assert "reason" not in get(daemon, job)
    same(gathered(daemon, ("TW.NACK", "q", receipt, "REASON", "a")), ["+OK"])
    has_failed(daemon, job, b"a")


@each_store("KEEPBURIED ends jobs that have been buried for so long")
@in_stores()
def _(daemon):
    for queue in ("q", "r"):
        same(daemon("TW.CREATE", queue), "+OK")
        for _ in range(700):
            daemon.client.send("TW.PUT", queue, "x", "IN", 1000 if _ > 600 else 0)
        jobs = [daemon.client.answer() for _ in range(700)]
        for _ in range(601):
            daemon("TW.BURY", queue, take(daemon, queue)[1])
    same(figure(daemon, "q", b"buried"), 601)
    same(daemon("TW.CREATE", "q", "KEEPBURIED", 1.5), "+OK")
    same(figure(daemon, "q", b"keep_buried_ms"), 1500)
    assert eventually(lambda: figure(daemon, "q", b"buried") == 0)
    same(counts(daemon), [99, 99, 0, 0])
    late = daemon("TW.PUT", "q", "x")
    same(daemon("TW.BURY", "q", take(daemon)[1]), "+OK")
    time.sleep(1)
    same(state(daemon, late), "buried")
    assert eventually(lambda: state(daemon, late) is None)
    same(figure(daemon, "r", b"buried"), 601)


@each_store("jobs that end while tokens are compared with jobs are nothing to mend")
@with_queue()
def _(daemon):
    jobs = at_once(daemon, *[("TW.PUT", "q", "x", "IN", 1000)] * 1500)
    random.shuffle(jobs)
    for job in jobs:
        same(daemon("TW.CANCEL", "q", job), 1)
        time.sleep(0.006)


@each_store("a job's own LEASE, shorter or longer than the queue's")
@in_stores()
def _(daemon):
    short = daemon("TW.PUT", "q", "x", "LEASE", 0.2)
    same(get(daemon, short)["lease_ms"], 200)
    same([take(daemon)[::2] for _ in range(2)], [(short, 1), (short, 2)])
    same(daemon("TW.CREATE", "r", "LEASE", 0.2), "+OK")
    long = daemon("TW.PUT", "r", "x", "LEASE", 604800)
    receipt = take(daemon, "r")[1]
    same(take(daemon, "r", seconds=1), None)
    same(daemon("TW.ACK", "r", receipt), 1)


@each_store("TW.GET and TW.LIST tell how long a lease lasts, TW.EXTEND takes several receipts")
@in_stores("LEASE", 100)
def _(daemon):
    jobs = [daemon("TW.PUT", "q", "x"), daemon("TW.PUT", "q", "x", "LEASE", 50)]
    same([lease_left(daemon, j) for j in jobs], [[0, 0]] * 2)
    # Jobs that are due in the same ms come in any order.
    receipts = [receipt for _, receipt, *_ in sorted(take(daemon) for _ in jobs)]
    for job, lease in zip(jobs, (100, 50)):
        assert all(lease - 20 < s <= lease for s in lease_left(daemon, job))
    same(daemon("TW.EXTEND", "q", *receipts, 300), [1, 1])
    for job in jobs:
        assert all(280 < s <= 300 for s in lease_left(daemon, job))
    same(daemon("TW.ACK", "q", receipts[0]), 1)
    same(daemon("TW.EXTEND", "q", *receipts), [0, 1])
    same(daemon("TW.EXTEND", "q", receipts[1], 400), "+OK")
    assert all(380 < s <= 400 for s in lease_left(daemon, jobs[1]))
    same(daemon("TW.NACK", "q", receipts[1], "IN", 9), "+OK")
    same(lease_left(daemon, jobs[1]), [0, 0])
    for lease in (50, 1000):
        job = daemon("TW.PUT", "q", "x", "LEASE", lease)
        receipt = take(daemon)[1]
        for several in ((), (receipt,)):
            assert daemon("TW.EXTEND", "q", receipt, *several) in ("+OK", [1, 1])
            assert all(lease - 20 < s <= lease for s in lease_left(daemon, job))


@each_store("a job's own TRIES, also of a rule's")
@in_stores("TRIES", 2)
def _(daemon):
    for tries in (1, 3):
        job = daemon("TW.PUT", "q", "x", "TRIES", tries)
        same(get(daemon, job)["tries"], tries)
        same([daemon("TW.NACK", "q", take(daemon)[1]) for _ in range(tries)],
             ["+OK"] * (tries - 1) + ["+BURIED"])
    job = daemon("TW.PUT", "q", "x", "TRIES", 0)
    same([daemon("TW.NACK", "q", take(daemon)[1]) for _ in range(12)], ["+OK"] * 12)
    same(daemon("TW.ACK", "q", take(daemon)[1]), 1)
    rule = daemon("TW.EVERY", "q", "k", "@yearly", "TRIES", 1, "LEASE", 9, "x")
    same(daemon("TW.EVERY", "q", "k", "@yearly", "TRIES", 1, "LEASE", 9, "x"),
         [rule[0], b"EXISTS"])
    same(daemon("TW.KICK", "q", rule[0]), 1)
    same(daemon("TW.NACK", "q", take(daemon)[1], "REASON", "why"), "+BURIED")
    buried = of_map(daemon("TW.LIST", "q", "STATE", "buried")[1][-1])
    same([buried[n] for n in ("tries", "lease_ms", "reason")], [1, 9000, b"why"])
    same(daemon("TW.EVERY", "q", "k", "@yearly", "x"), [rule[0], b"REPLACED"])
    assert "tries" not in get(daemon, rule[0])


@each_store("BACKOFF of a job or its queue tells when a try that failed comes again")
@in_stores("TRIES", 0, "BACKOFF", 100, 300)
def _(daemon):
    same([figure(daemon, "q", n) for n in (b"backoff_ms", b"backoff_most_ms")],
         [100000, 300000])
    for options, waits in (((), (100, 200, 300, 300)),
                           (("BACKOFF", 10, 35.5), (10, 20, 35.5, 35.5))):
        job = daemon("TW.PUT", "q", "x", *options)
        for wait in waits:
            receipt = take(daemon)[1]
            now = time.time()
            same(daemon("TW.NACK", "q", receipt), "+OK")
            left = get(daemon, job)["due"] / 1000 - now
            assert wait - 0.1 <= left <= wait * 1.1 + 10, (wait, left)
            same(daemon("TW.MOVE", "q", job, "IN", 0), 1)
        # The worker's IN counts, and a delivery that was no try has no wait.
        same(daemon("TW.NACK", "q", take(daemon)[1], "IN", 1), "+OK")
        assert get(daemon, job)["due"] / 1000 - time.time() < 2
        same(daemon("TW.NACK", "q", take(daemon)[1], "UNTRIED"), "+OK")
        same(daemon("TW.ACK", "q", take(daemon)[1]), 1)
    same(daemon("TW.CREATE", "q", "BACKOFF", 0, 0), "+OK")
    same(figure(daemon, "q", b"backoff_ms"), 0)


@test("a queue, a job and a rule can have all settings and options at once")
@with_daemon()
def _(daemon):
    job = ("LEASE", 9, "TRIES", 9, "BACKOFF", 1, 9, "GROUP", "g")
    same(daemon("TW.CREATE", "q", *job[:7], "MAXJOBS", 9, "MAXBYTES", 9000, "KEEPBURIED", 9,
                "KEEPDONE", 9, "LIMIT", 9, "RATE", 9, 9, "GROUPLIMIT", 9, "GROUPRATE", 9, 9,
                "IFNEW"), "+OK")
    same(figure(daemon, "q", b"group_rate_ms"), 9000)
    same(daemon("TW.PUT", "q", "x", "IN", 9, "KEY", "k", "REPLACE", "UNIQUE", 9, *job)[1], b"NEW")
    same(daemon("TW.EVERY", "q", "e", "@daily", "TZ", "UTC", "MISSED", "none", "OVERLAP", *job,
                "x")[1], b"NEW")
    for key in "ke":
        told = of_map(daemon("TW.GETKEY", "q", key))
        same([told[n] for n in ("lease_ms", "tries", "backoff_most_ms", "group")],
             [9000, 9, 9000, b"g"])


@each_store("REPLACE gives a job the options of the new put, and kill -9 leaves it the last ones")
@with_queue(store=folder / "options")
def _(daemon):
    own = ("lease_ms", "tries", "backoff_ms", "backoff_most_ms")
    put = ("TW.PUT", "q", "x", "KEY", "k", "IN", 100)
    job = daemon(*put, "LEASE", 5, "BACKOFF", 1, 2)[0]
    same([get(daemon, job).get(n) for n in own], [5000, None, 1000, 2000])
    same(daemon(*put, "TRIES", 5)[1], b"EXISTS")
    same(daemon(*put, "TRIES", 0, "REPLACE")[1], b"REPLACED")
    restart(daemon, signal.SIGKILL)
    same([get(daemon, job).get(n) for n in own], [None, 0, None, None])
    same(daemon(*put, "REPLACE")[1], b"REPLACED")
    restart(daemon, signal.SIGKILL)
    same([get(daemon, job).get(n) for n in own], [None] * 4)
    same(daemon(*put, "REPLACE", "TRIES", 7, "LEASE", 8)[1], b"REPLACED")
    same(daemon("TW.CANCEL", "q", job), 1)
    # Only the store of one machine has these parts of a job in tables of their own.
    tables = () if shared else ("body", "option", "failure")
    same(rows(daemon, "rule", "job", *tables), [0] * (2 + len(tables)))


@each_store("TW.GET and TW.LIST tell which connection holds a job, as long as it is held")
@in_stores("LEASE", 100)
def _(daemon):
    named, other = Client(daemon.path), Client(daemon.path)
    same(named("CLIENT", "SETNAME", "worker-3"), "+OK")
    lines = {c: c("CLIENT", "INFO").decode().split(" lib-name")[0] for c in (named, other)}
    assert lines[named].endswith(" name=worker-3") and lines[other].endswith(" name=")

    def holders(job):
        told = told_twice(daemon, job)
        same(told[0].get("holder"), told[1].get("holder"))
        return told[0].get("holder", b"").decode()

    jobs = put(daemon, 2)
    same([holders(j) for j in jobs], ["", ""])
    receipts = {}
    for client in (named, other):
        _, job, receipt, *_ = client("TW.TAKE", "q")[0]
        receipts[client] = receipt, job
        same(holders(job), lines[client])
    # The connection has ended, and the name has changed meanwhile.
    same(named("CLIENT", "SETNAME", "another"), "+OK")
    other.socket.shutdown(socket.SHUT_RDWR)
    same([holders(receipts[c][1]) for c in (named, other)], [lines[named], lines[other]])
    receipt, job = receipts[other]
    same(daemon("TW.NACK", "q", receipt), "+OK")
    same(holders(job), "")
    same(named("TW.TAKE", "q")[0][1], job)
    same(holders(job), lines[named].replace("worker-3", "another"))
    # After its lease a job has no holder until it is taken again.
    short = put(daemon, 1, "LEASE", 0.3, "TRIES", 0)[0]
    same(named("TW.TAKE", "q")[0][1], short)
    bound = Client(daemon.path)
    while True:
        again = bound("TW.TAKE", "q", "BLOCK", 0, "BOUND")[0]
        same(again[1], short)
        if daemon("TW.EXTEND", "q", again[2], 100) == "+OK":
            break
    same(holders(short), bound("CLIENT", "INFO").decode().split(" lib-name")[0])
    if daemon.store != "memory":
        restart(daemon, signal.SIGTERM)
        same((state(daemon, job), holders(job)), ("held", ""))
