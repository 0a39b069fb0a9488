# SPDX-License-Identifier: LGPL-2.1-or-later
"""Batches: many operations by one call."""

import ctypes
import errno
import threading
from array import array
from dataclasses import dataclass
from typing import Iterable, Iterator

from . import _abi, _ops
from ._library import Owned, error_of
from ._types import Result, result_of, u64
from ._uapi import TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OPF_BY_HANDLE, timewheel_op
from ._wheel import Wheel


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one operation of a batch."""

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

    Each method that Wheel also has adds an operation, and returns the operation's index.
    Nothing is carried out before run(). An operation that fails does not end the batch. OSError
    with ENOSPC: the batch is full. One thread at a time may use a batch.
    """

    def __init__(self, capacity: int = 1024) -> None:
        """@capacity: most operations, 1 to 65536; else OSError with EINVAL."""
        self._batch = Owned(_abi.tw_batch_new(u64(capacity)), _abi.tw_batch_free)
        self._capacity = capacity
        self._count = 0
        # The last touches are not yet in the library's batch: one call for all of them costs
        # little. Their keys are all ids or all handles, as @_flags tell.
        self._keys = array("Q")
        self._flags = 0
        # The lock keeps the library's batch in one piece if threads break the rule.
        self._lock = threading.Lock()

    def _flush(self) -> None:
        """Add the touches that the library's batch does not have yet. The caller holds the lock."""
        if count := len(self._keys):
            keys = (ctypes.c_uint64 * count).from_buffer(self._keys)
            _abi.tw_batch_touch_many(self._batch, keys, count, self._flags)
            self._keys = array("Q")

    def _add(self, op: timewheel_op) -> int:
        with self._lock:
            self._flush()
            _abi.tw_batch_next(self._batch)[0] = op
            index = self._count
            self._count = index + 1
        return index

    # An operation that was only added can tell nothing but its index.
    _run = _run_registration = _add

    def touch(self, id: int | None = None, *, handle: int | None = None) -> int:
        # This is the shortest way, for a key of the same kind as the keys before it.
        index = self._count
        if handle is None:
            key, flags = id, 0
        else:
            key, flags = handle if id is None else None, TIMEWHEEL_OPF_BY_HANDLE
        if key is None or flags != self._flags or index >= self._capacity:
            key, flags = _ops.key(id, handle)
            return self._touch([key], flags)[0]
        # OverflowError: the key is no key.
        self._keys.append(key)
        self._count = index + 1
        return index

    def touch_many(self, ids: Iterable[int] | None = None, *,
                   handles: Iterable[int] | None = None) -> range:
        """Add a touch() of each of these tokens, at a fraction of the cost; returns the
        operations' indexes."""
        if (ids is None) == (handles is None):
            raise TypeError("either ids or handles have to be given")
        flags = 0 if handles is None else TIMEWHEEL_OPF_BY_HANDLE
        return self._touch((ids if handles is None else handles) or (), flags)

    def _touch(self, keys: Iterable[int], flags: int) -> range:
        added = array("Q", keys)
        start = self._count
        end = start + len(added)
        if end > self._capacity:
            raise error_of(errno.ENOSPC)
        if flags != self._flags:
            with self._lock:
                self._flush()
            self._flags = flags
        self._keys += added
        self._count = end
        return range(start, end)

    def clear(self) -> None:
        """Empty the batch, to use it again."""
        with self._lock:
            self._keys = array("Q")
            self._count = 0
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
            self._flush()
            while True:
                try:
                    failed: int = _abi.tw_batch_run(self._batch, opened)
                    return failed
                except InterruptedError:
                    pass

    def __len__(self) -> int:
        return self._count

    def outcome(self, index: int) -> Outcome:
        """Return the outcome of the operation with this index. IndexError: there is none."""
        with self._lock:
            self._flush()
            if not 0 <= index < self._count:
                raise IndexError(f"no operation {index}")
            op = _abi.tw_batch_op(self._batch, index).contents
            try:
                result = result_of(_abi.tw_batch_result(self._batch, index))
            except OSError as error:
                return Outcome(error, Result(0), None, None)
            registered = (op.code == TIMEWHEEL_OP_REGISTER or
                          result & Result.REGISTERED)
            return Outcome(None, result, op.handle if registered else None,
                           op.deadline)

    def outcomes(self) -> Iterator[Outcome]:
        """Return the outcomes of all operations, in order."""
        return map(self.outcome, range(len(self)))
