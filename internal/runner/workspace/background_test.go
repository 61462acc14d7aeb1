package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/runner/workspace"
)

func none(forge.AttemptID) bool { return false }

func TestANameIsFreeBeforeItsFilesAreGone(t *testing.T) {
	r, dir := open(t)
	release := r.Hold()
	id, path := made(t, r)
	must(t, os.WriteFile(filepath.Join(path, "old"), nil, 0o600))
	must(t, r.Remove(id)) // while nothing can be removed
	again, err := r.Make(id)
	must(t, err)
	if _, err := os.Lstat(filepath.Join(again, "old")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next attempt finds what the one before left: %v", err)
	}
	release()
	must(t, r.Remove(id))
	nothingLeft(t, r, dir)
}

func TestWhatWaitsToBeRemovedIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dir := open(t)
		release := r.Hold()
		for range workspace.MaxWaiting {
			id, _ := made(t, r)
			must(t, r.Remove(id)) // does not wait
		}
		if n := r.Waiting(); n != workspace.MaxWaiting {
			t.Errorf("%d are said to wait", n)
		}
		id, _ := made(t, r)
		done := make(chan error, 1)
		go func() { done <- r.Remove(id) }()
		synctest.Wait()
		select {
		case <-done:
			t.Error("one more did not wait")
		default:
		}
		release()
		must(t, <-done)
		nothingLeft(t, r, dir)
	})
}

func TestTheEndOfAnAgentEndsARemovalAndTheNextGoesOn(t *testing.T) {
	r, dir := open(t)
	id, path := made(t, r)
	for _, name := range []string{"a", "b", "c"} {
		must(t, os.WriteFile(filepath.Join(path, name), nil, 0o600))
	}
	r.Stop()
	must(t, r.Remove(id))
	must(t, r.Idle(t.Context()))
	must(t, r.Close())
	must(t, r.Close()) // again, harmless
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 1 || !strings.HasPrefix(entries[0].Name(), ".gone-"+id.String()) {
		t.Fatalf("left: %v", entries)
	}
	next, err := workspace.Open(dir, workspace.Options{})
	must(t, err)
	removed, err := next.Sweep(t.Context(), none)
	if removed != 1 || err != nil {
		t.Errorf("the next one removed %d, %v", removed, err)
	}
	nothingLeft(t, next, dir)
	must(t, next.Close())
}

func TestCloseFinishesWhatWaits(t *testing.T) {
	dir := t.TempDir()
	r, err := workspace.Open(dir, workspace.Options{})
	must(t, err)
	for range 10 {
		id, _ := made(t, r)
		must(t, r.Remove(id))
	}
	must(t, r.Close())
	nothingLeft(t, r, dir)
}

func TestASweepEndsWithItsContext(t *testing.T) {
	r, _ := open(t)
	release := r.Hold()
	defer release()
	made(t, r)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("nobody waits any more")
	cancel(gone)
	if _, err := r.Sweep(ctx, none); !errors.Is(err, gone) {
		t.Errorf("it ends with %v", err)
	}
}

// Case B88: of many attempts with the same spec none meets another's name.
func TestManyAttemptsComeAndGoAtOnce(t *testing.T) {
	r, dir := open(t)
	done := make(chan error)
	for range 20 {
		go func() {
			var errs []error
			for range 5 {
				id := ident.New[forge.AttemptID]()
				path, err := r.Make(id)
				errs = append(errs, err, os.WriteFile(filepath.Join(path, "file"), nil, 0o600), r.Remove(id))
			}
			done <- errors.Join(errs...)
		}()
	}
	for range 20 {
		must(t, <-done)
	}
	nothingLeft(t, r, dir)
}

// helperEnv makes the test's program do something else, in a process of its own.
const helperEnv = "FORGEYARD_TEST_WORKSPACE"

func TestMain(m *testing.M) {
	if run, is := helpers[os.Getenv(helperEnv)]; is {
		run()
		return
	}
	goleak.VerifyTestMain(m)
}
