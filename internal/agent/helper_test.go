package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAHelperIsUsedOnlyIfItIsOfTheSameBuildAndNobodyElseWritesIt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	same, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content []byte
		mode    os.FileMode
		used    bool
		why     string
	}{
		"same":             {same, 0o755, true, ""},
		"anybody's":        {same, 0o777, false, "chmod"},
		"its group's":      {same, 0o775, false, "chmod"},
		"no program of Go": {[]byte("#!/bin/sh\n"), 0o755, false, helperName},
	} {
		own := filepath.Join(t.TempDir(), "forgeyard-agent")
		path := filepath.Join(filepath.Dir(own), helperName)
		if err := os.WriteFile(path, c.content, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := helperBeside(own)
		if c.used != (got == path) || c.used != (err == nil) || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

func TestWithoutAHelperThereIsNone(t *testing.T) {
	if got, err := helperBeside(filepath.Join(t.TempDir(), "forgeyard-agent")); got != "" || err != nil {
		t.Errorf("%q %v", got, err)
	}
}
