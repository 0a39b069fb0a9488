// SPDX-License-Identifier: GPL-2.0-only

// Wheels are opened, described and closed.
package timewheel_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	timewheel "example.org/timewheel.git/userspace/go"
)

var (
	_ io.Closer    = &timewheel.Wheel{}
	_ syscall.Conn = &timewheel.Wheel{}
)

func TestSettingsArrive(t *testing.T) {
	for _, setup := range []timewheel.Setup{
		{Slots: 1, Tick: time.Hour, MaxTokens: 1},
		{Clock: timewheel.Boottime, Slots: 31, Tick: time.Second / 4, MaxTokens: 7,
			NoIDs: true, NoCookies: true, Slack: time.Second},
		{Clock: timewheel.Realtime, Slots: 65536, Tick: time.Millisecond, MaxTokens: 9,
			Lease: 1500 * time.Millisecond, MaxHeld: 3, Periods: true},
		{Clock: timewheel.Manual, Slots: 60, Tick: time.Second, MaxTokens: 5,
			TouchWords: true},
	} {
		told := info(t, opened(t, setup))
		same(t, told.Setup, setup)
		same(t, told.Next, timewheel.Never)
		same(t, [2]bool{told.Paused, told.Draining}, [2]bool{})
	}
	told := info(t, opened(t, manual))
	same(t, told.Hand, 100)
	same(t, told.Now, 100*sec)
}

func TestCaps(t *testing.T) {
	caps, err := timewheel.DeviceCaps()
	ok(t, err)
	same(t, caps.Clocks, []timewheel.Clock{timewheel.Monotonic, timewheel.Boottime,
		timewheel.Realtime, timewheel.Manual})
	same(t, []bool{caps.NoIDs, caps.NoCookies, caps.TouchWords, caps.Periods, caps.Leases},
		[]bool{true, true, true, true, true})
	same(t, caps.MaxSlots, 65536)
	same(t, caps.MinTick, 100*time.Microsecond)
	same(t, caps.MaxTick, 24*time.Hour)
	same(t, caps.MaxTokens, 1<<24)
	same(t, caps.MaxWordTicks, 1<<30)
}

func TestBadSetups(t *testing.T) {
	for _, change := range []func(*timewheel.Setup){
		func(s *timewheel.Setup) { s.Slots = 0 },
		func(s *timewheel.Setup) { s.Slots = 65537 },
		func(s *timewheel.Setup) { s.Tick = 0 },
		func(s *timewheel.Setup) { s.Tick = -time.Second },
		func(s *timewheel.Setup) { s.Tick = 25 * time.Hour },
		func(s *timewheel.Setup) { s.MaxTokens = 0 },
		func(s *timewheel.Setup) { s.Clock = 77 },
		func(s *timewheel.Setup) { s.Lease = time.Second / 2 },
		func(s *timewheel.Setup) { s.Lease = -time.Second },
		func(s *timewheel.Setup) { s.Slack = 1 },
		func(s *timewheel.Setup) { s.MaxHeld = 1 },
		func(s *timewheel.Setup) { s.Lease, s.MaxHeld = time.Minute, 2001 },
	} {
		_, err := timewheel.Open(with(change))
		fails(t, err, syscall.EINVAL)
	}
	_, err := timewheel.Open(with(func(s *timewheel.Setup) { s.Start = 1 << 46 }))
	fails(t, err, syscall.ERANGE)
}

