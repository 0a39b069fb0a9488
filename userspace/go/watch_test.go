// SPDX-License-Identifier: GPL-2.0-only

// Tokens that watch TCP connections: nobody touches, and what cannot be watched is refused.
package timewheel_test

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

const idle = 200 * time.Millisecond

// watching is a wheel that watches, and both ends of a connection.
func watching(t *testing.T, setup timewheel.Setup) (wheel *timewheel.Wheel, client,
	server *net.TCPConn) {
	t.Helper()
	caps, err := timewheel.DeviceCaps()
	ok(t, err)
	if !caps.Watch {
		t.Skip("this kernel has no TCP")
	}
	setup.Watch = true
	client, server = connected(t)
	return opened(t, setup), client, server
}

func connected(t *testing.T) (client, server *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	ok(t, err)
	defer listener.Close()
	one, err := net.Dial("tcp4", listener.Addr().String())
	ok(t, err)
	t.Cleanup(func() { one.Close() })
	other, err := listener.Accept()
	ok(t, err)
	t.Cleanup(func() { other.Close() })
	return one.(*net.TCPConn), other.(*net.TCPConn)
}

func send(t *testing.T, from *net.TCPConn) {
	t.Helper()
	_, err := from.Write([]byte("."))
	ok(t, err)
}

func TestWatchSettings(t *testing.T) {
	setup := monotonic
	setup.TellEnded = true
	_, err := timewheel.Open(setup)
	fails(t, err, syscall.EINVAL)
	wheel, _, _ := watching(t, setup)
	setup.Watch = true
	same(t, info(t, wheel).Setup, setup)
	for _, change := range []func(*timewheel.Setup){
		func(s *timewheel.Setup) { s.Clock = timewheel.Boottime },
		func(s *timewheel.Setup) { s.Lease = time.Second },
		func(s *timewheel.Setup) { s.Periods = true },
		func(s *timewheel.Setup) { s.TouchWords = true },
	} {
		bad := setup
		change(&bad)
		_, err := timewheel.Open(bad)
		fails(t, err, syscall.EINVAL)
	}
}

// Not before the connection has been idle for long enough.
func TestWatchIdle(t *testing.T) {
	wheel, client, server := watching(t, monotonic)
	outcome, err := wheel.Watch(server, timewheel.Watching{ID: 7, Timeout: idle, Cookie: 9})
	ok(t, err)
	same(t, outcome.Handle, get(t, wheel, 7).Handle)
	var before timewheel.Time
	for i := 0; i < 8; i++ {
		before = info(t, wheel).Now
		send(t, client)
		time.Sleep(idle / 4)
		// A machine that is too slow for this says nothing of the wheel.
		if info(t, wheel).Now < before.Add(idle) {
			same(t, len(due(t, wheel)), 0)
		}
	}
	event, err := wheel.Next(background)
	ok(t, err)
	same(t, []uint64{event.ID, event.Cookie}, []uint64{7, 9})
	ok(t, event.Err())
	if event.Taken < before.Add(idle) || info(t, wheel).Asked == 0 {
		t.Fatalf("%+v, data at %d", event, before)
	}
}

// What the connection sends does not count.
func TestWatchReceived(t *testing.T) {
	wheel, client, server := watching(t, monotonic)
	send(t, client)
	_, err := wheel.Watch(server, timewheel.Watching{ID: 7, Timeout: idle, Received: true})
	ok(t, err)
	time.Sleep(idle / 2)
	sent := info(t, wheel).Now
	send(t, server)
	event, err := wheel.Next(background)
	ok(t, err)
	if event.Deadline >= sent.Add(idle) {
		t.Fatalf("%+v, sent at %d", event, sent)
	}
}

func TestWatchToken(t *testing.T) {
	wheel, client, server := watching(t, monotonic)
	_, err := wheel.Watch(server, timewheel.Watching{ID: 7, Timeout: time.Minute})
	ok(t, err)
	found := get(t, wheel, 7).Connection
	same(t, found, &timewheel.Connection{Socket: found.Socket,
		Local:  netip.MustParseAddrPort(server.LocalAddr().String()),
		Remote: netip.MustParseAddrPort(client.LocalAddr().String())})
	register(t, wheel, timewheel.Registration{ID: 8, Due: after(60)})
	same(t, get(t, wheel, 8).Connection, nil)
}

func TestWatchEnded(t *testing.T) {
	wheel, _, server := watching(t, monotonic)
	setup := monotonic
	setup.Watch, setup.TellEnded = true, true
	told := opened(t, setup)
	for _, one := range []*timewheel.Wheel{wheel, told} {
		_, err := one.Watch(server, timewheel.Watching{ID: 7, Timeout: idle})
		ok(t, err)
	}
	ok(t, server.Close())
	event, err := told.Next(background)
	ok(t, err)
	fails(t, &timewheel.Error{Op: "watch", Err: event.Err()}, syscall.ENOTCONN)
	waitFor(t, "the token has ended without an event", func() bool {
		return len(due(t, wheel)) == 0 && info(t, wheel).Ended == 1
	})
	_, err = wheel.Watch(server, timewheel.Watching{ID: 7, Timeout: idle})
	if !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

func TestWatchReplaced(t *testing.T) {
	wheel, _, server := watching(t, monotonic)
	again := timewheel.Watching{ID: 7, Timeout: time.Minute}
	_, err := wheel.Watch(server, again)
	ok(t, err)
	_, err = wheel.Watch(server, again)
	fails(t, err, syscall.EEXIST)
	_, other := connected(t)
	ok(t, server.Close())
	outcome, err := wheel.Watch(other, again)
	ok(t, err)
	same(t, outcome.Replaced, true)
	same(t, outcome.Handle, get(t, wheel, 7).Handle)
}

func TestWatchRefused(t *testing.T) {
	wheel, _, server := watching(t, monotonic)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	ok(t, err)
	defer listener.Close()
	packets, err := net.ListenPacket("udp4", "127.0.0.1:0")
	ok(t, err)
	defer packets.Close()
	local, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	ok(t, err)
	defer local.Close()
	null, err := os.Open("/dev/null")
	ok(t, err)
	defer null.Close()
	for _, one := range []struct {
		what any
		want error
	}{
		{listener, syscall.EOPNOTSUPP},
		{packets, syscall.EPROTOTYPE},
		{local, syscall.EAFNOSUPPORT},
		{null, syscall.ENOTSOCK},
	} {
		_, err := wheel.Watch(one.what.(syscall.Conn), timewheel.Watching{Timeout: idle})
		fails(t, err, one.want)
	}
	for timeout, want := range map[time.Duration]error{
		0: syscall.EINVAL, -1: syscall.ERANGE, 100_000_000 * time.Second: syscall.ERANGE,
	} {
		_, err := wheel.Watch(server, timewheel.Watching{Timeout: timeout})
		fails(t, err, want)
	}
	_, err = opened(t, monotonic).Watch(server, timewheel.Watching{Timeout: idle})
	fails(t, err, syscall.EINVAL)
	same(t, info(t, wheel).Refused, 4)
}
