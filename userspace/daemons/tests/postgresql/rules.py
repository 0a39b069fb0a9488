#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# rules.py OUTPUT: tests jobs that come again by a rule, with three daemons on one database.
# Prints TAP.
import calendar
import collections
import os
import random
import signal
import time

from common import (Client, Node, Sql, end, eventually, folder, init_database, same,
                    state, test)

zones = folder / "zones"
zones.mkdir()
os.environ["TZDIR"] = str(zones)
init_database().check_returncode()
nodes = a, b, c = Node("a"), Node("b"), Node("c")
sql = Sql()
Taken = collections.namedtuple("Taken", "queue id receipt attempt due key body")


def take(node, queue="q", seconds=5):
    jobs = Client(node.path)("TW.TAKE", queue, "BLOCK", int(seconds * 1000))
    assert not isinstance(jobs, str), jobs
    return jobs and Taken(*jobs[0])


def named(job):
    """Returns the point of time in ms that a key such as "e@2026-11-23T12:34:56" tells."""
    return 1000 * calendar.timegm(time.strptime(job.key.decode(), "e@%Y-%m-%dT%H:%M:%S"))


def now():
    return time.time() * 1000


def create(*queues, lease=30, tries=3):
    for queue in queues:
        same(a("TW.CREATE", queue, "LEASE", lease, "TRIES", tries), "+OK")
    for node in nodes:
        assert eventually(lambda: node("TW.GET", queues[-1], 1) is None, 3)


def every(node, *words, queue="q", key="e"):
    answer = node("TW.EVERY", queue, key, *words)
    return answer[1].decode() if isinstance(answer, list) else answer


def rows():
    """Returns the number of rules, and the number of jobs that say that they have a rule."""
    return [int(sql(f"select count(*) from timewheel.{table}")) for table in
            ("rule", "job where rule")]


def ends(queue="q"):
    same(rows(), [0, 0])
    assert eventually(lambda: sql(
        "select sum(jobs) + sum(bytes) from timewheel.node_queue n\n"
        f" join timewheel.queue q on q.id = n.queue where q.name = '{queue}'") == "0", 3)


create("q")


@test("put at one node, taken at another, and the next one after an ACK at a third")
def _():
    mended = [node.metric("mended_total") for node in nodes]
    same(every(a, "FREQ=SECONDLY", "MISSED", "all", "body"), "NEW")
    before = None
    for i in range(4):
        job = take(nodes[(i + 1) % 3])
        same((job.attempt, job.body, named(job)), (1, b"body", job.due))
        if before:
            same((job.id, job.due), (before.id, before.due + 1000))
            same(nodes[i % 3]("TW.ACK", "q", before.receipt)[:6], "-STALE")
        for node in nodes:
            same(state(node, job.id), "held")
        same(nodes[(i + 2) % 3]("TW.ACK", "q", job.receipt), 1)
        before = job
    same(rows(), [1, 1])
    same(b("TW.CANCELKEY", "q", "e"), 1)
    ends()
    # No token was at another time than its row tells.
    same([node.metric("mended_total") for node in nodes], mended)


