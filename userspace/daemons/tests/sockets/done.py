# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of UNIQUE and KEEPDONE: what is kept of jobs that workers have done.
import signal
import sqlite3
import time

from daemon import *


def done(daemon, *options, queue="q"):
    return page(daemon, *options, verb="TW.DONE", queue=queue)


def is_done(daemon, job):
    """Checks the answers of all verbs about a done job, which has the key k and a minute left."""
    same(sizes(daemon), [1, 65, 0, 0, 0, 1, 0])
    for again in ((), ("REPLACE",), ("IN", 9, "UNIQUE", 1)):
        same(daemon("TW.PUT", "q", "again", "KEY", "k", *again), [job, b"DONE"])
    for verb in (("CANCEL", job), ("CANCELKEY", "k"), ("MOVE", job, "IN", 0),
                 ("MOVEKEY", "k", "IN", 0), ("KICK", job), ("KICK", "ALL", 9)):
        same(daemon(f"TW.{verb[0]}", "q", *verb[1:]), 0)
    assert daemon("TW.EVERY", "q", "k", "@daily", "x").startswith("-ERR")
    told = get(daemon, job)
    same([told[n] for n in ("state", "key", "body", "unique_ms")],
         [b"done", b"k", b"", 60000])
    assert 40 < told["due"] / 1000 - time.time() <= 60, told
    same([of_map(j)["id"] for j in daemon("TW.LIST", "q", "STATE", "done")[1]], [job])
    for other in ("buried", "delayed", "ready"):
        same(daemon("TW.LIST", "q", "STATE", other)[1], [])
    same(take(daemon, seconds=0.1), None)
    same(sizes(daemon), [1, 65, 0, 0, 0, 1, 0])


@each_store("UNIQUE keeps the key of a job that is done, and nothing else")
@in_stores("MAXJOBS", 3)
def _(daemon):
    put = ("TW.PUT", "q", "x" * 1000, "KEY", "k", "UNIQUE", 60)
    job = daemon(*put)[0]
    same(daemon(*put), [job, b"EXISTS"])
    same(daemon("TW.NACK", "q", take(daemon)[1], "REASON", "why"), "+OK")
    receipt = take(daemon)[1]
    same(daemon("TW.ACK", "q", receipt), 1)
    for answer in ("TW.ACK", "TW.NACK", "TW.BURY", "TW.EXTEND"):
        assert daemon(answer, "q", receipt).startswith("-STALE"), answer
    for end_of_it in (signal.SIGKILL, signal.SIGTERM, None):
        is_done(daemon, job)
        same(figure(daemon, None, b"mended"), 0)
        if end_of_it and daemon.store != "memory":
            restart(daemon, end_of_it)
    others = [daemon("TW.PUT", "q", "x", "IN", 99) for _ in range(2)]
    same(daemon("TW.PUT", "q", "x"), "-FULL the queue has its 3 jobs, 1 of them done")
    same(daemon("TW.DELETE", "q", job), 1)
    same(daemon(*put)[1], b"NEW")
    for other in others:
        same(daemon("TW.CANCEL", "q", other), 1)
    same(daemon("TW.CANCELKEY", "q", "k"), 1)
    same(sizes(daemon), [0] * 7)


@each_store("a job that is done ends after its time, by a put or by itself")
@in_stores()
def _(daemon):
    body = "x" * 300
    put = ("TW.PUT", "q", body, "KEY", "k", "UNIQUE", 1)
    jobs = []
    for by_transaction in (False, True, False):
        answer = gathered(daemon, put)[0] if by_transaction else daemon(*put)
        same(answer[1], b"NEW")
        jobs.append(answer[0])
        same(daemon("TW.ACK", "q", take(daemon)[1]), 1)
        same(daemon(*put), [jobs[-1], b"DONE"])
        time.sleep(1.1)
    same(len(set(jobs)), 3)
    # One of many done jobs has long to go, and no worker takes jobs.
    for i in range(1200):
        daemon.client.send("TW.PUT", "q", body, "KEY", i, "UNIQUE", 2 if i else 500)
    for i in range(1200):
        same(daemon.client.answer()[1], b"NEW")
    for _ in range(1200):
        same(daemon("TW.ACK", "q", take(daemon)[1]), 1)
    same(daemon("TW.PAUSE", "q"), "+OK")
    assert eventually(lambda: sizes(daemon) == [1, 65, 0, 0, 0, 1, 0]), sizes(daemon)
    same(daemon("TW.PUT", "q", body, "KEY", 0)[1], b"DONE")
    same(daemon("TW.PUT", "q", body, "KEY", 1)[1], b"NEW")
    same(figure(daemon, None, b"mended"), 0)
    if daemon.store != "memory":
        tables = {"job": 2} if shared else {"job": 2, "body": 1, "option": 1, "failure": 0}
        same(rows(daemon, *tables), [*tables.values()])


