package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/daemon/store/storetest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// The test binary runs itself as a child that works on a store until it is killed, and says on its standard output what
// was acknowledged, a line at a time and only after it was.
const (
	childFolder = "FORGEYARD_STORE_TEST_FOLDER"
	childStory  = "FORGEYARD_STORE_TEST_STORY"
)

const (
	storyWork = "work"      // until it is killed
	storyFull = "/dev/full" // then the disk is full
	storyGone = "/dev/null" // then the file cannot be written to any more
)

// child is what the re-executed test binary does.
func child(dir, story string) {
	if err := work(dir, story); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

// workers is how many callers a child has: enough that commits are shared.
const workers = 8

func work(dir, story string) error {
	s, err := store.Open(context.Background(), dir, store.Options{})
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for {
				if err := unit(s, worker); err != nil {
					say("failed", err)
					return
				}
			}
		})
	}
	if story != storyWork {
		if err := replaceLog(dir, story); err != nil {
			return err
		}
	}
	wait.Wait() // never ends in storyWork: each unit succeeds until the process is killed
	say("done")
	select {}
}

var saying sync.Mutex

func say(words ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(words...)
}

// unit takes one run of two jobs as far as an accepted lease, each step acknowledged before the next.
func unit(s *store.Store, worker int) error {
	ctx := context.Background()
	runner, session := ident.New[forge.RunnerID](), ident.New[forge.AgentSessionID]()
	n := store.NewRun{ID: ident.New[forge.RunID](), Project: "kill", Trust: forge.TrustTrusted, Key: ident.New[forge.RunID]().String()}
	for _, key := range []forge.JobKey{"a", "b"} {
		spec := []byte(string(key) + n.Key)
		n.Jobs = append(n.Jobs, store.NewJob{
			ID: ident.New[forge.JobID](), Key: key, Draft: forge.SpecID(spec), Bytes: spec,
			Terms: store.Terms{HardTTL: time.Minute, MaxLifetime: time.Hour},
		})
	}
	err := s.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		if _, _, err := tx.CreateRun(n); err != nil {
			return err
		}
		if err := tx.Settle(n.ID, storetest.PlanAll); err != nil {
			return err
		}
		return tx.CreateRunner(store.NewRunner{
			ID: runner, Name: strings.ToLower(runner.String()), Pool: "default", Trust: forge.TrustTrusted, Slots: 4,
		})
	})
	if err != nil {
		return err
	}
	say("run", worker, n.ID, n.Jobs[0].ID)
	fence := authority.Fence{Runner: runner, Session: session, TransportSeq: 1}
	offer := &authority.Offer{Fence: fence, Job: n.Jobs[0].ID, Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID]()}
	c := forge.AttemptContext{
		Job: offer.Job, Attempt: offer.Attempt, Lease: offer.Lease, Spec: n.Jobs[0].Draft, Runner: runner, Session: session,
	}
	for _, step := range []struct {
		name string
		cmd  authority.Command
	}{
		{"registered", &authority.Register{Runner: runner, Session: session, StartCounter: 1, TransportSeq: 1}},
		{"offered", offer},
		{"accepted", &authority.Claim{Fence: fence, Context: c, Phase: forge.AttemptOffered}},
	} {
		answer, err := s.Do(ctx, store.ClassLease, step.cmd)
		if err != nil {
			return err
		}
		if !answer.Done {
			return fmt.Errorf("%s: %+v", step.name, answer)
		}
		say(step.name, worker, n.ID, n.Jobs[0].ID)
	}
	return nil
}

// started is a child with what it has said so far.
type started struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	acks  map[string][]forge.RunID // by the name of the step
	ended []string                 // "failed" lines
}

func start(t *testing.T, dir, story string) *started {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &started{cmd: exec.Command(exe), acks: map[string][]forge.RunID{}}
	c.cmd.Env = append(os.Environ(), childFolder+"="+dir, childStory+"="+story)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// read takes in lines until there are so many, the child is done, or its output ends.
func (c *started) read(t *testing.T, most int) int {
	t.Helper()
	n := 0
	for n < most && c.lines.Scan() {
		n++
		words := strings.Fields(c.lines.Text())
		switch words[0] {
		case "error":
			t.Fatalf("child: %s", c.lines.Text())
		case "failed":
			c.ended = append(c.ended, c.lines.Text())
		case "done":
			return n
		default:
			run, err := forge.ParseID[forge.RunID](words[2])
			if err != nil {
				t.Fatalf("child said %q: %v", c.lines.Text(), err)
			}
			c.acks[words[0]] = append(c.acks[words[0]], run)
		}
	}
	return n
}

// kill ends the child as a power cut of the process would, and takes in what it had still said.
func (c *started) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for c.read(t, 1<<30) > 0 {
	}
	var exit *exec.ExitError
	if err := c.cmd.Wait(); !errors.As(err, &exit) {
		t.Fatalf("the child ended by itself: %v", err)
	}
}

