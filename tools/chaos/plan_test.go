//go:build linux

package main

import (
	"reflect"
	"testing"
)

func TestAPlanFollowsFromItsSeedAndEveryKindIsDrawn(t *testing.T) {
	seen := map[kind]bool{}
	within, beyond := false, false
	for seed := range uint64(300) {
		p := newPlan(seed)
		if !reflect.DeepEqual(p, newPlan(seed)) {
			t.Fatalf("seed %d gives two plans", seed)
		}
		if len(p.tasks) < fewestTasks || len(p.tasks) > mostTasks || len(p.faults) < fewFaults || len(p.faults) > manyFaults {
			t.Fatalf("seed %d: %d tasks, %d faults", seed, len(p.tasks), len(p.faults))
		}
		for _, f := range p.faults {
			seen[f.kind] = true
			within = within || f.lasts < leaseTTL
			beyond = beyond || f.lasts >= leaseTTL
		}
	}
	for _, w := range weights {
		if !seen[w.kind] {
			t.Errorf("%q was never drawn", w.kind)
		}
	}
	if !within || !beyond {
		t.Error("faults end always within the lease, or never")
	}
}
