// SPDX-License-Identifier: LGPL-2.1-or-later

// Package timewheel keeps millions of timeouts behind one file descriptor, by the
// kernel's module timewheel.
//
// A wheel is a ring of slots that one timer of the kernel turns. A token is one pending
// timeout on it. Tokens are registered, touched, moved and cancelled, one at a time or in
// batches. Those that expire are read as events:
//
//	wheel, err := timewheel.Open(timewheel.Setup{
//		Slots: 31, Tick: time.Second, MaxTokens: 100_000,
//	})
//	...
//	_, err = wheel.TouchOrRegister(user, 30*time.Second, 0) // for each packet
//	...
//	for {
//		event, err := wheel.Next(ctx)
//		...
//		offline(event.ID)
//	}
//
// The program idle in the folder examples is a whole server. timewheel(7) explains the
// concepts and the promises.
//
// # Installation
//
// The package needs Go 1.19 or later, no C compiler and no other package. It is in the folder
// userspace/go of the project's source, whose README.md tells how a program's go.mod names
// a release in a repository, or a checkout.
//
// The kernel's module has to be loaded, and the program needs permission to open /dev/timewheel,
// or for a named wheel to open its node in /dev/timewheels. The package speaks to the kernel
// only: it has no wheels inside the process, and with TIMEWHEEL=process in the environment all
// functions that open, create or destroy a wheel, and DeviceCaps, fail with ErrProcess.
//
// # Times
//
// Durations are of type time.Duration. A negative one fails with ERANGE, in a Setup with
// EINVAL. Points of time are of type Time: nanoseconds of the wheel's clock. A token is
// never early: its deadline is rounded up to a whole tick.
//
// # Deliveries
//
// A read ends the token of an event. On a wheel with leases it does not: the reader
// answers by Ack when it has dealt with the event. Otherwise the token is due again when
// the lease is over, or at once when the reader's Wheel is closed.
//
// # Connections without touches
//
// The token of a TCP connection need not be touched. When it is due, TCPIdle tells for how
// long no data has come in: the connection is silent, or its token is registered again for the
// rest of the time. timewheel(7) tells when a touch is the right way.
//
// # Errors
//
// A call that fails returns an *Error, and has changed nothing unless its description
// says otherwise. The error wraps a syscall.Errno: errors.Is(err, syscall.ESTALE) tells
// them apart, and errors.Is(err, fs.ErrNotExist) and the like work as well. Each
// description lists the errors of the call. These may come besides:
//
//	EBADF    the wheel was opened for reading only and the call writes, or for writing
//	         only and the call reads
//	ENODEV   the wheel was a named one and has been destroyed
//	ENOMEM   there is not enough memory
//	ENOTTY   the kernel's module is older and does not know the call
//
// After Close all calls fail with os.ErrClosed. A call that waits returns ctx.Err(), as
// it is, when its context ends.
//
// # Goroutines
//
// Any number of goroutines may use one Wheel at once, for any calls, also while one of
// them closes it. A goroutine that waits for an event occupies no thread: Go's poller
// waits for all wheels of a program. Batch and Cursor are for one goroutine at a time.
package timewheel
