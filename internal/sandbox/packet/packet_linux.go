// Package packet carries values and open files between two processes of one machine: the agent and its launcher, the launcher
// and pid 1 of a sandbox. A packet is one JSON value and a few files, over a Unix socket that keeps packets apart
// (SOCK_SEQPACKET), so that a packet comes whole or not at all.
//
// A packet that is too long, was cut or has files that were not expected is refused, and its files are closed. The package
// starts no goroutine.
package packet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bounds of one packet.
const (
	MaxBytes = 160 << 10
	MaxFiles = 240
)

// bufferBytes is asked for what is on its way, so that a packet of MaxBytes fits.
const bufferBytes = 2 * MaxBytes

// ErrMalformed says that what came is no packet, or not the one that was expected.
var ErrMalformed = errors.New("a packet between processes of the sandbox is malformed")

// Conn is one end. One goroutine may receive and any number may send, all at once.
type Conn struct {
	file *os.File
	raw  syscall.RawConn

	sendMu sync.Mutex // one packet after the other
}

// Pair makes two ends: one for this process, and a file for another process, for which it calls New. The caller closes both.
func Pair(name string) (*Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	other := os.NewFile(uintptr(fds[1]), name)
	conn, err := New(fds[0], name)
	if err != nil {
		return nil, nil, errors.Join(err, other.Close())
	}
	_ = unix.SetsockoptInt(fds[1], unix.SOL_SOCKET, unix.SO_SNDBUF, bufferBytes) // long packets fail without it, with an error
	return conn, other, nil
}

// New takes over a descriptor, which must be such a socket. It closes it on error.
func New(fd int, name string) (*Conn, error) {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err == nil && kind != unix.SOCK_SEQPACKET {
		err = fmt.Errorf("%w: descriptor %d is a socket of type %d", ErrMalformed, fd, kind)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), unix.Close(fd))
	}
	unix.CloseOnExec(fd)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, bufferBytes)
	c := &Conn{file: os.NewFile(uintptr(fd), name)}
	c.raw, err = c.file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, c.file.Close())
	}
	return c, nil
}

// Close ends the connection; the peer reads io.EOF. What waits in Send or Receive returns with an error.
func (c *Conn) Close() error { return c.file.Close() }

// CloseWrite ends what this end sends: the peer reads io.EOF, and can still send.
func (c *Conn) CloseWrite() error {
	var serr error
	if c.raw.Control(func(fd uintptr) { serr = unix.Shutdown(int(fd), unix.SHUT_WR) }) != nil {
		return nil // it is closed, and so has ended that too
	}
	if errors.Is(serr, unix.ENOTCONN) { // the peer has ended
		return nil
	}
	return serr
}

// Send sends a value and duplicates of files. It waits while the peer has too much to read.
func (c *Conn) Send(value any, files ...*os.File) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(body) > MaxBytes || len(files) > MaxFiles {
		return fmt.Errorf("%w: it would have %d bytes and %d files", ErrMalformed, len(body), len(files))
	}
	rights, err := rightsOf(files)
	if err != nil {
		return err
	}
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	var sendErr error
	err = c.raw.Write(func(fd uintptr) bool {
		_, sendErr = unix.SendmsgN(int(fd), body, rights, nil, unix.MSG_NOSIGNAL)
		return !errors.Is(sendErr, unix.EAGAIN)
	})
	runtime.KeepAlive(files)
	return errors.Join(err, sendErr)
}

// rightsOf is the control message that carries files.
func rightsOf(files []*os.File) ([]byte, error) {
	if len(files) == 0 {
		return nil, nil
	}
	fds := make([]int, 0, len(files))
	for _, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			return nil, err
		}
		// Not Fd, which would make the file block.
		if err := raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) }); err != nil {
			return nil, err
		}
	}
	return unix.UnixRights(fds...), nil
}

// Receive waits for the next packet. Its files belong to the caller, also those of a value that is not what was expected;
// on an error there are none. The end of the peer is io.EOF.
func (c *Conn) Receive(value any) ([]*os.File, error) {
	var n, oobn, flags int
	var rerr error
	var body []byte // as long as it must be: there are many connections, on which little is said
	oob := make([]byte, unix.CmsgSpace(4*MaxFiles))
	err := c.raw.Read(func(fd uintptr) bool {
		if n, _, rerr = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_TRUNC); rerr == nil {
			body = make([]byte, max(1, min(n, MaxBytes)))
			n, oobn, flags, _, rerr = unix.Recvmsg(int(fd), body, oob, unix.MSG_CMSG_CLOEXEC)
		}
		return !errors.Is(rerr, unix.EAGAIN)
	})
	if err := errors.Join(err, rerr); err != nil {
		if errors.Is(err, unix.ECONNRESET) {
			return nil, io.EOF
		}
		return nil, err
	}
	files, err := filesOf(oob[:oobn])
	switch {
	case err != nil:
	case n == 0 && oobn == 0:
		return nil, io.EOF
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		err = fmt.Errorf("%w: it was cut", ErrMalformed)
	default:
		if jerr := json.Unmarshal(body[:n], value); jerr != nil {
			err = fmt.Errorf("%w: %w", ErrMalformed, jerr)
		}
	}
	clear(body)
	if err != nil {
		CloseFiles(files)
		return nil, err
	}
	return files, nil
}

// filesOf takes the files out of control messages.
func filesOf(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // credentials, which nobody asked for
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// CloseFiles closes files that nobody will use.
func CloseFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close() // nothing was written
		}
	}
}
