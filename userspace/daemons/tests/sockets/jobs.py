# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of the protocol, and of what each verb does with a job.
import re
import signal
import socket
import time

from daemon import *


@test("the protocol, in both versions, until its end")
@with_queue()
def _(daemon):
    info = daemon("INFO")
    # Some clients would wait until "loading" is 0.
    assert b"server:twjobd" in info and b"loading" not in info
    same(daemon("PING", "hello"), b"hello")
    told = of_map(daemon("HELLO", 2))
    same([told[name] for name in ("server", "proto", "mode", "role")],
         [b"twjobd", 2, b"standalone", b"master"])
    same(daemon("COMMAND", "DOCS"), [])
    ping = b"*1\r\n$4\r\nPING\r\n"
    for question, answer in {
        b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$7\r\nTW.TAKE\r\n$1\r\nq\r\n" + ping:
        rb"%6\r\n\$6\r\nserver\r\n.*\r\n_\r\n\+PONG\r\n",
        ping + b"*x": rb"\+PONG\r\n-ERR Protocol error.*",
        b"*1\r\n$600000000\r\n": b"-ERR Protocol error.*", b"*\r\n": b"-ERR Protocol error.*",
        b"*1\r\n$4\r\nQUIT\r\n" + ping: rb"\+OK\r\n",
    }.items():
        client = Client(daemon.path)
        client.socket.sendall(question)
        client.socket.shutdown(socket.SHUT_WR)
        got = client.file.read()
        assert re.fullmatch(answer, got, re.S), (question, got)


@each_store("a job is put, taken and acknowledged")
@in_stores()
def _(daemon):
    job = daemon("TW.PUT", "q", "the body")
    same(sizes(daemon)[:4], [1, 72, 1, 0])
    queue, *got, due, key, body = daemon("TW.TAKE", "q", "BLOCK", 4000)[0]
    same((queue, got[0], got[2], key, body), (b"q", job, 1, None, b"the body"))
    assert abs(due / 1000 - time.time()) < 20
    same(daemon("TW.TAKE", "q"), None)
    same([str(daemon("TW.ACK", "q", got[1]))[:6] for _ in range(2)], ["1", "-STALE"])
    same(daemon("TW.GET", "q", job), None)
    same(sizes(daemon), [0] * 7)


@each_store("J2: no job comes before its time, however that is told")
@in_stores()
def _(daemon):
    due = int(time.time() * 1000) + 900
    second = due // 1000 + 1
    date = time.strftime("%Y-%m-%dT%H:%M:%S+02:00", time.gmtime(second + 7200))
    for body, when in ("third", ("AT", date)), ("second", ("AT", due)), ("first", ("IN", 0.4)):
        assert daemon("TW.PUT", "q", body, *when) > 0
    same(daemon("TW.TAKE", "q"), None)
    for body, at in ("first", None), ("second", due), ("third", second * 1000):
        got = daemon("TW.TAKE", "q", "BLOCK", 30000)[0]
        assert time.time() * 1000 >= got[4]
        same((got[6].decode(), got[4]), (body, at or got[4]))
    same(daemon("TW.TAKE", "q", "BLOCK", 50), None)


@each_store("a key is that of one job, whatever becomes of it")
@in_stores()
def _(daemon):
    def put(body, *options, key="k"):
        return daemon("TW.PUT", "q", body, "KEY", key, *options)

    job, mark = put("one", "IN", 100)
    same((mark, put("two")), (b"NEW", [job, b"EXISTS"]))
    other, mark = put("other", "IN", 100, key="l")
    assert mark == b"NEW" and other != job
    same(daemon("TW.TAKE", "q"), None)
    same(put("three", "REPLACE"), [job, b"REPLACED"])
    got = take(daemon)
    same((got[0], got[2:]), (job, (1, "three")))
    same(daemon("TW.BURY", "q", got[1]), "+OK")
    same(put("five"), [job, b"BURIED"])
    same(put("six", "REPLACE"), [job, b"REPLACED"])
    got = take(daemon)
    same((got[0], got[2:]), (job, (1, "six")))
    same(daemon("TW.ACK", "q", got[1]), 1)
    same(daemon("TW.MOVEKEY", "q", "l", "IN", 0), 1)
    got = take(daemon)
    same((got[0], daemon("TW.NACK", "q", got[1])), (other, "+OK"))
    same([daemon("TW.CANCELKEY", "q", "l") for _ in range(2)], [1, 0])
    again, mark = put("seven", "IN", 100)
    assert mark == b"NEW" and again != job