@test("the same rule again, another one, and a job with its key")
def _():
    same(every(a, "@hourly", "body"), "NEW")
    same(every(b, "@hourly", "body"), "EXISTS")
    same(every(c, "@hourly", "MISSED", "all", "body"), "REPLACED")
    same(every(a, "@hourly", "MISSED", "all", "OVERLAP", "body"), "REPLACED")
    same(every(b, "0 12 * * *", "TZ", "UTC", "more"), "REPLACED")
    job = int(sql("select id from timewheel.job"))
    answer = c("TW.GET", "q", job)
    assert b"0 12 * * *" in answer, answer
    assert b"0 12 * * *" in c("TW.RULES", "q")[1][0], c("TW.RULES", "q")
    same(c("TW.RULES", "q", "CURSOR", job), [0, []])
    same(b("TW.PUT", "q", "x", "KEY", "e", "REPLACE"),
         "-ERR the key is that of a rule, see TW.EVERY")
    same(b("TW.PUT", "q", "x", "KEY", "e"), [job, b"EXISTS"])
    put = "select timewheel.put('q', 'x', key => 'e', replace => {})"
    assert "the key is that of a rule" in sql(put.format("true"))
    same(sql(put.format("false")), str(job))
    same(every(b, "0 12 * * *", "more"), "EXISTS")
    same(every(a, "FREQ=SECONDLY", "body"), "REPLACED")
    taken = take(b)
    same((taken.id, taken.body), (job, b"body"))
    same(every(c, "FREQ=SECONDLY", "body"), "EXISTS")
    same(every(c, "@daily", "body"), "-HELD the job is being worked on")
    assert "HELD" in sql("select timewheel.cancel('q', 'e')")
    same(rows(), [1, 1])
    same([node.metric("rules") for node in nodes], [1] * 3)
    same(a("TW.ACK", "q", taken.receipt), 1)
    same(a("TW.CANCELKEY", "q", "e"), 1)
    ends()
    same(a.metric("rules"), 0)
    job = b("TW.PUT", "q", "x", "KEY", "e", "IN", 1000)[0]
    same(every(a, "@hourly", "body"), "-ERR the key is that of a job without a rule")
    same(a("TW.CANCEL", "q", job), 1)


@test("a job that ends by any means leaves no rule behind")
def _():
    def put():
        same(every(a, "@hourly", "body"), "NEW")
        return int(sql("select id from timewheel.job"))
    put()
    same(sql("select timewheel.cancel('q', 'e')"), "t")
    ends()
    same(sql(f"select timewheel.cancel('q', {put()})"), "t")
    ends()
    same(b("TW.CANCEL", "q", put()), 1)
    ends()
    same(c("TW.DELETE", "q", put()), 1)
    ends()
    # The first of these two occurrences is the present second.
    same(every(a, "FREQ=SECONDLY;COUNT=2", "MISSED", "all", "body"), "NEW")
    job = take(b)
    same(c("TW.ACK", "q", job.receipt), 1)
    same(take(b, seconds=0.1), None)
    ends()


@test("the rules of a queue that is dropped are gone")
def _():
    create("r")
    for node in nodes:
        for i in range(5):
            same(every(node, "@hourly", "body", queue="r", key=f"{node.name}{i}"), "NEW")
    sql("update timewheel.job set node = null where key = 'a0'")
    same(rows(), [15, 15])
    same(b("TW.DROP", "r"), "+OK")
    assert eventually(lambda: rows() == [0, 0], 4)


@test("a worker ends at a node that is killed: the same occurrence comes again")
def _():
    create("k", lease=2)
    same(every(a, "FREQ=SECONDLY", "MISSED", "all", "body", queue="k"), "NEW")
    job = take(b, "k")
    b.stop(signal.SIGKILL)
    # By the row its lease is over, but the job still belongs to the killed node.
    same(take(c, "k", seconds=3), None)
    again = take(c, "k", seconds=12)
    same((again.id, again.key, again.due, again.attempt), (job.id, job.key, job.due, 2))
    b.start()
    same(a("TW.ACK", "k", job.receipt)[:6], "-STALE")
    same(a("TW.ACK", "k", again.receipt), 1)
    following = take(b, "k")
    same((following.due, following.attempt), (job.due + 1000, 1))
    same(c("TW.ACK", "k", following.receipt), 1)
    same(a("TW.DROP", "k"), "+OK")
    assert eventually(lambda: rows() == [0, 0], 4)


@test("each second has an occurrence, and none after it was acknowledged, by kills")
def _():
    seed = random.randrange(1000)
    print(f"# seed {seed}")
    chance = random.Random(seed)
    create("kills", lease=1, tries=0)
    same(every(a, "FREQ=SECONDLY", "MISSED", "all", "body", queue="kills"), "NEW")
    seen, acked, kills = set(), set(), 0
    while kills < 3:
        node = chance.choice(nodes)
        job = take(node, "kills", seconds=0.2)
        if not job:
            continue
        same(named(job), job.due)
        assert job.due not in acked, job
        seen.add(job.due)
        client = Client(node.path)
        client.send("TW.ACK", "kills", job.receipt)
        if len(acked) <= kills:
            same(client.answer(), 1)
            acked.add(job.due)
            continue
        time.sleep(chance.random() / 200)
        node.stop(signal.SIGKILL)
        node.start()
        kills += 1
    first, last = min(seen), max(seen)
    missing = set(range(first, last, 1000)) - seen
    # Jobs of the nodes that were killed last still belong to these nodes.
    while missing and now() < last + 15000:
        for node in nodes:
            job = take(node, "kills", seconds=0.2)
            if job:
                assert job.due not in acked, job
                missing.discard(job.due)
                same(node("TW.ACK", "kills", job.receipt), 1)
                acked.add(job.due)
    same(missing, set())
    print(f"# {len(seen)} occurrences, {len(acked)} acknowledged")
    same(a("TW.DROP", "kills"), "+OK")
    assert eventually(lambda: rows() == [0, 0], 4)


