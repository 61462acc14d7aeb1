//go:build linux

package fleet

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// victimEnv makes the test's program a story that will be killed, in the folder that it names.
const victimEnv = "FORGEYARD_TEST_FLEET"

func TestMain(m *testing.M) {
	if folder := os.Getenv(victimEnv); folder != "" {
		if err := victim(folder); err != nil {
			fmt.Println(err)
		}
		return
	}
	os.Exit(m.Run())
}

// victim starts a program, says which process it is, and then waits to be killed.
func victim(folder string) error {
	f, err := New(folder, Programs{}, Fast, io.Discard)
	if err != nil {
		return err
	}
	p := process{name: "sleeper", folder: folder, log: io.Discard, forks: f.forks}
	if err := p.start("/bin/sleep", nil, "600"); err != nil {
		return err
	}
	fmt.Println(p.PID())
	_, err = io.Copy(io.Discard, os.Stdin)
	p.Kill()
	return err
}

// A story that is killed kills its programs, and one that ends without Close does too.
func TestNoProgramOutlivesTheProcessOfItsFleet(t *testing.T) {
	for name, end := range map[string]func(story *exec.Cmd) error{
		"killed":  func(story *exec.Cmd) error { return story.Process.Kill() },
		"aborted": func(story *exec.Cmd) error { return story.Process.Signal(unix.SIGQUIT) },
	} {
		t.Run(name, func(t *testing.T) {
			story := exec.CommandContext(t.Context(), "/proc/self/exe")
			story.Env = append(os.Environ(), victimEnv+"="+t.TempDir())
			in, err := story.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close() }()
			out, err := story.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := story.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = story.Wait() }()
			var pid int
			if _, err := fmt.Fscan(bufio.NewReader(out), &pid); err != nil {
				t.Fatal("the story says no process: ", err)
			}
			program, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Close(program) }()
			if err := end(story); err != nil {
				t.Fatal(err)
			}
			if !ends(program) {
				t.Errorf("process %d goes on", pid)
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		})
	}
}

// ends waits for the end of a process, and reports whether it came.
func ends(pidfd int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(ReadyWithin.Milliseconds()))
		if err != unix.EINTR {
			return err == nil && n == 1
		}
	}
}
