#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# nodes.py OUTPUT: tests three daemons on one database, see common.py: the owners of jobs, the
# inbox, takeovers, SQL, the quorum, and commits in doubt. The database is at PGHOST (see
# "server"), which has a standby in PGHOST/standby. Prints TAP.
import os
import signal
import subprocess
import threading
import time

import common
from common import (PATIENCE, Client, Closed, Node, Sql, end, eventually, figure, folder,
                    init_database, same, state, take, test)

init_database().check_returncode()
a, b, c = Node("a"), Node("b"), Node("c")
sql = Sql()
COUNT = 20


def begin_again():
    """Kills the nodes, and starts them on new tables."""
    global sql
    for node in (a, b, c):
        node.stop(signal.SIGKILL)
    sql.process.kill()
    sql = Sql()
    sql("select pg_terminate_backend(pid, 2000) from pg_stat_activity\n"
        " where pid <> pg_backend_pid() and backend_type = 'client backend'")
    sql("drop schema timewheel cascade")
    init_database().check_returncode()
    for node in (a, b, c):
        node.start()
    create("q", "LEASE", 20)


def create(queue, *settings):
    """Makes a queue, and waits until each node knows it."""
    same(a("TW.CREATE", queue, *settings), "+OK")
    assert eventually(lambda: all(isinstance(n("TW.STATS", queue), list) for n in (a, b, c)))


common.after_failure = begin_again


@test("a queue made at one node is known at the others")
def _():
    same(a("TW.CREATE", "q", "LEASE", 30, "TRIES", 3), "+OK")
    job = b("TW.PUT", "q", "x", "IN", 1000)
    same(c("TW.CANCEL", "q", job), 1)
    same(a("TW.CANCEL", "q", job), 0)
    same(b("TW.CREATE", "q", "LEASE", 20), "+OK")
    assert eventually(lambda: 20000 in a("TW.STATS", "q"))


@test("a worker gets a job that another node owns, long before a lease ends")
def _():
    job = a("TW.PUT", "q", "far")
    got = take(b)
    same(got[0], job)
    same(got[3], "far")
    same(state(c, job), "held")
    same(c("TW.CANCEL", "q", job), "-HELD the job is being worked on")
    same(a("TW.EXTEND", "q", got[1], 40), "+OK")
    held = sql("select held_until from timewheel.job")
    # An extension never shortens a lease.
    same(c("TW.EXTEND", "q", got[1], 1), "+OK")
    same(sql("select held_until from timewheel.job"), held)
    same(c("TW.ACK", "q", got[1]), 1)
    same(a("TW.ACK", "q", got[1])[:6], "-STALE")
    same(state(b, job), None)


@test("what any node answers is so at all")
def _():
    job = a("TW.PUT", "q", "one")
    got = take(a)
    same(got[0], job)
    same(b("TW.NACK", "q", got[1]), "+OK")
    got = take(b)
    same(got[0], job)
    same(got[2], 2)
    same(c("TW.BURY", "q", got[1]), "+OK")
    same(state(a, job), "buried")
    same(a("TW.KICK", "q", job), 1)
    got = take(c)
    same((got[0], got[2]), (job, 1))
    same(a("TW.ACK", "q", got[1]), 1)
    job = a("TW.PUT", "q", "later", "IN", 600)
    same(b("TW.MOVE", "q", job, "IN", 0.2), 1)
    got = take(a)
    same(got[0], job)
    same(b("TW.ACK", "q", got[1]), 1)


@test("a key is one job at all nodes")
def _():
    job = a("TW.PUT", "q", "v1", "IN", 600, "KEY", "k")
    same(job[1], b"NEW")
    same(b("TW.PUT", "q", "v2", "IN", 600, "KEY", "k"), [job[0], b"EXISTS"])
    same(c("TW.PUT", "q", "v3", "KEY", "k", "REPLACE"), [job[0], b"REPLACED"])
    got = take(b)
    same((got[0], got[3]), (job[0], "v3"))
    same(a("TW.CANCELKEY", "q", "k")[:5], "-HELD")
    same(a("TW.ACK", "q", got[1]), 1)
    same(b("TW.CANCELKEY", "q", "k"), 0)


def buried_at_all(count):
    return eventually(lambda: {figure(n, "q", b"buried") for n in (a, b, c)} == {count})