@each_store("only an ACK that is committed makes a job done")
@in_stores()
def _(daemon):
    put = ("TW.PUT", "q", "x", "KEY", "k", "UNIQUE", 60)
    job = daemon(*put)[0]
    same(daemon("TW.CANCEL", "q", job), 1)
    job = daemon(*put)[0]
    same(daemon("TW.BURY", "q", take(daemon)[1]), "+OK")
    same(daemon(*put), [job, b"BURIED"])
    same(daemon(*put, "REPLACE"), [job, b"REPLACED"])
    receipt = take(daemon)[1]
    same(gathered(daemon, ("TW.ACK", "q", receipt), ("TW.CANCEL", "none", 1))[:21],
         "-EXECABORT 2: NOQUEUE")
    same(sizes(daemon)[3:6], [1, 0, 0])
    same(gathered(daemon, ("TW.ACK", "q", receipt), ("TW.PUT", "q", "x", "IN", 99)),
         [1, job + 1])
    same(daemon("TW.CANCEL", "q", job + 1), 1)
    is_done(daemon, job)
    # The options of the last put count.
    for first, last, mark in ((("UNIQUE", 60), ("LEASE", 9), b"NEW"),
                              ((), ("UNIQUE", 60), b"DONE")):
        put = ("TW.PUT", "q", "x", "KEY", "l")
        other = daemon(*put, *first)[0]
        same(daemon(*put, *last, "REPLACE"), [other, b"REPLACED"])
        same(daemon("TW.ACK", "q", take(daemon)[1]), 1)
        same(daemon(*put)[1], mark)
        assert daemon("TW.DELETE", "q", daemon("TW.GETKEY", "q", "l")[1]) == 1
    is_done(daemon, job)


def done_ids(daemon, *options):
    return [job["id"] for job in done(daemon, *options)[0]]


def finish(daemon, *put, queue="q"):
    """Returns the number of a job that is put and done."""
    job = daemon("TW.PUT", queue, "x" * 1000, *put)
    same(daemon("TW.ACK", queue, take(daemon, queue)[1]), 1)
    return job[0] if put else job


@each_store("KEEPDONE keeps what TW.DONE tells of jobs that workers have done, and of no others")
@in_stores("KEEPDONE", 60)
def _(daemon):
    same([daemon("TW.CREATE", *queue) for queue in (("r",), ("s", "KEEPDONE", 60))], ["+OK"] * 2)
    same([figure(daemon, n, b"keep_done_ms") for n in "qr"], [60000, 0])
    begin = time.time() * 1000 - 1
    jobs = [finish(daemon), finish(daemon, "KEY", "k"), finish(daemon, "KEY", b"\xff")]
    finish(daemon, queue="r")
    jobs += [daemon("TW.PUT", "q", "x")]
    for _ in range(2):
        same(daemon("TW.NACK", "q", take(daemon)[1]), "+OK")
    same(daemon("TW.ACK", "q", take(daemon)[1], "stale"), [1, 0])
    jobs += [finish(daemon, "KEY", "u", "UNIQUE", 50)]
    for end_of_it in ("CANCEL", "DELETE"):
        same(daemon(f"TW.{end_of_it}", "q", daemon("TW.PUT", "q", "x")), 1)
    buried = daemon("TW.PUT", "q", "x")
    same(daemon("TW.BURY", "q", take(daemon)[1]), "+OK")
    same(daemon("TW.DELETE", "q", buried), 1)
    same(sizes(daemon), [1, 65, 0, 0, 0, 1, 0])
    for end_of_it in (signal.SIGKILL, signal.SIGTERM, None):
        told, cursor = done(daemon)
        same([(j["id"], j["key"], j["attempts"]) for j in told],
             list(zip(jobs[::-1], (b"u", None, b"\xff", b"k", None), (1, 3, 1, 1, 1))))
        same(cursor, 0)
        times = [t for j in told[::-1] for t in (j["due"], j["ended"])]
        assert begin <= min(times) and max(times) <= time.time() * 1000, times
        same([j["ended"] for j in told], sorted((j["ended"] for j in told), reverse=True))
        same(set(map(len, told)), {5})
        same([done(daemon, queue=n) for n in "rs"], [([], 0)] * 2)
        if end_of_it and daemon.store != "memory":
            restart(daemon, end_of_it)
    same(figure(daemon, None, b"mended"), 0)
    if daemon.store != "memory":
        same(rows(daemon, "done"), [5])


