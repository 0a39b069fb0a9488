// SPDX-License-Identifier: GPL-2.0-only

// Tokens: the arguments of each call arrive, and what it tells comes back.
package timewheel

import (
	"math"
	"syscall"
	"testing"
	"time"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// A batch has the operations as the kernel gets them. Due may be left out, and then has a
// meaning of its own.
func TestOperationsOfABatch(t *testing.T) {
	var b Batch
	receipt := Receipt{Handle: 8, Delivery: 9}
	for i, c := range []struct {
		index int
		want  uapi.Op
	}{
		{b.Register(Registration{ID: 1, Due: At(2), Timeout: 3, Period: 4, Cookie: 5}), uapi.Op{
			Flags: uapi.OpfAbsolute, Id: 1, Time: 2, Timeout: 3, Period: 4, Cookie: 5}},
		{b.Register(Registration{Due: After(2), Timeout: 3}), uapi.Op{Time: 2, Timeout: 3}},
		{b.Register(Registration{Timeout: 3}), uapi.Op{Time: 3, Timeout: 3}},
		{b.Register(Registration{Period: 4}), uapi.Op{Time: 4, Period: 4}},
		{b.Register(Registration{Due: After(0), Period: 4}), uapi.Op{Period: 4}},
		{b.Touch(ByID(1)), uapi.Op{Code: uapi.OpTouch, Id: 1}},
		{b.Touch(ByHandle(8)), uapi.Op{Code: uapi.OpTouch, Flags: uapi.OpfByHandle, Handle: 8}},
		{b.TouchOrRegister(1, 2, 5), uapi.Op{Code: uapi.OpTouchOrRegister, Id: 1, Time: 2,
			Cookie: 5}},
		{b.Move(ByHandle(8), At(2), 3), uapi.Op{Code: uapi.OpMove, Handle: 8, Time: 2,
			Flags: uapi.OpfByHandle | uapi.OpfAbsolute, Timeout: 3}},
		{b.Move(ByID(1), When{}, 3), uapi.Op{Code: uapi.OpMove, Id: 1, Time: 3, Timeout: 3}},
		{b.Cancel(ByID(1)), uapi.Op{Code: uapi.OpCancel, Id: 1}},
		{b.Ack(receipt), uapi.Op{Code: uapi.OpAck, Flags: uapi.OpfByHandle, Handle: 8,
			Delivery: 9}},
		{b.Nack(receipt, At(2)), uapi.Op{Code: uapi.OpNack, Handle: 8, Time: 2, Delivery: 9,
			Flags: uapi.OpfByHandle | uapi.OpfAbsolute}},
		{b.Extend(receipt, 2), uapi.Op{Code: uapi.OpExtend, Flags: uapi.OpfByHandle, Handle: 8,
			Time: 2, Delivery: 9}},
		{b.Delete(ByID(1)), uapi.Op{Code: uapi.OpDelete, Id: 1}},
	} {
		c.want.Size = opSize
		same(t, c.index, i)
		same(t, b.ops[i], c.want)
	}
}

// gives takes the outcome of a call. The handle is any if one is wanted, and is returned.
func gives(got Outcome, err error) func(*testing.T, Outcome) Handle {
	return func(t *testing.T, want Outcome) Handle {
		t.Helper()
		ok(t, err)
		if want.Handle != 0 && got.Handle != 0 {
			want.Handle = got.Handle
		}
		same(t, got, want)
		return got.Handle
	}
}

func TestPending(t *testing.T) {
	w := opened(t, manual)
	handle := gives(w.Register(Registration{ID: 7, Due: After(30 * time.Second),
		Cookie: math.MaxUint64}))(t, Outcome{Deadline: 130 * sec, Handle: 1})
	token := must(w.Get(ByID(7)))(t)
	same(t, token, Token{ID: 7, Handle: handle, Cookie: math.MaxUint64, Deadline: 130 * sec,
		Left: 30 * time.Second, Timeout: 30 * time.Second, Slot: 130 % 60, State: Pending})
	same(t, must(w.Get(ByHandle(handle)))(t), token)
	refused(w.Get(ByID(8)))(t, syscall.ENOENT)
	refused(w.Get(ByHandle(1)))(t, syscall.ESTALE)
	refused(w.Register(Registration{ID: 7}))(t, syscall.EEXIST)
	refused(w.Register(Registration{ID: 8, Due: After(-1)}))(t, syscall.ERANGE)

	ok(t, w.Advance(130))
	same(t, must(w.Touch(ByHandle(handle)))(t), true)
	same(t, must(w.Touch(ByID(7)))(t), false)
	refused(w.Touch(ByID(8)))(t, syscall.ENOENT)
	gives(w.TouchOrRegister(8, 30*time.Second, 5))(t,
		Outcome{Deadline: 160 * sec, Registered: true, Handle: 1})
	ok(t, w.Advance(160))
	gives(w.TouchOrRegister(8, 1, 6))(t, Outcome{Deadline: 190 * sec, WasDue: true})
	same(t, must(w.Get(ByID(8)))(t).Cookie, 5)
	gives(w.Move(ByID(7), At(200*sec), 41*time.Second))(t,
		Outcome{Deadline: 200 * sec, WasDue: true})
	same(t, must(w.Get(ByID(7)))(t).Timeout, 41*time.Second)
	refused(w.Move(ByHandle(1), After(time.Second), 0))(t, syscall.ESTALE)
	gives(w.Cancel(ByHandle(handle)))(t, Outcome{Deadline: 200 * sec})
	refused(w.Cancel(ByID(7)))(t, syscall.ENOENT)
}

// The deliveries of a periodic token go on being counted, its attempts begin anew.
func TestHeld(t *testing.T) {
	w := opened(t, manual)
	handle := must(w.Register(Registration{ID: 7, Period: 3 * time.Second, Cookie: 9}))(t).Handle
	event := dueOn(t, w, 103)
	must(w.Ack(event.Receipt()))(t)
	refused(w.Ack(event.Receipt()))(t, syscall.ESTALE)
	event = dueOn(t, w, 116)
	same(t, event, Event{ID: 7, Handle: handle, Cookie: 9, Deadline: 115 * sec,
		Taken: 116 * sec, Delivery: 2, Attempts: 1, Missed: 3})
	token := must(w.Get(ByID(7)))(t)
	same(t, token, Token{ID: 7, Handle: handle, Cookie: 9, LeaseEnd: 126 * sec,
		Left: 10 * time.Second, Period: 3 * time.Second, Base: 115 * sec, Slot: token.Slot,
		State: Held, Delivery: 2, Attempts: 1})
	stats := must(w.Stats())(t)
	same(t, stats.Lateness.Count(), 2)
	gives(w.Extend(event.Receipt(), 30*time.Second))(t, Outcome{Deadline: 146 * sec})
	gives(w.Nack(token.Receipt(), At(120*sec)))(t, Outcome{Deadline: 120 * sec})
	refused(w.Nack(event.Receipt(), At(120*sec)))(t, syscall.ESTALE)
	event = dueOn(t, w, 120)
	same(t, event.Receipt(), Receipt{handle, 3})
	gives(w.Delete(ByID(7)))(t, Outcome{Deadline: 130 * sec})
	refused(w.Delete(ByHandle(handle)))(t, syscall.ESTALE)
}

// The tokens are more than one call takes. What has been carried out is not carried out again.
func TestMany(t *testing.T) {
	const count, gone = 70_000, 69_000
	wheel := opened(t, manual)
	var batch Batch
	ids, handles := make([]uint64, count), make([]Handle, count)
	for i := range ids {
		ids[i] = uint64(i)
		batch.Register(Registration{ID: ids[i], Due: After(time.Duration(1+i) * time.Second)})
	}
	same(t, must(batch.Run(wheel))(t), 0)
	batch.Register(Registration{ID: 1})
	refused(batch.Outcome(count))(t, syscall.EINPROGRESS)
	same(t, must(batch.Run(wheel))(t), 1)
	refused(batch.Outcome(count))(t, syscall.EEXIST)
	for i := range ids {
		handles[i] = must(batch.Outcome(i))(t).Handle
	}
	same(t, must(wheel.TouchIDs(ids))(t), count)
	batch.Reset()
	batch.Cancel(ByID(gone))
	same(t, must(batch.Run(wheel))(t), 0)
	done, err := wheel.TouchIDs(ids)
	fails(t, err, syscall.ENOENT)
	same(t, done, gone)
	done, err = wheel.TouchHandles(handles)
	fails(t, err, syscall.ESTALE)
	same(t, done, gone)
	same(t, must(wheel.Info())(t).Touched, count+2*gone)

	tokens := must(wheel.GetIDs(ids))(t)
	same(t, tokens[gone], Token{})
	same(t, tokens[count-1], must(wheel.Get(ByID(count-1)))(t))
	byHandles := must(wheel.GetHandles(handles))(t)
	listed, expected := make([]Token, count), make([]Token, count)
	copy(expected, tokens[:50_000])
	cursor := wheel.Tokens(101*sec, 50_100*sec)
	for cursor.Next() {
		listed[cursor.Token().ID] = cursor.Token()
	}
	ok(t, cursor.Err())
	for i := range tokens {
		same(t, byHandles[i], tokens[i])
		same(t, listed[i], expected[i])
	}
}

func TestStates(t *testing.T) {
	wheel := opened(t, manual)
	for _, step := range []struct {
		call             func() error
		paused, draining bool
	}{
		{wheel.Drain, false, true}, {wheel.Pause, true, true}, {wheel.Undrain, true, false},
		{wheel.Drain, true, true}, {wheel.Resume, false, true},
	} {
		ok(t, step.call())
		told := must(wheel.Info())(t)
		same(t, [2]bool{told.Paused, told.Draining}, [2]bool{step.paused, step.draining})
	}
	fails(t, opened(t, monotonic).Advance(1), syscall.EINVAL)
}