@each_store("each job has its own body, also one that becomes longer or shorter")
@in_stores()
def _(daemon):
    sizes = 10, 3000, 256, 257, 1, 70000, 0
    bodies = [chr(97 + i) * size for i, size in enumerate(sizes)]
    for body in bodies:
        daemon("TW.PUT", "q", body)
    got = [take(daemon) for _ in bodies]
    same(sorted(bodies.index(one[3]) for one in got), list(range(len(bodies))))
    same([daemon("TW.ACK", "q", one[1]) for one in got], [1] * len(got))
    for i, body in enumerate(bodies):
        daemon("TW.PUT", "q", body, "KEY", "k", "REPLACE")
        for attempt in 1, 2, 3:
            _, receipt, *rest = take(daemon)
            same((rest[0], bodies.index(rest[1])), (attempt, i))
            same(daemon("TW.NACK", "q", receipt), "+OK")
    same(daemon("TW.CANCELKEY", "q", "k"), 1)
    if daemon.store != "memory":
        tables = ["job"] if shared else ["job", "body"]
        same(rows(daemon, *tables), [0] * len(tables))


@each_store("jobs are moved, kicked, cancelled and deleted, each in its queue")
@in_stores()
def _(daemon):
    job = daemon("TW.PUT", "q", "a", "IN", 1000)
    same(daemon("TW.MOVE", "q", job, "IN", 2000), 1)
    same(daemon("TW.TAKE", "q"), None)
    same(daemon("TW.MOVE", "q", job, "IN", 0), 1)
    _, receipt, *_ = take(daemon)
    same([daemon("TW.DELETE", "q", job) for _ in range(2)], [1, 0])
    assert daemon("TW.ACK", "q", receipt).startswith("-STALE")
    job = daemon("TW.PUT", "q", "b", "IN", 1000)
    same(daemon("TW.KICK", "q", job), 1)
    same(daemon("TW.BURY", "q", take(daemon)[1]), "+OK")
    same(daemon("TW.CANCEL", "q", job), 1)
    for verb in ("CANCEL",), ("MOVE", "IN", 1), ("KICK",):
        same(daemon(f"TW.{verb[0]}", "q", job, *verb[1:]), 0)
    same(daemon("TW.CREATE", "other"), "+OK")
    job = daemon("TW.PUT", "q", "c", "IN", 1000)
    same([daemon("TW.CANCEL", queue, job) for queue in ("other", "q")], [0, 1])
    same(daemon("TW.KICK", "q", "ALL", 3), 0)


@each_store("J3: a job comes again when its lease is over, and is buried after its TRIES")
@in_stores("LEASE", 0.4, "TRIES", 2)
def _(daemon):
    job = daemon("TW.PUT", "q", "x")
    begin = time.monotonic()
    first = take(daemon)
    same(daemon("TW.EXTEND", "q", first[1], 0.8), "+OK")
    second = take(daemon)
    assert time.monotonic() - begin >= 0.8
    same(second[::2], (job, 2))
    same(take(daemon, seconds=1.5), None)
    same(state(daemon, job), "buried")
    refuses(daemon, "STALE | TW. | ACK q $first | EXTEND q $first | ACK q $second",
            first=first[1], second=second[1])