// Every call says that the wheel is closed.
func TestClosed(t *testing.T) {
	wheel := opened(t, manual)
	cursor := wheel.Tokens(0, timewheel.Never)
	ok(t, wheel.Close())
	key, receipt := timewheel.ByID(1), timewheel.Receipt{Handle: 1, Delivery: 1}
	var batch timewheel.Batch
	batch.Cancel(key)
	for name, call := range map[string]func() error{
		"close":    wheel.Close,
		"fd":       func() error { _, err := wheel.SyscallConn(); return err },
		"info":     func() error { _, err := wheel.Info(); return err },
		"stats":    func() error { _, err := wheel.Stats(); return err },
		"register": func() error { _, err := wheel.Register(timewheel.Registration{}); return err },
		"touch":    func() error { _, err := wheel.Touch(key); return err },
		"ids":      func() error { _, err := wheel.TouchIDs([]uint64{1}); return err },
		"handles":  func() error { _, err := wheel.TouchHandles([]timewheel.Handle{1}); return err },
		"either":   func() error { _, err := wheel.TouchOrRegister(1, 1, 0); return err },
		"move":     func() error { _, err := wheel.Move(key, after(1), 0); return err },
		"cancel":   func() error { _, err := wheel.Cancel(key); return err },
		"ack":      func() error { _, err := wheel.Ack(receipt); return err },
		"nack":     func() error { _, err := wheel.Nack(receipt, after(1)); return err },
		"extend":   func() error { _, err := wheel.Extend(receipt, 0); return err },
		"delete":   func() error { _, err := wheel.Delete(key); return err },
		"get":      func() error { _, err := wheel.Get(key); return err },
		"get many": func() error { _, err := wheel.GetIDs([]uint64{1}); return err },
		"batch":    func() error { _, err := batch.Run(wheel); return err },
		"tokens":   func() error { cursor.Next(); return cursor.Err() },
		"read":     func() error { _, err := wheel.Next(background); return err },
		"advance":  func() error { return wheel.Advance(1) },
		"pause":    wheel.Pause,
		"resume":   wheel.Resume,
		"drain":    wheel.Drain,
		"undrain":  wheel.Undrain,
	} {
		if err := call(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fdOf returns the fd of a wheel.
func fdOf(t *testing.T, wheel *timewheel.Wheel) int {
	t.Helper()
	conn, err := wheel.SyscallConn()
	ok(t, err)
	var found int
	ok(t, conn.Control(func(fd uintptr) { found = int(fd) }))
	return found
}

// A function that has the fd may use the wheel, also when it is closed meanwhile.
func TestClosedInControl(t *testing.T) {
	wheel := opened(t, manual)
	conn, err := wheel.SyscallConn()
	ok(t, err)
	over := make(chan error)
	ok(t, conn.Control(func(uintptr) {
		go func() { over <- wheel.Close() }()
		time.Sleep(10 * time.Millisecond)
		_, err = wheel.Info()
	}))
	if err != nil {
		fails(t, err, os.ErrClosed)
	}
	ok(t, <-over)
}

// A copy of the fd leads to the same wheel, and to the same open file.
func TestOpenFD(t *testing.T) {
	leased := with(func(s *timewheel.Setup) { s.Lease = 10 * time.Second })
	wheel := opened(t, leased)
	register(t, wheel, timewheel.Registration{ID: 7})
	events := due(t, wheel)
	other, err := timewheel.OpenFD(fdOf(t, wheel))
	ok(t, err)
	ok(t, wheel.Close())
	same(t, get(t, other, 7).State, timewheel.Held)
	_, err = other.Ack(events[0].Receipt())
	ok(t, err)
	ok(t, other.Close())
}

func TestOpenFDOfSomethingElse(t *testing.T) {
	_, err := timewheel.OpenFD(-1)
	fails(t, err, syscall.EBADF)
	for path, want := range map[string]error{
		"/dev/null":      syscall.ENOTTY,
		"/dev/timewheel": syscall.EBADFD,
	} {
		fd, err := syscall.Open(path, syscall.O_RDWR, 0)
		ok(t, err)
		_, err = timewheel.OpenFD(fd)
		fails(t, err, want)
		// The fd is still the caller's.
		ok(t, syscall.Close(fd))
	}
}

// A program that is started does not get the fd.
func TestIsNotInherited(t *testing.T) {
	wheel := opened(t, manual)
	other, err := timewheel.OpenFD(fdOf(t, wheel))
	ok(t, err)
	defer other.Close()
	for _, wheel := range []*timewheel.Wheel{wheel, other} {
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fdOf(t, wheel)),
			syscall.F_GETFD, 0)
		same(t, errno, 0)
		same(t, flags, syscall.FD_CLOEXEC)
	}
}

func TestNamedLife(t *testing.T) {
	name, wheel := named(t, manual)
	made, err := timewheel.Create(name, manual)
	ok(t, err)
	same(t, made, false)
	fails(t, timewheel.CreateExclusive(name, manual), syscall.EEXIST)
	_, err = timewheel.Create(name, monotonic)
	fails(t, err, syscall.EEXIST)
	_, err = timewheel.OpenOrCreate(name, monotonic)
	fails(t, err, fs.ErrExist)
	told, err := os.Stat("/dev/timewheels/" + name)
	ok(t, err)
	same(t, told.Mode(), fs.ModeDevice|fs.ModeCharDevice|0600)
	register(t, wheel, timewheel.Registration{ID: 7, Due: after(1)})
	same(t, get(t, openedNamed(t, name, os.O_RDWR), 7).ID, 7)

	ok(t, timewheel.Destroy(name))
	fails(t, timewheel.Destroy(name), syscall.ENOENT)
	_, err = timewheel.OpenNamed(name, os.O_RDWR)
	fails(t, err, fs.ErrNotExist)
	_, err = wheel.Info()
	fails(t, err, syscall.ENODEV)
	_, err = wheel.Next(background)
	fails(t, err, syscall.ENODEV)
	_, err = wheel.Touch(timewheel.ByID(7))
	fails(t, err, syscall.ENODEV)
	cursor := wheel.Tokens(0, timewheel.Never)
	same(t, cursor.Next(), false)
	fails(t, cursor.Err(), syscall.ENODEV)
	ok(t, timewheel.CreateExclusive(name, manual))
}

func TestAccess(t *testing.T) {
	name, wheel := named(t, manual)
	register(t, wheel, timewheel.Registration{ID: 7})
	reader := openedNamed(t, name, os.O_RDONLY)
	_, err := reader.Touch(timewheel.ByID(7))
	fails(t, err, syscall.EBADF)
	var batch timewheel.Batch
	batch.Touch(timewheel.ByID(7))
	_, err = batch.Run(reader)
	fails(t, err, syscall.EBADF)
	_, err = batch.Outcome(0)
	fails(t, err, syscall.EINPROGRESS)
	same(t, get(t, reader, 7).ID, 7)
	event, err := reader.Next(background)
	ok(t, err)
	same(t, event.ID, 7)

	writer := openedNamed(t, name, os.O_WRONLY)
	register(t, writer, timewheel.Registration{ID: 7})
	_, err = writer.Next(background)
	fails(t, err, syscall.EBADF)
	_, err = writer.Get(timewheel.ByID(7))
	fails(t, err, syscall.EBADF)
	cursor := writer.Tokens(0, timewheel.Never)
	same(t, cursor.Next(), false)
	fails(t, cursor.Err(), syscall.EBADF)
	_, err = timewheel.OpenNamed(name, 77)
	fails(t, err, syscall.EINVAL)
}

func TestNames(t *testing.T) {
	for name, want := range map[string]error{
		"":                      syscall.EINVAL,
		"a/b":                   syscall.EINVAL,
		"..":                    syscall.EINVAL,
		"ä":                     syscall.EINVAL,
		"go\x00x":               syscall.EINVAL,
		strings.Repeat("x", 64): syscall.ENAMETOOLONG,
	} {
		_, err := timewheel.Create(name, manual)
		fails(t, err, want)
		fails(t, timewheel.CreateExclusive(name, manual), want)
		fails(t, timewheel.Destroy(name), want)
		_, err = timewheel.OpenNamed(name, os.O_RDWR)
		fails(t, err, want)
		_, err = timewheel.OpenOrCreate(name, manual)
		fails(t, err, want)
	}
	long := strings.Repeat("x", 63)
	ok(t, timewheel.CreateExclusive(long, manual))
	ok(t, timewheel.Destroy(long))
}

// The words are those of tw_strerror(3), if it has words for the error.
func TestErrorTexts(t *testing.T) {
	_, err := timewheel.OpenNamed("go-none", os.O_RDWR)
	same(t, err.Error(), "timewheel: open go-none: there is no such token, or no such "+
		"wheel or device")
	same(t, (&timewheel.Error{Op: "read", Err: syscall.EPIPE}).Error(),
		"timewheel: read: broken pipe")
	same(t, (&timewheel.Error{Op: "read", Err: os.ErrClosed}).Error(),
		"timewheel: read: file already closed")
}

// inThread runs a function in a thread of its own, which ends after it.
func inThread(run func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread()
		run()
	}()
	<-over
}

