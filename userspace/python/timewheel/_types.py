# SPDX-License-Identifier: LGPL-2.1-or-later
"""Types that calls on wheels take and return; also turns Python's numbers into C's."""

import ctypes
import enum
import functools
import operator
from dataclasses import dataclass

from . import _abi, _uapi


class Clock(enum.IntEnum):
    """The clock that turns a wheel."""

    MONOTONIC = _uapi.TIMEWHEEL_CLOCK_MONOTONIC
    """time.CLOCK_MONOTONIC: stands still while the machine is suspended."""
    BOOTTIME = _uapi.TIMEWHEEL_CLOCK_BOOTTIME
    """time.CLOCK_BOOTTIME: goes on while suspended; never wakes the machine."""
    REALTIME = _uapi.TIMEWHEEL_CLOCK_REALTIME
    """time.CLOCK_REALTIME: wall time, which may be set."""
    MANUAL = _uapi.TIMEWHEEL_CLOCK_MANUAL
    """Moves only by Wheel.advance()."""


class Result(enum.IntFlag):
    """Bits that tell how an operation on a token went, besides that it succeeded."""

    WAS_DUE = _uapi.TIMEWHEEL_RES_WAS_DUE
    """The token was past its deadline, but no reader had taken it: the operation
    won."""
    REGISTERED = _uapi.TIMEWHEEL_RES_REGISTERED
    """touch_or_register() found no token and registered one."""


# An enum is slow to make a member of a number.
result_of = functools.cache(Result)


class State(enum.IntEnum):
    """The state of a token."""

    PENDING = _uapi.TIMEWHEEL_STATE_PENDING
    """It waits for its deadline, or for a reader."""
    TAKEN = _uapi.TIMEWHEEL_STATE_TAKEN
    """From tokens(): a reader is copying it."""
    HELD = _uapi.TIMEWHEEL_STATE_HELD
    """A delivery of it is out."""


def u32(value: int) -> int:
    """Return @value, or raise OverflowError: ctypes would cut off a larger number."""
    value = operator.index(value)
    if not 0 <= value < 2**32:
        raise OverflowError(f"{value} is not in 0..2**32-1")
    return value


def i32(value: int) -> int:
    value = operator.index(value)
    if not -2**31 <= value < 2**31:
        raise OverflowError(f"{value} is not in -2**31..2**31-1")
    return value


def u64(value: int) -> int:
    value = operator.index(value)
    if value >> 64:
        raise OverflowError(f"{value} is not in 0..2**64-1")
    return value


def duration(seconds: float) -> int:
    """Return nanoseconds, rounded to the nearest: 1.1 means 1,100,000,000 of them."""
    if seconds < 0:
        raise ValueError(f"duration is negative: {seconds}")
    return u64(round(seconds * 1_000_000_000))


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """The description of a wheel."""

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
    """Seconds for which a reader holds a token that it has read, until it answers;
    0: a read ends tokens."""
    max_held: int = 0
    """With a lease: how many deliveries may be out at once, 1 to max_tokens; what is
    due beyond that waits. Each takes 36 bytes, at once. 0 stands for max_tokens, but at
    most 65536. Without a lease 0."""
    periods: bool = False
    """True: tokens may be periodic; costs memory."""
    slack: float = 0
    """Seconds by which the timer may be late, to save interrupts; not with
    Clock.MANUAL."""


# The most deliveries, unless Setup.max_held is given.
_MOST_HELD = 65536


