# SPDX-License-Identifier: LGPL-2.1-or-later
"""Batches: many operations by one call."""

import threading
from dataclasses import dataclass
from typing import Iterator

from . import _abi, _ops
from ._library import Owned
from ._types import Result, u64
from ._uapi import TIMEWHEEL_OP_REGISTER, timewheel_op
from ._wheel import Wheel


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one operation of a batch went."""

    error: OSError | None
    """Why it failed, as the method of Wheel would have raised it; None if it
    succeeded. EINPROGRESS: it has not been carried out yet."""
    result: Result
    """How it went; empty if it failed."""
    handle: int | None
    """The handle of the token that it registered."""
    deadline_ns: int | None
    """The token's deadline; of a cancelled one the deadline that it had; None if the
    operation failed."""


class Batch(_ops.Operations[int]):
    """Operations that are carried out by one call, in the order in which they were
    added.

    Each method that Wheel has too adds an operation, and returns the operation's
    index. Nothing is carried out before run(). An operation that fails does not end
    the batch. OSError with ENOSPC: the batch is full.
    """

    def __init__(self, capacity: int = 1024) -> None:
        """@capacity: most operations, 1 to 65536; else OSError with EINVAL."""
        self._batch = Owned(_abi.tw_batch_new(u64(capacity)), _abi.tw_batch_free)
        # The library's batch is for one thread at a time.
        self._lock = threading.Lock()

    def _add(self, op: timewheel_op) -> int:
        with self._lock:
            _abi.tw_batch_next(self._batch)[0] = op
            count: int = _abi.tw_batch_count(self._batch)
        return count - 1

    # Its index is all that there is to tell of it yet.
    _run = _run_registration = _add

    def clear(self) -> None:
        """Empty the batch, to use it again."""
        with self._lock:
            _abi.tw_batch_clear(self._batch)

    def run(self, wheel: Wheel) -> int:
        """Carry out the operations that have not been carried out yet.

        Returns how many of all operations in the batch have failed. They stay
        in it with their outcomes until clear(). If a signal's handler raises, the
        next call goes on from there.

        OSError with ENODEV or EBADF: the rest was not carried out.
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
                return Outcome(error, Result(0), None, None)
            registered = (op.code == TIMEWHEEL_OP_REGISTER or
                          result & Result.REGISTERED)
            return Outcome(None, result, op.handle if registered else None,
                           op.deadline)

    def outcomes(self) -> Iterator[Outcome]:
        """How all of them went, in order."""
        return map(self.outcome, range(len(self)))
