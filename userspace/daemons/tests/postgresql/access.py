#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
#
# access.py OUTPUT: tests which roles may use which queues by SQL, and how a node may connect. A
# real pgbouncer, which is found by PATH, runs between a node and the database. The database is at
# PGHOST (see "server"). Prints TAP.
import atexit
import os
import socket
import subprocess

from common import Node, Sql, end, eventually, folder, init_database, same, test

init_database().check_returncode()
a = Node("a")
sql = Sql()
for name in "mails", "rates":
    same(a("TW.CREATE", name), "+OK")
sql("create role shop login; create role all_queues in role timewheel_producer;"
    " create role clerk login in role shop; create role aloof noinherit in role shop;"
    " create role nobody_else; grant create on schema public to shop")


def say(role, statement):
    """Returns what the statement prints in a session of the role."""
    session = Sql()
    session("set client_min_messages = warning")
    same(session(f"set session authorization {role}"), "")
    said = session(statement)
    session.process.stdin.close()
    session.process.wait()
    return said


def put(role, queue, key="k"):
    return say(role, f"select timewheel.put_text('{queue}', 'x', now() + '1 hour', '{key}') > 0")


def may(role, queue):
    """Tells whether the role may use the queue. All functions have to agree about this."""
    said = put(role, queue)
    if said == "t":
        answers = [say(role, f"select timewheel.move('{queue}', 'k', now() + '2 hours')"),
                   say(role, f"select timewheel.put('{queue}', 'y', key => 'k') > 0"),
                   say(role, f"select timewheel.cancel('{queue}', 'k')")]
        same(answers, ["t"] * 3)
        number = say(role, f"select timewheel.put('{queue}', 'x', now() + '1 hour')")
        same(say(role, f"select timewheel.move('{queue}', {number}, now())"), "t")
        same(say(role, f"select timewheel.cancel('{queue}', {number})"), "t")
        return True
    # A role learns nothing of a queue that it may not use.
    sql(f"select timewheel.put('{queue}', 'x', now() + '1 hour', 'theirs')")
    for call in ("put('{}', 'x')", "put_text('{}', 'x')", "cancel('{}', 'theirs')",
                 "cancel('{}', 1)", "move('{}', 'theirs', now())", "move('{}', 1, now())"):
        said = say(role, f"select timewheel.{call.format(queue)}")
        assert "permission denied" in said or "NOPERM" in said, said
    same(sql(f"select timewheel.cancel('{queue}', 'theirs')"), "t")
    return False


@test("a role has the queues that it was given, one by one, until they are taken away")
def _():
    queues = "mails", "rates"
    same([may("shop", q) for q in queues], [False, False])
    same([may("all_queues", q) for q in queues], [True, True])
    sql("select timewheel.allow('shop', 'mails')")
    same([may("shop", q) for q in queues], [True, False])
    # A queue may be given again, and may be given before it exists.
    sql("select timewheel.allow('shop', 'mails'); select timewheel.allow('shop', 'later')")
    same([may("shop", q) for q in queues], [True, False])
    assert "NOQUEUE" in put("shop", "later")
    assert "NOPERM" in put("shop", "never")
    same(may("nobody_else", "mails"), False)
    sql("create role \"It's\"; select timewheel.allow('It''s', 'mails')")
    same(put('"It\'s"', "mails", "another"), "t")
    sql("select timewheel.disallow('It''s', 'mails')")
    sql("select timewheel.disallow('shop', 'mails')")
    same([may("shop", q) for q in queues], [False, False])
    sql("select timewheel.allow('shop', 'rates')")
    same([may("shop", q) for q in queues], [False, True])


@test("a queue's rights are those of its name, also when the queue is made again")
def _():
    same(a("TW.DROP", "rates"), "+OK")
    same(a("TW.CREATE", "rates"), "+OK")
    same([may("shop", q) for q in ("mails", "rates")], [False, True])