@each_store("J3: a job that was taken BOUND comes again at once when its connection ends")
@in_stores()
def _(daemon):
    job = daemon("TW.PUT", "q", "x")
    for bound in ("BOUND",), ():
        client = Client(daemon.path)
        receipt = client("TW.TAKE", "q", "BLOCK", 4000, *bound)[0][2]
        same(daemon("TW.TAKE", "q"), None)
        client.socket.shutdown(socket.SHUT_RDWR)
        if bound:
            again = take(daemon, seconds=20)
            same(again[::2], (job, 2))
            assert daemon("TW.ACK", "q", receipt).startswith("-STALE")
            same(daemon("TW.NACK", "q", again[1]), "+OK")
    same(take(daemon, seconds=0.3), None)
    same(daemon("TW.ACK", "q", receipt), 1)


@each_store("J3: a worker that took BOUND and stands still has its job until the lease is over")
@in_stores("LEASE", 1)
def _(daemon):
    worker = Client(daemon.path)
    job = daemon("TW.PUT", "q", "x")
    begin = time.monotonic()
    late = worker("TW.TAKE", "q", "BLOCK", 4000, "BOUND")[0][2]
    same(daemon("TW.TAKE", "q"), None)
    again = take(daemon, seconds=20)
    assert time.monotonic() - begin >= 1
    same((again[::2], daemon("TW.EXTEND", "q", again[1], 60)), ((job, 2), "+OK"))
    assert worker("TW.ACK", "q", late).startswith("-STALE")
    worker.socket.shutdown(socket.SHUT_RDWR)
    # The end of the first worker does not give back a job that another worker has taken.
    same(take(daemon, seconds=0.3), None)
    same(daemon("TW.ACK", "q", again[1]), 1)


@each_store("a worker that ends before its answer has no job, and delays none")
@in_stores()
def _(daemon):
    client = Client(daemon.path)
    client.send("TW.TAKE", "q", "BLOCK", 0)
    client.send("PING")
    time.sleep(0.2)
    client.socket.shutdown(socket.SHUT_RDWR)
    time.sleep(0.2)
    job = daemon("TW.PUT", "q", "x")
    same(take(daemon)[::2], (job, 1))


@each_store("a queue is paused, drained and resumed, also over kill -9 and for those who wait")
@in_stores("LEASE", 30, "TRIES", 3)
def _(daemon):
    same(daemon("TW.PAUSE", "q"), "+OK")
    job = daemon("TW.PUT", "q", "x")
    same(take(daemon, seconds=0.1), None)
    if daemon.store != "memory":
        same(daemon("TW.DRAIN", "q"), "+OK")
        restart(daemon, signal.SIGKILL)
        same(daemon("TW.PUT", "q", "x")[:9], "-DRAINING")
    client = waiting_take(daemon)
    same([figure(daemon, "q", name) for name in (b"paused", b"lease_ms", b"tries")], [1, 30000, 3])
    same(daemon("TW.RESUME", "q"), "+OK")
    receipt = client.answer()[0][2]
    same(daemon("TW.DRAIN", "q"), "+OK")
    same(daemon("TW.PUT", "q", "x")[:9], "-DRAINING")
    same(daemon("TW.NACK", "q", receipt), "+OK")
    got = take(daemon)
    same((got[0], daemon("TW.ACK", "q", got[1])), (job, 1))
    same(daemon("TW.RESUME", "q"), "+OK")
    assert daemon("TW.PUT", "q", "x") > 0


def pages(daemon, *options):
    """Returns how many jobs TW.LIST lists, and in how many pages."""
    count, commands, cursor = 0, 0, 0
    while cursor or not commands:
        jobs, cursor = page(daemon, "CURSOR", cursor, *options)
        count, commands = count + len(jobs), commands + 1
    return count, commands


