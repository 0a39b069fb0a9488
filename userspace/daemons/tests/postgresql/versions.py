#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# versions.py OUTPUT: tests that tables of a version become tables of the next version, and that
# programs and tables of different versions refuse each other. The program of the next version
# has one more step, tables-next.sql beside this script. The database is at PGHOST (see "server").
# Prints TAP.
import re
import subprocess

from common import (Node, Sql, end, eventually, figure, folder, init_database, output, same, take,
                    test)

newer = output / "newer/twjobd-postgresql"
sql = Sql()


def database(name):
    """Makes an empty database, and returns its place."""
    sql(f"create database {name}")
    return f"postgresql:///{name}?host={folder}&user=postgres"


def run(name, command):
    return subprocess.run(["psql", "-qtAX", "-d", name, "-c", command], text=True, check=True,
                          capture_output=True).stdout.strip()


def dump(name):
    """Returns the content of the database without the times at which the steps were made."""
    text = subprocess.run(["pg_dump", "-sn", "timewheel", name], text=True, check=True,
                          capture_output=True).stdout
    return re.sub(r"\\(un)?restrict .*", "", text), run(
        name, "select string_agg(version::text, ' ' order by version) from timewheel.schema")


@test("each step tells its version, and --init-database again changes nothing")
def _():
    where = database("fresh")
    init_database(where, program=newer).check_returncode()
    before = dump("fresh"), run("fresh", "table timewheel.schema")
    same(before[0][1], "1 2")
    init_database(where, program=newer).check_returncode()
    same((dump("fresh"), run("fresh", "table timewheel.schema")), before)


@test("tables become those of the next version, keep their jobs, and end older nodes")
def _():
    where = database("old")
    init_database(where).check_returncode()
    node = Node("node", where=where)
    same(node("TW.CREATE", "q"), "+OK")
    buried = node("TW.PUT", "q", "buried")
    same(node("TW.BURY", "q", take(node)[1]), "+OK")
    job = node("TW.PUT", "q", "old", "KEY", "k")[0]
    refused = Node("next", where=where, wait=False, program=newer)
    assert eventually(refused.process.poll)
    assert "tables have version 1, this program 2: run" in refused.said()
    done = init_database(where, program=newer)
    same((done.returncode, done.stderr), (0, ""))
    same(dump("old"), dump("fresh"))
    assert eventually(node.process.poll)
    said = "tables have version 2, this program 1: use that of other nodes"
    assert said in node.said(), node.said()
    done = init_database(where)
    same(done.returncode, 1)
    assert said in done.stderr, done.stderr
    node.program = newer
    node.start()
    got = take(node)
    same((got[0], got[3]), (job, "old"))
    same(node("TW.ACK", "q", got[1]), 1)
    assert eventually(lambda: figure(node, "q", b"buried") == 1)
    same(node("TW.KICK", "q", buried), 1)
    same(take(node)[0], buried)
    node.stop()


end()
