// SPDX-License-Identifier: GPL-2.0-only

// Wheels are opened, described and closed.
package timewheel

import (
	"errors"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// MaxHeld is MaxTokens unless it is given, but at most 65536; without leases it is 0.
func TestSettingsArrive(t *testing.T) {
	for _, c := range []struct {
		setup   Setup
		maxHeld uint32
	}{
		{Setup{Slots: 1, Tick: time.Hour, MaxTokens: 1, NoIDs: true}, 0},
		{Setup{Clock: Boottime, Slots: 31, Tick: time.Second / 4, MaxTokens: 7,
			NoCookies: true, Slack: time.Second}, 0},
		{Setup{Clock: Realtime, Slots: 65536, Tick: time.Millisecond, MaxTokens: 9,
			Lease: 1500 * time.Millisecond, MaxHeld: 3, Periods: true}, 3},
		{Setup{Slots: 60, Tick: time.Second, MaxTokens: 2000, TouchWords: true,
			Lease: time.Minute}, 2000},
		{manual, 65536},
	} {
		told := must(opened(t, c.setup).Info())(t)
		if c.setup.Clock == Manual {
			same(t, told.Hand, c.setup.Start)
			c.setup.Start = 0
		}
		c.setup.MaxHeld = c.maxHeld
		same(t, told.Setup, c.setup)
	}
}

// calls has each call of a wheel that can fail.
func calls(wheel *Wheel) (all []func() error) {
	value := reflect.ValueOf(wheel)
	for i := 0; i < value.NumMethod(); i++ {
		method := value.Method(i)
		var in []reflect.Value
		for j := 0; j < method.Type().NumIn(); j++ {
			switch of := method.Type().In(j); of.Kind() {
			case reflect.Interface:
				in = append(in, reflect.ValueOf(background))
			case reflect.Slice:
				in = append(in, reflect.MakeSlice(of, 1, 1))
			default:
				in = append(in, reflect.Zero(of))
			}
		}
		if value.Type().Method(i).Name != "Tokens" {
			all = append(all, func() error {
				out := method.Call(in)
				err, _ := out[len(out)-1].Interface().(error)
				return err
			})
		}
	}
	return all
}

// Every call says that the wheel is closed, and which call it was. No call looks at the wheel
// while Close, or another call, changes that.
func TestClosed(t *testing.T) {
	wheel := opened(t, manual)
	ok(t, wheel.Close())
	all := calls(wheel)
	ops := make([]string, len(all))
	var done atomic.Int32
	wheel.open.Lock()
	for i := range all {
		go func(i int) {
			if err := all[i](); errors.Is(err, os.ErrClosed) {
				ops[i] = err.(*Error).Op
			}
			done.Add(1)
		}(i)
	}
	time.Sleep(20 * time.Millisecond)
	same(t, done.Load(), 0)
	wheel.open.Unlock()
	waitFor(t, "each call is over", func() bool { return int(done.Load()) == len(all) })
	same(t, strings.Join(ops, ", "), "ack, advance, cancel, close, delete, drain, extend, get, "+
		"get, get, info, move, nack, read, pause, read, register, resume, stats, fd, touch, "+
		"touch, touch, touch or register, read, undrain")
	cursor := wheel.Tokens(0, Never)
	same(t, cursor.Next(), false)
	fails(t, cursor.Err(), os.ErrClosed)
	var batch Batch
	batch.Cancel(ByID(1))
	refused(batch.Run(wheel))(t, os.ErrClosed)
}

// A function that has the fd may use the wheel, also when it is closed meanwhile.
func TestClosedInControl(t *testing.T) {
	wheel := opened(t, manual)
	over := make(chan error)
	ok(t, must(wheel.SyscallConn())(t).Control(func(uintptr) {
		go func() { over <- wheel.Close() }()
		waitFor(t, "the wheel is closed", func() bool {
			_, err := wheel.Info()
			return errors.Is(err, os.ErrClosed)
		})
	}))
	ok(t, <-over)
}

// A wheel that is no longer referred to is closed.
func TestForgotten(t *testing.T) {
	fd := func() int { return must(Open(manual))(t).fd }()
	waitFor(t, "the fd is closed", func() bool {
		runtime.GC()
		return errors.Is(syscall.Fstat(fd, &syscall.Stat_t{}), syscall.EBADF)
	})
}

// A copy of the fd leads to the same open file. Neither fd is for programs that are started,
// and neither blocks, whatever the fd was.
func TestOpenFD(t *testing.T) {
	wheel := opened(t, manual)
	must(wheel.Register(Registration{ID: 7}))(t)
	event := dueOn(t, wheel, 100)
	ok(t, syscall.SetNonblock(wheel.fd, false))
	other := must(OpenFD(wheel.fd))(t)
	for _, fd := range []int{wheel.fd, other.fd} {
		flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		same(t, flags, syscall.FD_CLOEXEC)
		flags, _, _ = syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0)
		same(t, flags&syscall.O_NONBLOCK, syscall.O_NONBLOCK)
	}
	ok(t, wheel.Close())
	must(other.Ack(event.Receipt()))(t)
	ok(t, other.Close())
}