@each_store("TW.LIST lists jobs by state and time, page by page")
@in_stores()
def _(daemon):
    for i in range(10):
        assert daemon("TW.PUT", "q", "x", "IN", 0 if i < 6 else 1000) > 0
    same(daemon("TW.BURY", "q", take(daemon)[1]), "+OK")
    take(daemon)
    same([pages(daemon, *options) for options in ((), ("COUNT", 3))], [(10, 1), (10, 4)])
    same({s: pages(daemon, "STATE", s)[0] for s in ("buried", "held", "ready", "delayed")},
         {"buried": 1, "held": 1, "ready": 4, "delayed": 4})
    same(pages(daemon, "BEFORE", int(time.time() * 1000) + 500000)[0], 6)
    # These are more jobs than are looked at in one step.
    at_once(daemon, *[("TW.PUT", "q", "x", "IN", 1000)] * 600)
    same(pages(daemon, "COUNT", 1000), (610, 1))
    same([pages(daemon, *options)[0] for options in (
        ("COUNT", 70), ("STATE", "delayed", "COUNT", 1000), ("STATE", "held"))], [610, 604, 1])


@each_store("J1: each of the commands that come at once sees those before it")
@in_stores()
def _(daemon):
    a, b = (daemon("TW.PUT", "q", body, "IN", 1000) for body in "ab")
    # The take waits, because a job that was moved may be due in the next ms only.
    got = at_once(daemon, ("TW.MOVE", "q", a, "IN", 0), ("TW.MOVE", "q", a, "IN", 1000),
                  ("TW.TAKE", "q"), ("TW.MOVE", "q", a, "IN", 0), ("TW.CANCEL", "q", a),
                  ("TW.CANCEL", "q", a), ("TW.MOVE", "q", b, "IN", 0),
                  ("TW.TAKE", "q", "BLOCK", 4000), ("TW.CANCEL", "q", b))
    same(got[:7], [1, 1, None, 1, 1, 0, 1])
    same((got[7][0][1], got[8][:5]), (b, "-HELD"))
    receipt = got[7][0][2]
    put = ("TW.PUT", "q", "x", "IN", 100, "KEY", "k")
    marks = at_once(daemon, put, ("TW.CANCELKEY", "q", "k"), put, put)
    job = marks[2][0]
    same([marks[0][1], *marks[1:]], [b"NEW", 1, [job, b"NEW"], [job, b"EXISTS"]])
    same(figure(daemon, "q", b"jobs"), 2)
    got = at_once(daemon, ("TW.NACK", "q", receipt), ("TW.ACK", "q", receipt),
                  ("TW.TAKE", "q", "BLOCK", 4000), ("TW.DELETE", "q", b), ("TW.ACK", "q", receipt))
    same((got[0], got[1][:6], got[2][0][3], got[3], got[4][:6]), ("+OK", "-STALE", 2, 1, "-STALE"))
    same(figure(daemon, "q", b"jobs"), 1)


@each_store("a receipt is what a worker got, and no other text")
@in_stores()
def _(daemon):
    daemon("TW.PUT", "q", "x")
    receipt = take(daemon)[1]
    first, rest, digits = *receipt.rsplit("-", 1), "123456789abcdef01"
    others = [f" {receipt}", f"+{receipt}", f"0x{receipt}", f"-{receipt}", f"{receipt}-",
              f"{receipt}-1", f"{receipt}\0", first, f"{first}-", f"{first}-0",
              f"{first}-10000000{rest}", f"{digits}-{digits}-{digits}-1", "---1", ""]
    if receipt.upper() != receipt:
        others.append(receipt.upper())
    same(daemon("TW.ACK", "q", *others), [0] * len(others))
    same(daemon("TW.ACK", "q", receipt), 1)


@each_store("TW.TAKE gives up to COUNT jobs; TW.ACK takes several receipts, and tells of each")
@in_stores()
def _(daemon):
    put(daemon, 4)
    assert eventually(lambda: figure(daemon, "q", b"due") == 4)
    jobs = [daemon("TW.TAKE", "q", *count) for count in ((), ("COUNT", 1), ("COUNT", 2))]
    same([len(taken) for taken in jobs], [1, 1, 2])
    receipts = [job[2].decode() for taken in jobs for job in taken]
    # With PostgreSQL the row tells of the delivery, not the receipt's part about a token.
    forged = receipts[0].split("-")[0] + receipts[1][receipts[1].index("-"):]
    same(daemon("TW.ACK", "q", "none", receipts[0] + "x", *[forged][shared:]), [0] * (3 - shared))
    same(daemon("TW.ACK", "q", *receipts[:2], receipts[1]), [1, 1, 0])
    same(counts(daemon), [2, 0, 2, 0])


