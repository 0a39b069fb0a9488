#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# wire.py OUTPUT: tests two daemons on one database, see common.py. Between one of them and the
# database is a program that forwards all bytes, and can stop this within a word. The database is
# at PGHOST (see "server"). Prints TAP.
import signal
import time

from common import (PATIENCE, READY, Client, Node, Relay, Sql, end, eventually, init_database,
                    results_in, same, take, test)


class Wire(Relay):
    def __init__(self):
        self.left = None        # the number of bytes that are still forwarded to the server
        self.replace = None     # this text replaces a text of the server
        self.executed = self.ended = 0  # statements, and transactions with such statements
        super().__init__("wire")

    def to_server(self, target, data):
        if self.left is None:
            target.sendall(data)
            return
        target.sendall(data[:self.left])
        self.left -= min(self.left, len(data))
        # Nothing ends by this, because neither side hears of it.
        while not self.left:
            time.sleep(1)

    def to_client(self, target, data):
        self.executed += results_in(data)
        self.ended += data.count(READY + b"I")
        if self.replace and self.replace[0] in data:
            data = data.replace(*self.replace)
            self.replace = None
        target.sendall(data)


init_database(more="max-body = 4000000").check_returncode()
wire = Wire()
a, b = Node("a", where=wire.where), Node("b")
sql = Sql()
same(a("TW.CREATE", "q", "LEASE", 30), "+OK")
assert eventually(lambda: isinstance(b("TW.STATS", "q"), list))


@test("a commit that ends as a rollback has not been done, and its put is refused")
def _():
    wire.replace = (b"C\0\0\0\x0bCOMMIT\0", b"C\0\0\0\x0dROLLBACK\0")
    # The turn of each second may be the turn that hears it.
    client, refused = Client(a.path), 0
    while wire.replace:
        refused += str(client("TW.PUT", "q", "x", "IN", 1000))[:12] == "-UNAVAILABLE"
    same(refused, 1)
    assert isinstance(client("TW.PUT", "q", "x", "IN", 1000), int)
    assert "rolled a transaction back" in a.said()


@test("an idle node: 3 transactions and 15 statements a second, whatever is pending")
def _():
    sql("""with j as (insert into timewheel.job (id, queue, node, due, size, body)
               select nextval('timewheel.job_id'), q.id, n.id, timewheel.now() + 3600000,
               64, i::text::bytea from generate_series(1, 5000) i, timewheel.queue q,
               timewheel.node n where q.name = 'q' and n.name = 'a' returning queue, size)
           insert into timewheel.delta select queue, count(*), sum(size) from j group by queue""")
    # The node's backstop finds all jobs, and goes on to look at tokens.
    assert eventually(lambda: a("TW.STATS", "q")[3] >= 5000)
    time.sleep(5)
    begin, before = time.monotonic(), (wire.executed, wire.ended)
    time.sleep(10)
    took = time.monotonic() - begin
    statements, transactions = wire.executed - before[0], wire.ended - before[1]
    print(f"# {statements} statements and {transactions} transactions in {took:.1f} s")
    # If no statement were counted, the count would be wrong.
    assert 5 * took < statements <= 15 * took and took / 2 < transactions <= 3 * took


@test("a claim asks for bytes: of long jobs it reads some, and the others come later")
def _():
    for i in range(8):
        sql(f"select timewheel.put('q', convert_to(repeat('{i}', 3000000), 'UTF8'))")
    owned = "select count(*) from timewheel.job where size > 3000000 and node is not null"
    assert eventually(lambda: sql(owned) == "8")
    time.sleep(0.5)
    bodies, most = set(), 0
    end_of_test = time.monotonic() + 20
    while len(bodies) < 8 and time.monotonic() < end_of_test:
        for node in a, b:
            got = Client(node.path)("TW.TAKE", "q", "COUNT", 8) or []
            most = max(most, int(sql("select count(*) from timewheel.job\n"
                                     " where size > 3000000 and version > 0")))
            bodies |= {job[6][:1] for job in got}
            same(node("TW.ACK", "q", *[job[2] for job in got]) if got else [],
                 1 if len(got) == 1 else len(got) * [1])
    same(len(bodies), 8)
    assert most <= 2, most


@test("a node that is frozen in the middle of a turn, 20 kB after its last Sync")
def _():
    job = a("TW.PUT", "q", "taken over", "IN", 1)
    client = Client(a.path)
    wire.left = 20000
    client.send("TW.PUT", "q", 60000 * b"x")
    assert eventually(lambda: not wire.left)
    a.send_signal(signal.SIGSTOP)
    # The server may still be busy with statements before the 20 kB.
    assert eventually(lambda: sql("select state, wait_event from pg_stat_activity"
                                  " where application_name = 'a'") == "active|ClientRead")
    got = take(b, seconds=PATIENCE / 2)
    same(got and got[0], job)
    same(sql("select count(*) from pg_stat_activity where application_name = 'a'"), "0")
    same(b("TW.ACK", "q", got[1]), 1)
    a.stop(signal.SIGKILL)


end()
