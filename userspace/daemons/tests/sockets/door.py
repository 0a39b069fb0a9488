# SPDX-License-Identifier: GPL-2.0-only
#
# Tests of who gets in: passwords, limits of connections, memory and time.
import os
import signal
import socket
import subprocess
import threading
import time

from daemon import *


@test("TCP without a password is an error that says what to do")
def _():
    same(says(OPEN)[0], 2)
    assert "give password-file" in says(OPEN)[1], says(OPEN)
    same(says(OPEN, "password = none"), (0, ""))
    same(says(OPEN, SECRET), (0, ""))
    same(says("listen = /tmp/socket"), (0, ""))
    same(says(""), (0, ""))


@test("a password's file, also by a credential of the unit")
def _():
    path = folder / "twjobd.password"
    same(says(OPEN, f"password-file = {path}"),
         (2, f"0: the password's file {path}: No such file or directory"))
    path.write_text("\n")
    same(says(OPEN, f"password-file = {path}")[0], 2)
    path.write_text(f"{PASSWORD}\nmore\n")
    same(says(OPEN, f"password-file = {path}"), (0, ""))
    same(says(OPEN, SECRET, f"password-file = {path}"),
         (2, "0: password and password-file are both given"))
    environment = {**os.environ, "CREDENTIALS_DIRECTORY": str(folder)}
    same(says(OPEN, environment=environment), (0, ""))
    daemon = Daemon(OPEN, environment=environment)
    same(Tcp()("AUTH", PASSWORD), "+OK")
    path.write_text("another\n")
    daemon.send_signal(signal.SIGHUP)
    assert eventually(lambda: Tcp()("AUTH", "another") == "+OK")
    daemon.stop()
    path.unlink()


@test("a socket of TCP that the service manager passes needs a password, too")
def _():
    with socket.create_server(("127.0.0.1", 0)) as passed:
        os.set_inheritable(passed.fileno(), True)
        config = folder / "config"
        config.write_text("store = memory\n")
        done = subprocess.run(
            ["sh", "-c", f'exec 3<&{passed.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"',
             "sh", program, "-c", config], close_fds=False, text=True,
            capture_output=True, timeout=20)
    same(done.returncode, 2)
    assert "systemctl edit twjobd.socket" in done.stderr, done.stderr


@test("a wrong password costs a second, and nobody else waits")
@with_daemon(OPEN, SECRET)
def _(daemon):
    wrong, right = Tcp(), Tcp()
    begin = time.monotonic()
    wrong.send("AUTH", "wrong")
    wrong.send("AUTH", PASSWORD)
    same(right("AUTH", PASSWORD), "+OK")
    same(right("PING"), "+PONG")
    assert not has_answer(wrong)
    assert wrong.answer().startswith("-WRONGPASS")
    assert time.monotonic() - begin >= 1
    same(wrong.answer(), "+OK")
    ended = Tcp()
    ended.send("AUTH", "wrong")
    ended.socket.close()
    same(right("PING"), "+PONG")


@test("a password may be a line, which may come in parts, and no other command may")
@with_daemon(OPEN, SECRET)
def _(daemon):
    client = Tcp()
    for part in ("A", 'UTH "', PASSWORD[:3], PASSWORD[3:], '"', "\r", "\n"):
        assert not has_answer(client)
        client.socket.sendall(part.encode())
    same(client.answer(), "+OK")
    same(client("PING"), "+PONG")
    client.socket.sendall(b'AUTH "wrong"\r\n')
    assert client.answer().startswith("-WRONGPASS")
    for line in ("PING", f"AUTH {PASSWORD}", "AUTHS", 'AUTH "' + "x" * 2000):
        client = Tcp()
        client.socket.sendall(f"{line}\r\n".encode())
        assert client.answer().startswith("-ERR Protocol error"), line
        assert not client.is_open()


@test("before the password there are ten connections from an address, and a hundred in all")
@with_daemon(OPEN, SECRET, "max-connections = 20")
def _(daemon):
    known = Tcp()
    same(known("AUTH", PASSWORD), "+OK")
    first = [Tcp() for _ in range(11)]
    same([c.is_open() for c in first], [False] + [True] * 10)
    more = [Tcp(f"127.0.0.{2 + i // 10}") for i in range(90)]
    same([c.is_open() for c in first], [False] + [True] * 10)
    last = Tcp("127.0.0.99")
    same([c.is_open() for c in first], [False] * 2 + [True] * 9)
    same(all(c.is_open() for c in more), True)
    same(known("PING"), "+PONG")
    same(daemon("PING"), "+PONG")
    same(last("AUTH", PASSWORD), "+OK")
    for client in more + first[2:]:
        client.socket.close()
    same(Tcp()("AUTH", PASSWORD), "+OK")