@each_store("each of many clients that wait gets one job")
@in_stores()
def _(daemon):
    clients = [Client(daemon.path) for _ in range(400)]
    for client in clients:
        client.send("TW.TAKE", "q", "BLOCK", 60000)
    jobs = at_once(daemon, *[("TW.PUT", "q", "x")] * len(clients))
    same(sorted(client.answer()[0][1] for client in clients), jobs)
    same(counts(daemon), [400, 0, 400, 0])


@each_store("commands behind a take that waits are answered after it")
@in_stores()
def _(daemon):
    client = waiting_take(daemon)
    client.send("TW.STATS", "q")
    client.send("PING")
    job = daemon("TW.PUT", "q", "x", "IN", 0.1)
    same([client.answer()[0][1], client.answer()[0], client.answer()], [job, b"jobs", "+PONG"])


@each_store("a span is never shorter than asked for: a part of a ms counts as a whole ms")
@in_stores()
def _(daemon):
    for span, ms in ("1.0001", 1001), ("0.0010000", 1):
        same(daemon("TW.CREATE", "q", "LEASE", span), "+OK")
        same(figure(daemon, "q", b"lease_ms"), ms)
    # The first value of BACKOFF may be as long as the last one.
    same(daemon("TW.CREATE", "q", "BACKOFF", 5, 5), "+OK")


@each_store("queues are taken from in their order, dropped, and made again")
@in_stores()
def _(daemon):
    same(daemon("TW.CREATE", "urgent"), "+OK")
    same(sorted(daemon("TW.QUEUES")), [b"q", b"urgent"])
    put(daemon, 1)
    put(daemon, 1, queue="urgent")
    assert eventually(lambda: figure(daemon, "urgent", b"due") == 1)
    for queue in b"urgent", b"q":
        same([job[0] for job in daemon("TW.TAKE", "urgent", "q", "BLOCK", 4000)], [queue])
    client = waiting_take(daemon, queue="urgent")
    same(daemon("TW.DROP", "urgent"), "+OK")
    same([a[:8] for a in (client.answer(), daemon("TW.PUT", "urgent", "x"))], ["-NOQUEUE"] * 2)
    same(daemon("TW.CREATE", "urgent"), "+OK")
    same((figure(daemon, "urgent", b"jobs"), daemon("TW.TAKE", "urgent")), (0, None))
    # Another lease makes another wheel with the same jobs.
    jobs = [daemon("TW.PUT", "urgent", "x", "KEY", "k")[0],
            daemon("TW.PUT", "urgent", "x", "IN", 1)]
    same(daemon("TW.CREATE", "urgent", "LEASE", 7), "+OK")
    same(figure(daemon, "urgent", b"lease_ms"), 7000)
    same([take(daemon, "urgent")[0] for _ in jobs], jobs)


