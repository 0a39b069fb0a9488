# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operations on tokens, prepared for a wheel or a batch to carry out.

Wheel's methods describe the arguments.
"""

import ctypes

from ._types import Event, State, Token, duration, u64
from ._uapi import (
    TIMEWHEEL_OP_ACK, TIMEWHEEL_OP_BURY, TIMEWHEEL_OP_EXTEND, TIMEWHEEL_OP_MOVE,
    TIMEWHEEL_OP_NACK, TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OP_TOUCH_OR_REGISTER,
    TIMEWHEEL_OPF_ABSOLUTE, TIMEWHEEL_OPF_ANY_FILE, TIMEWHEEL_OPF_BY_HANDLE,
    timewheel_op,
)


def _positive(seconds: float | None) -> int:
    """A duration that may be left out. To the kernel 0 is one that was."""
    if seconds is None:
        return 0
    if not (ns := duration(seconds)):
        raise ValueError("duration is 0")
    return ns


def _due(delay: float | None, at_ns: int | None) -> tuple[int, int]:
    """Time and flags."""
    if (delay is None) == (at_ns is None):
        raise TypeError("either a delay or at_ns has to be given")
    if at_ns is not None:
        return u64(at_ns), TIMEWHEEL_OPF_ABSOLUTE
    assert delay is not None
    return duration(delay), 0


def key(id: int | None, handle: int | None) -> tuple[int, int]:
    """Key and flags."""
    if (id is None) == (handle is None):
        raise TypeError("either id or handle has to be given")
    if handle is not None:
        return u64(handle), TIMEWHEEL_OPF_BY_HANDLE
    assert id is not None
    return u64(id), 0


def on_token(code: int, id: int | None, handle: int | None) -> timewheel_op:
    """An operation that needs no more than the token's key."""
    which, flags = key(id, handle)
    op = timewheel_op(size=ctypes.sizeof(timewheel_op), code=code, flags=flags)
    if handle is None:
        op.id = which
    else:
        op.handle = which
    return op


def register(id: int, delay: float | None, at_ns: int | None, timeout: float | None,
             period: float | None, cookie: int) -> timewheel_op:
    if delay is None and at_ns is None:
        delay = timeout if period is None else period
    op = on_token(TIMEWHEEL_OP_REGISTER, id, None)
    op.time, op.flags = _due(delay, at_ns)
    op.timeout = _positive(timeout)
    op.period = _positive(period)
    op.cookie = u64(cookie)
    return op


def touch_or_register(id: int, timeout: float, cookie: int) -> timewheel_op:
    op = on_token(TIMEWHEEL_OP_TOUCH_OR_REGISTER, id, None)
    op.time = duration(timeout)
    op.cookie = u64(cookie)
    return op


def move(id: int | None, delay: float | None, handle: int | None, at_ns: int | None,
         timeout: float | None) -> timewheel_op:
    if delay is None and at_ns is None:
        delay = timeout
    op = on_token(TIMEWHEEL_OP_MOVE, id, handle)
    op.time, absolute = _due(delay, at_ns)
    op.flags |= absolute
    op.timeout = _positive(timeout)
    return op


def _answer(code: int, event: Event | Token, any_file: bool) -> timewheel_op:
    op = on_token(code, None, event.handle)
    op.flags |= TIMEWHEEL_OPF_ANY_FILE if any_file else 0
    op.delivery = event.delivery
    return op


def ack(event: Event | Token, delay: float | None, at_ns: int | None,
        any_file: bool) -> timewheel_op:
    op = _answer(TIMEWHEEL_OP_ACK, event, any_file)
    if delay is not None or at_ns is not None:
        op.time, absolute = _due(delay, at_ns)
        op.flags |= absolute
        # To the kernel a delay of 0 is none: the token would end.
        if not op.time and not absolute:
            raise ValueError("the delay of an ack is 0: see nack()")
    return op


def nack(event: Event | Token, delay: float | None, at_ns: int | None,
         any_file: bool) -> timewheel_op:
    if delay is None and at_ns is None:
        delay = 0
    op = _answer(TIMEWHEEL_OP_NACK, event, any_file)
    op.time, absolute = _due(delay, at_ns)
    op.flags |= absolute
    return op


def extend(event: Event | Token, lease: float, any_file: bool) -> timewheel_op:
    op = _answer(TIMEWHEEL_OP_EXTEND, event, any_file)
    op.time = duration(lease)
    return op


def bury(event: Event | Token, any_file: bool) -> timewheel_op:
    op = _answer(TIMEWHEEL_OP_BURY, event, any_file)
    if isinstance(event, Token) and event.state == State.PENDING:
        # It has no delivery that is out.
        op.delivery = 0
    return op
