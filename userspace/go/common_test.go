// SPDX-License-Identifier: GPL-2.0-only

// What the tests share. Promises of the device are tested in C: these tests are about what
// only this package can get wrong.
package timewheel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"
)

const sec = Time(time.Second)

// manual has its hand on 100, and only the test moves it: all times are exact.
var manual = Setup{Clock: Manual, Slots: 60, Tick: time.Second, MaxTokens: 100_000,
	Start: 100, Lease: 10 * time.Second, Periods: true}

var monotonic = Setup{Slots: 64, Tick: time.Millisecond, MaxTokens: 10_000}

var background = context.Background()

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must takes the results of a call that has to succeed.
func must[T any](result T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		ok(t, err)
		return result
	}
}

// fails checks that an error is the one that is wanted, and says which call has failed.
func fails(t *testing.T, err error, want error) {
	t.Helper()
	var told *Error
	if !errors.Is(err, want) || !errors.As(err, &told) {
		t.Fatalf("%v, not %v", err, want)
	}
}

// refused takes the results of a call that has to fail.
func refused[T any](_ T, err error) func(*testing.T, error) {
	return func(t *testing.T, want error) {
		t.Helper()
		fails(t, err, want)
	}
}

func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, not %+v", got, want)
	}
}

// opened makes a private wheel that is closed after the test.
func opened(t *testing.T, setup Setup) *Wheel {
	t.Helper()
	wheel := must(Open(setup))(t)
	t.Cleanup(func() { wheel.Close() })
	return wheel
}

// named makes a named wheel that is destroyed after the test.
func named(t *testing.T) (string, *Wheel) {
	t.Helper()
	name := fmt.Sprintf("go-%d", os.Getpid())
	wheel := must(OpenOrCreate(name, manual))(t)
	t.Cleanup(func() {
		wheel.Close()
		Destroy(name)
	})
	return name, wheel
}

// dueOn puts the hand on a tick and reads the one event that is due.
func dueOn(t *testing.T, wheel *Wheel, tick uint64) Event {
	t.Helper()
	ok(t, wheel.Advance(tick))
	var events [2]Event
	same(t, must(wheel.TryRead(events[:]))(t), 1)
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
