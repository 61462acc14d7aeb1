package native

import (
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/executor/keeper"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox/launch"
)

// Main becomes the launcher or the first process of a sandbox, and does not return, if this process was started as one.
func Main() { launch.Main(guest, keeper.Rehearse, spareThreads) }

// exitNoGuest is the exit code of a pid 1 that could not begin.
const exitNoGuest = 3

// guest is what runs as pid 1 of a sandbox.
func guest(r launch.Room) int {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return exitNoGuest
	}
	return keeper.Keep(r.Keeper, func(*keeper.Plan) (keeper.System, <-chan keeper.Exit, error) {
		children := keeper.NewChildren()
		i := &inmates{
			Children: children, room: r, files: []uintptr{null.Fd(), r.Stdout.Fd(), r.Stderr.Fd()}, acts: make(chan func()),
		}
		go i.act()
		return i, children.Exits(), nil
	}, moves(r.Moves))
}

// moves turns the deadlines that come by the launcher into requests. Its goroutine ends with the process.
func moves(in <-chan forge.Instant) <-chan keeper.Request {
	out := make(chan keeper.Request)
	go func() {
		defer close(out)
		for deadline := range in {
			out <- keeper.Request{Move: deadline}
		}
	}()
	return out
}

// inmates are the processes of a sandbox besides pid 1, which is this one.
type inmates struct {
	*keeper.Children
	room  launch.Room
	files []uintptr
	acts  chan func() // to be done as a step
}

// everybody is the process id that means all processes of the namespace but this one.
const everybody = -1

// Start runs a program in a session of its own, as the steps' user.
func (i *inmates) Start(argv []string, dir string, env []string) (pid int, err error) {
	path, known := keeper.Located(argv[0], dir)
	look := func() {
		i.AsStep(func() { path, err = keeper.LookPath(argv[0], dir, env) })
	}
	if !known {
		if look(); err != nil {
			return 0, err
		}
	}
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Files: i.files, Sys: &syscall.SysProcAttr{Setsid: true}}
	if i.room.Switch {
		attr.Sys.Credential = &syscall.Credential{Uid: uint32(i.room.UID), Gid: uint32(i.room.GID)}
	}
	pid, failed := i.Fork(argv, path, attr)
	i.stayUndumpable() // what is forked changes its ids while it still has this process's memory
	if failed != nil && known {
		look() // it may be the step's folder that is not there
	}
	if err == nil {
		err = failed
	}
	return pid, err
}

// stayUndumpable keeps this process's memory to itself. Where fs.suid_dumpable is 1, the kernel opens it at a change of ids.
func (i *inmates) stayUndumpable() {
	if i.room.Switch {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // which has no errors
	}
}

// Soft asks everybody who is there to end. The kernel lets nobody fork between two of them, so that what a program starts in
// order to end well is not meant. Those that are stopped go on to hear of it.
func (i *inmates) Soft() {
	_ = unix.Kill(everybody, unix.SIGTERM) // an error means that there is nobody
	_ = unix.Kill(everybody, unix.SIGCONT)
}

// Kill kills everybody.
func (i *inmates) Kill() { _ = unix.Kill(everybody, unix.SIGKILL) }

// Remarks hints at names that were asked for where there is no network.
func (i *inmates) Remarks() []string {
	if i.room.Network != forge.NetworkNone || i.room.LookedUp == nil {
		return nil
	}
	names := i.room.LookedUp()
	if len(names) == 0 {
		return nil
	}
	return []string{hint(names)}
}

// spares is how many threads are made ahead. The runtime keeps them, and ends this process where it wants one more and steps
// have left it none.
const spares = 4

// spareThreads makes threads, while there is no order yet: one takes longer than all that an attempt asks of pid 1.
func spareThreads() {
	var all, there sync.WaitGroup
	there.Add(spares)
	for range spares {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			there.Done()
			there.Wait()
		})
	}
	all.Wait()
}

// AsStep runs act on a thread that has the rights of a step on files.
func (i *inmates) AsStep(act func()) {
	done := make(chan struct{})
	i.acts <- func() {
		defer close(done)
		act()
	}
	<-done
}

// act is the thread of AsStep, which is there before any step is: while steps have as many processes as they may, there is no
// other to be had. A change of ids makes the kernel forget the signal that a thread gets when its parent dies, so it is
// none that needs that. It ends with the process.
func (i *inmates) act() {
	runtime.LockOSThread() // and never unlocked
	if i.room.Switch {
		_ = unix.Setfsgid(i.room.GID)
		_ = unix.Setfsuid(i.room.UID) // both have no errors; without rights to it act has less than a step, not more
		i.stayUndumpable()
	}
	for act := range i.acts {
		act()
	}
}

var _ keeper.System = (*inmates)(nil)
