# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of LIMIT and RATE.
import os
import resource
import signal
import socket
import time

from daemon import *


@test("LIMIT: workers have so many jobs at once, until an answer or the end of a lease")
@in_stores("LIMIT", 2, "LEASE", 60)
def _(daemon):
    same(figure(daemon, "q", b"limit"), 2)
    put(daemon, 9)
    jobs = daemon("TW.TAKE", "q", "COUNT", 9)
    receipts = [j[2] for j in jobs]
    same(len(jobs), 2)
    takes_nothing(daemon)
    for end_of_it in (("TW.ACK", "q"), ("TW.NACK", "q"), ("TW.BURY", "q")):
        client = waiting_take(daemon)
        assert daemon(*end_of_it, receipts.pop()) in (1, "+OK"), end_of_it
        receipts.append(client.answer()[0][2])
        takes_nothing(daemon)
    client = waiting_take(daemon)
    same(daemon("TW.DELETE", "q", int(receipts.pop().split(b"-")[0], 16)), 1)
    receipts.append(client.answer()[0][2])
    # The commands come in one piece, so that the take comes before the commit.
    acked, jobs = at_once(daemon, ("TW.ACK", "q", receipts.pop()), ("TW.TAKE", "q"))
    same(acked, 1)
    receipts.append(jobs[0][2])
    same(figure(daemon, "q", b"held"), 2)
    client = waiting_take(daemon)
    bound = waiting_take(daemon, "BOUND")
    same(daemon("TW.CREATE", "q", "LIMIT", 4), "+OK")
    assert client.answer() and bound.answer()
    takes_nothing(daemon)
    bound.socket.shutdown(socket.SHUT_RDWR)
    assert take(daemon, seconds=10)
    same(daemon("TW.CREATE", "q", "LIMIT", 1), "+OK")
    takes_nothing(daemon)


@test("LIMIT counts no lease that is over, also after a restart or another setting")
@in_stores("LEASE", 0.4, "LIMIT", 2)
def _(daemon):
    put(daemon, 2)
    same(len(daemon("TW.TAKE", "q", "COUNT", 9)), 2)
    same([take(daemon, seconds=20)[2] for _ in range(3)], [2, 2, 3])
    if daemon.store != "memory":
        for end_of_it in (signal.SIGTERM, signal.SIGKILL):
            restart(daemon, end_of_it)
            assert take(daemon, seconds=20)
            assert take(daemon, seconds=20)
    # Workers have three jobs. Two leases end, but the third job still fills the limit.
    same(daemon("TW.CREATE", "q", "LEASE", 60, "LIMIT", 3), "+OK")
    same(daemon("TW.CREATE", "r", "LIMIT", 3), "+OK")
    put(daemon, 2, "LEASE", 0.3, queue="r")
    long = put(daemon, 1, queue="r")[0]
    jobs = {j[1]: j[2] for j in daemon("TW.TAKE", "r", "COUNT", 9)}
    same(len(jobs), 3)
    same(daemon("TW.CREATE", "r", "LIMIT", 1), "+OK")
    client = waiting_take(daemon, queue="r")
    time.sleep(0.6)
    takes_nothing(daemon, "r")
    same(daemon("TW.ACK", "r", jobs[long]), 1)
    same(client.answer()[0][3], 2)
    # An extended lease is not over.
    same(daemon("TW.CREATE", "s", "LIMIT", 1, "LEASE", 0.5), "+OK")
    put(daemon, 2, queue="s")
    receipt = take(daemon, "s")[1]
    client = waiting_take(daemon, queue="s")
    same(daemon("TW.EXTEND", "s", receipt, 60), "+OK")
    time.sleep(0.8)
    takes_nothing(daemon, "s")
    same(daemon("TW.ACK", "s", receipt), 1)
    assert client.answer()


