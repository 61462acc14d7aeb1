package launch_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox/launch"
)

// copyOfTests is a copy of this program in memory.
func copyOfTests(t *testing.T) *os.File {
	t.Helper()
	f, err := launch.CopyProgram()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EACCES) {
		t.Skip("this kernel has no copies to execute: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestTheCopyOfTheProgramIsTheProgramAndNobodyCanWriteToIt(t *testing.T) {
	f := copyOfTests(t)
	want, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%v, %d bytes and not %d, or others", err, len(got), len(want))
	}
	path := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	if out, err := exec.Command(path, "-test.run=^$").CombinedOutput(); err != nil {
		t.Errorf("it cannot be executed: %v\n%s", err, out)
	}
	if err := os.Truncate(path, 0); err == nil {
		t.Error("it was cut")
	}
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return // better still
	}
	defer func() { _ = w.Close() }()
	if _, err := w.WriteAt([]byte("x"), 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("it was written to: %v", err)
	}
	if p, err := unix.Mmap(int(w.Fd()), 0, os.Getpagesize(), unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		_ = unix.Munmap(p)
		t.Error("it was mapped to be written to")
	}
}

func TestSandboxesAreStartedFromTheCopyOnceThereIsOne(t *testing.T) {
	copyOfTests(t)
	y := open(t, nil)
	eventually(t, "a sandbox is started from the copy", func() bool {
		r := y.make("sleep 1000", nil)
		program, err := os.Readlink("/proc/" + strconv.Itoa(r.Pid()) + "/exe")
		if err != nil {
			t.Fatal(err)
		}
		r.Kill()
		r.wait(t)
		return strings.HasPrefix(program, "/memfd:forgeyard-sandbox")
	})
}
