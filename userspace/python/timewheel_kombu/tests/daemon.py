# SPDX-License-Identifier: GPL-2.0-only
"""A twjobd with wheels of its process, and what may stand between it and its clients."""
import atexit
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import warnings

# Celery and kombu warn of features that Python will not have for ever.
warnings.simplefilter("ignore")
import redis

PROGRAM = os.environ["TWJOBD"]


def eventually(check, seconds=30):
    end = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < end, "this never came"
        time.sleep(0.02)
    return found


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Daemon:
    """Runs twjobd with these lines in its configuration."""

    def __init__(self, *lines, store="memory"):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        self.path = self.folder / "socket"
        self.config = self.folder / "twjobd.conf"
        if store == "disk":
            store = self.folder / "jobs"
        self.config.write_text("\n".join([
            f"listen = {self.path}", f"store = {store}", "wheels = process", *lines]) + "\n")
        self.url = f"timewheel://{self.path}"
        self.start()

    def start(self):
        self.log = open(self.folder / "log", "a")
        self.process = subprocess.Popen([PROGRAM, "-c", self.config], stderr=self.log)
        self.client = redis.Redis(unix_socket_path=str(self.path))
        atexit.register(self.process.kill)
        eventually(self._answers)

    def _answers(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        try:
            return self.client.ping()
        except redis.ConnectionError:
            return False

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait()
        self.log.close()

    def __call__(self, *words):
        return self.client.execute_command(*words)

    def jobs(self, queue, state=None):
        """Returns what TW.LIST tells of all jobs, in their order."""
        cursor, found = 0, []
        while True:
            words = ("STATE", state) if state else ()
            cursor, jobs = self("TW.LIST", queue, "CURSOR", cursor, "COUNT", 1000, *words)
            found += [self.map(job) for job in jobs]
            if int(cursor) == 0:
                return found

    def stats(self, queue):
        return self.map(self("TW.STATS", queue))

    @staticmethod
    def map(answer):
        return {name.decode(): value for name, value in zip(answer[::2], answer[1::2])}


class Proxy:
    """Stands before a daemon. Commands of which a verb is in `refusals` get these answers, one
    each, instead of the daemon's; `cut` are verbs whose answer is lost with the connection;
    answers to verbs in `gates` wait for these events."""

    def __init__(self, daemon):
        self.daemon, self.seen = daemon, []
        self.refusals, self.cut, self.gates = {}, [], {}
        # Each stub has a URL of its own, since kombu pools connections by URL.
        self.path = daemon.folder / f"proxy-{id(self)}"
        self.url = f"timewheel://{self.path}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client):
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self.daemon.path))
        answers = server.makefile("rb")
        commands = client.makefile("rb")
        # A client that sends much at once reads no answers meanwhile.
        out = queue.SimpleQueue()
        threading.Thread(target=self._write, args=(client, out), daemon=True).start()
        try:
            while command := self._command(commands):
                words, text = command
                verb = words[0].decode()
                self.seen.append([word.decode(errors="replace") for word in words])
                if self.refusals.get(verb):
                    out.put(f"-{self.refusals[verb].pop(0)}\r\n".encode())
                    continue
                server.sendall(text)
                answer = self._answer(answers)
                if verb in self.gates:
                    self.gates[verb].wait()
                if verb in self.cut:
                    self.cut.remove(verb)
                    break
                out.put(answer)
        except OSError:
            pass
        for sock in client, server:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    @staticmethod
    def _write(client, out):
        try:
            while True:
                client.sendall(out.get())
        except OSError:
            pass

    @staticmethod
    def _command(file):
        first = file.readline()
        if not first:
            return None
        words, text = [], first
        for _ in range(int(first[1:])):
            size = file.readline()
            word = file.read(int(size[1:]) + 2)
            words.append(word[:-2])
            text += size + word
        return words, text

    def _answer(self, file):
        line = file.readline()
        if line[:1] == b"$" and int(line[1:]) >= 0:
            return line + file.read(int(line[1:]) + 2)
        if line[:1] == b"*":
            return line + b"".join(self._answer(file) for _ in range(int(line[1:])))
        return line

    def verbs(self):
        return [words[0] for words in self.seen]
