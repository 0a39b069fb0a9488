# SPDX-License-Identifier: LGPL-2.1-or-later
"""What calls on wheels take and return, and how Python's numbers become C's."""

import ctypes
import enum
import operator
from dataclasses import dataclass

from . import _abi


class Clock(enum.IntEnum):
    """What turns a wheel."""

    MONOTONIC = _abi.TIMEWHEEL_CLOCK_MONOTONIC
    """time.CLOCK_MONOTONIC: stands still while the machine is suspended."""
    BOOTTIME = _abi.TIMEWHEEL_CLOCK_BOOTTIME
    """time.CLOCK_BOOTTIME: goes on while suspended; never wakes the machine."""
    REALTIME = _abi.TIMEWHEEL_CLOCK_REALTIME
    """time.CLOCK_REALTIME: wall time, which may be set."""
    MANUAL = _abi.TIMEWHEEL_CLOCK_MANUAL
    """Moves only by Wheel.advance()."""


class Result(enum.IntFlag):
    """How an operation on a token went, besides that it succeeded."""

    WAS_DUE = _abi.TIMEWHEEL_RES_WAS_DUE
    """The token was past its deadline, but nobody had read it: the operation
    won."""
    REGISTERED = _abi.TIMEWHEEL_RES_REGISTERED
    """touch_or_register() found none and registered one."""
    IS_HELD = _abi.TIMEWHEEL_RES_HELD
    """From get(): a delivery of the token is out."""
    IS_BURIED = _abi.TIMEWHEEL_RES_BURIED
    """The token is buried: from get(), and from nack(), which did so."""


class State(enum.IntEnum):
    """What a token is doing."""

    PENDING = _abi.TIMEWHEEL_STATE_PENDING
    """It waits for its deadline, or for a reader."""
    TAKEN = _abi.TIMEWHEEL_STATE_TAKEN
    """A reader has taken it and is copying it."""
    HELD = _abi.TIMEWHEEL_STATE_HELD
    """A delivery of it is out."""
    BURIED = _abi.TIMEWHEEL_STATE_BURIED
    """It is kept aside until kick() or delete()."""


def u32(value: int) -> int:
    """@value, or OverflowError: ctypes would cut off what does not fit."""
    value = operator.index(value)
    if not 0 <= value < 2**32:
        raise OverflowError(f"{value} is not in 0..2**32-1")
    return value


def u64(value: int) -> int:
    value = operator.index(value)
    if not 0 <= value < 2**64:
        raise OverflowError(f"{value} is not in 0..2**64-1")
    return value


def duration(seconds: float) -> int:
    """Nanoseconds, to the nearest: 1.1 is meant to be 1,100,000,000 of them."""
    if seconds < 0:
        raise ValueError(f"duration is negative: {seconds}")
    return u64(round(seconds * 1_000_000_000))


def due(timeout: float | None, at_ns: int | None) -> tuple[int, int]:
    """Time and flags for an operation."""
    if (timeout is None) == (at_ns is None):
        raise TypeError("either timeout or at_ns has to be given")
    if at_ns is not None:
        return u64(at_ns), _abi.TIMEWHEEL_OPF_ABSOLUTE
    assert timeout is not None
    return duration(timeout), 0


def key(id: int | None, handle: int | None) -> tuple[int, int]:
    """Key and flags for an operation."""
    if (id is None) == (handle is None):
        raise TypeError("either id or handle has to be given")
    if handle is not None:
        return u64(handle), _abi.TIMEWHEEL_OPF_BY_HANDLE
    assert id is not None
    return u64(id), 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """How a wheel is to be."""

    slots: int
    """Slots of the ring, 1 to 65536; no power of two needed."""
    tick: float
    """Seconds from one slot to the next: 0.0001 to 86400. A deadline is
    rounded up to a whole tick."""
    max_tokens: int
    """Most tokens at any one time. Memory for them is taken as they come."""
    clock: Clock = Clock.MONOTONIC
    ids: bool = True
    """False: tokens have no id (their id is 0), only the handle that
    register() returns; saves memory."""
    cookies: bool = True
    """False: tokens carry no cookie (it is 0); saves memory."""
    start: int = 0
    """The tick on which the hand of a Clock.MANUAL starts; else 0."""
    lease: float = 0
    """Seconds for which the reader of an event holds its token, and owes an answer;
    0: a read ends tokens."""
    max_attempts: int = 0
    """With a lease: after how many deliveries that were not acked a token is
    buried; 0 for never."""
    periods: bool = False
    """True: tokens may be periodic; costs memory."""
    slack: float = 0
    """Seconds by which the timer may be late, to save interrupts; not with
    Clock.MANUAL."""


