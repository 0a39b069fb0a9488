// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"runtime"
	"time"
	"unsafe"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

// Caps has the abilities of the kernel's module, and its limits.
type Caps struct {
	// Clocks that a wheel may have.
	Clocks []Clock
	// Flags that a Setup may have.
	NoIDs, NoCookies, TouchWords, Periods, Leases bool
	// MaxSlots of a ring.
	MaxSlots uint32
	// MinTick and MaxTick are the shortest and the longest tick.
	MinTick, MaxTick time.Duration
	// MaxTokens of one wheel.
	MaxTokens uint64
	// MaxWordTicks: on a wheel with touch words a timeout, and the deadline of a token
	// that has one, is less than this many ticks ahead.
	MaxWordTicks uint64
}

// DeviceCaps tells what the kernel's module can do.
//
// Errors: ENOENT, ENODEV or ENXIO there is no device: the module is not loaded; EACCES or
// EPERM the caller may not open /dev/timewheel for reading; EMFILE, ENFILE.
func DeviceCaps() (Caps, error) {
	told := uapi.Caps{Size: uint32(unsafe.Sizeof(uapi.Caps{}))}
	if _, err := deviceIoctl(0, uapi.IocCaps, unsafe.Pointer(&told)); err != nil {
		return Caps{}, &Error{"caps", err}
	}
	caps := Caps{
		NoIDs:        told.SetupFlags&uapi.SetupNoIds != 0,
		NoCookies:    told.SetupFlags&uapi.SetupNoCookies != 0,
		TouchWords:   told.SetupFlags&uapi.SetupTouchWords != 0,
		Periods:      told.SetupFlags&uapi.SetupPeriods != 0,
		Leases:       told.Codes&(1<<uapi.OpAck) != 0,
		MaxSlots:     told.MaxSlots,
		MinTick:      time.Duration(told.MinTick),
		MaxTick:      time.Duration(told.MaxTick),
		MaxTokens:    told.MaxTokens,
		MaxWordTicks: told.MaxWordTicks,
	}
	for clock := Monotonic; clock <= Manual; clock++ {
		if told.Clocks&(1<<clock) != 0 {
			caps.Clocks = append(caps.Clocks, clock)
		}
	}
	return caps, nil
}

// Info is a wheel's state and its counters, all of one moment. The counters begin with
// the wheel.
type Info struct {
	// Setup as it was given, without Start, and with what MaxHeld stood for.
	Setup Setup
	// Number names the wheel in traces, /proc/PID/fdinfo and debugfs.
	Number uint32
	// Paused and Draining tell of Pause and Drain.
	Paused, Draining bool
	// Now is the wheel's clock.
	Now Time
	// Hand is the tick that it is now.
	Hand uint64
	// Next is when the wheel next looks for expired tokens, or Never.
	Next Time
	// Offset is how far the caller's time namespace is ahead of the host's clock.
	Offset time.Duration
	// Bytes of memory that the wheel holds.
	Bytes uint64
	// Tokens that are pending, taken by a reader that is copying them, and held by readers
	// until they answer.
	Pending, Taken, Held uint64
	// Operations that have succeeded. Touches that are under way are not in Touched.
	Registered, Cancelled, Moved, Touched uint64
	// Answers to deliveries, and deletions.
	Acked, Nacked, Deleted uint64
	// Delivered events.
	Delivered uint64
	// PutBack tokens, as a read could not copy them.
	PutBack uint64
	// Lapsed leases, which ended without an answer.
	Lapsed uint64
	// Returned deliveries, which a file gave back when it was closed.
	Returned uint64
	// Missed periods, which had no event.
	Missed uint64
	// Refiled tokens, after a touch or from a coarser ring.
	Refiled uint64
	// Callbacks are the times that the timer went off; after the Quiet ones no token
	// was due.
	Callbacks, Quiet uint64
}

// Info tells about the wheel.
func (w *Wheel) Info() (Info, error) {
	told := uapi.Info{Size: uint32(unsafe.Sizeof(uapi.Info{}))}
	if _, err := w.ioctl("info", uapi.IocInfo, unsafe.Pointer(&told)); err != nil {
		return Info{}, err
	}
	return infoOf(&told), nil
}