func TestNamed(t *testing.T) {
	name, wheel := named(t)
	same(t, must(Create(name, manual))(t), false)
	fails(t, CreateExclusive(name, manual), syscall.EEXIST)
	refused(OpenOrCreate(name, monotonic))(t, syscall.EEXIST)
	reader := must(OpenNamed(name, os.O_RDONLY))(t)
	refused(reader.Register(Registration{ID: 7}))(t, syscall.EBADF)
	writer := must(OpenNamed(name, os.O_WRONLY))(t)
	must(writer.Register(Registration{ID: 7}))(t)
	refused(writer.Next(background))(t, syscall.EBADF)
	same(t, dueOn(t, wheel, 100).ID, 7)
	ok(t, reader.Close())
	ok(t, writer.Close())
	ok(t, Destroy(name))
	fails(t, Destroy(name), syscall.ENOENT)
	same(t, must(Create(name, manual))(t), true)
	refused(OpenNamed(name, 77))(t, syscall.EINVAL)
	for name, want := range map[string]error{"": syscall.EINVAL, "a/b": syscall.EINVAL,
		"..": syscall.EINVAL, "go\x00x": syscall.EINVAL,
		strings.Repeat("x", 64): syscall.ENAMETOOLONG} {
		fails(t, CreateExclusive(name, manual), want)
		fails(t, Destroy(name), want)
		refused(OpenNamed(name, os.O_RDWR))(t, want)
	}
}

// OpenOrCreate makes the wheel again if another program destroys it at any moment.
func TestOpenOrCreateAgainstDestroy(t *testing.T) {
	name, _ := named(t)
	over := make(chan bool)
	go func() {
		for n := 0; n < 1000; n++ {
			Destroy(name)
		}
		close(over)
	}()
	for open := true; open; {
		ok(t, must(OpenOrCreate(name, manual))(t).Close())
		select {
		case <-over:
			open = false
		default:
		}
	}
}

// The environment asks for wheels inside the process, which the package does not have.
func TestProcess(t *testing.T) {
	t.Setenv("TIMEWHEEL", "process")
	refused(Open(manual))(t, ErrProcess)
	refused(OpenNamed("go-none", os.O_RDWR))(t, ErrProcess)
	refused(DeviceCaps())(t, ErrProcess)
	fails(t, Destroy("go-none"), ErrProcess)
}

// Calls, also those that fail, leave no fd open, and the caller's fds as they are.
func TestNoFdIsLeft(t *testing.T) {
	const node = nodes + "go-null"
	name, wheel := named(t)
	ok(t, syscall.Mknod(node, syscall.S_IFCHR|0600, 1<<8|3))
	defer os.Remove(node)
	null := must(os.Open(os.DevNull))(t)
	defer null.Close()
	before := len(must(os.ReadDir("/proc/self/fd"))(t))
	same(t, must(DeviceCaps())(t), Caps{Clocks: []Clock{Monotonic, Boottime, Realtime, Manual},
		NoIDs: true, NoCookies: true, TouchWords: true, Periods: true, Leases: true,
		MaxSlots: 65536, MinTick: 100 * time.Microsecond, MaxTick: 24 * time.Hour,
		MaxTokens: 1 << 24, MaxWordTicks: 1 << 30})
	refused(Open(Setup{}))(t, syscall.EINVAL)
	refused(Create(name, monotonic))(t, syscall.EEXIST)
	refused(OpenNamed("go-null", os.O_RDWR))(t, syscall.ENOTTY)
	refused(OpenFD(int(null.Fd())))(t, syscall.ENOTTY)
	ok(t, must(OpenFD(wheel.fd))(t).Close())
	same(t, len(must(os.ReadDir("/proc/self/fd"))(t)), before)
}
