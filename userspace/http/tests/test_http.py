# SPDX-License-Identifier: GPL-2.0-only
"""What 'twjob work --url' posts, and what becomes of a job by its answer."""
import base64
import email.utils
import hashlib
import hmac
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

from daemon import Daemon, Proxy, eventually, free_port
from server import Server, Worker, only_job

DAY = 86400
KEY = bytes(range(24, 56))


def answers(status, headers=None, body=b""):
    return lambda post: (status, headers or {}, body)


class Case(unittest.TestCase):
    """A daemon and a server for each test, and workers that end with it."""

    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(lambda: self.daemon.stop())
        self.daemon("TW.CREATE", "hooks", "BACKOFF", 1000, 2000, "KEEPDONE", 1000)
        self.server = Server()
        self.addCleanup(self.server.close)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def worker(self, *words, path="/hook", url=None, **more):
        worker = Worker(self.daemon, url or self.server.url(path), *words, **more)
        self.addCleanup(self.end, worker)
        return worker

    @staticmethod
    def end(worker):
        worker.process.kill()
        worker.process.wait()
        worker.said.close()

    def put(self, body=b"hello", *words, queue="hooks"):
        return self.daemon("TW.PUT", queue, body, *words)

    def done(self):
        return len(self.daemon("TW.DONE", "hooks")[1])

    def given_back(self, status, headers=None, body=b""):
        """Returns the job after a post with this answer, and the seconds until the next post."""
        self.server.answers["/hook"] = answers(status, headers, body)
        worker = self.worker()
        self.put()
        job = only_job(self.daemon, "delayed")
        left = job["due"] / 1000 - time.time()
        self.assertEqual(worker.stop()[0], 0)
        self.assertEqual(len(self.server.posts), 1)
        return job, left


class Posts(Case):
    def test_headers_and_body(self):
        body = bytes(range(256))
        number = self.put(body)
        self.worker()
        eventually(lambda: self.done() == 1)
        (post,) = self.server.posts
        self.assertEqual(post.body, body)
        self.assertEqual(post.headers["TW-Queue"], "hooks")
        self.assertEqual(post.headers["TW-Job"], str(number))
        self.assertEqual(post.headers["TW-Try"], "1")
        self.assertNotIn("TW-Key", post.headers)
        self.assertEqual(post.headers["webhook-id"], f"hooks-{number}")
        self.assertLess(abs(int(post.headers["webhook-timestamp"]) - time.time()), 60)
        self.assertNotIn("webhook-signature", post.headers)
        self.assertEqual(post.headers["Content-Type"], "application/octet-stream")

    def test_a_long_body_is_sent_without_asking_before(self):
        self.daemon.stop()
        self.daemon = Daemon("max-body = 4000000")
        self.daemon("TW.CREATE", "hooks", "KEEPDONE", 1000)
        body = os.urandom(3_000_000)
        self.put(body)
        self.worker()
        eventually(lambda: self.done() == 1)
        self.assertEqual(self.server.posts[0].body, body)
        self.assertNotIn("Expect", self.server.posts[0].headers)

    def test_empty_body(self):
        self.put(b"")
        self.worker()
        eventually(lambda: self.done() == 1)
        self.assertEqual(self.server.posts[0].body, b"")

    def test_keys_are_any_bytes(self):
        keys = [b"line\r\nTW-Job: 9\0", "Grüße/%41 ü".encode(), b"\xff\xfe", b"plain-1"]
        for key in keys:
            self.put(key, "KEY", key)
        self.worker()
        eventually(lambda: self.done() == len(keys))
        for post in self.server.posts:
            self.assertEqual(urllib.parse.unquote_to_bytes(post.headers["TW-Key"]), post.body)
            self.assertEqual(len(post.headers.get_all("TW-Job")), 1)
            self.assertTrue(post.headers["TW-Key"].isascii())

    def test_a_later_try_has_the_same_id(self):
        self.server.answers["/hook"] = lambda post: \
            (200 if post.headers["TW-Try"] == "3" else 500, {}, b"")
        self.put(b"x", "BACKOFF", "0.01", "0.01")
        self.worker()
        eventually(lambda: self.done() == 1)
        self.assertEqual([post.headers["TW-Try"] for post in self.server.posts],
                         ["1", "2", "3"])
        self.assertEqual(len({post.headers["webhook-id"] for post in self.server.posts}), 1)

    def test_occurrences_of_a_rule_have_ids_of_their_own(self):
        self.daemon("TW.EVERY", "hooks", b"\0any@key", "FREQ=SECONDLY", "x")
        self.worker()
        eventually(lambda: len(self.server.posts) >= 3)
        posts = self.server.posts[:3]
        self.assertEqual(len({post.headers["TW-Job"] for post in posts}), 1)
        self.assertEqual(len({post.headers["webhook-id"] for post in posts}), 3)
        for post in posts:
            name = urllib.parse.unquote(post.headers["TW-Key"]).split("@")[2]
            self.assertEqual(post.headers["webhook-id"],
                             f"hooks-{post.headers['TW-Job']}-{name}")

    def test_many_at_a_time_over_two_connections_to_twjobd(self):
        gate = threading.Barrier(20)

        def answer(post):
            gate.wait(30)
            return 200, {}, b""
        self.server.answers["/hook"] = answer
        before = len(self.daemon("CLIENT", "LIST").splitlines())
        for _ in range(20):
            self.put()
        self.worker("-j", "20")
        eventually(lambda: self.done() == 20)
        self.assertEqual(len(self.daemon("CLIENT", "LIST").splitlines()), before + 2)
        # Later posts need no further connection to the server.
        self.server.answers.clear()
        for number in range(5):
            self.put()
            eventually(lambda: self.done() == 21 + number)
        self.server.answers["/hook"] = answer
        for _ in range(20):
            self.put()
        eventually(lambda: self.done() == 45)
        self.assertEqual(len({post.client for post in self.server.posts}), 20)

    def test_no_more_than_j_at_a_time(self):
        now, most = set(), [0]

        def answer(post):
            now.add(post.client)
            most[0] = max(most[0], len(now))
            time.sleep(0.02)
            now.discard(post.client)
            return 200, {}, b""
        self.server.answers["/hook"] = answer
        for _ in range(30):
            self.put()
        self.worker("-j", "3")
        eventually(lambda: self.done() == 30)
        self.assertEqual(most[0], 3)
        self.assertLessEqual(len({post.client for post in self.server.posts}), 3)

    def test_several_queues(self):
        self.daemon("TW.CREATE", "urgent")
        self.put(b"later")
        self.put(b"first", queue="urgent")
        self.worker(queues=("urgent", "hooks"))
        eventually(lambda: len(self.server.posts) == 2)
        self.assertEqual([post.headers["TW-Queue"] for post in self.server.posts],
                         ["urgent", "hooks"])


