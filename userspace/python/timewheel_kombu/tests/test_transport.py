# SPDX-License-Identifier: GPL-2.0-only
"""Tests what the transport makes of kombu's calls and of twjobd's answers, without a
worker.
"""
import contextlib
import os
import socket
import tempfile
import threading
import time
import unittest
import uuid
from datetime import datetime, timedelta, timezone

from daemon import Daemon, Proxy, eventually, free_port

import timewheel_kombu
from celery import Celery, group
from kombu import Connection, Consumer, Producer, Queue
from kombu.exceptions import ChannelError, OperationalError, VersionMismatch

OPTIONS = {"patience": 5}
ONCE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}


def setUpModule():
    global daemon
    daemon = Daemon("max-body = 1048576")


def tearDownModule():
    daemon.stop()


class Case(unittest.TestCase):
    options = OPTIONS

    def setUp(self):
        self.queue = "q" + uuid.uuid4().hex[:12]
        self.proxy = None
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def connect(self, url=None, **options):
        return self.stack.enter_context(Connection(
            url or daemon.url, transport_options={**self.options, **options}))

    def app(self, url=None, **options):
        app = Celery("tests", broker=url or daemon.url, set_as_current=False)
        app.conf.update(task_default_queue=self.queue, broker_connection_max_retries=0,
                        broker_transport_options={**self.options, **options})

        @app.task(name="add")
        def add(x, y):
            return x + y
        app.add = add
        self.stack.callback(app.close)
        return app

    def proxied(self):
        self.proxy = Proxy(daemon)
        return self.proxy.url

    def put(self, connection, body="hello", **options):
        Producer(connection.default_channel).publish(
            body, exchange="", routing_key=self.queue, serializer="json",
            declare=[Queue(self.queue)], **options)

    def take(self, connection, count, then=None, seconds=20, until=lambda: True):
        """Returns messages, after then() was done to each."""
        got = []

        def on_message(message):
            got.append(message)
            if then:
                then(message)
        with Consumer(connection.default_channel, [Queue(self.queue)], on_message=on_message):
            end = time.monotonic() + seconds
            while (len(got) < count or not until()) and time.monotonic() < end:
                with contextlib.suppress(socket.timeout):
                    connection.drain_events(timeout=0.5)
        return got

    def held(self):
        return daemon.stats(self.queue)["held"]

    def refused(self, kind, *words):
        """Checks that the call in the block raises this, and that the text has these words."""
        @contextlib.contextmanager
        def block():
            with self.assertRaises(kind) as caught:
                yield
            for word in words:
                self.assertIn(word, str(caught.exception))
        return block()


