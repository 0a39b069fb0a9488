# SPDX-License-Identifier: GPL-2.0-only
#
# This module runs a daemon for a test, with each store that the test is for, and asks for what is
# compared. See "check".
import atexit
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "postgresql"))
shared = sys.argv[2] == "postgresql"
server = os.environ.get("PGHOST")
# Each process has a folder of its own.
os.environ["PGHOST"] = tempfile.mkdtemp()
from common import *

atexit.register(shutil.rmtree, folder)
if shared:
    os.environ["PGHOST"] = server

TOP = pathlib.Path(__file__).parent / "../../../.."
PASSWORD = "correct horse"
ZONES = folder / "zones"
ZONES.mkdir()
each_store = test
if shared:
    def test(name):
        return lambda function: None


def new_database():
    name = f"jobs{os.getpid()}_{Daemon.count}"
    where = f"postgresql:///{name}?host={server}&user=postgres"
    subprocess.run(["createdb", name], check=True)
    init_database(where).check_returncode()
    return where


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


port = free_port()


class Tcp(Client):
    def __init__(self, source="127.0.0.1"):
        self.socket = socket.create_connection(("127.0.0.1", port), 20, (source, 0))
        self.file = self.socket.makefile("rb")

    def is_open(self):
        try:
            return self("PING").startswith("-NOAUTH")
        except (Closed, OSError):
            return False


class Daemon(Node):
    """A daemon with these lines in its configuration. A daemon that a failed test has left does
    not disturb other tests."""
    count, wheels = 0, "process"

    def __init__(self, *lines, store="memory", environment=None, name="daemon", first=None):
        Daemon.count += 1
        self.name, self.environment = name, environment
        self.path, self.store = folder / f"socket-{Daemon.count}", store
        self.lines = lines
        if shared:
            self.store = first.store if first else new_database()
            self.lines = *lines, f"node = {name}", "machines = 1"
        self.start()

    def start(self):
        config = folder / "config"
        # A client that connects to the last address finds all addresses open.
        config.write_text("\n".join([f"store = {self.store}", f"wheels = {self.wheels}",
                                     *self.lines, f"listen = {self.path}"]) + "\n")
        self.log = open(folder / f"{self.name}.log", "w")
        self.process = self.popen([program, "-c", config], stderr=self.log)
        atexit.register(self.process.kill)
        eventually(lambda: self.process.poll() is not None or self.can_connect())

    def __call__(self, *words):
        """Returns the answer, also one that the store did not take the command."""
        return self.client(*words)

    def popen(self, command, **more):
        return subprocess.Popen(command, env=self.environment, **more)

    def memory(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])


def rows(daemon, *tables):
    """Returns how many rows the store's tables have."""
    if shared:
        return [int(subprocess.run(["psql", "-qtAX", daemon.store, "-c",
                                    f"select count(*) from timewheel.{table}"], check=True,
                                   capture_output=True).stdout) for table in tables]
    import sqlite3
    with sqlite3.connect(f"file:{daemon.store}?mode=ro", uri=True) as db:
        return [db.execute(f"select count(*) from {t}").fetchone()[0] for t in tables]


def refuses(daemon, lines, **known):
    """Sends commands that have to be refused. A line has the begin of an error, that of its
    commands, and how they end. "$name" is a word that is known."""
    for line in lines.strip().splitlines():
        error, begin, *ends = map(str.strip, line.split("|"))
        for end in ends:
            words = shlex.split(begin + " " * (begin != "TW.") + end)
            got = daemon(*[known[w[1:]] if w[:1] == "$" else w for w in words])
            assert str(got).startswith(f"-{error}"), (words, got)


def says(*lines, environment=None):
    """Returns the status of --check-config, and its message without the file's name."""
    done = subprocess.run([program, "-c", "/dev/stdin", "--check-config"], text=True,
                          capture_output=True, input="\n".join(lines) + "\n",
                          env=environment)
    return done.returncode, done.stderr.removeprefix("/dev/stdin:").strip()


def with_daemon(*lines, settings=None, store="memory"):
    """Gives a test a daemon, which has a queue "q" if settings of the queue are given."""
    def run(function):
        def inner():
            daemon = Daemon(*lines, store=store)
            try:
                if settings is not None:
                    same(daemon("TW.CREATE", "q", *settings), "+OK")
                function(daemon)
                same(figure(Client(daemon.path), None, b"mended"), 0)
            finally:
                daemon.stop()
        return inner
    return run


def with_queue(*settings, store="memory"):
    return with_daemon(settings=settings, store=store)


