//go:build linux

package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// damage flips a bit of an object in a store, as a disk may. Its name and size stay.
func (s *story) damage(store string, ref digest.Ref) {
	s.t.Helper()
	hex := ref.Digest.String()[len("b3:"):]
	path := filepath.Join(store, "b3", hex[:2], hex)
	content, err := os.ReadFile(path)
	s.must(err)
	content[len(content)/2] ^= 1
	s.must(os.Remove(path))
	s.must(os.WriteFile(path, content, 0o444))
}

// TestAnOutputThatTheDaemonHasLostComesOnceMore: what a job leaves is what an earlier one has left, so nothing of it is
// uploaded; but the daemon's copy is damaged, which it finds when the completion comes. The job succeeds all the same, in its one
// attempt and without running again: from the agent's cache, and where that is damaged too, from the job's files. Rows 07-T264, 07-I17.
func TestAnOutputThatTheDaemonHasLostComesOnceMore(t *testing.T) {
	s := newStory(t)
	agent := s.agent("one", 1, "")
	build := func() string {
		run, job := s.shell("echo built > good", keeps("good", "good"))
		if got := classOf(t, s.ended(run), "Succeeded", "Succeeded"); got.Number != 1 {
			t.Errorf("it took %d attempts", got.Number)
		}
		return job
	}
	tree, err := digest.ParseRef(s.kept(build()).Ref)
	s.must(err)
	daemons, agents := filepath.Join(s.fleet.Daemon.Folder, "cas"), filepath.Join(agent.Folder, "objects", "cache")
	for _, damaged := range [][]string{{daemons}, {daemons, agents}} {
		ear, err := agent.Listen()
		s.must(err)
		s.fleet.Daemon.Kill() // what it remembers of the tree would hide the damage
		for _, store := range damaged {
			s.damage(store, tree)
		}
		s.must(s.fleet.Daemon.Start(s.ctx))
		s.must(agent.AwaitOnline(s.ctx))
		job := build()
		s.must(ear.Await(s.ctx, "the daemon missed outputs of an attempt and has them again"))
		if got := string(s.artifact(s.kept(job).ID, "good")); got != "built\n" {
			t.Errorf("it has kept %q", got)
		}
	}
}
