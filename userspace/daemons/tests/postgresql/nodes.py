#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# nodes.py OUTPUT: three daemons on one database, on this machine, with wheels in memory:
# the owners of jobs, the inbox, takeovers, SQL, the quorum, and commits in doubt.
# The database is that of PGHOST (see "server"), which has a standby in PGHOST/standby.
# Prints TAP.
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

output = pathlib.Path(sys.argv[1])
folder = pathlib.Path(os.environ["PGHOST"])
program = output / "twjobd-memory"
tests, failed = 0, False


class Closed(Exception):
    pass


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def answer(self):
        try:
            line = self.file.readline()
        except ConnectionError:
            line = b""
        if not line:
            raise Closed
        kind, rest = line[:1], line[1:-2]
        if kind in b"+-":
            return (kind + rest).decode()
        if kind == b":":
            return int(rest)
        count = int(rest)
        if count < 0:
            return None
        if kind == b"$":
            return self.file.read(count + 2)[:-2]
        return [self.answer() for _ in range(count)]

    def __call__(self, *words):
        self.send(*words)
        return self.answer()


class Node:
    def __init__(self, name, machines=1):
        self.name, self.machines = name, machines
        self.path = folder / f"{name}.sock"
        self.start()

    def start(self):
        config = folder / f"{self.name}.conf"
        config.write_text(f"listen = {self.path}\nnode = {self.name}\n"
                          f"store = postgresql:///postgres?host={folder}&user=postgres"
                          f"&application_name={self.name}\n"
                          f"machines = {self.machines}\n")
        self.log = open(folder / f"{self.name}.log", "a")
        self.process = subprocess.Popen([program, "-c", config], stderr=self.log)
        eventually(lambda: self.can_connect(), 30)

    def can_connect(self):
        try:
            self.client = Client(self.path)
        except OSError:
            return False
        return True

    def __call__(self, *words):
        return self.client(*words)

    def send_signal(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        self.send_signal(number)
        self.process.wait()

    def said(self):
        return (folder / f"{self.name}.log").read_text()


class Sql:
    """A session of psql, which may have a transaction open."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["psql", "-qtAX"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def __call__(self, sql):
        self.process.stdin.write(f"{sql};\n\\echo end\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline().rstrip("\n")) != "end":
            if not line and self.process.poll() is not None:
                raise Closed
            lines.append(line)
        return "\n".join(lines)


def eventually(check, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.05)
    return False


def test(name):
    def run(function):
        global tests, failed
        tests += 1
        begin = time.monotonic()
        try:
            function()
            print(f"ok {tests} {name}", flush=True)
        except Exception as error:
            failed = True
            line = error.__traceback__.tb_next
            while line.tb_next and line.tb_next.tb_frame.f_code.co_filename == __file__:
                line = line.tb_next
            print(f"# line {line.tb_lineno}: {error!r}")
            print(f"not ok {tests} {name}", flush=True)
        print(f"# {time.monotonic() - begin:.1f} s", flush=True)
    return run


def same(got, expected):
    if got != expected:
        raise AssertionError(f"{got!r} instead of {expected!r}")


def take(node, queue="q", seconds=4, **options):
    """A job as (id, receipt, attempt, body), waiting for it by BLOCK."""
    words = [word for pair in options.items() for word in pair]
    jobs = Client(node.path)("TW.TAKE", queue, "BLOCK", int(seconds * 1000), *words)
    if not jobs:
        return None
    return jobs[0][1], jobs[0][2].decode(), jobs[0][3], jobs[0][6].decode()


def state(node, job, queue="q"):
    answer = node("TW.GET", queue, job)
    return answer and answer[3].decode()


subprocess.run([program, "-c", "/dev/stdin", "--init-database"], check=True, text=True,
               input=f"store = postgresql:///postgres?host={folder}&user=postgres\n")
a, b, c = Node("a"), Node("b"), Node("c")
sql = Sql()


@test("a queue made at one node is known at the others")
def _():
    same(a("TW.CREATE", "q", "LEASE", 30, "TRIES", 3), "+OK")
    job = b("TW.PUT", "q", "x", "IN", 1000)
    same(c("TW.CANCEL", "q", job), 1)
    same(a("TW.CANCEL", "q", job), 0)
    same(b("TW.CREATE", "q", "LEASE", 20), "+OK")
    assert eventually(lambda: 20000 in a("TW.STATS", "q"), 3)


@test("a worker gets a job that another node owns, within 2 seconds and some")
def _():
    begin = time.monotonic()
    job = a("TW.PUT", "q", "far")
    got = take(b)
    same(got[0], job)
    same(got[3], "far")
    assert time.monotonic() - begin < 3
    same(state(c, job), "held")
    same(c("TW.CANCEL", "q", job), "-HELD the job is being worked on")
    same(a("TW.EXTEND", "q", got[1], 20), "+OK")
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
    got = take(b, seconds=3)
    same((got[0], got[3]), (job, "sql"))
    assert "HELD" in sql("select timewheel.cancel('q', 'k')")
    same(c("TW.ACK", "q", got[1]), 1)
    same(sql("select timewheel.cancel('q', 'k')"), "f")
    job = int(sql("select timewheel.put('q', 'x', now() + interval '1 hour')"))
    assert eventually(lambda: sql(f"select node from timewheel.job where id = {job}"), 3)
    same(sql(f"select timewheel.move('q', {job}, now())"), "t")
    got = take(a, seconds=3)
    same(got[0], job)
    same(a("TW.ACK", "q", got[1]), 1)
    assert "NOQUEUE" in sql("select timewheel.put('none', 'x')")
    assert "2255" in sql("select timewheel.put('q', 'x', '3000-01-01')")
    assert eventually(lambda: a("TW.STATS", "q")[1] == 0, 3)


@test("SQL: the programs' role may do nothing else")
def _():
    sql("set role timewheel_producer")
    job = int(sql("select timewheel.put('q', 'role', now() + interval '1 hour')"))
    same(sql(f"select timewheel.cancel('q', {job})"), "t")
    for other in ("delete from timewheel.job", "select * from timewheel.node",
                  "select timewheel.join_node('a', 1)",
                  "select timewheel.fence_node(0)"):
        assert "permission denied" in sql(other), other
    sql("reset role")


@test("an open transaction of a program delays nobody else")
def _():
    first = a("TW.PUT", "q", "first", "IN", 1)
    second = a("TW.PUT", "q", "second", "IN", 1)
    sql("begin")
    same(sql(f"select timewheel.cancel('q', {first})"), "t")
    got = take(a)
    same(got[0], second)
    begin = time.monotonic()
    same(b("TW.CANCEL", "q", first)[:5], "-BUSY")
    same(b("TW.ACK", "q", got[1]), 1)
    same(state(a, first), "ready")
    assert time.monotonic() - begin < 1
    sql("rollback")
    got = take(a)
    same(got[0], first)
    same(a("TW.ACK", "q", got[1]), 1)


@test("BOUND: the job of a connection that has ended comes again, also elsewhere")
def _():
    job = a("TW.PUT", "q", "bound")
    client = Client(b.path)
    same(client("TW.TAKE", "q", "BLOCK", 4000, "BOUND")[0][1], job)
    client.socket.close()
    client.file.close()
    got = take(c)
    same((got[0], got[2]), (job, 2))
    same(a("TW.ACK", "q", got[1]), 1)


@test("a planned stop hands all over without waiting for a lease")
def _():
    jobs = {a("TW.PUT", "q", i, "IN", 1) for i in range(50)}
    a.stop()
    begin = time.monotonic()
    worker = Client(b.path)
    while jobs and time.monotonic() - begin < 6:
        for got in worker("TW.TAKE", "q", "COUNT", 50, "BLOCK", 1000) or ():
            jobs.remove(got[1])
            same(worker("TW.ACK", "q", got[2]), 1)
    same(jobs, set())
    a.start()


@test("a killed and a stopped node: each job is delivered once, within 12 seconds")
def _():
    jobs = {node("TW.PUT", "q", i, "IN", 1) for node in (a, c) for i in range(100)}
    a.stop(signal.SIGKILL)
    c.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    worker = Client(b.path)
    while jobs and time.monotonic() - begin < 13:
        for got in worker("TW.TAKE", "q", "COUNT", 50, "BLOCK", 1000) or ():
            jobs.remove(got[1])
            same(worker("TW.ACK", "q", got[2]), 1)
    same(jobs, set())
    print(f"# after {time.monotonic() - begin:.1f} s")
    assert time.monotonic() - begin < 12


@test("a stopped node that goes on is refused by its epoch, and goes on with others")
def _():
    sql("update timewheel.node set epoch = epoch + 1 where name = 'c'")
    c.send_signal(signal.SIGCONT)
    assert eventually(lambda: "another node has taken" in c.said(), 5)
    assert eventually(lambda: isinstance(c("TW.PUT", "q", "on"), int), 3)
    got = take(c)
    same(c("TW.ACK", "q", got[1]), 1)
    a.start()


@test("a connection that is cut while nothing is under way is made again")
def _():
    sql("select pg_terminate_backend(pid, 2000) from pg_stat_activity\n"
        " where application_name = 'a'")
    assert eventually(lambda: isinstance(a("TW.PUT", "q", "cut"), int), 4)
    got = take(a)
    same(a("TW.ACK", "q", got[1]), 1)


def set_clock(ms):
    """The database's clock, ahead of this machine's."""
    sql("create or replace function timewheel.now() returns bigint language sql as\n"
        f" 'select (extract(epoch from clock_timestamp()) * 1000)::bigint + {ms}'")


@test("a clock that is set: nothing is early by the database's, and nothing waits")
def _():
    job = b("TW.PUT", "q", "clock", "IN", 3000)
    set_clock(3600000)
    got = take(b, seconds=6)
    same(got[0], job)
    same(b("TW.ACK", "q", got[1]), 1)
    job = b("TW.PUT", "q", "clock", "IN", 2)
    same(take(b, seconds=1.5), None)
    got = take(b, seconds=2)
    same(got[0], job)
    same(b("TW.ACK", "q", got[1]), 1)
    set_clock(0)
    # Leases that were renewed by the clock before end an hour later.
    assert eventually(lambda: isinstance(b("TW.PUT", "q", "b", "IN", 1000), int), 4)


@test("a queue that is dropped at one node is gone at all, with its jobs")
def _():
    a("TW.CREATE", "r", "LEASE", 30)
    for node in (a, b, c):
        for i in range(20):
            node("TW.PUT", "r", i, "IN", 1000)
    sql("select timewheel.put('r', 'inbox')")
    same(b("TW.DROP", "r"), "+OK")
    assert eventually(lambda: str(a("TW.PUT", "r", "x"))[:8] == "-NOQUEUE", 3)
    assert eventually(lambda: sql(
        "select count(*) from timewheel.job j join timewheel.queue q\n"
        " on q.id = j.queue where q.name = 'r'") == "0", 4)
    assert eventually(lambda: sql(
        "select count(*) from timewheel.queue where name = 'r'") == "0", 4)


@test("a queue that is made just after another node has dropped it is there")
def _():
    same(a("TW.CREATE", "s", "LEASE", 30), "+OK")
    assert eventually(lambda: isinstance(b("TW.PUT", "s", "x", "IN", 9), int), 3)
    same(a("TW.DROP", "s"), "+OK")
    same(b("TW.CREATE", "s", "LEASE", 30), "+OK")
    # By now each node has heard of both.
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


def goes_on():
    assert eventually(lambda: isinstance(Client(d.path)("TW.PUT", "q", "x", "IN", 9), int), 9)


def pending():
    """A put whose commit waits for the standby, on a connection of its own."""
    client = Client(d.path)
    client.send("TW.PUT", "q", "doubt", "IN", 1000)
    assert eventually(lambda: sql(
        "select count(*) from pg_stat_activity where wait_event = 'SyncRep'") != "0", 3)
    return client


def is_in_doubt(client):
    try:
        return f"answered {client.answer()!r}"
    except Closed:
        return True


for node in (a, b, c):
    node.stop()
standby("start")
config("set synchronous_standby_names = 'ANY 1 (standby)'")
d = Node("d", machines=2)


@test("with a quorum commits are answered")
def _():
    assert isinstance(d("TW.PUT", "q", "quorum", "IN", 1000), int)


@test("in doubt: the connection is cut while a commit waits")
def _():
    standby("pause")
    client = pending()
    sql("select pg_terminate_backend(pid) from pg_stat_activity\n"
        " where application_name = 'd'")
    same(is_in_doubt(client), True)
    standby("resume")


@test("in doubt: the wait of a commit is cancelled")
def _():
    goes_on()
    standby("pause")
    client = pending()
    sql("select pg_cancel_backend(pid) from pg_stat_activity\n"
        " where application_name = 'd'")
    same(is_in_doubt(client), True)
    assert "was cancelled" in d.said()
    standby("resume")


@test("in doubt: the list of standbys is emptied while a commit waits; then refused")
def _():
    goes_on()
    standby("pause")
    client = pending()
    config("set synchronous_standby_names = ''")
    same(is_in_doubt(client), True)
    same(Client(d.path)("TW.PUT", "q", "x", "IN", 1000)[:12], "-UNAVAILABLE")
    config("set synchronous_standby_names = 'ANY 1 (standby)'")
    standby("resume")


@test("in doubt: no standby answers for as long as a commit waits at most")
def _():
    goes_on()
    standby("pause")
    same(is_in_doubt(pending()), True)
    standby("resume")
    goes_on()


d.stop()
standby("stop")
print(f"1..{tests}")
sys.exit(failed)
