# SPDX-License-Identifier: LGPL-2.1-or-later
"""Functions for tasks that no worker has yet, by their ids."""
import hashlib
from contextlib import contextmanager
from math import ceil

from kombu.log import get_logger
from kombu.serialization import loads

from .errors import NotTaken, Refused, told
from .puts import together

__all__ = ["cancel", "move", "together"]

logger = get_logger("kombu.transport.timewheel")

LONGEST_ID = 200
RETRIES = 100
"""Retries of a task among which it is looked for."""


def key(task_id, retries=0):
    """Returns the key of a task's job. Each retry has a key of its own, since it is put before
    the try is answered."""
    if len(task_id.encode()) > LONGEST_ID:
        task_id = hashlib.sha256(task_id.encode()).hexdigest()
    return f"{task_id}.{retries}"


@contextmanager
def _channel(where):
    """Returns the channel of a Celery app or of a connection of kombu."""
    with getattr(where, "connection_or_acquire", lambda: _as_it_is(where))() as connection:
        channel = connection.default_channel
        if not hasattr(channel, "make_again"):
            raise NotTaken("the broker is not twjobd: broker_url has to begin with "
                               "timewheel://")
        yield channel


@contextmanager
def _as_it_is(connection):
    yield connection


def _names(channel, queue):
    if queue is not None:
        return channel.names(queue)
    return [name.decode() for name in channel.client.call("TW.QUEUES")
            if name.decode().startswith(channel.prefix)]


def _by_key(channel, queue, task_id, verb, *words):
    """Whether there was such a task, and whether a worker had it."""
    commands = [(verb, name, key(task_id, retries), *words)
                for name in _names(channel, queue) for retries in range(RETRIES)]
    answers = channel.client.ask_all(commands) if commands else []
    for command, answer in zip(commands, answers):
        if isinstance(answer, Refused) and answer.code not in ("HELD", "BURIED", "NOQUEUE"):
            raise told(answer, f"{verb} of the queue {command[1]}")
    held = any(isinstance(answer, Refused) and answer.code == "HELD" for answer in answers)
    return any(answer == 1 for answer in answers), held


def cancel(where, task_id, queue=None):
    """Ends a task that no worker has, of this queue or of any. False: there is none. `where`
    is a Celery app, or a connection of kombu."""
    with _channel(where) as channel:
        return _by_key(channel, queue, task_id, "TW.CANCELKEY")[0]


def move(where, task_id, eta, queue=None):
    """Makes a task that no worker has due at `eta`, a datetime with a zone. False: there is
    none."""
    if eta.tzinfo is None:
        raise ValueError("eta has no time zone; datetime.now(timezone.utc) has one")
    with _channel(where) as channel:
        return _by_key(channel, queue, task_id, "TW.MOVEKEY", "AT",
                       ceil(eta.timestamp() * 1000))[0]


def broadcast(channel, message, refusal):
    """Carries out revoke() of ids; nobody hears any other broadcast."""
    said = loads(message["body"], message["content-type"], message["content-encoding"],
                 accept=[message["content-type"]])
    arguments = said.get("arguments") or {}
    if said.get("method") != "revoke" or "task_id" not in arguments:
        raise NotTaken(refusal)
    ids = arguments["task_id"]
    for task_id in [ids] if isinstance(ids, str) else ids:
        done, held = _by_key(channel, None, task_id, "TW.CANCELKEY")
        if not done and held and arguments.get("terminate"):
            raise NotTaken(f"a worker has the task {task_id}, and cannot be told to "
                               "terminate it; end it by a time_limit or in its code")
        if not done:
            logger.warning("revoke: %s the task %s", "a worker has" if held else
                           "no queue has", task_id)