@each_store("TW.DONE tells each job once, page by page, while further ones are done")
@in_stores("KEEPDONE", 60)
def _(daemon):
    jobs = [finish(daemon) for _ in range(105)]
    same(done_ids(daemon), jobs[:4:-1])
    told, cursor = [], 0
    while True:
        page, cursor = done(daemon, "COUNT", 40, "CURSOR", cursor)
        told += [j["id"] for j in page]
        if not cursor:
            break
        finish(daemon)
    same(told, jobs[::-1])
    same(done_ids(daemon, "COUNT", 1000)[2:], jobs[::-1])


@each_store("an occurrence of a rule is told of when it is done")
@with_queue("KEEPDONE", 60)
def _(daemon):
    job = daemon("TW.EVERY", "q", "often", "FREQ=SECONDLY", "x")[0]
    due = []
    for _ in range(2):
        got = take(daemon, seconds=5)
        due += [get(daemon, job)["due"]]
        same(daemon("TW.ACK", "q", got[1]), 1)
    same(daemon("TW.CANCEL", "q", job), 1)
    same([(j["id"], j["key"], j["due"]) for j in done(daemon)[0]],
         [(job, b"often", due[1]), (job, b"often", due[0])])


@each_store("only an ACK that is committed is told of as done")
@in_stores("KEEPDONE", 60)
def _(daemon):
    job = daemon("TW.PUT", "q", "x")
    receipt = take(daemon)[1]
    same(gathered(daemon, ("TW.ACK", "q", receipt), ("TW.CANCEL", "none", 1))[:21],
         "-EXECABORT 2: NOQUEUE")
    same(gathered(daemon, ("TW.ACK", "q", receipt), ("TW.ACK", "q", "stale"))[:20],
         "-EXECABORT 2: STALE ")
    same(done(daemon), ([], 0))
    same(gathered(daemon, ("TW.ACK", "q", receipt)), [1])
    same(done_ids(daemon), [job])


@each_store("what is kept of jobs ends with its time, by an ACK or by itself, and with the queue")
@in_stores("KEEPDONE", 60)
def _(daemon):
    same(daemon("TW.CREATE", "r", "KEEPDONE", 60), "+OK")
    for _ in range(700):
        finish(daemon)
    finish(daemon, queue="r")
    same(daemon("TW.CREATE", "q", "KEEPDONE", 0.7), "+OK")
    assert eventually(lambda: done(daemon) == ([], 0))
    if daemon.store != "memory":
        assert eventually(lambda: rows(daemon, "done") == [1]), rows(daemon, "done")
    last = finish(daemon)
    same(done_ids(daemon), [last])
    # The removal goes on after a crash, too, when the setting has gone.
    same(daemon("TW.CREATE", "q", "KEEPDONE", 60), "+OK")
    for _ in range(3):
        finish(daemon)
    same(daemon("TW.CREATE", "q", "KEEPDONE", 0), "+OK")
    same(figure(daemon, "q", b"keep_done_ms"), 0)
    finish(daemon)
    same(done(daemon), ([], 0))
    if daemon.store != "memory":
        restart(daemon, signal.SIGKILL)
        assert eventually(lambda: rows(daemon, "done") == [1]), rows(daemon, "done")
    same(daemon("TW.DROP", "r"), "+OK")
    if daemon.store != "memory":
        assert eventually(lambda: rows(daemon, "done") == [0]), rows(daemon, "done")


@test("an ACK ends up to two jobs that have been kept for too long")
@with_queue("KEEPDONE", 60, store=folder / "two")
def _(daemon):
    for _ in range(5):
        finish(daemon)
    with sqlite3.connect(daemon.store) as db:
        db.execute("update done set ended = 0 where n < 4")
    db.close()
    same(len(done_ids(daemon)), 2)
    numbers = []
    for _ in range(3):
        finish(daemon)
        numbers += rows(daemon, "done")
    same(numbers, [4, 4, 5])
