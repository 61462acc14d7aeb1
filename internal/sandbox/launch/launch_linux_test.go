package launch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// modes runs a test with ids of its own for each sandbox, as far as this user can, and with a single one.
func modes(t *testing.T, test func(*testing.T, func(*sandbox.Config))) {
	if os.Geteuid() == 0 {
		t.Run("mapped", func(t *testing.T) { test(t, func(*sandbox.Config) {}) })
	}
	t.Run("single", func(t *testing.T) { test(t, func(c *sandbox.Config) { c.Rootless = true }) })
}

// 07§134: the agent is outside of what its jobs see.
func TestAGuestHasNamespacesOfItsOwn(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		r := y.make("for n in user mnt pid net ipc uts cgroup; do readlink /proc/self/ns/$n; done; hostname; id -u; pwd", nil)
		end := r.wait(t)
		lines := strings.Split(strings.TrimSpace(r.output()), "\n")
		if end.Exit != 0 || len(lines) != 10 {
			t.Fatalf("%+v\n%s", end, r.output())
		}
		for i, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
			if own := namespaceOf(os.Getpid(), kind); lines[i] == own || !strings.HasPrefix(lines[i], kind+":") {
				t.Errorf("the sandbox has %s, the host has %s", lines[i], own)
			}
		}
		if want := []string{sandbox.HostName, "1000", sandbox.WorkDir}; !slices.Equal(lines[7:], want) {
			t.Errorf("host name, id and folder are %v, want %v", lines[7:], want)
		}
	})
}

func TestStepsHaveNoRightsAndThreeDescriptors(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		r := y.make("grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups)' /proc/self/status; ls /proc/self/fd | wc -l; umask; cat", nil)
		end := r.wait(t)
		if end.Exit != 0 {
			t.Fatalf("%+v\n%s", end, r.output())
		}
		for line := range strings.Lines(r.output()) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			value = strings.TrimSpace(value)
			switch {
			case strings.HasPrefix(name, "Cap") && strings.Trim(value, "0") != "",
				name == "NoNewPrivs" && value != "1",
				name == "Seccomp" && value != "2":
				t.Error(line)
			}
		}
		if !strings.HasSuffix(r.output(), "4\n0022\n") { // the fourth is that of ls itself
			t.Error(r.output())
		}
	})
}

// What the kernel counts by user is counted for each sandbox by itself.
func TestASandboxThatHoardsTakesNothingFromOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("one user has one count")
	}
	y := open(t, nil)
	first := y.makeTask(task{Wait: "hoard"}, nil)
	most := <-first.lines
	second := y.makeTask(task{Wait: "hoard"}, nil)
	if left := <-second.lines; left != most || left == "0" {
		t.Errorf("the first sandbox got %s instances of inotify, the second %s", most, left)
	}
	if fd, err := unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
		t.Error("they left none to the host: ", err)
	} else if err := unix.Close(fd); err != nil {
		t.Error(err)
	}
	for _, r := range []*run{first, second} {
		_ = r.keeper.Close()
		if end := r.wait(t); end.Exit != 0 {
			t.Errorf("%+v: %s", end, r.output())
		}
	}
}

// D10: what a job makes belongs to the agent, who can read and remove it.
func TestFilesOfStepsBelongToTheAgent(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		var folder string
		r := y.make("echo work >made; HOME=/work/home; echo h >$HOME/made; echo tmp >/tmp/made; mkdir d; echo x >d/e; stat -c %u . made",
			func(o *sandbox.Order) { folder = o.Folder })
		if end := r.wait(t); end.Exit != 0 || r.output() != "1000\n1000\n" {
			t.Fatalf("%+v\n%s", end, r.output())
		}
		for _, name := range []string{"made", "home/made", "tmp/made", "d", "d/e"} {
			info, err := os.Stat(filepath.Join(folder, name))
			if err != nil {
				t.Error(err)
				continue
			}
			if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
				t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
			}
		}
	})
}

