# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operations on tokens, which a wheel carries out and a batch collects."""

import ctypes
from typing import Generic, Protocol, TypeVar

from ._types import Event, Token, duration, i32, u64
from ._uapi import (
    TIMEWHEEL_OP_ACK, TIMEWHEEL_OP_CANCEL, TIMEWHEEL_OP_DELETE, TIMEWHEEL_OP_EXTEND,
    TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_NACK, TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OP_TOUCH,
    TIMEWHEEL_OP_TOUCH_OR_REGISTER,
    TIMEWHEEL_OPF_ABSOLUTE, TIMEWHEEL_OPF_BY_HANDLE, timewheel_op,
)


def _positive(seconds: float | None) -> int:
    """Return a duration that may be left out. The kernel takes 0 for one that was left out."""
    if seconds is None:
        return 0
    if not (ns := duration(seconds)):
        raise ValueError("duration is 0")
    return ns


def _due(delay: float | None, at_ns: int | None) -> tuple[int, int]:
    """Return time and flags."""
    if (delay is None) == (at_ns is None):
        raise TypeError("either a delay or at_ns has to be given")
    if at_ns is not None:
        return u64(at_ns), TIMEWHEEL_OPF_ABSOLUTE
    assert delay is not None
    return duration(delay), 0


def key(id: int | None, handle: int | None) -> tuple[int, int]:
    """Return key and flags."""
    if handle is None and id is not None:
        return u64(id), 0
    if handle is None or id is not None:
        raise TypeError("either id or handle has to be given")
    return u64(handle), TIMEWHEEL_OPF_BY_HANDLE


def on_token(code: int, id: int | None, handle: int | None) -> timewheel_op:
    """Prepare an operation that needs no more than the token's key."""
    which, flags = key(id, handle)
    op = timewheel_op(size=ctypes.sizeof(timewheel_op), code=code, flags=flags)
    if handle is None:
        op.id = which
    else:
        op.handle = which
    return op


def _answer(code: int, event: Event | Token) -> timewheel_op:
    op = on_token(code, None, event.handle)
    op.delivery = event.delivery
    return op


_Told = TypeVar("_Told")


class HasFileno(Protocol):
    """An object such as a socket."""

    def fileno(self) -> int: ...