def setup_struct(setup: Setup) -> _uapi.timewheel_setup:
    flags = 0 if setup.ids else _uapi.TIMEWHEEL_SETUP_NO_IDS
    flags |= 0 if setup.cookies else _uapi.TIMEWHEEL_SETUP_NO_COOKIES
    flags |= _uapi.TIMEWHEEL_SETUP_PERIODS if setup.periods else 0
    lease, max_held = duration(setup.lease), setup.max_held
    if lease and not max_held:
        max_held = min(setup.max_tokens, _MOST_HELD)
    return _uapi.timewheel_setup(
        size=ctypes.sizeof(_uapi.timewheel_setup),
        flags=flags,
        clock=u32(setup.clock),
        slots=u32(setup.slots),
        tick=duration(setup.tick),
        max_tokens=u64(setup.max_tokens),
        start=u64(setup.start),
        lease=lease,
        slack=duration(setup.slack),
        max_held=u32(max_held),
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
    """The wheel's clock when a reader took the token."""
    delivery: int
    """The number of this delivery of the token, which an answer repeats; 0 on a
    wheel without leases."""
    attempts: int
    """Deliveries of the token so far, with this one; of a periodic token those for this
    period; 0 on a wheel without leases."""
    missed: int
    """Of a periodic token: how many periods before this one had no event."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token on a wheel."""

    id: int
    """Its id, 0 on a wheel without ids."""
    handle: int
    cookie: int
    """As registered, 0 on a wheel without cookies."""
    deadline_ns: int
    """Of a pending token: its deadline, a whole tick of the wheel's clock; else 0."""
    lease_end_ns: int
    """Of a held token: when its lease ends; else 0."""
    left_ns: int
    """Time until the deadline or the lease's end, 0 if that has passed."""
    timeout_ns: int
    """Time from a touch to the deadline, 0 if the token cannot be touched."""
    period_ns: int
    """Of a periodic token: time between its deadlines; else 0."""
    base_ns: int
    """Of a periodic token: the deadline, to the ns, of the period that its next event
    is for, or that the delivery which is out is for; else 0."""
    cycle: int
    """Cycle-Num: whole laps that the hand still makes before the lap in which
    it is due."""
    slot: int
    """The slot of the ring in which it will be due."""
    state: State
    delivery: int
    """The number of its last delivery, 0 if there was none."""
    attempts: int
    """Its deliveries since it was registered, or since its period began."""


def token_of(token: _uapi.timewheel_token) -> Token:
    return Token(
        id=token.id,
        handle=token.handle,
        cookie=token.cookie,
        deadline_ns=token.deadline,
        lease_end_ns=token.lease_end,
        left_ns=token.left,
        timeout_ns=token.timeout,
        period_ns=token.period,
        base_ns=token.base,
        cycle=token.cycle,
        slot=token.slot,
        state=State(token.state),
        delivery=token.delivery,
        attempts=token.attempts,
    )


@dataclass(frozen=True, slots=True)
class Caps:
    """The abilities of the kernel's module, and its limits."""

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
    max_word_ticks: int
    """On a wheel with touch words the deadline of a token that has a timeout is less
    than this many ticks ahead."""
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
    max_held: int
    """How many deliveries may be out at once; 0 on a wheel without leases."""
    periods: bool
    slack_ns: int
    held: int
    """Tokens of which a delivery is out."""
    acked: int
    nacked: int
    lapsed: int
    """Leases that were over without an answer."""
    returned: int
    """Deliveries that came back when a file was released."""
    deleted: int
    missed: int
    """Times of periodic tokens that had no event."""


def info_of(info: _uapi.timewheel_info) -> Info:
    return Info(
        clock=Clock(info.clock),
        slots=info.slots,
        tick_ns=info.tick,
        max_tokens=info.max_tokens,
        ids=not info.setup_flags & _uapi.TIMEWHEEL_SETUP_NO_IDS,
        cookies=not info.setup_flags & _uapi.TIMEWHEEL_SETUP_NO_COOKIES,
        number=info.number,
        now_ns=info.now,
        hand=info.hand,
        next_ns=None if info.next == _uapi.TIMEWHEEL_NEVER else info.next,
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
        touch_words=bool(info.setup_flags & _uapi.TIMEWHEEL_SETUP_TOUCH_WORDS),
        paused=bool(info.state & _uapi.TIMEWHEEL_CONTROL_PAUSED),
        draining=bool(info.state & _uapi.TIMEWHEEL_CONTROL_DRAINING),
        lease_ns=info.lease,
        max_held=info.max_held,
        periods=bool(info.setup_flags & _uapi.TIMEWHEEL_SETUP_PERIODS),
        slack_ns=info.slack,
        held=info.held,
        acked=info.acked,
        nacked=info.nacked,
        lapsed=info.lapsed,
        returned=info.returned,
        deleted=info.deleted,
        missed=info.missed,
    )


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values, in ns, by their size."""

    buckets: tuple[int, ...]
    """How many were counted in each bucket; bounds() tells which."""

    @property
    def count(self) -> int:
        """Return how many values were counted."""
        return sum(self.buckets)

    @staticmethod
    def bounds(bucket: int) -> tuple[int, int]:
        """The least and the greatest value, in ns, that a bucket counts.

        IndexError: there is no such bucket.
        """
        if not 0 <= bucket < _uapi.TIMEWHEEL_BUCKETS:
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
        buckets = (ctypes.c_uint64 * _uapi.TIMEWHEEL_BUCKETS)(*self.buckets)
        value = ctypes.c_uint64()
        _abi.tw_histogram_percentile(buckets, percent, ctypes.byref(value))
        return value.value


@dataclass(frozen=True, slots=True)
class Stats:
    """The lateness of a wheel's events."""

    lateness: Histogram
    """Of the events read so far: from the deadline until a reader took the
    token."""