@test("a buried job keeps its key, no node hands it out, and all count it")
def _():
    job = a("TW.PUT", "q", "v1", "KEY", "aside")[0]
    same(c("TW.BURY", "q", take(b)[1]), "+OK")
    same(figure(c, "q", b"buried"), 1)
    assert buried_at_all(1)
    same(b("TW.PUT", "q", "v2", "KEY", "aside"), [job, b"BURIED"])
    same([take(node, seconds=0.2) for node in (a, b, c)], [None] * 3)
    same([figure(node, "q", b"pending") for node in (a, b, c)], [0] * 3)
    same(sql("select timewheel.put('q', 'v3', key => 'aside', replace => true)"), str(job))
    got = take(a)
    same((got[0], got[2], got[3]), (job, 1, "v3"))
    assert buried_at_all(0)
    same(b("TW.BURY", "q", got[1]), "+OK")
    assert buried_at_all(1)
    same(sql("select timewheel.cancel('q', 'aside')"), "t")
    assert buried_at_all(0)
    same([figure(node, None, b"mended") for node in (a, b, c)], [0] * 3)


def insist(node, *words):
    """Returns the answer when no other node is taking the job over at that moment."""
    while str(answer := node(*words))[:5] == "-BUSY":
        time.sleep(0.05)
    return answer


def done_at_all(count):
    return eventually(lambda: {figure(n, "q", b"done") for n in (a, b, c)} == {count})


def put_once(seconds):
    """Puts a job with the key "once" at one node, and lets another node do it."""
    job, mark = insist(c, "TW.PUT", "q", "x", "KEY", "once", "UNIQUE", seconds)
    same(mark, b"NEW")
    got = take(a)
    same(got[0], job)
    same(a("TW.ACK", "q", got[1]), 1)
    return job


@test("a job that is done keeps its key at all nodes and for SQL, and ends after its time")
def _():
    job = put_once(60)
    for node in (a, b, c):
        same(insist(node, "TW.PUT", "q", "x", "KEY", "once", "REPLACE"), [job, b"DONE"])
        same(state(node, job), "done")
        for verb in (("CANCEL", job), ("MOVE", job, "IN", 0), ("KICK", job), ("KICK", "ALL", 9)):
            same(insist(node, f"TW.{verb[0]}", "q", *verb[1:]), 0)
    assert done_at_all(1)
    same(sql("select timewheel.put('q', 'x', key => 'once', replace => true)"), str(job))
    same(sql("select node is null, buried, body, due > timewheel.now() + 30000"
             " from timewheel.job where done"), "f|t|\\x|t")
    same([sql(f"select timewheel.{call}") for call in (
        f"cancel('q', {job})", "cancel('q', 'once')", f"move('q', {job}, now())",
        "move('q', 'once', now())")], ["f"] * 4)
    same(take(b, seconds=1.5), None)
    over = "update timewheel.job set due = timewheel.now() where done"
    sql(over)
    other = put_once(60)
    assert other != job
    sql(over)
    by_sql = int(sql("select timewheel.put('q', 'x', key => 'once')"))
    assert by_sql not in (job, other)
    assert done_at_all(0)
    got = take(a)
    same(got[0], by_sql)
    same(a("TW.ACK", "q", got[1]), 1)
    put_once(1)
    assert eventually(lambda: sql("select count(*) from timewheel.job where done") == "0")
    assert done_at_all(0)
    put_once(1000)
    same(sql("select length(body), size from timewheel.job where done"), "0|68")
    same(a("TW.DELETE", "q", a("TW.GETKEY", "q", "once")[1]), 1)
    assert done_at_all(0)
    same({n.metric("mended_total") for n in (a, b, c)}, {0})


def told_done(node, *options):
    """Returns the numbers and keys that TW.DONE tells, and its cursor."""
    cursor, jobs = node("TW.DONE", "kept", *options)
    return [(job[1], job[3]) for job in jobs], cursor


def finish(node, before_ack=lambda: None):
    job = insist(node, "TW.PUT", "kept", "x", "KEY", "k")[0]
    got = take(b, "kept")
    same(got[0], job)
    before_ack()
    same(b("TW.ACK", "kept", got[1]), 1)
    return job, b"k"


def rows_of_done():
    return int(sql("select count(*) from timewheel.done"))