@test("MISSED: the last, all or none of those that no worker has taken")
def _():
    jobs = {}
    create("last", "all", "none")
    for which in ("last", "all", "none"):
        same(every(a, "FREQ=SECONDLY;INTERVAL=2", "MISSED", which, "body", queue=which),
             "NEW")
    begin = now()
    time.sleep(4.5)
    at = now()
    for which, node in (("last", b), ("all", a), ("none", a)):
        job = jobs[which] = take(node, which)
        same((job.attempt, named(job)), (1, job.due))
        # The row tells that a worker has the job, and which occurrence it is.
        same(state(c, job.id, which), "held")
        same(a("TW.GET", which, job.id)[4:6], [b"due", job.due])
        same(take(c, which, seconds=0.1), None)
        same(c("TW.ACK", which, job.receipt), 1)
    assert at - 2000 < jobs["last"].due <= now()
    assert jobs["all"].due <= begin + 2000
    assert jobs["none"].due > at
    same(take(c, "all").due, jobs["all"].due + 2000)
    for which in ("last", "all", "none"):
        same(a("TW.DROP", which), "+OK")
    assert eventually(lambda: rows() == [0, 0], 4)


@test("OVERLAP: the next one may begin while one is worked on")
def _():
    same(every(a, "FREQ=SECONDLY", "body"), "NEW")
    first = take(b)
    same(take(c, seconds=1.5), None)
    same(a("TW.ACK", "q", first.receipt), 1)
    same(every(b, "FREQ=SECONDLY", "OVERLAP", "body"), "REPLACED")
    first, second = take(c), take(a)
    assert named(second) > named(first)
    assert second.id != first.id
    for job in (first, second):
        same((job.attempt, state(b, job.id), job.body), (1, "held", b"body"))
    same(b("TW.ACK", "q", first.receipt), 1)
    same(rows(), [1, 1])
    same(b("TW.CANCELKEY", "q", "e"), 1)
    # The occurrence that a worker has is a job of its own.
    same(c("TW.ACK", "q", second.receipt), 1)
    ends()


@test("a rule goes on beside an occurrence that is buried")
def _():
    create("t", tries=1)
    same(every(a, "FREQ=SECONDLY", "body", queue="t"), "NEW")
    first = take(b, "t")
    same(c("TW.NACK", "t", first.receipt), "+BURIED")
    second = take(a, "t")
    same(second.id, first.id)
    keys = [first.key, second.key]
    assert first.key < second.key
    same(b("TW.BURY", "t", second.receipt), "+OK")
    same(sql("select string_agg(convert_from(key, 'UTF8'), ' ' order by key)\n"
             " from timewheel.job where buried and not rule"),
         f"{first.key.decode()} {second.key.decode()}")
    same(c("TW.CANCELKEY", "t", "e"), 1)
    same(a("TW.KICK", "t", "ALL", 9), 2)
    for old in (take(c, "t"), take(c, "t")):
        same((old.body, old.attempt), (b"body", 1))
        same(b("TW.ACK", "t", old.receipt), 1)
        keys.remove(old.key)
    same(keys, [])
    ends("t")


