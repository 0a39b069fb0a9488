#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# steady.py OUTPUT SECONDS: measures nodes whose clients put, take and ack jobs with a body of 100
# bytes as fast as they can. The script "steady" calls this, and tells what is printed.
import multiprocessing
import pathlib
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "daemons/tests/postgresql"))
from common import (READY, Client, Closed, Node, Relay, Sql, encoded, eventually, init_database,
                    results_in)

SECONDS = int(sys.argv[2])
# Each node has this many clients, each of which has this many jobs at a time.
CLIENTS, BATCH = 4, 50
PUTS = [("TW.PUT", "q", "x" * 100)] * BATCH
ended, failures = multiprocessing.Value("q", 0), multiprocessing.Value("q", 0)


def add(value, more):
    with value.get_lock():
        value.value += more


def at_once(client, *commands):
    """Returns the answers to commands that come in one piece."""
    client.socket.sendall(b"".join(encoded(command) for command in commands))
    return [client.answer() for _ in commands]


def put_take_ack(client):
    """Returns how many jobs were acked. Raises TypeError or IndexError after an error."""
    sum(at_once(client, *PUTS))
    jobs = client("TW.TAKE", "q", "COUNT", BATCH, "BLOCK", 1000) or []
    return sum(at_once(client, *[("TW.ACK", "q", job[2]) for job in jobs]))


def work(path, stop):
    client = Client(path)
    while not stop.is_set():
        try:
            done = put_take_ack(client)
        except (Closed, TypeError, IndexError):
            client, done = Client(path), 0
            add(failures, 1)
        add(ended, done)


class Counter(Relay):
    """Counts round trips and statements by the answers."""

    def __init__(self):
        self.trips = self.statements = 0
        super().__init__("counter")

    def to_client(self, target, data):
        self.trips += data.count(READY)
        self.statements += results_in(data)
        target.sendall(data)


class Load:
    def __init__(self, nodes):
        self.stop = multiprocessing.Event()
        self.clients = [multiprocessing.Process(target=work, args=(node.path, self.stop))
                        for node in nodes for _ in range(CLIENTS)]
        for client in self.clients:
            client.start()

    def end(self):
        self.stop.set()
        for client in self.clients:
            client.join()
            assert client.exitcode == 0


def figures():
    """Returns the time, the jobs that have ended, and the server's transactions and its log."""
    commits, log = sql("select xact_commit, pg_current_wal_lsn() - '0/0' from pg_stat_database "
                       "where datname = 'postgres'").split("|")
    return time.monotonic(), ended.value, int(commits), int(log)


def measure(nodes, seconds):
    """Returns jobs a second, transactions a job, and bytes of log a job."""
    load = Load(nodes)
    time.sleep(3)
    before = figures()
    time.sleep(seconds)
    took, jobs, commits, log = (b - a for a, b in zip(before, figures()))
    load.end()
    return jobs / took, commits / jobs, log / jobs


def sizes():
    """Returns the dead rows of jobs, and the kB of jobs, of all other tables, and of all."""
    return [int(n) for n in sql(
        "select (select n_dead_tup from pg_stat_user_tables where relname = 'job'), "
        "sum(pg_total_relation_size(c.oid)) filter (where relname = 'job')::bigint / 1024, "
        "sum(pg_total_relation_size(c.oid)) filter (where relname <> 'job')::bigint / 1024, "
        "pg_database_size('postgres') / 1024 from pg_class c "
        "where relnamespace = 'timewheel'::regnamespace and relkind = 'r'").split("|")]


init_database().check_returncode()
sql = Sql()
counter = Counter()
nodes = [Node(f"n{i}") for i in range(4)]
counted = Node("counted", where=counter.where)
same = nodes[0]("TW.CREATE", "q", "MAXJOBS", 1000000, "MAXBYTES", 1 << 40)
assert same == "+OK", same
for node in *nodes, counted:
    assert eventually(lambda: isinstance(node("TW.STATS", "q"), list))
print("nodes  jobs a second  transactions a job  bytes of log a job")
for n in 1, 2, 4:
    print("%5d %14.0f %19.4f %19.0f" % (n, *measure(nodes[:n], 20)), flush=True)
before = counter.trips, counter.statements, ended.value
measure([counted], 10)
trips, statements, jobs = (b - a for a, b in
                           zip(before, (counter.trips, counter.statements, ended.value)))
print(f"a job at one node: {trips / jobs:.4f} round trips, {statements / jobs:.2f} statements")

print("minute  jobs a second  dead rows  kB of jobs  of other tables  of all")
load = Load(nodes[:2])
begin, jobs = time.monotonic(), ended.value
for minute in range(1, SECONDS // 60 + 1):
    time.sleep(max(0, begin + 60 * minute - time.monotonic()))
    now = ended.value
    print("%6d %14.0f %10d %11d %16d %7d" % (minute, (now - jobs) / 60, *sizes()), flush=True)
    jobs = now
load.end()
print(f"clients met {failures.value} errors or ends of connections")