@test("a job that is done at one node is told of at each, until its time or its queue ends")
def _():
    same(a("TW.CREATE", "kept", "KEEPDONE", 60), "+OK")
    assert eventually(lambda: all(
        60000 in (n("TW.STATS", "kept") if b"kept" in n("TW.QUEUES") else ())
        for n in (a, b, c)))
    jobs = [finish(node) for node in (a, b, c, a)]
    for node in (a, b, c):
        same(told_done(node), (jobs[::-1], 0))
        page, cursor = told_done(node, "COUNT", 3)
        same(page, jobs[:0:-1])
        same(told_done(node, "COUNT", 3, "CURSOR", cursor), (jobs[:1], 0))
    other = Sql()

    def make_old():
        # This lock permits changes of the row. It comes first, because nodes remove old rows soon.
        other("begin; select n from timewheel.done order by n limit 1 for key share")
        sql("update timewheel.done set ended = 0 where n < (select max(n) from timewheel.done)")

    # Nodes end old done jobs by themselves, but an ACK ends two. Rows that a program has locked
    # are left.
    first, jobs = jobs[:3], jobs[3:] + [finish(a, make_old)]
    left = sql("select string_agg(id::text, ' ' order by n) from timewheel.done").split()
    same([str(job) in left for job, _ in first[:2]], [True, False])
    other("rollback")
    jobs += [finish(a)]
    same(rows_of_done(), 3)
    same(told_done(c), (jobs[::-1], 0))
    sql("update timewheel.done set ended = 0")
    same(told_done(c), ([], 0))
    assert eventually(lambda: rows_of_done() == 0)
    finish(c)
    same(a("TW.CREATE", "kept", "KEEPDONE", 0), "+OK")
    assert eventually(lambda: rows_of_done() == 0)
    assert eventually(lambda: figure(b, "kept", b"keep_done_ms") == 0)
    finish(a)
    same(rows_of_done(), 0)
    same(c("TW.CREATE", "kept", "KEEPDONE", 60), "+OK")
    assert eventually(lambda: figure(b, "kept", b"keep_done_ms") == 60000)
    finish(a)
    same(rows_of_done(), 1)
    same(b("TW.DROP", "kept"), "+OK")
    assert eventually(lambda: rows_of_done() == 0)
    assert eventually(lambda: sql("select count(*) from timewheel.queue where dropped") == "0")


@test("takes that come in one packet share a commit")
def _():
    jobs = [a("TW.PUT", "q", f"one of {COUNT}") for _ in range(COUNT)]
    client = Client(a.path)
    assert eventually(lambda: figure(a, "q", b"due") == COUNT)
    before = a.metric("commit_seconds_count{}")
    client.socket.sendall(COUNT * b"*2\r\n$7\r\nTW.TAKE\r\n$1\r\nq\r\n")
    got = [client.answer()[0] for _ in range(COUNT)]
    # The node has a turn of its own each second.
    assert a.metric("commit_seconds_count{}") - before < COUNT / 2
    same(sorted(job[1] for job in got), sorted(jobs))
    same(a("TW.ACK", "q", *[job[2] for job in got]), COUNT * [1])


@test("a take that names no queue is refused, also beside one that names a queue")
def _():
    first, second = Client(a.path), Client(a.path)
    same([client("PING") for client in (first, second)], ["+PONG", "+PONG"])
    # The node hears both commands in one turn.
    a.send_signal(signal.SIGSTOP)
    first.send("TW.TAKE", "q")
    second.send("TW.TAKE", "COUNT", 1)
    a.send_signal(signal.SIGCONT)
    same(first.answer(), None)
    same(second.answer()[:4], "-ERR")


@test("SQL: jobs are those of transactions that were committed")
def _():
    sql("begin")
    sql("select timewheel.put('q', 'lost')")
    sql("rollback")
    sql("begin")
    job = int(sql("select timewheel.put('q', 'sql', key => 'k')"))
    same(int(sql("select timewheel.put('q', 'again', key => 'k')")), job)
    same(take(a, seconds=1.5), None)
    sql("commit")
    got = take(b)
    same((got[0], got[3]), (job, "sql"))
    assert "HELD" in sql("select timewheel.cancel('q', 'k')")
    same(c("TW.ACK", "q", got[1]), 1)
    same(sql("select timewheel.cancel('q', 'k')"), "f")
    job = int(sql("select timewheel.put('q', 'x', now() + interval '1 hour')"))
    assert eventually(lambda: sql(f"select node from timewheel.job where id = {job}"))
    same(sql(f"select timewheel.move('q', {job}, now())"), "t")
    got = take(a)
    same(got[0], job)
    same(a("TW.ACK", "q", got[1]), 1)
    # The text has all its bytes. As a bytea the literal would have two bytes fewer.
    job = int(sql("select timewheel.put_text('q', E'C:\\\\101 \\u00e4')"))
    got = take(a)
    same((got[0], got[3]), (job, "C:\\101 \u00e4"))
    same(a("TW.ACK", "q", got[1]), 1)
    assert "NOQUEUE" in sql("select timewheel.put('none', 'x')")
    assert "2255" in sql("select timewheel.put('q', 'x', '3000-01-01')")
    assert eventually(lambda: a("TW.STATS", "q")[1] == 0)


