# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of what administrators see and change: figures, configuration, files.
import contextlib
import errno
import os
import re
import socket
import sqlite3
import subprocess
import time

from daemon import *


@test("metrics have each series once, also while a queue is being dropped")
@with_daemon()
def _(daemon):
    for _ in range(3):
        same(daemon("TW.CREATE", "q"), "+OK")
        at_once(daemon, *[("TW.PUT", "q", "x")] * 2000)
        *done, text = at_once(daemon, ("TW.DROP", "q"), ("TW.CREATE", "q"), ("TW.METRICS",))
        same(done, ["+OK"] * 2)
    series = [line.rsplit(" ", 1)[0] for line in text.decode().splitlines()
              if not line.startswith("#")]
    same(len(series), len(set(series)))


@test("the store's files are for the daemon's user only, also when it is started by hand")
@with_queue(store=folder / "private")
def _(daemon):
    modes = {p.name: oct(p.stat().st_mode & 0o777) for p in folder.glob("private*")}
    assert len(modes) >= 3 and set(modes.values()) == {"0o600"}, modes


@test("a file that is no store, or a store of another version, is refused and not changed")
def _():
    path = folder / "foreign"
    Daemon(store=path).stop()
    for change, sentence in (("user_version = 2", "is of another version of twjobd"),
                             ("application_id = 1", "is no store of jobs")):
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute(f"pragma {change}")
        before = path.read_bytes()
        daemon = Daemon(store=path)
        same(daemon.process.wait(9), 1)
        assert f"{path} {sentence}" in daemon.said(), daemon.said()
        same(path.read_bytes(), before)


