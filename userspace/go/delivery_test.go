// SPDX-License-Identifier: GPL-2.0-only

// Leases and their answers, periodic tokens, pause and drain.
package timewheel_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

var leased = with(func(s *timewheel.Setup) { s.Lease = 10 * time.Second })

// delivered makes a wheel whose token 7 was read on tick 101.
func delivered(t *testing.T) (*timewheel.Wheel, timewheel.Event) {
	t.Helper()
	wheel := opened(t, leased)
	register(t, wheel, timewheel.Registration{ID: 7, Due: after(1), Cookie: 9})
	return wheel, dueOn(t, wheel, 101)
}

func TestHeld(t *testing.T) {
	wheel, event := delivered(t)
	same(t, event, timewheel.Event{ID: 7, Handle: event.Handle, Cookie: 9,
		Deadline: 101 * sec, Taken: 101 * sec, Delivery: 1, Attempts: 1})
	token := get(t, wheel, 7)
	same(t, token, timewheel.Token{ID: 7, Handle: event.Handle, Cookie: 9,
		LeaseEnd: 111 * sec, Left: 10 * time.Second, Timeout: time.Second,
		Slot: token.Slot, State: timewheel.Held, Delivery: 1, Attempts: 1})
	same(t, token.Receipt(), event.Receipt())
	_, err := wheel.TouchOrRegister(7, time.Second, 0)
	fails(t, err, syscall.EEXIST)
}

func TestAck(t *testing.T) {
	wheel, event := delivered(t)
	outcome, err := wheel.Ack(event.Receipt())
	ok(t, err)
	same(t, outcome, timewheel.Outcome{})
	_, err = wheel.Get(timewheel.ByID(7))
	fails(t, err, syscall.ENOENT)
	_, err = wheel.Ack(event.Receipt())
	fails(t, err, syscall.ESTALE)
	told := info(t, wheel)
	same(t, []uint64{told.Delivered, told.Acked, told.Held}, []uint64{1, 1, 0})
}

func TestNack(t *testing.T) {
	wheel, event := delivered(t)
	_, err := wheel.Nack(event.Receipt(), timewheel.When{})
	ok(t, err)
	event = dueOn(t, wheel, 101)
	same(t, event.Delivery, 2)
	_, err = wheel.Nack(event.Receipt(), timewheel.After(-1))
	fails(t, err, syscall.ERANGE)
	_, err = wheel.Nack(event.Receipt(), at(120))
	ok(t, err)
	event = dueOn(t, wheel, 120)
	same(t, event.Attempts, 3)
	same(t, get(t, wheel, 7).Attempts, 3)
	outcome, err := wheel.Nack(event.Receipt(), after(5))
	ok(t, err)
	same(t, outcome.Deadline, 125*sec)
	token := get(t, wheel, 7)
	same(t, token.State, timewheel.Pending)
	_, err = wheel.Nack(token.Receipt(), after(5))
	fails(t, err, syscall.ESTALE)
	same(t, info(t, wheel).Nacked, 3)
}

func TestExtend(t *testing.T) {
	wheel, event := delivered(t)
	ok(t, wheel.Advance(105))
	outcome, err := wheel.Extend(event.Receipt(), 0)
	ok(t, err)
	same(t, outcome.Deadline, 115*sec)
	_, err = wheel.Extend(event.Receipt(), 30*time.Second)
	ok(t, err)
	same(t, get(t, wheel, 7).LeaseEnd, 135*sec)
	_, err = wheel.Extend(event.Receipt(), 100_000*time.Second)
	ok(t, err)
	// An extension never shortens a lease.
	outcome, err = wheel.Extend(event.Receipt(), time.Second)
	ok(t, err)
	same(t, outcome.Deadline, 100_105*sec)
	same(t, get(t, wheel, 7).LeaseEnd, 100_105*sec)
	_, err = wheel.Extend(event.Receipt(), 1<<63-1)
	fails(t, err, syscall.ERANGE)
}

func TestDelete(t *testing.T) {
	wheel, event := delivered(t)
	_, err := wheel.Delete(timewheel.ByID(7))
	ok(t, err)
	_, err = wheel.Ack(event.Receipt())
	fails(t, err, syscall.ESTALE)
	_, err = wheel.Delete(timewheel.ByID(7))
	fails(t, err, syscall.ENOENT)
	_, err = wheel.Delete(timewheel.ByHandle(event.Handle))
	fails(t, err, syscall.ESTALE)
	same(t, info(t, wheel).Deleted, 1)
}

func TestLeaseOver(t *testing.T) {
	wheel, first := delivered(t)
	second := dueOn(t, wheel, 111)
	same(t, second.Delivery, 2)
	_, err := wheel.Ack(first.Receipt())
	fails(t, err, syscall.ESTALE)
	_, err = wheel.Ack(second.Receipt())
	ok(t, err)
	same(t, info(t, wheel).Lapsed, 1)
}

// A wheel gives back what it holds when it is closed.
func TestGivenBack(t *testing.T) {
	name, wheel := named(t, leased)
	register(t, wheel, timewheel.Registration{ID: 7, Due: after(1)})
	dueOn(t, wheel, 101)
	other := openedNamed(t, name, os.O_RDWR)
	ok(t, wheel.Close())
	same(t, dueOn(t, other, 101).Delivery, 2)
	same(t, info(t, other).Returned, 1)
}

