package launch_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// users of agents: root with ids for each sandbox, root with one id, and somebody without rights.
var users = map[string]struct {
	uid      int
	rootless bool
}{
	"mapped":       {uid: 0},
	"single":       {uid: 0, rootless: true},
	"without root": {uid: 12345},
}

func eachUser(t *testing.T, test func(t *testing.T, l life, uid int)) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be everybody")
	}
	for name, user := range users {
		t.Run(name, func(t *testing.T) { test(t, life{Rootless: user.rootless, Pool: 2}, user.uid) })
	}
}

// phases of a launcher, and how to wait for them. Each returns with at least one sandbox there.
var phases = map[string]func(*testing.T, life, int) *lone{
	"building": func(t *testing.T, l life, uid int) *lone {
		a := l.start(t, uid)
		eventually(t, "a sandbox is built", func() bool {
			launcher := launcherOf(a.life.State)
			return launcher != 0 && len(firstsOf(t, launcher)) > 0
		})
		return a
	},
	"waiting": func(t *testing.T, l life, uid int) *lone {
		a := l.start(t, uid)
		a.hear("opened")
		eventually(t, "two sandboxes wait", func() bool { return len(firstsOf(t, launcherOf(a.life.State))) == 2 })
		return a
	},
	"running": func(t *testing.T, l life, uid int) *lone {
		l.Script = forever
		a := l.start(t, uid)
		a.hear("running")
		return a
	},
}

// 07§137, case B12: nothing is left after kill -9 of agent, launcher or both, in any phase.
func TestNothingIsLeftOfAKilledAgentOrLauncher(t *testing.T) {
	victims := map[string]func(*testing.T, *lone, int){
		"agent":    func(t *testing.T, a *lone, _ int) { a.kill(t) },
		"launcher": func(t *testing.T, _ *lone, launcher int) { signal(t, launcher, unix.SIGKILL) },
		"both": func(t *testing.T, a *lone, launcher int) {
			signal(t, launcher, unix.SIGKILL)
			a.kill(t)
		},
	}
	eachUser(t, func(t *testing.T, l life, uid int) {
		for phase, begin := range phases {
			for victim, end := range victims {
				t.Run(phase+" "+victim, func(t *testing.T) {
					a := begin(t, l, uid)
					launcher := launcherOf(a.life.State)
					spaces := spacesOf(t, launcher)
					end(t, a, launcher)
					eventually(t, "the launcher has gone", func() bool { return !alive(launcher) })
					eventually(t, "nothing of a sandbox is alive", func() bool { return len(sharing(t, spaces)) == 0 })
				})
			}
		}
	})
}

// spacesOf names the pid namespaces of a launcher's sandboxes. One that ends meanwhile has none.
func spacesOf(t *testing.T, launcher int) map[string]bool {
	t.Helper()
	spaces := map[string]bool{}
	for _, pid := range firstsOf(t, launcher) {
		spaces[namespaceOf(pid, "pid")] = true
	}
	delete(spaces, "")
	delete(spaces, namespaceOf(os.Getpid(), "pid")) // of one that is only being cloned
	if len(spaces) == 0 {
		t.Log("no sandbox is there any more")
	}
	return spaces
}

// The next agent need not wait for anything once KillLeftovers has returned.
func TestKillLeftoversReturnsWhenNothingIsAlive(t *testing.T) {
	eachUser(t, func(t *testing.T, l life, uid int) {
		a := phases["running"](t, l, uid)
		launcher := launcherOf(a.life.State)
		spaces := spacesOf(t, launcher)
		if len(records(t, a.life.State)) == 0 {
			t.Fatal("there are no records")
		}
		signal(t, launcher, unix.SIGKILL)
		a.kill(t)
		leave(t, a)
		if left := sharing(t, spaces); len(left) > 0 {
			t.Errorf("%d processes are alive", len(left))
		}
		if left := records(t, a.life.State); len(left) > 0 {
			t.Errorf("records are left: %v", left)
		}
	})
}

