package launch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/launch"
)

func TestMain(m *testing.M) {
	launch.Main(guest)
	if len(os.Args) == 4 && os.Args[1] == vandalArg {
		os.Exit(vandal(os.Args[2], os.Args[3] == "ro"))
	}
	if len(os.Args) == 2 && os.Args[1] == agentArg {
		os.Exit(agent())
	}
	goleak.VerifyTestMain(m)
}

// task is what the guest of these tests does.
type task struct {
	Argv []string // of one step
	Root bool     // the step keeps pid 1's id
	Wait string   // "move": print the next deadline instead; "look-up": print the names that were asked for besides; "hoard": see hoard
}

// guest runs one step like a keeper would, without its rules.
func guest(room launch.Room) int {
	var t task
	if err := json.Unmarshal(room.Order, &t); err != nil {
		return complain(room, err)
	}
	if t.Wait == "move" {
		_, _ = fmt.Fprintf(room.Stdout, "%d", <-room.Moves)
		return 0
	}
	if t.Wait == "hoard" {
		return hoard(room)
	}
	null, err := os.Open("/dev/null")
	if err != nil {
		return complain(room, err)
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if room.Switch && !t.Root {
		sys.Credential = &syscall.Credential{Uid: uint32(room.UID), Gid: uint32(room.GID)}
	}
	p, err := os.StartProcess(t.Argv[0], t.Argv, &os.ProcAttr{
		Dir: sandbox.WorkDir, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, Files: []*os.File{null, room.Stdout, room.Stderr}, Sys: sys,
	})
	if err != nil {
		return complain(room, err)
	}
	state, err := p.Wait()
	if err != nil {
		return complain(room, err)
	}
	if t.Wait == "look-up" {
		_, _ = fmt.Fprintln(room.Stdout, room.LookedUp())
	}
	return state.ExitCode()
}

// hoard takes all instances of inotify that it gets, says how many, and keeps them until its keeper's socket ends.
func hoard(room launch.Room) int {
	n := 0
	for ; n < 10_000; n++ {
		if _, err := unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
			break
		}
	}
	_, _ = fmt.Fprintln(room.Stdout, n)
	_, _ = room.Keeper.Read(make([]byte, 1))
	return 0
}

func complain(room launch.Room, err error) int {
	_, _ = fmt.Fprintln(room.Stderr, "guest:", err)
	return 99
}

// yard is a launcher with what orders need.
type yard struct {
	*sandbox.Launcher
	t     *testing.T
	state string
}

func open(t *testing.T, change func(*sandbox.Config)) *yard {
	t.Helper()
	cfg := sandbox.Config{State: t.TempDir(), Pool: 1, Slots: 8, View: viewOfTests()}
	if change != nil {
		change(&cfg)
	}
	l, err := sandbox.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{Launcher: l, t: t, state: cfg.State}
	t.Cleanup(func() {
		if err := y.Close(); err != nil {
			t.Error(err)
		}
	})
	return y
}

func viewOfTests() sandbox.View { return sandbox.View{} }

// run is a sandbox that was ordered, and what it printed.
type run struct {
	*sandbox.Box
	keeper *os.File
	output func() string // waits for the end of the output
	lines  chan string   // takes each line as it comes, and is closed at the end
}

var names struct {
	sync.Mutex
	n int
}

func newName() string {
	names.Lock()
	defer names.Unlock()
	names.n++
	return fmt.Sprintf("test-%d-%d", os.Getpid(), names.n)
}

// order returns an order with a folder and files of its own, and what is to be done once it was made.
func (y *yard) order(what task) (*sandbox.Order, func(*sandbox.Box) *run) {
	y.t.Helper()
	guest, err := json.Marshal(what)
	if err != nil {
		y.t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		y.t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		y.t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	y.t.Cleanup(func() { _, _ = ours.Close(), r.Close() })
	o := &sandbox.Order{
		Name: newName(), Folder: y.t.TempDir(), Network: forge.NetworkNone, Policy: forge.DefaultLeasePolicy(),
		Deadline: clock.Boot().Add(time.Hour), Keeper: theirs, Stdout: w, Stderr: w, Guest: guest,
	}
	return o, func(b *sandbox.Box) *run {
		_, _ = w.Close(), theirs.Close()
		text, lines := make(chan string, 1), make(chan string, 1000)
		go func() {
			var all strings.Builder
			for scan := bufio.NewScanner(io.TeeReader(r, &all)); scan.Scan(); {
				select {
				case lines <- scan.Text():
				default:
				}
			}
			text <- all.String()
			close(lines)
		}()
		return &run{Box: b, keeper: ours, lines: lines, output: sync.OnceValue(func() string { return <-text })}
	}
}

// make makes a sandbox for a shell script.
func (y *yard) make(script string, change func(*sandbox.Order)) *run {
	y.t.Helper()
	return y.makeTask(task{Argv: []string{"/bin/sh", "-c", script}}, change)
}

// try makes a sandbox for a shell script, or does not.
func (y *yard) try(script string) (*run, error) {
	o, begin := y.order(task{Argv: []string{"/bin/sh", "-c", script}})
	b, err := y.Make(y.t.Context(), o)
	return begin(b), err
}

func (y *yard) makeTask(what task, change func(*sandbox.Order)) *run {
	y.t.Helper()
	o, begin := y.order(what)
	if change != nil {
		change(o)
	}
	ctx, cancel := context.WithTimeout(y.t.Context(), time.Minute)
	defer cancel()
	b, err := y.Make(ctx, o)
	r := begin(b)
	if err != nil {
		y.t.Fatal(err)
	}
	return r
}

// wait4 waits for a line of the output.
func (r *run) wait4(t *testing.T, want string) {
	t.Helper()
	for line := range r.lines {
		if line == want {
			return
		}
	}
	t.Fatalf("the output ends without %q: %s", want, r.output())
}

// wait waits for the end of everything in a sandbox.
func (r *run) wait(t *testing.T) sandbox.End {
	t.Helper()
	select {
	case <-r.Done():
		return r.End()
	case <-time.After(time.Minute):
		t.Fatal("a sandbox does not end")
		panic("unreachable")
	}
}
