#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# rows.py OUTPUT: a job's row decides what two daemons do with the job, whatever their
# wheels and their receipts say. Prints TAP.
import threading
import time

from common import (Client, Node, Sql, end, eventually, init_database, same, state, take, test)

init_database().check_returncode()
a, b = Node("a"), Node("b")
sql = Sql()
same(a("TW.CREATE", "q", "LEASE", 30), "+OK")
assert eventually(lambda: isinstance(b("TW.PUT", "q", "x"), int), 3)
b("TW.ACK", "q", take(b)[1])


def change(job, what):
    """Behind the back of the owner, whose token stays as it is."""
    sql(f"update timewheel.job set {what} where id = {job}")


def put(delay):
    return a("TW.PUT", "q", "x", "IN", delay)


@test("a job that is due later by its row is not handed out")
def _():
    job = put(0.2)
    change(job, "due = due + 1500")
    same(take(a, seconds=1), None)
    got = take(a)
    same(got[0], job)
    same(a("TW.ACK", "q", got[1]), 1)


@test("a job that a worker has by its row is not handed out")
def _():
    job = put(0.2)
    change(job, "held_until = timewheel.now() + 1700")
    same(take(a, seconds=1), None)
    got = take(a)
    same(got[0], job)
    same(a("TW.ACK", "q", got[1]), 1)


@test("a receipt of a delivery before ends nothing")
def _():
    job = put(0)
    receipt = take(a)[1]
    change(job, "version = version + 1")
    for node in (a, b):
        for verb in ("TW.ACK", "TW.NACK", "TW.BURY", "TW.EXTEND"):
            same(node(verb, "q", receipt)[:6], "-STALE")
        same(node("TW.ACK", "q", receipt, receipt), [0, 0])
    same(state(a, job), "held")
    change(job, "version = version - 1")
    same(a("TW.ACK", "q", receipt), 1)


@test("a receipt whose lease is over by the row ends nothing")
def _():
    job = put(0)
    receipt = take(a)[1]
    change(job, "held_until = 1")
    same(b("TW.ACK", "q", receipt)[:6], "-STALE")
    same(state(b, job), "ready")
    change(job, "held_until = timewheel.now() + 9000")
    same(b("TW.ACK", "q", receipt), 1)


@test("of many answers at once to one delivery the first one ends it")
def _():
    clients = [Client(a.path) for _ in range(6)]
    for _ in range(5):
        put(0)
        receipt = take(a)[1]
        for client in clients:
            for verb in ("TW.ACK", "TW.NACK", "TW.ACK"):
                client.send(verb, "q", receipt)
        answers = [str(client.answer())[:6] for client in clients for _ in range(3)]
        same(sorted(answers), ["-STALE"] * 17 + ["1"])
    assert eventually(lambda: a("TW.STATS", "q")[1] == 0, 3)


class Late:
    """Meanwhile b's statements see rows as they were a second before b locks them."""

    def __enter__(self):
        sql("begin;"
            " alter table timewheel.job rename to job_rows;"
            " create function timewheel.late() returns boolean language sql volatile as"
            "  'select current_setting(''application_name'') <> ''b'' or"
            "   pg_sleep(1) is not null';"
            " create view timewheel.job as"
            "  select * from timewheel.job_rows where timewheel.late();"
            " commit")

    def __exit__(self, *_):
        sql("begin; drop view timewheel.job; drop function timewheel.late();"
            " alter table timewheel.job_rows rename to job; commit")


def at_once(*words):
    """Sends a verb to b, and returns the list to which its answer will be added."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(b(*words)))
    thread.start()
    assert eventually(lambda: sql(
        "select count(*) from pg_stat_activity\n"
        " where application_name = 'b' and wait_event = 'PgSleep'") == "1", 3)
    return thread, answers


@test("a delivery that ends while another answer to it is under way")
def _():
    job = put(0)
    receipt = take(a)[1]
    with Late():
        thread, answers = at_once("TW.ACK", "q", receipt)
        same(a("TW.NACK", "q", receipt), "+OK")
        got = take(a)
        same(got[0], job)
        thread.join()
        same(answers[0][:6], "-STALE")
        same(state(a, job), "held")
    same(a("TW.ACK", "q", got[1]), 1)


@test("a job that a worker gets while another program puts it by its key")
def _():
    job = a("TW.PUT", "q", "v1", "KEY", "k", "IN", 1000)[0]
    with Late():
        thread, answers = at_once("TW.PUT", "q", "v2", "KEY", "k", "REPLACE")
        same(a("TW.MOVE", "q", job, "IN", 0), 1)
        got = take(a)
        same((got[0], got[3]), (job, "v1"))
        thread.join()
        same(answers[0][:5], "-HELD")
    same(a("TW.ACK", "q", got[1]), 1)


for node in (a, b):
    node.stop()
end()
