# SPDX-License-Identifier: GPL-2.0-only
#
# This module runs daemons on one database, on this machine, with wheels of the process, for tests
# that print TAP. Their first argument is the folder of the programs. The database is at PGHOST
# (see "server").
import atexit
import calendar
import collections
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

output = pathlib.Path(sys.argv[1])
folder = pathlib.Path(os.environ["PGHOST"])
program = output / os.environ.get("TWJOBD", "twjobd-postgresql")
tests, failed = 0, False
# Tests wait for so many seconds. A busy machine needs some of them, and no promise depends on them.
PATIENCE = 60
# What has to come before a lease ends comes within so many seconds: leases there are longer.
BEFORE_LEASE = 15
# What a test that fails may leave behind is removed by this function.
after_failure = None
# What a node answers that has waited for a lock for too long.
UNAVAILABLE = "-UNAVAILABLE the store did not take it: nothing was changed"


class Closed(Exception):
    pass


def encoded(words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        # Only a socket without a timeout waits while the daemon has too many clients to accept.
        self.socket.connect(str(path))
        self.socket.settimeout(PATIENCE)
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        self.socket.sendall(encoded(words))

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
        if kind == b"_":
            return None
        count = int(rest) * (2 if kind == b"%" else 1)
        if count < 0:
            return None
        if kind == b"$":
            return self.file.read(count + 2)[:-2]
        return [self.answer() for _ in range(count)]

    def __call__(self, *words):
        self.send(*words)
        return self.answer()


class Node:
    def __init__(self, name, machines=1, where=None, wait=True, program=program):
        self.name, self.machines, self.program = name, machines, program
        self.path = folder / f"{name}.sock"
        self.where = where or f"postgresql:///postgres?host={folder}&user=postgres"
        self.start(wait)

    def start(self, wait=True):
        config = folder / f"{self.name}.conf"
        config.write_text(f"listen = {self.path}\nnode = {self.name}\n"
                          f"store = {self.where}&application_name={self.name}\n"
                          f"machines = {self.machines}\nwheels = process\n")
        self.log = open(folder / f"{self.name}.log", "a")
        self.process = subprocess.Popen([self.program, "-c", config], stderr=self.log)
        atexit.register(self.process.kill)
        if wait:
            eventually(self.can_connect)

    def can_connect(self):
        try:
            self.client = Client(self.path)
        except OSError:
            return False
        return True

    def __call__(self, *words):
        """Returns the answer, once no commit of another node keeps this node waiting for too
        long."""
        end = time.monotonic() + PATIENCE
        while (answer := self.client(*words)) == UNAVAILABLE and time.monotonic() < end:
            time.sleep(0.1)
        return answer

    def send_signal(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        self.send_signal(number)
        self.process.wait()

    def metric(self, name):
        for line in Client(self.path)("TW.METRICS").decode().splitlines():
            if line.startswith(f"twjobd_{name} "):
                return float(line.split()[1])
        return None

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


# The server is ready for the next question.
READY = b"Z\0\0\0\5"


def results_in(data):
    """Returns how many statements the server tells that it has carried out."""
    return len(re.findall(rb"C\0\0\0.[A-Z]", data, re.S))


class Relay:
    """Listens in a folder as a server does, and forwards to the server and back."""

    def __init__(self, name):
        path = folder / name
        path.mkdir()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path / ".s.PGSQL.5432"))
        self.listener.listen()
        self.where = f"postgresql:///postgres?host={path}&user=postgres"
        self.start(self.accept)

    def start(self, function, *args):
        threading.Thread(target=function, args=args, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(folder / ".s.PGSQL.5432"))
            self.start(self.forward, client, server, self.to_server)
            self.start(self.forward, server, client, self.to_client)

    def forward(self, source, target, say):
        try:
            while data := source.recv(65536):
                say(target, data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def to_server(self, target, data):
        target.sendall(data)

    def to_client(self, target, data):
        target.sendall(data)


def eventually(check, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if check():
            return True
        time.sleep(0.05)
    return False


def test(name, needs_root=False):
    def run(function):
        global tests, failed
        tests += 1
        if needs_root and os.geteuid():
            print(f"ok {tests} {name} # SKIP needs root", flush=True)
            return
        file = sys._getframe(1).f_code.co_filename
        begin = time.monotonic()
        try:
            function()
            print(f"ok {tests} {name}", flush=True)
        except Exception as error:
            failed = True
            *_, line = (line for frame, line in traceback.walk_tb(error.__traceback__)
                        if frame.f_code.co_filename == file)
            print(f"# {os.path.basename(file)}:{line}: {error!r}")
            print(f"not ok {tests} {name}", flush=True)
            if after_failure:
                after_failure()
        print(f"# {time.monotonic() - begin:.1f} s", flush=True)
    return run


def same(got, expected):
    if got != expected:
        raise AssertionError(f"{got!r} instead of {expected!r}")


def take(node, queue="q", seconds=BEFORE_LEASE, **options):
    """Waits for a job by BLOCK, and returns it as (id, receipt, attempt, body)."""
    words = [word for pair in options.items() for word in pair]
    jobs = Client(node.path)("TW.TAKE", queue, "BLOCK", int(seconds * 1000), *words)
    if not jobs:
        return None
    return jobs[0][1], jobs[0][2].decode(), jobs[0][3], jobs[0][6].decode()


Job = collections.namedtuple("Job", "queue id receipt attempt due key body")


def take_job(node, queue="q", seconds=BEFORE_LEASE):
    """As take(), with all that is told of the job."""
    jobs = Client(node.path)("TW.TAKE", queue, "BLOCK", int(seconds * 1000))
    assert not isinstance(jobs, str), jobs
    return jobs and Job(*jobs[0])


def named(job):
    """Returns the point of time in ms that a key such as "e@2026-11-23T12:34:56" tells."""
    return 1000 * calendar.timegm(time.strptime(job.key.decode(), "e@%Y-%m-%dT%H:%M:%S"))


def at_once(node, *commands):
    """Returns the answers to commands that come in one piece."""
    node.client.socket.sendall(b"".join(encoded(command) for command in commands))
    return [node.client.answer() for _ in commands]


def every(node, *words, queue="q", key="e"):
    answer = node("TW.EVERY", queue, key, *words)
    return answer[1].decode() if isinstance(answer, list) else answer


def take_unsent(node, job, large):
    """A client takes the job, and ends before it reads the answer, which is behind a large one."""
    client = Client(node.path)
    client.send("TW.GET", "q", large)
    client.send("TW.TAKE", "q")
    assert eventually(lambda: state(node, job) == "held")
    client.socket.shutdown(socket.SHUT_RDWR)
    assert eventually(lambda: state(node, job) == "ready", BEFORE_LEASE)


def state(node, job, queue="q"):
    answer = node("TW.GET", queue, job)
    return answer and answer[3].decode()


def figure(node, queue, name):
    stats = node("TW.STATS", *[queue] if queue else [])
    return stats[stats.index(name) + 1]


def init_database(where=f"postgresql:///postgres?host={folder}&user=postgres", more="",
                  program=program):
    return subprocess.run(
        [program, "-c", "/dev/stdin", "--init-database"], text=True, capture_output=True,
        input=f"store = {where}\n{more}\n")


def end():
    print(f"1..{tests}")
    sys.exit(failed)