class Messages(Case):
    def test_a_message_comes_and_ends_when_it_is_acknowledged(self):
        with self.connect() as connection:
            self.put(connection, {"a": 1})
            message, = self.take(connection, 1)
            self.assertEqual(message.decode(), {"a": 1})
            self.assertEqual(self.held(), 1)
            message.ack()
            eventually(lambda: not daemon.jobs(self.queue))

    def test_get_without_a_consumer(self):
        with self.connect() as connection:
            queue = connection.SimpleQueue(self.queue)
            queue.put("x")
            queue.get(timeout=10).ack()
            channel = connection.default_channel
            self.assertIsNone(channel.basic_get(self.queue))
            queue.put("y")
            self.assertEqual(channel.basic_get(self.queue, no_ack=False).decode(), "y")
            queue.close()

    def test_a_task_is_due_at_its_eta_and_never_earlier(self):
        app = self.app()
        eta = datetime.now(timezone.utc) + timedelta(days=400, microseconds=1)
        app.add.apply_async((1, 2), eta=eta)
        job, = daemon.jobs(self.queue, "delayed")
        self.assertGreaterEqual(job["due"], eta.timestamp() * 1000)
        self.assertLess(job["due"], eta.timestamp() * 1000 + 2)

    def test_purge_size_and_delete(self):
        with self.connect() as connection:
            for _ in range(3):
                self.put(connection)
            channel = connection.default_channel
            self.assertEqual(channel.queue_declare(self.queue).message_count, 3)
            self.assertEqual(channel.queue_purge(self.queue), 3)
            self.assertEqual(channel.queue_declare(self.queue, passive=True).message_count, 0)
            channel.queue_delete(self.queue)
            self.assertNotIn(self.queue.encode(), daemon("TW.QUEUES"))

    def test_a_queue_that_was_dropped_is_made_again(self):
        with self.connect() as connection:
            self.put(connection)
            daemon("TW.DROP", self.queue)
            self.put(connection, 2)
            message, = self.take(connection, 1, lambda m: m.ack())
            self.assertEqual(message.decode(), 2)

    def test_a_queue_that_is_there_stays_as_it_is(self):
        daemon("TW.CREATE", self.queue, "TRIES", 7, "LEASE", 9)
        with self.connect(tries=3, lease=4) as connection:
            self.put(connection)
        stats = daemon.stats(self.queue)
        self.assertEqual((stats["tries"], stats["lease_ms"]), (7, 9000))

    def test_options_are_those_of_new_queues(self):
        with self.connect(tries=3, lease=4, max_jobs=50, prefix="p-") as connection:
            self.put(connection)
        stats = daemon.stats("p-" + self.queue)
        self.assertEqual((stats["tries"], stats["lease_ms"], stats["max_jobs"]), (3, 4000, 50))

    def test_odd_and_long_names_are_kept_apart(self):
        with self.connect() as connection:
            names = connection.default_channel.names
            odd = {names(n)[0] for n in ("a.b" + self.queue, "a-b" + self.queue,
                                         self.queue * 3, self.queue * 4)}
            self.assertEqual(len(odd), 4)
            self.assertTrue(all(len(n) <= 31 for n in odd))

    def test_higher_priorities_come_first(self):
        with self.connect(priorities=[6, 3, 0]) as connection:
            for priority in (0, 4, 9):
                self.put(connection, priority, priority=priority)
            got = self.take(connection, 3, lambda m: m.ack())
            self.assertEqual([m.decode() for m in got], [9, 4, 0])

    def test_what_needs_no_answer_is_gone_at_once(self):
        with self.connect() as connection:
            self.put(connection)
            with Consumer(connection.default_channel, [Queue(self.queue)], no_ack=True,
                          callbacks=[lambda body, message: None]):
                connection.drain_events(timeout=10)
            eventually(lambda: not daemon.jobs(self.queue))


class Ids(Case):
    def test_an_id_that_is_put_twice_is_one_task(self):
        app = self.app()
        for _ in range(2):
            app.add.apply_async((1, 2), task_id=self.queue, countdown=1000)
        self.assertEqual(len(daemon.jobs(self.queue)), 1)

    def test_an_id_that_a_worker_has_is_another_task(self):
        app = self.app()
        app.add.apply_async((1, 2), task_id=self.queue)
        daemon("TW.TAKE", self.queue)
        app.add.apply_async((1, 2), task_id=self.queue)
        self.assertEqual(sorted(j["state"] for j in daemon.jobs(self.queue)),
                         [b"held", b"ready"])

    def test_an_id_that_is_buried_is_another_task(self):
        app = self.app()
        app.add.apply_async((1, 2), task_id=self.queue)
        job = daemon("TW.TAKE", self.queue)[0]
        daemon("TW.BURY", self.queue, job[2])
        app.add.apply_async((1, 2), task_id=self.queue)
        self.assertEqual(sorted(j["state"] for j in daemon.jobs(self.queue)),
                         [b"buried", b"ready"])

    def test_a_put_whose_answer_was_lost_is_one_task(self):
        app = self.app(self.proxied())
        self.proxy.cut = ["TW.PUT"]
        app.add.apply_async((1, 2))
        self.assertEqual(self.proxy.verbs().count("TW.PUT"), 2)
        self.assertEqual(len(daemon.jobs(self.queue)), 1)

    def test_a_put_whose_answer_was_lost_is_one_task_though_a_worker_has_it(self):
        app = self.app(self.proxied())
        app.add.apply_async((0, 0))
        daemon("TW.DROP", self.queue)
        daemon("TW.CREATE", self.queue)
        self.proxy.cut = ["TW.PUT"]
        self.proxy.refusals = {"PING": ["LOADING a while"] * 3}

        def take():
            eventually(lambda: daemon.jobs(self.queue))
            return daemon("TW.TAKE", self.queue)
        taker = threading.Thread(target=take)
        taker.start()
        app.add.apply_async((1, 2))
        taker.join()
        self.assertEqual([j["state"] for j in daemon.jobs(self.queue)], [b"held"])

    def test_cancel_and_move_by_id(self):
        app = self.app()
        eta = datetime.now(timezone.utc) + timedelta(days=3)
        result = app.add.apply_async((1, 2), countdown=1000)
        self.assertTrue(timewheel_kombu.move(app, result.id, eta))
        self.assertAlmostEqual(daemon.jobs(self.queue)[0]["due"], eta.timestamp() * 1000,
                               delta=1)
        self.assertTrue(timewheel_kombu.cancel(app, result.id, self.queue))
        self.assertFalse(timewheel_kombu.cancel(app, result.id))
        self.assertFalse(timewheel_kombu.move(app, result.id, eta, self.queue))
        self.assertEqual(daemon.jobs(self.queue), [])
        with self.assertRaisesRegex(ValueError, "time zone"):
            timewheel_kombu.move(app, result.id, datetime.now())
        with self.refused(ChannelError, "broker_url has to begin with timewheel://"):
            timewheel_kombu.cancel(Connection("memory://"), "x")

    def test_a_task_that_a_worker_has_is_not_cancelled(self):
        app = self.app()
        result = app.add.delay(1, 2)
        daemon("TW.TAKE", self.queue)
        self.assertFalse(timewheel_kombu.cancel(app, result.id))
        self.assertEqual(self.held(), 1)

    def test_revoke_ends_tasks_also_retries_and_of_other_queues(self):
        app = self.app()
        other = self.queue + "-other"
        ids = [app.add.apply_async((1, 2), countdown=1000).id,
               app.add.apply_async((1, 2), countdown=1000, queue=other).id,
               app.add.apply_async((1, 2), countdown=1000, retries=42).id]
        self.assertEqual(len(daemon.jobs(self.queue) + daemon.jobs(other)), 3)
        app.control.revoke(ids[:2])
        app.AsyncResult(ids[2]).revoke()
        self.assertEqual(daemon.jobs(self.queue) + daemon.jobs(other), [])

    def test_revoke_tells_of_what_it_cannot_end(self):
        app = self.app()
        result = app.add.delay(1, 2)
        daemon("TW.TAKE", self.queue)
        with self.assertLogs("kombu.transport.timewheel", "WARNING") as logs:
            app.control.revoke(result.id)
            app.control.revoke("unknown")
        self.assertIn("a worker has the task", logs.output[0])
        self.assertIn("no queue has the task", logs.output[1])
        with self.refused(ChannelError, "cannot be told to terminate", "time_limit"):
            app.control.revoke(result.id, terminate=True)


