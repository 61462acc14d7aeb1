package localstate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

func newContext() forge.AttemptContext {
	return forge.AttemptContext{
		Job: ident.New[forge.JobID](), Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID](),
		Spec: forge.SpecID([]byte("spec")), Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](),
	}
}

func completed(c forge.AttemptContext) core.Record {
	m := &forge.Completion{
		Context: c, Message: ident.New[forge.MessageID](), CancelSeen: true, Capture: forge.Succeeded,
		Result: forge.Result{Class: forge.ExitCode, ExitCode: 3, Duration: time.Second, Steps: []forge.StepResult{
			{Index: 0, Class: forge.ExitCode, ExitCode: 3, Start: 1_700_000_000_000, Duration: time.Second},
		}},
		Log: forge.LogSeal{Last: 9, Bytes: 1000, Hash: digest.Of([]byte("log"))},
	}
	m.Hash = m.ResultHash()
	return core.Record{Context: c, Version: 4, State: forge.AttemptCompleting, Completion: m}
}

func mustOpen(t *testing.T, path string) *Folder {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func load(t *testing.T, f *Folder) []core.Record {
	t.Helper()
	records, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func TestAFolderHasOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	first := mustOpen(t, dir)
	if _, err := Open(dir); !errors.Is(err, ErrInUse) {
		t.Fatalf("a second process: %v, want ErrInUse", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir)
}

func TestEveryStartIsCountedAndKeepsTheIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var id forge.StateFolderID
	for n := uint64(1); n <= 5; n++ {
		f, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if n > 1 && f.ID() != id {
			t.Errorf("start %d has identity %v, the one before %v", n, f.ID(), id)
		}
		id = f.ID()
		if f.Starts() != n {
			t.Errorf("start %d counts as %d", n, f.Starts())
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheFolderIsPrivate(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f := mustOpen(t, dir)
	if err := f.Write(completed(newContext())); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestACopiedFolderIsAnotherFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("copies can be told apart on Linux")
	}
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	f := mustOpen(t, dir)
	if err := f.Write(completed(newContext())); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	clone := mustOpen(t, copied)
	if clone.ID() == f.ID() || clone.Starts() != 1 {
		t.Errorf("the copy is folder %v, start %d; the original is %v", clone.ID(), clone.Starts(), f.ID())
	}
	if records := load(t, clone); len(records) != 0 || len(clone.Quarantined()) != 1 {
		t.Errorf("the copy reports %d attempts of the original as its own; set aside: %v", len(records), clone.Quarantined())
	}
}

func TestAMovedFolderStaysTheSame(t *testing.T) {
	parent := t.TempDir()
	f := mustOpen(t, filepath.Join(parent, "a"))
	id := f.ID()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(parent, "a"), filepath.Join(parent, "b")); err != nil {
		t.Fatal(err)
	}
	if moved := mustOpen(t, filepath.Join(parent, "b")); moved.ID() != id || moved.Starts() != 2 {
		t.Errorf("moved, the folder is %v, start %d", moved.ID(), moved.Starts())
	}
}

func TestABootHasOneIdentity(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("boots are told apart on Linux")
	}
	a, b := mustOpen(t, t.TempDir()), mustOpen(t, t.TempDir())
	if a.Boot().IsZero() || a.Boot() != b.Boot() {
		t.Errorf("one boot has ids %v and %v", a.Boot(), b.Boot())
	}
}

func TestTheJournalGivesBackWhatWasWrittenLast(t *testing.T) {
	dir := t.TempDir()
	f := mustOpen(t, dir)
	whole, accepted, dropped := completed(newContext()), newContext(), completed(newContext())
	frozen := completed(newContext())
	frozen.State, frozen.Completion.Hash, frozen.Completion.Log = forge.AttemptUploading, digest.Digest{}, forge.LogSeal{}
	for _, r := range []core.Record{
		{Context: whole.Context, Version: 1, State: forge.AttemptAccepted},
		whole, dropped, frozen,
		{Context: accepted, Version: 1, State: forge.AttemptAccepted},
	} {
		if err := f.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // dropping twice is harmless
		if err := f.Drop(dropped.Context.Attempt); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	next := mustOpen(t, dir)
	got := map[forge.AttemptID]core.Record{}
	for _, r := range load(t, next) {
		got[r.Context.Attempt] = r
	}
	want := map[forge.AttemptID]core.Record{
		whole.Context.Attempt: whole, frozen.Context.Attempt: frozen,
		accepted.Attempt: {Context: accepted, Version: 1, State: forge.AttemptAccepted},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the journal differs (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeReadIsSetAsideAndNeverBelieved(t *testing.T) {
	good := completed(newContext())
	b, err := encodeRecord(good)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(b)
	flipped[len(flipped)/2] ^= 1
	small, err := encodeRecord(core.Record{Context: good.Context, Version: 1, State: forge.AttemptAccepted})
	if err != nil {
		t.Fatal(err)
	}
	small[len(magicJournal)+1+40] ^= 1 // in an id, where any bits are good
	other := newContext().Attempt.String()
	name := good.Context.Attempt.String()
	for what, file := range map[string]struct {
		name string
		data []byte
	}{
		"cut in the middle":             {name, b[:len(b)/2]},
		"empty":                         {name, nil},
		"with a bit flipped":            {name, flipped},
		"with another bit flipped":      {name, small},
		"under another attempt's name":  {other, b},
		"under no attempt's name":       {"notes.txt", b},
		"larger than any record can be": {name, make([]byte, maxFileBytes+1)},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			f := mustOpen(t, dir)
			if err := os.WriteFile(filepath.Join(dir, journalName, file.name), file.data, 0o600); err != nil {
				t.Fatal(err)
			}
			if records := load(t, f); len(records) != 0 {
				t.Errorf("a record %s was believed: %+v", what, records)
			}
			aside := f.Quarantined()
			if len(aside) != 1 || aside[0].Err == nil {
				t.Fatalf("set aside: %v, want the one file", aside)
			}
			kept, err := os.ReadFile(filepath.Join(dir, aside[0].File))
			if err != nil || !bytes.Equal(kept, file.data) {
				t.Errorf("the file is not kept for people: %v", err)
			}
			if records := load(t, f); len(records) != 0 || len(f.Quarantined()) != 1 {
				t.Error("it was found a second time")
			}
		})
	}
}

func TestATornIdentityIsANewOne(t *testing.T) {
	dir := t.TempDir()
	f := mustOpen(t, dir)
	id := f.ID()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, identityName), 20); err != nil {
		t.Fatal(err)
	}
	next := mustOpen(t, dir)
	if next.ID() == id || next.Starts() != 1 || len(next.Quarantined()) != 1 {
		t.Errorf("identity %v, start %d, set aside %v: want a new one, and a report", next.ID(), next.Starts(), next.Quarantined())
	}
}

var points = []string{pointCreated, pointHalf, pointWritten, pointSynced, pointRenamed, pointDone}

// TestAKillAtAnyPointOfAWriteLeavesTheOldRecordOrTheNew dies at each point and looks at what the next process finds.
func TestAKillAtAnyPointOfAWriteLeavesTheOldRecordOrTheNew(t *testing.T) {
	killed := errors.New("killed here")
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			dying := false
			f, err := open(dir, func(at string) error {
				if dying && at == point {
					return killed
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			after := completed(newContext())
			before := core.Record{Context: after.Context, Version: 1, State: forge.AttemptAccepted}
			if err := f.Write(before); err != nil {
				t.Fatal(err)
			}
			dying = true
			if err := f.Write(after); !errors.Is(err, killed) {
				t.Fatalf("the write went past the kill: %v", err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			next := mustOpen(t, dir)
			got := load(t, next)
			if len(got) != 1 || !cmp.Equal(got[0], before) && !cmp.Equal(got[0], after) {
				t.Errorf("after a kill when %s: %+v", point, got)
			}
			if len(next.Quarantined()) != 0 {
				t.Errorf("a cut write looks like damage: %v", next.Quarantined())
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*", tempPrefix+"*")); err != nil || len(left) != 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}

// TestAKillDuringTheStartNeverLetsTheCounterGoBack dies at each point of counting.
func TestAKillDuringTheStartNeverLetsTheCounterGoBack(t *testing.T) {
	dir := t.TempDir()
	last := uint64(0)
	var id forge.StateFolderID
	for n, point := range points {
		_, err := open(dir, func(at string) error {
			if at == point {
				return errors.New("killed here")
			}
			return nil
		})
		if err == nil {
			t.Fatalf("the start went past a kill when %s", point)
		}
		f, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if f.Starts() <= last || n > 0 && f.ID() != id {
			t.Errorf("after a kill when %s: folder %v, start %d after %d", point, f.ID(), f.Starts(), last)
		}
		last, id = f.Starts(), f.ID()
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheQuarantineIsBounded(t *testing.T) {
	dir := t.TempDir()
	f := mustOpen(t, dir)
	for i := range maxQuarantined + 10 {
		if err := os.WriteFile(filepath.Join(dir, journalName, fmt.Sprint("bad", i)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	load(t, f)
	kept, err := os.ReadDir(filepath.Join(dir, quarantineName))
	if err != nil || len(kept) != maxQuarantined || len(f.Quarantined()) != maxQuarantined+10 {
		t.Errorf("kept %d, reported %d, %v", len(kept), len(f.Quarantined()), err)
	}
}

func FuzzRecord(f *testing.F) {
	for _, r := range []core.Record{
		completed(newContext()), {Context: newContext(), Version: 1, State: forge.AttemptAccepted},
	} {
		b, err := encodeRecord(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:len(b)-digest.Size])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := digest.Of(body) // a checksum that fits, so that what lies behind it is reached
		b := append(bytes.Clone(body), sum[:]...)
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		again, err := encodeRecord(r)
		if err != nil {
			t.Fatalf("a record that was read cannot be written: %v", err)
		}
		back, err := decodeRecord(again)
		if err != nil || !cmp.Equal(back, r) {
			t.Errorf("a record changes when it is written and read again: %v", err)
		}
	})
}
