# SPDX-License-Identifier: LGPL-2.1-or-later
"""Wheels, opened and used, also with asyncio."""

import asyncio
import ctypes
import os
import time
import warnings
from types import TracebackType
from typing import Iterable, Iterator, NoReturn

from . import _abi, _ops, _uapi
from ._library import Owned
from ._types import Caps, Clock, Event, Histogram, Info, Result, Setup, Stats
from ._types import Token, duration, info_of, result_of, setup_struct, token_of, u64

# The most events in a row before other tasks of the loop have their turn.
_IN_A_ROW = 64

# The most tokens that one call of get_many() tells about.
_AT_ONCE = 1024


def _name_bytes(name: str) -> bytes:
    encoded = os.fsencode(name)
    if b"\0" in encoded:
        raise ValueError("NUL byte in a wheel's name")
    return encoded


def caps() -> Caps:
    """Return the abilities of the kernel's module, and its limits.

    FileNotFoundError, or OSError with ENODEV or ENXIO: the module is not loaded;
    PermissionError: /dev/timewheel may not be opened for reading.
    """
    told = _uapi.timewheel_caps(size=ctypes.sizeof(_uapi.timewheel_caps))
    _abi.tw_device_caps(ctypes.byref(told))
    return Caps(
        clocks=frozenset(c for c in Clock if told.clocks & 1 << c),
        ids_optional=bool(told.setup_flags & _uapi.TIMEWHEEL_SETUP_NO_IDS),
        cookies_optional=bool(told.setup_flags & _uapi.TIMEWHEEL_SETUP_NO_COOKIES),
        leases=bool(told.codes & 1 << _uapi.TIMEWHEEL_OP_ACK),
        periods=bool(told.setup_flags & _uapi.TIMEWHEEL_SETUP_PERIODS),
        max_slots=told.max_slots,
        min_tick_ns=told.min_tick,
        max_tick_ns=told.max_tick,
        max_tokens=told.max_tokens,
        max_word_ticks=told.max_word_ticks,
        max_batch=told.max_batch,
    )


def create(name: str, setup: Setup, *, exclusive: bool = False) -> bool:
    """Make a named wheel, without opening it.

    @name: 1 to 63 ASCII letters, digits, "-" and "_"
    @exclusive: fail if a wheel of this name exists

    The node /dev/timewheels/NAME is there on return, of mode 0600 and the
    caller's. The wheel turns until destroy(), whether a program has it open or not.
    Returns True if the call made the wheel, False if a wheel of this name and with
    the same setup was there.

    FileExistsError: there is one of this name, and the call is exclusive or the
    setup another; those of Wheel.open(); OSError with ENAMETOOLONG, or EINVAL for
    a name with other bytes; ENOTTY: the kernel's module has no named wheels.
    """
    flags = _uapi.TIMEWHEEL_CREATE_EXCLUSIVE if exclusive else 0
    made: int = _abi.tw_wheel_create(
        _name_bytes(name), ctypes.byref(setup_struct(setup)), flags)
    return made != _uapi.TIMEWHEEL_RES_EXISTED


def destroy(name: str) -> None:
    """End a named wheel: its tokens come to nothing.

    Programs that have it open get OSError with ENODEV from now on.

    FileNotFoundError: no wheel of this name; PermissionError: it is not the
    caller's; OSError as create().
    """
    _abi.tw_wheel_destroy(_name_bytes(name))


