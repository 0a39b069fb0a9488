// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"errors"
	"syscall"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// ErrProcess is the reason when TIMEWHEEL=process in the environment asks for wheels inside
// the process.
var ErrProcess = errors.New("TIMEWHEEL=process is in the environment, but this package " +
	"knows the kernel's wheels only: unset TIMEWHEEL")

// Error tells which call has failed, and why.
type Error struct {
	// Op is the call, such as "touch" or "open orders".
	Op string
	// Err is the reason: a syscall.Errno, os.ErrClosed or ErrProcess.
	Err error
}

// Error tells what the reason means for wheels, as tw_strerror(3) does.
func (e *Error) Error() string {
	text := e.Err.Error()
	if errno, ok := e.Err.(syscall.Errno); ok {
		if meaning := uapi.Meaning(errno); meaning != "" {
			text = meaning
		}
	}
	return "timewheel: " + e.Op + ": " + text
}

// Unwrap returns the reason, for errors.Is and errors.As.
func (e *Error) Unwrap() error {
	return e.Err
}