class Answers(Case):
    def test_what_is_rejected_is_buried_with_the_reason(self):
        def reject(message):
            try:
                raise LookupError("no such colour")
            except LookupError:
                message.reject()
        with self.connect() as connection:
            self.put(connection)
            self.take(connection, 1, reject)
            job, = eventually(lambda: daemon.jobs(self.queue, "buried"))
            self.assertEqual(job["reason"], b"LookupError: no such colour")

    def test_what_is_given_back_counts_as_a_try_and_tells_who_did(self):
        with self.connect() as connection:
            self.put(connection)
            self.take(connection, 1, lambda m: m.requeue())
            message, = self.take(connection, 1)
            self.assertEqual(message.delivery_info["attempt"], 2)
            self.assertTrue(message.delivery_info["redelivered"])
            self.assertIn(f"process {os.getpid()}".encode(), daemon.jobs(self.queue)[0]["reason"])

    def test_a_body_that_is_no_message_is_buried_and_the_others_go_on(self):
        daemon("TW.CREATE", self.queue)
        bodies = [b"\xff\xfe", b"[1]", b"{}",
                  b'{"properties": {"body_encoding": "base64"}, "body": "a"}']
        with self.connect() as connection:
            self.put(connection, 1)
            for body in bodies:
                daemon("TW.PUT", self.queue, body)
            self.put(connection, 2)
            with self.assertLogs("kombu.transport.timewheel", "ERROR"):
                got = self.take(
                    connection, 2, lambda m: m.ack(),
                    until=lambda: len(daemon.jobs(self.queue, "buried")) == len(bodies))
            self.assertEqual({m.decode() for m in got}, {1, 2})
            eventually(lambda: len(daemon.jobs(self.queue, "buried")) == len(bodies))
            for job in daemon.jobs(self.queue, "buried"):
                self.assertTrue(job["reason"].startswith(b"no message: "), job)

    def test_content_that_cannot_be_decoded_is_buried_though_celery_acknowledges_it(self):
        def decode(message):
            with self.assertRaises(Exception):
                message.decode()
            message.ack()
        with self.connect() as connection:
            self.put(connection)
            Producer(connection.default_channel).publish(
                b"{", exchange="", routing_key=self.queue, content_type="application/json",
                content_encoding="utf-8")
            self.take(connection, 2, lambda m: decode(m) if m.body == b"{" else m.ack())
            job, = eventually(lambda: daemon.jobs(self.queue, "buried"))
            self.assertIn(b"DecodeError", job["reason"])

    def test_answers_are_sent_again_until_they_are_taken(self):
        with self.connect(self.proxied()) as connection:
            self.put(connection)
            message, = self.take(connection, 1)
            self.proxy.refusals = {"TW.ACK": ["BUSY a", "UNAVAILABLE b", "LOADING c"]}
            message.ack()
            self.take(connection, 1, seconds=1)
            eventually(lambda: not daemon.jobs(self.queue))
            self.assertEqual(self.proxy.verbs().count("TW.ACK"), 4)

    def test_answers_are_sent_again_until_they_are_stale(self):
        with self.connect(self.proxied()) as connection:
            self.put(connection)
            message, = self.take(connection, 1)
            self.proxy.refusals = {"TW.ACK": ["UNAVAILABLE a", "STALE b"]}
            with self.assertLogs("kombu.transport.timewheel", "WARNING") as logs:
                message.ack()
                eventually(lambda: logs.output)
            self.assertIn("STALE", logs.output[0])
            time.sleep(0.5)
            self.assertEqual(self.proxy.verbs().count("TW.ACK"), 2)

    def test_close_waits_for_the_answers(self):
        connection = self.connect(self.proxied())
        self.put(connection)
        message, = self.take(connection, 1)
        self.proxy.refusals = {"TW.ACK": ["UNAVAILABLE a"] * 3}
        message.ack()
        connection.close()
        self.assertEqual(daemon.jobs(self.queue), [])

    def test_what_never_began_is_given_back_as_untried(self):
        connection = self.connect()
        for _ in range(5):
            self.put(connection)
        connection.default_channel.basic_qos(0, 3, False)
        self.assertEqual(len(self.take(connection, 3)), 3)
        connection.close()
        self.assertEqual(self.held(), 0)
        self.assertEqual({job[3] for job in daemon("TW.TAKE", self.queue, "COUNT", 10)}, {1})

    def test_what_had_begun_counts_as_a_try(self):
        from celery.worker import state

        class Request:
            pass
        connection = self.connect()
        self.put(connection)
        request = Request()
        request.message, = self.take(connection, 1)
        state.active_requests.add(request)
        connection.close()
        self.assertIn(b"the worker stopped while it ran", daemon.jobs(self.queue)[0]["reason"])
        self.assertEqual(daemon("TW.TAKE", self.queue)[0][3], 2)

    def test_prefetch_is_kept(self):
        with self.connect() as connection:
            for _ in range(5):
                self.put(connection)
            connection.default_channel.basic_qos(0, 2, False)
            got = self.take(connection, 3, seconds=1)
            self.assertEqual((len(got), self.held()), (2, 2))
            got[0].ack()
            self.assertEqual(len(self.take(connection, 1)), 1)


