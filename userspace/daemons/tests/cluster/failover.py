#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
#
# failover OUTPUT: the nodes go on when another server takes the primary's place, in cases which
# the ledger would meet only now and then. The script "bed" has to run. Prints TAP.
import os
import pathlib
import sys

BED = pathlib.Path("/tmp/timewheel-bed")
os.environ["PGHOST"] = str(BED)
sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "postgresql"))
from common import *

MINUTE = 60000
# Nodes may need this many s to find the server that has become the primary.
FOUND = 15
TERMINATE = ("select count(pg_terminate_backend(pid)) from pg_stat_activity "
             "where application_name = 'twjobd'")


def bed(*words):
    done = subprocess.run(["bed", *map(str, words)], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, words
    return done.stdout.strip()


def primary():
    return bed("primary")


def ask_primary(sql):
    return int(bed("sql", primary(), sql))


class Bedded:
    """A node, by its socket. After the end of a connection there is another one."""

    def __init__(self, name):
        self.path = BED / name / "socket"
        self.client = Client(self.path)

    def __call__(self, *words):
        try:
            return self.client(*words)
        except Closed:
            self.client = Client(self.path)
            raise

    def insist(self, *words):
        """Repeats a command until the node has a database. Returns the answer."""
        end = time.monotonic() + FOUND
        while True:
            try:
                answer = self(*words)
                if str(answer)[:1] != "-" or time.monotonic() > end:
                    return answer
            except (Closed, TimeoutError, ConnectionError):
                pass
            time.sleep(0.02)

    def put(self, what, *words):
        """Puts a job by key, which made a job or found one, as "what" says. Returns its number."""
        job, said = self.insist("TW.PUT", "q", *words)
        same(said.decode(), what)
        return job

    def put_that_waits(self):
        """Sends a put whose commit then waits for other machines."""
        self.client.send("TW.PUT", "q", "first", "KEY", "k")
        assert eventually(lambda: ask_primary(
            "select count(*) from pg_stat_activity where wait_event = 'SyncRep'") > 0)

    def is_not_told(self):
        """The client of the put gets no answer."""
        try:
            raise AssertionError(self.client.answer())
        except Closed:
            self.client = Client(self.path)

    def comes_once(self, body):
        """This job comes once, and no other job comes."""
        _, receipt, _, got = take(self, seconds=5)
        same((got, self("TW.ACK", "q", receipt)), (body, 1))
        same(take(self, seconds=2), None)


# The database's clock depends on a setting of the server.
CLOCK = """create or replace function timewheel.now() returns bigint language sql as 'select
           floor(extract(epoch from clock_timestamp()) * 1000)::bigint
           + current_setting(''bed.ahead'')::bigint'"""


def failover(name):
    """Gives a test two nodes, the primary, and the two standbys."""
    def run(function):
        @test(name)
        def _():
            n1, n2 = Bedded("n1"), Bedded("n2")
            old = primary()
            same(n1("TW.CREATE", "q", "LEASE", 20), "+OK")
            # The other node sees a new queue within a second.
            time.sleep(1.5)
            try:
                function(n1, n2, old, *(d for d in ("d1", "d2", "d3") if d != old))
            finally:
                n2.insist("TW.DROP", "q")
                for verb in "kill", "mend", "rejoin":
                    bed(verb, old)
                time.sleep(1.5)
    return run


bed("init")
bed("sql", primary(), CLOCK)
bed("start", "n1", "n2")


@failover("J1: in doubt, and only the old primary has it")
def _(n1, n2, old, a, b):
    # The client finds out when it puts the job again.
    bed("cut", a, b)
    n1.put_that_waits()
    bed("cut", old)
    bed("kill", old)
    bed("mend", a, b)
    bed("failover")
    n1.is_not_told()
    n2.put("NEW", "second", "KEY", "k")
    n1.put("EXISTS", "third", "KEY", "k")
    n1.comes_once("second")


@failover("J1: in doubt, and the new primary has it")
def _(n1, n2, old, a, b):
    # The primary waits for a standby that does not exist, while both standbys have all data.
    bed("standbys", old, "ANY 1 (nobody)")
    n1.put_that_waits()
    time.sleep(0.5)
    bed("kill", old)
    bed("failover")
    n1.is_not_told()
    n2.put("EXISTS", "second", "KEY", "k")
    n2.comes_once("first")
    bed("rejoin", old)
    bed("standbys", old, f"ANY 1 ({a},{b})")


def is_left(n1, n2):
    """The nodes leave the old primary, which still answers but commits nothing."""
    bed("failover")
    begin = time.monotonic()
    n1.put("NEW", "n1", "KEY", 1)
    n2.put("NEW", "n2", "KEY", 2)
    print(f"# served again after {time.monotonic() - begin:.1f} s")


@failover("a primary that was made read-only is left")
def _(n1, n2, old, a, b):
    bed("setting", old, "default_transaction_read_only", "on")
    is_left(n1, n2)
    bed("setting", old, "default_transaction_read_only", "off")


@failover("a primary whose standbys have gone is left")
def _(n1, n2, *servers):
    is_left(n1, n2)


@failover("a primary that is stopped is left")
def _(n1, n2, old, a, b):
    # The kernel of its machine still takes connections.
    bed("stop", old)
    is_left(n1, n2)


@failover("a primary whose standbys have gone is not taken")
def _(n1, n2, old, a, b):
    bed("cut", a, b)
    assert ask_primary(TERMINATE) > 0
    # The commits of the new connections wait by now.
    time.sleep(3)
    bed("mend", a, b)
    is_left(n1, n2)


@failover("a primary without a quorum is left")
def _(n1, n2, old, a, b):
    bed("standbys", old, "")
    is_left(n1, n2)
    bed("standbys", old, f"ANY 1 ({a},{b})")


@failover("a node that is cut off soon refuses, whether it is connected or tries to connect")
def _(n1, n2, old, a, b):
    bed("cut", "n1")
    end, times = time.monotonic() + 12, []
    while time.monotonic() < end:
        begin = time.monotonic()
        try:
            answer = n1("TW.PUT", "q", "x")
            assert str(answer).startswith("-UNAVAILABLE"), answer
        except Closed:
            pass
        times.append(time.monotonic() - begin)
        time.sleep(0.1)
    *_, later, longest = sorted(times)
    print(f"# after {longest:.1f} s, and then after at most {later:.1f}")
    assert longest < 6.5 and later < 1.5
    bed("mend", "n1")
    n1.put("NEW", "n1", "KEY", 1)
    bed("failover")


def fail_over_to_clock(old, a, b, ahead):
    """Lets another server take the primary's place, whose clock is so many ms ahead."""
    right_clocks(a, b, ahead)
    bed("kill", old)
    bed("failover")


def right_clocks(a, b, ahead=0):
    bed("setting", a, "bed.ahead", ahead)
    bed("setting", b, "bed.ahead", ahead)


def is_due_in(node, key):
    """A job that is put at once is due by the new clock, though the node knew the old one."""
    job = node.put("NEW", key, "IN", 10, "KEY", key)
    left = ask_primary(f"select due - timewheel.now() from timewheel.job where id = {job}")
    assert 8000 < left <= 10000 + 20, left
    same(node("TW.CANCEL", "q", job), 1)


@failover("to a clock that is ahead: leases end early, and jobs for the next minute become due")
def _(n1, n2, *servers):
    n1("TW.PUT", "q", "held", "KEY", "held")
    held = take(n1, seconds=5)
    same(n2("TW.PUT", "q", "soon", "KEY", "soon", "IN", 50)[1], b"NEW")
    fail_over_to_clock(*servers, MINUTE)
    is_due_in(n1, "a")
    is_due_in(n2, "b")
    for _ in range(2):
        same(n2("TW.ACK", "q", take(n1, seconds=5)[1]), 1)
    assert n2("TW.ACK", "q", held[1]).startswith("-STALE")
    right_clocks(*servers[1:])


@failover("to a clock that is behind: all jobs wait longer, but a job that is put now does not")
def _(n1, n2, *servers):
    n1("TW.PUT", "q", "held", "KEY", "held")
    held = take(n1, seconds=5)
    same(n2("TW.PUT", "q", "soon", "KEY", "soon", "IN", 3)[1], b"NEW")
    fail_over_to_clock(*servers, -MINUTE)
    is_due_in(n1, "a")
    is_due_in(n2, "b")
    n2.put("NEW", "now", "KEY", "now")
    n2.comes_once("now")
    same(n2("TW.ACK", "q", held[1]), 1)
    # A node sees that the clocks are right again.
    right_clocks(*servers[1:])
    same(take(n1, seconds=5)[3], "soon")


end()
