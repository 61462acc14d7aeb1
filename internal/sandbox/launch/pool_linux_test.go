package launch_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// settled waits until as many sandboxes live as there are to be, and returns their pid 1s.
func (y *yard) settled(n int) []int {
	y.t.Helper()
	var firsts []int
	eventually(y.t, "the number of sandboxes is right", func() bool {
		firsts = firstsOf(y.t, launcherOf(y.state))
		return len(firsts) == n
	})
	slices.Sort(firsts)
	return firsts
}

// D17.
func TestAnOrderTakesASandboxThatWaits(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, func(c *sandbox.Config) { mode(c); c.Pool = 3 })
		waiting := y.settled(3)
		r := y.make("sleep 1000", nil)
		if !slices.Contains(waiting, r.Pid()) {
			t.Errorf("%v waited, and the order got %d", waiting, r.Pid())
		}
		y.settled(4)
		r.Kill()
		r.wait(t)
		y.settled(3)
	})
}

func TestAnOrderThatNoneOfThemFitsGetsItsOwn(t *testing.T) {
	y := open(t, func(c *sandbox.Config) { c.Pool = 1 })
	for _, change := range []func(*sandbox.Order){
		func(o *sandbox.Order) { o.Network = forge.NetworkHost },
		func(o *sandbox.Order) { o.Limits.Shm = 3 * forge.MiB },
	} {
		waiting := y.settled(1)
		r := y.make("df -k /dev/shm | tail -1 | tr -s ' ' | cut -d' ' -f2", change)
		r.wait(t)
		if slices.Contains(waiting, r.Pid()) {
			t.Error("it got the one that waited")
		}
		t.Log(r.output())
	}
}

func TestWithoutAPoolNoneWaits(t *testing.T) {
	y := open(t, func(c *sandbox.Config) { c.Pool = 0 })
	y.settled(0)
	if end := y.make("exit 4", nil).wait(t); end.Exit != 4 {
		t.Errorf("%+v", end)
	}
	y.settled(0)
}

func TestThePoolIsMadeAnewForAnotherView(t *testing.T) {
	y := open(t, func(c *sandbox.Config) { c.Pool = 2 })
	before := y.settled(2)
	shown := t.TempDir()
	if err := y.SetView(sandbox.View{ReadOnly: []sandbox.Mount{{Source: shown, Target: "/shown"}}, Path: []string{"/shown"}}); err != nil {
		t.Fatal(err)
	}
	r := y.make("ls -d /shown; touch /shown/x 2>/dev/null || echo read-only", nil)
	if slices.Contains(before, r.Pid()) {
		t.Error("the order got a sandbox with the old view")
	}
	r.wait(t)
	if r.output() != "/shown\nread-only\n" {
		t.Error(r.output())
	}
	eventually(t, "those with the old view have gone", func() bool {
		now := firstsOf(t, launcherOf(y.state))
		return len(now) == 2 && !slices.Contains(now, before[0]) && !slices.Contains(now, before[1])
	})
}

func TestOneThatWaitsAndIsKilledIsMadeAnew(t *testing.T) {
	y := open(t, func(c *sandbox.Config) { c.Pool = 1 })
	first := y.settled(1)[0]
	signal(t, first, unix.SIGKILL)
	eventually(t, "another one waits", func() bool {
		now := firstsOf(t, launcherOf(y.state))
		return len(now) == 1 && now[0] != first
	})
}

func TestCloseDrainsThePoolAndRemovesWhatWasMade(t *testing.T) {
	y := open(t, func(c *sandbox.Config) { c.Pool = 4 })
	waiting := y.settled(4)
	launcher := launcherOf(y.state)
	r := y.make(forever, nil)
	inside := within(t, r.Pid())
	if err := y.Close(); err != nil {
		t.Error(err)
	}
	noneOf(t, append(append(waiting, inside...), launcher))
	if end := r.wait(t); !end.Killed {
		t.Errorf("%+v", end)
	}
	if left := records(t, y.state); len(left) > 0 {
		t.Errorf("records are left: %v", left)
	}
	if err := y.Close(); err != nil {
		t.Error(err)
	}
}

func TestManyAtOnceEachHaveTheirOwn(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, func(c *sandbox.Config) { mode(c); c.Pool = 2; c.Slots = 16 })
		var all sync.WaitGroup
		for i := range 24 {
			all.Go(func() {
				r, err := y.try("test $(ls /work | wc -l) = 2 && echo x >/work/mine && exit 7")
				if err != nil {
					if i < 16 {
						t.Log(err) // more may run at this moment than there are slots
					}
					return
				}
				<-r.Done()
				if end := r.End(); end.Exit != 7 {
					t.Errorf("%+v %s", end, r.output())
				}
			})
		}
		all.Wait()
		y.settled(2)
	})
}

// 07§274: a launcher lives as long as its agent.
func TestManySandboxesLeaveNothingInTheLauncher(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, func(c *sandbox.Config) { mode(c); c.Pool = 1; c.Slots = 2 })
		rounds := func(n int) {
			for range n {
				var all sync.WaitGroup
				for range 2 {
					all.Go(func() {
						r, err := y.try("exit 7")
						if err != nil {
							t.Error(err)
							return
						}
						if end := r.wait(t); end.Exit != 7 {
							t.Errorf("%+v", end)
						}
					})
				}
				all.Wait()
			}
			y.settled(1)
		}
		rounds(4) // every slot has had its turn
		before := belongings(t, launcherOf(y.state))
		rounds(10)
		eventually(t, "the launcher has what it had", func() bool { return belongings(t, launcherOf(y.state)) == before })
		if left := records(t, y.state); len(left) != 1 {
			t.Errorf("records are left: %v", left)
		}
	})
}

// belongings counts a process's open files and children, zombies among them.
func belongings(t *testing.T, pid int) [2]int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Skip(err) // only root sees those of a process that is not dumpable
	}
	children := 0
	for _, p := range allPids(t) {
		if parentOf(p) == pid {
			children++
		}
	}
	return [2]int{len(files), children}
}

// Whoever kills a sandbox that waits does not fail the next job.
func TestAnOrderForASandboxThatHasJustBeenKilledIsKept(t *testing.T) {
	y := open(t, func(c *sandbox.Config) { c.Pool = 1 })
	for range 10 {
		first := y.settled(1)[0]
		signal(t, first, unix.SIGKILL)
		if end := y.make("exit 7", nil).wait(t); end.Exit != 7 {
			t.Fatalf("%+v", end)
		}
	}
}