class Leases(Case):
    def test_a_consumer_that_is_busy_keeps_its_messages(self):
        with self.connect(lease=0.6) as connection:
            self.put(connection)
            message, = self.take(connection, 1)
            time.sleep(2)
            self.assertIsNone(daemon("TW.TAKE", self.queue))
            self.assertEqual(daemon.stats(self.queue)["lapsed"], 0)
            message.ack()
            eventually(lambda: not daemon.jobs(self.queue))

    def test_a_message_that_comes_while_the_consumer_is_busy_is_kept_too(self):
        with self.connect(lease=0.6) as connection:
            got = []
            with Consumer(connection.default_channel, [Queue(self.queue)],
                          on_message=got.append):
                with contextlib.suppress(socket.timeout):
                    connection.drain_events(timeout=0.2)
                daemon("TW.PUT", self.queue,
                       '{"properties": {"delivery_tag": 1}, "body": "1"}')
                time.sleep(2)
                self.assertIsNone(daemon("TW.TAKE", self.queue))
                connection.drain_events(timeout=10)
                self.assertEqual(len(got), 1)
                self.assertEqual(daemon.stats(self.queue)["lapsed"], 0)

    def test_no_take_stays_behind_a_consumer(self):
        connection = self.connect(self.proxied())
        self.take(connection, 1, seconds=0.7)
        begin = time.monotonic()
        connection.close()
        self.assertLess(time.monotonic() - begin, 10)
        self.assertIn(["CLIENT", "UNBLOCK"], [w[:2] for w in self.proxy.seen])
        self.put(self.connect())
        time.sleep(0.1)
        self.assertEqual(self.held(), 0)

    def test_a_child_leaves_its_parents_messages_alone(self):
        with self.connect() as connection:
            self.put(connection)
            message, = self.take(connection, 1)
            child = os.fork()
            if not child:
                connection.close()
                os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(self.held(), 1)
            message.ack()
            eventually(lambda: not daemon.jobs(self.queue))

    def test_a_connection_that_was_reset_is_made_again(self):
        def reset(timeout):
            raise ConnectionResetError(104, "reset by peer")
        with self.connect() as connection:
            self.take(connection, 1, seconds=0.1)
            keeper = connection.default_channel.keeper
            keeper.wire._parser.can_read = reset
            with self.assertLogs("kombu.transport.timewheel", "WARNING") as logs:
                self.take(connection, 0, until=lambda: logs.output)
                del keeper.wire._parser.can_read
                self.put(connection)
                self.assertEqual(len(self.take(connection, 1, lambda m: m.ack())), 1)
            self.assertIn("no tasks are taken", logs.output[0])
            self.assertNotIn("goes on", str(logs.output))

    def test_a_restart_of_twjobd_is_waited_for(self):
        other = Daemon(store="disk")
        with self.connect(other.url) as connection:
            self.put(connection, 1)
            message, = self.take(connection, 1)
            other.stop()
            message.ack()
            other.start()
            self.put(connection, 2)
            got = self.take(connection, 1, lambda m: m.ack())
            self.assertEqual([m.decode() for m in got], [2])
            eventually(lambda: not other.jobs(self.queue))
        other.stop()