def setup_struct(setup: Setup) -> _abi.timewheel_setup:
    flags = 0 if setup.ids else _abi.TIMEWHEEL_SETUP_NO_IDS
    flags |= 0 if setup.cookies else _abi.TIMEWHEEL_SETUP_NO_COOKIES
    flags |= _abi.TIMEWHEEL_SETUP_PERIODS if setup.periods else 0
    return _abi.timewheel_setup(
        size=ctypes.sizeof(_abi.timewheel_setup),
        flags=flags,
        clock=u32(setup.clock),
        slots=u32(setup.slots),
        tick=duration(setup.tick),
        max_tokens=u64(setup.max_tokens),
        start=u64(setup.start),
        lease=duration(setup.lease),
        slack=duration(setup.slack),
        max_attempts=u32(setup.max_attempts),
    )


@dataclass(frozen=True, slots=True)
class Event:
    """One expired token."""

    id: int
    """The token's id, 0 on a wheel without ids."""
    handle: int
    """Its handle, no longer valid if the read has ended the token."""
    cookie: int
    """As registered, 0 on a wheel without cookies."""
    deadline_ns: int
    """Its deadline, a whole tick of the wheel's clock."""
    taken_ns: int
    """The wheel's clock when it was taken for delivery."""
    lease: int
    """The number of this delivery of the token, which an answer names; 0 on a wheel
    without leases."""
    missed: int
    """Of a periodic token: how many of its times, since the event before, have no
    event."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token that is there: pending, held or buried."""

    id: int
    handle: int
    cookie: int
    deadline_ns: int
    """Its deadline, a whole tick of the wheel's clock; when it is held, the end of
    the lease; when it is buried, the time when it was."""
    cycle: int
    """Cycle-Num: whole laps that the hand still makes before the lap in which
    it is due."""
    slot: int
    """The slot of the ring in which it will be due."""
    state: State
    left_ns: int | None
    """Time until its deadline, 0 when that has passed; None from tokens()."""
    lease: int
    """The number of its last delivery, 0 when there was none."""
    attempts: int | None
    """Its deliveries since it was registered, acked or kicked; None from get()."""


def token_of_op(op: _abi.timewheel_op) -> Token:
    state = State.PENDING
    if op.result & _abi.TIMEWHEEL_RES_HELD:
        state = State.HELD
    elif op.result & _abi.TIMEWHEEL_RES_BURIED:
        state = State.BURIED
    return Token(op.id, op.handle, op.cookie, op.deadline, op.cycle, op.slot,
                 state, op.time, op.lease, None)


def token_of_list(token: _abi.timewheel_token) -> Token:
    return Token(token.id, token.handle, token.cookie, token.deadline,
                 token.cycle, token.slot, State(token.state), None, token.lease,
                 token.attempts)


def answer(delivery: Event | Token, any_file: bool) -> tuple[int, int, int]:
    """Key, flags and number of a delivery, for an operation that answers it."""
    flags = _abi.TIMEWHEEL_OPF_ANY_FILE if any_file else 0
    return delivery.handle, flags | _abi.TIMEWHEEL_OPF_BY_HANDLE, delivery.lease


def acking(delivery: Event | Token, timeout: float | None, at_ns: int | None,
           any_file: bool) -> _abi.timewheel_op:
    """An ack; with @timeout or @at_ns the token is due again then."""
    handle, flags, lease = answer(delivery, any_file)
    when = 0
    if timeout is not None or at_ns is not None:
        when, absolute = due(timeout, at_ns)
        # To the kernel a delay of 0 is none: the token would end.
        if not when and not absolute:
            raise ValueError("the timeout of an ack is 0: see nack()")
        flags |= absolute
    return _abi.timewheel_op(
        size=ctypes.sizeof(_abi.timewheel_op), flags=flags,
        code=_abi.TIMEWHEEL_OP_ACK, handle=handle, time=when, lease=lease)


def nacking(delivery: Event | Token, timeout: float | None, at_ns: int | None,
            any_file: bool) -> tuple[int, int, int, int]:
    """As answer(), and when the token is due again."""
    if timeout is None and at_ns is None:
        timeout = 0
    which, flags, lease = answer(delivery, any_file)
    when, absolute = due(timeout, at_ns)
    return which, flags | absolute, lease, when


def burial(delivery: Event | Token, any_file: bool) -> tuple[int, int, int]:
    """As answer(); of what is pending there is no delivery."""
    which, flags, lease = answer(delivery, any_file)
    pending = isinstance(delivery, Token) and delivery.state == State.PENDING
    return which, flags, 0 if pending else lease


def first_due(period: float, timeout: float | None,
              at_ns: int | None) -> tuple[int, int, int]:
    """Time, period and flags of a periodic token."""
    if timeout is None and at_ns is None:
        timeout = period
    when, flags = due(timeout, at_ns)
    return when, duration(period), flags


@dataclass(frozen=True, slots=True)
class Caps:
    """What the kernel's module can do, and its limits."""

    clocks: frozenset[Clock]
    ids_optional: bool
    """Wheels without ids may be set up."""
    cookies_optional: bool
    """Wheels without cookies may be set up."""
    leases: bool
    """Wheels with leases may be set up."""
    periods: bool
    """Wheels with periods may be set up."""
    max_slots: int
    min_tick_ns: int
    max_tick_ns: int
    max_tokens: int
    """Most tokens of one wheel."""
    max_batch: int
    """Most operations of one batch."""