@test("an occurrence in whose place another job is stays what it is")
def _():
    same(every(a, "FREQ=SECONDLY", "MISSED", "all", "OVERLAP", "body"), "NEW")
    due = int(sql("select due from timewheel.job"))
    name = time.strftime("e@%Y-%m-%dT%H:%M:%S", time.gmtime(due / 1000))
    other = b("TW.PUT", "q", "other", "KEY", name, "IN", 1000)[0]
    job = take(c)
    same((job.key.decode(), job.body), (name, b"body"))
    same(a("TW.BURY", "q", job.receipt), "-FULL there is no room for a job")
    same(b("TW.ACK", "q", job.receipt), 1)
    same(a("TW.CANCEL", "q", other), 1)
    same(a("TW.CANCELKEY", "q", "e"), 1)
    ends()


def pipeline(node, commands):
    for command in commands:
        node.client.send(*command)
    return [node.client.answer() for _ in commands]


@test("a turn that needs more numbers of new jobs than a node has in store")
def _():
    create("x", "y", "numbers")
    keys = [(queue, i) for queue in "xy" for i in range(450)]
    for answer in pipeline(b, [("TW.EVERY", *key, "@yearly", "OVERLAP", "body")
                               for key in keys]):
        same(answer[1], b"NEW")
    # A node takes 1000 numbers at once, and looks whether it has 600 when a turn begins.
    put = ("TW.PUT", "numbers", "x", "IN", 1000)
    pipeline(b, [put] * ((1000 - 620 - b(*put)) % 1000))
    same(set(pipeline(b, [("TW.MOVEKEY", *key, "IN", 0) for key in keys])), {1})
    jobs = Client(b.path)("TW.TAKE", "x", "y", "COUNT", 1000)
    same(len(jobs), len(keys))
    for queue in "xy":
        receipts = [job[2] for job in jobs if job[0] == queue.encode()]
        same(set(a("TW.ACK", queue, *receipts)), {1})
    same(rows(), [900, 900])
    for queue in ("x", "y", "numbers"):
        same(a("TW.DROP", queue), "+OK")
    assert eventually(lambda: sql("select count(*) from timewheel.job") == "0", 9)
    same(rows(), [0, 0])


def write_zone(hours):
    """Returns the file of a time zone that is always the given number of hours east of Greenwich."""
    block = (b"TZif2" + bytes(31) + (1).to_bytes(4, "big") + (4).to_bytes(4, "big")
             + (hours * 3600).to_bytes(4, "big") + bytes(2) + b"XXX\0")
    new = zones / "new"
    new.write_bytes(block * 2 + b"\nXXX-%d\n" % hours)
    new.rename(zones / "Town")


@test("a time zone's new file moves the occurrence, but none that a worker has")
def _():
    def due():
        return int(sql("select due from timewheel.job")) // 1000
    write_zone(1)
    same(every(a, "30 12 * * *", "TZ", "Town", "body"), "NEW")
    before = due()
    same(before % 86400, 41400)
    write_zone(2)
    assert eventually(lambda: due() == before - 3600, 8)
    # The row counts, whatever the owner's wheel says.
    sql("update timewheel.job set attempts = 1, held_until = timewheel.now() + 60000")
    write_zone(3)
    time.sleep(3)
    same(due(), before - 3600)
    sql("update timewheel.job set attempts = 0, held_until = 0")
    assert eventually(lambda: due() == before - 7200, 8)
    same(b("TW.KICK", "q", sql("select id from timewheel.job")), 1)
    job = take(c)
    same(named(job), before * 1000 + 3600000)
    same(b("TW.ACK", "q", job.receipt), 1)
    same(due(), before - 7200 + 86400)
    same(a("TW.CANCELKEY", "q", "e"), 1)
    ends()


@test("a node that does not know a rule's zone hands nothing out, and counts no delivery")
def _():
    write_zone(1)
    same(every(a, "30 12 * * *", "TZ", "Town", "body"), "NEW")
    (zones / "Town").unlink()
    same(b("TW.KICK", "q", sql("select id from timewheel.job")), 1)
    def is_refused():
        same(take(b, seconds=1), None)
        return "the rule \"30 12" in b.said()
    assert eventually(is_refused, 10), b.said()
    write_zone(1)
    job = take(b)
    same(job.attempt, 1)
    same(a("TW.ACK", "q", job.receipt), 1)
    same(a("TW.CANCELKEY", "q", "e"), 1)
    ends()


for node in nodes:
    node.stop()
end()
