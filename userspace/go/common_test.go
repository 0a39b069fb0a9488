// SPDX-License-Identifier: GPL-2.0-only

package timewheel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

const sec = timewheel.Time(time.Second)

// manual has its hand on 100, and only the test moves it: all times are exact.
var manual = timewheel.Setup{Clock: timewheel.Manual, Slots: 60, Tick: time.Second,
	MaxTokens: 2000, Start: 100}

var monotonic = timewheel.Setup{Slots: 64, Tick: time.Millisecond, MaxTokens: 100_000}

// with returns manual after a change.
func with(change func(*timewheel.Setup)) timewheel.Setup {
	setup := manual
	change(&setup)
	return setup
}

var background = context.Background()

func after(seconds int) timewheel.When {
	return timewheel.After(time.Duration(seconds) * time.Second)
}

func at(seconds int) timewheel.When {
	return timewheel.At(timewheel.Time(seconds) * sec)
}

// opened makes a private wheel that is closed after the test.
func opened(t *testing.T, setup timewheel.Setup) *timewheel.Wheel {
	t.Helper()
	wheel, err := timewheel.Open(setup)
	ok(t, err)
	t.Cleanup(func() { wheel.Close() })
	return wheel
}

// named makes a named wheel that is destroyed after the test.
func named(t *testing.T, setup timewheel.Setup) (string, *timewheel.Wheel) {
	t.Helper()
	name := fmt.Sprintf("go-%d", os.Getpid())
	wheel, err := timewheel.OpenOrCreate(name, setup)
	ok(t, err)
	t.Cleanup(func() {
		wheel.Close()
		if err := timewheel.Destroy(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	return name, wheel
}

// openedNamed opens another file of a named wheel.
func openedNamed(t *testing.T, name string, access int) *timewheel.Wheel {
	t.Helper()
	wheel, err := timewheel.OpenNamed(name, access)
	ok(t, err)
	t.Cleanup(func() { wheel.Close() })
	return wheel
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails checks that an error is the one that is wanted.
func fails(t *testing.T, err error, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, not %v", err, want)
	}
	var told *timewheel.Error
	if _, errno := want.(syscall.Errno); errno && !errors.As(err, &told) {
		t.Fatalf("%v is of type %T", err, err)
	}
}

// same checks that a result is the one that is wanted.
func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, not %+v", got, want)
	}
}

// register makes a token and returns its handle.
func register(t *testing.T, wheel *timewheel.Wheel, r timewheel.Registration) timewheel.Handle {
	t.Helper()
	outcome, err := wheel.Register(r)
	ok(t, err)
	return outcome.Handle
}

// fill makes the tokens 1 to count, due one second after the other.
func fill(t *testing.T, wheel *timewheel.Wheel, count int) {
	t.Helper()
	var batch timewheel.Batch
	for id := 1; id <= count; id++ {
		batch.Register(timewheel.Registration{ID: uint64(id), Due: after(id)})
	}
	failed, err := batch.Run(wheel)
	ok(t, err)
	same(t, failed, 0)
}

func get(t *testing.T, wheel *timewheel.Wheel, id uint64) timewheel.Token {
	t.Helper()
	token, err := wheel.Get(timewheel.ByID(id))
	ok(t, err)
	return token
}

func info(t *testing.T, wheel *timewheel.Wheel) timewheel.Info {
	t.Helper()
	info, err := wheel.Info()
	ok(t, err)
	return info
}

// due reads what is due.
func due(t *testing.T, wheel *timewheel.Wheel) []timewheel.Event {
	t.Helper()
	events := make([]timewheel.Event, 2000)
	n, err := wheel.TryRead(events)
	ok(t, err)
	return events[:n]
}

func ids(events []timewheel.Event) []uint64 {
	found := []uint64{}
	for _, event := range events {
		found = append(found, event.ID)
	}
	return found
}

// dueOn puts the hand on a tick and reads the one event that is due.
func dueOn(t *testing.T, wheel *timewheel.Wheel, tick uint64) timewheel.Event {
	t.Helper()
	ok(t, wheel.Advance(tick))
	events := due(t, wheel)
	same(t, len(events), 1)
	return events[0]
}

// waitFor waits until a condition is true, by the work of other goroutines.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute still not: %s", what)
		}
	}
}