@test("SQL: the programs' role may do nothing else")
def _():
    sql("set role timewheel_producer")
    job = int(sql("select timewheel.put('q', 'role', now() + interval '1 hour')"))
    same(sql(f"select timewheel.cancel('q', {job})"), "t")
    for other in ("delete from timewheel.job", "select * from timewheel.node",
                  "select timewheel.join_node('a', 1, 2)",
                  "select timewheel.fence_node(0, 0)"):
        assert "permission denied" in sql(other), other
    sql("reset role")


def names_user(name, *types):
    """Returns a statement that makes a function of the programs' user. The function notes which
    role calls it."""
    return (f"create function {name}({', '.join(types)}) returns {types[0]} language plpgsql\n"
            " as $$ begin insert into public.callers values (current_user);\n"
            " return $1; end $$")


@test("SQL: what a program's user makes is called by nobody else")
def _():
    sql("create role shop in role timewheel_producer")
    sql("grant create on schema public to shop")
    sql("create table public.callers (name text)")
    sql("grant insert on public.callers to public")
    # In a new session a user's own types come first, unless the path says otherwise.
    shop = Sql()
    shop("set role shop")
    shop(names_user("pg_temp.caller", "pg_catalog.bytea"))
    shop("create domain pg_temp.bytea as pg_catalog.bytea\n"
         " check (pg_temp.caller(coalesce(value, '')) is not null)")
    # This operator fits better than the operators of the system.
    shop(names_user("public.times", "numeric", "int"))
    shop("create operator public.* (function = public.times,\n"
         " leftarg = numeric, rightarg = int)")
    job = int(shop("select timewheel.put('q', 'x', now() + interval '1 hour')"))
    same(shop(f"select timewheel.cancel('q', {job})"), "t")
    a("TW.CANCEL", "q", a("TW.PUT", "q", "x", "IN", 9))
    same(sql("select name from public.callers limit 1"), "")
    shop.process.stdin.close()
    shop.process.wait()
    sql("drop owned by shop; drop role shop; drop table public.callers")


@test("an open transaction of a program delays nobody else")
def _():
    first = a("TW.PUT", "q", "first", "IN", 1)
    second = a("TW.PUT", "q", "second", "IN", 1)
    sql("begin")
    same(sql(f"select timewheel.cancel('q', {first})"), "t")
    got = take(a)
    same(got[0], second)
    same(b("TW.CANCEL", "q", first)[:5], "-BUSY")
    same(b("TW.ACK", "q", got[1]), 1)
    same(state(a, first), "ready")
    sql("rollback")
    got = take(a)
    same(got[0], first)
    same(a("TW.ACK", "q", got[1]), 1)


@test("BOUND: the job of a connection that has ended comes again, also elsewhere")
def _():
    job = a("TW.PUT", "q", "bound")
    client = Client(b.path)
    same(client("TW.TAKE", "q", "BLOCK", 30000, "BOUND")[0][1], job)
    client.socket.close()
    client.file.close()
    got = take(c)
    same((got[0], got[2]), (job, 2))
    same(a("TW.ACK", "q", got[1]), 1)


def is_closed(client):
    try:
        return f"answered {client.answer()!r}"
    except Closed:
        return True


@test("each node tells how long a lease still lasts, and extends several")
def _():
    # The queue's lease is 20 s.
    jobs = [a("TW.PUT", "q", "x", "LEASE", 10) for _ in range(2)]
    got = [take(a) for _ in jobs]
    same(sorted(g[0] for g in got), jobs)

    def left(node, job):
        told = node("TW.GET", "q", job)
        return told[told.index(b"lease_left_ms") + 1] / 1000

    for node in (a, b):
        same(insist(node, "TW.EXTEND", "q", *[g[1] for g in got]), [1, 1])
        assert all(5 < left(node, job) <= 10 for job in jobs)
    same(insist(b, "TW.EXTEND", "q", *[g[1] for g in got], 300), [1, 1])
    assert all(280 < left(node, job) <= 300 for node in (a, b) for job in jobs)
    same(a("TW.ACK", "q", got[0][1]), 1)
    same(a("TW.EXTEND", "q", *[g[1] for g in got]), [0, 1])
    same(a("TW.NACK", "q", got[1][1], "IN", 9), "+OK")
    assert b"lease_left_ms" not in b("TW.GET", "q", got[1][0])
    same(a("TW.CANCEL", "q", got[1][0]), 1)


