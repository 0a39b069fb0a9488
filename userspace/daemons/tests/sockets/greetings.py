# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of what clients of Redis send by themselves.
import re
import subprocess
import time

from daemon import *


@test("what clients of Redis send by themselves is answered")
@with_daemon(OPEN, SECRET)
def _(daemon):
    same(daemon("ECHO", "tracer"), b"tracer")
    same(daemon("SELECT", 0), "+OK")
    same(daemon("SELECT", 1), "-ERR DB index is out of range")
    same(daemon("CONFIG", "GET", "*"), [])
    assert daemon("CONFIG", "SET", "a", "b").startswith("-ERR")
    seconds, us = daemon("TIME")
    assert abs(int(seconds) - time.time()) < 100 and 0 <= int(us) < 1000000
    same(daemon("CLIENT", "GETNAME"), None)
    same(daemon("CLIENT", "SETNAME", "a-worker"), "+OK")
    same(daemon("CLIENT", "GETNAME"), b"a-worker")
    for wrong in ("a b", "a\n", "x" * 64):
        assert daemon("CLIENT", "SETNAME", wrong).startswith("-ERR")
    same(daemon("CLIENT", "SETINFO", "LIB-NAME", "lib(x)"), "+OK")
    same(daemon("CLIENT", "SETINFO", "LIB-VER", "1.2"), "+OK")
    same(daemon("CLIENT", "NO-EVICT", "on"), "+OK")
    for word in ("MAINT_NOTIFICATIONS", "TRACKING", "REPLY"):
        assert daemon("CLIENT", word, "on").startswith("-ERR")
    assert "cluster support disabled" in daemon("CLUSTER", "NODES")
    assert daemon("SENTINEL", "masters").startswith("-ERR unknown command")
    other = Tcp()
    same(other("AUTH", PASSWORD), "+OK")
    lines = daemon("CLIENT", "LIST").decode().splitlines()
    same(len(lines), 2)
    assert any("name=a-worker lib-name=lib(x) lib-ver=1.2 " in l and " cmd=CLIENT " in l
               and "addr=unix:" in l for l in lines), lines
    assert any(re.search("addr=127.0.0.1:[0-9]+ ", l) for l in lines), lines
    same(daemon("RESET"), "+RESET")
    same(daemon("CLIENT", "GETNAME"), None)


@test("CLIENT UNBLOCK answers a take that waits")
@with_queue()
def _(daemon):
    waits = Client(daemon.path)
    number = waits("CLIENT", "ID")
    same(daemon("CLIENT", "UNBLOCK", number), 0)
    waits.send("TW.TAKE", "q", "BLOCK", 0)
    waits.send("PING")
    assert eventually(lambda: daemon("CLIENT", "UNBLOCK", number) == 1)
    same(waits.answer(), None)
    same(waits.answer(), "+PONG")
    same(daemon("CLIENT", "UNBLOCK", 999), 0)


@each_store("redis-cli --pipe ends well, and it sends its input as a body, and knows version 3")
@with_queue()
def _(daemon):
    same(daemon("TW.CREATE", "r"), "+OK")
    done = subprocess.run(["redis-cli", "-s", daemon.path, "--pipe"], capture_output=True,
                          input=b"*3\r\n$6\r\nTW.PUT\r\n$1\r\nq\r\n$1\r\nx\r\n" * 1000,
                          timeout=60)
    same((done.returncode, done.stdout.split(b"\n")[-2]), (0, b"errors: 0, replies: 1000"))
    subprocess.run(["redis-cli", "-s", daemon.path, "-x", "TW.PUT", "r"], input=b"hello world",
                   check=True, capture_output=True)
    told = subprocess.run(["redis-cli", "-3", "-s", daemon.path, "TW.TAKE", "r", "BLOCK", "4000"],
                          check=True, capture_output=True).stdout
    assert b"hello world" in told, told


# What answers clients need of their first commands: OK, text of any kind, a number, or a list
# or a map. ERR is an error with this code, which they bear, as they do of a Redis of another
# kind. The commands are in the order in which today's sources have them: ServerEndPoint.cs of
# StackExchange.Redis, Connection.java of Jedis, RedisHandshake.java of Lettuce, redis.go of
# go-redis.
OK, TEXT, NUMBER, LIST, ERR = "OK", "text", "a number", "a list", "ERR"