class Signatures(Case):
    def verify(self, post, key):
        """Verifies a post as a receiver does that knows nothing of the sender's code."""
        text = f"{post.headers['webhook-id']}.{post.headers['webhook-timestamp']}.".encode()
        code = hmac.new(key, text + post.body, hashlib.sha256).digest()
        self.assertEqual(post.headers["webhook-signature"],
                         "v1," + base64.b64encode(code).decode())

    def secret(self, text):
        path = self.folder / "secret"
        path.write_text(text)
        return "--secret-file", path

    def signed(self, text):
        self.put(b"any\0\xffbytes")
        self.worker(*self.secret(text))
        eventually(lambda: self.done() == 1)
        self.verify(self.server.posts[0], KEY)

    def test_with_the_prefix(self):
        self.signed(f"whsec_{base64.b64encode(KEY).decode()}\n")

    def test_without_the_prefix(self):
        self.signed(base64.b64encode(KEY).decode())

    def test_of_an_empty_body(self):
        self.put(b"")
        self.worker(*self.secret(base64.b64encode(KEY).decode()))
        eventually(lambda: self.done() == 1)
        self.verify(self.server.posts[0], KEY)


class Answers(Case):
    def test_2xx_ends_the_job(self):
        for number, status in enumerate((200, 201, 202, 204, 299)):
            self.server.answers["/hook"] = answers(status)
            self.put()
            worker = self.worker()
            eventually(lambda: self.done() == number + 1)
            self.assertEqual(worker.stop()[0], 0)
        self.assertEqual(self.daemon.jobs("hooks"), [])

    def test_410_buries_with_the_reason(self):
        self.server.answers["/hook"] = answers(410, body=b"this hook is gone")
        self.put()
        worker = self.worker()
        job = only_job(self.daemon, "buried")
        self.assertEqual(job["reason"], b"HTTP 410: this hook is gone")
        self.assertIn("HTTP 410: this hook is gone, try 1, buried", worker.stop()[1])

    def test_all_else_is_given_back_with_the_backoff_of_the_queue(self):
        for status in (300, 304, 307, 400, 401, 404, 408, 429, 500, 502, 503, 599):
            with self.subTest(status):
                self.server.posts.clear()
                job, left = self.given_back(status, body=b"" if status == 304 else b"why")
                self.assertEqual(job["reason"],
                                 b"HTTP 304" if status == 304 else b"HTTP %d: why" % status)
                self.assertTrue(900 < left < 1101, left)
                self.daemon("TW.CANCEL", "hooks", job["id"])

    def test_without_a_backoff_it_is_the_workers(self):
        self.daemon("TW.CREATE", "hooks", "BACKOFF", 0, 0)
        self.server.answers["/hook"] = answers(500)
        self.put()
        worker = self.worker()
        eventually(lambda: len(self.server.posts) == 2)
        self.assertIn("HTTP 500, try 1, again in 1s", worker.stop()[1])

    def test_the_backoff_of_the_job(self):
        self.daemon("TW.CREATE", "hooks", "BACKOFF", 0, 0)
        self.server.answers["/hook"] = answers(500)
        self.put(b"x", "BACKOFF", 5000, 5000)
        self.worker()
        job = only_job(self.daemon, "delayed")
        self.assertTrue(4000 < job["due"] / 1000 - time.time() < 5501)

    def test_the_last_try_is_buried(self):
        self.server.answers["/hook"] = answers(500)
        self.put(b"x", "TRIES", 1)
        worker = self.worker()
        job = only_job(self.daemon, "buried")
        self.assertEqual(job["reason"], b"HTTP 500")
        self.assertIn("buried, as that was its last try", worker.stop()[1])

    def test_a_redirect_is_not_followed(self):
        job, _ = self.given_back(307, {"Location": self.server.url("/elsewhere")})
        self.assertEqual(job["reason"], b"HTTP 307")
        self.assertEqual([post.path for post in self.server.posts], ["/hook"])

    def test_reason_is_escaped_and_cut_off(self):
        text = b"\x1b[31m\r\n\\ \xc2\x9b \xff " + "ü".encode() + b"a" * 1000
        job, _ = self.given_back(500, body=text)
        reason = job["reason"].decode()
        self.assertTrue(reason.startswith(
            "HTTP 500: \\x1b[31m\\x0d\\x0a\\\\ \\xc2\\x9b \\xff üaaa"), reason)
        self.assertTrue(reason.isprintable())
        self.assertLess(len(reason), 300)

    def test_reason_of_the_most_that_is_escaped(self):
        job, _ = self.given_back(500, body=b"\xff" * 100000)
        self.assertEqual(job["reason"], b"HTTP 500: " + b"\\xff" * 200)

    def test_answers_on_one_connection_have_nothing_of_each_other(self):
        self.server.answers["/hook"] = lambda post: (410, {}, post.body * 40000)
        self.worker("-j", "1")
        for body in b"a", b"b", b"c":
            self.put(body)
        eventually(lambda: len(self.daemon.jobs("hooks", "buried")) == 3)
        self.assertEqual(len({post.client for post in self.server.posts}), 1)
        # libcurl may end the connection of an empty post, so this post is the last one.
        self.put(b"")
        jobs = eventually(lambda: len(self.daemon.jobs("hooks", "buried")) == 4 and
                          self.daemon.jobs("hooks", "buried"))
        self.assertEqual(sorted(job["reason"] for job in jobs),
                         [b"HTTP 410", *[b"HTTP 410: " + c * 200 for c in (b"a", b"b", b"c")]])