@test("a planned stop hands all over without waiting for a lease")
def _():
    jobs = {a("TW.PUT", "q", i, "IN", 1) for i in range(50)}
    a.stop()
    same(sql("select l.until from timewheel.node_lease l join timewheel.node n on n.id = l.node\n"
             " where n.name = 'a'"), "0")
    begin = time.monotonic()
    worker = Client(b.path)
    while jobs and time.monotonic() - begin < PATIENCE:
        for got in worker("TW.TAKE", "q", "COUNT", 50, "BLOCK", 1000) or ():
            jobs.remove(got[1])
            same(worker("TW.ACK", "q", got[2]), 1)
    same(jobs, set())
    a.start()


@test("a planned stop answers what has come by then")
def _():
    clients = [Client(a.path) for _ in range(3)]
    # The connection has more commands than a node reads at once.
    puts = 95
    put = b"*5\r\n$6\r\nTW.PUT\r\n$1\r\nq\r\n$700\r\n%s\r\n$2\r\nIN\r\n$4\r\n1000\r\n"
    same(a("TW.CREATE", "empty"), "+OK")
    a.send_signal(signal.SIGSTOP)
    # The take that waits ends without an answer.
    take = b"*4\r\n$7\r\nTW.TAKE\r\n$5\r\nempty\r\n$5\r\nBLOCK\r\n$4\r\n9000\r\n"
    for client in clients:
        client.socket.sendall(puts * (put % (700 * b"x")) + take)
    a.send_signal(signal.SIGTERM)
    a.send_signal(signal.SIGCONT)
    jobs = [client.answer() for client in clients for _ in range(puts)]
    for client in clients:
        same(is_closed(client), True)
    same([insist(b, "TW.CANCEL", "q", job) for job in jobs], len(clients) * puts * [1])
    same(a.process.wait(), 0)
    a.start()
    same(a("TW.DROP", "empty"), "+OK")


# A node moves 500 jobs in a slice of a takeover.
MANY, SOON = 30000, 500


def times_told():
    return sum(node.said().count("its jobs go to others") for node in (b, c))


@test("many jobs are taken over in slices, between which clients are served")
def _():
    create("many", "LEASE", 30)
    sql(f"""with j as (insert into timewheel.job (id, queue, node, due, size, key, body)
                select nextval('timewheel.job_id'), q.id, n.id, timewheel.now() +
                case when i < {SOON} then 2000 else 3600000 end, 64,
                ('k' || i)::bytea, i::text::bytea
                from generate_series(0, {MANY - 1}) i, timewheel.queue q, timewheel.node n
                where q.name = 'many' and n.name = 'a' returning queue, size)
            insert into timewheel.delta
                select queue, count(*), sum(size) from j group by queue""")
    told, answers = times_told(), []
    ended = threading.Event()

    def put_on():
        while not ended.is_set():
            answers.append(b("TW.PUT", "many", "put", "IN", 3600))

    producer = threading.Thread(target=put_on)
    a.stop()
    producer.start()
    moved = eventually(lambda: sql("select count(*) from timewheel.job j\n"
                                   " join timewheel.node n on coalesce(j.node, n.id) = n.id\n"
                                   " where n.name = 'a'") == "0")
    ended.set()
    producer.join()
    assert moved
    # A row tells the number of the transaction that has changed it last. Puts have no key.
    numbers = ("with change as (select distinct xmin::text::bigint as number, key is null as put\n"
               " from timewheel.job)\n")
    slices = int(sql(numbers + "select count(*) from change where not put"))
    between = int(sql(numbers + "select count(*) from change where put and number between\n"
                      " (select min(number) from change where not put) and\n"
                      " (select max(number) from change where not put)"))
    print(f"# {slices} slices, and {between} transactions with puts between them")
    assert slices >= MANY / 2000 and between >= 10
    # The log does not tell of each slice.
    assert 1 <= times_told() - told <= 2
    assert all(isinstance(answer, int) for answer in answers)
    bodies = []
    worker = Client(b.path)
    end = time.monotonic() + PATIENCE
    while len(bodies) < SOON and time.monotonic() < end:
        for job in worker("TW.TAKE", "many", "COUNT", 50, "BLOCK", 2500) or ():
            bodies.append(int(job[6]))
            same(worker("TW.ACK", "many", job[2]), 1)
    same(worker("TW.TAKE", "many"), None)
    same(sorted(bodies), list(range(SOON)))
    same(figure(b, "many", b"pending") + figure(c, "many", b"pending"), MANY - SOON + len(answers))
    same(b("TW.DROP", "many"), "+OK")
    a.start()


