// SPDX-License-Identifier: GPL-2.0-only

// Tokens: what each operation does and tells, and how it fails.
package timewheel_test

import (
	"math"
	"syscall"
	"testing"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

func TestRegisterAndGet(t *testing.T) {
	wheel := opened(t, manual)
	outcome, err := wheel.Register(timewheel.Registration{ID: 7, Due: after(30),
		Cookie: math.MaxUint64})
	ok(t, err)
	same(t, outcome, timewheel.Outcome{Handle: outcome.Handle, Deadline: 130 * sec})
	token := get(t, wheel, 7)
	same(t, token, timewheel.Token{ID: 7, Handle: outcome.Handle, Cookie: math.MaxUint64,
		Deadline: 130 * sec, Left: 30 * time.Second, Timeout: 30 * time.Second,
		Slot: 130 % 60, State: timewheel.Pending})
	again, err := wheel.Get(timewheel.ByHandle(outcome.Handle))
	ok(t, err)
	same(t, again, token)
	_, err = wheel.Register(timewheel.Registration{ID: 7})
	fails(t, err, syscall.EEXIST)
	_, err = wheel.Get(timewheel.ByID(8))
	fails(t, err, syscall.ENOENT)
	_, err = wheel.Get(timewheel.ByHandle(1))
	fails(t, err, syscall.ESTALE)
}

// A Due may be left out, and then has a meaning of its own.
func TestDue(t *testing.T) {
	wheel := opened(t, with(func(s *timewheel.Setup) { s.Periods = true }))
	for id, r := range []timewheel.Registration{
		{},
		{Due: after(5), Timeout: 30 * time.Second},
		{Due: at(105), Timeout: 30 * time.Second},
		{Timeout: 30 * time.Second},
		{Period: 5 * time.Second},
		{Due: after(1), Period: 5 * time.Second},
		{Due: after(0), Period: 5 * time.Second},
		{Due: timewheel.At(110*sec + 1)},
		{Due: timewheel.At(1)},
	} {
		r.ID = uint64(id)
		register(t, wheel, r)
	}
	var deadlines, timeouts []int
	for id := 0; id < 9; id++ {
		token := get(t, wheel, uint64(id))
		deadlines = append(deadlines, int(token.Deadline/sec))
		timeouts = append(timeouts, int(token.Timeout/time.Second))
	}
	same(t, timeouts, []int{0, 30, 30, 30, 0, 0, 0, 0, 0})
	same(t, deadlines[1:6], []int{105, 105, 130, 105, 101})
	same(t, deadlines[7], 111)
	// These tokens are due at once.
	same(t, len(due(t, wheel)), 3)
}

func TestDurationsAreNotNegative(t *testing.T) {
	wheel := opened(t, with(func(s *timewheel.Setup) { s.Periods = true }))
	for _, r := range []timewheel.Registration{
		{Due: timewheel.After(-1)}, {Timeout: -1}, {Due: after(1), Timeout: -1},
		{Due: after(1), Period: -1}, {Due: timewheel.At(1 << 63)},
	} {
		_, err := wheel.Register(r)
		fails(t, err, syscall.ERANGE)
	}
	_, err := wheel.TouchOrRegister(1, -1, 0)
	fails(t, err, syscall.ERANGE)
	register(t, wheel, timewheel.Registration{ID: 7, Due: after(1)})
	_, err = wheel.Move(timewheel.ByID(7), timewheel.After(-1), 0)
	fails(t, err, syscall.ERANGE)
}

func TestTimes(t *testing.T) {
	when := time.Date(2026, 12, 24, 15, 22, 35, 7, time.UTC)
	same(t, timewheel.Wall(when).Wall().UTC(), when)
	same(t, (5 * sec).Add(-2*time.Second), 3*sec)
	same(t, (3 * sec).Sub(5*sec), -2*time.Second)
	wheel := opened(t, timewheel.Setup{Clock: timewheel.Realtime, Slots: 60,
		Tick: time.Second, MaxTokens: 1})
	when = time.Now().Add(time.Hour)
	register(t, wheel, timewheel.Registration{Due: timewheel.At(timewheel.Wall(when))})
	late := get(t, wheel, 0).Deadline.Wall().Sub(when)
	if late < 0 || late >= time.Second {
		t.Fatal(late)
	}
}

func TestTouch(t *testing.T) {
	wheel := opened(t, manual)
	handle := register(t, wheel, timewheel.Registration{ID: 7, Due: after(30)})
	ok(t, wheel.Advance(120))
	wasDue, err := wheel.Touch(timewheel.ByID(7))
	ok(t, err)
	same(t, wasDue, false)
	same(t, get(t, wheel, 7).Left, 30*time.Second)
	ok(t, wheel.Advance(150))
	wasDue, err = wheel.Touch(timewheel.ByHandle(handle))
	ok(t, err)
	same(t, wasDue, true)
	same(t, dueOn(t, wheel, 180).Deadline, 180*sec)
	_, err = wheel.Touch(timewheel.ByID(7))
	fails(t, err, syscall.ENOENT)
	_, err = wheel.Touch(timewheel.ByHandle(handle))
	fails(t, err, syscall.ESTALE)
	register(t, wheel, timewheel.Registration{ID: 7, Due: at(200)})
	_, err = wheel.Touch(timewheel.ByID(7))
	fails(t, err, syscall.EINVAL)
}

func TestTouchMany(t *testing.T) {
	wheel := opened(t, monotonic)
	var batch timewheel.Batch
	var keys []uint64
	var handles []timewheel.Handle
	// The tokens are more than one call takes.
	for id := uint64(0); id < 70_000; id++ {
		keys = append(keys, id)
		batch.Register(timewheel.Registration{ID: id, Due: after(1000)})
	}
	_, err := batch.Run(wheel)
	ok(t, err)
	for index := range keys {
		outcome, err := batch.Outcome(index)
		ok(t, err)
		handles = append(handles, outcome.Handle)
	}
	done, err := wheel.TouchIDs(keys)
	ok(t, err)
	same(t, done, len(keys))
	done, err = wheel.TouchHandles(handles)
	ok(t, err)
	same(t, done, len(keys))
	same(t, info(t, wheel).Touched, 140_000)
	_, err = wheel.Cancel(timewheel.ByID(69_000))
	ok(t, err)
	done, err = wheel.TouchIDs(keys)
	fails(t, err, syscall.ENOENT)
	same(t, done, 69_000)
	done, err = wheel.TouchHandles(handles[69_000:])
	fails(t, err, syscall.ESTALE)
	same(t, done, 0)
	done, err = wheel.TouchIDs(nil)
	ok(t, err)
	same(t, done, 0)
	// One call of GetHandles can get as many.
	tokens, err := wheel.GetHandles(handles)
	ok(t, err)
	same(t, len(tokens), len(handles))
	same(t, tokens[69_000], timewheel.Token{})
	same(t, tokens[69_999].ID, 69_999)
}

func TestTouchOrRegister(t *testing.T) {
	wheel := opened(t, manual)
	outcome, err := wheel.TouchOrRegister(7, 30*time.Second, 5)
	ok(t, err)
	token := get(t, wheel, 7)
	same(t, outcome, timewheel.Outcome{Handle: token.Handle, Deadline: 130 * sec,
		Registered: true})
	ok(t, wheel.Advance(110))
	outcome, err = wheel.TouchOrRegister(7, time.Second, 6)
	ok(t, err)
	same(t, outcome, timewheel.Outcome{Deadline: 140 * sec})
	same(t, get(t, wheel, 7).Cookie, 5)
	ok(t, wheel.Advance(140))
	outcome, err = wheel.TouchOrRegister(7, 30*time.Second, 0)
	ok(t, err)
	same(t, outcome, timewheel.Outcome{Deadline: 170 * sec, WasDue: true})
}

func TestMove(t *testing.T) {
	wheel := opened(t, manual)
	handle := register(t, wheel, timewheel.Registration{ID: 7, Due: after(30)})
	for _, step := range []struct {
		due      timewheel.When
		timeout  int
		deadline timewheel.Time
		becomes  time.Duration
	}{
		{after(10), 0, 110, 10},
		{at(200), 0, 200, 10},
		{after(5), 40, 105, 40},
		{at(107), 41, 107, 41},
		{timewheel.When{}, 42, 142, 42},
	} {
		outcome, err := wheel.Move(timewheel.ByHandle(handle), step.due,
			time.Duration(step.timeout)*time.Second)
		ok(t, err)
		same(t, outcome, timewheel.Outcome{Deadline: step.deadline * sec})
		same(t, get(t, wheel, 7).Timeout, step.becomes*time.Second)
	}
	ok(t, wheel.Advance(142))
	outcome, err := wheel.Move(timewheel.ByID(7), after(1), 0)
	ok(t, err)
	same(t, outcome.WasDue, true)
	_, err = wheel.Move(timewheel.ByID(8), after(1), 0)
	fails(t, err, syscall.ENOENT)
}

func TestCancel(t *testing.T) {
	wheel := opened(t, manual)
	handle := register(t, wheel, timewheel.Registration{ID: 7, Due: after(30)})
	outcome, err := wheel.Cancel(timewheel.ByID(7))
	ok(t, err)
	same(t, outcome, timewheel.Outcome{Deadline: 130 * sec})
	_, err = wheel.Cancel(timewheel.ByID(7))
	fails(t, err, syscall.ENOENT)
	_, err = wheel.Cancel(timewheel.ByHandle(handle))
	fails(t, err, syscall.ESTALE)
	handle = register(t, wheel, timewheel.Registration{ID: 7})
	outcome, err = wheel.Cancel(timewheel.ByHandle(handle))
	ok(t, err)
	same(t, outcome.WasDue, true)
	same(t, len(due(t, wheel)), 0)
}

func TestGetMany(t *testing.T) {
	wheel := opened(t, manual)
	fill(t, wheel, 10)
	tokens, err := wheel.GetIDs([]uint64{7, 0, 3})
	ok(t, err)
	same(t, tokens, []timewheel.Token{get(t, wheel, 7), {}, get(t, wheel, 3)})
	tokens, err = wheel.GetHandles([]timewheel.Handle{tokens[0].Handle, 1})
	ok(t, err)
	same(t, tokens, []timewheel.Token{get(t, wheel, 7), {}})
	tokens, err = wheel.GetIDs(nil)
	ok(t, err)
	same(t, len(tokens), 0)
	tokens, err = wheel.GetHandles(nil)
	ok(t, err)
	same(t, len(tokens), 0)
}

func TestListing(t *testing.T) {
	wheel := opened(t, manual)
	fill(t, wheel, 1500)
	found := map[uint64]timewheel.Token{}
	cursor := wheel.Tokens(0, timewheel.Never)
	for cursor.Next() {
		found[cursor.Token().ID] = cursor.Token()
	}
	ok(t, cursor.Err())
	same(t, cursor.Next(), false)
	same(t, len(found), 1500)
	for id := uint64(1); id <= 1500; id += 100 {
		same(t, found[id], get(t, wheel, id))
	}
	same(t, found[61].Cycle, 1)
	same(t, found[61].Slot, 161%60)
	some := 0
	for cursor := wheel.Tokens(110*sec, 120*sec); cursor.Next(); some++ {
	}
	same(t, some, 11)
	same(t, wheel.Tokens(0, 100*sec).Next(), false)
}

func TestInfo(t *testing.T) {
	wheel := opened(t, manual)
	fill(t, wheel, 5)
	_, err := wheel.Touch(timewheel.ByID(1))
	ok(t, err)
	_, err = wheel.Move(timewheel.ByID(2), after(50), 0)
	ok(t, err)
	_, err = wheel.Cancel(timewheel.ByID(3))
	ok(t, err)
	dueOn(t, wheel, 101)
	told := info(t, wheel)
	same(t, []uint64{told.Registered, told.Touched, told.Moved, told.Cancelled,
		told.Delivered, told.Pending, told.Hand, told.Taken},
		[]uint64{5, 1, 1, 1, 1, 3, 101, 0})
	if told.Next == timewheel.Never || told.Bytes == 0 || told.Number == 0 {
		t.Fatalf("%+v", told)
	}
}

func TestAdvance(t *testing.T) {
	fails(t, opened(t, monotonic).Advance(1), syscall.EINVAL)
	wheel := opened(t, manual)
	fails(t, wheel.Advance(1<<46), syscall.ERANGE)
	ok(t, wheel.Advance(50))
	same(t, info(t, wheel).Hand, 50)
}

// The lateness of a manual wheel is exact: from the deadline to the hand.
func TestStats(t *testing.T) {
	wheel := opened(t, manual)
	fill(t, wheel, 4)
	ok(t, wheel.Advance(104))
	same(t, len(due(t, wheel)), 4)
	stats, err := wheel.Stats()
	ok(t, err)
	same(t, stats.Lateness.Count(), 4)
	least, err := stats.Lateness.Percentile(0)
	ok(t, err)
	same(t, least, 0)
	most, err := stats.Lateness.Percentile(100)
	ok(t, err)
	if most < 3*time.Second || most > 3*time.Second*5/4 {
		t.Fatal(most)
	}
	for _, percent := range []float64{-1, 101, math.NaN()} {
		_, err = stats.Lateness.Percentile(percent)
		fails(t, err, syscall.EINVAL)
	}
	stats, err = opened(t, manual).Stats()
	ok(t, err)
	_, err = stats.Lateness.Percentile(50)
	fails(t, err, syscall.ENODATA)
}

// Each operation of a batch does and tells what the single operation does.
func TestBatch(t *testing.T) {
	wheel := opened(t, manual)
	handle := register(t, wheel, timewheel.Registration{ID: 1, Due: after(10), Cookie: 4})
	var batch timewheel.Batch
	same(t, []int{
		batch.Register(timewheel.Registration{ID: 7, Due: after(30), Cookie: 9}),
		batch.Register(timewheel.Registration{ID: 7, Due: after(30)}),
		batch.Touch(timewheel.ByHandle(handle)),
		batch.TouchOrRegister(8, 5*time.Second, 0),
		batch.TouchOrRegister(8, 5*time.Second, 0),
		batch.Move(timewheel.ByID(1), at(150), 0),
		batch.Cancel(timewheel.ByID(1)),
		batch.Cancel(timewheel.ByHandle(handle)),
	}, []int{0, 1, 2, 3, 4, 5, 6, 7})
	failed, err := batch.Run(wheel)
	ok(t, err)
	same(t, failed, 2)
	same(t, batch.Len(), 8)
	for index, want := range map[int]timewheel.Outcome{
		0: {Handle: get(t, wheel, 7).Handle, Deadline: 130 * sec},
		2: {Deadline: 110 * sec},
		3: {Handle: get(t, wheel, 8).Handle, Deadline: 105 * sec, Registered: true},
		4: {Deadline: 105 * sec},
		5: {Deadline: 150 * sec},
		6: {Deadline: 150 * sec},
	} {
		outcome, err := batch.Outcome(index)
		ok(t, err)
		same(t, outcome, want)
	}
	_, err = batch.Outcome(1)
	fails(t, err, syscall.EEXIST)
	same(t, err.Error()[:len("timewheel: register: ")], "timewheel: register: ")
	_, err = batch.Outcome(7)
	fails(t, err, syscall.ESTALE)
}

func TestBatchGoesOnAndBeginsAnew(t *testing.T) {
	wheel := opened(t, manual)
	var batch timewheel.Batch
	failed, err := batch.Run(wheel)
	ok(t, err)
	same(t, failed, 0)
	batch.Register(timewheel.Registration{ID: 1, Due: after(1)})
	_, err = batch.Outcome(0)
	fails(t, err, syscall.EINPROGRESS)
	_, err = batch.Run(wheel)
	ok(t, err)
	batch.Register(timewheel.Registration{ID: 2, Due: after(1)})
	// An operation that has been carried out is not carried out again: 1 is pending.
	failed, err = batch.Run(wheel)
	ok(t, err)
	same(t, failed, 0)
	same(t, info(t, wheel).Registered, 2)
	batch.Reset()
	same(t, batch.Len(), 0)
	batch.Cancel(timewheel.ByID(1))
	failed, err = batch.Run(wheel)
	ok(t, err)
	same(t, failed, 0)
	same(t, info(t, wheel).Pending, 1)
}