@test("RATE: so many jobs at once after a rest, and then evenly")
@with_queue("RATE", 3, 3000, store=folder / "rate")
def _(daemon):
    same([figure(daemon, "q", name) for name in (b"rate", b"rate_ms")], [3, 3000000])
    put(daemon, 9)
    same(len(daemon("TW.TAKE", "q", "COUNT", 9)), 3)
    takes_nothing(daemon)
    client = waiting_take(daemon)
    same(daemon("TW.CREATE", "q", "RATE", 0, 0), "+OK")
    assert client.answer()
    # Another rate, or a start, begins with a full bucket. Other settings change nothing.
    same(daemon("TW.CREATE", "q", "RATE", 2, 2000), "+OK")
    same(len(daemon("TW.TAKE", "q", "COUNT", 9)), 2)
    same(daemon("TW.CREATE", "q", "RATE", 2, 2000, "TRIES", 9), "+OK")
    takes_nothing(daemon)
    restart(daemon, signal.SIGTERM)
    same(len(daemon("TW.TAKE", "q", "COUNT", 9)), 2)
    same(daemon("TW.CREATE", "r", "RATE", 10, 1), "+OK")
    put(daemon, 20, queue="r")
    begin = time.monotonic()
    same(len(daemon("TW.TAKE", "r", "COUNT", 10)), 10)
    for _ in range(5):
        assert take(daemon, "r", seconds=20)
    assert time.monotonic() - begin > 0.48
    # A rest that is longer than the bucket needs permits no more jobs.
    put(daemon, 20, queue="r")
    time.sleep(2.5)
    same(len(daemon("TW.TAKE", "r", "COUNT", 99)), 10)


@test("a queue at its limit that is waited for takes no time of the processor")
@with_daemon()
def _(daemon):
    for settings in (("LIMIT", 1), ("RATE", 1, 1000)):
        same(daemon("TW.CREATE", "q", *settings), "+OK")
        put(daemon, 2)
        assert take(daemon, seconds=10)
        client = waiting_take(daemon)
        is_idle(daemon)
        same(daemon("TW.DROP", "q"), "+OK")


RATE = "a rate is 1 to 1000000 jobs in 0.001 to 604800 seconds, or 0 0 for none"


@test("LIMIT, RATE and groups refuse what is wrong")
@with_queue()
def _(daemon):
    refuses(daemon, f"""
        ERR not a number from 0 to 65536 | TW.CREATE q | LIMIT -1 | LIMIT 65537 | GROUPLIMIT -1
        ERR not a number from 0 to 65536 | TW.CREATE q GROUPLIMIT | 65537
        ERR a setting has no value | TW.CREATE q | LIMIT | RATE 1 | GROUPLIMIT | GROUPRATE 1
        ERR not a number from 0 to 1000000 | TW.CREATE q RATE | 1000001 1
        ERR not a number of seconds, such as 30 or 0.5 | TW.CREATE q RATE | 1 x
        ERR {RATE} | TW.CREATE q | RATE 0 1 | RATE 1 0 | RATE 1 604801 | GROUPRATE 0 1
        ERR a group has 1 to 255 bytes | TW.PUT q x GROUP | '' | $long
        ERR | TW.PUT q x | GROUP
        """, long="g" * 256)
    same(daemon("TW.CREATE", "q", "LIMIT", 65536, "RATE", 1000000, 604800), "+OK")
    put(daemon, 1, "GROUP", "g" * 255)
    assert take(daemon)


@test("J5: so many connections put and take at once, and one more is refused by name")
def _():
    # Root has 16 further places.
    most = 10000 + 16 * (os.getuid() == 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    assert hard > most + 1000, f"this test needs {most + 1000} open files"

    @with_queue()
    def inner(daemon):
        clients = [daemon.client, *(Client(daemon.path) for _ in range(most - 1))]
        # This client sends nothing, because its connection may already be closed.
        same(Client(daemon.path).answer()[:5], "-FULL")
        for client in clients[:1000]:
            client.send("TW.PUT", "q", "x")
        jobs = {client.answer() for client in clients[:1000]}
        for client in clients[:1000]:
            client.send("TW.TAKE", "q")
        same({client.answer()[0][1] for client in clients[:1000]}, jobs)
        for client in clients[1:]:
            client.file.close()
            client.socket.close()
        assert eventually(lambda: Client(daemon.path)("PING") == "+PONG")
        same(figure(daemon, "q", b"held"), 1000)
    try:
        inner()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@test("figures of a large queue are right in the end")
@with_queue()
def _(daemon):
    at_once(daemon, *[("TW.PUT", "q", "x", "IN", 10000)] * 12000)
    same(figure(daemon, "q", b"due"), 0)
    put(daemon, 3, "AT", 1000)
    assert eventually(lambda: figure(daemon, "q", b"due") == 3)
    time.sleep(0.3)
    assert figure(daemon, "q", b"oldest_ms") >= 300
    put(daemon, 5)
    assert eventually(lambda: figure(daemon, "q", b"due") == 8)
    for _ in range(8):
        same(daemon("TW.ACK", "q", take(daemon)[1]), 1)
    same([figure(daemon, "q", name) for name in (b"due", b"oldest_ms")], [0, 0])