@test("members of a role have its queues as they have its other rights")
def _():
    same([may("clerk", q) for q in ("mails", "rates")], [False, True])
    same([may("aloof", q) for q in ("mails", "rates")], [False, False])
    same(say("aloof", "set role shop; select timewheel.put('rates', 'x') > 0"), "t")
    # A session may take another role for a while, and that role then counts.
    said = say("all_queues", "set role shop")
    assert "permission denied" in said, said
    said = say("postgres", "set role shop; select timewheel.put('mails', 'x')")
    assert "NOPERM" in said, said


@test("who calls decides, not whose session it is: a function may put for its users")
def _():
    say("shop", "create function public.rate(q text) returns bigint security definer\n"
        " language sql as $$ select timewheel.put(q, 'x') $$")
    same(say("nobody_else", "select public.rate('rates') > 0"), "t")
    said = say("all_queues", "select public.rate('mails')")
    assert "NOPERM" in said, said


@test("what is below the functions lets a role use no other queue")
def _():
    columns = say("shop", "select count(*) from information_schema.columns"
                  " where table_schema = 'timewheel'")
    assert int(columns) > 0
    insert = "insert into timewheel.request (verb, queue, body{}) values ('put', '{}', 'x'{})"
    assert "NOPERM" in say("shop", insert.format("", "mails", ""))
    for who in "'all_queues'", "'postgres'":
        assert "permission denied" in say("shop", insert.format(", caller", "mails", ", " + who))
    assert "permission denied" in say("shop", "select timewheel.allow('shop', 'mails')")
    assert "permission denied" in say("shop", "table timewheel.allowed")
    assert "permission denied" in say("all_queues", "select timewheel.allow('shop', 'mails')")
    for statement in ("update timewheel.request set queue = 'mails'",
                      "delete from timewheel.request", "truncate timewheel.job",
                      "create function timewheel.f() returns int language sql as 'select 1'"):
        said = say("shop", statement)
        assert "permission denied" in said or "cannot" in said, said
    same(may("shop", "mails"), False)


@test("a role that is gone leaves no right to a role that gets its number")
def _():
    sql("create role short; select timewheel.allow('short', 'mails')")
    same(put("short", "mails", "short"), "t")
    assert "cannot be dropped" in sql("drop role short")
    sql("drop owned by short; drop role short")
    sql("select timewheel.allow('shop', 'rates')")
    same(sql("select role, queue from timewheel.allowed order by 2"),
         "shop|later\nshop|rates")
    assert "does not exist" in sql("select timewheel.allow('short', 'mails')")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def pooler(mode):
    """Starts a pgbouncer, and returns its place."""
    place, port = folder / mode, free_port()
    place.mkdir()
    (place / "ini").write_text(
        f"[databases]\npostgres = user=postgres host={folder}\n[pgbouncer]\n"
        f"unix_socket_dir = {place}\nlisten_port = {port}\nauth_type = any\n"
        f"pool_mode = {mode}\n")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for file in place, place / "ini":
        os.chown(file, folder.stat().st_uid, folder.stat().st_gid)
    process = subprocess.Popen([*(user if os.getuid() == 0 else ()), "pgbouncer", place / "ini"],
                               stderr=open(place / "log", "w"))
    atexit.register(process.kill)
    assert eventually(lambda: (place / f".s.PGSQL.{port}").exists())
    return f"postgresql:///postgres?host={place}&port={port}&user=postgres"


for mode in "transaction", "session":
    @test(f"a pool of connections is refused by name, and its sessions stay as they are: {mode}")
    def _():
        where = pooler(mode)
        psql = ["psql", "-qtAX", where, "-c"]
        same(subprocess.run([*psql, "select 1"], capture_output=True, text=True).stdout, "1\n")
        path = [*psql, "show search_path"]
        before = subprocess.run(path, capture_output=True, text=True).stdout
        node = Node(mode, where=where, wait=False)
        same(node.process.wait(20), 1)
        sentence = "is a pool of connections, such as pgbouncer"
        assert sentence in node.said(), node.said()
        done = init_database(where)
        same(done.returncode, 1)
        assert sentence in done.stderr, done.stderr
        same(subprocess.run(path, capture_output=True, text=True).stdout, before)


a.stop()
end()
