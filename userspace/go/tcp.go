// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"syscall"
	"time"
	"unsafe"
)

const (
	tcpSynSent = 2
	tcpClose   = 7
	tcpListen  = 10
	// This is the place of tcpi_last_data_recv in struct tcp_info, in words of 32 bits.
	lastDataRecv = 13
)

// TCPIdle tells for how long no data has come in on a TCP connection, such as a
// *net.TCPConn. TCP counts in jiffies of at most 10 ms. Keep-alive probes do not count, nor
// does what the program sends.
//
//	for event := range events {
//		conn := conns[event.ID]
//		if idle, err := timewheel.TCPIdle(conn); err == nil && idle < timeout {
//			wheel.Register(timewheel.Registration{ID: event.ID, Delay: timeout - idle})
//		} else {
//			conn.Close()
//		}
//	}
//
// Errors: ENOTCONN the socket is not connected, or its connection has ended;
// EPROTONOSUPPORT its protocol is not TCP, but MPTCP, say; ENOTSOCK it is none. If the
// program has closed the connection the error is that of its SyscallConn or Control, such as
// net.ErrClosed.
func TCPIdle(conn syscall.Conn) (idle time.Duration, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, &Error{"tcp idle", err}
	}
	closed := raw.Control(func(fd uintptr) { idle, err = tcpIdle(int(fd)) })
	if closed != nil {
		err = closed
	}
	if err != nil {
		return 0, &Error{"tcp idle", err}
	}
	return idle, nil
}

func tcpIdle(fd int) (time.Duration, error) {
	protocol, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_PROTOCOL)
	if err != nil {
		return 0, err
	}
	var info [lastDataRecv + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), syscall.IPPROTO_TCP,
		syscall.TCP_INFO, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	// MPTCP would tell of only one of a connection's paths.
	if protocol != syscall.IPPROTO_TCP || errno != 0 {
		return 0, syscall.EPROTONOSUPPORT
	}
	state := *(*byte)(unsafe.Pointer(&info))
	if state == tcpListen || state == tcpClose || state == tcpSynSent {
		return 0, syscall.ENOTCONN
	}
	return time.Duration(info[lastDataRecv]) * time.Millisecond, nil
}
