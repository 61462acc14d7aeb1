//go:build linux

package attack

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// addKey puts a key into the kernel's keyring of its process.
func addKey(t *Target) Verdict {
	id, err := unix.AddKey("user", "decoy", []byte(t.Secret[0]), unix.KEY_SPEC_PROCESS_KEYRING)
	if err != nil {
		return denied("add a key", err)
	}
	return worked("added key %d", id)
}

// searchKeys asks for its session's keyring, which it may share with others of its id.
func searchKeys(*Target) Verdict {
	id, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_SESSION_KEYRING, true)
	if err != nil {
		return denied("find a keyring", err)
	}
	return worked("found keyring %d", id)
}

// requestKey asks for a key, for which the kernel could be made to call its helper on the host.
func requestKey(*Target) Verdict {
	kind, name := []byte("user\x00"), []byte("forgeyard-decoy\x00")
	_, _, errno := unix.Syscall6(unix.SYS_REQUEST_KEY, pointer(kind), pointer(name), 0, 0, 0, 0) // without a callout nothing is called
	if errno == unix.ENOKEY {
		return worked("the kernel looked for a key")
	}
	return denied("request a key", errno)
}

// useBPF asks for something of the kernel's bpf that has no effect and that it would answer with another error.
func useBPF(*Target) Verdict {
	const lookup = 1 // of an element, in the map of a descriptor that is none
	attr := make([]byte, 128)
	for i := range 4 {
		attr[i] = 0xff
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, lookup, pointer(attr), uintptr(len(attr)))
	if errno == unix.EPERM || errno == unix.ENOSYS {
		return denied("call bpf", errno)
	}
	return worked("bpf looked at what it was asked: %v", errno)
}

// useRing makes a ring for calls that no filter sees.
func useRing(*Target) Verdict {
	params := make([]byte, 120)
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, pointer(params), 0)
	if errno != 0 {
		return denied("make a ring", errno)
	}
	_ = unix.Close(int(fd))
	return worked("made a ring")
}

// useFaults handles its own page faults, by which races in the kernel are won.
func useFaults(*Target) Verdict {
	const userModeOnly = 1
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|userModeOnly, 0, 0)
	if errno != 0 {
		return denied("handle page faults", errno)
	}
	_ = unix.Close(int(fd))
	return worked("handles page faults")
}

// usePerf measures itself, by a part of the kernel that had many holes.
func usePerf(*Target) Verdict {
	attr := &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	fd, err := unix.PerfEventOpen(attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return denied("open an event", err)
	}
	_ = unix.Close(fd)
	return worked("opened an event")
}

// loadModule offers the kernel a module that is none.
func loadModule(*Target) Verdict {
	err := unix.InitModule([]byte("this is no module"), "")
	if errors.Is(err, unix.ENOEXEC) {
		return worked("the kernel looked at the module")
	}
	return denied("load a module", err)
}

// setTime sets the length of the clock's tick to what it is.
func setTime(*Target) Verdict {
	var now unix.Timex
	if _, err := unix.Adjtimex(&now); err != nil {
		return denied("read the clock's settings", err)
	}
	const tick = 0x4000
	same := unix.Timex{Modes: tick, Tick: now.Tick}
	if _, err := unix.Adjtimex(&same); err != nil {
		return denied("set the clock", err)
	}
	return worked("set the clock's tick to what it was")
}

// setHostName names the machine, unless it is the host.
func setHostName(t *Target) Verdict {
	own, err := OwnNamespaces()
	if err != nil || own.UTS == t.Host.UTS {
		return denied("the name is the host's, which is left alone", err)
	}
	if err := unix.Sethostname([]byte("attacked")); err != nil {
		return denied("set the host name", err)
	}
	return worked("set the host name")
}

// readKernelLog reads the kernel's messages, and takes none away.
func readKernelLog(*Target) Verdict {
	for _, name := range []string{"/dev/kmsg", DecoyDir + "/" + FileKmsg} {
		if data, err := readSome(name, 4096); err == nil && len(data) > 0 {
			return worked("read %d bytes of %s", len(data), name)
		}
	}
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 4096))
	if err != nil {
		return denied("read the kernel's messages", err)
	}
	return worked("read %d bytes of the kernel's messages", n)
}

// writeCorePattern looks for a writable setting by which a crash would start a program on the host. It writes nothing.
func writeCorePattern(*Target) Verdict {
	return writeOneOf("/proc/sys/kernel/core_pattern", DecoyDir+"/"+FileSysctl)
}

// writeSysfs does so with what starts a program for each event of a device.
func writeSysfs(*Target) Verdict {
	return writeOneOf("/sys/kernel/uevent_helper", "/sys/power/state", "/sys/fs/cgroup/cgroup.procs", DecoyDir+"/"+FileSysfs)
}

// writeRelease does so with what starts a program when a control group is empty.
func writeRelease(*Target) Verdict {
	return writeOneOf("/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/pids/release_agent", DecoyDir+"/"+FileRelease)
}

// leaveCgroup looks for a control group to move into.
func leaveCgroup(*Target) Verdict {
	return writeOneOf("/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/pids/cgroup.procs", "/sys/fs/cgroup/memory/tasks",
		"/sys/fs/cgroup/unified/cgroup.procs", DecoyDir+"/"+FileProcs)
}

// writeOneOf opens the first that it may write to.
func writeOneOf(names ...string) Verdict {
	var last error
	for _, name := range names {
		v := appendTo(name)
		if v.Worked {
			return v
		}
		if v.Errno != unix.ENOENT || last == nil {
			last = v.Errno
		}
	}
	return denied("open one for writing", last)
}

// mountCgroup mounts the tree of control groups, where it would see and lift its own limits.
func mountCgroup(*Target) Verdict {
	dir := mountPoint("cgroup")
	err := unix.Mount("cgroup2", dir, "cgroup2", 0, "")
	if err != nil && !errors.Is(err, unix.EPERM) {
		err = unix.Mount("cgroup", dir, "cgroup", 0, "pids")
	}
	if err != nil {
		return denied("mount the control groups", err)
	}
	return worked("mounted the control groups")
}

// setSysctl writes a setting of its own network as it is. It refuses in the host's.
func setSysctl(t *Target) Verdict {
	own, err := OwnNamespaces()
	if err != nil || own.Net == t.Host.Net {
		return denied("the network is the host's, which is left alone", err)
	}
	const name = "/proc/sys/net/ipv4/ip_default_ttl"
	value, err := os.ReadFile(name)
	if err != nil {
		return denied("read a setting", err)
	}
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return denied("open a setting", err)
	}
	_, err = file.Write(value)
	if err = errors.Join(err, file.Close()); err != nil {
		return denied("write a setting", err)
	}
	return worked("wrote %s as it was", name)
}