// states are the least states of the first job after each acknowledged step.
var states = map[string]forge.JobState{
	"run": forge.JobReady, "registered": forge.JobReady, "offered": forge.JobOffered, "accepted": forge.JobActive,
}

// check holds a store against what was acknowledged: all of it is there, and nothing of the newest runs, so many, is there
// by halves.
func check(t *testing.T, s *store.Store, acks map[string][]forge.RunID, newest int) {
	t.Helper()
	err := s.View(t.Context(), func(v *store.View) error {
		for step, runs := range acks {
			for _, run := range runs {
				jobs, err := v.Jobs(run)
				if err != nil || len(jobs) != 2 || jobs[0].State < states[step] {
					return fmt.Errorf("%s of run %v was acknowledged; stored are %d jobs, %+v, %w", step, run, len(jobs), jobs, err)
				}
			}
		}
		return whole(v, newest)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// whole checks that runs have all their jobs with their specs, and every job exactly the rows of its state.
func whole(v *store.View, newest int) error {
	for before, first := uint64(0), true; newest > 0 && (first || before > 0); first = false {
		runs, next, err := v.Runs(store.RunFilter{Before: before, Limit: min(newest, 100)})
		if err != nil {
			return err
		}
		for _, run := range runs {
			if err := wholeRun(v, run.ID); err != nil {
				return err
			}
		}
		before = next
		newest -= len(runs)
	}
	return nil
}

func wholeRun(v *store.View, run forge.RunID) error {
	jobs, err := v.Jobs(run)
	if err != nil || len(jobs) != 2 {
		return fmt.Errorf("run %v has %d jobs, %w", run, len(jobs), err)
	}
	for _, j := range jobs {
		spec, err := v.Spec(j.Spec)
		if err != nil || forge.SpecID(spec) != j.Spec {
			return fmt.Errorf("the spec of job %v: %w", j.ID, err)
		}
		attempts, err := v.Attempts(j.ID)
		if err != nil || len(attempts) != int(j.Authority.Attempts) {
			return fmt.Errorf("job %v has %d attempts and says %d, %w", j.ID, len(attempts), j.Authority.Attempts, err)
		}
		if len(attempts) == 1 && (attempts[0].Lease.Context != j.Authority.Open || attempts[0].Log.Next != 1 ||
			(attempts[0].Lease.State == forge.LeaseAccepted) != (j.State == forge.JobActive)) {
			return fmt.Errorf("job %v is %v, and its attempt is %+v", j.ID, j.State, attempts[0])
		}
	}
	return nil
}

// intact asks the engine whether the file is sound.
func intact(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+dir+"/state.db")
	if err != nil {
		t.Fatal(err)
	}
	var says string
	if err := errors.Join(db.QueryRow("PRAGMA integrity_check").Scan(&says), db.Close()); err != nil || says != "ok" {
		t.Fatalf("integrity check: %s, %v", says, err)
	}
}

// Everything that was acknowledged is there after kill -9 at any moment, and nothing else is there by halves.
func TestKilledAtAnyMomentWhatWasAcknowledgedIsThere(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 8
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	acks := map[string][]forge.RunID{}
	for range kills {
		c := start(t, dir, storyWork)
		c.read(t, 1+rng.IntN(300))
		c.kill(t)
		for step, runs := range c.acks {
			acks[step] = append(acks[step], runs...)
		}
		s, err := store.Open(t.Context(), dir, store.Options{})
		if err != nil {
			t.Fatalf("open after a kill: %v", err)
		}
		check(t, s, c.acks, 100)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	intact(t, dir)
	check(t, openAt(t, dir), acks, 1<<30)
	t.Log("acknowledged:", strconv.Itoa(len(acks["run"])), "runs,", len(acks["accepted"]), "leases")
}
