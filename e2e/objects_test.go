//go:build linux

package e2e_test

import (
	"io"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
)

// keeps declares an output.
func keeps(name string, patterns ...string) func(*api.JobSpec) {
	return func(spec *api.JobSpec) {
		spec.Outputs = append(spec.Outputs, api.Output{Name: name, Patterns: patterns, Required: true})
	}
}

// kept returns the one artifact of a job.
func (s *story) kept(job string) api.Artifact {
	s.t.Helper()
	list, err := s.client.Artifacts(s.ctx, api.ArtifactFilter{Job: job}, api.Page{})
	s.must(err)
	if len(list.Items) != 1 {
		s.t.Fatalf("the job has kept %+v", list.Items)
	}
	return list.Items[0]
}

// file returns a file of an artifact.
func (s *story) artifact(id, path string) []byte {
	s.t.Helper()
	in, err := s.client.ArtifactFile(s.ctx, id, path)
	s.must(err)
	defer func() { _ = in.Close() }()
	content, err := io.ReadAll(in)
	s.must(err)
	return content
}

// TestJobsShareATreeAndNotWhatTheyMakeOfIt: rows 07-A12, 07-I10, 07-I12, case B88.
func TestJobsShareATreeAndNotWhatTheyMakeOfIt(t *testing.T) {
	s := newStory(t)
	s.agent("one", 4, "")
	source := s.plant(map[string]string{"a/b": "as it was"}).as("cow")
	var runs []*api.Run
	for range 8 {
		run, _ := s.shell("grep -q 'as it was' a/b && echo mine > a/b && rm -r a && echo x > c", source)
		runs = append(runs, run)
	}
	for _, run := range runs {
		classOf(t, s.ended(run), "Succeeded", "Succeeded")
	}
	run, _ := s.shell("! echo mine > a/b && ! rm a/b && cat a/b", s.plant(map[string]string{"a/b": "as it was"}).as("ro"))
	ended := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	if text := s.log(ended.ID); !strings.Contains(text, "as it was") {
		t.Errorf("the log is %q", text)
	}
}

// TestAJobWhoseOutputIsMissingFailsAndKeepsTheRest: case B80.
func TestAJobWhoseOutputIsMissingFailsAndKeepsTheRest(t *testing.T) {
	s := newStory(t)
	s.agent("one", 1, "")
	run, job := s.shell("echo there > good", keeps("good", "good"), keeps("bad", "nowhere"))
	ended := classOf(t, s.ended(run), "Failed", "OutputMissing")
	if text := s.log(ended.ID); strings.Contains(text, "nowhere") {
		t.Errorf("what the agent says stands in the job's own output: %q", text)
	}
	if got := string(s.artifact(s.kept(job).ID, "good")); got != "there\n" {
		t.Errorf("it has kept %q", got)
	}
}
