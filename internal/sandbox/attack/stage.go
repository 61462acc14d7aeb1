//go:build linux

package attack

import (
	"errors"
	"fmt"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// Parts of attacks that are programs of their own. They do nothing by themselves that a host would notice.
const (
	stageKeepExe = "keep-exe" // becomes a shell that appends nothing to the program
	stageLive    = "live"     // lives for a bounded time, whatever signals come
	stageStopped = "stopped"  // stops itself
	stageCrash   = "crash"    // crashes
)

// lifetime bounds what is meant to outlive its sandbox.
const lifetime = 60 * time.Second

func stage(name string) int {
	switch name {
	case stageKeepExe:
		return keepExe()
	case stageLive:
		return live(false)
	case stageStopped:
		return live(true)
	case stageCrash:
		return crash()
	default:
		return 70
	}
}

// runStage runs a part of an attack as a process of its own.
func runStage(program, name string) (string, error) {
	out, err := exec.Command(program, argStage, name).Output()
	return string(out), err
}

// stageVerdict is what a part of an attack says, or why it could not.
func stageVerdict(doing, out string, err error) Verdict {
	if v, parseErr := ParseVerdict(out); parseErr == nil {
		return v
	}
	if err == nil {
		err = fmt.Errorf("it said nothing: %q", out)
	}
	return denied(doing, err)
}

// exited turns how a process ended into an error with a number of its own.
func exited(err error) unix.Errno {
	var e *exec.ExitError
	if errors.As(err, &e) {
		return unix.Errno(max(e.ExitCode(), 0))
	}
	return 0
}
