# SPDX-License-Identifier: LGPL-2.1-or-later
"""libtimewheel's functions, as ctypes calls them.

They have the names that they have in <timewheel.h>, which describes them;
tests/host.py compares what they take and return. Their structures and constants
are in _uapi.py.
"""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_ssize_t
from ctypes import c_uint, c_uint64, c_void_p
from typing import Any, Callable

from ._uapi import timewheel_caps, timewheel_event, timewheel_info, timewheel_op
from ._uapi import timewheel_setup, timewheel_token

try:
    _library = ctypes.CDLL("libtimewheel.so.1", use_errno=True)
except OSError as error:
    raise ImportError(str(error)) from error

_Checked = Callable[[Any, Any, tuple[Any, ...]], Any]


def _failed(arguments: tuple[Any, ...]) -> OSError:
    err = ctypes.get_errno()
    # A function that takes a name has it in front.
    names = [os.fsdecode(a) for a in arguments[:1] if isinstance(a, bytes)]
    return OSError(err, tw_strerror(err).decode(), *names)


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
_token = POINTER(timewheel_token)

tw_strerror = _declare("tw_strerror", None, c_char_p, c_int)

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

tw_wheel_run = _declare("tw_wheel_run", _int, c_int, _wheel, _op)
tw_wheel_touch = _declare(
    "tw_wheel_touch", _int, c_int, _wheel, c_uint64, c_uint)
tw_wheel_get = _declare(
    "tw_wheel_get", _int, c_int, _wheel, c_uint64, c_uint, _token)
tw_wheel_get_many = _declare(
    "tw_wheel_get_many", _int, c_int,
    _wheel, _u64s, c_size_t, c_uint, _token, POINTER(c_size_t))

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
tw_batch_next = _declare("tw_batch_next", _pointer, _op, _batch)
tw_batch_count = _declare("tw_batch_count", None, c_size_t, _batch)
tw_batch_run = _declare("tw_batch_run", _int, c_int, _batch, _wheel)
tw_batch_result = _declare("tw_batch_result", _int, c_int, _batch, c_size_t)
tw_batch_op = _declare("tw_batch_op", _pointer, _op, _batch, c_size_t)

tw_cursor_open = _declare(
    "tw_cursor_open", _pointer, c_void_p, _wheel, c_uint64, c_uint64)
tw_cursor_close = _declare("tw_cursor_close", None, None, _cursor)
tw_cursor_next = _declare(
    "tw_cursor_next", _int, c_int, _cursor, POINTER(_token))

tw_wheel_stats = _declare("tw_wheel_stats", _int, c_int, _wheel, _u64s, _u64s)
tw_histogram_bounds = _declare(
    "tw_histogram_bounds", _int, c_int, c_uint, _u64s, _u64s)
tw_histogram_percentile = _declare(
    "tw_histogram_percentile", _int, c_int, _u64s, c_double, _u64s)


class Owned:
    """A pointer that the library gave, and that is given back to it when the last
    reference to this object is gone.

    A call has a reference too: a thread that closes a wheel does not take it from
    another thread that is in a call on it.
    """

    __slots__ = ("_as_parameter_", "_free")

    def __init__(self, pointer: int, free: Callable[[int], None]) -> None:
        self._as_parameter_ = pointer
        self._free = free

    def __del__(self) -> None:
        self._free(self._as_parameter_)