// MaxHeld is MaxTokens unless it is given, but at most 65536; without leases it is 0.
func TestMaxHeldUnlessGiven(t *testing.T) {
	for _, c := range []struct {
		lease           time.Duration
		tokens          uint64
		maxHeld, expect uint32
	}{
		{0, 2000, 0, 0},
		{time.Minute, 2000, 0, 2000},
		{time.Minute, 65537, 0, 65536},
		{time.Minute, 65537, 65537, 65537},
	} {
		wheel := opened(t, with(func(s *timewheel.Setup) {
			s.Lease, s.MaxTokens, s.MaxHeld = c.lease, c.tokens, c.maxHeld
		}))
		same(t, info(t, wheel).Setup.MaxHeld, c.expect)
	}
}

func TestBatchOfAnswers(t *testing.T) {
	wheel := opened(t, leased)
	for id := uint64(1); id <= 4; id++ {
		register(t, wheel, timewheel.Registration{ID: id, Due: after(int(id))})
	}
	ok(t, wheel.Advance(105))
	events := due(t, wheel)
	same(t, ids(events), []uint64{1, 2, 3, 4})
	var batch timewheel.Batch
	batch.Ack(events[0].Receipt())
	batch.Nack(events[1].Receipt(), after(5))
	batch.Extend(events[2].Receipt(), 30*time.Second)
	batch.Delete(timewheel.ByID(4))
	batch.Ack(events[3].Receipt())
	failed, err := batch.Run(wheel)
	ok(t, err)
	same(t, failed, 1)
	_, err = batch.Outcome(4)
	fails(t, err, syscall.ESTALE)
	outcome, err := batch.Outcome(1)
	ok(t, err)
	same(t, outcome.Deadline, 110*sec)
	same(t, get(t, wheel, 3).LeaseEnd, 135*sec)
	told := info(t, wheel)
	same(t, []uint64{told.Acked, told.Nacked, told.Deleted}, []uint64{1, 1, 1})
}

// come tells on which ticks an event came.
func come(t *testing.T, wheel *timewheel.Wheel, from, to uint64) (came []uint64) {
	t.Helper()
	for tick := from; tick <= to; tick++ {
		ok(t, wheel.Advance(tick))
		for range due(t, wheel) {
			came = append(came, tick)
		}
	}
	return came
}

func TestPeriods(t *testing.T) {
	wheel := opened(t, with(func(s *timewheel.Setup) { s.Periods = true }))
	register(t, wheel, timewheel.Registration{ID: 7, Period: 3 * time.Second})
	token := get(t, wheel, 7)
	same(t, token.Period, 3*time.Second)
	same(t, token.Base, 103*sec)
	same(t, come(t, wheel, 100, 110), []uint64{103, 106, 109})
	_, err := wheel.Touch(timewheel.ByID(7))
	fails(t, err, syscall.EINVAL)
	_, err = wheel.Move(timewheel.ByID(7), after(1), time.Second)
	fails(t, err, syscall.EINVAL)
	// One event comes for the last period, and tells how many periods had none.
	event := dueOn(t, wheel, 121)
	same(t, event.Missed, 3)
	same(t, info(t, wheel).Missed, 3)
	_, err = wheel.Cancel(timewheel.ByID(7))
	ok(t, err)
	same(t, len(come(t, wheel, 122, 130)), 0)

	_, err = wheel.Register(timewheel.Registration{Period: time.Second / 2})
	fails(t, err, syscall.EINVAL)
	_, err = wheel.Register(timewheel.Registration{Period: time.Second, Timeout: time.Second})
	fails(t, err, syscall.EINVAL)
	_, err = opened(t, manual).Register(timewheel.Registration{Period: time.Second})
	fails(t, err, syscall.EINVAL)
}

func TestPause(t *testing.T) {
	wheel := opened(t, manual)
	register(t, wheel, timewheel.Registration{ID: 7})
	ok(t, wheel.Pause())
	same(t, info(t, wheel).Paused, true)
	same(t, len(due(t, wheel)), 0)
	ok(t, wheel.Resume())
	same(t, ids(due(t, wheel)), []uint64{7})
	same(t, info(t, wheel).Paused, false)
}

func TestDrain(t *testing.T) {
	wheel := opened(t, manual)
	register(t, wheel, timewheel.Registration{ID: 7})
	ok(t, wheel.Drain())
	same(t, info(t, wheel).Draining, true)
	_, err := wheel.Register(timewheel.Registration{ID: 8})
	fails(t, err, syscall.ESHUTDOWN)
	_, err = wheel.TouchOrRegister(8, time.Second, 0)
	fails(t, err, syscall.ESHUTDOWN)
	_, err = wheel.Move(timewheel.ByID(7), after(1), 0)
	ok(t, err)
	ok(t, wheel.Undrain())
	register(t, wheel, timewheel.Registration{ID: 8})
	same(t, info(t, wheel).Draining, false)
}
