// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// Event is one expired token. It has the layout of struct timewheel_event: reads write
// to it.
type Event struct {
	// ID of the token, 0 on a wheel without ids.
	ID uint64
	// Handle of the token, no longer valid if the read has ended the token.
	Handle Handle
	// Cookie as registered, 0 on a wheel without cookies.
	Cookie uint64
	// Deadline is a whole tick; of a periodic token that of the event's period.
	Deadline Time
	// Taken is when a reader took the token.
	Taken Time
	// Delivery is the number of this delivery, 0 on a wheel without leases.
	Delivery uint32
	// Attempts are the deliveries of the token so far, with this one, of a periodic token
	// those for this period; 0 on a wheel without leases.
	Attempts uint32
	// Missed is, of a periodic token, how many periods before had no event.
	Missed uint32
	_      uint32
}

// Receipt names the delivery, to answer it.
func (e *Event) Receipt() Receipt {
	return Receipt{Handle: e.Handle, Delivery: e.Delivery}
}

// TryRead reads expired tokens without waiting, as many as are due and fit, in the order of
// their due ticks. It returns 0 if none is due.
//
// Each event goes to one reader only, and ends its token, unless the wheel has leases or
// the token is periodic.
//
// Errors: EINVAL there is no room for an event; EBADF; ENODEV; ENOMEM.
func (w *Wheel) TryRead(events []Event) (int, error) {
	w.open.RLock()
	defer w.open.RUnlock()
	if w.closed {
		return 0, &Error{"read", os.ErrClosed}
	}
	return read(w.fd, events)
}

// Read does what TryRead does, but waits until at least one event is there. It returns
// ctx.Err() if ctx ends first; events that have been read are returned in any case.
//
// Errors: those of TryRead; ENODEV also while it waits.
func (w *Wheel) Read(ctx context.Context, events []Event) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if n, err := w.TryRead(events); n > 0 || err != nil {
		return n, err
	}
	select {
	case w.waiting <- struct{}{}:
		defer func() { <-w.waiting }()
		return w.wait(ctx, events)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Next reads one event, and waits until there is one. Other due events are left to other
// readers; Read costs less if many are due.
//
// Errors: those of Read.
func (w *Wheel) Next(ctx context.Context) (Event, error) {
	var events [1]Event
	_, err := w.Read(ctx, events[:])
	return events[0], err
}

// wait reads by the poller. Only the goroutine that has put something in w.waiting may call
// it, because the deadline by which a context ends the wait is the file's.
func (w *Wheel) wait(ctx context.Context, events []Event) (n int, err error) {
	end := w.endedBy(ctx)
	waited := w.conn.Read(func(fd uintptr) bool {
		n, err = read(int(fd), events)
		return n > 0 || err != nil
	})
	end()
	if waited == nil {
		return n, err
	}
	if errors.Is(waited, os.ErrDeadlineExceeded) {
		return 0, ctx.Err()
	}
	if w.conn.Control(func(uintptr) {}) != nil {
		waited = os.ErrClosed
	}
	return 0, &Error{"read", waited}
}

// endedBy has the end of ctx end reads of w.conn, until the function that it returns is
// called.
func (w *Wheel) endedBy(ctx context.Context) (end func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	over := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
			// The deadline is in the past. If the wheel is closed there is no read to
			// end.
			w.file.SetReadDeadline(time.Unix(1, 0))
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-ended
		w.file.SetReadDeadline(time.Time{})
	}
}

// read returns 0 if no event is there.
func read(fd int, events []Event) (int, error) {
	const size = int(unsafe.Sizeof(Event{}))

	if len(events) == 0 {
		return 0, &Error{"read", syscall.EINVAL}
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&events[0])), len(events)*size)
	for {
		n, err := syscall.Read(fd, bytes)
		switch err {
		case nil:
			return n / size, nil
		case syscall.EAGAIN:
			return 0, nil
		case syscall.EINTR:
		default:
			return 0, &Error{"read", err}
		}
	}
}