@test("TW.METRICS has all figures, as Prometheus expects them, and TW.STATS has the same")
@with_daemon()
def _(daemon):
    same([daemon("TW.CREATE", "a"), daemon("TW.CREATE", "b"), daemon("TW.PAUSE", "b")], ["+OK"] * 3)
    put(daemon, 4, queue="a")
    put(daemon, 1, "IN", 3600, queue="a")
    put(daemon, 1, queue="b")
    same(daemon("TW.ACK", "a", take(daemon, "a")[1]), 1)
    same(daemon("TW.BURY", "a", take(daemon, "a")[1]), "+OK")
    take(daemon, "a")
    time.sleep(1.1)
    same(daemon("TW.RESUME", "b"), "+OK")
    assert take(daemon, "b")
    same(daemon("TW.PAUSE", "b"), "+OK")
    text = daemon("TW.METRICS").decode()
    buckets = [(float(most), int(n)) for most, n in re.findall(
        r'twjobd_lateness_seconds_bucket{queue="b",le="([0-9.]+)"} (\d+)', text)]
    same([{n for most, n in buckets if most < 1.1}, {n for most, n in buckets if most > 30}],
         [{0}, {1}])
    same({*"""twjobd_jobs{queue="a"} 4
twjobd_jobs{queue="b"} 1
twjobd_pending_jobs{queue="a"} 2
twjobd_held_jobs{queue="a"} 1
twjobd_buried_jobs{queue="a"} 1
twjobd_due_jobs{queue="a"} 1
twjobd_due_jobs{queue="b"} 0
twjobd_oldest_due_seconds{queue="b"} 0.000
twjobd_delivered_total{queue="a"} 3
twjobd_lateness_seconds_count{queue="a",} 3
twjobd_lateness_seconds_bucket{queue="b",le="+Inf"} 1
twjobd_paused{queue="a"} 0
twjobd_paused{queue="b"} 1
twjobd_mended_total 0
twjobd_disk_full 0
twjobd_process_wheels 1
# TYPE twjobd_commit_seconds histogram
# TYPE twjobd_delivered_total counter""".splitlines()} - {*text.splitlines()}, set())
    oldest = float(re.search('twjobd_oldest_due_seconds{queue="a"} (.*)', text)[1])
    assert 1.1 <= oldest < 60, oldest
    same((figure(daemon, "a", b"due"), figure(daemon, "b", b"oldest_ms")), (1, 0))
    assert figure(daemon, "a", b"oldest_ms") >= 1100
    promtool = subprocess.run([TOP / "selftests/vm/promtool"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()
    subprocess.run([promtool, "check", "metrics"], check=True, text=True, input=text)
    # INFO and the log tell where the wheels are, too.
    assert b"wheels:process\r\n" in daemon("INFO")
    same(figure(daemon, None, b"process_wheels"), 1)
    assert ": wheels = process: the wheels are in this process, and end with it\n" in \
        daemon.said(), daemon.said()


@test("SIGHUP changes password and max-body, and a file with an error changes nothing")
@with_daemon(OPEN, SECRET, "max-body = 100", settings=())
def _(daemon):
    large = ("TW.PUT", "q", "x" * 150)
    same(daemon(*large)[:8], "-TOOBIG ")
    same(reload(daemon, OPEN, "password = second", "max-body = 200"), "")
    assert daemon(*large) > 0
    client = Tcp()
    same([client("PING")[:7], client("AUTH", PASSWORD)[:10]], ["-NOAUTH", "-WRONGPASS"])
    same([client("AUTH", "second"), client("PING")], ["+OK", "+PONG"])
    assert 'unknown key "foo"\n' in reload(daemon, OPEN, "max-body = 100", "foo = 1")
    assert daemon(*large) > 0


@test("a socket that the service manager passes is used instead of others, by each daemon in turn")
def _():
    path, config = folder / "passed", folder / "config"
    config.write_text(f"store = memory\nwheels = process\n{OPEN}\npassword = none\n")
    with socket.socket(socket.AF_UNIX) as passed:
        passed.bind(str(path))
        passed.listen()
        os.set_inheritable(passed.fileno(), True)
        for _ in range(2):
            # This client has connected while no daemon ran.
            waiting = Client(path)
            daemon = subprocess.Popen(
                ["sh", "-c", f'exec 3<&{passed.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"',
                 "sh", program, "-c", config], close_fds=False, stderr=subprocess.DEVNULL)
            same(waiting("PING"), "+PONG")
            same(socket.socket().connect_ex(("127.0.0.1", port)), errno.ECONNREFUSED)
            daemon.terminate()
            same(daemon.wait(), 0)


@test("J5: a client that does not read has its commands wait in the sockets")
@with_queue()
def _(daemon):
    deaf, before, sent = Client(daemon.path), daemon.memory(), b""
    deaf.socket.settimeout(1)
    pings = b"".join(encoded(("PING", b"%01000d" % i)) for i in range(4000))
    at = 0
    try:
        while True:
            at += deaf.socket.send(pings[at:at + 65536])
    except TimeoutError:
        pass
    count = at // (len(pings) // 4000)
    # The commands are for about a MB of answers, and for the room of the sockets.
    assert 1000 < count < 2500, count
    assert daemon.memory() < before + 4096, daemon.memory() - before
    put(daemon, 1)
    same(daemon("TW.ACK", "q", take(daemon)[1]), 1)
    same([int(deaf.answer()) for _ in range(count)], [*range(count)])


@test("J1: ten thousand commands come at once, and their answers are in order")
@with_queue()
def _(daemon):
    commands = [c for i in range(5000) for c in (("TW.PUT", "q", i, "IN", 1000), ("PING", i))]
    got = at_once(daemon, *commands)
    same(got[::2], [*range(got[0], got[0] + 5000)])
    same([int(ping) for ping in got[1::2]], [*range(5000)])
    same(counts(daemon), [5000, 5000, 0, 0])


@test("an error repeats a name up to 100 bytes, on one line")
@with_daemon()
def _(daemon):
    for name, told in {"n" * 200: "n" * 100, "n" * 100: "n" * 100, "n" * 99: "n" * 99,
                       "a\r\n+OK": "a  +OK"}.items():
        same(daemon(name), f"-ERR unknown command '{told}'")
    same(daemon("PING"), "+PONG")


@test("J5: there are as many queues as the daemon has open files for")
@with_queue()
def _(daemon):
    queues = [f"q{i}" for i in range(1, 256)]
    same({*at_once(daemon, *[("TW.CREATE", q, "MAXJOBS", 1) for q in queues])}, {"+OK"})
    same(daemon("TW.CREATE", "more", "MAXJOBS", 1)[:6], "-FULL ")
    same(daemon("TW.CREATE", "q", "TRIES", 3), "+OK")
    same({*at_once(daemon, *[("TW.DROP", q) for q in queues])}, {"+OK"})
    same(daemon("TW.CREATE", "more", "MAXJOBS", 1), "+OK")


@test("a connection remembers a BOUND delivery only while it is out")
@with_queue("LEASE", 0.001, "TRIES", 0)
def _(daemon):
    put(daemon, 100)
    taken, early = 0, 0
    # Each lease ends before the job is taken again.
    for i in range(240):
        taken += len(daemon("TW.TAKE", "q", "COUNT", 100, "BLOCK", 30000, "BOUND"))
        early = daemon.memory() if i == 60 else early
    assert taken > 12000, taken
    # All deliveries would take 1400 kB. A first look at all jobs takes 250 kB.
    assert daemon.memory() < early + 500, (early, daemon.memory())
