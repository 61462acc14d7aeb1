package sim_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/sim"
)

func BenchmarkSchedule(b *testing.B) {
	b.ReportAllocs()
	for i := range b.N {
		sim.Run(sim.Options{Seed: uint64(i)})
	}
}
