package config_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/config"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

func TestTheReferenceIsNotStale(t *testing.T) {
	const file = "../docs/configuration.md"
	want := config.Reference()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is stale; run go test ./config -update\n%s", file, diff)
	}
}

func TestEverySettingSaysWhatItMeans(t *testing.T) {
	for line := range strings.Lines(config.Reference()) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && (strings.TrimSpace(cells[2]) == "" || strings.Trim(cells[3], " *reload") == "") {
			t.Errorf("no default or no meaning: %s", line)
		}
	}
}
