//go:build linux

package confine

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// newest is the highest number that the library knows.
func newest(info *arch.Info) uint32 {
	highest := 0
	for number := range info.SyscallNumbers {
		highest = max(highest, number)
	}
	return uint32(highest)
}

// verdict of a filter: 0 for allowed, or the errno.
type verdict = unix.Errno

// machine runs the filter of an architecture without a kernel.
type machine struct {
	info *arch.Info
	vm   *bpf.VM
}

func newMachine(t *testing.T, goarch string) machine {
	t.Helper()
	return machineOf(t, goarch, product(true))
}

func machineOf(t *testing.T, goarch string, data tables) machine {
	t.Helper()
	info, err := arch.GetInfo(goarch)
	if err != nil {
		t.Fatal(err)
	}
	program, err := filter(goarch, data)
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return machine{info, vm}
}

// call asks for a verdict. The machine reads words as from a network, so each is written that way; the lower word of an
// argument comes first, as in memory here.
func (m machine) call(t *testing.T, id arch.AuditArch, number uint32, args ...uint64) verdict {
	t.Helper()
	data := make([]byte, offArgs+6*argBytes)
	binary.BigEndian.PutUint32(data[offNumber:], number)
	binary.BigEndian.PutUint32(data[offArch:], uint32(id))
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offArgs+argBytes*i:], uint32(a))
		binary.BigEndian.PutUint32(data[offArgs+argBytes*i+4:], uint32(a>>32))
	}
	out, err := m.vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	switch uint32(out) & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW:
		return 0
	case unix.SECCOMP_RET_ERRNO:
		return verdict(out & unix.SECCOMP_RET_DATA)
	}
	t.Fatalf("the filter ended in %#x", out)
	return 0
}

func (m machine) named(t *testing.T, name string, args ...uint64) verdict {
	t.Helper()
	number, ok := m.info.SyscallNames[name]
	if !ok {
		t.Skipf("%s has no %s", m.info.Name, name)
	}
	return m.call(t, m.info.ID, uint32(number), args...)
}

// wanted is what the tables say, read the slow way.
func (m machine) wanted(number uint32, args []uint64) verdict {
	name := m.info.SyscallNumbers[int(number)]
	switch {
	case number > newest(m.info), slices.Contains(absent, name):
		return unix.ENOSYS
	case slices.Contains(allowed, name):
		return 0
	}
	for _, r := range ruled {
		if r.name != name {
			continue
		}
		if slices.ContainsFunc(r.cases, func(c cond) bool { return holds(c, args) }) {
			return 0
		}
		return r.refusal
	}
	return unix.EPERM
}

func holds(c cond, args []uint64) bool {
	return !slices.ContainsFunc(c, func(t test) bool { return (uint32(args[t.arg])&t.mask == t.want) == t.not })
}

func TestTheFilterSaysWhatTheTablesSay(t *testing.T) {
	for goarch := range architectures {
		t.Run(goarch, func(t *testing.T) {
			m := newMachine(t, goarch)
			random := rand.New(rand.NewPCG(1, 2))
			for number := range newest(m.info) + 100 {
				for range 50 {
					args := arguments(random)
					if got, want := m.call(t, m.info.ID, number, args...), m.wanted(number, args); got != want {
						t.Fatalf("call %d (%s) with %#x: %d, and the tables say %d", number, m.info.SyscallNumbers[int(number)], args, got, want)
					}
				}
			}
		})
	}
}

// arguments are such that tests are met and just missed.
func arguments(random *rand.Rand) []uint64 {
	choices := []uint64{0, 1, 2, 3, 6, 8, 10, 16, 17, 38, 40, 58, 0x5412, 0x541c, 0x20000, 0x20008, 0x10000000, 0xffffffff, 1 << 11, 1<<19 | 1}
	args := make([]uint64, 6)
	for i := range args {
		args[i] = choices[random.IntN(len(choices))]
		if random.IntN(4) == 0 {
			args[i] |= uint64(random.Uint32()) << 32
		}
	}
	return args
}

