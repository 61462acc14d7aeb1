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

// Package syscall moves descriptors of a child to the numbers behind the highest of them, before the child begins to be the
// program: what has such a number in this process is gone there.
func TestTheCopyIsStartedWhateverItsNumberIs(t *testing.T) {
	copied := copyOfTests(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	const high = 200
	for number := high; number < high+8; number++ {
		files := []*os.File{numbered(t, null, high), numbered(t, null, 100), numbered(t, null, 100), numbered(t, null, 100)}
		defer closeAll(files)
		again := numbered(t, copied, number)
		defer func() { _ = again.Close() }()
		err := launch.Program(again, files, func(path string, files []*os.File) error {
			p, err := os.StartProcess(path, []string{"copy", "-test.run=^$"}, &os.ProcAttr{Files: files})
			if err != nil {
				return err
			}
			state, err := p.Wait()
			if err == nil && !state.Success() {
				t.Errorf("the copy with number %d: %v", again.Fd(), state)
			}
			return err
		})
		if err != nil {
			t.Errorf("the copy with number %d: %v", again.Fd(), err)
		}
	}
}

// numbered is a file once more, with a number that is free from one on.
func numbered(t *testing.T, f *os.File, from int) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, from)
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
