// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// Batch collects operations, which Run carries out in the order in which they were added.
//
// Each method that Wheel also has adds an operation, and returns the operation's index. The
// zero value is an empty batch. One goroutine at a time may use a batch.
type Batch struct {
	ops  []uapi.Op
	done int
}

func (b *Batch) add(op uapi.Op) int {
	b.ops = append(b.ops, op)
	return len(b.ops) - 1
}

// Register adds what Wheel.Register does.
func (b *Batch) Register(r Registration) int {
	return b.add(opRegister(r))
}

// Touch adds what Wheel.Touch does.
func (b *Batch) Touch(key Key) int {
	// This does not call add: a program that collects touches does little else.
	b.ops = append(b.ops, uapi.Op{Size: opSize, Code: uapi.OpTouch, Flags: key.flags,
		Id: key.id, Handle: uint64(key.handle)})
	return len(b.ops) - 1
}

// TouchOrRegister adds what Wheel.TouchOrRegister does.
func (b *Batch) TouchOrRegister(id uint64, timeout time.Duration, cookie uint64) int {
	return b.add(opTouchOrRegister(id, timeout, cookie))
}

// Move adds what Wheel.Move does.
func (b *Batch) Move(key Key, due When, timeout time.Duration) int {
	return b.add(opMove(key, due, timeout))
}

// Cancel adds what Wheel.Cancel does.
func (b *Batch) Cancel(key Key) int {
	return b.add(opOn(uapi.OpCancel, key))
}

// Ack adds what Wheel.Ack does.
func (b *Batch) Ack(receipt Receipt) int {
	return b.add(opAnswer(uapi.OpAck, receipt, When{}))
}

// Nack adds what Wheel.Nack does.
func (b *Batch) Nack(receipt Receipt, due When) int {
	return b.add(opAnswer(uapi.OpNack, receipt, due))
}

// Extend adds what Wheel.Extend does.
func (b *Batch) Extend(receipt Receipt, lease time.Duration) int {
	return b.add(opAnswer(uapi.OpExtend, receipt, After(lease)))
}

// Delete adds what Wheel.Delete does.
func (b *Batch) Delete(key Key) int {
	return b.add(opOn(uapi.OpDelete, key))
}

// Len returns how many operations the batch has.
func (b *Batch) Len() int {
	return len(b.ops)
}

// Reset empties the batch, and keeps its memory for the next operations.
func (b *Batch) Reset() {
	b.ops = b.ops[:0]
	b.done = 0
}

// Run carries out the operations that have not been carried out yet, by one system call
// for each 65536 of them. An operation that fails does not end the batch. Run tells how
// many of all operations in the batch have failed; they stay in it with their outcomes
// until Reset.
//
// Errors: EBADF, ENODEV; the rest was not carried out.
func (b *Batch) Run(w *Wheel) (failed int, err error) {
	// A call may end early, after a signal.
	for err == nil && b.done < len(b.ops) {
		batch := uapi.Batch{
			Size:   uint32(unsafe.Sizeof(uapi.Batch{})),
			Ops:    address(unsafe.Pointer(&b.ops[b.done])),
			Count:  atMost(len(b.ops) - b.done),
			OpSize: opSize,
		}
		_, err = w.ioctl("batch", uapi.IocBatch, unsafe.Pointer(&batch))
		runtime.KeepAlive(b.ops)
		b.done += int(batch.Done)
	}
	for i := range b.ops[:b.done] {
		if b.ops[i].Result < 0 {
			failed++
		}
	}
	return failed, err
}

// Outcome tells how the operation of this index went, as the method of Wheel would have
// done. It panics if there is no such operation.
//
// Errors: those of the operation; EINPROGRESS it has not been carried out yet.
func (b *Batch) Outcome(index int) (Outcome, error) {
	op := &b.ops[index]
	if index >= b.done {
		return Outcome{}, &Error{opNames[op.Code], syscall.EINPROGRESS}
	}
	if op.Result < 0 {
		return Outcome{}, &Error{opNames[op.Code], syscall.Errno(-op.Result)}
	}
	return outcomeOf(op), nil
}

// atMost returns as many operations as one call takes.
func atMost(count int) uint32 {
	if count > uapi.MaxBatch {
		return uapi.MaxBatch
	}
	return uint32(count)
}
