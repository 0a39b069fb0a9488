# SPDX-License-Identifier: LGPL-2.1-or-later
"""Batches: many operations by one call."""

import threading
from dataclasses import dataclass
from typing import Iterator

from . import _abi
from ._abi import Owned
from ._types import Event, Result, Token, answer, burial, due, duration
from ._types import first_due, key, nacking, token_of_op, u64
from ._wheel import Wheel


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one operation of a batch went."""

    error: OSError | None
    """Why it failed, as the method of Wheel would have raised it; None when it
    succeeded. EINPROGRESS: it has not been carried out yet."""
    result: Result
    """How it went; empty when it failed."""
    handle: int | None
    """The handle of the token that it registered."""
    deadline_ns: int | None
    """The token's deadline in ns of the wheel's clock; of a cancelled one the one
    that it had; None when it failed."""
    token: Token | None
    """What get() told."""


class Batch:
    """Operations that are carried out by one call, in the order of their coming.

    Methods of the names of Wheel's add one, take the same, and return its index.
    Nothing of it is done before run(). Each operation is carried out by
    itself: one that fails does not end the batch. OSError with ENOBUFS: the batch
    is full.
    """

    def __init__(self, capacity: int = 1024) -> None:
        """@capacity: most operations, 1 to 65536; else OSError with EINVAL."""
        self._batch = Owned(_abi.tw_batch_new(u64(capacity)), _abi.tw_batch_free)
        # The library's batch is for one thread at a time.
        self._lock = threading.Lock()

    def register(self, id: int, timeout: float | None = None, *,
                 at_ns: int | None = None, cookie: int = 0) -> int:
        """Add the registration of a token, see Wheel.register()."""
        when, flags = due(timeout, at_ns)
        with self._lock:
            index: int = _abi.tw_batch_register(
                self._batch, u64(id), when, u64(cookie), flags)
        return index

    def touch(self, id: int | None = None, *, handle: int | None = None) -> int:
        """Add the touch of a token, see Wheel.touch()."""
        with self._lock:
            index: int = _abi.tw_batch_touch(self._batch, *key(id, handle))
        return index

    def touch_or_register(self, id: int, timeout: float, *, cookie: int = 0) -> int:
        """Add the touch or registration of one, see Wheel.touch_or_register()."""
        with self._lock:
            index: int = _abi.tw_batch_touch_or_register(
                self._batch, u64(id), duration(timeout), u64(cookie), 0)
        return index

    def move(self, id: int | None = None, timeout: float | None = None, *,
             handle: int | None = None, at_ns: int | None = None) -> int:
        """Add the move of a token, see Wheel.move()."""
        which, by = key(id, handle)
        when, flags = due(timeout, at_ns)
        with self._lock:
            index: int = _abi.tw_batch_move(self._batch, which, when, by | flags)
        return index

    def cancel(self, id: int | None = None, *, handle: int | None = None) -> int:
        """Add the cancellation of a token, see Wheel.cancel()."""
        with self._lock:
            index: int = _abi.tw_batch_cancel(self._batch, *key(id, handle))
        return index

    def get(self, id: int | None = None, *, handle: int | None = None) -> int:
        """Add a look at a token, see Wheel.get()."""
        with self._lock:
            index: int = _abi.tw_batch_get(self._batch, *key(id, handle))
        return index

    def register_periodic(self, id: int, period: float,
                          timeout: float | None = None, *,
                          at_ns: int | None = None, cookie: int = 0) -> int:
        """Add the registration of one, see Wheel.register_periodic()."""
        when, every, flags = first_due(period, timeout, at_ns)
        with self._lock:
            index: int = _abi.tw_batch_register_periodic(
                self._batch, u64(id), when, every, u64(cookie), flags)
        return index

    def ack(self, delivery: Event | Token, *, any_file: bool = False) -> int:
        """Add the ack of a delivery, see Wheel.ack(); without a time after which its
        token is due again."""
        with self._lock:
            index: int = _abi.tw_batch_ack(
                self._batch, *answer(delivery, any_file))
        return index

    def nack(self, delivery: Event | Token, timeout: float | None = None, *,
             at_ns: int | None = None, any_file: bool = False) -> int:
        """Add the nack of a delivery, see Wheel.nack()."""
        with self._lock:
            index: int = _abi.tw_batch_nack(
                self._batch, *nacking(delivery, timeout, at_ns, any_file))
        return index

    def extend(self, delivery: Event | Token, lease: float = 0, *,
               any_file: bool = False) -> int:
        """Add the extension of a lease, see Wheel.extend()."""
        with self._lock:
            index: int = _abi.tw_batch_extend(
                self._batch, *answer(delivery, any_file), duration(lease))
        return index

    def bury(self, delivery: Event | Token, *, any_file: bool = False) -> int:
        """Add the burial of a token, see Wheel.bury()."""
        with self._lock:
            index: int = _abi.tw_batch_bury(
                self._batch, *burial(delivery, any_file))
        return index

    def kick(self, id: int | None = None, *, handle: int | None = None) -> int:
        """Add the kick of a token, see Wheel.kick()."""
        with self._lock:
            index: int = _abi.tw_batch_kick(self._batch, *key(id, handle))
        return index

    def delete(self, id: int | None = None, *, handle: int | None = None) -> int:
        """Add the end of a token, see Wheel.delete()."""
        with self._lock:
            index: int = _abi.tw_batch_delete(self._batch, *key(id, handle))
        return index

    def clear(self) -> None:
        """Empty the batch, to use it again."""
        with self._lock:
            _abi.tw_batch_clear(self._batch)

    def run(self, wheel: Wheel) -> int:
        """Carry out what has not been carried out yet.

        Returns how many of all operations in the batch have failed. They stay
        there with their outcomes until clear(). When a signal's handler raises,
        call it again to go on from there.

        OSError with ENODEV: the rest was not carried out.
        """
        opened = wheel._opened()
        with self._lock:
            while True:
                try:
                    failed: int = _abi.tw_batch_run(self._batch, opened)
                    return failed
                except InterruptedError:
                    pass

    def __len__(self) -> int:
        with self._lock:
            count: int = _abi.tw_batch_count(self._batch)
        return count

    def outcome(self, index: int) -> Outcome:
        """How the operation of this index went. IndexError: there is none."""
        with self._lock:
            if not 0 <= index < _abi.tw_batch_count(self._batch):
                raise IndexError(f"no operation {index}")
            op = _abi.tw_batch_op(self._batch, index).contents
            try:
                result = Result(_abi.tw_batch_result(self._batch, index))
            except OSError as error:
                return Outcome(error, Result(0), None, None, None)
            return _outcome(op, result)

    def outcomes(self) -> Iterator[Outcome]:
        """How all of them went, in order."""
        return map(self.outcome, range(len(self)))


def _outcome(op: _abi.timewheel_op, result: Result) -> Outcome:
    registered = (op.code in (_abi.TIMEWHEEL_OP_REGISTER,
                              _abi.TIMEWHEEL_OP_REGISTER_PERIODIC) or
                  result & Result.REGISTERED)
    got = op.code == _abi.TIMEWHEEL_OP_GET
    return Outcome(None, result, op.handle if registered else None, op.deadline,
                   token_of_op(op) if got else None)