class RetryAfter(Case):
    def test_seconds(self):
        for status in (429, 503):
            self.server.posts.clear()
            job, left = self.given_back(status, {"Retry-After": "300"}, b"busy")
            self.assertTrue(200 < left < 301, left)
            self.assertEqual(job["reason"], b"HTTP %d: busy" % status)
            self.daemon("TW.CANCEL", "hooks", job["id"])

    def test_date(self):
        then = email.utils.formatdate(time.time() + 5000, usegmt=True)
        _, left = self.given_back(503, {"Retry-After": then})
        self.assertTrue(4900 < left < 5002, left)

    def test_more_than_7_days_is_7_days(self):
        far = email.utils.formatdate(time.time() + 30 * DAY, usegmt=True)
        for value in str(30 * DAY), "9" * 40, far:
            with self.subTest(value):
                self.server.posts.clear()
                job, left = self.given_back(429, {"Retry-After": value})
                self.assertTrue(7 * DAY - 100 < left < 7 * DAY + 2, left)
                self.daemon("TW.CANCEL", "hooks", job["id"])

    def test_what_has_passed_is_a_second(self):
        for value in "0", "Wed, 21 Oct 2015 07:28:00 GMT":
            self.server.posts.clear()
            self.server.answers["/hook"] = answers(503, {"Retry-After": value})
            self.put(b"x", "TRIES", 1)
            worker = self.worker()
            job = only_job(self.daemon, "buried")
            self.assertIn("HTTP 503, try 1, again in 1s", worker.stop()[1])
            self.daemon("TW.DELETE", "hooks", job["id"])

    def test_what_is_neither_is_the_backoff(self):
        for value in "soon", "-5", "":
            with self.subTest(value):
                self.server.posts.clear()
                job, left = self.given_back(503, {"Retry-After": value})
                self.assertTrue(900 < left < 1101, left)
                self.daemon("TW.CANCEL", "hooks", job["id"])

    def test_other_statuses_have_none(self):
        _, left = self.given_back(500, {"Retry-After": "5"})
        self.assertTrue(900 < left < 1101, left)