class Groups(Case):
    def test_a_group_is_one_commit(self):
        app = self.app(self.proxied())
        app.add.delay(0, 0)
        self.proxy.seen.clear()
        with timewheel_kombu.together():
            group(app.add.s(i, i) for i in range(300)).apply_async(countdown=1000)
            self.assertEqual(len(daemon.jobs(self.queue)), 1)
        self.assertEqual(len(daemon.jobs(self.queue)), 301)
        self.assertEqual(self.proxy.verbs().count("EXEC"), 1)

    def test_groups_are_cut_at_1000_commands_and_16_mb(self):
        app = self.app(self.proxied())
        with timewheel_kombu.together():
            for i in range(1001):
                app.add.apply_async((i, i), countdown=1000)
        self.assertEqual(self.proxy.verbs().count("EXEC"), 2)
        with timewheel_kombu.together():
            for i in range(30):
                app.add.apply_async(("x" * 500000, i), countdown=1000)
        self.assertEqual(self.proxy.verbs().count("EXEC"), 4)
        self.assertEqual(len(daemon.jobs(self.queue)), 1031)

    def test_a_group_that_is_refused_is_not_put_at_all(self):
        app = self.app(max_jobs=10)
        with self.refused(ChannelError, "0 of 11 tasks were put", "FULL", "--max-jobs"):
            with timewheel_kombu.together():
                for i in range(11):
                    app.add.delay(i, i)
        self.assertEqual(daemon.jobs(self.queue), [])

    def test_a_block_that_ends_by_an_exception_puts_nothing(self):
        app = self.app()
        app.add.delay(0, 0)
        with self.assertRaises(KeyError), timewheel_kombu.together():
            app.add.delay(1, 1)
            raise KeyError
        self.assertEqual(len(daemon.jobs(self.queue)), 1)
        app.add.delay(0, 0)
        self.assertEqual(len(daemon.jobs(self.queue)), 2)

    def test_a_group_whose_ids_are_held_or_buried_or_twice(self):
        app = self.app()
        for what in ("held", "buried"):
            app.add.apply_async((1, 2), task_id=self.queue + what)
            job = daemon("TW.TAKE", self.queue)[0]
        daemon("TW.BURY", self.queue, job[2])
        with timewheel_kombu.together():
            for what in ("new", "held", "buried", "new"):
                app.add.apply_async((1, 2), task_id=self.queue + what)
        self.assertEqual(sorted(j["state"] for j in daemon.jobs(self.queue)),
                         [b"buried", b"held", b"ready", b"ready", b"ready"])

    def test_a_group_whose_answer_was_lost_is_put_once(self):
        app = self.app(self.proxied())
        self.proxy.cut = ["EXEC"]
        with timewheel_kombu.together():
            for i in range(10):
                app.add.delay(i, i)
        self.assertEqual(len(daemon.jobs(self.queue)), 10)


