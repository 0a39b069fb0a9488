// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"strconv"
	"time"
	"unsafe"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// Clock is the clock that turns a wheel.
type Clock uint32

// The clocks.
const (
	// Monotonic stands still while the machine is suspended.
	Monotonic Clock = uapi.ClockMonotonic
	// Boottime goes on while the machine is suspended, but never wakes it.
	Boottime Clock = uapi.ClockBoottime
	// Realtime is the wall clock. If it is set, deadlines stay.
	Realtime Clock = uapi.ClockRealtime
	// Manual moves only by Wheel.Advance. It is for tests: 48 hours take a moment.
	Manual Clock = uapi.ClockManual
)

// String returns the clock's name.
func (c Clock) String() string {
	switch c {
	case Monotonic:
		return "monotonic"
	case Boottime:
		return "boottime"
	case Realtime:
		return "realtime"
	case Manual:
		return "manual"
	}
	return "clock " + strconv.Itoa(int(c))
}

// Setup describes a wheel. Slots, Tick and MaxTokens have to be given.
type Setup struct {
	// Clock turns the wheel; the zero value is Monotonic.
	Clock Clock
	// Slots of the ring, 1 to 65536.
	Slots uint32
	// Tick is the time from one slot to the next, 100 us to a day.
	Tick time.Duration
	// MaxTokens is the most tokens at any one time. Memory is taken as tokens come.
	MaxTokens uint64
	// NoIDs saves memory: tokens have only the Handle of their registration.
	NoIDs bool
	// NoCookies saves memory: tokens carry no cookie.
	NoCookies bool
	// TouchWords gives each token a word that programs in C map, see timewheel(7).
	TouchWords bool
	// Periods lets tokens be periodic.
	Periods bool
	// Start is the tick on which a Manual clock starts; else 0.
	Start uint64
	// Lease is how long, a tick or more, a reader holds a token that it has read until
	// it answers. 0: a read ends tokens.
	Lease time.Duration
	// MaxHeld is, with a Lease, how many deliveries may be out at once, 1 to MaxTokens; tokens
	// that are due beyond this number wait. Each takes 36 bytes, from the start. 0 stands for
	// MaxTokens, but at most 65536. Without a Lease it is 0.
	MaxHeld uint32
	// Slack is how late the timer may be, to save interrupts; 0 with a Manual clock.
	Slack time.Duration
}

// mostHeld deliveries may be out, unless a Setup tells another number.
const mostHeld = 65536

func (s *Setup) maxHeld() uint32 {
	if s.MaxHeld != 0 || s.Lease == 0 {
		return s.MaxHeld
	}
	if s.MaxTokens > mostHeld {
		return mostHeld
	}
	return uint32(s.MaxTokens)
}

func (s *Setup) uapi() uapi.Setup {
	setup := uapi.Setup{
		Size:      uint32(unsafe.Sizeof(uapi.Setup{})),
		Clock:     uint32(s.Clock),
		Slots:     s.Slots,
		Tick:      uint64(s.Tick),
		MaxTokens: s.MaxTokens,
		Start:     s.Start,
		Lease:     uint64(s.Lease),
		Slack:     uint64(s.Slack),
		MaxHeld:   s.maxHeld(),
	}
	for flag, set := range map[uint32]bool{
		uapi.SetupNoIds:      s.NoIDs,
		uapi.SetupNoCookies:  s.NoCookies,
		uapi.SetupTouchWords: s.TouchWords,
		uapi.SetupPeriods:    s.Periods,
	} {
		if set {
			setup.Flags |= flag
		}
	}
	return setup
}
