# SPDX-License-Identifier: LGPL-2.1-or-later
"""libtimewheel as ctypes sees it: structures, constants and functions.

Named as in <linux/timewheel.h> and <timewheel.h>, which tell what they are;
tests/host.py compares. A structure that grew there grows here by its new fields,
at the end of _fields_.
"""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64
from ctypes import c_size_t, c_ssize_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any, Callable

TIMEWHEEL_CLOCK_MONOTONIC = 0
TIMEWHEEL_CLOCK_BOOTTIME = 1
TIMEWHEEL_CLOCK_REALTIME = 2
TIMEWHEEL_CLOCK_MANUAL = 3

TIMEWHEEL_SETUP_NO_IDS = 1 << 0
TIMEWHEEL_SETUP_NO_COOKIES = 1 << 1
TIMEWHEEL_SETUP_TOUCH_WORDS = 1 << 2
TIMEWHEEL_SETUP_PERIODS = 1 << 3

TIMEWHEEL_CREATE_EXCLUSIVE = 1 << 0
TIMEWHEEL_RES_EXISTED = 1 << 4

TIMEWHEEL_OPF_BY_HANDLE = 1 << 0
TIMEWHEEL_OPF_ABSOLUTE = 1 << 1
TIMEWHEEL_OPF_ANY_FILE = 1 << 2

TIMEWHEEL_RES_WAS_DUE = 1 << 0
TIMEWHEEL_RES_REGISTERED = 1 << 1
TIMEWHEEL_RES_HELD = 1 << 2
TIMEWHEEL_RES_BURIED = 1 << 3

TIMEWHEEL_OP_REGISTER = 0
TIMEWHEEL_OP_TOUCH_OR_REGISTER = 2
TIMEWHEEL_OP_GET = 5
TIMEWHEEL_OP_ACK = 6
TIMEWHEEL_OP_REGISTER_PERIODIC = 12

TIMEWHEEL_STATE_PENDING = 0
TIMEWHEEL_STATE_TAKEN = 1
TIMEWHEEL_STATE_HELD = 2
TIMEWHEEL_STATE_BURIED = 3

TIMEWHEEL_CONTROL_PAUSED = 1 << 0
TIMEWHEEL_CONTROL_DRAINING = 1 << 1

TIMEWHEEL_MAX_BATCH = 65536
TIMEWHEEL_BUCKETS = 252
TIMEWHEEL_NEVER = 2**64 - 1


class timewheel_caps(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("clocks", c_uint32),
        ("setup_flags", c_uint32),
        ("codes", c_uint32),
        ("max_slots", c_uint32),
        ("min_tick", c_uint64),
        ("max_tick", c_uint64),
        ("max_tokens", c_uint64),
        ("max_batch", c_uint32),
        ("op_size", c_uint32),
        ("event_size", c_uint32),
        ("reserved", c_uint32),
    ]


class timewheel_setup(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("clock", c_uint32),
        ("slots", c_uint32),
        ("tick", c_uint64),
        ("max_tokens", c_uint64),
        ("start", c_uint64),
        ("lease", c_uint64),
        ("slack", c_uint64),
        ("max_attempts", c_uint32),
        ("reserved", c_uint32),
    ]


class timewheel_info(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("clock", c_uint32),
        ("slots", c_uint32),
        ("tick", c_uint64),
        ("max_tokens", c_uint64),
        ("setup_flags", c_uint32),
        ("number", c_uint32),
        ("now", c_uint64),
        ("hand", c_uint64),
        ("next", c_uint64),
        ("pending", c_uint64),
        ("taken", c_uint64),
        ("bytes", c_uint64),
        ("registered", c_uint64),
        ("cancelled", c_uint64),
        ("moved", c_uint64),
        ("delivered", c_uint64),
        ("put_back", c_uint64),
        ("refiled", c_uint64),
        ("callbacks", c_uint64),
        ("quiet", c_uint64),
        ("touched", c_uint64),
        ("offset", c_int64),
        ("lease", c_uint64),
        ("slack", c_uint64),
        ("state", c_uint32),
        ("max_attempts", c_uint32),
        ("held", c_uint64),
        ("buried", c_uint64),
        ("acked", c_uint64),
        ("nacked", c_uint64),
        ("lapsed", c_uint64),
        ("returned", c_uint64),
        ("kicked", c_uint64),
        ("deleted", c_uint64),
        ("missed", c_uint64),
    ]


class _cycle_or_period(ctypes.Union):
    _fields_ = [
        ("cycle", c_uint64),
        ("period", c_uint64),
    ]


class timewheel_op(ctypes.Structure):
    _anonymous_ = ("cycle_or_period",)
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("code", c_uint32),
        ("result", c_int32),
        ("id", c_uint64),
        ("handle", c_uint64),
        ("time", c_uint64),
        ("cookie", c_uint64),
        ("deadline", c_uint64),
        ("cycle_or_period", _cycle_or_period),
        ("slot", c_uint32),
        ("lease", c_uint32),
    ]


