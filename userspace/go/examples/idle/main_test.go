// SPDX-License-Identifier: GPL-2.0-only

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

// The program of the test is the server, too.
func TestMain(m *testing.M) {
	if os.Getenv("IDLE_AS_A_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pending waits until the wheel has so many tokens.
func pending(t *testing.T, wheel *timewheel.Wheel, count uint64) {
	t.Helper()
	for {
		info, err := wheel.Info()
		ok(t, err)
		if info.Pending == count {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func say(t *testing.T, client net.Conn) {
	t.Helper()
	said, heard := []byte("hello"), make([]byte, 5)
	_, err := client.Write(said)
	ok(t, err)
	_, err = io.ReadFull(client, heard)
	ok(t, err)
}

func hungUp(t *testing.T, client net.Conn) {
	t.Helper()
	if n, err := client.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Fatal(n, err)
	}
}

// The server hangs up on the silent ones of 2,000 clients, and on no other. Only the test
// moves the hand of the wheel, and all times are exact.
func TestTwoThousandClients(t *testing.T) {
	const count, lively = 2000, 50
	wheel, err := timewheel.Open(timewheel.Setup{Clock: timewheel.Manual, Slots: 60,
		Tick: time.Second, MaxTokens: count})
	ok(t, err)
	defer wheel.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var served error
	var wait sync.WaitGroup
	wait.Add(1)
	go func() {
		defer wait.Done()
		served = serve(ctx, wheel, listener, 30*time.Second)
	}()

	var clients []net.Conn
	for i := 0; i < count; i++ {
		client, err := net.Dial("tcp", listener.Addr().String())
		ok(t, err)
		defer client.Close()
		clients = append(clients, client)
	}
	pending(t, wheel, count)
	ok(t, wheel.Advance(29))
	for _, client := range clients[:lively] {
		say(t, client)
	}
	ok(t, wheel.Advance(30))
	for _, client := range clients[lively:] {
		hungUp(t, client)
	}
	for _, client := range clients[:lively] {
		say(t, client)
	}
	// One client leaves by itself: its token is cancelled.
	clients[0].Close()
	pending(t, wheel, lively-1)
	ok(t, wheel.Advance(60))
	for _, client := range clients[1:lively] {
		hungUp(t, client)
	}
	info, err := wheel.Info()
	ok(t, err)
	if info.Delivered != count-1 || info.Cancelled != 1 || info.Touched != 2*lively {
		t.Fatalf("%+v", info)
	}
	stop()
	wait.Wait()
	if !errors.Is(served, context.Canceled) {
		t.Fatal(served)
	}
}

// The program echoes, hangs up, and ends by Ctrl-C.
func TestAsAProgram(t *testing.T) {
	const port = "7008"
	program := exec.Command(os.Args[0], port, "1")
	program.Env = append(os.Environ(), "IDLE_AS_A_PROGRAM=1")
	program.Stderr = os.Stderr
	ok(t, program.Start())
	defer program.Process.Kill()
	client, err := net.Dial("tcp", "127.0.0.1:"+port)
	for err != nil {
		time.Sleep(50 * time.Millisecond)
		client, err = net.Dial("tcp", "127.0.0.1:"+port)
	}
	defer client.Close()
	start := time.Now()
	_, err = client.Write([]byte("hello"))
	ok(t, err)
	// On a slow machine the server may hang up before it has heard anything.
	heard, err := io.ReadAll(client)
	ok(t, err)
	if len(heard) == 0 && time.Since(start) < time.Second || len(heard) > 5 {
		t.Fatalf("%q", heard)
	}
	ok(t, program.Process.Signal(os.Interrupt))
	ok(t, program.Wait())
}
