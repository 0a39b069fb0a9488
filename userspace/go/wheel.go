// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"example.org/timewheel.git/userspace/go/internal/uapi"
)

const (
	device = "/dev/timewheel"
	nodes  = "/dev/timewheels/"

	// OpenOrCreate tries so often if other programs destroy the wheel meanwhile.
	openTries = 100
)

// Wheel is a wheel that this process has open. It is made by Open, OpenNamed,
// OpenOrCreate or OpenFD, and closed by Close. It implements io.Closer and syscall.Conn.
type Wheel struct {
	// A goroutine waits in Go's poller by these two. All other calls use the fd itself.
	file *os.File
	conn syscall.RawConn
	// The channel has an element while a goroutine waits in the poller. Further goroutines wait
	// until they can put theirs.
	waiting chan struct{}

	// A call that uses the fd holds this lock for reading: the fd stays open meanwhile.
	open   sync.RWMutex
	fd     int
	closed bool
}

// openFile opens a path of the kernel's, neither blocking nor inherited by other programs.
func openFile(path string, access int) (int, error) {
	if os.Getenv("TIMEWHEEL") == "process" {
		return 0, ErrProcess
	}
	for {
		fd, err := syscall.Open(path, access|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// deviceIoctl opens a file of the device for one command, and carries it out.
func deviceIoctl(access int, command uintptr, arg unsafe.Pointer) (int, error) {
	fd, err := openFile(device, access)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(fd)
	return ioctl(fd, command, arg)
}

// newWheel makes a wheel of a non-blocking fd, which it closes if it fails.
func newWheel(fd int, name string) (*Wheel, error) {
	file := os.NewFile(uintptr(fd), name)
	conn, err := file.SyscallConn()
	if err == nil {
		// The call fails if the poller has not taken the fd, as for a lack of memory.
		err = file.SetReadDeadline(time.Time{})
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Wheel{file: file, conn: conn, waiting: make(chan struct{}, 1), fd: fd}, nil
}

// Open makes a private wheel. It ends, with all its tokens, when it is closed, by all
// processes to which its fd was passed.
//
// Errors: ENOENT, ENODEV or ENXIO there is no device: the module is not loaded; EACCES or
// EPERM the caller may not open /dev/timewheel; EINVAL a value of setup is outside its
// range, or does not go with another; ERANGE the clock, or Start, is beyond the last
// tick; EDQUOT the user would have more wheels or tokens than a user may have; ENOSPC
// there would be more than the machine may have; EMFILE, ENFILE.
func Open(setup Setup) (*Wheel, error) {
	wheel, err := openPrivate(setup.uapi())
	if err != nil {
		return nil, &Error{"open", err}
	}
	return wheel, nil
}

func openPrivate(setup uapi.Setup) (*Wheel, error) {
	fd, err := openFile(device, syscall.O_RDWR)
	if err != nil {
		return nil, err
	}
	// The wheel is set up before the poller gets the fd, because the poller has to see the
	// wheel.
	if _, err := ioctl(fd, uapi.IocSetup, unsafe.Pointer(&setup)); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return newWheel(fd, device)
}

// checkName checks a name that becomes a path, which must not lead to another folder.
func checkName(name string) error {
	if len(name) >= uapi.NameSize {
		return syscall.ENAMETOOLONG
	}
	other := strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"+
		"0123456789-_")
	if name == "" || other != "" {
		return syscall.EINVAL
	}
	return nil
}

// Create makes a named wheel without opening it, and tells whether it has: it also
// succeeds if a wheel of this name and with the same setup exists, perhaps another
// user's.
//
// A name has 1 to 63 ASCII letters, digits, "-" and "_". The node is
// /dev/timewheels/NAME, owned by the caller, with mode 0600. The wheel turns until
// Destroy, whether a program has it open or not.
//
// Errors: those of Open; EEXIST there is a wheel of this name with another setup; EINVAL
// also if the name has another byte in it or is empty; ENAMETOOLONG it is longer.
func Create(name string, setup Setup) (made bool, err error) {
	result, err := create(name, setup.uapi(), 0)
	if err != nil {
		return false, &Error{"create " + name, err}
	}
	return result&uapi.ResExisted == 0, nil
}

// CreateExclusive makes a named wheel as Create does, and also fails with EEXIST if there
// is one of this name with the same setup.
func CreateExclusive(name string, setup Setup) error {
	if _, err := create(name, setup.uapi(), uapi.CreateExclusive); err != nil {
		return &Error{"create " + name, err}
	}
	return nil
}

func create(name string, setup uapi.Setup, flags uint32) (int, error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	arg := uapi.Create{
		Size:  uint32(unsafe.Sizeof(uapi.Create{})),
		Flags: flags,
		Setup: address(unsafe.Pointer(&setup)),
	}
	copy(arg.Name[:], name)
	result, err := deviceIoctl(syscall.O_RDWR, uapi.IocCreate, unsafe.Pointer(&arg))
	runtime.KeepAlive(&setup)
	return result, err
}

// Destroy ends a named wheel, with all its tokens. Programs that have it open get ENODEV
// from now on, also those that wait.
//
// Errors: ENOENT there is no wheel of this name, or no device; EPERM the wheel is another
// user's, or the caller may not open the device; EINVAL, ENAMETOOLONG as for Create;
// ENODEV or ENXIO there is no device; EACCES the caller may not open it; EMFILE, ENFILE.
func Destroy(name string) error {
	arg := uapi.Destroy{Size: uint32(unsafe.Sizeof(uapi.Destroy{}))}
	err := checkName(name)
	if err == nil {
		copy(arg.Name[:], name)
		_, err = deviceIoctl(syscall.O_RDWR, uapi.IocDestroy, unsafe.Pointer(&arg))
	}
	if err != nil {
		return &Error{"destroy " + name, err}
	}
	return nil
}

// OpenNamed opens a named wheel that exists. access is os.O_RDONLY to read events and to
// look at tokens, os.O_WRONLY to change tokens, os.O_RDWR for both.
//
// Errors: ENOENT, ENODEV or ENXIO there is no wheel of this name, or it is being
// destroyed; EACCES or EPERM the caller may not open it so; EINVAL the name is empty or
// has another byte in it, or access is none of the three; ENAMETOOLONG; ENOTTY the node is
// not one of a wheel; EMFILE, ENFILE.
func OpenNamed(name string, access int) (*Wheel, error) {
	wheel, err := openNamed(name, access)
	if err != nil {
		return nil, &Error{"open " + name, err}
	}
	return wheel, nil
}

func openNamed(name string, access int) (*Wheel, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if access != os.O_RDONLY && access != os.O_WRONLY && access != os.O_RDWR {
		return nil, syscall.EINVAL
	}
	fd, err := openFile(nodes+name, access)
	if err != nil {
		return nil, err
	}
	if err := checkWheel(fd); err != nil {
		syscall.Close(fd)
		return nil, err
	}
	return newWheel(fd, nodes+name)
}

// checkWheel fails if the fd is not that of a wheel.
func checkWheel(fd int) error {
	info := uapi.Info{Size: uint32(unsafe.Sizeof(uapi.Info{}))}
	_, err := ioctl(fd, uapi.IocInfo, unsafe.Pointer(&info))
	return err
}

// OpenOrCreate opens a named wheel for reading and writing, and makes it if there is
// none.
//
// Errors: those of Create and OpenNamed. The wheel may have been made all the same.
func OpenOrCreate(name string, setup Setup) (*Wheel, error) {
	var wheel *Wheel
	var err error

	for try := 0; try < openTries; try++ {
		if _, err = create(name, setup.uapi(), 0); err != nil {
			break
		}
		wheel, err = openNamed(name, os.O_RDWR)
		if err != syscall.ENOENT && err != syscall.ENODEV && err != syscall.ENXIO {
			break
		}
	}
	if err != nil {
		return nil, &Error{"open or create " + name, err}
	}
	return wheel, nil
}

// OpenFD makes a wheel of an fd: received from another process, or passed by the service
// manager. The wheel has a copy of the fd; the caller closes the fd itself. It is the same
// open file: deliveries that were read by either fd can be answered by the other.
//
// The open file becomes non-blocking, also for the process that has passed it.
//
// Errors: EBADF the fd is not open; ENOTTY it is not that of a wheel; EBADFD it is of
// /dev/timewheel but has not been set up; ENODEV; EMFILE.
func OpenFD(fd int) (*Wheel, error) {
	wheel, err := openCopy(fd)
	if err != nil {
		return nil, &Error{"open fd", err}
	}
	return wheel, nil
}

func openCopy(fd int) (*Wheel, error) {
	if err := checkWheel(fd); err != nil {
		return nil, err
	}
	// No program is started between the two calls.
	syscall.ForkLock.RLock()
	copied, err := syscall.Dup(fd)
	if err == nil {
		syscall.CloseOnExec(copied)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(copied, true); err != nil {
		syscall.Close(copied)
		return nil, err
	}
	return newWheel(copied, "wheel")
}

// Close closes the wheel. A private wheel ends with its last fd, a named one stays.
// Deliveries that the open file holds are due again at once, unless another fd of the
// same open file is left. Goroutines that wait get os.ErrClosed, and so does a second
// Close. Close waits for operations that are under way.
func (w *Wheel) Close() error {
	w.open.Lock()
	again := w.closed
	w.closed = true
	w.open.Unlock()
	if again {
		return &Error{"close", os.ErrClosed}
	}
	// Close waits for goroutines that are in the poller, while the lock is free for them.
	if err := w.file.Close(); err != nil {
		return &Error{"close", err}
	}
	return nil
}

// SyscallConn gives access to the wheel's fd, as for passing it to another process, which
// makes a wheel of it by OpenFD or tw_wheel_open_fd(3).
func (w *Wheel) SyscallConn() (syscall.RawConn, error) {
	w.open.RLock()
	defer w.open.RUnlock()
	if w.closed {
		return nil, &Error{"fd", os.ErrClosed}
	}
	return w.conn, nil
}

// ioctl carries out a command on the wheel.
func (w *Wheel) ioctl(op string, command uintptr, arg unsafe.Pointer) (int, error) {
	w.open.RLock()
	defer w.open.RUnlock()
	if w.closed {
		return 0, &Error{op, os.ErrClosed}
	}
	result, err := ioctl(w.fd, command, arg)
	if err != nil {
		return 0, &Error{op, err}
	}
	return result, nil
}
