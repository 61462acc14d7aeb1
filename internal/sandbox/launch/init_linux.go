package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
	"github.com/forgeyard/forgeyard/internal/sandbox/lookup"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

// Exit codes of the init half that no guest's are mixed up with, because no guest has run, or the launcher reads none.
const (
	exitRefused  = 2
	exitFailed   = 3
	exitOrphaned = 4
)

// What steps begin with. By usualSlack nanoseconds the kernel may put their timers off; pid 1 comes with more, see
// sandbox.MonitorSlack, and takes the usual one back for the thread that starts them.
const (
	stepUmask  = 0o022
	usualSlack = 50_000
)

// inside is pid 1 of a sandbox.
type inside struct {
	launcher *packet.Conn
	lock     *os.File
	setup    setup
	handed   []*os.File
	root     *view.Root
	walls    *confine.Prepared
	names    *lookup.Server // nil with the host's network
	moves    chan forge.Instant
}

// runInit is the init half: it refuses, or becomes pid 1 of a sandbox and then the guest.
func runInit(guest Guest, ahead []func()) int {
	runtime.LockOSThread() // on which the death signal is set
	in, err := enter()
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: this is for the launcher of sandboxes itself: %v\n", initArg, err)
		return exitRefused
	}
	room, err := in.build(ahead)
	if errors.Is(err, io.EOF) {
		return exitOrphaned // nobody wants this sandbox any more
	}
	if err != nil {
		_ = in.launcher.Send(&fromInit{Failed: err.Error()})
		return exitFailed
	}
	return guest(*room)
}

// enter takes the set-up from the launcher, and refuses unless this is the place for it. It changes nothing of the machine.
func enter() (*inside, error) {
	if pid := os.Getpid(); pid != 1 {
		return nil, fmt.Errorf("this is process %d and not the first of a namespace", pid)
	}
	conn, err := packet.New(fdLauncher, "launcher")
	if err != nil {
		return nil, err
	}
	in := &inside{launcher: conn, lock: os.NewFile(fdLock, "lock"), moves: make(chan forge.Instant, 1)}
	var first toInit
	files, err := conn.Receive(&first)
	if err == nil && (first.Setup == nil || len(files) < 2) {
		err = errors.New("the launcher's first word is no set-up")
	}
	if err == nil {
		err = errors.Join(elsewhere(files[0], "mnt", unix.CLONE_NEWNS), elsewhere(files[1], "user", unix.CLONE_NEWUSER))
	}
	if err != nil {
		packet.CloseFiles(files)
		return nil, err
	}
	packet.CloseFiles(files[:2])
	in.setup, in.handed = *first.Setup, files[2:]
	return in, nil
}

// elsewhere checks that a file is a namespace, and another one than this process's.
func elsewhere(theirs *os.File, name string, kind int) error {
	is, err := unix.IoctlRetInt(int(theirs.Fd()), unix.NS_GET_NSTYPE)
	if err != nil || is != kind {
		return fmt.Errorf("the %s namespace of the launcher is none (%d, %w)", name, is, err)
	}
	var st, own unix.Stat_t
	if err := unix.Fstat(int(theirs.Fd()), &st); err != nil {
		return err
	}
	if err := unix.Stat("/proc/self/ns/"+name, &own); err != nil {
		return err
	}
	if own.Dev == st.Dev && own.Ino == st.Ino {
		return fmt.Errorf("this is the %s namespace of the launcher", name)
	}
	return nil
}

// build builds the walls. An error of the kind io.EOF says that the launcher has gone, or wants no sandbox any more.
func (in *inside) build(ahead []func()) (*Room, error) {
	if err := in.prepare(); err != nil {
		return nil, err
	}
	for _, do := range ahead {
		do()
	}
	if err := in.launcher.Send(&fromInit{Ready: true, Hidden: in.root.Hidden()}); err != nil {
		return nil, io.EOF
	}
	var next toInit
	files, err := in.launcher.Receive(&next)
	if err == nil && (next.Order == nil || len(files) != orderFiles) {
		packet.CloseFiles(files)
		err = errors.New("the launcher's second word is no order")
	}
	if err != nil {
		return nil, err
	}
	room, err := in.take(next.Order, files)
	if err != nil {
		return nil, err
	}
	if err := in.seal(next.Order); err != nil {
		return nil, err
	}
	go in.listen()
	if err := in.launcher.Send(&fromInit{Running: true}); err != nil {
		return nil, io.EOF
	}
	return room, nil
}

// prepare builds everything that does not depend on an order.
func (in *inside) prepare() error {
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	if !in.setup.Switches.Off(confine.DefenceLimits) {
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
			return fmt.Errorf("limit core dumps: %w", err)
		}
	}
	unix.Umask(stepUmask)
	// Its root is the group of this process, which is in its own by now, so that steps do not see the names of those above.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("namespace of control groups: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0); err != nil {
		return fmt.Errorf("slack of timers: %w", err)
	}
	defaultSignals()
	var err error // first of all what refuses by itself to be in the wrong place
	in.root, err = view.Build(in.setup.Plan, in.handed)
	in.handed = nil
	if err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(sandbox.HostName)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := unix.Setdomainname([]byte("")); err != nil {
		return fmt.Errorf("domain name: %w", err)
	}
	if in.setup.Network == forge.NetworkNone {
		if err := in.network(); err != nil {
			return err
		}
	}
	walls := confine.DefaultWalls(in.setup.Mapped)
	walls.Filter, walls.Switches = in.setup.Filter, confineSwitches(in.setup.Switches)
	in.walls, err = confine.Prepare(walls)
	return err
}

// network makes loopback work, and name servers' clients fail at once.
func (in *inside) network() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	in.names, err = lookup.Listen(lookup.Address)
	return err
}

// take shows the attempt's folder, and makes the guest's room of an order's files.
func (in *inside) take(o *order, files []*os.File) (*Room, error) {
	err := in.root.Attach(files[fileFolder])
	_ = files[fileFolder].Close()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.NewSectionReader(files[fileGuest], 0, sandbox.MaxGuest))
	_ = files[fileGuest].Close()
	if err != nil {
		return nil, fmt.Errorf("read the order: %w", err)
	}
	room := &Room{
		Keeper: files[fileKeeper], Stdout: files[fileStdout], Stderr: files[fileStderr], Order: content, Moves: in.moves,
		Policy: o.Policy, Deadline: o.Deadline, UID: sandbox.StepUID, GID: sandbox.StepGID, Switch: in.setup.Mapped,
		Secrets: sandbox.SecretsDir, Network: in.setup.Network, Path: in.setup.Path, LookedUp: func() []string { return nil },
	}
	if in.names != nil {
		room.LookedUp = in.names.Names
	}
	return room, nil
}

// seal gives up everything that building needed.
func (in *inside) seal(o *order) error {
	if err := in.root.Seal(); err != nil {
		return err
	}
	if err := in.walls.Apply(o.Processes); err != nil {
		return err
	}
	// Changes of ids and capabilities may have cleared it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("death signal: %w", err)
	}
	return nil
}

// listen hands later deadlines on, and ends everything when the launcher has gone.
func (in *inside) listen() {
	for {
		var m toInit
		files, err := in.launcher.Receive(&m)
		packet.CloseFiles(files)
		if err != nil {
			os.Exit(exitOrphaned)
		}
		if m.Move == 0 {
			continue
		}
		select { // the last one counts
		case <-in.moves:
		default:
		}
		in.moves <- m.Move
	}
}
