# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages on their way to twjobd, one by one or many by one commit."""
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from .client import MOST_COMMANDS
from .errors import Refused, told

MOST_BYTES = 16 << 20
OVERHEAD = 512
"""Bytes of a command besides its body, at most."""

# The list that gathers the puts of this thread, greenlet or coroutine, see together().
_batch = ContextVar("timewheel_batch", default=None)


@dataclass
class Put:
    """A message. Its key makes it safe to send the put again; no other message has its tag."""
    channel: object
    queue: str
    name: str
    body: bytes
    due: int | None
    key: str
    tag: str

    def words(self):
        time = ("AT", self.due) if self.due else ()
        return ("TW.PUT", self.name, self.body, *time, "KEY", self.key)

    def again(self, code):
        """Deals with another message in the place where this one should be. Returns True if it was
        this message, whose answer was lost."""
        if code == "NOQUEUE":
            self.channel.make_again(self.queue)
            return False
        if code == "HELD":
            client = self.channel.client
            there = client.call("TW.GETKEY", self.name, self.key)
            if there is not None and self.channel.map(there)[b"body"] == self.body:
                return True
        if not self.key.endswith(self.tag):
            self.key = f"{self.key}.{self.tag}"
        return False


def _settled(put, answer):
    if isinstance(answer, Refused):
        if answer.code not in ("HELD", "NOQUEUE"):
            raise told(answer, f"the queue {put.name}")
        return put.again(answer.code)
    return answer[1] != b"BURIED" or put.again("BURIED")


def commit_one(put):
    for _ in range(5):
        try:
            answer = put.channel.client.call(*put.words())
        except Refused as refused:
            answer = refused
        if _settled(put, answer):
            return
    raise told(answer if isinstance(answer, Refused) else Refused("HELD"),
               f"the queue {put.name}")


def _groups(puts):
    """Cuts the puts into groups that a transaction may have."""
    group, size = [], 0
    for put in puts:
        more = len(put.body) + OVERHEAD
        other = group and put.channel.client is not group[0].channel.client
        if group and (other or len(group) == MOST_COMMANDS or size + more > MOST_BYTES):
            yield group
            group, size = [], 0
        group.append(put)
        size += more
    if group:
        yield group


def _commit_group(group, before, count):
    client = group[0].channel.client
    waits = list(group)
    while waits:
        try:
            answers = client.transaction([put.words() for put in waits])
        except Refused as refused:
            if refused.at is None or refused.code not in ("HELD", "NOQUEUE"):
                raise told(refused, f"{before} of {count} tasks were put, and then none: "
                           f"the queue {waits[refused.at or 0].name}") from None
            if waits[refused.at].again(refused.code):
                del waits[refused.at]
        else:
            waits = [put for put, answer in zip(waits, answers)
                     if not _settled(put, answer)]


class Batch(list):
    def commit(self):
        before = 0
        for group in _groups(self):
            _commit_group(group, before, len(self))
            before += len(group)


@contextmanager
def together():
    """The tasks that are sent in this block are put when it ends: up to 1,000 of them, and
    16 MB, by one commit, all or none; more by as many commits as that takes. If the block
    ends by an exception, none is put."""
    batch = Batch()
    token = _batch.set(batch)
    try:
        yield
    finally:
        _batch.reset(token)
    batch.commit()


def put(message):
    batch = _batch.get()
    if batch is None:
        commit_one(message)
    else:
        batch.append(message)
