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

    WAS_DUE = _abi.TIMEWHEEL_WAS_DUE
    """The token was past its deadline, but nobody had read it: the operation
    won."""
    REGISTERED = _abi.TIMEWHEEL_REGISTERED
    """touch_or_register() found none and registered one."""


class State(enum.IntEnum):
    """What a token is doing."""

    PENDING = _abi.TIMEWHEEL_PENDING
    """It waits for its deadline, or for a reader."""
    TAKEN = _abi.TIMEWHEEL_TAKEN
    """A reader has taken it and is copying it."""


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
        return u64(at_ns), _abi.TIMEWHEEL_ABSOLUTE
    assert timeout is not None
    return duration(timeout), 0


def key(id: int | None, handle: int | None) -> tuple[int, int]:
    """Key and flags for an operation."""
    if (id is None) == (handle is None):
        raise TypeError("either id or handle has to be given")
    if handle is not None:
        return u64(handle), _abi.TIMEWHEEL_BY_HANDLE
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


def setup_struct(setup: Setup) -> _abi.timewheel_setup:
    flags = 0 if setup.ids else _abi.TIMEWHEEL_NO_IDS
    flags |= 0 if setup.cookies else _abi.TIMEWHEEL_NO_COOKIES
    return _abi.timewheel_setup(
        size=ctypes.sizeof(_abi.timewheel_setup),
        flags=flags,
        clock=u32(setup.clock),
        slots=u32(setup.slots),
        tick=duration(setup.tick),
        max_tokens=u64(setup.max_tokens),
        start=u64(setup.start),
    )


@dataclass(frozen=True, slots=True)
class Event:
    """One expired token."""

    id: int
    """The token's id, 0 on a wheel without ids."""
    handle: int
    """Its handle, no longer valid."""
    cookie: int
    """As registered, 0 on a wheel without cookies."""
    deadline_ns: int
    """Its deadline, a whole tick of the wheel's clock."""
    taken_ns: int
    """The wheel's clock when it was taken for delivery."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token that is pending."""

    id: int
    handle: int
    cookie: int
    deadline_ns: int
    """Its deadline, a whole tick of the wheel's clock."""
    cycle: int
    """Cycle-Num: whole laps that the hand still makes before the lap in which
    it is due."""
    slot: int
    """The slot of the ring in which it will be due."""
    state: State
    left_ns: int | None
    """Time until its deadline, 0 when that has passed; None from tokens()."""


def token_of_op(op: _abi.timewheel_op) -> Token:
    return Token(op.id, op.handle, op.cookie, op.deadline, op.cycle, op.slot,
                 State.PENDING, op.time)


def token_of_list(token: _abi.timewheel_token) -> Token:
    return Token(token.id, token.handle, token.cookie, token.deadline,
                 token.cycle, token.slot, State(token.state), None)


@dataclass(frozen=True, slots=True)
class Caps:
    """What the kernel's module can do, and its limits."""

    clocks: frozenset[Clock]
    ids_optional: bool
    """Wheels without ids may be set up."""
    cookies_optional: bool
    """Wheels without cookies may be set up."""
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
    """Tokens registered and not yet taken or cancelled."""
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
    events: int
    """How many events its event ring holds, for programs in other languages; 0:
    it has none. What has come to the ring cannot be read here: a wheel with one is
    not for ``async for``."""


def info_of(info: _abi.timewheel_info) -> Info:
    return Info(
        clock=Clock(info.clock),
        slots=info.slots,
        tick_ns=info.tick,
        max_tokens=info.max_tokens,
        ids=not info.setup_flags & _abi.TIMEWHEEL_NO_IDS,
        cookies=not info.setup_flags & _abi.TIMEWHEEL_NO_COOKIES,
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
        touch_words=bool(info.setup_flags & _abi.TIMEWHEEL_TOUCH_WORDS),
        events=info.events,
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
