package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cli/clitest"
	"github.com/forgeyard/forgeyard/internal/display/emulator"
)

// A sitting is a command that runs at a terminal of the kernel, as a person types it into a shell.
type sitting struct {
	*emulator.Seat
	t   *testing.T
	ctx context.Context
	cmd *exec.Cmd
	dir string
}

func sit(t *testing.T, args ...string) *sitting {
	t.Helper()
	seat, err := emulator.Sit(90, 16)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		t.Skip("there are no terminals here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = seat.Close() })
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), clitest.WaitWithin)
	t.Cleanup(cancel)
	s := &sitting{Seat: seat, t: t, ctx: ctx, dir: t.TempDir()}
	s.cmd = exec.CommandContext(ctx, exe)
	s.cmd.Args = append([]string{"forgeyard"}, args...)
	s.cmd.Dir = s.dir
	s.cmd.Env = []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "LANG=C.UTF-8"}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = seat.Program, seat.Program, seat.Program
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// sees waits for a text on the screen.
func (s *sitting) sees(text string) {
	s.t.Helper()
	has := func(line string) bool { return strings.Contains(line, text) }
	if err := s.Until(s.ctx, text, func(screen []string) bool { return slices.ContainsFunc(screen, has) }); err != nil {
		s.t.Error(err)
	}
}

// ends waits for the end of the command, and returns everything that stays on the terminal.
func (s *sitting) ends(code int) string {
	s.t.Helper()
	_ = s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d", got, code)
	}
	_ = s.Leave()
	var all string
	s.With(func(e *emulator.Emulator) {
		if wrong := e.Wrong(); len(wrong) > 0 {
			s.t.Errorf("the terminal got %q", wrong)
		}
		if !e.Wraps() {
			s.t.Error("lines of who comes next do not wrap")
		}
		all = strings.Join(e.All(), "\n")
	})
	return all
}

func TestCtrlCOnATerminalCancelsAndWaits(t *testing.T) {
	t.Parallel()
	s := sit(t, "run", "-c", `trap "echo cleaned up; exit 0" TERM; echo ready; while :; do sleep 0.1; done`)
	s.sees("ready")
	s.sees("Ctrl-C cancels")
	if err := s.Resize(50, 8); err != nil {
		t.Error(err)
	}
	if err := s.Type("\x03"); err != nil {
		t.Error(err)
	}
	all := s.ends(2)
	for _, want := range []string{"cancelling; press Ctrl-C again to end everything at once", "cleaned up", "run Cancelled"} {
		if !strings.Contains(all, want) {
			t.Errorf("nobody saw %q in:\n%s", want, all)
		}
	}
}

func TestASecondCtrlCLeavesAtOnceAndNothingBehind(t *testing.T) {
	t.Parallel()
	const marker = "86397.21"
	s := sit(t, "run", "-c", `trap "" TERM INT; echo ready; while :; do sleep `+marker+`; done`)
	s.sees("ready")
	_ = s.Type("\x03")
	s.sees("press Ctrl-C again")
	_ = s.Type("\x03")
	if all := s.ends(2); !strings.Contains(all, "ended at once, and nothing is left running; the run was asked to stop") {
		t.Errorf("a person is not told:\n%s", all)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(marker)) && !bytes.Contains(line, []byte("test.")) {
			t.Errorf("a process is left, %s: %q", file, line)
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(mounts, []byte(s.dir)) {
		t.Errorf("a mount is left, %v:\n%s", err, mounts)
	}
}
