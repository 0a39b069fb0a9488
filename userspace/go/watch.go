// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"net/netip"
	"syscall"
	"time"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// Watching describes a token that is to watch a connection.
type Watching struct {
	// ID is a number of the program's choice; 0 on a wheel without ids.
	ID uint64
	// Timeout is the time from the last data of the connection until the token is due.
	Timeout time.Duration
	// Received: only data that the connection receives counts, and its beginning; else
	// also what it sends.
	Received bool
	// Cookie comes back with the token's event; 0 on a wheel without cookies.
	Cookie uint64
}

// Connection is the TCP connection that a token watches.
type Connection struct {
	// Socket is the cookie of its socket, SO_COOKIE.
	Socket uint64
	// Local is its own address and port. This and the fields below are zero for
	// callers in another network namespace without CAP_NET_ADMIN there.
	Local netip.AddrPort
	// Remote is the address and port of its peer.
	Remote netip.AddrPort
	// Interface is the number of the interface that its socket is bound to; else 0.
	Interface uint32
}

func connectionOf(t *uapi.Token) *Connection {
	if t.Socket == 0 {
		return nil
	}
	return &Connection{
		Socket: t.Socket,
		Local:  netip.AddrPortFrom(netip.AddrFrom16(t.Local).Unmap(), t.LocalPort),
		Remote: netip.AddrPortFrom(netip.AddrFrom16(t.Remote).Unmap(),
			t.RemotePort),
		Interface: t.Interface,
	}
}

// Watch makes a token that watches a TCP connection, such as a *net.TCPConn. When it comes
// due, the kernel asks the connection when it last carried data, and waits on if that was
// less than the timeout ago. The token does not hold the connection: the program may close
// it at any time. A token of this id whose connection has ended is replaced.
//
// Errors: EEXIST a token has this id, and its connection has not ended; ENOTCONN the socket
// is not connected, or its connection has ended; EAFNOSUPPORT, EPROTOTYPE, EPROTONOSUPPORT
// it is not one of IPv4 or IPv6, no stream, not TCP but MPTCP, say; EOPNOTSUPP it
// listens; ENOTSOCK it is none; EBUSY a BPF program takes its data; EINVAL the timeout is
// 0, the wheel does not watch, or an id or a cookie on a wheel without them; ENOSPC the
// wheel has MaxTokens tokens, or connections of too many network namespaces are watched;
// ERANGE the timeout is negative, or 2^31 jiffies or more; ESHUTDOWN the wheel is draining.
// If the connection has been closed by the program the error is that of its SyscallConn or
// Control, such as net.ErrClosed.
func (w *Wheel) Watch(conn syscall.Conn, watching Watching) (outcome Outcome, err error) {
	op := opOn(uapi.OpWatch, ByID(watching.ID))
	op.Time = uint64(watching.Timeout)
	op.Cookie = watching.Cookie
	if watching.Received {
		op.Flags |= uapi.OpfReceived
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return Outcome{}, &Error{"watch", err}
	}
	closed := raw.Control(func(fd uintptr) {
		op.Fd = int32(fd)
		outcome, err = w.run(op)
	})
	if closed != nil {
		return Outcome{}, &Error{"watch", closed}
	}
	return outcome, err
}
