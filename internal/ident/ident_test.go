package ident_test

import (
	"sync"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

func TestIdsAreInTheOrderOfTheirMaking(t *testing.T) {
	last := ident.New[forge.RunID]()
	for range 10_000 {
		next := ident.New[forge.RunID]()
		if next.Compare(last.ULID) <= 0 {
			t.Fatalf("%v was made after %v and sorts before it", next, last)
		}
		last = next
	}
}

func TestIdsMadeAtOnceAreDifferent(t *testing.T) {
	const makers, each = 8, 2000
	lists := make([][]forge.JobID, makers)
	var wait sync.WaitGroup
	for i := range lists {
		wait.Go(func() {
			for range each {
				lists[i] = append(lists[i], ident.New[forge.JobID]())
			}
		})
	}
	wait.Wait()
	seen := map[forge.JobID]bool{}
	for _, list := range lists {
		for _, id := range list {
			if seen[id] {
				t.Fatalf("%v was made twice", id)
			}
			seen[id] = true
		}
	}
}
