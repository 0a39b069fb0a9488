# SPDX-License-Identifier: GPL-2.0-only
"""An HTTP server of the tests, which keeps what it was sent, and a worker that posts to it."""
import atexit
import http.server
import os
import signal
import subprocess
import tempfile
import threading
from collections import namedtuple

from daemon import eventually

# A shell that runs the tests in the background ignores SIGINT, and a worker would ignore it, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

Post = namedtuple("Post", "path headers body client")


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1000


class Server:
    """A server that answers each path by a function of the post, which returns (status,
    headers, body); 200 if there is none."""

    def __init__(self, answers=None, port=0):
        self.posts, self.answers = [], answers or {}
        self.httpd = Listener(("127.0.0.1", port), self._handler())
        threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

    def url(self, path="/hook"):
        return f"http://127.0.0.1:{self.httpd.server_port}{path}"

    def close(self):
        self.httpd.shutdown()
        self.httpd.server_close()

    def _handler(outer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                post = Post(self.path, self.headers, body, self.client_address)
                outer.posts.append(post)
                answer = outer.answers.get(self.path, lambda post: (200, {}, b""))
                status, headers, text = answer(post)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *words):
                pass

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    pass          # the worker was killed, or has waited for long enough
        return Handler


class Worker:
    """twjob work --url. Its messages go to a file, which is never full."""

    def __init__(self, daemon, url, *words, queues=("hooks",), before=(), **variables):
        self.said = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*before, "twjob", "work", "--server", daemon.path, "--url", url, *words, *queues],
            stderr=self.said, **variables)
        atexit.register(self.process.kill)

    def told(self):
        """Returns its messages so far."""
        return os.pread(self.said.fileno(), 1_000_000, 0).decode()

    def stop(self, number=signal.SIGTERM):
        """Returns how it ends, and its messages."""
        self.process.send_signal(number)
        self.process.wait(50)
        with self.said:
            return self.process.returncode, self.told()


def only_job(daemon, state, queue="hooks"):
    """Returns the job of the queue, once it is in this state."""
    return eventually(lambda: daemon.jobs(queue, state))[0]
