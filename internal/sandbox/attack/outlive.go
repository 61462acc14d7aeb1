//go:build linux

package attack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// outlive starts something and says so; others look whether it is still there.
func outlive(name string, attr *syscall.SysProcAttr) Verdict {
	cmd := exec.Command(Program, argStage, name)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, attr // whoever has the other end sees it live
	if err := cmd.Start(); err != nil {
		return denied("start a process", err)
	}
	fmt.Println(Started)
	return Verdict{}
}

// forkTwice leaves its parent, its session and its group.
func forkTwice(*Target) Verdict {
	script := fmt.Sprintf("setsid %s %s %s & exit 0", Program, argStage, stageLive)
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return denied("start a process", err)
	}
	fmt.Println(Started)
	return Verdict{}
}

// leaveSession leaves a child in a session of its own.
func leaveSession(*Target) Verdict { return outlive(stageLive, &syscall.SysProcAttr{Setsid: true}) }

// leaveGroup leaves one in another group of the same session.
func leaveGroup(*Target) Verdict { return outlive(stageLive, &syscall.SysProcAttr{Setpgid: true}) }

// leaveStopped leaves one that is stopped, which no soft signal reaches.
func leaveStopped(*Target) Verdict {
	return outlive(stageStopped, &syscall.SysProcAttr{Setsid: true})
}

// ignoreSignals stays itself, and heeds nothing.
func ignoreSignals(*Target) Verdict {
	signal.Ignore()
	fmt.Println(Started)
	stayAlive()
	return Verdict{}
}

// adoptOrphans becomes the parent of what loses its own, so that pid 1 never hears of it.
func adoptOrphans(t *Target) Verdict {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return denied("adopt orphans", err)
	}
	if v := forkTwice(t); v != (Verdict{}) {
		return v
	}
	signal.Ignore()
	stayAlive()
	return Verdict{}
}

// live lives, whatever signals come.
func live(stopped bool) int {
	signal.Ignore()
	if stopped {
		_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	}
	stayAlive()
	return 0
}

// stayAlive waits for its bound, in case nobody ends it.
func stayAlive() {
	timer := time.NewTimer(lifetime)
	<-timer.C
}

// crash becomes a shell that ends by a signal whose default is a core dump.
func crash() int {
	var core unix.Rlimit
	err := errors.Join(os.Chdir("/work"), unix.Getrlimit(unix.RLIMIT_CORE, &core))
	core.Cur = core.Max
	if err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_CORE, &core)); err == nil {
		err = unix.Exec("/bin/sh", []string{"sh", "-c", "kill -ABRT $$"}, nil)
	}
	fmt.Fprintln(os.Stderr, "crash:", err)
	return 1
}

// dumpCore crashes where its memory would be written to a file.
func dumpCore(*Target) Verdict {
	cmd := exec.Command(Program, argStage, stageCrash)
	err := cmd.Run()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return denied("crash", err)
	}
	if list, _ := filepath.Glob("/work/core*"); status.CoreDump() || len(list) > 0 {
		return worked("the crash left a core dump: %v", list)
	}
	return denied("the crash left no core dump", nil)
}
