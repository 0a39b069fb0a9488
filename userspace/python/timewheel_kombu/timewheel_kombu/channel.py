# SPDX-License-Identifier: LGPL-2.1-or-later
"""kombu's channel: queues, messages and their answers, as verbs of twjobd."""
import hashlib
import os
import re
import socket
import sys
import time
from datetime import datetime, timezone
from math import ceil
from queue import Empty

from kombu.log import get_logger
from kombu.transport import virtual
from kombu.utils.json import dumps, loads

from . import puts, tasks
from .client import Address, Client
from .errors import NotTaken, Refused, told
from .keeper import Keeper

logger = get_logger("kombu.transport.timewheel")

MOST_JOBS = 100
"""Jobs of one take."""
MAX_DUE = 8999999999999
LONGEST_NAME = 31

NO_BROADCAST = (
    "twjobd has no broadcasts to workers: inspect, control, events and Flower do not work. "
    "What waits is told by twjob(1): twjob stats, twjob list QUEUE; by TW.METRICS, and to "
    "Prometheus. revoke() of a task that no worker has works")
NO_TEMPORARY = (
    "the queue {} would end with its consumer, which queues of twjobd do not: " +
    NO_BROADCAST + "; for results of tasks set result_backend to a store, not to rpc://")


class Message(virtual.Message):
    unreadable = None

    def _decode(self):
        try:
            return super()._decode()
        except Exception as error:
            self.unreadable = reason(error)
            raise

    def ack(self, multiple=False):
        """Keeps a message that Celery cannot decode and acknowledges, with the reason."""
        if self.unreadable:
            self.reject()
        else:
            super().ack(multiple)


def reason(error=None):
    return f"{type(error).__name__}: {error}" if error else \
        f"rejected by process {os.getpid()} on {socket.gethostname()}"


def running():
    """Returns the delivery tags of tasks that Celery's worker in this process has begun."""
    state = sys.modules.get("celery.worker.state")
    return {r.message.delivery_tag for r in list(state.active_requests)} if state else set()


class QoS(virtual.QoS):
    """The messages that the consumer has. A delivery tag is the queue and the receipt."""

    def ack(self, tag):
        self._answer("TW.ACK", tag)

    def reject(self, tag, requeue=False):
        message = self._delivered.get(tag)
        why = getattr(message, "unreadable", None) or reason(sys.exc_info()[1])
        self._answer("TW.NACK" if requeue else "TW.BURY", tag, "REASON", why)

    def _answer(self, verb, tag, *more):
        full = not self.can_consume()
        self.channel.answer(verb, *tag.split(":", 1), *more)
        self._quick_ack(tag)
        if full:
            self.channel.keeper.ring()

    def restore_unacked(self):
        """Gives back all messages. A task that has begun counts as a try, and its lease goes on
        until then if twjobd is away."""
        self._flush()
        begun = running()
        for tag in list(self._delivered):
            if tag in begun:
                self._answer("TW.NACK", tag, "REASON", "the worker stopped while it ran")
            else:
                self._answer("TW.NACK", tag, "UNTRIED")
        self._delivered.clear()
        return []