func infoOf(t *uapi.Info) Info {
	return Info{
		Setup:    setupOf(t),
		Number:   t.Number,
		Paused:   t.State&uapi.ControlPaused != 0,
		Draining: t.State&uapi.ControlDraining != 0,
		Now:      Time(t.Now),
		Hand:     t.Hand,
		Next:     Time(t.Next),
		Offset:   time.Duration(t.Offset),
		Bytes:    t.Bytes,
		Pending:  t.Pending, Taken: t.Taken, Held: t.Held,
		Registered: t.Registered, Cancelled: t.Cancelled, Moved: t.Moved,
		Touched: t.Touched,
		Acked:   t.Acked, Nacked: t.Nacked, Deleted: t.Deleted,
		Delivered: t.Delivered,
		PutBack:   t.PutBack,
		Lapsed:    t.Lapsed,
		Returned:  t.Returned,
		Missed:    t.Missed,
		Refiled:   t.Refiled,
		Callbacks: t.Callbacks, Quiet: t.Quiet,
	}
}

func setupOf(t *uapi.Info) Setup {
	return Setup{
		Clock:      Clock(t.Clock),
		Slots:      t.Slots,
		Tick:       time.Duration(t.Tick),
		MaxTokens:  t.MaxTokens,
		NoIDs:      t.SetupFlags&uapi.SetupNoIds != 0,
		NoCookies:  t.SetupFlags&uapi.SetupNoCookies != 0,
		TouchWords: t.SetupFlags&uapi.SetupTouchWords != 0,
		Periods:    t.SetupFlags&uapi.SetupPeriods != 0,
		Lease:      time.Duration(t.Lease),
		MaxHeld:    t.MaxHeld,
		Slack:      time.Duration(t.Slack),
	}
}

// Advance puts the hand of a wheel with a Manual clock on a tick, forward or back.
//
// Errors: EINVAL the wheel's clock is another; ERANGE the tick is beyond the last one.
func (w *Wheel) Advance(tick uint64) error {
	advance := uapi.Advance{Size: uint32(unsafe.Sizeof(uapi.Advance{})), Tick: tick}
	_, err := w.ioctl("advance", uapi.IocAdvance, unsafe.Pointer(&advance))
	return err
}

// Pause has nothing delivered until Resume, for all processes that have the wheel open: reads
// wait, and so do tokens that fall due.
func (w *Wheel) Pause() error {
	return w.control("pause", uapi.ControlPaused, uapi.ControlPaused)
}

// Resume ends Pause: tokens that fell due meanwhile can be read at once.
func (w *Wheel) Resume() error {
	return w.control("resume", 0, uapi.ControlPaused)
}

// Drain has no token registered until Undrain: ESHUTDOWN. A wheel that has become empty
// goes on draining. Periodic tokens go on.
func (w *Wheel) Drain() error {
	return w.control("drain", uapi.ControlDraining, uapi.ControlDraining)
}

// Undrain ends Drain.
func (w *Wheel) Undrain() error {
	return w.control("undrain", 0, uapi.ControlDraining)
}

func (w *Wheel) control(op string, state, mask uint32) error {
	control := uapi.Control{Size: uint32(unsafe.Sizeof(uapi.Control{})), State: state,
		Mask: mask}
	_, err := w.ioctl(op, uapi.IocControl, unsafe.Pointer(&control))
	return err
}

// Stats has the lateness of a wheel's events.
type Stats struct {
	// Lateness of the events that were read: from the deadline until a reader took the token.
	Lateness Histogram
}

// Stats tells how late the wheel's events have been.
func (w *Wheel) Stats() (Stats, error) {
	told := new(Stats)
	stats := uapi.Stats{
		Size:     uint32(unsafe.Sizeof(uapi.Stats{})),
		Lateness: address(unsafe.Pointer(&told.Lateness)),
	}
	_, err := w.ioctl("stats", uapi.IocStats, unsafe.Pointer(&stats))
	runtime.KeepAlive(told)
	return *told, err
}