@test("a killed and a stopped node: each job is delivered once by another")
def _():
    jobs = {node("TW.PUT", "q", i, "IN", 1) for node in (a, c) for i in range(100)}
    a.stop(signal.SIGKILL)
    c.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    worker = Client(b.path)
    while jobs and time.monotonic() - begin < PATIENCE:
        for got in worker("TW.TAKE", "q", "COUNT", 50, "BLOCK", 1000) or ():
            jobs.remove(got[1])
            same(worker("TW.ACK", "q", got[2]), 1)
    same(jobs, set())
    print(f"# after {time.monotonic() - begin:.1f} s")
    assert 8 <= b.metric("takeover_seconds") < PATIENCE


@test("a stopped node that goes on is refused by its epoch, and goes on with others")
def _():
    sql("update timewheel.node set epoch = epoch + 1 where name = 'c'")
    c.send_signal(signal.SIGCONT)
    assert eventually(lambda: "another node has taken" in c.said())
    assert eventually(lambda: isinstance(c("TW.PUT", "q", "on"), int))
    got = take(c)
    same(c("TW.ACK", "q", got[1]), 1)
    same(b.metric("fenced_total"), 0)
    assert c.metric("fenced_total") >= 1
    a.start()


@test("a takeover of what a program has locked: all else goes on, and the log tells who")
def _():
    jobs = [node("TW.PUT", "q", "x", "IN", 1000) for node in (c, a, a)]
    owner = "select coalesce(node, 0) from timewheel.job where id = "
    dead = [sql(f"{owner}{job}") for job in jobs]
    program = Sql()
    pid = program("select pg_backend_pid()")
    program("begin; select from timewheel.node where name = 'c' for update")
    program(f"select from timewheel.job where id = {jobs[1]} for update")
    # The lease of c ends before the other leases.
    c.stop(signal.SIGKILL)
    time.sleep(1)
    a.stop(signal.SIGKILL)
    assert eventually(lambda: sql(f"{owner}{jobs[2]}") not in dead)
    before = b.metric("commit_seconds_count{}")
    assert eventually(lambda: f"process {pid}, \"psql\"," in b.said())
    # The node has two turns in each second, and does not spin.
    assert b.metric("commit_seconds_count{}") - before < 50
    same([sql(f"{owner}{job}") for job in jobs[:2]], dead[:2])
    program("rollback")
    assert eventually(lambda: all(sql(f"{owner}{job}") not in dead for job in jobs))
    for job in jobs:
        same(b("TW.CANCEL", "q", job), 1)
    a.start()
    c.start()


@test("a connection that is cut while nothing is under way is made again")
def _():
    sql("select pg_terminate_backend(pid, 2000) from pg_stat_activity\n"
        " where application_name = 'a'")
    assert eventually(lambda: isinstance(a("TW.PUT", "q", "cut"), int))
    got = take(a)
    same(a("TW.ACK", "q", got[1]), 1)


def set_clock(ms):
    """Sets the database's clock ahead of this machine's clock."""
    sql("create or replace function timewheel.now() returns bigint language sql as\n"
        f" 'select (extract(epoch from clock_timestamp()) * 1000)::bigint + {ms}'")


@test("a clock that is set: nothing is early by the database's, and nothing waits")
def _():
    job = b("TW.PUT", "q", "clock", "IN", 3000)
    set_clock(3600000)
    got = take(b)
    same(got[0], job)
    same(b("TW.ACK", "q", got[1]), 1)
    job = b("TW.PUT", "q", "clock", "IN", 5)
    same(take(b, seconds=1.5), None)
    got = take(b)
    same(got[0], job)
    same(b("TW.ACK", "q", got[1]), 1)
    set_clock(0)
    # Leases that were renewed by the clock before this change end an hour later.
    assert eventually(lambda: isinstance(b("TW.PUT", "q", "b", "IN", 1000), int))


