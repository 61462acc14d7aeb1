//go:build linux

package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// prctl sets an attribute of every thread.
func prctl(what string, option, a, b uintptr) error {
	if _, _, errno := psx.Syscall6(unix.SYS_PRCTL, option, a, b, 0, 0, 0); errno != 0 {
		return fmt.Errorf("%s: %w", what, errno)
	}
	return nil
}

// capset leaves every thread the given capabilities, permitted and effective, none of them inheritable.
func capset(keep uint64) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	low, high := uint32(keep), uint32(keep>>32)
	data := [2]unix.CapUserData{{Effective: low, Permitted: low}, {Effective: high, Permitted: high}}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&data)
	if errno != 0 {
		return fmt.Errorf("set capabilities: %w", errno)
	}
	return nil
}

// install hands a filter to the kernel, for all threads at once or none.
func install(code []unix.SockFilter) error {
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	failed, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	if errno != 0 {
		return fmt.Errorf("install the filter of system calls: %w", errno)
	}
	if failed != 0 {
		return fmt.Errorf("install the filter of system calls: thread %d has another one", failed)
	}
	return nil
}

// actionAvailable asks whether filters may end in an action.
func actionAvailable(action *uint32) error {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(action)))
	if errno != 0 {
		return errno
	}
	return nil
}
