# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of GROUP, GROUPLIMIT and GROUPRATE.
import signal
import time

from daemon import *


def group_of(daemon, jobs):
    """Returns the groups of taken jobs, with the number of jobs of each group."""
    groups = [get(daemon, job[1]).get("group") for job in jobs or ()]
    return {group: groups.count(group) for group in groups}


@test("GROUPRATE: so many jobs of one group, and the others have times of their own")
@in_stores("GROUPRATE", 2, 2000, "LEASE", 100)
def _(daemon):
    same([figure(daemon, "q", name) for name in (b"group_rate", b"group_rate_ms")],
         [2, 2000000])
    jobs = put(daemon, 3, "GROUP", "a") + put(daemon, 4, "GROUP", b"b\xff")
    key = daemon("TW.PUT", "q", "x", "KEY", "k", "GROUP", "a")[0]
    put(daemon, 2)
    job = put(daemon, 1, "IN", 1000, "GROUP", "c")[0]
    same([told["group"] for told in told_twice(daemon, job)], [b"c"] * 2)
    taken = daemon("TW.TAKE", "q", "COUNT", 99)
    same(group_of(daemon, taken), {b"a": 2, b"b\xff": 2, None: 2})
    takes_nothing(daemon)
    # A try that failed counts, too.
    first = next(j for j in taken if j[1] in jobs)
    same(daemon("TW.NACK", "q", first[2]), "+OK")
    takes_nothing(daemon)
    same(figure(daemon, "q", b"due"), 0)
    same(daemon("TW.PUT", "q", "x", "KEY", "k"), [key, b"EXISTS"])
    late = next(j for j in jobs if j not in [t[1] for t in taken])
    same(state(daemon, late), "ready")
    same(daemon("TW.CANCEL", "q", late), 1)
    waiting_take(daemon)
    is_idle(daemon)
    time.sleep(1.5)
    same(figure(daemon, None, b"mended"), 0)
    # Without a limit the jobs are due as they were.
    same(daemon("TW.CREATE", "q", "GROUPRATE", 0, 0), "+OK")
    for _ in range(4):
        assert take(daemon, seconds=20)
    takes_nothing(daemon)


@test("GROUPRATE hands out the jobs of a group evenly, each once, and counts their tries")
@in_stores("GROUPRATE", 10, 5)
def _(daemon):
    jobs = put(daemon, 13, "GROUP", "g")
    begin = time.monotonic()
    taken = [take(daemon, seconds=20) for _ in jobs]
    assert time.monotonic() - begin > 1.48
    same(sorted(job for job, *_ in taken), jobs)
    same([attempt for _, _, attempt, _ in taken], [1] * 13)
    takes_nothing(daemon)
    same(daemon("TW.CREATE", "r", "GROUPRATE", 1, 0.5, "LEASE", 0.2), "+OK")
    begin = time.monotonic()
    put(daemon, 1, "GROUP", "g", queue="r")
    same([take(daemon, "r", seconds=20)[2] for _ in range(4)], [1, 2, 3, 4])
    assert time.monotonic() - begin > 1.4


@test("a job that waits for its group's time has it, though tokens are compared with jobs")
@with_queue("GROUPRATE", 1, 8)
def _(daemon):
    put(daemon, 2, "GROUP", "g")
    assert take(daemon)
    takes_nothing(daemon)
    # A token that is put back again and again would have later and later times.
    assert take(daemon, seconds=20)


@test("a group at its rate lets a job behind its many jobs through, and ends with the queue")
@with_queue("GROUPRATE", 1, 1000, store=folder / "behind")
def _(daemon):
    at_once(daemon, *[("TW.PUT", "q", "x", "GROUP", "many")] * 1200)
    time.sleep(0.005)
    same(len(daemon("TW.TAKE", "q")), 1)
    job = put(daemon, 1, "GROUP", "few")[0]
    # Each take puts off at most 500 jobs.
    same([daemon("TW.TAKE", "q") for _ in range(2)], [None, None])
    taken = daemon("TW.TAKE", "q")[0]
    same(taken[1], job)
    same(daemon("TW.ACK", "q", taken[2]), 1)
    restart(daemon, signal.SIGKILL)
    same(len(daemon("TW.TAKE", "q")), 1)
    job = put(daemon, 1, "GROUP", "other")[0]
    same(take(daemon, seconds=20)[0], job)
    same(daemon("TW.DROP", "q"), "+OK")
    same(daemon("TW.CREATE", "q", "GROUPRATE", 1, 1000), "+OK")
    put(daemon, 1, "GROUP", "many")
    assert take(daemon)


