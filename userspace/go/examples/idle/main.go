// SPDX-License-Identifier: LGPL-2.1-or-later

// Idle is an echo server that hangs up on clients that have been silent for too long.
//
//	idle PORT SECONDS
//
// One wheel has a token for each client. Each time that a client sends something, the server
// touches the client's token. The server does nothing else about time: it sets no timer and no
// deadline for any client.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

const maxClients = 100_000

// server has clients, and a wheel on which each has a token.
type server struct {
	wheel *timewheel.Wheel
	idle  time.Duration

	mutex   sync.Mutex
	last    uint64
	clients map[uint64]net.Conn
}

// add keeps a client, and returns the id by which its token is known.
func (s *server) add(conn net.Conn) uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.last++
	s.clients[s.last] = conn
	return s.last
}

// remove closes a client, if it is still there.
func (s *server) remove(id uint64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if conn := s.clients[id]; conn != nil {
		conn.Close()
		delete(s.clients, id)
	}
}

// client serves one client, from its first byte to its last.
func (s *server) client(conn net.Conn) {
	id := s.add(conn)
	defer s.remove(id)
	// ENOSPC: there is one client too many, and it is sent away.
	outcome, err := s.wheel.Register(timewheel.Registration{ID: id,
		Due: timewheel.After(s.idle)})
	if err != nil {
		return
	}
	key := timewheel.ByHandle(outcome.Handle)
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			// The client has gone. An error tells that it was silent for too long.
			s.wheel.Cancel(key)
			return
		}
		if _, err := s.wheel.Touch(key); err != nil {
			return
		}
		if _, err := conn.Write(buffer[:n]); err != nil {
			s.wheel.Cancel(key)
			return
		}
	}
}

// hangUp closes clients that have been silent for too long, until ctx ends.
func (s *server) hangUp(ctx context.Context) error {
	events := make([]timewheel.Event, 64)
	for {
		n, err := s.wheel.Read(ctx, events)
		if err != nil {
			return err
		}
		for _, event := range events[:n] {
			s.remove(event.ID)
		}
	}
}

// serve accepts clients until ctx ends.
func serve(ctx context.Context, wheel *timewheel.Wheel, listener net.Listener,
	idle time.Duration) error {
	s := &server{wheel: wheel, idle: idle, clients: map[uint64]net.Conn{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.client(conn)
		}
	}()
	defer listener.Close()
	return s.hangUp(ctx)
}

func run(port string, seconds string) error {
	idle, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return err
	}
	wheel, err := timewheel.Open(timewheel.Setup{Slots: 64, Tick: time.Second / 4,
		MaxTokens: maxClients})
	if err != nil {
		return err
	}
	defer wheel.Close()
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err = serve(ctx, wheel, listener, time.Duration(idle*float64(time.Second)))
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: idle PORT SECONDS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "idle:", err)
		os.Exit(1)
	}
}
