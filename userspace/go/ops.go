// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"runtime"
	"time"
	"unsafe"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// Handle names one token of one wheel. On another wheel, and after the token has ended,
// it fails with ESTALE. It is never 0.
type Handle uint64

// Key names a token: ByID or ByHandle.
type Key struct {
	id     uint64
	handle Handle
	flags  uint32
}

// ByID names a token by its id, a number of the program's choice.
func ByID(id uint64) Key {
	return Key{id: id}
}

// ByHandle names a token by the handle that its registration gave.
func ByHandle(handle Handle) Key {
	return Key{handle: handle, flags: uapi.OpfByHandle}
}

// Receipt names a delivery. It is the right to answer it, by any Wheel that is open for
// writing. Event.Receipt makes it; and Token.Receipt, for a program that finds tokens held,
// as one that was started anew.
type Receipt struct {
	// Handle is the token's handle.
	Handle Handle
	// Delivery is the number of the delivery.
	Delivery uint32
}

// Registration describes a token that is to be made.
type Registration struct {
	// ID is any number that no other token of the wheel has; 0 on a wheel without ids.
	ID uint64
	// Due is when the token is due. It may be left out: then the token is due after its
	// Timeout or its Period, or without them at once.
	Due When
	// Timeout is the time from a touch to the deadline. 0 stands for the delay of Due; a
	// token for a point of time, or for a delay of 0, then cannot be touched.
	Timeout time.Duration
	// Period makes the token due again and again, a tick or more after each deadline, to
	// the nanosecond. It ends by Cancel or Delete, and cannot be touched.
	Period time.Duration
	// Cookie comes back with the token's events; 0 on a wheel without cookies.
	Cookie uint64
}

// Outcome tells how an operation went that succeeded.
type Outcome struct {
	// Handle of the token that the operation has registered; else 0.
	Handle Handle
	// Deadline of the token after the operation, a whole tick. From Cancel and Delete
	// it is the deadline before; from Extend, and from Delete of a held token, the end of
	// the lease; from Ack 0.
	Deadline Time
	// WasDue: the token was past its deadline, but no reader had taken it.
	WasDue bool
	// Registered: TouchOrRegister found no token and has registered one.
	Registered bool
}

var opNames = map[uint32]string{
	uapi.OpRegister:        "register",
	uapi.OpTouch:           "touch",
	uapi.OpTouchOrRegister: "touch or register",
	uapi.OpMove:            "move",
	uapi.OpCancel:          "cancel",
	uapi.OpAck:             "ack",
	uapi.OpNack:            "nack",
	uapi.OpExtend:          "extend",
	uapi.OpDelete:          "delete",
}

const opSize = uint32(unsafe.Sizeof(uapi.Op{}))

func opOn(code uint32, key Key) uapi.Op {
	return uapi.Op{Size: opSize, Code: code, Flags: key.flags, Id: key.id,
		Handle: uint64(key.handle)}
}

func opRegister(r Registration) uapi.Op {
	delay := r.Timeout
	if r.Period != 0 {
		delay = r.Period
	}
	due := r.Due.or(delay)
	op := opOn(uapi.OpRegister, ByID(r.ID))
	op.Flags |= due.flags
	op.Time = due.time
	op.Timeout = uint64(r.Timeout)
	op.Period = uint64(r.Period)
	op.Cookie = r.Cookie
	return op
}

func opTouchOrRegister(id uint64, timeout time.Duration, cookie uint64) uapi.Op {
	op := opOn(uapi.OpTouchOrRegister, ByID(id))
	op.Time = uint64(timeout)
	op.Cookie = cookie
	return op
}

func opMove(key Key, due When, timeout time.Duration) uapi.Op {
	due = due.or(timeout)
	op := opOn(uapi.OpMove, key)
	op.Flags |= due.flags
	op.Time = due.time
	op.Timeout = uint64(timeout)
	return op
}

func opAnswer(code uint32, receipt Receipt, due When) uapi.Op {
	op := opOn(code, ByHandle(receipt.Handle))
	op.Delivery = receipt.Delivery
	op.Flags |= due.flags
	op.Time = due.time
	return op
}

func outcomeOf(op *uapi.Op) Outcome {
	result := uint32(op.Result)
	outcome := Outcome{
		WasDue:     result&uapi.ResWasDue != 0,
		Registered: result&uapi.ResRegistered != 0,
		Deadline:   Time(op.Deadline),
	}
	if op.Code == uapi.OpRegister || outcome.Registered {
		outcome.Handle = Handle(op.Handle)
	}
	return outcome
}

func (w *Wheel) run(op uapi.Op) (Outcome, error) {
	if _, err := w.ioctl(opNames[op.Code], uapi.IocOp, unsafe.Pointer(&op)); err != nil {
		return Outcome{}, err
	}
	return outcomeOf(&op), nil
}

// Register makes a token.
//
// Errors: EEXIST a token has this id; EINVAL an id or a cookie on a wheel without them, or
// a period that is shorter than a tick, or is given with a timeout or on a wheel without
// periods; ENOSPC the wheel has MaxTokens tokens; ERANGE a point of time is beyond the
// last tick, or a duration too long; ESHUTDOWN the wheel is draining.
func (w *Wheel) Register(r Registration) (Outcome, error) {
	return w.run(opRegister(r))
}

