//go:build linux

package attack

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// initPid is pid 1 of the sandbox, which has the attempt's secrets and the launcher's socket.
const initPid = 1

// findProcess looks for the host's decoy process in everything that is like /proc.
func findProcess(t *Target) Verdict {
	seen := 0
	for _, dir := range []string{"/proc", "/host-proc"} {
		list, err := filepath.Glob(dir + "/[0-9]*")
		if err != nil {
			continue
		}
		for _, process := range list {
			seen++
			if line, err := os.ReadFile(process + "/cmdline"); err == nil && t.found(line) {
				return worked("%s is a process of the host", process)
			}
		}
	}
	return denied(fmt.Sprintf("%d processes, all of this sandbox", seen), nil)
}

// seeInit looks at the entry of a process with another id.
func seeInit(*Target) Verdict {
	data, err := os.ReadFile("/proc/1/status")
	if err != nil {
		return denied("look at pid 1", err)
	}
	return worked("read %d bytes of pid 1's status", len(data))
}

// readInitMemory reads pid 1's memory where its map says there is some.
func readInitMemory(*Target) Verdict {
	maps, err := os.Open("/proc/1/maps")
	if err != nil {
		return denied("open pid 1's map", err)
	}
	defer maps.Close()
	memory, err := os.Open("/proc/1/mem")
	if err != nil {
		return denied("open pid 1's memory", err)
	}
	defer memory.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		span, rights, _ := strings.Cut(lines.Text(), " ")
		first, _, _ := strings.Cut(span, "-")
		at, err := strconv.ParseInt(first, 16, 64)
		if err != nil || !strings.HasPrefix(rights, "rw") {
			continue
		}
		if n, err := memory.ReadAt(make([]byte, 16), at); err == nil {
			return worked("read %d bytes of pid 1's memory", n)
		}
	}
	return denied("read pid 1's memory", lines.Err())
}

// readInitEnvironment reads what pid 1 was started with.
func readInitEnvironment(*Target) Verdict {
	data, err := os.ReadFile("/proc/1/environ")
	if err != nil {
		return denied("read pid 1's environment", err)
	}
	return worked("read %d bytes of pid 1's environment", len(data))
}

// openInitDescriptors opens what pid 1 has open, the launcher's socket among it.
func openInitDescriptors(*Target) Verdict {
	list, err := os.ReadDir("/proc/1/fd")
	if err != nil {
		return denied("list pid 1's descriptors", err)
	}
	return worked("listed %d descriptors of pid 1", len(list))
}

// takeInitDescriptor takes one by the system call made for it.
func takeInitDescriptor(*Target) Verdict {
	pid, err := unix.PidfdOpen(initPid, 0)
	if err != nil {
		return denied("open pid 1", err)
	}
	defer unix.Close(pid)
	for fd := range 64 {
		taken, err := unix.PidfdGetfd(pid, fd, 0)
		switch {
		case err == nil:
			_ = unix.Close(taken)
			return worked("took descriptor %d of pid 1", fd)
		case !errors.Is(err, unix.EBADF):
			return denied("take a descriptor of pid 1", err)
		}
	}
	return denied("take a descriptor of pid 1", unix.EBADF)
}

// traceInit becomes pid 1's debugger.
func traceInit(*Target) Verdict {
	const ptraceSeize = 0x4206
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceSeize, initPid, 0, 0, 0, 0); errno != 0 {
		return denied("trace pid 1", errno)
	}
	return worked("pid 1 is traced") // until this program ends
}

// known is at the same address in pid 1, which is the same program.
var known = [4]byte{'o', 'u', 'r', 's'}

// readInitDirectly reads pid 1's memory by a system call.
func readInitDirectly(*Target) Verdict {
	local := make([]byte, len(known))
	own := []unix.Iovec{{Base: &local[0]}}
	own[0].SetLen(len(local))
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&known)), Len: len(known)}}
	n, err := unix.ProcessVMReadv(initPid, own, remote, 0)
	if err == nil || errors.Is(err, unix.EFAULT) { // where pid 1 has nothing there, it was asked all the same
		return worked("read %d bytes of pid 1", n)
	}
	return denied("read pid 1's memory", err)
}

// useSharedMemory attaches a segment of the host.
func useSharedMemory(t *Target) Verdict {
	id, err := unix.SysvShmGet(t.ShmKey, 0, 0)
	if err != nil {
		return denied("find the segment", err)
	}
	data, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return denied("attach the segment", err)
	}
	defer func() { _ = unix.SysvShmDetach(data) }()
	if !t.found(data) {
		return denied("it is another segment", nil)
	}
	return worked("read the secret in the host's shared memory")
}

// readMaskedProc reads what of /proc is nobody's business.
func readMaskedProc(*Target) Verdict {
	var last error
	for _, name := range []string{"keys", "kallsyms", "interrupts", "cmdline", "timer_list", "sched_debug", "kcore", "key-users", "latency_stats", "scsi/scsi", "acpi/wakeup"} {
		data, err := readSome("/proc/"+name, 4096)
		if err == nil && len(data) > 0 {
			return worked("read %d bytes of /proc/%s", len(data), name)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			last = err
		}
	}
	return denied("read masked files", last)
}
