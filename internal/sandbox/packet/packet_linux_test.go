package packet_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair makes two ends in one process.
func pair(t *testing.T) (*packet.Conn, *packet.Conn) {
	t.Helper()
	ours, file, err := packet.Pair("other")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	theirs, err := packet.New(fd, "ours")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

func TestValuesAndFilesArriveInOrder(t *testing.T) {
	a, b := pair(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Send("first"), a.Send("second", w, w), a.Send(3)); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	var text string
	if files, err := b.Receive(&text); err != nil || text != "first" || len(files) != 0 {
		t.Errorf("%q %v %v", text, files, err)
	}
	files, err := b.Receive(&text)
	if err != nil || text != "second" || len(files) != 2 {
		t.Fatalf("%q %v %v", text, files, err)
	}
	if _, err := files[1].WriteString("through the file"); err != nil {
		t.Error(err)
	}
	packet.CloseFiles(files)
	if content, err := io.ReadAll(r); err != nil || string(content) != "through the file" {
		t.Errorf("%q %v", content, err)
	}
	_ = r.Close()
	var number int
	if _, err := b.Receive(&number); err != nil || number != 3 {
		t.Errorf("%d %v", number, err)
	}
}

func TestReceivedFilesAreNotInherited(t *testing.T) {
	a, b := pair(t)
	if err := a.Send("x", os.Stdout); err != nil {
		t.Fatal(err)
	}
	var text string
	files, err := b.Receive(&text)
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	defer packet.CloseFiles(files)
	if flags, err := unix.FcntlInt(files[0].Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("%x %v", flags, err)
	}
}

func TestTheLongestPacketArrivesAndALongerOneIsRefused(t *testing.T) {
	a, b := pair(t)
	longest := strings.Repeat("x", packet.MaxBytes-2) // JSON adds two quotes
	if err := a.Send(longest + "x"); !errors.Is(err, packet.ErrMalformed) {
		t.Errorf("%v", err)
	}
	if err := a.Send(longest); err != nil {
		t.Fatal(err)
	}
	var got string
	if _, err := b.Receive(&got); err != nil || got != longest {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := a.Send("x", make([]*os.File, packet.MaxFiles+1)...); !errors.Is(err, packet.ErrMalformed) {
		t.Errorf("%v", err)
	}
}

func TestTheMostFilesArrive(t *testing.T) {
	a, b := pair(t)
	most := make([]*os.File, packet.MaxFiles)
	for i := range most {
		most[i] = os.Stderr
	}
	if err := a.Send(1, most...); err != nil {
		t.Fatal(err)
	}
	var n int
	files, err := b.Receive(&n)
	if err != nil || len(files) != packet.MaxFiles {
		t.Errorf("%d files, %v", len(files), err)
	}
	packet.CloseFiles(files)
}

// What a hostile end could send by hand is refused, and its files are closed.
func TestWhatIsNoPacketIsRefused(t *testing.T) {
	ours, file, err := packet.Pair("by hand")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	defer func() { _ = file.Close() }()
	fd := int(file.Fd())
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4*packet.MaxBytes); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"no JSON": "{", "another type": `"text"`, "too long": `"` + strings.Repeat("x", packet.MaxBytes) + `"`, "nothing": ""} {
		before := descriptors(t)
		if err := unix.Sendmsg(fd, []byte(body), unix.UnixRights(1, 1), nil, 0); err != nil {
			t.Fatal(name, err)
		}
		var n int
		if files, err := ours.Receive(&n); !errors.Is(err, packet.ErrMalformed) || files != nil {
			t.Errorf("%s: %v %v", name, files, err)
		}
		if after := descriptors(t); after != before {
			t.Errorf("%s: %d descriptors before, %d after", name, before, after)
		}
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestTheEndOfThePeerIsEOF(t *testing.T) {
	a, b := pair(t)
	if err := errors.Join(a.Send(7), a.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := b.Receive(&n); err != nil || n != 7 {
		t.Errorf("%d %v", n, err)
	}
	if _, err := b.Receive(&n); !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	if err := b.Send(8); err != nil { // that direction stands
		t.Error(err)
	}
	if _, err := a.Receive(&n); err != nil || n != 8 {
		t.Errorf("%d %v", n, err)
	}
	if err := errors.Join(b.Close(), a.CloseWrite(), a.Close(), a.CloseWrite()); err != nil {
		t.Error(err)
	}
	if err := b.Send(9); err == nil {
		t.Error("a closed end sends")
	}
}

func TestCloseWakesTheReceiver(t *testing.T) {
	a, _ := pair(t)
	got := make(chan error, 1)
	go func() {
		var n int
		_, err := a.Receive(&n)
		got <- err
	}()
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := <-got; err == nil {
		t.Error("it received something")
	}
}

func TestOtherSocketsAreRefused(t *testing.T) {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
		fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := packet.New(fds[0], "socket"); !errors.Is(err, packet.ErrMalformed) {
			t.Errorf("%v", err)
		}
		_ = unix.Close(fds[1])
	}
	fd, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packet.New(fd, "null"); err == nil {
		t.Error("a file is taken for a socket")
	}
}
