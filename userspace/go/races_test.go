// SPDX-License-Identifier: GPL-2.0-only

// Many goroutines work at once, and each token is accounted for.
package timewheel_test

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

	timewheel "example.org/timewheel.git/userspace/go"
)

// Each event goes to one of many readers, whose contexts end again and again.
func TestEachEventToOneReader(t *testing.T) {
	const readers, tokens = 50, 5000
	wheel := opened(t, monotonic)
	var found sync.Map
	var events, twice atomic.Int64
	var wait sync.WaitGroup
	all, over := context.WithCancel(background)
	for i := 0; i < readers; i++ {
		wait.Add(1)
		go func(seed int64) {
			defer wait.Done()
			random := rand.New(rand.NewSource(seed))
			room := make([]timewheel.Event, 1+random.Intn(8))
			for all.Err() == nil {
				ctx, cancel := context.WithTimeout(all,
					time.Duration(random.Intn(5_000_000)))
				n, err := wheel.Read(ctx, room)
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) &&
					!errors.Is(err, context.Canceled) {
					t.Error(err)
					return
				}
				for _, event := range room[:n] {
					if _, loaded := found.LoadOrStore(event.ID, true); loaded {
						twice.Add(1)
					}
				}
				events.Add(int64(n))
			}
		}(int64(i))
	}
	for id := uint64(0); id < tokens; id++ {
		register(t, wheel, timewheel.Registration{ID: id,
			Due: timewheel.After(time.Duration(id%20) * time.Millisecond)})
	}
	waitFor(t, "all events are read", func() bool { return events.Load() >= tokens })
	over()
	wait.Wait()
	same(t, events.Load(), tokens)
	same(t, twice.Load(), 0)
	told := info(t, wheel)
	same(t, []uint64{told.Delivered, told.Pending}, []uint64{tokens, 0})
}

// tally counts the outcomes of operations and events.
type tally struct {
	registered, cancelled, events atomic.Uint64
}

// change makes random operations on random tokens. An operation that fails does so
// because the token has ended, or has not, for one goroutine or the other.
func (c *tally) change(wheel *timewheel.Wheel, random *rand.Rand) error {
	id := uint64(random.Intn(200))
	key := timewheel.ByID(id)
	delay := time.Duration(random.Intn(3_000_000))
	var err error
	switch random.Intn(5) {
	case 0:
		if _, err = wheel.Register(timewheel.Registration{ID: id,
			Due: timewheel.After(delay)}); err == nil {
			c.registered.Add(1)
		}
	case 1:
		var outcome timewheel.Outcome
		outcome, err = wheel.TouchOrRegister(id, delay+1, 0)
		if outcome.Registered {
			c.registered.Add(1)
		}
	case 2:
		_, err = wheel.Touch(key)
	case 3:
		_, err = wheel.Move(key, timewheel.After(delay), 0)
	case 4:
		if _, err = wheel.Cancel(key); err == nil {
			c.cancelled.Add(1)
		}
	}
	for _, may := range []error{syscall.ENOENT, syscall.EEXIST} {
		if errors.Is(err, may) {
			return nil
		}
	}
	// A token for a delay of 0 has no timeout.
	if errors.Is(err, syscall.EINVAL) && delay == 0 {
		return nil
	}
	return err
}

// Each registration has exactly one end.
func TestEachTokenEndsOnce(t *testing.T) {
	const writers, readers, changes = 16, 4, 2000
	setup := monotonic
	setup.Tick = 100 * time.Microsecond
	wheel := opened(t, setup)
	var count tally
	var writing, reading sync.WaitGroup
	ctx, over := context.WithCancel(background)
	for i := 0; i < readers; i++ {
		reading.Add(1)
		go func() {
			defer reading.Done()
			room := make([]timewheel.Event, 16)
			for {
				n, err := wheel.Read(ctx, room)
				count.events.Add(uint64(n))
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
			}
		}()
	}
	for i := 0; i < writers; i++ {
		writing.Add(1)
		go func(seed int64) {
			defer writing.Done()
			random := rand.New(rand.NewSource(seed))
			for n := 0; n < changes; n++ {
				if err := count.change(wheel, random); err != nil {
					t.Error(err)
					return
				}
			}
		}(int64(i))
	}
	writing.Wait()
	ended := func() uint64 { return count.cancelled.Load() + count.events.Load() }
	waitFor(t, "all tokens have ended", func() bool {
		return t.Failed() || ended() >= count.registered.Load()
	})
	over()
	reading.Wait()
	same(t, ended(), count.registered.Load())
	told := info(t, wheel)
	same(t, []uint64{told.Registered, told.Cancelled, told.Delivered, told.Pending},
		[]uint64{count.registered.Load(), count.cancelled.Load(), count.events.Load(), 0})
}

// A wheel is closed in the middle of calls of all kinds: each call succeeds, or tells that it
// is closed.
func TestClosedInTheMiddle(t *testing.T) {
	for round := int64(0); round < 20; round++ {
		wheel := opened(t, monotonic)
		var count tally
		var wait sync.WaitGroup
		for i := int64(0); i < 8; i++ {
			wait.Add(1)
			go func(seed int64) {
				defer wait.Done()
				random := rand.New(rand.NewSource(seed))
				var err error
				for err == nil {
					if seed%4 == 0 {
						_, err = wheel.Next(background)
					} else {
						err = count.change(wheel, random)
					}
				}
				if !errors.Is(err, os.ErrClosed) {
					t.Error(err)
				}
			}(round*8 + i)
		}
		time.Sleep(time.Duration(round) * 200 * time.Microsecond)
		ok(t, wheel.Close())
		wait.Wait()
	}
}