def on_nodes(*settings):
    """Gives a test three nodes of one database, or thrice the same daemon with a file. Their time
    zones are in ZONES."""
    def run(function):
        def inner():
            environment = {**os.environ, "TZDIR": str(ZONES)}
            a = Daemon(store=folder / f"jobs-{Daemon.count}", environment=environment)
            nodes = [a, *(Daemon(environment=environment, name=name, first=a) for name in "bc")] \
                if shared else [a] * 3
            try:
                same(a("TW.CREATE", "q", *settings), "+OK")
                assert all(eventually(lambda: node("TW.QUEUES") == [b"q"]) for node in nodes)
                function(*nodes)
                same([figure(node, None, b"mended") for node in nodes], [0] * 3)
            finally:
                for node in set(nodes):
                    node.stop()
        return inner
    return run


def in_stores(*settings):
    """As with_queue(), with each of the stores. The last one outlives its daemon."""
    def run(function):
        def inner():
            for store in ("memory", folder / f"jobs-{Daemon.count}")[shared:]:
                with_queue(*settings, store=store)(function)()
        return inner
    return run


def of_map(answer):
    """Returns the dictionary of an answer that is a map in RESP2."""
    return answer and {answer[i].decode(): answer[i + 1] for i in range(0, len(answer), 2)}


def get(daemon, job, queue="q"):
    return of_map(daemon("TW.GET", queue, job))


def page(daemon, *options, verb="TW.LIST", queue="q"):
    """Returns the jobs of a list, and its cursor."""
    cursor, jobs = daemon(verb, queue, *options)
    return [of_map(job) for job in jobs], cursor


def counts(daemon):
    return [figure(daemon, "q", name) for name in (b"jobs", b"pending", b"held", b"buried")]


def sizes(daemon):
    return [figure(daemon, "q", name) for name in (b"jobs", b"bytes", b"pending", b"held",
                                                   b"buried", b"done", b"due")]


def put(daemon, count, *options, queue="q"):
    """Returns the numbers of new jobs, which are due when this function returns."""
    jobs = [daemon("TW.PUT", queue, "x", *options) for _ in range(count)]
    time.sleep(0.005)
    return jobs


def waiting_take(daemon, *options, queue="q"):
    """Returns a client whose take waits."""
    client = Client(daemon.path)
    client.send("TW.TAKE", queue, "BLOCK", 0, *options)
    # When another client has an answer to a later command, the daemon has heard the take.
    time.sleep(0.05)
    daemon("PING")
    return client


def restart(daemon, number):
    """The wheels end with the process, and the next process loads them."""
    daemon.stop(number)
    daemon.start()
    assert eventually(lambda: figure(daemon, "q", b"loading") == 0)


OPEN = f"listen = 127.0.0.1:{port}"
SECRET = f"password = {PASSWORD}"


def has_answer(client):
    client.socket.setblocking(False)
    try:
        return bool(client.socket.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        client.socket.settimeout(20)


def gathered(client, *commands):
    """Returns the answer of EXEC after these commands, which are all gathered."""
    same(client("MULTI"), "+OK")
    for command in commands:
        same(client(*command), "+QUEUED")
    return client("EXEC")


def told_twice(daemon, job):
    """Returns what TW.GET and TW.LIST tell of a job."""
    told = [get(daemon, job), *(j for j in page(daemon)[0] if j["id"] == job)]
    same(len(told), 2)
    return told


def lease_left(daemon, job):
    """Checks what TW.GET and TW.LIST tell of an option, in seconds."""
    told = told_twice(daemon, job)
    assert all(("lease_left_ms" in t) == (t["state"] == b"held") for t in told), told
    return [t.get("lease_left_ms", 0) / 1000 for t in told]


def reload(daemon, *lines):
    """Reloads the daemon with these lines instead of its own lines. Returns its messages."""
    said, refused = len(daemon.said()), "needs a restart\n"
    config = folder / "config"
    # The last line is refused after all other lines, which shows that they have been read.
    config.write_text("\n".join([f"listen = {daemon.path}", f"store = {daemon.store}",
                                 "wheels = process", *lines, "max-connections = 7"]) + "\n")
    daemon.send_signal(signal.SIGHUP)
    assert eventually(lambda: daemon.said()[said:].endswith((refused, "is changed\n")))
    return re.sub(f".*{refused}", "", daemon.said()[said:])


def times(daemon):
    """Returns for how many seconds the daemon has run, and has waited for a processor."""
    stat = pathlib.Path(f"/proc/{daemon.process.pid}/schedstat").read_text()
    return [int(ns) / 1e9 for ns in stat.split()[:2]]


def is_idle(daemon):
    before, begin = times(daemon), time.monotonic()
    time.sleep(1.2)
    ran, waited = (now - then for now, then in zip(times(daemon), before))
    # On a busy machine a daemon that never rests waits for most of the time.
    assert ran < 0.1 and ran + waited < 0.8 * (time.monotonic() - begin), (ran, waited)


def takes_nothing(daemon, queue="q"):
    same(daemon("TW.TAKE", queue, "COUNT", 9), None)
