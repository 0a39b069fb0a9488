// SPDX-License-Identifier: GPL-2.0-only

// Events are read, at once and by goroutines that wait.
package timewheel_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

func TestEvent(t *testing.T) {
	wheel := opened(t, manual)
	handle := register(t, wheel, timewheel.Registration{ID: 7, Due: after(30), Cookie: 9})
	same(t, dueOn(t, wheel, 132), timewheel.Event{ID: 7, Handle: handle, Cookie: 9,
		Deadline: 130 * sec, Taken: 132 * sec})
}

func TestOrderAndRoom(t *testing.T) {
	wheel := opened(t, manual)
	fill(t, wheel, 500)
	same(t, len(due(t, wheel)), 0)
	ok(t, wheel.Advance(1000))
	few := make([]timewheel.Event, 3)
	n, err := wheel.Read(background, few)
	ok(t, err)
	same(t, n, 3)
	same(t, ids(few), []uint64{1, 2, 3})
	event, err := wheel.Next(background)
	ok(t, err)
	same(t, event.ID, 4)
	rest := due(t, wheel)
	same(t, len(rest), 496)
	for i, event := range rest {
		same(t, event.ID, uint64(i+5))
	}
	_, err = wheel.TryRead(nil)
	fails(t, err, syscall.EINVAL)
	_, err = wheel.Read(background, nil)
	fails(t, err, syscall.EINVAL)
}

func TestContextIsOver(t *testing.T) {
	wheel := opened(t, manual)
	register(t, wheel, timewheel.Registration{ID: 7})
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err := wheel.Next(ctx)
	fails(t, err, context.Canceled)
	// The event is still there.
	same(t, ids(due(t, wheel)), []uint64{7})
}

func TestContextEnds(t *testing.T) {
	wheel := opened(t, manual)
	start := time.Now()
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	n, err := wheel.Read(ctx, make([]timewheel.Event, 1))
	same(t, n, 0)
	fails(t, err, context.DeadlineExceeded)
	if time.Since(start) < 20*time.Millisecond {
		t.Fatal("it did not wait")
	}
	// The end of one context does not end reads with others.
	for i := 1; i <= 5; i++ {
		register(t, wheel, timewheel.Registration{ID: 7, Due: after(1)})
		one := reading(wheel, background)
		time.Sleep(10 * time.Millisecond)
		ok(t, wheel.Advance(uint64(100+i)))
		ok(t, <-one)
		same(t, info(t, wheel).Delivered, uint64(i))
	}
}

// reading lets a goroutine wait for an event.
func reading(wheel *timewheel.Wheel, ctx context.Context) <-chan error {
	over := make(chan error, 1)
	go func() {
		_, err := wheel.Next(ctx)
		over <- err
	}()
	return over
}

// Each of many goroutines that wait, in the poller and for their turn, hears of its own
// context.
func TestContextsOfMany(t *testing.T) {
	wheel := opened(t, manual)
	var cancels []context.CancelFunc
	var waiting []<-chan error
	for i := 0; i < 20; i++ {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		cancels = append(cancels, cancel)
		waiting = append(waiting, reading(wheel, ctx))
	}
	time.Sleep(10 * time.Millisecond)
	for i := 0; i < 20; i += 2 {
		cancels[i]()
		fails(t, <-waiting[i], context.Canceled)
	}
	fill(t, wheel, 10)
	ok(t, wheel.Advance(110))
	for i := 1; i < 20; i += 2 {
		ok(t, <-waiting[i])
	}
	same(t, info(t, wheel).Delivered, 10)
}

func TestClosedMeanwhile(t *testing.T) {
	for _, pause := range []time.Duration{0, 10 * time.Millisecond} {
		wheel := opened(t, manual)
		var waiting []<-chan error
		for i := 0; i < 5; i++ {
			waiting = append(waiting, reading(wheel, background))
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			waiting = append(waiting, reading(wheel, ctx))
		}
		time.Sleep(pause)
		ok(t, wheel.Close())
		for _, one := range waiting {
			fails(t, <-one, os.ErrClosed)
		}
	}
}

func TestDestroyedMeanwhile(t *testing.T) {
	name, wheel := named(t, manual)
	one, two := reading(wheel, background), reading(wheel, background)
	time.Sleep(10 * time.Millisecond)
	ok(t, timewheel.Destroy(name))
	fails(t, <-one, syscall.ENODEV)
	fails(t, <-two, syscall.ENODEV)
}

func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	ok(t, err)
	return len(tasks)
}

// Goroutines that wait occupy no threads.
func TestWaitWithoutThread(t *testing.T) {
	const wheels = 200
	var waiting []<-chan error
	var opens []*timewheel.Wheel
	for i := 0; i < wheels; i++ {
		wheel := opened(t, manual)
		register(t, wheel, timewheel.Registration{ID: 7, Due: after(1)})
		opens = append(opens, wheel)
		waiting = append(waiting, reading(wheel, background))
	}
	time.Sleep(20 * time.Millisecond)
	if n := threads(t); n > 30 {
		t.Fatalf("%d threads", n)
	}
	for i, wheel := range opens {
		ok(t, wheel.Advance(101))
		ok(t, <-waiting[i])
	}
}

// A wheel that is no longer referred to is closed.
func TestForgotten(t *testing.T) {
	fd := func() int {
		wheel, err := timewheel.Open(manual)
		ok(t, err)
		return fdOf(t, wheel)
	}()
	waitFor(t, "the fd is closed", func() bool {
		runtime.GC()
		var stat syscall.Stat_t
		return errors.Is(syscall.Fstat(fd, &stat), syscall.EBADF)
	})
}