func TestAFilterThatIsHandedOverIsTheOneThatIsAssembled(t *testing.T) {
	for _, mapped := range []bool{true, false} {
		want, err := assembled(product(mapped))
		if err != nil {
			t.Fatal(err)
		}
		packed, err := Filter(mapped)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read(packed); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %d instructions of %d", err, len(got), len(want))
		}
		if _, err := read(packed[1:]); err == nil {
			t.Error("one that was cut is taken")
		}
	}
}

// Steps that share the id of pid 1 could take its descriptors and memory from it.
func TestWithASingleIDNobodySetsTheLimitsOfAnother(t *testing.T) {
	for goarch := range architectures {
		single, mapped := machineOf(t, goarch, product(false)), newMachine(t, goarch)
		number := uint32(single.info.SyscallNames["prlimit64"])
		for pid, want := range map[uint64]verdict{0: 0, 1: unix.EPERM, 1000: unix.EPERM} {
			if got := single.call(t, single.info.ID, number, pid, unix.RLIMIT_NOFILE); got != want {
				t.Errorf("%s, single: of process %d: %v; want %v", goarch, pid, got, want)
			}
			if got := mapped.call(t, mapped.info.ID, number, pid, unix.RLIMIT_NOFILE); got != 0 {
				t.Errorf("%s, mapped: of process %d: %v", goarch, pid, got)
			}
		}
	}
}

func TestWhatTheFilterIsForIsRefused(t *testing.T) {
	names := []string{
		"io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "keyctl", "add_key", "request_key", "userfaultfd",
		"perf_event_open", "mount", "umount2", "pivot_root", "move_mount", "open_tree", "open_tree_attr", "fsopen", "fsconfig",
		"fsmount", "fspick", "io_setup", "mount_setattr", "setns", "clone3", "chroot", "kexec_load", "kexec_file_load", "init_module",
		"finit_module", "delete_module", "reboot", "swapon", "swapoff", "settimeofday", "clock_settime", "clock_adjtime",
		"adjtimex", "quotactl", "quotactl_fd", "open_by_handle_at", "name_to_handle_at", "acct", "syslog", "fanotify_init",
		"sethostname", "setdomainname", "iopl", "ioperm", "modify_ldt", "kcmp", "pidfd_getfd", "lookup_dcookie", "vhangup",
		"uselib", "ustat", "sysfs", "_sysctl", "nfsservctl", "mbind", "move_pages", "migrate_pages", "set_mempolicy", "vserver",
	}
	for goarch := range architectures {
		m := newMachine(t, goarch)
		for _, name := range names {
			t.Run(goarch+"/"+name, func(t *testing.T) {
				if m.named(t, name) == 0 {
					t.Error("allowed")
				}
			})
		}
	}
}

func TestNamespacesAreRefusedAndThreadsAndProcessesAreNot(t *testing.T) {
	m := newMachine(t, "amd64")
	const upper = 1 << 40 // that the kernel does not read
	spaces := map[string]uint64{
		"mount": unix.CLONE_NEWNS, "cgroup": unix.CLONE_NEWCGROUP, "uts": unix.CLONE_NEWUTS, "ipc": unix.CLONE_NEWIPC,
		"user": unix.CLONE_NEWUSER, "pid": unix.CLONE_NEWPID, "net": unix.CLONE_NEWNET,
	}
	for name, flag := range spaces {
		for _, call := range []string{"clone", "unshare"} {
			if got := m.named(t, call, upper|flag|unix.CLONE_FS); got != unix.EPERM {
				t.Errorf("%s of a %s namespace: %d", call, name, got)
			}
		}
	}
	if got := m.named(t, "unshare", unix.CLONE_NEWTIME); got != unix.EPERM {
		t.Errorf("unshare of a time namespace: %d", got)
	}
	const thread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM
	for name, flags := range map[string]uint64{"thread": thread, "process": uint64(unix.SIGCHLD), "spawn": unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD} {
		if got := m.named(t, "clone", flags); got != 0 {
			t.Errorf("clone of a %s: %d", name, got)
		}
	}
	if got := m.named(t, "clone3"); got != unix.ENOSYS {
		t.Errorf("clone3, whose flags cannot be seen: %d; only ENOSYS makes libraries use clone", got)
	}
}