class Refusals(Case):
    """Each error is kombu's own exception, with what to do."""

    def test_unreachable(self):
        with self.refused(OperationalError, "cannot be reached", "systemctl start twjobd"):
            self.connect("timewheel:///nowhere/socket").ensure_connection(**ONCE)
        with self.refused(OperationalError, "127.0.0.1:1", "cannot be reached"):
            self.app("timewheel://127.0.0.1:1", **ONCE).add.apply_async((1, 2), retry=False)

    def test_passwords(self):
        port = free_port()
        other = Daemon(f"listen = 127.0.0.1:{port}", "password = a:b/c")
        for url in (f"timewheel://127.0.0.1:{port}", f"timewheel://:x@127.0.0.1:{port}"):
            with self.refused(OperationalError, "another password",
                              "timewheel://:PASSWORD@HOST:PORT"):
                self.connect(url).ensure_connection(**ONCE)
        connection = self.connect(f"timewheel://:a%3Ab%2Fc@127.0.0.1:{port}")
        self.put(connection)
        self.assertNotIn("a%3Ab", connection.as_uri())
        other.stop()

    def test_too_many_connections(self):
        port = free_port()
        other = Daemon(f"listen = 127.0.0.1:{port}", "password = x", "max-connections = 1")
        with self.refused(OperationalError, "FULL", "raise max-connections"):
            self.connect(f"timewheel://:x@127.0.0.1:{port}").ensure_connection(**ONCE)
        other.stop()

    def test_full(self):
        app = self.app(max_jobs=1)
        app.add.delay(1, 2)
        with self.refused(ChannelError, self.queue, "FULL", "--max-jobs"):
            app.add.delay(1, 2)

    def test_too_big(self):
        with self.refused(ChannelError, "TOOBIG", "max-body", "reference"):
            self.app().add.delay("x" * 2000000, 1)

    def test_draining(self):
        app = self.app()
        app.add.delay(1, 2)
        daemon("TW.DRAIN", self.queue)
        with self.refused(ChannelError, "DRAINING", "twjob resume"):
            app.add.delay(1, 2)

    def test_an_older_twjobd(self):
        app = self.app(self.proxied())
        self.proxy.refusals = {"TW.CREATE": ["ERR expected LEASE, TRIES or MAXJOBS"]}
        with self.refused(VersionMismatch, "older", "apt install timewheel-jobs"):
            app.add.delay(1, 2)

    def test_what_twjobd_cannot_do_for_long(self):
        app = self.app(self.proxied(), patience=1)
        self.proxy.refusals = {"TW.PUT": ["UNAVAILABLE the disk"] * 1000}
        with self.refused(OperationalError, "UNAVAILABLE the disk", "send it again later"):
            app.add.apply_async((1, 2), retry=False)
        self.proxy.refusals = {"TW.PUT": ["BUSY a", "LOADING b", "UNAVAILABLE c"]}
        self.app(self.proxy.url).add.apply_async((1, 2), retry=False)
        self.assertEqual(len(daemon.jobs(self.queue)), 1)

    def test_what_is_not_allowed(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("putter\n")
            file.flush()
            port = free_port()
            other = Daemon(f"listen = 127.0.0.1:{port}", "password = x",
                           f"allow = * put password={file.name}",
                           f"allow = * admin uid={os.getuid()}")
            other("TW.CREATE", self.queue)
            connection = self.connect(f"timewheel://:putter@127.0.0.1:{port}")
            self.put(connection)
            with self.refused(ChannelError, "NOPERM", "ask the administrator"):
                self.take(connection, 1)
            connection.close()
            other.stop()

    def test_broadcasts(self):
        app = self.app()
        for ask in (lambda: app.control.inspect().ping(), lambda: app.control.shutdown(),
                    lambda: app.control.rate_limit("add", "1/m")):
            with self.refused(ChannelError, "twjob stats", "revoke()"):
                ask()
        with self.refused(ChannelError, "Flower", "result_backend"):
            with app.connection_for_read() as connection:
                app.events.Receiver(connection).capture(limit=1, timeout=1)

    def test_results_by_rpc(self):
        app = self.app()
        app.conf.result_backend = "rpc://"
        with self.refused(ChannelError, "result_backend"):
            app.add.delay(1, 2)