@test("a queue that is dropped at one node is gone at all, with its jobs")
def _():
    a("TW.CREATE", "r", "LEASE", 30)
    for node in (a, b, c):
        for i in range(20):
            node("TW.PUT", "r", i, "IN", 1000)
    sql("select timewheel.put('r', 'inbox')")
    same(b("TW.DROP", "r"), "+OK")
    assert eventually(lambda: str(a("TW.PUT", "r", "x"))[:8] == "-NOQUEUE")
    assert eventually(lambda: sql(
        "select count(*) from timewheel.job j join timewheel.queue q\n"
        " on q.id = j.queue where q.name = 'r'") == "0")
    assert eventually(lambda: sql(
        "select count(*) from timewheel.queue where name = 'r'") == "0")


@test("a queue that is made just after another node has dropped it is there")
def _():
    same(a("TW.CREATE", "s", "LEASE", 30), "+OK")
    assert eventually(lambda: isinstance(b("TW.PUT", "s", "x", "IN", 9), int))
    same(a("TW.DROP", "s"), "+OK")
    same(b("TW.CREATE", "s", "LEASE", 30), "+OK")
    # By now each node has heard of both queues.
    time.sleep(2)
    for node in (a, b, c):
        assert isinstance(node("TW.PUT", "s", "y", "IN", 9), int)
    same(b("TW.DROP", "s"), "+OK")


def config(line):
    sql(f"alter system {line}")
    sql("select pg_reload_conf()")


def standby(*args):
    subprocess.run([str(folder / "standby.sh"), *args], check=True,
                   stdout=subprocess.DEVNULL)


def puts(node):
    try:
        return isinstance(Client(node.path)("TW.PUT", "q", "x", "IN", 9), int)
    except Closed:
        return False


def goes_on():
    assert eventually(lambda: puts(d))


def pending():
    """Sends a put on a connection of its own, whose commit waits for the paused standby. The put
    comes when the node's own turn of this second has just ended."""
    client = Client(d.path)
    leases = "select max(until) from timewheel.node_lease"
    before = sql(leases)
    assert eventually(lambda: sql(leases) != before)
    standby("pause")
    client.send("TW.PUT", "q", "doubt", "IN", 1000)
    assert eventually(lambda: sql(
        "select count(*) from pg_stat_activity where wait_event = 'SyncRep'") != "0")
    return client


def has_quorum(machines):
    return sql(f"select timewheel.has_quorum({machines})")


@test("of how many machines a list of standbys asks is read as the database reads it")
def _():
    for names, count in (
            ("", 1), ("db2", 2), ("db2, db3", 2), ("2", 2), ("any1", 2), ("\"ANY 2 (x)\"", 2),
            ("1 (db2)", 2), ("2 (db2, db3)", 3), (" 2\t(db2, db3)", 3), ("FIRST 1 (db2)", 2),
            ("first 2 (db2, db3)", 3), ("ANY 1 (db1, db2, db3)", 2), ("Any 2(db2, db3)", 3),
            ("ANY 3 (db2)", 4), ("ANY 02 (db2, db3)", 3),
            # Any program that reads the log may have such a name.
            ("*", 1), ("ANY 1 (*)", 1), ("FIRST 2 (db2, *)", 1), ("\"*\"", 1)):
        quoted = f"'{names}'"
        config(f"set synchronous_standby_names = {quoted}")
        assert eventually(lambda: sql("show synchronous_standby_names") == names), names
        same([has_quorum(machines) for machines in range(1, 6)],
             ["t"] * count + ["f"] * (5 - count))
    assert "must be greater than zero" in sql(
        "alter system set synchronous_standby_names = 'FIRST 0 (db2)'")
    # The database reads only some bits of this number.
    config("set synchronous_standby_names = 'ANY 4294967297 (db2)'")
    assert eventually(lambda: "out of range" in has_quorum(2))
    config("set synchronous_standby_names = 'ANY 2 (db2, db3)'")
    assert eventually(lambda: has_quorum(3) == "t")
    for commit in "off", "local", "remote_write":
        sql(f"set synchronous_commit = {commit}")
        same([has_quorum(1), has_quorum(2)], ["t", "f"])
    sql("reset synchronous_commit")


