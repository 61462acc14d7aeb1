//go:build linux

package confine

import "golang.org/x/sys/unix"

// rule allows a system call by its arguments: where one of its cases holds. Otherwise it is refused with the rule's errno.
type rule struct {
	name    string
	cases   []cond
	refusal unix.Errno
}

// cond holds where all of its tests do.
type cond []test

// test looks at the lower 32 bits of an argument, which is all that the kernel itself reads of each argument here: a test of
// 64 would be got round by whoever sets the upper half.
type test struct {
	arg  uint32
	mask uint32
	want uint32
	not  bool // it must differ
}

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	whole      = 0xffffffff
	socketType = 0xf // the rest of the argument are flags
)

func is(arg, want uint32) test           { return test{arg: arg, mask: whole, want: want} }
func isNot(arg, want uint32) test        { return test{arg: arg, mask: whole, want: want, not: true} }
func masked(arg, mask, want uint32) test { return test{arg: arg, mask: mask, want: want} }

// ruled are the system calls that depend on their arguments, sorted.
var ruled = []rule{
	{"clone", []cond{{masked(0, newNamespaces, 0)}}, unix.EPERM},
	// Keystrokes pushed into a terminal are read by whoever owns it later; the console's paste buffer likewise.
	{"ioctl", []cond{{isNot(1, unix.TIOCSTI), isNot(1, unix.TIOCLINUX)}}, unix.EPERM},
	// Execution domains: Linux, with or without the size of 32-bit address spaces and fixed uname, and the question.
	{"personality", []cond{{is(0, 0)}, {is(0, 0x8)}, {is(0, 0x20000)}, {is(0, 0x20008)}, {is(0, 0xffffffff)}}, unix.EPERM},
	// Programs of filters, whose compiled form is counted for the whole machine and for nobody's group.
	{"setsockopt", []cond{{isNot(1, unix.SOL_SOCKET)}, {
		isNot(2, unix.SO_ATTACH_FILTER), isNot(2, unix.SO_ATTACH_BPF),
		isNot(2, unix.SO_ATTACH_REUSEPORT_CBPF), isNot(2, unix.SO_ATTACH_REUSEPORT_EBPF),
	}}, unix.EPERM},
	{"socket", sockets, unix.EAFNOSUPPORT},
	{"socketpair", []cond{{is(0, unix.AF_UNIX)}}, unix.EAFNOSUPPORT},
	// CLONE_NEWTIME shares its bit with clone's exit signal, and is a flag here only.
	{"unshare", []cond{{masked(0, newNamespaces|unix.CLONE_NEWTIME, 0)}}, unix.EPERM},
}

// ownLimits lets limits be read and set of the calling process, which goes by 0, and of no other. Which other would be pid 1
// cannot be said here; a program that names itself by its number finds another way, as it must for the limits of others.
var ownLimits = rule{"prlimit64", []cond{{is(0, 0)}}, unix.EPERM}

// sockets are the families that ordinary work uses. The protocols are named because the kernel loads a module for any other.
var sockets = append([]cond{
	{is(0, unix.AF_UNIX)},
	{is(0, unix.AF_NETLINK), is(2, unix.NETLINK_ROUTE)},
}, internet()...)

func internet() []cond {
	protocols := []uint32{unix.IPPROTO_IP, unix.IPPROTO_ICMP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6, unix.IPPROTO_MPTCP}
	var cases []cond
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		for _, kind := range []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			for _, protocol := range protocols {
				cases = append(cases, cond{is(0, family), masked(1, socketType, kind), is(2, protocol)})
			}
		}
	}
	return cases
}