@each_store("each error of each verb of an empty queue, by a command that is right but for it")
@in_stores("MAXJOBS", 4)
def _(daemon):
    before = daemon("TW.STATS", "q")
    refuses(daemon, """
        ERR unknown command 'TW.NONE' | TW.NONE q |
        ERR | TW.CREATE | | '' | no/name | count | a2345678901234567890123456789012
        ERR | TW.CREATE new | LEASE | LEASE 0 | LEASE 604801 | LEASE long | TRIES 1000001
        ERR | TW.CREATE new | TRIES IFNEW | MAXJOBS 0 | MAXJOBS 268435457 | MAXBYTES 0 | MAXAGE 1
        ERR | TW.CREATE q | MAXJOBS 300000000 | KEEPDONE x | KEEPDONE -1 | KEEPDONE ''
        ERR a setting has no value | TW.CREATE q | KEEPDONE
        ERR | TW.CREATE q | BACKOFF | BACKOFF 1 | BACKOFF 0 1 | BACKOFF 2 1 | BACKOFF 1 604801
        ERR | TW.CREATE q | BACKOFF x 1
        NOQUEUE there is no such queue | TW. | DROP none | STATS none | DONE none | RULES none
        NOQUEUE | TW. | PAUSE none | RESUME none | DRAIN none | PUT none body
        NOQUEUE | TW. | CANCEL none 1 | CANCELKEY none key | MOVE none 1 IN 1
        NOQUEUE | TW. | MOVEKEY none key IN 1 | KICK none 1 | DELETE none 1 | GET none 1
        NOQUEUE | TW. | LIST none | TAKE none | TAKE q none | EVERY none e @hourly body
        NOQUEUE | TW. | ACK none x | NACK none x | EXTEND none x | EXTEND none x y 9 | BURY none x
        ERR | TW. | DROP | QUEUES q | STATS q q | PAUSE | RESUME | DRAIN | PUT q | CANCEL q
        ERR | TW. | CANCELKEY q | MOVE q 1 | MOVEKEY q key | KICK q | DELETE q | GET q | LIST
        ERR | TW. | TAKE | ACK q | NACK q | EXTEND q | BURY q | EVERY q e @hourly
        ERR | TW.PUT q body | IN | IN soon | IN -1 | IN 1e9 | IN 9000000000 | SOON now | ON monday
        ERR | TW.PUT q body AT | | tomorrow | 9000000000001 | 99999999999999999 | 2026-12-01
        ERR | TW.PUT q body AT | 2026-13-01T00:00:00Z | 2026-12-01T00:00:00 | 1969-12-31T23:59:59Z
        ERR | TW.PUT q body AT | 2028-02-30T00:00:00Z | 2027-02-29T00:00:00Z | 2027-04-31T00:00:00Z
        ERR | TW.PUT q body | KEY | KEY '' | KEY $long | REPLACE | LEASE 0 | LEASE 604801 | LEASE x
        ERR | TW.PUT q body | BACKOFF | BACKOFF 1 | BACKOFF 0 1 | BACKOFF 2 1 | BACKOFF 1 604801
        ERR | TW.PUT q body KEY k UNIQUE | | 0 | 604801 | x
        ERR UNIQUE needs a KEY | TW.PUT q body UNIQUE 60 |
        ERR | TW.CANCEL q | first | 0
        ERR | TW.CANCELKEY q | '' | $long
        ERR | TW.MOVE q | first IN 1 | 1 IN soon | 1 ON monday
        ERR | TW.MOVEKEY q | $long IN 1 | key IN soon
        ERR | TW.KICK q | first | ALL | all | ALL 0 | ALL 10001 | NONE | SOME 3 | 1 7
        ERR | TW. | DELETE q first | GET q first
        ERR | TW.LIST q | COUNT | COUNT 0 | COUNT 1001 | CURSOR first | BEFORE noon | AFTER 1
        ERR a state is delayed, ready, held, waiting, buried or done | TW.LIST q STATE | odd
        ERR expected CURSOR or COUNT | TW. | DONE q STATE done
        ERR expected CURSOR or COUNT | TW.RULES q | STATE ready | BEFORE 1
        ERR an option has no value | TW. | DONE q COUNT | RULES q COUNT
        ERR | TW.DONE q | COUNT 0 | COUNT 1001 | COUNT x | CURSOR -1 | CURSOR x
        ERR | TW.RULES q | COUNT 0 | COUNT 1001 | COUNT x | CURSOR -1 | CURSOR x
        ERR | TW.TAKE | COUNT 1 | BOUND | q COUNT | q COUNT 0 | q COUNT 1001 | q BLOCK
        ERR | TW.TAKE q | BLOCK long | BLOCK 86400001 | BOUND q
        STALE | TW. | ACK q x | NACK q x | EXTEND q x | BURY q x
        STALE | TW. | NACK q x REASON y | BURY q x REASON y
        ERR | TW. | NACK q 1-1-1-1 REASON | BURY q 1-1-1-1 REASON | BURY q 1-1-1-1 IN 0
        ERR | TW.EVERY q e | '0 0 31 2 *' body | FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30 body
        ERR | TW.EVERY q e | FREQ=DAILY;UNTIL=20200101 body
        ERR | TW.EVERY q e @hourly | TZ Nowhere body | TZ body | MISSED some body | other body
        ERR | TW.EVERY q e @hourly | UNIQUE 60 body
        ERR | TW.EVERY q $long @hourly | body
        NOPROTO | HELLO 4 |
        ERR | HELLO 2 | SETNAME | AUTH default
        ERR | | AUTH | CLIENT | CLIENT KILL | PING a b | QUIT now | TW.PUT
        """, long="k" * 256)
    same(daemon("TW.QUEUES"), [b"q"])
    same(daemon("TW.STATS", "q"), before)
    for right in ("2028-02-29T00:00:00Z", "2027-12-31T23:59:60Z"):
        assert daemon("TW.PUT", "q", "x", "AT", right) > 0


