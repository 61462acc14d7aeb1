package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

const (
	wantedBuffer  = 7 << 20 // bytes that QUIC wants of each socket's buffers, as the kernel counts them
	quicLeast     = 1200    // bytes of a datagram, below which there is no QUIC (RFC 9000)
	quicFirst     = 1280    // bytes of the first datagrams that we send
	headersV4     = 20 + 8  // of IP and UDP
	headersV6     = 40 + 8  //
	sysctlBuffers = "sysctl -w net.core.rmem_max=7500000 net.core.wmem_max=7500000"
)

// buffer is one direction of a socket's buffers, with the options that ask for its size and
// force it on a kernel that would give less.
type buffer struct {
	name       string
	get, force int
	ask        func(*net.UDPConn, int) error
}

// datagrams asks for the buffers that QUIC asks for and looks at what it got.
func datagrams() []Finding {
	buffers := []buffer{
		{name: "receive", get: unix.SO_RCVBUF, force: unix.SO_RCVBUFFORCE, ask: (*net.UDPConn).SetReadBuffer},
		{name: "send", get: unix.SO_SNDBUF, force: unix.SO_SNDBUFFORCE, ask: (*net.UDPConn).SetWriteBuffer},
	}
	var all []Finding
	for _, b := range buffers {
		check := "UDP " + b.name + " buffer"
		got, err := b.size()
		if err != nil {
			all = append(all, weak(check, "cannot be tried: "+err.Error(), ""))
			continue
		}
		all = append(all, bufferOf(check, got))
	}
	return all
}

// bufferOf judges the size of a buffer.
func bufferOf(check string, bytes int) Finding {
	if bytes < wantedBuffer {
		return weak(check, fmt.Sprintf("%d KiB of the %d KiB that QUIC asks for; fast transfers lose datagrams", bytes>>10, wantedBuffer>>10), sysctlBuffers)
	}
	return ok(check, fmt.Sprintf("%d KiB", bytes>>10))
}

// size makes a socket with the largest buffer that it gets, as the QUIC library does.
func (b *buffer) size() (int, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if err := b.ask(conn, wantedBuffer); err != nil {
		return 0, err
	}
	got := 0
	err = control(conn, func(fd int) error {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.force, wantedBuffer) // Only with CAP_NET_ADMIN.
		var err error
		got, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, b.get)
		return err
	})
	return got, err
}

// control calls f with the descriptor of a socket.
func control(conn *net.UDPConn, f func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = f(int(fd)) })
	return errors.Join(err, inner)
}

// path asks the kernel how large a datagram to a daemon may be. It sends nothing.
func path(ctx context.Context, endpoint string) Finding {
	check := "path to " + endpoint
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "udp", endpoint)
	if err != nil {
		return missing(check, err.Error(), "check the address and the name service: getent ahosts "+hostOf(endpoint))
	}
	defer func() { _ = conn.Close() }()
	udp := conn.(*net.UDPConn)
	v6 := udp.RemoteAddr().(*net.UDPAddr).IP.To4() == nil
	size := 0
	err = control(udp, func(fd int) error {
		level, option := unix.IPPROTO_IP, unix.IP_MTU
		if v6 {
			level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
		}
		var err error
		size, err = unix.GetsockoptInt(fd, level, option)
		return err
	})
	if err != nil {
		return weak(check, "the kernel does not say how large a packet may be: "+err.Error(), "")
	}
	return pathOf(check, size, v6)
}

// hostOf is the host of host:port.
func hostOf(endpoint string) string {
	if host, _, err := net.SplitHostPort(endpoint); err == nil {
		return host
	}
	return endpoint
}

// pathOf judges the largest packet of a path, in bytes with all headers.
func pathOf(check string, size int, v6 bool) Finding {
	headers, mend := headersV4, "raise the MTU of the interface or tunnel on the way: ip link set dev NAME mtu 1500; ip route get shows NAME"
	if v6 {
		headers = headersV6
	}
	switch payload := size - headers; {
	case payload < quicLeast:
		return missing(check, fmt.Sprintf("packets of at most %d bytes; QUIC needs %d", size, quicLeast+headers), mend)
	case payload < quicFirst:
		return weak(check, fmt.Sprintf("packets of at most %d bytes; ours begin with %d and are lost until the path is found out", size, quicFirst+headers), mend)
	}
	return ok(check, fmt.Sprintf("packets of %d bytes", size))
}