def waiting_ids(daemon):
    listed = page(daemon, "STATE", "waiting")[0]
    same([j["state"] for j in listed], [b"waiting"] * len(listed))
    return [j["id"] for j in listed]


@test("GROUPLIMIT: workers have so many jobs of a group, and the others wait for the end of one")
@in_stores("GROUPLIMIT", 2, "LEASE", 100)
def _(daemon):
    same(figure(daemon, "q", b"group_limit"), 2)
    jobs = put(daemon, 7, "GROUP", "a")
    put(daemon, 3, "GROUP", "b")
    put(daemon, 1)
    taken = daemon("TW.TAKE", "q", "COUNT", 99)
    same(group_of(daemon, taken), {b"a": 2, b"b": 2, None: 1})
    takes_nothing(daemon)
    assert all(get(daemon, j)["state"] == b"waiting" and get(daemon, j)["attempts"] == 0
               for j in waiting_ids(daemon))
    same((figure(daemon, "q", b"waiting"), len(waiting_ids(daemon))), (6, 6))
    same(counts(daemon), [11, 0, 5, 0])
    receipts = {j[1]: j[2] for j in taken if j[1] in jobs}
    for end_of_it in (("TW.ACK",), ("TW.BURY",), ("TW.NACK", "IN", 1000),
                      ("TW.NACK", "UNTRIED", "IN", 1000), ("TW.DELETE",)):
        client = waiting_take(daemon)
        job, receipt = receipts.popitem()
        same(daemon(end_of_it[0], "q", job if end_of_it[0] == "TW.DELETE" else receipt,
                    *end_of_it[1:]) in (1, "+OK"), True)
        got = client.answer()[0]
        same((got[1] in jobs, got[3]), (True, 1))
        receipts[got[1]] = got[2]
        takes_nothing(daemon)


@test("a job that waits for its group can be moved, replaced, kicked, cancelled and deleted")
@in_stores("GROUPLIMIT", 1, "LEASE", 100)
def _(daemon):
    job = put(daemon, 1, "GROUP", "g")[0]
    same(take(daemon)[0], job)
    keyed = daemon("TW.PUT", "q", "x", "KEY", "k", "GROUP", "g")[0]
    others = put(daemon, 3, "GROUP", "g")
    takes_nothing(daemon)
    same(waiting_ids(daemon), [keyed, *others])
    same(daemon("TW.PUT", "q", "x", "KEY", "k"), [keyed, b"EXISTS"])
    same(daemon("TW.MOVEKEY", "q", "k", "IN", 1000), 1)
    same(state(daemon, keyed), "delayed")
    same(daemon("TW.MOVEKEY", "q", "k", "IN", 0), 1)
    same(daemon("TW.KICK", "q", others[0]), 1)
    time.sleep(0.005)
    same([state(daemon, j) for j in (keyed, others[0])], ["ready"] * 2)
    takes_nothing(daemon)
    same(waiting_ids(daemon), [keyed, *others])
    same(daemon("TW.CANCEL", "q", others[0]), 1)
    same(daemon("TW.DELETE", "q", others[1]), 1)
    same(daemon("TW.PUT", "q", "y", "KEY", "k", "REPLACE", "GROUP", "other"),
         [keyed, b"REPLACED"])
    same(take(daemon)[::3], (keyed, "y"))
    same((waiting_ids(daemon), figure(daemon, "q", b"waiting")), (others[2:], 1))
    if daemon.store != "memory":
        same(rows(daemon, "waiting"), [1])
    same(daemon("TW.DROP", "q"), "+OK")
    if daemon.store != "memory":
        assert eventually(lambda: rows(daemon, "waiting") == [0])


@test("waiting jobs and places in groups outlive a restart and kill -9")
@with_queue("GROUPLIMIT", 1, "LEASE", 100, store=folder / "outlives")
def _(daemon):
    jobs = put(daemon, 3, "GROUP", "g")
    first, receipt, *_ = take(daemon)
    takes_nothing(daemon)
    same(len(waiting_ids(daemon)), 2)
    # Workers keep their jobs over a stop. After a kill the jobs are handed out again.
    restart(daemon, signal.SIGTERM)
    late = put(daemon, 1, "GROUP", "g")[0]
    takes_nothing(daemon)
    same(len(waiting_ids(daemon)), 3)
    same(daemon("TW.ACK", "q", receipt), 1)
    second = take(daemon, seconds=20)
    assert second[0] in jobs and second[0] != first
    restart(daemon, signal.SIGKILL)
    got = [take(daemon, seconds=20)]
    takes_nothing(daemon)
    for _ in range(2):
        same(daemon("TW.ACK", "q", got[-1][1]), 1)
        got.append(take(daemon, seconds=20))
    same(sorted(job for job, *_ in got), sorted({*jobs, late} - {first}))


