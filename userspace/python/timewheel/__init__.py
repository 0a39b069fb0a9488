# SPDX-License-Identifier: LGPL-2.1-or-later
"""Millions of timeouts behind one file descriptor.

A wheel is a ring of slots turned by a timer in the kernel; a token is one
pending timeout on it. Tokens are registered, touched, moved and cancelled,
singly or in batches; those that expire are read as events::

    import timewheel

    setup = timewheel.Setup(slots=31, tick=1, max_tokens=100_000)
    with timewheel.Wheel.open(setup) as wheel:
        wheel.touch_or_register(user, 30)
        for events in wheel:
            for event in events:
                offline(event.id)

and with asyncio ``async for events in wheel``. Events come in lists: what is due, and
at most 64, by one system call.

A read ends the token of an event. On a wheel with leases it does not: the reader
answers when it has dealt with the event; else the event comes again::

    setup = timewheel.Setup(slots=60, tick=1, max_tokens=100_000, lease=30)
    with timewheel.Wheel.open_or_create("orders", setup) as wheel:
        for events in wheel:
            for event in events:
                remind(event.id)
                wheel.ack(event)

The leases of all events of a list begin together. ``wheel.read(maximum=1)`` is for a
reader that may need most of a lease for one event, and leaves the rest to others.

The token of a TCP connection need not be touched. When it is due, the connection is
asked when data last came in::

    with timewheel.Wheel.open(setup) as wheel:
        wheel.register(client.fileno(), 30)
        for events in wheel:
            for event in events:
                idle = timewheel.tcp_idle(event.id)
                if idle < 30:
                    wheel.register(event.id, 30 - idle)
                else:
                    hang_up(event.id)

Times: durations are given in seconds, int or float, and rounded to the nearest
nanosecond. Times of a wheel's clock, and all times that calls return, are int
nanoseconds and have names that end in _ns. A token is never early: its deadline is
rounded up to a whole tick.

Keys: a token is named by its id, a number from 0 to 2**64-1 of the program's
choice, or by the handle that its registration gave: ``wheel.touch(user)``,
``wheel.touch(handle=handle)``. A handle is good on one wheel only: on another wheel
it is OSError with ESTALE.

Errors: OSError with errno as of the C library's functions, and with the library's
words for it, so for one thing FileNotFoundError (ENOENT): no token of this id is
pending, no wheel of this name, no device; FileExistsError (EEXIST): a token has the
id, the name is in use; PermissionError (EACCES, EPERM). Others are plain OSError; of
those ESTALE: the token of this handle is not pending, or the answer to a delivery
is too late; ESHUTDOWN: the wheel takes no new tokens; ERANGE: a deadline beyond the
last tick or 2**63 ns, or too far ahead for touch words; EINVAL: the kernel does not
take a value, or an operation does not go with the wheel or the token; ENOSPC: the
wheel has its max_tokens tokens; ENOMEM; EBADF: the wheel was opened for reading or
writing only and the call is of the other kind; ENODEV: the wheel was a named one
and has been destroyed. A call that fails has changed nothing. Besides: OverflowError
for a number that C cannot hold, ValueError for a negative duration, a NUL byte in a
name and a wheel that is closed, TypeError.

Kernel or process: where no module can be loaded, as for development and tests, a
process keeps a wheel itself: ``Wheel.open(setup, process=True)``. With
TIMEWHEEL=process in the environment all wheels that the process makes and opens are
such, with the names of named wheels known in this process only, and caps() tells of
them. All works as with a wheel of the kernel, also asyncio, but for what timewheel(7)
tells; most of all: tokens end with the process, a child by fork gets OSError with
ENODEV, and open_fd() takes no fd of such a wheel: OSError with ENOTTY.

Threads: any number of threads may use one wheel at once. A call that waits lets
other threads run. Signals: calls go on after a signal unless its handler raises.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._batch import Batch, Outcome
    from ._tcp import tcp_idle
    from ._types import Caps, Clock, Event, Histogram, Info, Result
    from ._types import Setup, State, Stats, Token
    from ._wheel import Wheel, caps, create, destroy

__all__ = [
    "Batch",
    "Caps",
    "Clock",
    "Event",
    "Histogram",
    "Info",
    "Outcome",
    "Result",
    "Setup",
    "State",
    "Stats",
    "Token",
    "Wheel",
    "caps",
    "create",
    "destroy",
    "tcp_idle",
]


# All of this needs libtimewheel, which is loaded when something is first asked for. So
# timewheel.jobs does without. To type checkers a name that is not there stays an error.
if not TYPE_CHECKING:
    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import _batch, _tcp, _types, _wheel
        for module in _batch, _tcp, _types, _wheel:
            globals().update((n, vars(module)[n]) for n in __all__ if n in vars(module))
        return globals()[name]

    def __dir__():
        return sorted({*globals(), *__all__})
