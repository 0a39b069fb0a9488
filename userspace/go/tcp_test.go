// SPDX-License-Identifier: GPL-2.0-only

// When data last came in on TCP connections; needs no device.

package timewheel_test

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

const jiffy = 11 * time.Millisecond

func TestTCPIdle(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 2; i++ {
		from := time.Now()
		if _, err := client.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		to := time.Now()
		time.Sleep(60 * time.Millisecond)
		least := time.Since(to) - jiffy
		idle, err := timewheel.TCPIdle(server.(*net.TCPConn))
		if most := time.Since(from) + jiffy; err != nil || idle < least || idle > most {
			t.Fatal(idle, err, least, most)
		}
	}
	server.Close()
	if _, err := timewheel.TCPIdle(server.(*net.TCPConn)); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := timewheel.TCPIdle(listener.(*net.TCPListener)); !errors.Is(err, syscall.ENOTCONN) {
		t.Error(err)
	}
	packets, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	if _, err := timewheel.TCPIdle(packets.(*net.UDPConn)); !errors.Is(err, syscall.EPROTONOSUPPORT) {
		t.Error(err)
	}
}