@test("those with a password are as many as configured, and root gets in besides",
      needs_root=True)
@with_daemon(OPEN, SECRET, "max-connections = 3")
def _(daemon):
    known = [Tcp() for _ in range(2)]
    same([c("AUTH", PASSWORD) for c in known], ["+OK"] * 2)
    beyond = Tcp()
    assert beyond("AUTH", PASSWORD).startswith("-FULL")
    assert not beyond.is_open()
    same(Client(daemon.path)("PING"), "+PONG")
    same(known[0]("PING"), "+PONG")


@test("before the password a command has few bytes and little time")
@with_daemon(OPEN, SECRET)
def _(daemon):
    large = Tcp()
    large.socket.sendall(b"*2\r\n$4\r\nAUTH\r\n$100000\r\n")
    assert large.answer().startswith("-NOAUTH")
    assert not large.is_open()
    long = Tcp()
    long.socket.sendall(b"*1000\r\n" + b"$1000\r\n" + b"x" * 1000 + b"\r\n")
    try:
        for _ in range(100):
            long.socket.sendall(b"$1000\r\n" + b"x" * 1000 + b"\r\n")
    except OSError:
        pass
    assert not long.is_open()
    silent, known = Tcp(), Tcp()
    same(known("AUTH", PASSWORD), "+OK")
    silent.socket.settimeout(60)
    begin = time.monotonic()
    same(silent.socket.recv(1), b"")
    assert time.monotonic() - begin > 25
    same(known("PING"), "+PONG")


def flood(client, words):
    """Sends this command 40 times, and reads nothing, until no more bytes can be sent."""
    part = encoded(words)
    client.socket.settimeout(1)
    try:
        for _ in range(40):
            client.socket.sendall(part)
    except OSError:
        pass


@test("unfinished commands and unread answers have a limit of memory, for all together")
@with_daemon()
def _(daemon):
    before = daemon.memory()
    unfinished = [Client(daemon.path) for _ in range(150)]
    for client in unfinished:
        client.socket.settimeout(5)
        try:
            client.socket.sendall(b"*3\r\n$6\r\nTW.PUT\r\n$1000000\r\n" + b"x" * 1000000 +
                                  b"\r\n$1000000\r\n" + b"x" * 900000)
        except OSError:
            pass
    assert daemon.memory() - before < 170000, daemon.memory() - before
    same(daemon("TW.CREATE", "q"), "+OK")
    assert daemon("TW.PUT", "q", "x") > 0
    del unfinished
    assert eventually(lambda: isinstance(daemon("TW.PUT", "q", b"x" * 500000), int))
    deaf = [Client(daemon.path) for _ in range(200)]
    threads = [threading.Thread(target=flood, args=(c, (b"PING", b"x" * 60000)))
               for c in deaf]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert daemon.memory() - before < 170000, daemon.memory() - before
    assert daemon("TW.PUT", "q", "x") > 0


@test("one client's long lists do not keep others waiting")
@with_queue()
def _(daemon):
    assert all(n > 0 for n in at_once(daemon, *[("TW.PUT", "q", "x", "IN", 1000)] * 20000))
    hogs = [Client(daemon.path) for _ in range(10)]
    for hog in hogs:
        hog.socket.sendall(b"*4\r\n$7\r\nTW.LIST\r\n$1\r\nq\r\n$5\r\nSTATE\r\n"
                           b"$4\r\nheld\r\n" * 200)
    for _ in range(20):
        assert daemon("TW.PUT", "q", "x") > 0
    counts = [0] * len(hogs)
    for i, hog in enumerate(hogs):
        while has_answer(hog):
            assert hog.answer()
            counts[i] += 1
    assert max(counts) < 100, counts
    # Large clients have their turns, too.
    for hog in hogs:
        same(hog.answer()[1], [])


@test("commands are carried out while what is due is counted")
@with_daemon()
def _(daemon):
    def due():
        told = daemon("TW.STATS", "q")
        return told[told.index(b"due") + 1]

    jobs = 400000
    same(daemon("TW.CREATE", "q", "MAXJOBS", jobs, "MAXBYTES", 10**9), "+OK")
    for _ in range(jobs // 20000):
        assert all(n > 0 for n in at_once(daemon, *[("TW.PUT", "q", "x")] * 20000))
    # The wheel is not asked again before a tick has passed.
    time.sleep(0.1)
    counted = [due() for _ in range(4)]
    assert 0 < counted[0] < counted[1] < counted[2] < jobs, counted
    assert eventually(lambda: due() == jobs)
