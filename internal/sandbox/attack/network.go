//go:build linux

package attack

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// rawSocket makes a socket that forges packets.
func rawSocket(*Target) Verdict { return openSocket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }

// packetSocket makes one that hears those of others.
func packetSocket(*Target) Verdict { return openSocket(unix.AF_PACKET, unix.SOCK_RAW, 0) }

// machineSocket makes one to the machine that this one is a guest of.
func machineSocket(*Target) Verdict { return openSocket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }

// cipherSocket makes one to the kernel's ciphers, a large part of it that no job needs.
func cipherSocket(*Target) Verdict { return openSocket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }

// eventSocket makes a netlink socket that hears of the host's devices.
func eventSocket(*Target) Verdict {
	return openSocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)
}

// firewallSocket makes one that speaks to the packet filter.
func firewallSocket(*Target) Verdict {
	return openSocket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)
}

func openSocket(family, kind, protocol int) Verdict {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return denied("make the socket", err)
	}
	_ = unix.Close(fd)
	return worked("made a socket of family %d, kind %d, protocol %d", family, kind, protocol)
}

// connectAbstract speaks to who listens on the host under a name that is in no folder.
func connectAbstract(t *Target) Verdict {
	return t.greeted(unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: "@" + t.Name})
}

// connectLoopback speaks to who listens on the host's loopback address.
func connectLoopback(t *Target) Verdict {
	return t.greeted(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Port: t.Port, Addr: [4]byte{127, 0, 0, 1}})
}

// addAddress gives the loopback device another address, over netlink. It refuses in the host's network.
func addAddress(t *Target) Verdict {
	own, err := OwnNamespaces()
	if err != nil || own.Net == t.Host.Net {
		return denied("the network is the host's, which is left alone", err)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return denied("make a socket", err)
	}
	defer unix.Close(fd)
	request := struct {
		head    unix.NlMsghdr
		address unix.IfAddrmsg
		attr    unix.RtAttr
		value   [4]byte
	}{
		head:    unix.NlMsghdr{Type: unix.RTM_NEWADDR, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE, Seq: 1},
		address: unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: 32, Index: 1},
		attr:    unix.RtAttr{Len: unix.SizeofRtAttr + 4, Type: unix.IFA_LOCAL},
		value:   [4]byte{127, 9, 8, 7},
	}
	request.head.Len = uint32(unsafe.Sizeof(request))
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&request)), request.head.Len)
	if err := unix.Sendto(fd, bytes, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return denied("ask", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return denied("read the answer", err)
	}
	if code := *(*int32)(unsafe.Pointer(&answer[unix.SizeofNlMsghdr])); code != 0 {
		return denied("add an address", unix.Errno(-code))
	}
	return worked("the loopback device has another address")
}
