package storetest

import (
	"context"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func lower(id forge.RunnerID) string { return strings.ToLower(id.String()) }

// Suite holds a store to what the rules of authority expect of it. open returns an empty one, closed by the test's end.
func Suite(t *testing.T, open func(t *testing.T) Rules) {
	t.Run("every history of rules gives the answers and rows of the model", func(t *testing.T) { againstModel(t, open(t)) })
	t.Run("callers at once see one order", func(t *testing.T) { oneOrder(t, open(t)) })
	t.Run("a job is never offered twice at once", func(t *testing.T) { offeredOnce(t, open(t)) })
	t.Run("a slot is never filled twice", func(t *testing.T) { slotsHold(t, open(t)) })
	t.Run("a refused rule changes nothing", func(t *testing.T) { refusedChangesNothing(t, open(t)) })
}

// bg is the context of everything that the suite asks for: none of it is to be taken back.
var bg = context.Background()

// build makes the runners and jobs of a world.
func (w *world) build(t rapid.TB, stores ...Rules) {
	t.Helper()
	for _, s := range stores {
		for i := range w.runners {
			if err := s.MakeRunner(bg, w.newRunner(i)); err != nil {
				t.Fatalf("make runner: %v", err)
			}
		}
		if err := s.MakeRun(bg, w.newRun()); err != nil {
			t.Fatalf("make run: %v", err)
		}
	}
}

// steps is the length of a history.
const steps = 80

// againstModel runs random histories. All are in one store, each in a world of its own.
func againstModel(t *testing.T, s Rules) {
	seed := uint64(1000)
	rapid.Check(t, func(t *rapid.T) {
		seed++
		w, m := newWorld(seed), NewModel()
		w.model = m
		w.build(t, s, m)
		for _, r := range []Rules{s, m} { // so that most of what follows comes from somebody who may speak
			must(t, r, &w.sessions[0])
			must(t, r, &w.sessions[2])
		}
		d := dice{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		for range steps {
			w.step(t, d, s, m)
		}
	})
}

// step runs one command on both and compares.
func (w *world) step(t rapid.TB, d dice, s Rules, m *Model) {
	if len(w.leases) > 0 && d.between(0, 9) == 9 {
		c, live := w.context(d), d.between(0, 1) == 0
		if attempts, _ := m.Attempts(bg, c.Job); holds(attempts, c.Attempt) {
			ours, theirs := m.Upload(bg, c.Attempt, outputOf(0), live), s.Upload(bg, c.Attempt, outputOf(0), live)
			if ours != nil || theirs != nil {
				t.Fatalf("upload: %v, %v", ours, theirs)
			}
		}
	}
	cmd := w.draw(d)
	want, wantErr := m.Do(bg, store.ClassState, cmd)
	got, gotErr := s.Do(bg, store.ClassState, cmd)
	if (wantErr == nil) != (gotErr == nil) {
		t.Fatalf("%T: error %v, want %v", cmd, gotErr, wantErr)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%T %+v: answer (-want +got)\n%s", cmd, cmd, diff)
	}
	w.note(cmd, got)
	if got.Done {
	}
	w.compare(t, cmd, s, m)
}

func holds(attempts []Attempt, id forge.AttemptID) bool {
	for _, a := range attempts {
		if a.Attempt.ID == id {
			return true
		}
	}
	return false
}

// compare holds all rows of the world against the model's.
func (w *world) compare(t rapid.TB, cmd authority.Command, s Rules, m *Model) {
	t.Helper()
	same := func(what string, read func(Rules) (any, error)) {
		t.Helper()
		want, _ := read(m)
		got, err := read(s)
		if err != nil {
			t.Fatalf("read %s: %v", what, err)
		}
		if reflect.DeepEqual(want, got) {
			return
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("after %T %+v: %s (-want +got)\n%s", cmd, cmd, what, d)
		}
	}
	for _, runner := range w.runners {
		same("snapshot", func(s Rules) (any, error) { return s.Snapshot(bg, runner) })
	}
	same("jobs", func(s Rules) (any, error) { return s.Jobs(bg, w.run) })
	for _, job := range w.jobs {
		same("attempts", func(s Rules) (any, error) { return s.Attempts(bg, job) })
	}
}