@dataclass(frozen=True, slots=True)
class Info:
    """A wheel's settings, state and counters, all of one moment."""

    clock: Clock
    slots: int
    tick_ns: int
    max_tokens: int
    ids: bool
    cookies: bool
    number: int
    """Names the wheel in traces, /proc/PID/fdinfo and debugfs."""
    now_ns: int
    """The wheel's clock."""
    hand: int
    """The tick on which the hand is."""
    next_ns: int | None
    """Time of the clock at which the wheel next looks for expired tokens; None
    when it is empty."""
    pending: int
    """Tokens that wait for their deadline, or for a reader."""
    taken: int
    """Tokens that readers have taken and are copying."""
    bytes: int
    """Memory that the wheel holds."""
    registered: int
    """Registrations so far; and so on."""
    cancelled: int
    moved: int
    delivered: int
    """Events read."""
    put_back: int
    """Tokens put back by readers whose buffer could not be written."""
    refiled: int
    """Tokens filed again because they had been touched, say."""
    callbacks: int
    """Times that the wheel's timer went off."""
    quiet: int
    """Looks at the ring after such a callback that found no token due."""
    touched: int
    offset_ns: int
    """How far the clock is ahead, in this process's time namespace, of what the
    wheel counts its ticks by."""
    touch_words: bool
    """Tokens have touch words, which programs in other languages map."""
    paused: bool
    draining: bool
    lease_ns: int
    max_attempts: int
    periods: bool
    slack_ns: int
    held: int
    """Tokens of which a delivery is out."""
    buried: int
    acked: int
    nacked: int
    lapsed: int
    """Leases that were over without an answer."""
    returned: int
    """Deliveries that came back when a file was released."""
    kicked: int
    deleted: int
    missed: int
    """Times of periodic tokens that had no event."""


def info_of(info: _abi.timewheel_info) -> Info:
    return Info(
        clock=Clock(info.clock),
        slots=info.slots,
        tick_ns=info.tick,
        max_tokens=info.max_tokens,
        ids=not info.setup_flags & _abi.TIMEWHEEL_SETUP_NO_IDS,
        cookies=not info.setup_flags & _abi.TIMEWHEEL_SETUP_NO_COOKIES,
        number=info.number,
        now_ns=info.now,
        hand=info.hand,
        next_ns=None if info.next == _abi.TIMEWHEEL_NEVER else info.next,
        pending=info.pending,
        taken=info.taken,
        bytes=info.bytes,
        registered=info.registered,
        cancelled=info.cancelled,
        moved=info.moved,
        delivered=info.delivered,
        put_back=info.put_back,
        refiled=info.refiled,
        callbacks=info.callbacks,
        quiet=info.quiet,
        touched=info.touched,
        offset_ns=info.offset,
        touch_words=bool(info.setup_flags & _abi.TIMEWHEEL_SETUP_TOUCH_WORDS),
        paused=bool(info.state & _abi.TIMEWHEEL_CONTROL_PAUSED),
        draining=bool(info.state & _abi.TIMEWHEEL_CONTROL_DRAINING),
        lease_ns=info.lease,
        max_attempts=info.max_attempts,
        periods=bool(info.setup_flags & _abi.TIMEWHEEL_SETUP_PERIODS),
        slack_ns=info.slack,
        held=info.held,
        buried=info.buried,
        acked=info.acked,
        nacked=info.nacked,
        lapsed=info.lapsed,
        returned=info.returned,
        kicked=info.kicked,
        deleted=info.deleted,
        missed=info.missed,
    )


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values, in ns, have been how large."""

    buckets: tuple[int, ...]
    """How many were counted in each bucket; bounds() tells which."""

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self.buckets)

    @staticmethod
    def bounds(bucket: int) -> tuple[int, int]:
        """The least and the greatest value, in ns, that a bucket counts.

        IndexError: there is no such bucket.
        """
        if not 0 <= bucket < _abi.TIMEWHEEL_BUCKETS:
            raise IndexError(f"no bucket {bucket}")
        low, high = ctypes.c_uint64(), ctypes.c_uint64()
        _abi.tw_histogram_bounds(bucket, ctypes.byref(low), ctypes.byref(high))
        return low.value, high.value

    def percentile(self, percent: float) -> int:
        """The value, in ns, that @percent of all do not exceed.

        50 for the median, 99.9, 100 for the greatest; at most a quarter too
        high.

        OSError with ENODATA: nothing was counted; EINVAL: @percent is not
        within 0 and 100.
        """
        buckets = (ctypes.c_uint64 * _abi.TIMEWHEEL_BUCKETS)(*self.buckets)
        value = ctypes.c_uint64()
        _abi.tw_histogram_percentile(buckets, percent, ctypes.byref(value))
        return value.value


@dataclass(frozen=True, slots=True)
class Stats:
    """How late a wheel's events have been."""

    lateness: Histogram
    """Of the events read so far: from the deadline until a reader took the
    token."""
    wake: Histogram
    """Of the times that the wheel's timer went off: from when it should have
    until somebody looked."""
