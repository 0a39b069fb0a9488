# SPDX-License-Identifier: LGPL-2.1-or-later
"""The time since data last came in on a TCP connection, whose token nobody has to touch."""

from . import _abi
from ._ops import HasFileno
from ._types import i32


def tcp_idle(socket: int | HasFileno) -> float:
    """Return for how many seconds no data has come in on a TCP connection.

    @socket: the connection, or its fd

    TCP counts in jiffies of at most 10 ms. Keep-alive probes do not count, nor does
    what the program sends.

    OSError with ENOTCONN: the socket is not connected, or its connection has ended;
    EPROTONOSUPPORT: its protocol is not TCP, but MPTCP, say; ENOTSOCK; EBADF.
    """
    fd = i32(socket if isinstance(socket, int) else socket.fileno())
    idle: int = _abi.tw_tcp_idle(fd)
    return idle / 1e9