class timewheel_token(ctypes.Structure):
    _fields_ = [
        ("id", c_uint64),
        ("handle", c_uint64),
        ("cookie", c_uint64),
        ("deadline", c_uint64),
        ("cycle", c_uint64),
        ("slot", c_uint32),
        ("state", c_uint32),
        ("lease", c_uint32),
        ("attempts", c_uint32),
    ]


class timewheel_event(ctypes.Structure):
    _fields_ = [
        ("id", c_uint64),
        ("handle", c_uint64),
        ("cookie", c_uint64),
        ("deadline", c_uint64),
        ("taken", c_uint64),
        ("lease", c_uint32),
        ("missed", c_uint32),
    ]


try:
    _library = ctypes.CDLL("libtimewheel.so.1", use_errno=True)
except OSError as error:
    raise ImportError(str(error)) from error

_Checked = Callable[[Any, Any, tuple[Any, ...]], Any]


def _failed(arguments: tuple[Any, ...]) -> OSError:
    err = ctypes.get_errno()
    # A function that takes a name has it in front.
    names = [os.fsdecode(a) for a in arguments[:1] if isinstance(a, bytes)]
    return OSError(err, os.strerror(err), *names)


def _int(result: int, _function: Any, arguments: tuple[Any, ...]) -> int:
    if result < 0:
        raise _failed(arguments)
    return result


def _pointer(result: Any, _function: Any, arguments: tuple[Any, ...]) -> Any:
    if not result:
        raise _failed(arguments)
    return result


def _declare(name: str, check: _Checked | None, returns: Any, *takes: Any) -> Any:
    """A function that raises OSError when @check says that it failed."""
    function = _library[name]
    function.restype = returns
    function.argtypes = takes
    if check:
        function.errcheck = check
    return function


_wheel = _events = _batch = _cursor = c_void_p
_u64s = POINTER(c_uint64)
_setup = POINTER(timewheel_setup)
_op = POINTER(timewheel_op)

tw_device_caps = _declare(
    "tw_device_caps", _int, c_int, POINTER(timewheel_caps))

tw_wheel_open = _declare("tw_wheel_open", _pointer, c_void_p, _setup)
tw_wheel_open_named = _declare(
    "tw_wheel_open_named", _pointer, c_void_p, c_char_p, c_int)
tw_wheel_open_or_create = _declare(
    "tw_wheel_open_or_create", _pointer, c_void_p, c_char_p, _setup, c_int)
tw_wheel_open_fd = _declare("tw_wheel_open_fd", _pointer, c_void_p, c_int)
tw_wheel_close = _declare("tw_wheel_close", None, None, _wheel)
tw_wheel_fd = _declare("tw_wheel_fd", None, c_int, _wheel)
tw_wheel_create = _declare(
    "tw_wheel_create", _int, c_int, c_char_p, _setup, c_uint)
tw_wheel_destroy = _declare("tw_wheel_destroy", _int, c_int, c_char_p)
tw_wheel_info = _declare(
    "tw_wheel_info", _int, c_int, _wheel, POINTER(timewheel_info))
tw_wheel_advance = _declare("tw_wheel_advance", _int, c_int, _wheel, c_uint64)

tw_wheel_register = _declare(
    "tw_wheel_register", _int, c_int,
    _wheel, c_uint64, c_uint64, c_uint64, c_uint, _u64s)
tw_wheel_register_periodic = _declare(
    "tw_wheel_register_periodic", _int, c_int,
    _wheel, c_uint64, c_uint64, c_uint64, c_uint64, c_uint, _u64s)
tw_wheel_touch = _declare(
    "tw_wheel_touch", _int, c_int, _wheel, c_uint64, c_uint)
tw_wheel_touch_or_register = _declare(
    "tw_wheel_touch_or_register", _int, c_int,
    _wheel, c_uint64, c_uint64, c_uint64, c_uint, _u64s)
tw_wheel_move = _declare(
    "tw_wheel_move", _int, c_int, _wheel, c_uint64, c_uint64, c_uint)
tw_wheel_cancel = _declare(
    "tw_wheel_cancel", _int, c_int, _wheel, c_uint64, c_uint)
tw_wheel_get = _declare(
    "tw_wheel_get", _int, c_int, _wheel, c_uint64, c_uint, _op)

tw_wheel_op = _declare("tw_wheel_op", _int, c_int, _wheel, _op)
tw_wheel_nack = _declare(
    "tw_wheel_nack", _int, c_int, _wheel, c_uint64, c_uint, c_uint32, c_uint64)
tw_wheel_extend = _declare(
    "tw_wheel_extend", _int, c_int, _wheel, c_uint64, c_uint, c_uint32, c_uint64)