class NoAnswer(Case):
    def given_back_by(self, url, *words, **more):
        self.put()
        worker = self.worker(*words, url=url, **more)
        job = only_job(self.daemon, "delayed")
        worker.stop()
        self.assertTrue(800 < job["due"] / 1000 - time.time() < 1101)
        return job["reason"].decode()

    def listen(self, serve):
        """Starts a server that does not speak HTTP. Returns its address."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def accept():
            try:
                while True:
                    serve(listener.accept()[0])
            except OSError:
                pass
        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/hook"

    def test_unreachable(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        reason = self.given_back_by(f"http://127.0.0.1:{port}/hook")
        self.assertRegex(reason, r"^no answer: .*connect")

    def test_no_such_host(self):
        self.assertRegex(self.given_back_by("http://nothing.invalid/"),
                         r"^no answer: Could not resolve host")

    def test_a_name_that_is_not_found_for_long_delays_nothing(self):
        source, slow = self.folder / "slow.c", self.folder / "slow.so"
        source.write_text("#include <unistd.h>\n"
                          "int getaddrinfo(void) { sleep(40); return -3; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", slow, source], check=True)
        reason = self.given_back_by("http://somewhere.invalid/", "--timeout", "200ms",
                                    env={**os.environ, "LD_PRELOAD": str(slow)})
        self.assertRegex(reason, r"^no answer: Resolving timed out")

    def ended_before(self, lease, reason):
        self.assertRegex(reason, r"^no answer: .*timed out after \d+ milli")
        self.assertLess(int(re.search(r"after (\d+)", reason)[1]), lease)
        self.assertEqual(self.daemon.stats("hooks")["lapsed"], 0)

    def test_a_server_that_hangs_ends_before_the_lease(self):
        held = []
        self.daemon("TW.CREATE", "hooks", "LEASE", 6, "TRIES", 2)
        reason = self.given_back_by(self.listen(held.append))
        self.ended_before(6000, reason)

    def test_the_lease_of_the_job_counts(self):
        held = []
        url = self.listen(held.append)
        self.put(b"x", "LEASE", 6)
        self.worker(url=url)
        self.ended_before(6000, only_job(self.daemon, "delayed")["reason"].decode())

    def test_timeout(self):
        held = []
        reason = self.given_back_by(self.listen(held.append), "--timeout", "200ms")
        self.assertRegex(reason, r"^no answer: .*timed out after")

    def test_a_status_decides_however_the_rest_goes(self):
        held = []

        def serve(client):
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
            held.append(client)
        self.put()
        self.worker("--timeout", "300ms", url=self.listen(serve))
        eventually(lambda: self.done() == 1)

    def test_an_answer_without_end_is_cut_off(self):
        def serve(client):
            client.recv(65536)
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                client.sendall(b"x" * 10000)
                time.sleep(0.01)
        self.put()
        self.worker(url=self.listen(serve))
        eventually(lambda: self.done() == 1)

    def test_no_http(self):
        def serve(client):
            client.recv(65536)
            client.sendall(b"SSH-2.0-nothing\r\n")
            client.close()
        self.assertRegex(self.given_back_by(self.listen(serve)), r"^no answer: .*HTTP/0.9")

    def test_100_is_no_status(self):
        def serve(client):
            client.recv(65536)
            client.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            client.close()
        self.assertRegex(self.given_back_by(self.listen(serve)), r"^no answer: ")

    def test_the_environment_has_no_proxy(self):
        variables = {name: "http://127.0.0.1:1/" for name in
                     ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY")}
        self.put()
        self.worker(env={**os.environ, **variables})
        eventually(lambda: self.done() == 1)
        self.assertEqual(len(self.server.posts), 1)

    def serve_tls(self):
        """Returns the server's address and its certificate."""
        cert = self.folder / "cert"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", cert, "-out", cert], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert)
        self.server.httpd.socket = context.wrap_socket(self.server.httpd.socket,
                                                       server_side=True)
        return f"https://localhost:{self.server.httpd.server_port}/hook", cert

    def test_a_certificate_that_nobody_knows(self):
        url, _ = self.serve_tls()
        self.assertRegex(self.given_back_by(url), r"^no answer: .*certificate")
        self.assertEqual(self.server.posts, [])

    def test_a_certificate_that_the_system_knows(self):
        url, cert = self.serve_tls()
        # The system's certificates are replaced for this process only.
        command = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-ec", """
            mount -t tmpfs none /etc/ssl/certs
            cp "$1" /etc/ssl/certs/ca-certificates.crt
            shift
            exec "$@" """, "sh", cert]
        self.put()
        self.worker(url=url, before=command)
        eventually(lambda: self.done() == 1)
        self.assertEqual(len(self.server.posts), 1)


class Ends(Case):
    def test_sigterm_finishes_what_runs_and_takes_no_more(self):
        begun, goes_on = threading.Event(), threading.Event()

        def answer(post):
            begun.set()
            goes_on.wait(30)
            return 200, {}, b""
        self.server.answers["/hook"] = answer
        worker = self.worker()
        self.put()
        self.put()
        begun.wait(30)
        worker.process.send_signal(signal.SIGTERM)
        eventually(lambda: self.daemon("CLIENT", "LIST").count(b"cmd=TW.TAKE") == 0)
        goes_on.set()
        self.assertEqual(worker.process.wait(30), 0)
        self.assertEqual(self.done(), 1)
        (left,) = self.daemon.jobs("hooks")
        self.assertEqual((left["state"], left["attempts"]), (b"ready", 0))
        self.assertEqual(len(self.server.posts), 1)

    def test_a_worker_that_waits_ends_at_once(self):
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            worker = self.worker()
            eventually(lambda: b"cmd=TW.TAKE" in self.daemon("CLIENT", "LIST"))
            self.assertEqual(worker.stop(number), (0, ""))
            eventually(lambda: b"cmd=TW.TAKE" not in self.daemon("CLIENT", "LIST"))

    def test_twjobd_restarts_while_a_post_runs(self):
        daemon = Daemon(store="disk")
        self.addCleanup(daemon.stop)
        daemon("TW.CREATE", "hooks", "KEEPDONE", 1000)
        begun, goes_on = threading.Event(), threading.Event()

        def answer(post):
            begun.set()
            goes_on.wait(30)
            return 200, {}, b""
        self.server.answers["/hook"] = answer
        worker = Worker(daemon, self.server.url())
        self.addCleanup(self.end, worker)
        daemon("TW.PUT", "hooks", "x")
        begun.wait(30)
        daemon.stop()
        goes_on.set()
        daemon.start()
        eventually(lambda: len(daemon("TW.DONE", "hooks")[1]) == 1)
        daemon("TW.PUT", "hooks", "y")
        eventually(lambda: len(daemon("TW.DONE", "hooks")[1]) == 2)
        self.assertEqual(worker.stop()[0], 0)
        self.assertEqual(len(self.server.posts), 2)


class Manual(Case):
    PAGE = pathlib.Path(__file__).resolve().parents[2] / "man" / "twjob.1.in"

    def example(self, word):
        """Returns the page's display with this word, changed for this daemon and server."""
        displays = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", self.PAGE.read_text(), re.M | re.S)
        (text,) = [text for text in displays if word in text]
        return text.replace("\\e", "\\").replace("\\(aq", "'") \
            .replace("twjob work", f"exec twjob work --server {self.daemon.path}") \
            .replace("https://example.com", self.server.url("")) \
            .replace("/etc/hook.secret", str(self.folder / "secret"))

    def run_example(self, word):
        process = subprocess.Popen(["sh", "-c", self.example(word)], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

    def test_curl(self):
        self.server.answers["/hook"] = lambda post: \
            (200 if post.body == b"fine\0" else 500, {}, b"")
        self.run_example("curl")
        self.put(b"fine\0")
        eventually(lambda: self.done() == 1)
        self.put(b"bad")
        self.assertEqual(only_job(self.daemon, "delayed")["reason"], b"exit status 22")
        self.assertEqual({post.headers["Content-Type"] for post in self.server.posts},
                         {"application/octet-stream"})

    def test_url_with_a_new_secret(self):
        subprocess.run(["sh", "-c", self.example("urandom")], check=True)
        self.assertEqual((self.folder / "secret").stat().st_mode & 0o777, 0o600)
        self.run_example("--url")
        self.put()
        eventually(lambda: self.done() == 1)
        self.assertRegex(self.server.posts[0].headers["webhook-signature"], "^v1,.{44}$")


class Daemons(Case):
    """What lies between the worker and twjobd loses or refuses an answer."""

    def setUp(self):
        super().setUp()
        self.proxy = Proxy(self.daemon)
        self.addCleanup(self.proxy.listener.close)

    def through(self):
        worker = Worker(self.proxy, self.server.url())
        self.addCleanup(self.end, worker)
        self.put()
        return worker

    def done_once(self, number, word):
        """Checks that the job of the only post is done, and this verb was said so often."""
        eventually(lambda: self.done() == 1 and self.proxy.verbs().count(word) == number)
        self.assertEqual([post.headers["TW-Try"] for post in self.server.posts], ["1"])

    def test_an_answer_about_the_job_is_lost(self):
        self.proxy.cut = ["TW.GET"]
        self.through()
        self.done_once(2, "TW.GET")

    def test_an_answer_to_an_ack_is_lost(self):
        self.proxy.cut = ["TW.ACK"]
        worker = self.through()
        self.done_once(2, "TW.ACK")
        eventually(lambda: "it was taken, or may be worked on again" in worker.told())

    def given_back_though_lost(self, verb):
        """Checks that a job comes once and is told once, though the first answer to this verb is
        lost."""
        self.proxy.cut = [verb]
        self.server.answers["/hook"] = answers(500)
        worker = self.through()
        job = only_job(self.daemon, "delayed")
        self.assertEqual((job["reason"], job["attempts"]), (b"HTTP 500", 1))
        self.assertTrue(900 < job["due"] / 1000 - time.time() < 1101)
        eventually(lambda: self.proxy.verbs().count(verb) == 2)
        self.assertEqual(worker.told().count("HTTP 500, try 1, again after"), 1)

    def test_an_answer_about_the_queue_is_lost(self):
        self.given_back_though_lost("TW.STATS")

    def test_an_answer_to_a_nack_is_lost(self):
        self.given_back_though_lost("TW.NACK")

    def test_answers_that_are_refused_are_given_again(self):
        self.proxy.refusals["TW.ACK"] = ["UNAVAILABLE the disk", "BUSY", "LOADING"]
        worker = self.through()
        self.done_once(4, "TW.ACK")
        self.assertIn("the disk; see 'journalctl -u twjobd'", worker.told())

    def test_a_job_that_cannot_be_asked_about_is_not_posted_and_counts_no_try(self):
        self.proxy.refusals["TW.GET"] = ["LOADING the jobs"]
        self.through()
        self.done_once(1, "TW.NACK")

    def test_a_take_that_is_lost(self):
        self.proxy.cut = ["TW.TAKE"]
        self.daemon("TW.CREATE", "hooks", "LEASE", 1)
        self.through()
        eventually(lambda: self.done() == 1)
        self.assertEqual([post.headers["TW-Try"] for post in self.server.posts], ["2"])


class Refused(Case):
    def refused(self, *words, server=None, status=2):
        done = subprocess.run(["twjob", "work", "--server", server or self.daemon.path, *words],
                              capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        return done.stderr

    def test_urls(self):
        for url in ("ftp://host/x", "file:///etc/passwd", "gopher://host/", "host/x", "", "http://",
                    "https:///x y", "javascript:1"):
            self.assertRegex(self.refused("--url", url, "hooks"),
                             r"--url '.*': not an address such as https://.*of http or https")

    def test_a_password_in_the_address(self):
        said = self.refused("--url", "https://me:secret@host/", "hooks")
        self.assertIn("would show the password to all users", said)
        self.assertNotIn("secret@", said)

    def test_secrets(self):
        url = self.server.url()
        path = self.folder / "secret"
        self.assertIn("No such file", self.refused("--url", url, "--secret-file", path, "hooks"))
        for text, why in (("", "there is no line in it"), ("\n", "24 bytes or more"),
                          ("whsec_\n", "24 bytes or more"), ("not base64!\n", "in base64"),
                          (base64.b64encode(bytes(23)).decode(), "24 bytes or more"),
                          (base64.b64encode(bytes(65)).decode(), "at most 64 bytes")):
            path.write_text(text)
            said = self.refused("--url", url, "--secret-file", path, "hooks")
            self.assertIn(why, said)
            self.assertIn("a new one: echo whsec_", said)

    def test_usage(self):
        url = self.server.url()
        self.assertIn("usage: ", self.refused("hooks"))
        self.assertIn("usage: ", self.refused("--url", url, "hooks", "--", "cat"))
        self.assertIn("--secret-file needs --url",
                      self.refused("--secret-file", "/dev/null", "hooks", "--", "cat"))
        self.assertIn("--jobs '1001'", self.refused("--url", url, "-j", "1001", "hooks"))
        self.assertIn("--timeout '0'", self.refused("--url", url, "-t", "0", "hooks"))

    def test_without_the_program(self):
        twjob = shutil.which("twjob")
        done = subprocess.run([twjob, "work", "--url", self.server.url(), "hooks"], text=True,
                              env={"PATH": os.path.dirname(twjob)}, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (1, "twjob: work: there is no twjob-http: "
                                                          "on Debian 'apt install timewheel-http' "
                                                          "gets it\n"))

    def hooks(self, **more):
        return self.refused("--url", self.server.url(), "hooks", **more)

    def test_no_such_queue(self):
        self.daemon("TW.DROP", "hooks")
        self.assertIn("'twjob create' makes one", self.hooks(status=3))

    def test_passwords(self):
        port, path = free_port(), self.folder / "password"
        daemon = Daemon(f"listen = 127.0.0.1:{port}", "password = right")
        self.addCleanup(daemon.stop)
        server = f"127.0.0.1:{port}"
        self.assertIn("--password-file", self.hooks(server=server, status=4))
        path.write_text("wrong\n")
        words = ("--password-file", path, "--url", self.server.url(), "hooks")
        self.assertIn("'password' in /etc/twjobd.conf",
                      self.refused(*words, server=server, status=4))

    def test_a_twjobd_that_has_no_room_for_connections(self):
        port, path = free_port(), self.folder / "password"
        daemon = Daemon(f"listen = 127.0.0.1:{port}", "password = right", "max-connections = 1")
        self.addCleanup(daemon.stop)
        path.write_text("right\n")
        said = self.refused("--password-file", path, "--url", self.server.url(), "hooks",
                            server=f"127.0.0.1:{port}", status=6)
        self.assertIn("max-connections in /etc/twjobd.conf", said)

    def test_a_twjobd_that_is_too_old(self):
        proxy = Proxy(self.daemon)
        self.addCleanup(proxy.listener.close)
        for text in "unknown command 'TW.TAKE'", "expected COUNT, BLOCK or BOUND":
            proxy.refusals["TW.TAKE"] = [f"ERR {text}"]
            self.assertIn(f"{text}; this twjobd is too old: 'apt install timewheel-jobs'",
                          self.hooks(server=proxy.path))

    def test_a_twjobd_that_cannot_be_reached_is_told_once_and_waited_for(self):
        daemon = Daemon(store="disk")
        self.addCleanup(daemon.stop)
        daemon("TW.CREATE", "hooks", "KEEPDONE", 1000)
        daemon("TW.PUT", "hooks", "x")
        daemon.stop()
        worker = Worker(daemon, self.server.url())
        self.addCleanup(self.end, worker)
        eventually(lambda: "trying again until" in worker.told())
        self.assertIn("'systemctl start twjobd' starts it", worker.told())
        daemon.start()
        eventually(lambda: len(daemon("TW.DONE", "hooks")[1]) == 1)
        self.assertEqual(worker.told().count("systemctl"), 1)


if __name__ == "__main__":
    unittest.main()
