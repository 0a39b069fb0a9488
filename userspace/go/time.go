// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"time"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// Time is a point of time of a wheel's clock, in nanoseconds from the clock's zero. On a
// wheel with the clock Realtime this is the Unix epoch.
type Time uint64

// Never is a time that is never reached.
const Never Time = uapi.Never

// Wall returns a point of wall time as one of a wheel with the clock Realtime. t is after
// 1969 and before 2262.
func Wall(t time.Time) Time {
	return Time(t.UnixNano())
}

// Wall returns t of a wheel with the clock Realtime as wall time.
func (t Time) Wall() time.Time {
	return time.Unix(0, int64(t))
}

// Add returns the point of time d after t.
func (t Time) Add(d time.Duration) Time {
	return t + Time(d)
}

// Sub returns how long after u the point t is; negative if t is before u.
func (t Time) Sub(u Time) time.Duration {
	return time.Duration(t - u)
}

// When says when a token is due: After a delay, or At a point of time. What the zero
// value stands for is told where it may be left out.
type When struct {
	time  uint64
	flags uint32
	given bool
}

// After is a delay from now. The token of a delay of 0 is due at once.
func After(delay time.Duration) When {
	return When{time: uint64(delay), given: true}
}

// At is a point of time of the wheel's clock. The token is due at once if it has passed.
func At(t Time) When {
	return When{time: uint64(t), flags: uapi.OpfAbsolute, given: true}
}

// or returns w, or the delay if w was left out.
func (w When) or(delay time.Duration) When {
	if w.given {
		return w
	}
	return After(delay)
}