class Operations(Generic[_Told]):
    """Operations of a Wheel are carried out at once, and tell their Result. Operations of a
    Batch are added to it, and tell their index in it, also register()."""

    def _run(self, op: timewheel_op) -> _Told:
        raise NotImplementedError

    def _run_registration(self, op: timewheel_op) -> int:
        raise NotImplementedError

    # Operations on a token

    def register(self, id: int, delay: float | None = None, *,
                 at_ns: int | None = None, timeout: float | None = None,
                 period: float | None = None, cookie: int = 0) -> int:
        """Register a token; returns its handle.

        @id: any number that no other token of the wheel has; 0 on a wheel without ids
        @delay: seconds after which it is due; 0 is at once
        @at_ns: instead, when it is due, as a time of the wheel's clock; at once if
        that has passed
        @timeout: seconds from a touch to the deadline; without it, the delay; a token
        for a point of time, or for a delay of 0, then has none and cannot be touched
        @period: the token is due again and again, after so many seconds each time, a
        tick or more; it has no timeout
        @cookie: comes back with its events; 0 on a wheel without cookies

        Without a delay and a point of time the token is due after its timeout or
        its period. Periods are counted from the first deadline, whenever events are
        read. If several have passed by then there is one event, for the last of them,
        and its missed tells how many before it had none. A periodic token ends by
        cancel() or delete().

        FileExistsError: a token has this id; OSError with EINVAL: an id or a cookie
        on a wheel without them, a period that is shorter than a tick, or is given
        with a timeout or on a wheel without periods; ESHUTDOWN: the wheel is
        draining; ENOSPC; ENOMEM; ERANGE; EBADF; ENODEV. ValueError: @timeout or
        @period is 0.
        """
        if delay is None and at_ns is None:
            delay = timeout if period is None else period
        op = on_token(TIMEWHEEL_OP_REGISTER, id, None)
        op.time, op.flags = _due(delay, at_ns)
        op.timeout = _positive(timeout)
        op.period = _positive(period)
        op.cookie = u64(cookie)
        return self._run_registration(op)

    def touch(self, id: int | None = None, *, handle: int | None = None) -> _Told:
        """Restart a token's timeout: it is due its whole timeout from now.

        Never brings a deadline nearer.

        FileNotFoundError: no token of this id is pending; OSError with ESTALE: the
        token of this handle is not pending, or the handle is another wheel's;
        EINVAL: the token has no timeout, or the wheel no ids; ERANGE; EBADF; ENODEV.
        """
        return self._run(on_token(TIMEWHEEL_OP_TOUCH, id, handle))

    def touch_or_register(self, id: int, timeout: float, *,
                          cookie: int = 0) -> _Told:
        """Touch the token of this id, or register it if there is none.

        @timeout: seconds after which a token that is registered is due, and its
        timeout; an existing token keeps its own
        @cookie: as of register(); an existing token keeps its own

        FileExistsError: the token is held; OSError with EINVAL: the token
        has no timeout, or as register(); ESHUTDOWN; ENOSPC; ENOMEM; ERANGE; EBADF;
        ENODEV.
        """
        op = on_token(TIMEWHEEL_OP_TOUCH_OR_REGISTER, id, None)
        op.time = duration(timeout)
        op.cookie = u64(cookie)
        return self._run(op)

    def move(self, id: int | None = None, delay: float | None = None, *,
             handle: int | None = None, at_ns: int | None = None,
             timeout: float | None = None) -> _Told:
        """Give a token another deadline, earlier or later.

        @delay: seconds after which it is due; 0 is at once
        @at_ns: instead, when it is due, as a time of the wheel's clock
        @timeout: its timeout from now on; without it, the delay; with a point of
        time, or a delay of 0, the timeout stays

        Without a delay and a point of time the token is due after its timeout. A
        periodic token counts its periods from the new deadline.

        FileNotFoundError, OSError with ESTALE: as touch(); EINVAL; ERANGE; EBADF;
        ENODEV. ValueError: @timeout is 0.
        """
        if delay is None and at_ns is None:
            delay = timeout
        op = on_token(TIMEWHEEL_OP_MOVE, id, handle)
        op.time, absolute = _due(delay, at_ns)
        op.flags |= absolute
        op.timeout = _positive(timeout)
        return self._run(op)

    def cancel(self, id: int | None = None, *, handle: int | None = None) -> _Told:
        """End a token: no event of it will come.

        FileNotFoundError, OSError with ESTALE: as touch(); EINVAL; EBADF; ENODEV.
        """
        return self._run(on_token(TIMEWHEEL_OP_CANCEL, id, handle))

    # Answers to deliveries, on a wheel with leases

    def ack(self, event: Event | Token) -> _Told:
        """Tell that a delivery has been dealt with: its token ends, or is pending
        again for its next period.

        @event: an event that was read; or what get() or tokens() told of a token
        that is held. Its number of the delivery is the right to answer, for each that
        has the wheel open for writing

        A reader that wants the token again after its work registers a new one after the
        ack, or behind it in a batch.

        OSError with ESTALE: the answer is too late: the delivery was answered, or
        its lease was over and the token has been delivered again or ended;
        EINVAL: the wheel has no leases; EBADF; ENODEV.
        """
        return self._run(_answer(TIMEWHEEL_OP_ACK, event))

    def nack(self, event: Event | Token, delay: float | None = None, *,
             at_ns: int | None = None) -> _Told:
        """Tell that a delivery has not been dealt with: its token is due again.

        @event: as of ack()
        @delay: seconds after which it is due; at once without
        @at_ns: instead, when it is due, as a time of the wheel's clock

        A token that is nacked each time comes again without an end: the event tells its
        attempts, and an ack gives it up.

        Errors: those of ack(); OSError with ERANGE.
        """
        if delay is None and at_ns is None:
            delay = 0
        op = _answer(TIMEWHEEL_OP_NACK, event)
        op.time, absolute = _due(delay, at_ns)
        op.flags |= absolute
        return self._run(op)

    def extend(self, event: Event | Token, lease: float = 0) -> _Told:
        """Hold a delivery for longer.

        @event: as of ack()
        @lease: seconds from now after which the lease is over, unless it lasts even
        longer; 0 for the wheel's

        Errors: those of ack(); OSError with ERANGE: that is too far away.
        """
        op = _answer(TIMEWHEEL_OP_EXTEND, event)
        op.time = duration(lease)
        return self._run(op)

    def delete(self, id: int | None = None, *, handle: int | None = None) -> _Told:
        """End a token, whether it is pending or held.

        FileNotFoundError, OSError with ESTALE: there is no such token; EINVAL;
        EBADF; ENODEV.
        """
        return self._run(on_token(TIMEWHEEL_OP_DELETE, id, handle))