func TestSocketsAreOfOrdinaryFamilies(t *testing.T) {
	m := newMachine(t, "amd64")
	const flags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	for _, c := range []struct {
		name                   string
		family, kind, protocol uint64
		want                   verdict
	}{
		{"unix", unix.AF_UNIX, unix.SOCK_STREAM | flags, 0, 0},
		{"tcp", unix.AF_INET, unix.SOCK_STREAM | flags, 0, 0},
		{"udp", unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP, 0},
		{"ping", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, 0},
		{"route", unix.AF_NETLINK, unix.SOCK_RAW | flags, unix.NETLINK_ROUTE, 0},
		{"raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP, unix.EAFNOSUPPORT},
		{"old packet", unix.AF_INET, unix.SOCK_PACKET, 0, unix.EAFNOSUPPORT},
		{"sctp", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, unix.EAFNOSUPPORT},
		{"audit", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT, unix.EAFNOSUPPORT},
		{"netfilter", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER, unix.EAFNOSUPPORT},
		{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM, 0, unix.EAFNOSUPPORT},
		{"alg", unix.AF_ALG, unix.SOCK_SEQPACKET, 0, unix.EAFNOSUPPORT},
		{"packet", unix.AF_PACKET, unix.SOCK_RAW, 0, unix.EAFNOSUPPORT},
		{"bluetooth", unix.AF_BLUETOOTH, unix.SOCK_STREAM, 0, unix.EAFNOSUPPORT},
		{"tipc", unix.AF_TIPC, unix.SOCK_STREAM, 0, unix.EAFNOSUPPORT},
	} {
		// The kernel reads 32 bits of each; what stands above must not change the verdict.
		for _, upper := range []uint64{0, uint64(unix.AF_UNIX) << 32} {
			if got := m.named(t, "socket", c.family|upper, c.kind|upper, c.protocol|upper); got != c.want {
				t.Errorf("%s: %d, want %d", c.name, got, c.want)
			}
		}
	}
}

func TestATerminalCannotBeTypedInto(t *testing.T) {
	m := newMachine(t, "amd64")
	for _, request := range []uint64{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSTI | 1<<32} {
		if got := m.named(t, "ioctl", 0, request); got != unix.EPERM {
			t.Errorf("ioctl %#x: %d", request, got)
		}
	}
	if got := m.named(t, "ioctl", unix.TIOCSTI, unix.TCGETS); got != 0 {
		t.Errorf("ioctl TCGETS: %d", got)
	}
}

// The compiled form of such a program takes memory that is counted for the whole machine.
func TestNoProgramIsAttachedToASocket(t *testing.T) {
	m := newMachine(t, "amd64")
	for _, option := range []uint64{unix.SO_ATTACH_FILTER, unix.SO_ATTACH_BPF, unix.SO_ATTACH_REUSEPORT_CBPF, unix.SO_ATTACH_REUSEPORT_EBPF} {
		if got := m.named(t, "setsockopt", 3, unix.SOL_SOCKET|1<<32, option|1<<32); got != unix.EPERM {
			t.Errorf("option %d: %d", option, got)
		}
	}
	if got := m.named(t, "setsockopt", 3, unix.SOL_SOCKET, unix.SO_REUSEADDR); got != 0 {
		t.Errorf("SO_REUSEADDR: %d", got)
	}
	if got := m.named(t, "setsockopt", 3, unix.IPPROTO_TCP, unix.SO_ATTACH_FILTER); got != 0 {
		t.Errorf("option 26 of TCP: %d", got)
	}
}

func TestPersonalitiesAreLinuxOnly(t *testing.T) {
	m := newMachine(t, "amd64")
	for persona, want := range map[uint64]verdict{0: 0, 8: 0, 0xffffffff: 0, 0x0040000: unix.EPERM, 1: unix.EPERM} {
		if got := m.named(t, "personality", persona); got != want {
			t.Errorf("personality %#x: %d, want %d", persona, got, want)
		}
	}
}

func TestOtherEntriesOfTheKernelAreShut(t *testing.T) {
	m := newMachine(t, "amd64")
	read := uint32(m.info.SyscallNames["read"])
	if got := m.call(t, m.info.ID, read); got != 0 {
		t.Fatalf("read: %d", got)
	}
	if got := m.call(t, m.info.ID, read|x32Bit); got != unix.ENOSYS {
		t.Errorf("read by x32: %d", got)
	}
	for name, id := range map[string]arch.AuditArch{"i386": arch.I386.ID, "aarch64": arch.AARCH64.ID} {
		if got := m.call(t, id, read); got != unix.ENOSYS {
			t.Errorf("a call of %s: %d", name, got)
		}
	}
	if got := m.call(t, m.info.ID, newest(m.info)+1); got != unix.ENOSYS {
		t.Errorf("a call younger than the tables: %d", got)
	}
}

func TestTheNumbersAreThoseOfTheLibrary(t *testing.T) {
	for goarch, on := range architectures {
		info, err := arch.GetInfo(goarch)
		if err != nil {
			t.Fatal(err)
		}
		if on.id != uint32(info.ID) || on.newest != newest(info) {
			t.Errorf("%s is %#x and ends at %d; the library says %#x and %d", goarch, on.id, on.newest, uint32(info.ID), newest(info))
		}
		names := slices.Concat(allowed, absent)
		for _, r := range ruled {
			names = append(names, r.name)
		}
		for _, name := range names {
			want, have := info.SyscallNames[name]
			if got, ok := on.number(name); ok != have || ok && got != uint32(want) {
				t.Errorf("%s: %s is %d (%t); the library says %d (%t)", goarch, name, got, ok, want, have)
			}
		}
		if len(numbered) != len(names) {
			t.Errorf("%d calls have numbers, and %d are in the tables", len(numbered), len(names))
		}
	}
}

func TestTheTablesAreInOrder(t *testing.T) {
	var names []string
	for _, r := range ruled {
		names = append(names, r.name)
	}
	for what, list := range map[string][]string{"allowed": allowed, "absent": absent, "ruled": names} {
		if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("%s is not sorted, or names a call twice", what)
		}
	}
	for _, name := range slices.Concat(absent, names) {
		if slices.Contains(allowed, name) {
			t.Errorf("%s is allowed and restricted", name)
		}
	}
	amd64, arm64 := newMachine(t, "amd64").info, newMachine(t, "arm64").info
	for _, name := range slices.Concat(allowed, absent, names) {
		_, one := amd64.SyscallNames[name]
		_, other := arm64.SyscallNames[name]
		if !one && !other {
			t.Errorf("%s is no system call of either architecture", name)
		}
	}
}

// TestOrdinaryCallsAreAllowedByEveryName holds that an architecture's own names of everyday calls are in the table: arm64 has
// some that amd64 has not.
func TestOrdinaryCallsAreAllowedByEveryName(t *testing.T) {
	for goarch, numbers := range map[string][]uint32{
		"amd64": {0, 1, 2, 4, 5, 6, 9, 57, 58, 59, 61, 202, 228, 231, 257, 262, 332, 334, 437, 439, 452},         // read … newfstatat statx rseq openat2 faccessat2 fchmodat2
		"arm64": {56, 57, 63, 64, 78, 79, 80, 93, 94, 98, 113, 172, 214, 221, 222, 260, 291, 293, 437, 439, 452}, // openat … fstatat fstat … statx rseq
	} {
		m := newMachine(t, goarch)
		for _, number := range numbers {
			if got := m.call(t, m.info.ID, number); got != 0 {
				t.Errorf("%s: %d (%s): %d", goarch, number, m.info.SyscallNumbers[int(number)], got)
			}
		}
	}
}