// leave kills leftovers, as the next agent does.
func leave(t *testing.T, a *lone) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := sandbox.KillLeftovers(ctx, a.life.State); err != nil {
		t.Fatal(err)
	}
}

func TestALauncherThatIsStoppedIsALeftoverToo(t *testing.T) {
	eachUser(t, func(t *testing.T, l life, uid int) {
		a := phases["running"](t, l, uid)
		launcher := launcherOf(a.life.State)
		spaces := spacesOf(t, launcher)
		signal(t, launcher, unix.SIGSTOP)
		a.kill(t)
		leave(t, a)
		if left := sharing(t, spaces); len(left) > 0 || alive(launcher) {
			t.Errorf("%d processes are alive", len(left))
		}
	})
}

// Case B14: an agent that is stopped cannot renew, and nothing of its attempts is alive at the deadline.
func TestNothingIsAliveAtTheDeadlineOfAStoppedAgent(t *testing.T) {
	eachUser(t, func(t *testing.T, l life, uid int) {
		l.Deadline = 3 * time.Second
		a := phases["running"](t, l, uid)
		inside := busy(t, launcherOf(a.life.State))
		signal(t, a.cmd.Process.Pid, unix.SIGSTOP)
		eventually(t, "nothing of it is alive", func() bool { return !slices.ContainsFunc(inside, alive) })
		signal(t, a.cmd.Process.Pid, unix.SIGCONT)
		if line := a.hear("ended"); !strings.Contains(line, "signal=9 bitten=true") {
			t.Error(line)
		}
	})
}

// busy returns the processes of the sandbox that runs something.
func busy(t *testing.T, launcher int) []int {
	t.Helper()
	for _, first := range firstsOf(t, launcher) {
		if inside := within(t, first); len(inside) > 2 {
			return inside
		}
	}
	t.Fatal("no sandbox runs anything")
	return nil
}

func records(t *testing.T, state string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(state, "*"+sandbox.RecordSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The agent lives on and hears that its sandboxes have ended.
func TestAnAgentHearsThatItsLauncherWasKilled(t *testing.T) {
	y := open(t, nil)
	r := y.make(forever, nil)
	r.wait4(t, "running")
	inside := within(t, r.Pid())
	signal(t, launcherOf(y.state), unix.SIGKILL)
	if end := r.wait(t); end.Signal != unix.SIGKILL || !end.Killed {
		t.Errorf("%+v", end)
	}
	noneOf(t, inside)
	<-y.Ended()
	o, begin := y.order(task{Argv: []string{"/bin/true"}})
	b, err := y.Make(t.Context(), o)
	begin(b)
	if err == nil {
		t.Error("a launcher that has ended makes sandboxes")
	}
}

// Control groups of a launcher that was killed are removed by the next one, and the next one's view is made anew.
func TestTheNextLauncherSweepsWhatIsLeft(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has control groups here")
	}
	a := phases["running"](t, life{Pool: 1}, 0)
	groups := groupsOf(t, busy(t, launcherOf(a.life.State))[0])
	if len(groups) == 0 {
		t.Skip("this machine gives no control groups")
	}
	signal(t, launcherOf(a.life.State), unix.SIGKILL)
	a.kill(t)
	y := open(t, func(c *sandbox.Config) { c.State = a.life.State })
	if i := slices.IndexFunc(groups, exists); i >= 0 {
		t.Errorf("%s is left", groups[i])
	}
	if end := y.make("exit 6", nil).wait(t); end.Exit != 6 {
		t.Errorf("%+v", end)
	}
	if err := y.Close(); err != nil {
		t.Error(err)
	}
}

// groupsOf returns the folders of a process's control groups that were made for it.
func groupsOf(t *testing.T, pid int) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 || !strings.Contains(parts[2], "/forgeyard-") {
			continue
		}
		for _, root := range []string{"/sys/fs/cgroup/" + strings.TrimPrefix(parts[1], "name="), "/sys/fs/cgroup"} {
			if dir := root + parts[2]; exists(dir) {
				found = append(found, dir)
				break
			}
		}
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
