//go:build linux

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A job of our own project, from a fresh clone, in a sandbox and without a network: what its agent runs can be Forgeyard.
func TestAForgeyardAgentBuildsForgeyard(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("these sources are in no repository of git")
	}
	s := newStory(t)
	s.fleet.Shows = []string{root + ":/repository"}
	s.agent("one", 1, "")
	run, _ := s.shell(`set -e
		git clone -q file:///repository .
		test -z "$(git status --short)"
		go build ./internal/redact
		make help | head -1`)
	a := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	if log := s.log(a.ID); !strings.Contains(log, "make check") {
		t.Errorf("log %q", log)
	}
}