@each_store("errors about a job that a worker has, and about one that is buried, change nothing")
@in_stores()
def _(daemon):
    job = daemon("TW.PUT", "q", "x", "KEY", "k")[0]
    known = {"job": job, "receipt": take(daemon)[1]}
    refuses(daemon, """
        HELD | TW. | CANCEL q $job | CANCELKEY q k | MOVE q $job IN 1 | MOVEKEY q k IN 1
        HELD | TW. | KICK q $job | PUT q y KEY k | PUT q y KEY k REPLACE
        ERR | TW.NACK q $receipt | IN soon | ON monday
        ERR | TW.EXTEND q $receipt | long | 604801 | -1
        ERR | TW.EXTEND q $receipt $receipt | long | 604801 | -1
        """, **known)
    same(daemon("TW.BURY", "q", known["receipt"]), "+OK")
    stale = "STALE | TW. | ACK q $receipt | NACK q $receipt | EXTEND q $receipt | BURY q $receipt"
    refuses(daemon, stale + "\nBURIED | TW. | MOVE q $job IN 1 | MOVEKEY q k IN 1", **known)
    same(daemon("TW.GET", "q", job)[11], b"x")
    same(daemon("TW.CANCELKEY", "q", "k"), 1)
    refuses(daemon, stale, **known)


@each_store("a queue takes no job beyond its jobs and bytes, and none while it is drained")
@in_stores("MAXJOBS", 4, "MAXBYTES", 9000)
def _(daemon):
    for size in 1048577, 3000000:
        same(daemon("TW.PUT", "q", "x" * size, "KEY", "k")[:8], "-TOOBIG ")
    put = {key: ("TW.PUT", "q", "small", "KEY", key, "IN", 100) for key in "klmno"}
    for key in "klm":
        same(daemon(*put[key])[1], b"NEW")
    # A replacement counts without the body that it replaces.
    large = ("TW.PUT", "q", "x" * 4096, "REPLACE", "IN", 100, "KEY")
    same([daemon(*large, key)[1] for key in "klk"], [b"REPLACED"] * 3)
    full = [daemon(*large, "m"), daemon("TW.PUT", "q", "x" * 4000)]
    same(daemon(*put["n"])[1], b"NEW")
    full += [daemon("TW.PUT", "q", "x"), daemon(*put["o"]), daemon("TW.CREATE", "q", "MAXJOBS", 3)]
    same([answer[:6] for answer in full], ["-FULL "] * 5)
    same(daemon(*put["n"])[1], b"EXISTS")
    same(figure(daemon, "q", b"max_jobs"), 4)
    same(daemon("TW.CANCELKEY", "q", "k"), 1)
    same(daemon("TW.DRAIN", "q"), "+OK")
    refuses(daemon, """DRAINING | TW. | PUT q x | PUT q x KEY k | PUT q x KEY l REPLACE
                       DRAINING | TW.EVERY q e @hourly | x""")
    same(counts(daemon), [3, 3, 0, 0])


