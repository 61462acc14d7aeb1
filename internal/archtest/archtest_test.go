package archtest_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/archtest"
)

const root = "../.."

func TestTheTreeKeepsToItsArchitecture(t *testing.T) {
	violations, err := archtest.Check(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

// TestSizesOfTheTree prints the figures; Check holds their bounds.
func TestSizesOfTheTree(t *testing.T) {
	m, err := archtest.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	s := m.Sizes()
	if s.Files.Count == 0 || s.Functions.Count == 0 {
		t.Fatalf("measured %d files and %d functions", s.Files.Count, s.Functions.Count)
	}
	t.Logf("files     %v", s.Files)
	t.Logf("functions %v, %.1f %% over the bound", s.Functions, s.LongPercent())
	for _, f := range s.Long {
		t.Logf("long: %s:%d: %s, %d lines", f.File, f.Line, f.Name, f.Lines)
	}
}