class Channel(virtual.Channel):
    QoS, Message = QoS, Message
    lease, tries, max_jobs, prefix, priorities, patience = 60, 10, 1000000, "", (), 10
    from_transport_options = virtual.Channel.from_transport_options + (
        "lease", "tries", "max_jobs", "prefix", "priorities", "patience")

    def __init__(self, connection, **kwargs):
        super().__init__(connection, **kwargs)
        self.client = Client(Address(connection.client), self.patience)
        self._keeper = None       # a channel that only puts has none
        self.known = {}           # names in twjobd, by the name of a queue here
        self.no_ack = set()
        self.turn = 0
        self.client.connect()

    @property
    def keeper(self):
        if self._keeper is None:
            self._keeper = Keeper(self.client)
            self._keeper.start()
        return self._keeper

    @property
    def consumes(self):
        return self._keeper is not None and not self.closed

    # This part has queues.

    def names(self, queue):
        """Returns the queues of twjobd for a queue of kombu, the one of the highest priority first.
        """
        if queue not in self.known:
            plain = re.sub(r"[^A-Za-z0-9_-]", "-", self.prefix + queue)
            room = LONGEST_NAME - (2 if self.priorities else 0)
            if plain != self.prefix + queue or len(plain) > room:
                mark = hashlib.sha256((self.prefix + queue).encode()).hexdigest()[:6]
                plain = f"{plain[:room - 7]}-{mark}"
            names = [f"{plain}-{p}" for p in self.priorities] or [plain]
            for name in names:
                self._make(name)
            self.known[queue] = names
        return self.known[queue]

    def make_again(self, queue):
        self.known.pop(queue, None)
        self.names(queue)

    def _make(self, name):
        try:
            self.client.call("TW.CREATE", name, "LEASE", self.lease, "TRIES", self.tries,
                             "MAXJOBS", self.max_jobs, "IFNEW")
        except Refused as refused:
            # An administrator may have made the queue, and allow no more.
            if refused.code != "NOPERM":
                raise told(refused, f"the queue {name} cannot be made") from None

    def ask(self, *words):
        try:
            return self.client.call(*words)
        except Refused as refused:
            raise told(refused, f"the queue {words[1]}") from None

    @staticmethod
    def map(answer):
        if isinstance(answer, dict):
            return answer
        return dict(zip(answer[::2], answer[1::2]))

    def queue_declare(self, queue=None, passive=False, auto_delete=False, **kwargs):
        if auto_delete:
            raise NotTaken(NO_TEMPORARY.format(queue))
        return super().queue_declare(queue, passive, **kwargs)

    def _new_queue(self, queue, **kwargs):
        self.names(queue)

    def _has_queue(self, queue, **kwargs):
        there = self.client.call("TW.QUEUES")
        return all(name.encode() in there for name in self.names(queue))

    def _size(self, queue):
        """Returns the size, 0 for users who may put tasks and not look at them."""
        try:
            return sum(self.map(self.client.call("TW.STATS", name))[b"pending"]
                       for name in self.names(queue))
        except Refused as refused:
            if refused.code != "NOPERM":
                raise told(refused, f"the queue {queue}") from None
            return 0

    def queue_delete(self, queue, if_unused=False, if_empty=False, **kwargs):
        if if_empty and self._size(queue):
            return
        for name in self.names(queue):
            self.ask("TW.DROP", name)
        del self.known[queue]
        self.state.queue_bindings_delete(queue)

    def _purge(self, queue):
        ended = 0
        for name in self.names(queue):
            cursor = b"0"
            while True:
                cursor, jobs = self.ask("TW.LIST", name, "CURSOR", cursor, "COUNT", 1000)
                ended += self._cancel(name, [job[b"id"] for job in map(self.map, jobs)
                                             if job[b"state"] in (b"delayed", b"ready")])
                if int(cursor) == 0:
                    break
        return ended

    def _cancel(self, name, ids):
        answers = self.client.ask_all([("TW.CANCEL", name, i) for i in ids]) if ids else []
        return sum(answer == 1 for answer in answers)

    # This part has broadcasts. Only revoke() has a meaning here.

    def queue_bind(self, queue, exchange=None, routing_key="", arguments=None, **kwargs):
        if self._is_fanout(exchange):
            raise NotTaken(NO_BROADCAST)
        super().queue_bind(queue, exchange, routing_key, arguments, **kwargs)

    def _is_fanout(self, exchange):
        return self.state.exchanges.get(exchange, {}).get("type") == "fanout"

    def basic_publish(self, message, exchange, routing_key, **kwargs):
        if self._is_fanout(exchange):
            return tasks.broadcast(self, message, NO_BROADCAST)
        return super().basic_publish(message, exchange, routing_key, **kwargs)

    # This part puts.

    def _put(self, queue, message, **kwargs):
        tag = message["properties"]["delivery_tag"]
        puts.put(puts.Put(self, queue, self._name_for(queue, message),
                          dumps(message).encode(), self._due(message),
                          self._key(message) or tag, tag))

    def _name_for(self, queue, message):
        names = self.names(queue)
        if not self.priorities:
            return names[0]
        priority = self._get_message_priority(message)
        return next((n for n, p in zip(names, self.priorities) if p <= priority), names[-1])

    @staticmethod
    def _key(message):
        headers = message.get("headers") or {}
        if headers.get("id") and "retries" in headers:
            return tasks.key(headers["id"], headers["retries"])
        return None

    @staticmethod
    def _due(message):
        """Returns milliseconds, never before the ETA; None without an ETA, or for one without a
        zone, for which the worker waits as with other brokers."""
        eta = (message.get("headers") or {}).get("eta")
        if not eta:
            return None
        eta = datetime.fromisoformat(eta)
        return min(ceil(eta.timestamp() * 1000), MAX_DUE) if eta.tzinfo else None

    # This part has takes and their answers.

    def basic_consume(self, queue, no_ack, callback, consumer_tag, **kwargs):
        if no_ack:
            self.no_ack.add(queue)
        for name in self.names(queue):
            self.keeper.leases[name] = \
                self.map(self.ask("TW.STATS", name))[b"lease_ms"] / 1000
        super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)

    def answer(self, verb, name, receipt, *more):
        if self.client.foreign():
            return
        self.client.post(verb, name, receipt, *more)
        self.keeper.held.pop((name, receipt), None)

    def tick(self):
        """Tells the keeper for which queues the consumer has room. Each queue comes first
        in turn; but priorities are kept."""
        if not self.consumes or self.keeper.jobs:
            return
        if self.keeper.missing:
            self.keeper.missing = False
            for queue in self._active_queues:
                self.make_again(queue)
        room = self.qos.can_consume_max_estimate()
        if not self._active_queues or room == 0:
            return self.keeper.want_nothing()
        if self.keeper.asked and set(self.keeper.asked) == {
                name for queue in self._active_queues for name in self.names(queue)}:
            return
        self.turn += 1
        at = self.turn % len(self._active_queues)
        queues = self._active_queues[at:] + self._active_queues[:at]
        names = [n for rank in zip(*map(self.names, queues)) for n in rank]
        self.keeper.want(names, min(room or MOST_JOBS, MOST_JOBS))

    def deliver(self):
        """Hands one message to its consumer, so that it may stop before the next one."""
        self.keeper.silence()
        if self.closed or not self.keeper.jobs:
            return False
        job = self.keeper.jobs.popleft()
        if self.keeper.jobs:
            self.keeper.ring()
        return self._deliver(job)

    def _deliver(self, job):
        name, receipt = job[0].decode(), job[2].decode()
        queue = next((q for q in self._active_queues if name in self.names(q)), None)
        if queue is None:
            self.answer("TW.NACK", name, receipt, "UNTRIED")
            return False
        payload = self._readable(job)
        if payload is None:
            return False
        if queue in self.no_ack:
            self.answer("TW.ACK", name, receipt)
        self.connection._deliver(payload, queue)
        return True

    def _get(self, queue, timeout=None):
        while True:
            jobs = self.ask("TW.TAKE", *self.names(queue))
            if not jobs:
                raise Empty()
            self.keeper.hold(jobs[0][0].decode(), jobs[0][2].decode())
            payload = self._readable(jobs[0])
            if payload is not None:
                return payload

    def _readable(self, job):
        """Returns the message, or None if the job was no message and has been buried."""
        try:
            payload = self._payload(job)
            self.Message(payload, channel=self)
            return payload
        except Exception as error:
            logger.error("the job %d of the queue %s is buried, for it is no message: %r",
                         job[1], job[0].decode(), error)
            self.answer("TW.BURY", job[0].decode(), job[2].decode(), "REASON",
                        f"no message: {reason(error)}")
            return None

    @classmethod
    def _payload(cls, job):
        name, _, receipt, attempt, due, _, body = job
        payload = loads(body.decode())
        payload["properties"]["delivery_tag"] = f"{name.decode()}:{receipt.decode()}"
        info = payload["properties"].setdefault("delivery_info", {})
        info["redelivered"] = payload["redelivered"] = attempt > 1
        info["attempt"] = attempt
        headers = payload.get("headers") or {}
        if headers.get("eta") and cls._due(payload):
            # The task is due by twjobd's clock, also if it has been moved there.
            due = min(due / 1000, time.time())
            headers["eta"] = datetime.fromtimestamp(due, timezone.utc).isoformat()
        return payload

    def close(self):
        if self.closed:
            return
        if self.client.foreign():
            self.closed = True
            self.client.close()
            return
        if self._keeper is not None:
            self._keeper.end()
            for job in self._keeper.jobs:
                self.answer("TW.NACK", job[0].decode(), job[2].decode(), "UNTRIED")
            self._keeper.jobs.clear()
        super().close()
        self.client.close()
        if self._keeper is not None:
            self._keeper.close()
