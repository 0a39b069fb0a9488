#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# rules.py OUTPUT: tests jobs that come again by a rule, with three daemons on one database, as far
# as other stores do not have that: SQL, many nodes' rules, a node that dies. Other tests
# of rules are in ../sockets. Prints TAP.
import signal
import time

from common import (PATIENCE, Client, Node, Sql, at_once, end, eventually, every, init_database,
                    same, take_job, test)

init_database().check_returncode()
nodes = a, b, c = Node("a"), Node("b"), Node("c")
sql = Sql()


def create(*queues, lease=30, tries=3):
    for queue in queues:
        same(a("TW.CREATE", queue, "LEASE", lease, "TRIES", tries), "+OK")
    for node in nodes:
        assert eventually(lambda: node("TW.GET", queues[-1], 1) is None)


def rows():
    """Returns the number of rules, and the number of jobs that say that they have a rule."""
    return [int(sql(f"select count(*) from timewheel.{table}")) for table in
            ("rule", "job where rule")]


def ends(queue="q"):
    same(rows(), [0, 0])
    assert eventually(lambda: sql(
        "select sum(jobs) + sum(bytes) from timewheel.node_queue n\n"
        f" join timewheel.queue q on q.id = n.queue where q.name = '{queue}'") == "0")


create("q")


@test("SQL: the key of a rule, and a job that a worker has")
def _():
    same(every(a, "FREQ=SECONDLY", "body"), "NEW")
    job = int(sql("select id from timewheel.job"))
    put = "select timewheel.put('q', 'x', key => 'e', replace => {})"
    assert "the key is that of a rule" in sql(put.format("true"))
    same(sql(put.format("false")), str(job))
    taken = take_job(b)
    assert "HELD" in sql("select timewheel.cancel('q', 'e')")
    same(rows(), [1, 1])
    same(a("TW.ACK", "q", taken.receipt), 1)
    same(a("TW.CANCELKEY", "q", "e"), 1)
    ends()


@test("SQL: a rule ends with its job")
def _():
    for call in "cancel('q', 'e')", "cancel('q', {job})":
        same(every(a, "@hourly", "body"), "NEW")
        job = sql("select id from timewheel.job")
        same(sql(f"select timewheel.{call.format(job=job)}"), "t")
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
    assert eventually(lambda: rows() == [0, 0])


@test("a worker ends at a node that is killed: the same occurrence comes again")
def _():
    create("k", lease=2)
    same(every(a, "FREQ=SECONDLY", "MISSED", "all", "body", queue="k"), "NEW")
    job = take_job(b, "k")
    b.stop(signal.SIGKILL)
    # By the row its lease is over, but the job still belongs to the killed node.
    same(take_job(c, "k", seconds=3), None)
    again = take_job(c, "k", seconds=PATIENCE / 2)
    same((again.id, again.key, again.due, again.attempt), (job.id, job.key, job.due, 2))
    b.start()
    same(a("TW.ACK", "k", job.receipt)[:6], "-STALE")
    same(a("TW.ACK", "k", again.receipt), 1)
    following = take_job(b, "k")
    same((following.due, following.attempt), (job.due + 1000, 1))
    same(c("TW.ACK", "k", following.receipt), 1)
    same(a("TW.DROP", "k"), "+OK")
    assert eventually(lambda: rows() == [0, 0])


@test("an occurrence in whose place another job is stays what it is")
def _():
    same(every(a, "FREQ=SECONDLY", "MISSED", "all", "OVERLAP", "body"), "NEW")
    due = int(sql("select due from timewheel.job"))
    name = time.strftime("e@%Y-%m-%dT%H:%M:%S", time.gmtime(due / 1000))
    other = b("TW.PUT", "q", "other", "KEY", name, "IN", 1000)[0]
    job = take_job(c)
    same((job.key.decode(), job.body), (name, b"body"))
    same(a("TW.BURY", "q", job.receipt), "-FULL there is no room for a job")
    same(b("TW.ACK", "q", job.receipt), 1)
    same(a("TW.CANCEL", "q", other), 1)
    same(a("TW.CANCELKEY", "q", "e"), 1)
    ends()


@test("a turn that needs more numbers of new jobs than a node has in store")
def _():
    create("x", "y", "numbers")
    keys = [(queue, i) for queue in "xy" for i in range(450)]
    for answer in at_once(b, *[("TW.EVERY", *key, "@yearly", "OVERLAP", "body") for key in keys]):
        same(answer[1], b"NEW")
    # A node takes 1000 numbers at once, and looks whether it has 600 when a turn begins.
    put = ("TW.PUT", "numbers", "x", "IN", 1000)
    at_once(b, *[put] * ((1000 - 620 - b(*put)) % 1000))
    same(set(at_once(b, *[("TW.MOVEKEY", *key, "IN", 0) for key in keys])), {1})
    jobs = Client(b.path)("TW.TAKE", "x", "y", "COUNT", 1000)
    same(len(jobs), len(keys))
    for queue in "xy":
        receipts = [job[2] for job in jobs if job[0] == queue.encode()]
        same(set(a("TW.ACK", queue, *receipts)), {1})
    same(rows(), [900, 900])
    for queue in ("x", "y", "numbers"):
        same(a("TW.DROP", queue), "+OK")
    assert eventually(lambda: sql("select count(*) from timewheel.job") == "0")
    same(rows(), [0, 0])


for node in nodes:
    node.stop()
end()
