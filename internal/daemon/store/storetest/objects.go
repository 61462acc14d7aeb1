package storetest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// objects is a model of the rows that say which project holds which object.
type objects map[forge.ProjectName]map[digest.Ref]*store.ObjectRow

func (m objects) hold(project forge.ProjectName, refs []digest.Ref, now forge.WallTime) {
	if m[project] == nil {
		m[project] = map[digest.Ref]*store.ObjectRow{}
	}
	for _, ref := range refs {
		row := m[project][ref]
		switch {
		case row == nil:
			m[project][ref] = &store.ObjectRow{Project: project, Ref: ref, Added: now, Touched: now}
		case row.Touched < now-forge.WallTime(store.TouchAfter.Milliseconds()):
			row.Touched = now
		}
	}
}

func (m objects) held(project forge.ProjectName, refs []digest.Ref) []forge.WallTime {
	times := make([]forge.WallTime, len(refs))
	for i, ref := range refs {
		if row := m[project][ref]; row != nil {
			times[i] = row.Touched
		}
	}
	return times
}

func (m objects) holders(ref digest.Ref) (rows []store.ObjectRow) {
	for _, project := range slices.Sorted(maps.Keys(m)) {
		if row := m[project][ref]; row != nil {
			rows = append(rows, *row)
		}
	}
	return rows
}

// Objects holds a store to the model of which project holds which object. now is the clock of the store, in which it
// returns what it was set to last; the store is empty.
func Objects(t *testing.T, s *store.Store, now *forge.WallTime) {
	m := objects{}
	projects := []forge.ProjectName{"one", "two", "three"}
	rapid.Check(t, func(t *rapid.T) {
		d := dice{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		for range 20 {
			*now += forge.WallTime(d.between(0, 3*60*60*1000))
			project, refs := projects[d.between(0, len(projects)-1)], someRefs(d)
			if d.between(0, 1) == 0 {
				m.hold(project, refs, *now)
				if err := s.Update(bg, store.ClassRest, func(tx *store.Tx) error { return tx.Hold(project, refs) }); err != nil {
					t.Fatalf("hold: %v", err)
				}
			}
			compareObjects(t, s, m, project, refs)
		}
	})
}

// someRefs draws objects. Some share their digest and differ in size, which makes them two.
func someRefs(d dice) []digest.Ref {
	refs := make([]digest.Ref, d.between(1, 40))
	for i := range refs {
		refs[i] = digest.Ref{Digest: digest.Digest{1, byte(d.between(0, 60))}, Bytes: uint64(d.between(1, 2))}
	}
	return refs
}

func compareObjects(t rapid.TB, s *store.Store, m objects, project forge.ProjectName, refs []digest.Ref) {
	t.Helper()
	err := s.View(bg, func(v *store.View) error {
		held, err := v.Held(project, refs)
		if diff := cmp.Diff(m.held(project, refs), held); diff != "" || err != nil {
			t.Fatalf("held by %s (-want +got): %v\n%s", project, err, diff)
		}
		holders, err := v.Holders(refs[0], 10)
		if diff := cmp.Diff(m.holders(refs[0]), holders); diff != "" || err != nil {
			t.Fatalf("holders of %v (-want +got): %v\n%s", refs[0], err, diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
