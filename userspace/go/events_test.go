// SPDX-License-Identifier: GPL-2.0-only

// Events are read, at once and by goroutines that wait, while wheels are used and closed.
package timewheel

import (
	"context"
	"errors"
	"math/rand"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestOrderAndRoom(t *testing.T) {
	wheel := opened(t, manual)
	for id := 1; id <= 6; id++ {
		must(wheel.Register(Registration{ID: uint64(id), Due: At(Time(100+id) * sec)}))(t)
	}
	few := make([]Event, 3)
	same(t, must(wheel.TryRead(few))(t), 0)
	ok(t, wheel.Advance(106))
	same(t, must(wheel.Read(background, few))(t), 3)
	same(t, [3]uint64{few[0].ID, few[1].ID, few[2].ID}, [3]uint64{1, 2, 3})
	same(t, must(wheel.Next(background))(t).ID, 4)
	same(t, must(wheel.TryRead(few))(t), 2)
	same(t, [2]uint64{few[0].ID, few[1].ID}, [2]uint64{5, 6})
	refused(wheel.TryRead(nil))(t, syscall.EINVAL)
}

// reading lets a goroutine wait for an event.
func reading(wheel *Wheel, ctx context.Context) <-chan error {
	over := make(chan error, 1)
	go func() {
		_, err := wheel.Next(ctx)
		over <- err
	}()
	return over
}

// The end of a context ends reads with this context only, in the poller and before their turn
// there, and takes no event.
func TestContextEnds(t *testing.T) {
	wheel := opened(t, manual)
	var ended context.Context
	var cancels []context.CancelFunc
	var waiting []<-chan error
	for i := 0; i < 20; i++ {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		ended, cancels = ctx, append(cancels, cancel)
		waiting = append(waiting, reading(wheel, ctx))
	}
	time.Sleep(10 * time.Millisecond)
	for i := 1; i < 20; i += 2 {
		cancels[i]()
		same(t, <-waiting[i], context.Canceled)
	}
	for i := 0; i < 20; i += 2 {
		must(wheel.Register(Registration{ID: uint64(i)}))(t)
	}
	for i := 0; i < 20; i += 2 {
		ok(t, <-waiting[i])
	}
	same(t, must(wheel.Info())(t).Delivered, 10)
	must(wheel.Register(Registration{ID: 77}))(t)
	same(t, <-reading(wheel, ended), context.Canceled)
	same(t, dueOn(t, wheel, 100).ID, 77)
}

// Goroutines that wait, with and without a context, hear that the wheel is closed or destroyed.
func TestEndsMeanwhile(t *testing.T) {
	name, destroyed := named(t)
	closed := opened(t, manual)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for wheel, want := range map[*Wheel]error{destroyed: syscall.ENODEV, closed: os.ErrClosed} {
		var waiting []<-chan error
		for i := 0; i < 5; i++ {
			waiting = append(waiting, reading(wheel, background), reading(wheel, ctx))
		}
		time.Sleep(10 * time.Millisecond)
		if wheel == closed {
			ok(t, wheel.Close())
		} else {
			ok(t, Destroy(name))
		}
		for _, one := range waiting {
			fails(t, <-one, want)
		}
	}
}

// Each event goes to one of many readers, whose contexts end again and again.
func TestEachEventToOneReader(t *testing.T) {
	const tokens = 5000
	wheel := opened(t, monotonic)
	var events atomic.Int64
	var wait sync.WaitGroup
	all, over := context.WithCancel(background)
	for i := 1; i <= 50; i++ {
		wait.Add(1)
		go func(room []Event) {
			defer wait.Done()
			for all.Err() == nil {
				ctx, cancel := context.WithTimeout(all,
					time.Duration(rand.Intn(5_000_000)))
				n, err := wheel.Read(ctx, room)
				if n == 0 && (err == nil || err != ctx.Err()) {
					t.Error(err)
				}
				cancel()
				events.Add(int64(n))
			}
		}(make([]Event, 1+i%8))
	}
	for id := 0; id < tokens; id++ {
		must(wheel.Register(Registration{ID: uint64(id), Due: After(
			time.Duration(id%20) * time.Millisecond)}))(t)
	}
	waitFor(t, "all events are read", func() bool { return events.Load() >= tokens })
	over()
	wait.Wait()
	same(t, events.Load(), tokens)
	same(t, must(wheel.Info())(t).Delivered, tokens)
}

// A wheel is closed in the middle of calls of all kinds: each call succeeds, or tells that it
// is closed.
func TestClosedInTheMiddle(t *testing.T) {
	for round := 0; round < 20; round++ {
		wheel := opened(t, monotonic)
		var wait sync.WaitGroup
		for _, call := range []func() error{
			func() error { _, err := wheel.Next(background); return err },
			func() error { _, err := wheel.TryRead(make([]Event, 1)); return err },
			func() error { _, err := wheel.TouchOrRegister(7, time.Second, 0); return err },
			func() error { _, err := wheel.Register(Registration{}); return err },
			func() error { _, err := wheel.TouchIDs([]uint64{7}); return err },
			func() error { _, err := wheel.Info(); return err },
		} {
			wait.Add(1)
			go func(call func() error) {
				defer wait.Done()
				err := call()
				for err == nil || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EEXIST) {
					err = call()
				}
				if !errors.Is(err, os.ErrClosed) {
					t.Error(err)
				}
			}(call)
		}
		time.Sleep(time.Duration(round) * 200 * time.Microsecond)
		ok(t, wheel.Close())
		wait.Wait()
	}
}
