//go:build linux

package attack_test

import (
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox/launch"
)

// plan is what pid 1 of a sandbox is to do: run one step as package keeper would, with one thing wrong where a control needs
// that.
type plan struct {
	Argv  []string
	Env   []string
	Root  bool     // the step keeps pid 1's id and rights
	Leak  bool     // the step gets the file that came as the keeper's
	With  []string // a program that runs in the same sandbox, until which has begun the step waits
	Group bool     // the step's group is ended when its first process is, and what lives then is reported
}

// How a guest of a plan with Group ends.
const (
	exitNoneLeft = 0
	exitSomeLeft = 3
	exitNoSignal = 4
)

// guest is pid 1. The step has the pipes as its output, and no input.
func guest(room launch.Room) int {
	var p plan
	if err := json.Unmarshal(room.Order, &p); err != nil {
		return complain(room, err)
	}
	if err := p.accompany(room); err != nil {
		return complain(room, err)
	}
	pid, err := p.start(room, p.Argv)
	if err != nil {
		return complain(room, err)
	}
	if p.Group {
		return p.endGroup(pid)
	}
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return complain(room, err)
		case got == pid && status.Exited():
			return status.ExitStatus()
		case got == pid:
			return 128 + int(status.Signal())
		}
	}
}

func complain(room launch.Room, err error) int {
	_, _ = room.Stderr.WriteString("guest: " + err.Error() + "\n")
	return 70
}

// accompany starts the other program and waits for its first words, which it takes out of the output.
func (p *plan) accompany(room launch.Room) error {
	if len(p.With) == 0 {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	with := room
	with.Stdout = w
	_, err = p.start(with, p.With)
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	_, err = r.Read(make([]byte, 64))
	return err // r stays open: the program may have more to say
}

func (p *plan) start(room launch.Room, argv []string) (int, error) {
	null, err := os.Open("/dev/null")
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	files := []uintptr{null.Fd(), room.Stdout.Fd(), room.Stderr.Fd()}
	if p.Leak {
		files = append(files, room.Keeper.Fd())
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if room.Switch && !p.Root {
		sys.Credential = &syscall.Credential{Uid: uint32(room.UID), Gid: uint32(room.GID)}
	}
	return syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Dir: "/work", Env: p.Env, Files: files, Sys: sys})
}

// endGroup does what an end of an attempt would be without a pid namespace that dies: it waits until the step has said that
// it is ready, which ends its first process or not, and signals its group.
func (p *plan) endGroup(group int) int {
	const tries, pause = 20, 25 * time.Millisecond // for the attack to begin, and for those who heed the signal to end
	for range tries {
		time.Sleep(pause)
		reap()
	}
	if err := unix.Kill(-group, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
		return exitNoSignal
	}
	for range tries {
		time.Sleep(pause)
		if reap(); !othersLive() {
			return exitNoneLeft
		}
	}
	return exitSomeLeft
}

// reap takes what has ended.
func reap() {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}

// othersLive reports whether any process but pid 1 is there.
func othersLive() bool { return !errors.Is(unix.Kill(-1, 0), unix.ESRCH) }