// The environment asks for wheels inside the process, which the package does not have.
func TestProcess(t *testing.T) {
	name, _ := named(t, manual)
	t.Run("asked for", func(t *testing.T) {
		t.Setenv("TIMEWHEEL", "process")
		for call, run := range map[string]func() error{
			"open":   func() error { _, err := timewheel.Open(manual); return err },
			"named":  func() error { _, err := timewheel.OpenNamed(name, os.O_RDWR); return err },
			"either": func() error { _, err := timewheel.OpenOrCreate(name, manual); return err },
			"create": func() error { _, err := timewheel.Create(name, manual); return err },
			"alone":  func() error { return timewheel.CreateExclusive("go-alone", manual) },
			"ends":   func() error { return timewheel.Destroy(name) },
			"caps":   func() error { _, err := timewheel.DeviceCaps(); return err },
		} {
			err := run()
			if !errors.Is(err, timewheel.ErrProcess) ||
				!strings.Contains(err.Error(), "TIMEWHEEL=process") {
				t.Errorf("%s: %v", call, err)
			}
		}
	})
	openedNamed(t, name, os.O_RDWR)
}

// Without the module there is no device, and the error says so.
func TestWithoutDevice(t *testing.T) {
	inThread(func() {
		if err := syscall.Unshare(syscall.CLONE_FS); err != nil {
			t.Error(err)
			return
		}
		if err := syscall.Chroot("/sys"); err != nil {
			t.Error(err)
			return
		}
		if _, err := timewheel.Open(manual); !errors.Is(err, syscall.ENOENT) {
			t.Error(err)
		}
		if _, err := timewheel.DeviceCaps(); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

func TestTooManyFiles(t *testing.T) {
	var before syscall.Rlimit
	ok(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	none := before
	none.Cur = 0
	ok(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, err := timewheel.Open(manual)
	ok(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
	fails(t, err, syscall.EMFILE)
}