@test("a job that has to wait for its group counts a try whose lease was over before")
@in_stores("LEASE", 100)
def _(daemon):
    other, job, first = (put(daemon, 1, *options)[0] for options in (
        ("GROUP", "g"), ("GROUP", "g", "LEASE", 0.2), ("LEASE", 0.1)))
    receipts = {j[1]: j[2] for j in daemon("TW.TAKE", "q", "COUNT", 9)}
    same(set(receipts), {other, job, first})
    time.sleep(0.3)
    # This has the wheel end both leases. Of the try of the other job it alone knows.
    same(take(daemon)[::2], (first, 2))
    # The job that was first would come again soon.
    same(daemon("TW.DELETE", "q", first), 1)
    same((state(daemon, job), get(daemon, job)["attempts"]), ("ready", 0))
    same(daemon("TW.CREATE", "q", "GROUPLIMIT", 1), "+OK")
    takes_nothing(daemon)
    same((waiting_ids(daemon), get(daemon, job)["attempts"]), ([job], 1))
    if daemon.store != "memory":
        restart(daemon, signal.SIGTERM)
    same(daemon("TW.ACK", "q", receipts[other]), 1)
    same(take(daemon, seconds=20)[::2], (job, 2))


@test("a job whose lease is over keeps its place in its group, and counts its tries")
@in_stores("GROUPLIMIT", 1, "LEASE", 0.2, "TRIES", 3)
def _(daemon):
    job = put(daemon, 1, "GROUP", "g")[0]
    same(take(daemon)[0], job)
    # A job that was due earlier does not get the place either.
    other = put(daemon, 1, "GROUP", "g", "AT", int(time.time() * 1000) - 9000)[0]
    same([take(daemon, seconds=20)[::2] for _ in range(2)], [(job, 2), (job, 3)])
    # After the last try the other job has its turn.
    same(take(daemon, seconds=20)[::2], (other, 1))
    same(state(daemon, job), "buried")


def take_all(daemon):
    """Takes jobs until several takes in turn have found nothing."""
    jobs, nothing = [], 0
    while nothing < 3:
        found = daemon("TW.TAKE", "q", "COUNT", 1000) or []
        nothing = 0 if found else nothing + 1
        jobs += found
    return jobs


@test("another GROUPLIMIT counts what workers have, and opens what need not wait")
@in_stores("LEASE", 100)
def _(daemon):
    put(daemon, 3, "GROUP", "g")
    same(len(daemon("TW.TAKE", "q", "COUNT", 99)), 3)
    same(daemon("TW.CREATE", "q", "GROUPLIMIT", 2), "+OK")
    put(daemon, 300, "GROUP", "g")
    put(daemon, 300, "GROUP", b"g\x00")
    same(len(take_all(daemon)), 2)
    same(figure(daemon, "q", b"waiting"), 598)
    same(daemon("TW.CREATE", "q", "GROUPLIMIT", 5), "+OK")
    assert eventually(lambda: figure(daemon, "q", b"waiting") == 593)
    same(len(take_all(daemon)), 5)
    same(daemon("TW.CREATE", "q", "GROUPLIMIT", 0), "+OK")
    assert eventually(lambda: figure(daemon, "q", b"waiting") == 0)
    same(len(take_all(daemon)), 593)


@test("an answer in a transaction that is undone frees no place in a group")
@with_queue("GROUPLIMIT", 1, "LEASE", 100)
def _(daemon):
    put(daemon, 2, "GROUP", "g")
    receipt = take(daemon)[1]
    takes_nothing(daemon)
    same(gathered(daemon, ("TW.ACK", "q", receipt), ("TW.CANCEL", "none", 1))[:21],
         "-EXECABORT 2: NOQUEUE")
    takes_nothing(daemon)
    same(figure(daemon, "q", b"waiting"), 1)
    same(gathered(daemon, ("TW.ACK", "q", receipt)), [1])
    assert take(daemon, seconds=20)


@test("a rule's occurrences are of its group")
@with_queue("GROUPRATE", 2, 2000)
def _(daemon):
    job = daemon("TW.EVERY", "q", "often", "FREQ=SECONDLY", "MISSED", "all", "OVERLAP",
                 "GROUP", "g", "x")[0]
    same(get(daemon, job)["group"], b"g")
    assert take(daemon, seconds=20) and take(daemon, seconds=20)
    same(take(daemon, seconds=2.5), None)
