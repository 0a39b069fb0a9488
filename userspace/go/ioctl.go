// SPDX-License-Identifier: LGPL-2.1-or-later

package timewheel

import (
	"runtime"
	"syscall"
	"unsafe"
)

// none is what _IO() adds to a command's number on this machine.
func none() uintptr {
	switch runtime.GOARCH {
	case "mips", "mipsle", "mips64", "mips64le", "ppc64", "ppc64le":
		return 1 << 29
	}
	return 0
}

// ioctl carries out a command on an fd. Addresses in arg have to be those of address().
func ioctl(fd int, command uintptr, arg unsafe.Pointer) (int, error) {
	result, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), none()|command,
		uintptr(arg))
	if errno != 0 {
		return 0, errno
	}
	return int(result), nil
}

var (
	never   bool
	escaped unsafe.Pointer
)

// address returns where memory is, for a structure that the kernel reads. The compiler sees
// that the memory escapes, and puts it on the heap. On a stack that grows it would be moved.
// The caller keeps it alive until the call is over.
func address(memory unsafe.Pointer) uint64 {
	if never {
		escaped = memory
	}
	return uint64(uintptr(memory))
}
