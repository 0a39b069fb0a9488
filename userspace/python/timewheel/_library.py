# SPDX-License-Identifier: LGPL-2.1-or-later
"""libtimewheel for ctypes.

Its functions are in _abi.py, its structures and constants in _uapi.py, by the names
that they have in the headers, which describe them. userspace/man/generate writes both
files from the headers.
"""

import ctypes
import os
from typing import Any, Callable

try:
    _library = ctypes.CDLL("libtimewheel.so.1", use_errno=True)
except OSError as error:
    raise ImportError(f"{error}: the library is in Debian's package libtimewheel1, "
                      "which \"make deb\" in timewheel's source builds") from error

_Checked = Callable[[Any, Any, tuple[Any, ...]], Any]

_strerror = _library["tw_strerror"]
_strerror.restype = ctypes.c_char_p


def error_of(err: int, *names: str) -> OSError:
    return OSError(err, _strerror(err).decode(), *names)


def _failed(arguments: tuple[Any, ...]) -> OSError:
    # A function that takes a name has the name as its first argument.
    names = [os.fsdecode(a) for a in arguments[:1] if isinstance(a, bytes)]
    return error_of(ctypes.get_errno(), *names)


def failed_if_negative(result: int, _function: Any, arguments: tuple[Any, ...]) -> int:
    if result < 0:
        raise _failed(arguments)
    return result


def failed_if_null(result: Any, _function: Any, arguments: tuple[Any, ...]) -> Any:
    if not result:
        raise _failed(arguments)
    return result


def declare(name: str, check: _Checked | None, returns: Any, *takes: Any) -> Any:
    """Make a function that raises OSError when @check says that the call failed."""
    function = _library[name]
    function.restype = returns
    function.argtypes = takes
    if check:
        function.errcheck = check
    return function


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