tw_wheel_bury = _declare(
    "tw_wheel_bury", _int, c_int, _wheel, c_uint64, c_uint, c_uint32)
tw_wheel_kick = _declare("tw_wheel_kick", _int, c_int, _wheel, c_uint64, c_uint)
tw_wheel_delete = _declare(
    "tw_wheel_delete", _int, c_int, _wheel, c_uint64, c_uint)

tw_wheel_pause = _declare("tw_wheel_pause", _int, c_int, _wheel)
tw_wheel_resume = _declare("tw_wheel_resume", _int, c_int, _wheel)
tw_wheel_drain = _declare("tw_wheel_drain", _int, c_int, _wheel)
tw_wheel_undrain = _declare("tw_wheel_undrain", _int, c_int, _wheel)

tw_events_new = _declare("tw_events_new", _pointer, c_void_p, c_size_t)
tw_events_free = _declare("tw_events_free", None, None, _events)
tw_events_read = _declare(
    "tw_events_read", _int, c_ssize_t, _events, _wheel, c_uint64)
tw_events_at = _declare(
    "tw_events_at", _pointer, POINTER(timewheel_event), _events, c_size_t)

tw_batch_new = _declare("tw_batch_new", _pointer, c_void_p, c_size_t)
tw_batch_free = _declare("tw_batch_free", None, None, _batch)
tw_batch_clear = _declare("tw_batch_clear", None, None, _batch)
tw_batch_register = _declare(
    "tw_batch_register", _int, c_int,
    _batch, c_uint64, c_uint64, c_uint64, c_uint)
tw_batch_touch = _declare(
    "tw_batch_touch", _int, c_int, _batch, c_uint64, c_uint)
tw_batch_touch_or_register = _declare(
    "tw_batch_touch_or_register", _int, c_int,
    _batch, c_uint64, c_uint64, c_uint64, c_uint)
tw_batch_move = _declare(
    "tw_batch_move", _int, c_int, _batch, c_uint64, c_uint64, c_uint)
tw_batch_cancel = _declare(
    "tw_batch_cancel", _int, c_int, _batch, c_uint64, c_uint)
tw_batch_get = _declare("tw_batch_get", _int, c_int, _batch, c_uint64, c_uint)
tw_batch_register_periodic = _declare(
    "tw_batch_register_periodic", _int, c_int,
    _batch, c_uint64, c_uint64, c_uint64, c_uint64, c_uint)
tw_batch_ack = _declare(
    "tw_batch_ack", _int, c_int, _batch, c_uint64, c_uint, c_uint32)
tw_batch_nack = _declare(
    "tw_batch_nack", _int, c_int, _batch, c_uint64, c_uint, c_uint32, c_uint64)
tw_batch_extend = _declare(
    "tw_batch_extend", _int, c_int, _batch, c_uint64, c_uint, c_uint32, c_uint64)
tw_batch_bury = _declare(
    "tw_batch_bury", _int, c_int, _batch, c_uint64, c_uint, c_uint32)
tw_batch_kick = _declare("tw_batch_kick", _int, c_int, _batch, c_uint64, c_uint)
tw_batch_delete = _declare(
    "tw_batch_delete", _int, c_int, _batch, c_uint64, c_uint)
tw_batch_count = _declare("tw_batch_count", None, c_size_t, _batch)
tw_batch_run = _declare("tw_batch_run", _int, c_int, _batch, _wheel)
tw_batch_result = _declare("tw_batch_result", _int, c_int, _batch, c_size_t)
tw_batch_op = _declare("tw_batch_op", _pointer, _op, _batch, c_size_t)

tw_cursor_open = _declare(
    "tw_cursor_open", _pointer, c_void_p, _wheel, c_uint64, c_uint64)
tw_cursor_close = _declare("tw_cursor_close", None, None, _cursor)
tw_cursor_next = _declare(
    "tw_cursor_next", _int, c_int, _cursor, POINTER(POINTER(timewheel_token)))

tw_wheel_stats = _declare("tw_wheel_stats", _int, c_int, _wheel, _u64s, _u64s)
tw_histogram_bounds = _declare(
    "tw_histogram_bounds", _int, c_int, c_uint, _u64s, _u64s)
tw_histogram_percentile = _declare(
    "tw_histogram_percentile", _int, c_int, _u64s, c_double, _u64s)


class Owned:
    """A pointer that the library gave and that is given back to it.

    That is when the last reference to this is gone. A call has one too: so
    whoever closes a wheel or a batch does not take it from under another
    thread that is in a call on it.
    """

    __slots__ = ("_as_parameter_", "_free")

    def __init__(self, pointer: int, free: Callable[[int], None]) -> None:
        self._as_parameter_ = pointer
        self._free = free

    def __del__(self) -> None:
        self._free(self._as_parameter_)