func TestTheGuestsExitCodeIsTheEnd(t *testing.T) {
	y := open(t, nil)
	for _, code := range []int{0, 1, 2, 3, 4, 77, 255} {
		if end := y.make(fmt.Sprintf("exit %d", code), nil).wait(t); end.Exit != code || end.Signal != 0 || end.Bitten || end.Killed {
			t.Errorf("exit %d is %+v", code, end)
		}
	}
}

func TestABigOrderArrivesWhole(t *testing.T) {
	y := open(t, nil)
	r := y.makeTask(task{Argv: []string{"/bin/sh", "-c", "echo $#", strings.Repeat("x", 100<<10), strings.Repeat("y", 100<<10)}}, nil)
	if end := r.wait(t); end.Exit != 0 || r.output() != "1\n" {
		t.Errorf("%+v\n%s", end, r.output())
	}
}

func TestKillEndsAllOfIt(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		r := y.make(forever, nil)
		r.wait4(t, "running")
		inside := within(t, r.Pid())
		if len(inside) < 3 {
			t.Fatalf("%d processes run", len(inside))
		}
		r.Kill()
		end := r.wait(t)
		if end.Signal != unix.SIGKILL || !end.Killed || end.Bitten {
			t.Errorf("%+v", end)
		}
		noneOf(t, inside)
		r.Kill() // has no effect
	})
}

// forever says "running" once processes run that a kill of a group or a session does not reach.
const forever = `trap '' TERM HUP INT; setsid sh -c 'trap "" TERM HUP; (sleep 1000 & sleep 1000) & sleep 1000' & ` +
	`sleep 1000 & kill -STOP $!; sleep 0.05; echo running; sleep 1000`

// noneOf checks that processes are gone. When Done is closed there is nothing to wait for.
func noneOf(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
}

// 07§137: whoever ends pid 1 ends the attempt, and it is told.
func TestPid1KilledOnTheHostIsASignal(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		r := y.make(forever, nil)
		r.wait4(t, "running")
		inside := within(t, r.Pid())
		signal(t, r.Pid(), unix.SIGKILL)
		if end := r.wait(t); end.Signal != unix.SIGKILL || end.Killed || end.Bitten {
			t.Errorf("%+v", end)
		}
		noneOf(t, inside)
	})
}

// Rootless, steps have the id of pid 1.
func TestStepsCannotEndPid1BySignals(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		r := y.make("for s in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 19 20 21 22 23 24 25 26 27 29 30 31 34 64; do kill -$s 1 2>/dev/null; done; sleep 0.1; exit 7", nil)
		if end := r.wait(t); end.Exit != 7 {
			t.Errorf("%+v\n%s", end, r.output())
		}
	})
}

func TestStepsDoNotSeeTheNamesOfControlGroups(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		r := y.make("cut -d: -f3- /proc/self/cgroup | sort -u", nil)
		if end := r.wait(t); end.Exit != 0 || r.output() != "/\n" {
			t.Errorf("%+v\n%s", end, r.output())
		}
	})
}

// Pid 1 is started with another slack of timers, for its runtime's sake.
func TestStepsTimersAreAsPunctualAsEverybodys(t *testing.T) {
	y := open(t, nil)
	r := y.make("cat /proc/self/timerslack_ns", nil)
	if end := r.wait(t); end.Exit != 0 || r.output() != "50000\n" {
		t.Errorf("%+v\n%s", end, r.output())
	}
}

func TestTheLauncherKeepsTheDeadlineOfAGuestThatDoesNot(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		deadline := clock.Boot().Add(time.Second)
		r := y.make(forever, func(o *sandbox.Order) { o.Policy, o.Deadline = quick(), deadline })
		inside := within(t, r.Pid())
		end := r.wait(t)
		if end.Signal != unix.SIGKILL || !end.Bitten || end.Killed {
			t.Errorf("%+v", end)
		}
		noneOf(t, inside)
	})
}