@each_store("a command has up to 1023 arguments, and so up to 1022 receipts")
@with_queue()
def _(daemon):
    for verb in "TW.ACK", "TW.EXTEND":
        same(daemon(verb, "q", *["1-1-1-1"] * 1022), [0] * 1022)
        client = Client(daemon.path)
        assert client(verb, "q", *["1-1-1-1"] * 1023).startswith("-ERR Protocol error")
        same(client.socket.recv(1), b"")


@each_store("a job that is buried has the tries that it had")
@with_queue()
def _(daemon):
    jobs = [daemon("TW.PUT", "q", "x") for _ in range(301)]
    for job in jobs:
        taken, receipt, *_ = take(daemon)
        same(daemon("TW.BURY", "q", receipt), "+OK")
        same(daemon("TW.GET", "q", taken)[7], 1)
    same(daemon("TW.KICK", "q", "ALL", 300), 300)
    same(figure(daemon, "q", b"buried"), 1)
    same(daemon("TW.KICK", "q", "ALL", 300), 1)


@each_store("a buried job is never handed out, keeps its key, and is counted")
@with_queue(store=folder / "buried")
def _(daemon):
    job = daemon("TW.PUT", "q", "v1", "KEY", "k")[0]
    other = daemon("TW.PUT", "q", "x", "IN", 1000)
    same(daemon("TW.BURY", "q", take(daemon)[1]), "+OK")
    for end_of_it in (signal.SIGKILL, signal.SIGTERM, None):
        same(counts(daemon), [2, 1, 0, 1])
        same(take(daemon, seconds=0.2), None)
        same(daemon("TW.PUT", "q", "v2", "KEY", "k"), [job, b"BURIED"])
        same([j[1] for j in daemon("TW.LIST", "q", "STATE", "buried")[1]], [job])
        same([j[1] for j in daemon("TW.LIST", "q", "STATE", "delayed")[1]], [other])
        same(figure(daemon, None, b"mended"), 0)
        if end_of_it:
            restart(daemon, end_of_it)
    same(daemon("TW.PUT", "q", "v3", "KEY", "k", "REPLACE"), [job, b"REPLACED"])
    same(counts(daemon), [2, 2, 0, 0])
    got = take(daemon)
    same((got[0], got[2], got[3]), (job, 1, "v3"))
    same(daemon("TW.BURY", "q", got[1]), "+OK")
    same(daemon("TW.DELETE", "q", job), 1)
    same(counts(daemon), [1, 1, 0, 0])


@each_store("deliveries of a job that is kicked or replaced count from 1")
@with_queue("LEASE", 1)
def _(daemon):
    job = daemon("TW.PUT", "q", "x", "KEY", "k")[0]
    for again in (("TW.KICK", "q", job), ("TW.PUT", "q", "y", "KEY", "k", "REPLACE"),
                  ("TW.KICK", "q", job)):
        same([take(daemon)[2] for _ in range(2)], [1, 2])
        same(daemon("TW.NACK", "q", take(daemon)[1], "IN", 1000), "+OK")
        assert daemon(*again) in (1, [job, b"REPLACED"])
    same(daemon("TW.BURY", "q", take(daemon)[1]), "+OK")
    same(daemon("TW.KICK", "q", "ALL", 9), 1)
    same([take(daemon)[2] for _ in range(2)], [1, 2])


@each_store("tries are counted on through kill -9 and without the wheel, and the last one buries")
@with_queue("LEASE", 0.3, "TRIES", 4, store=folder / "tries")
def _(daemon):
    job = daemon("TW.PUT", "q", "x")
    same([take(daemon)[2] for _ in range(2)], [1, 2])
    restart(daemon, signal.SIGKILL)
    same(take(daemon)[2], 3)
    restart(daemon, signal.SIGTERM)
    same(take(daemon)[2], 4)
    # The job is buried when its lease is over.
    same((take(daemon, seconds=3), state(daemon, job)), (None, "buried"))
    same(daemon("TW.GET", "q", job)[7], 4)
    restart(daemon, signal.SIGKILL)
    same((take(daemon, seconds=0.2), counts(daemon)), (None, [1, 0, 0, 1]))