// Touch makes a token due its whole timeout from now, unless it is due even later. It
// tells whether the token was past its deadline, but no reader had taken it.
//
// Errors: ENOENT no token with this id is pending; ESTALE none with this handle is; EINVAL
// the token has no timeout, or the wheel no ids; ERANGE.
func (w *Wheel) Touch(key Key) (wasDue bool, err error) {
	touch := uapi.Touch{Size: uint32(unsafe.Sizeof(uapi.Touch{})), Flags: key.flags,
		Key: key.id | uint64(key.handle)}
	result, err := w.ioctl("touch", uapi.IocTouch, unsafe.Pointer(&touch))
	return result&uapi.ResWasDue != 0, err
}

// TouchIDs touches many tokens, in order, at a fraction of the cost. The first that cannot
// be touched, ids[done], ends the call with its error; those before it have been touched.
//
// Errors: those of Touch.
func (w *Wheel) TouchIDs(ids []uint64) (done int, err error) {
	for done < len(ids) && err == nil {
		var now int
		now, err = w.touchMany(unsafe.Pointer(&ids[done]), len(ids)-done, 0)
		done += now
	}
	return done, err
}

// TouchHandles touches by handles, as TouchIDs does by ids.
func (w *Wheel) TouchHandles(handles []Handle) (done int, err error) {
	for done < len(handles) && err == nil {
		var now int
		now, err = w.touchMany(unsafe.Pointer(&handles[done]), len(handles)-done,
			uapi.OpfByHandle)
		done += now
	}
	return done, err
}

// touchMany may end early without an error, after a signal, or after as many keys as a call
// takes.
func (w *Wheel) touchMany(keys unsafe.Pointer, count int, flags uint32) (int, error) {
	touch := uapi.TouchMany{
		Size:  uint32(unsafe.Sizeof(uapi.TouchMany{})),
		Flags: flags,
		Keys:  address(keys),
		Count: atMost(count),
	}
	_, err := w.ioctl("touch", uapi.IocTouchMany, unsafe.Pointer(&touch))
	runtime.KeepAlive(keys)
	return int(touch.Done), err
}

// TouchOrRegister touches the token of this id, whose timeout and cookie stay. If there is
// none it registers one with this timeout and cookie.
//
// Errors: EEXIST the token is held; EINVAL the token has no timeout, or as of
// Register; ENOSPC, ERANGE, ESHUTDOWN as of Register.
func (w *Wheel) TouchOrRegister(id uint64, timeout time.Duration, cookie uint64) (Outcome, error) {
	return w.run(opTouchOrRegister(id, timeout, cookie))
}

// Move makes a token due at another time, earlier or later. With a timeout other than 0
// the token has it from now on. With 0 the delay is its timeout too; with a point of
// time, or a delay of 0, the timeout stays. If due is left out the delay is the timeout.
//
// Errors: ENOENT, ESTALE as of Touch; EINVAL a timeout for a periodic token, or the wheel
// has no ids; ERANGE.
func (w *Wheel) Move(key Key, due When, timeout time.Duration) (Outcome, error) {
	return w.run(opMove(key, due, timeout))
}

// Cancel ends a token: no event of it will come.
//
// Errors: ENOENT, ESTALE as of Touch; EINVAL the wheel has no ids.
func (w *Wheel) Cancel(key Key) (Outcome, error) {
	return w.run(opOn(uapi.OpCancel, key))
}

// Ack tells that a delivery has been dealt with: its token ends, or is pending again for its
// next period. A reader that wants the token again after its work registers a new token after
// the ack, or behind the ack in a Batch.
//
// Errors: ESTALE the answer is too late: the delivery was answered, or its lease was over
// and the token has been delivered again or ended; EINVAL the wheel has no leases.
func (w *Wheel) Ack(receipt Receipt) (Outcome, error) {
	return w.run(opAnswer(uapi.OpAck, receipt, When{}))
}

// Nack tells that a delivery has not been dealt with: its token is due again, at once if
// due is left out. A token that is nacked each time comes again without an end: the event's
// Attempts tell how often, and an Ack gives it up.
//
// Errors: those of Ack; ERANGE due is too far ahead.
func (w *Wheel) Nack(receipt Receipt, due When) (Outcome, error) {
	return w.run(opAnswer(uapi.OpNack, receipt, due))
}

// Extend makes the lease of a delivery end so much from now, unless it ends even later; 0
// stands for the wheel's lease.
//
// Errors: those of Ack; ERANGE that is too far ahead.
func (w *Wheel) Extend(receipt Receipt, lease time.Duration) (Outcome, error) {
	return w.run(opAnswer(uapi.OpExtend, receipt, After(lease)))
}

// Delete ends a token, whether it is pending or held.
//
// Errors: ENOENT, ESTALE there is no such token; EINVAL the wheel has no leases, or no ids.
func (w *Wheel) Delete(key Key) (Outcome, error) {
	return w.run(opOn(uapi.OpDelete, key))
}