func TestTheLauncherKeepsTheDeadlineOfAPid1ThatIsStopped(t *testing.T) {
	y := open(t, nil)
	r := y.make(forever, func(o *sandbox.Order) { o.Policy, o.Deadline = quick(), clock.Boot().Add(time.Second) })
	signal(t, r.Pid(), unix.SIGSTOP)
	if end := r.wait(t); !end.Bitten {
		t.Errorf("%+v", end)
	}
}

// quick is a policy for deadlines of a second or so.
func quick() forge.LeasePolicy {
	p := forge.DefaultLeasePolicy()
	p.KillLead, p.SoftGrace = 400*time.Millisecond, 100*time.Millisecond
	return p
}

func TestALaterDeadlineReachesTheLauncherAndTheGuest(t *testing.T) {
	y := open(t, nil)
	later := clock.Boot().Add(time.Hour)
	r := y.makeTask(task{Wait: "move"}, func(o *sandbox.Order) {
		o.Policy, o.Deadline = quick(), clock.Boot().Add(20*time.Second)
	})
	r.MoveDeadline(later)
	if end := r.wait(t); end.Exit != 0 || end.Bitten || r.output() != fmt.Sprint(int64(later)) {
		t.Errorf("%+v %s", end, r.output())
	}
}

func TestMakingEndsWithItsContext(t *testing.T) {
	y := open(t, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	tooLong := errors.New("too long")
	cancel(tooLong)
	o, begin := y.order(task{Argv: []string{"/bin/sleep", "1000"}})
	b, err := y.Make(ctx, o)
	begin(b)
	var se *sandbox.SetupError
	if !errors.As(err, &se) || !errors.Is(err, tooLong) {
		t.Errorf("%v", err)
	}
	eventually(t, "only the pool is left", func() bool { return len(firstsOf(t, launcherOf(y.state))) == 1 })
}

func TestNoMoreRunThanThereAreSlots(t *testing.T) {
	y := open(t, func(c *sandbox.Config) { c.Slots = 1 })
	r := y.make("sleep 1000", nil)
	o, begin := y.order(task{Argv: []string{"/bin/true"}})
	b, err := y.Make(t.Context(), o)
	begin(b)
	if !errors.Is(err, sandbox.ErrNoSlot) {
		t.Errorf("%v", err)
	}
	r.Kill()
	r.wait(t)
	if end := y.make("exit 5", nil).wait(t); end.Exit != 5 {
		t.Errorf("%+v", end)
	}
}

// The launcher is held while a sandbox ends, so that it cannot have taken it apart.
func TestASandboxIsDeadBeforeItsLauncherSaysSoAndItsSlotIsWaitedFor(t *testing.T) {
	y := open(t, func(c *sandbox.Config) { c.Slots = 1 })
	r := y.make("sleep 1000", nil)
	launcher := launcherOf(y.state)
	if err := unix.Kill(launcher, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Kill(launcher, unix.SIGCONT) }()
	if err := unix.Kill(r.Pid(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-r.Dead()
	select {
	case <-r.Done():
		t.Error("it is done")
	default:
	}
	next := make(chan error)
	o, begin := y.order(task{Argv: []string{"/bin/true"}})
	go func() {
		b, err := y.Make(t.Context(), o)
		begin(b)
		next <- err
	}()
	select {
	case err := <-next:
		t.Fatalf("it was not waited for: %v", err)
	case <-time.After(20 * time.Millisecond): // the wrong one is refused at once
	}
	if err := unix.Kill(launcher, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := <-next; err != nil {
		t.Error(err)
	}
	if end := r.wait(t); end.Signal != unix.SIGKILL {
		t.Errorf("%+v", end)
	}
}

func TestASandboxWithoutAWallThatIsNeededIsNotMade(t *testing.T) {
	y := open(t, func(c *sandbox.Config) { c.Rootless, c.NoCgroups = true, true })
	for _, level := range []sandbox.Level{sandbox.LevelMappedUIDs, sandbox.LevelCgroupMemory, "moat"} {
		o, begin := y.order(task{Argv: []string{"/bin/true"}})
		o.Need = []sandbox.Level{sandbox.LevelPIDNamespace, level}
		b, err := y.Make(t.Context(), o)
		begin(b)
		var se *sandbox.SetupError
		if !errors.As(err, &se) || se.Level != level || !strings.Contains(err.Error(), string(level)) {
			t.Errorf("%s: %v", level, err)
		}
	}
}

func TestOrdersThatCannotBeAreRefused(t *testing.T) {
	y := open(t, nil)
	for name, change := range map[string]func(*sandbox.Order){
		"name":          func(o *sandbox.Order) { o.Name = "../x" },
		"folder":        func(o *sandbox.Order) { o.Folder = "work" },
		"no folder":     func(o *sandbox.Order) { o.Folder += "/none" },
		"file":          func(o *sandbox.Order) { o.Folder = "/etc/passwd" },
		"network":       func(o *sandbox.Order) { o.Network = 0 },
		"files":         func(o *sandbox.Order) { o.Stdout = nil },
		"guest":         func(o *sandbox.Order) { o.Guest = make([]byte, sandbox.MaxGuest+1) },
		"deadline":      func(o *sandbox.Order) { o.Deadline = 0 },
		"link to tmp":   func(o *sandbox.Order) { plant(t, o.Folder, "tmp", "/etc") },
		"link to where": func(o *sandbox.Order) { plant(t, o.Folder, "tmp", "../../..") },
	} {
		o, begin := y.order(task{Argv: []string{"/bin/true"}})
		stdout := o.Stdout
		change(o)
		b, err := y.Make(t.Context(), o)
		o.Stdout = stdout
		begin(b)
		var se *sandbox.SetupError
		if !errors.As(err, &se) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if end := y.make("exit 3", nil).wait(t); end.Exit != 3 {
		t.Errorf("afterwards a sandbox ends with %+v", end)
	}
}

func plant(t *testing.T, folder, name, target string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutANetworkThereIsLoopbackAndLookUpsFailAtOnce(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		r := y.makeTask(task{Wait: "look-up", Argv: []string{"/bin/sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1; getent hosts proxy.example.org; getent hosts localhost"}}, nil)
		r.wait(t)
		if out := r.output(); !strings.Contains(out, "lo\n") || strings.Contains(out, "eth0") || !strings.Contains(out, "proxy.example.org") ||
			!strings.Contains(out, "localhost") {
			t.Error(out)
		}
	})
}

func TestTheHostsNetworkIsGivenWhenOrdered(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		r := y.make("readlink /proc/self/ns/net", func(o *sandbox.Order) { o.Network = forge.NetworkHost })
		if end := r.wait(t); end.Exit != 0 || strings.TrimSpace(r.output()) != namespaceOf(os.Getpid(), "net") {
			t.Errorf("%+v %s", end, r.output())
		}
	})
}

func TestTheLimitOfProcessesHolds(t *testing.T) {
	y := open(t, nil)
	if report := y.Report(); !report.Has(sandbox.LevelCgroupPids) {
		t.Skip(report.Sorry(sandbox.LevelCgroupPids))
	}
	r := y.make("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do sleep 1000 & done; true",
		func(o *sandbox.Order) { o.Limits.Pids = 24 })
	end := r.wait(t)
	if end.Usage.PidsRefused == 0 || end.Usage.PidsPeak > 24 || end.Usage.PidsLimit != 24 {
		t.Errorf("%+v\n%s", end, r.output())
	}
}

func TestUsageIsToldWhileItRuns(t *testing.T) {
	y := open(t, nil)
	if report := y.Report(); !report.Has(sandbox.LevelCgroupMemory) {
		t.Skip(report.Sorry(sandbox.LevelCgroupMemory))
	}
	r := y.make("echo running; sleep 1000", nil)
	r.wait4(t, "running")
	u, err := r.Usage(t.Context())
	if err != nil || u.PidsPeak == 0 {
		t.Errorf("%+v %v", u, err)
	}
	r.Kill()
	r.wait(t)
	if u, err := r.Usage(t.Context()); err != nil || u != r.End().Usage {
		t.Errorf("%+v %v", u, err)
	}
}