def handshakes(password):
    """By client, with a password or without one."""
    auth = [("AUTH", password)] if password else []
    by_hello = ["AUTH", "default", password] if password else []
    tracer = bytes(range(256))[-16:]

    def info(name, version):
        return [(OK, "CLIENT", "SETINFO", "lib-name", name),
                (OK, "CLIENT", "SETINFO", "lib-ver", version)]

    def dotnet(protocol):
        return [*((OK, *a) for a in auth), (LIST, "HELLO", protocol),
                (OK, "CLIENT", "SETNAME", "WEB-1(SE.Redis-v2.9.32.54708)"),
                *info("SE.Redis", "2.9.32.54708"), (NUMBER, "CLIENT", "ID")]

    return {
        **{f"StackExchange.Redis, RESP{protocol}": [
            *dotnet(protocol), (ERR, "CLIENT", "MAINT_NOTIFICATIONS", "ON"),
            *((LIST, "CONFIG", "GET", name) for name in ("timeout", "replica-read-only",
                                                         "databases")),
            (ERR, "SENTINEL", "MASTERS"), (TEXT, "INFO", "replication"), (TEXT, "INFO", "server"),
            (ERR, "CLUSTER", "SLOTS"), (ERR, "CLUSTER", "NODES"),
            (ERR, "GET", "__Booksleeve_TieBreak"), (tracer, "ECHO", tracer), ("PONG", "PING")]
           for protocol in (2, 3)},
        "StackExchange.Redis, for messages": [
            *dotnet(3), (tracer, "ECHO", tracer),
            (ERR, "SUBSCRIBE", "__Booksleeve_MasterChanged"), ("PONG", "PING")],
        "Jedis": [*((OK, *a) for a in auth), (OK, "CLIENT", "SETNAME", "app"),
                  *info("jedis(spring)", "7.1.0"), ("PONG", "PING")],
        "Jedis, RESP3": [*((OK, *a) for a in auth), (LIST, "HELLO", 3), *info("jedis", "7.1.0")],
        "Jedis, RESP3 with a user": [(LIST, "HELLO", 3, *by_hello), *info("jedis", "7.1.0")],
        "Lettuce": [(LIST, "HELLO", 3, *by_hello, "SETNAME", "app"),
                    *info("Lettuce", "7.1.0.RELEASE/0a1b2c3"),
                    (ERR, "CLIENT", "MAINT_NOTIFICATIONS", "on", "moving-endpoint-type", "none")],
        "Lettuce, RESP2": [*([(OK, *a) for a in auth] or [("PONG", "PING")]),
                           (OK, "CLIENT", "SETNAME", "app"),
                           *info("Lettuce", "7.1.0.RELEASE/0a1b2c3")],
        "go-redis": [(LIST, "HELLO", 3, *by_hello, "SETNAME", "app"),
                     (OK, "CLIENT", "SETNAME", "app"),
                     (ERR, "CLIENT", "MAINT_NOTIFICATIONS", "on", "moving-endpoint-type", "none"),
                     *info("go-redis(,go1.25.4)", "9.17.0")],
    }


def kind_of(answer):
    """As handshakes() names it."""
    if isinstance(answer, str):
        return answer.split()[0][1:]
    kinds = {int: NUMBER, list: LIST}
    return kinds.get(type(answer)) or (TEXT if answer.startswith(b"#") else answer)


@test("clients that are not run here have the answers that they need when they connect")
@with_daemon(OPEN, SECRET, settings=())
def _(daemon):
    for connect, password in (lambda: Client(daemon.path), None), (Tcp, PASSWORD):
        for name, commands in handshakes(password).items():
            client = connect()
            for _, *words in commands:
                client.send(*words)
            same((name, [kind_of(client.answer()) for _ in commands]),
                 (name, [wanted for wanted, *_ in commands]))
            # The connection does what it is for.
            same([type(a) for a in gathered(client, ("TW.PUT", "q", "x"), ("TW.GET", "q", 1))],
                 [int, list])
