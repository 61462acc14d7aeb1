package launch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// agentArg makes an agent of the test's executable, for tests to kill.
const agentArg = "agent-of-tests"

// life is what such an agent does.
type life struct {
	State    string
	Folder   string
	Rootless bool
	Pool     int
	Name     string
	Disk     forge.Bytes
	Script   string        // of a sandbox; "" for none
	Deadline time.Duration // from now, or 0 for an hour
}

// agent leads the life that it reads, and says what happens: "opened", "made", what the script prints, "ended". It ends at
// the end of its input.
func agent() int {
	in := json.NewDecoder(os.Stdin)
	var l life
	if err := in.Decode(&l); err != nil {
		fmt.Println(err)
		return 1
	}
	launcher, err := sandbox.Open(context.Background(), sandbox.Config{State: l.State, Rootless: l.Rootless, Pool: l.Pool, Slots: 4})
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	fmt.Println("opened", launcher.Report().Levels)
	if l.Script != "" {
		if err := l.work(launcher); err != nil {
			fmt.Println("make:", err)
			return 1
		}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := launcher.Close(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func (l *life) work(launcher *sandbox.Launcher) error {
	guest, err := json.Marshal(task{Argv: []string{"/bin/sh", "-c", l.Script}})
	if err != nil {
		return err
	}
	deadline := time.Hour
	if l.Deadline != 0 {
		deadline = l.Deadline
	}
	box, err := launcher.Make(context.Background(), &sandbox.Order{
		Name: l.Name, Folder: l.Folder, Network: forge.NetworkNone, Policy: quick(), Deadline: clock.Boot().Add(deadline),
		Keeper: os.Stdin, Stdout: os.Stdout, Stderr: os.Stdout, Guest: guest,
		Limits: sandbox.Limits{Disk: l.Disk},
	})
	if err != nil {
		return err
	}
	fmt.Println("made")
	go func() { // it ends with the process
		<-box.Done()
		end := box.End()
		fmt.Printf("ended signal=%d bitten=%t killed=%t exit=%d\n", int(end.Signal), end.Bitten, end.Killed, end.Exit)
	}()
	return nil
}

// lone is such an agent, as a process.
type lone struct {
	t    *testing.T
	life life
	cmd  *exec.Cmd
	in   io.WriteCloser
	said chan string
}

// start starts an agent as root or as a user without rights.
func (l life) start(t *testing.T, uid int) *lone {
	t.Helper()
	base, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	l.State, l.Folder, l.Name = filepath.Join(base, "state"), filepath.Join(base, "folder"), newName()
	for _, dir := range []string{base, l.State, l.Folder} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	a := &lone{t: t, life: l, said: make(chan string, 1000)}
	a.cmd = exec.Command("/proc/self/exe", agentArg)
	a.cmd.Dir, a.cmd.Env = "/", []string{}
	if uid != os.Geteuid() {
		a.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	// Not StdoutPipe: what a sandbox prints comes by the same pipe, also after the agent's end.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	a.cmd.Stdout, a.cmd.Stderr = w, w
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	go a.read(r)
	t.Cleanup(a.finish)
	if err := json.NewEncoder(a.in).Encode(&l); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *lone) read(r *os.File) {
	defer close(a.said)
	defer func() { _ = r.Close() }()
	for scan := bufio.NewScanner(r); scan.Scan(); {
		a.said <- scan.Text()
	}
}

// hear waits for a line that begins so, and returns it.
func (a *lone) hear(begin string) string {
	a.t.Helper()
	var other []string
	for line := range a.said {
		if strings.HasPrefix(line, begin) {
			return line
		}
		other = append(other, line)
	}
	a.t.Fatalf("the agent ended without %q: %q", begin, other)
	return ""
}

// finish ends the agent and what it has left.
func (a *lone) finish() {
	_ = a.in.Close()
	timer := time.AfterFunc(patience, func() { _ = a.cmd.Process.Kill() })
	_ = a.cmd.Wait()
	timer.Stop()
	for range a.said {
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := sandbox.KillLeftovers(ctx, a.life.State); err != nil {
		a.t.Error(err)
	}
}

func (a *lone) kill(t *testing.T) {
	t.Helper()
	signal(t, a.cmd.Process.Pid, unix.SIGKILL)
}