def refuses(node, seconds):
    """One command may wait for another database, or for a commit in doubt that was under way. The
    other commands are refused at once."""
    end, waits, doubts = time.monotonic() + seconds, [], 0
    while time.monotonic() < end:
        begin = time.monotonic()
        try:
            same(Client(node.path)("TW.PUT", "q", "x", "IN", 9)[:12], "-UNAVAILABLE")
        except Closed:
            doubts += 1
        waits.append(time.monotonic() - begin)
        time.sleep(0.02)
    assert doubts <= 1, doubts
    assert sum(wait > 0.9 for wait in waits) <= 1 and max(waits) < 3, sorted(waits)[-3:]


def answer_again():
    """Lets the standby answer, and the database ask it."""
    standby("resume")
    config("set synchronous_standby_names = 'ANY 1 (standby)'")


for node in (a, b, c):
    node.stop()
common.after_failure = answer_again
config("set synchronous_standby_names = ''")
standby("start")
config("set synchronous_standby_names = 'ANY 1 (standby)'")
d = Node("d", machines=2)


@test("the tables are made at the primary, wherever it is in the list of hosts")
def _():
    sql("create database other")
    done = init_database(f"postgresql:///other?host={folder},{folder}&port=5433,5432"
                         "&user=postgres")
    same((done.returncode, done.stderr), (0, ""))
    sql("drop database other with (force)")


@test("with a quorum commits are answered")
def _():
    assert isinstance(d("TW.PUT", "q", "quorum", "IN", 1000), int)


@test("in doubt: the connection is cut while a commit waits")
def _():
    client = pending()
    sql("select pg_terminate_backend(pid) from pg_stat_activity\n"
        " where application_name = 'd'")
    same(is_closed(client), True)
    standby("resume")


@test("in doubt: the wait of a commit is cancelled")
def _():
    goes_on()
    client = pending()
    sql("select pg_cancel_backend(pid) from pg_stat_activity\n"
        " where application_name = 'd'")
    same(is_closed(client), True)
    assert "was cancelled" in d.said()
    standby("resume")


@test("in doubt: the list of standbys is emptied while a commit waits; then refused")
def _():
    goes_on()
    client = pending()
    config("set synchronous_standby_names = ''")
    same(is_closed(client), True)
    same(Client(d.path)("TW.PUT", "q", "x", "IN", 1000)[:12], "-UNAVAILABLE")
    config("set synchronous_standby_names = 'ANY 1 (standby)'")
    standby("resume")


@test("in doubt: no standby answers for as long as a commit waits at most")
def _():
    goes_on()
    client = pending()
    # A node that takes over leaves this session alone.
    same(sql("select timewheel.end_session(id) from timewheel.node where name = 'd'"), "f")
    same(is_closed(client), True)
    refuses(d, 3)
    standby("resume")
    goes_on()
    same(d.metric("in_doubt_total"), 4)


@test("while a server takes connections and says nothing: refused at once")
def _():
    server = int((folder / "db/postmaster.pid").read_text().split()[0])
    os.kill(server, signal.SIGSTOP)
    try:
        sql("select pg_terminate_backend(pid) from pg_stat_activity\n"
            " where application_name = 'd'")
        refuses(d, 4)
    finally:
        os.kill(server, signal.SIGCONT)
    goes_on()


@test("a list that asks for too few standbys, or for any: refused")
def _():
    goes_on()
    for names in "*", "ANY 1 (*)":
        config(f"set synchronous_standby_names = '{names}'")
        assert eventually(lambda: not puts(d))
        same(Client(d.path)("TW.PUT", "q", "x", "IN", 1000)[:12], "-UNAVAILABLE")
    config("set synchronous_standby_names = 'ANY 1 (standby)'")
    f = Node("f", machines=3, wait=False)
    assert eventually(lambda: "commits do not wait for the disks of 3 machines" in f.said())
    assert not f.can_connect()
    f.stop(signal.SIGKILL)


@test("a primary that others have replaced, and that goes on, is left after one try")
def _():
    e = Node("e", where=f"postgresql:///postgres?host={folder},{folder}&port=5432,5433"
             "&user=postgres")
    job = e("TW.PUT", "q", "both", "IN", 1000)
    # From now on there are two primaries, and no commit of the first one ends.
    standby("promote")
    assert eventually(lambda: puts(e))
    e.can_connect()
    same(state(e, job), "delayed")
    e.stop()


d.stop()
standby("stop")
end()