class Wheel(_ops.Operations[Result]):
    """A wheel that this process has open.

    To be made by open(), open_named(), open_or_create() or open_fd(), and closed
    by close() or as a context manager. It is an iterator of lists of events, each as
    of read(), which waits for each: ``for events in wheel``, ``async for events in
    wheel``. A list has what is due, at most 64 events: so an event costs a small part
    of a system call. The wheel keeps none back: nothing is lost when the loop ends
    after a list, or when its task is cancelled.
    """

    def __init__(self, wheel: Owned) -> None:
        # A number that is no wheel would be taken for an address.
        if not isinstance(wheel, Owned):
            raise TypeError("a wheel is made by Wheel.open() and the like")
        self._wheel: Owned | None = wheel
        # The futures of tasks that wait, in the order of their coming.
        self._waiters: dict[asyncio.AbstractEventLoop,
                            list[asyncio.Future[None]]] = {}
        self._in_a_row = 0

    @classmethod
    def open(cls, setup: Setup, *, process: bool = False) -> "Wheel":
        """Make a private wheel.

        @process: the wheel is kept inside this process, and needs neither the module
        nor a right; so is each wheel with TIMEWHEEL=process in the environment

        Processes share it that get it by fork or as an fd. It ends, with all its
        tokens, when the last of them has closed it. A wheel inside this process is not
        shared.

        FileNotFoundError, or OSError with ENODEV or ENXIO: the module is not
        loaded; PermissionError: /dev/timewheel may not be opened; OSError with
        EINVAL: a value of @setup is outside its range; EDQUOT: the user would have
        more wheels or tokens than a user may; ENOSPC: there would be more than
        there may be in all; ERANGE; EMFILE; ENFILE; ENOMEM; ENOSYS: a process of 32
        bits cannot keep a wheel.
        """
        make = _abi.tw_wheel_open_process if process else _abi.tw_wheel_open
        wheel: int = make(ctypes.byref(setup_struct(setup)))
        return cls(Owned(wheel, _abi.tw_wheel_close))

    @classmethod
    def open_named(cls, name: str, access: int = os.O_RDWR) -> "Wheel":
        """Open a named wheel that exists.

        @access: os.O_RDONLY to read events and to look at tokens, os.O_WRONLY to
        change tokens, os.O_RDWR for both

        FileNotFoundError, or OSError with ENODEV or ENXIO: no wheel of this name;
        PermissionError: it may not be opened so; OSError with EINVAL,
        ENAMETOOLONG, EMFILE, ENFILE, ENOMEM.
        """
        wheel: int = _abi.tw_wheel_open_named(_name_bytes(name), access)
        return cls(Owned(wheel, _abi.tw_wheel_close))

    @classmethod
    def open_or_create(cls, name: str, setup: Setup,
                       access: int = os.O_RDWR) -> "Wheel":
        """Open a named wheel, make it if there is none.

        Errors: those of create() and open_named(). When the call fails, the wheel may have been
        made all the same.
        """
        wheel: int = _abi.tw_wheel_open_or_create(
            _name_bytes(name), ctypes.byref(setup_struct(setup)), access)
        return cls(Owned(wheel, _abi.tw_wheel_close))

    @classmethod
    def open_fd(cls, fd: int) -> "Wheel":
        """Make a wheel of an fd: received from another process, say.

        On success @fd belongs to the wheel, which closes it.

        OSError with EBADF: @fd is not open; ENOTTY: it is no wheel's; EBADFD: it is
        of /dev/timewheel but was not set up; ENODEV; ENOMEM.
        """
        wheel: int = _abi.tw_wheel_open_fd(fd)
        return cls(Owned(wheel, _abi.tw_wheel_close))

    def _opened(self) -> Owned:
        if self._wheel is None:
            raise ValueError("the wheel is closed")
        return self._wheel

    @property
    def closed(self) -> bool:
        return self._wheel is None

    @property
    def in_process(self) -> bool:
        """Whether the wheel is kept inside this process; else the kernel keeps it."""
        return bool(_abi.tw_wheel_is_process(self._opened()))

    def close(self) -> None:
        """Have done with the wheel; more than once does no harm.

        A private wheel ends with its last holder, a named one stays. What was read
        under a lease, and not answered, is due again at once, unless the same open
        file is open elsewhere. The fd is closed when no thread is in a call on it any
        more, one that waits still waits, and no walk by tokens() is under way. A task
        that waits gets ValueError; where tasks wait, this is for their loop's thread
        only.
        """
        wheel = self._wheel
        if wheel is None:
            return
        fd = self.fileno()
        self._wheel = None
        # The fd has to be open still, and @wheel keeps it open.
        for loop, futures in self._waiters.items():
            if not loop.is_closed():
                loop.remove_reader(fd)
                for future in futures:
                    _wake(future)
        self._waiters = {}

    def __enter__(self) -> "Wheel":
        self._opened()
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_wheel", None) is not None:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a wheel cannot be copied or pickled: see open_fd()")

    def __repr__(self) -> str:
        state = "closed" if self._wheel is None else f"fd={self.fileno()}"
        return f"<timewheel.Wheel {state}>"

    def fileno(self) -> int:
        """The wheel's fd, for select and the like: readable while an event is
        there to be read, and of a wheel inside this process maybe sooner, until a
        read. It stays the wheel's: not to be closed."""
        fd: int = _abi.tw_wheel_fd(self._opened())
        return fd

    # Operations

    def _run(self, op: _uapi.timewheel_op) -> Result:
        return result_of(_abi.tw_wheel_run(self._opened(), ctypes.byref(op)))

    def _run_registration(self, op: _uapi.timewheel_op) -> int:
        self._run(op)
        handle: int = op.handle
        return handle

    def touch(self, id: int | None = None, *, handle: int | None = None) -> Result:
        # This is the shortest way. ctypes is faster with a pointer than with its owner.
        key, flags = _ops.key(id, handle)
        wheel = self._opened()
        return result_of(_abi.tw_wheel_touch(wheel._as_parameter_, key, flags))

    # Listing and looking

    def get(self, id: int | None = None, *, handle: int | None = None) -> Token:
        """Tell about a token, whether it is pending or held.

        FileNotFoundError: no token has this id; OSError with ESTALE: no token has
        this handle; EINVAL: the wheel has no ids; ENODEV.
        """
        token = _uapi.timewheel_token()
        _abi.tw_wheel_get(self._opened(), *_ops.key(id, handle), ctypes.byref(token))
        return token_of(token)

    def get_many(self, ids: Iterable[int] | None = None, *,
                 handles: Iterable[int] | None = None) -> list[Token | None]:
        """Tell about many tokens, in the order of the keys; None for a key that names
        no token.

        OSError with EINVAL: the wheel has no ids; ENODEV.
        """
        wheel = self._opened()
        if (ids is None) == (handles is None):
            raise TypeError("either ids or handles have to be given")
        flags = 0 if handles is None else _uapi.TIMEWHEEL_OPF_BY_HANDLE
        keys = [u64(key) for key in (ids if handles is None else handles) or ()]
        found: list[Token | None] = []
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start:start + _AT_ONCE]
            tokens = (_uapi.timewheel_token * len(some))()
            while True:
                try:
                    _abi.tw_wheel_get_many(
                        wheel, (ctypes.c_uint64 * len(some))(*some), len(some), flags,
                        tokens, None)
                    break
                except InterruptedError:
                    pass
            found += [token_of(token) if token.state else None for token in tokens]
        return found

    # Pause and drain, for all processes that have the wheel open

    def pause(self) -> None:
        """Deliver nothing until resume(): reads wait, and so do tokens that fall due.

        OSError with EBADF, ENODEV; as of the other three.
        """
        _abi.tw_wheel_pause(self._opened())

    def resume(self) -> None:
        """End pause(): tokens that fell due meanwhile can be read at once."""
        _abi.tw_wheel_resume(self._opened())

    def drain(self) -> None:
        """Take no new tokens until undrain(): OSError with ESHUTDOWN. A wheel that
        has become empty goes on draining."""
        _abi.tw_wheel_drain(self._opened())

    def undrain(self) -> None:
        """End drain()."""
        _abi.tw_wheel_undrain(self._opened())

    # Events

    def read(self, timeout: float | None = None, maximum: int = 64) -> list[Event]:
        """Read expired tokens, in the order of their due ticks.

        @timeout: longest time in seconds to wait for the first: 0 does not wait,
        None waits as long as it takes
        @maximum: most events to read, 1 or more

        Returns as many as are due, at most @maximum; none when nothing was due in
        time. Each event goes to one reader only, and ends its token, unless the
        wheel has leases or the token is periodic.

        OSError with EBADF, ENODEV: the latter maybe while it waited; EINVAL:
        @maximum is 0; ENOMEM. When a signal's handler raises, events that were
        read by then are gone.
        """
        wheel = self._opened()
        room = Owned(_abi.tw_events_new(u64(maximum)), _abi.tw_events_free)
        left = _uapi.TIMEWHEEL_NEVER if timeout is None else duration(timeout)
        end = time.monotonic_ns() + left
        while True:
            try:
                count: int = _abi.tw_events_read(room, wheel, left)
                break
            except InterruptedError:
                if timeout is not None:
                    left = max(0, end - time.monotonic_ns())
        if not count:
            return []
        events = _abi.tw_events_at(room, 0)
        return [Event(e.id, e.handle, e.cookie, e.deadline, e.taken, e.delivery,
                      e.attempts, e.missed)
                for e in events[:count]]

    def __iter__(self) -> "Wheel":
        return self

    def __next__(self) -> list[Event]:
        return self.read()

    def __aiter__(self) -> "Wheel":
        return self

    async def __anext__(self) -> list[Event]:
        return await self.aread()

    async def aread(self, maximum: int = 64) -> list[Event]:
        """Do what read() does, for tasks, and wait as long as it takes."""
        # There is no await between the read and the return: a task is cancelled either before
        # events were read or after it has got them.
        if self._in_a_row >= _IN_A_ROW:
            self._in_a_row = 0
            await asyncio.sleep(0)
        while not (events := self.read(0, maximum)):
            self._in_a_row = 0
            await self._readable()
        self._in_a_row += len(events)
        return events

    async def _readable(self) -> None:
        """Wait until the wheel is readable, or closed, or maybe for less."""
        loop = asyncio.get_running_loop()
        fd = self.fileno()
        futures = self._waiters.get(loop)
        if futures is None:
            # A loop has room for only one callback per fd, which serves all tasks.
            loop.add_reader(fd, self._wake_one, loop)
            futures = self._waiters[loop] = []
        future = loop.create_future()
        futures.append(future)
        try:
            await future
        finally:
            futures.remove(future)
            if not futures and self._waiters.get(loop) is futures:
                del self._waiters[loop]
                loop.remove_reader(fd)

    def _wake_one(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake a task, as the fd is readable. The loop calls this in each turn while the fd is:
        when the first task has gone, to read or because it was cancelled, the next one is woken."""
        _wake(self._waiters[loop][0])

    def tokens(self, from_ns: int = 0, to_ns: int | None = None) -> Iterator[Token]:
        """All tokens, one after the other, in no order of time.

        @from_ns: only tokens whose deadline or lease's end is this time of the wheel's
        clock or later
        @to_ns: only tokens for which it is this time or earlier; None for all

        A token that is there throughout, pending or held, comes exactly once,
        whatever is done to the wheel meanwhile; one that comes or goes meanwhile at
        most once.

        OSError with EBADF: the wheel was opened for writing only; ENODEV; ENOMEM;
        each may come with any token.
        """
        to = _uapi.TIMEWHEEL_NEVER if to_ns is None else u64(to_ns)
        return _walk(self._opened(), u64(from_ns), to)

    def advance(self, tick: int) -> None:
        """Put the hand of a Clock.MANUAL on @tick, forward or back.

        OSError with EINVAL: the wheel's clock is another; ERANGE; EBADF; ENODEV.
        """
        _abi.tw_wheel_advance(self._opened(), u64(tick))

    def info(self) -> Info:
        """The wheel's settings, state and counters. OSError with ENODEV."""
        told = _uapi.timewheel_info(size=ctypes.sizeof(_uapi.timewheel_info))
        _abi.tw_wheel_info(self._opened(), ctypes.byref(told))
        return info_of(told)

    def stats(self) -> Stats:
        """Return the lateness of the wheel's events. OSError with ENODEV, ENOMEM; ENOTTY: the
        kernel's module has no statistics."""
        lateness = (ctypes.c_uint64 * _uapi.TIMEWHEEL_BUCKETS)()
        _abi.tw_wheel_stats(self._opened(), lateness)
        return Stats(Histogram(tuple(lateness)))


def _wake(future: "asyncio.Future[None]") -> None:
    # The future is done if it was woken or cancelled and its task has not run yet.
    if not future.done():
        future.set_result(None)


def _walk(wheel: Owned, from_: int, to: int) -> Iterator[Token]:
    cursor = Owned(_abi.tw_cursor_open(wheel, from_, to), _abi.tw_cursor_close)
    token = ctypes.POINTER(_uapi.timewheel_token)()
    # The cursor needs the wheel, and @wheel holds it here.
    while _abi.tw_cursor_next(cursor, ctypes.byref(token)):
        yield token_of(token.contents)
