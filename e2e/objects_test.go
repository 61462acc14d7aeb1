//go:build linux

package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/relay"
)

// source puts files into the daemon's store and makes them the source of a job.
func (s *story) source(files map[string]string, mode string) func(*api.JobSpec) {
	s.t.Helper()
	t, _ := castest.Tree(s.t, s.client.Objects(""), files)
	return func(spec *api.JobSpec) {
		spec.Inputs = []api.Input{{Mount: forge.SourceDir, Mode: mode, Tree: api.Tree{
			Root: t.Root.String(), Files: t.Files, Bytes: api.Size(t.Bytes), Depth: t.Depth,
		}}}
	}
}

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

// TestAJobsFilesAreExactOverARoadThatIsCut: rows 07-G10, 07-G17, 09-T176. Thousands of files and one that is large go to an agent
// behind a road that is narrow and cut every second, and come back from it. The lease, of six seconds, holds all the while.
func TestAJobsFilesAreExactOverARoadThatIsCut(t *testing.T) {
	s := newStory(t)
	_, road := s.relayed("one", 1)
	large := string(castest.Bytes(1, 24<<20))
	files := map[string]string{"large": large, "tool*": "#!/bin/sh\necho from the tool\n", "link": "-> tool"}
	for i := range 1500 {
		files[fmt.Sprintf("d%d/f%d", i%40, i)] = fmt.Sprint("content ", i)
	}
	source := s.source(files, "cow")
	s.must(road.Set(relay.Settings{Rate: 6 << 20}))
	run, job := s.shell("./link; rm -r d0; mkdir out; cat d*/f* | sort > out/small; cp large tool out; ln -s tool out/link", source, keeps("out", "out/**"))
	stop := make(chan struct{})
	var cutter sync.WaitGroup
	cutter.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
			road.Break()
			select {
			case <-stop:
			case <-time.After(300 * time.Millisecond):
			}
			road.Mend()
		}
	})
	done := s.ended(run)
	close(stop)
	cutter.Wait()
	classOf(t, done, "Succeeded", "Succeeded")
	if len(done.AllAttempts) != 1 {
		t.Errorf("it took %d attempts", len(done.AllAttempts))
	}
	kept := s.kept(job)
	if got := s.artifact(kept.ID, "out/large"); !bytes.Equal(got, []byte(large)) {
		t.Errorf("the large file came back with %d bytes", len(got))
	}
	if got := strings.Count(string(s.artifact(kept.ID, "out/small")), "content "); got != 1500-38 {
		t.Errorf("%d small files were read", got)
	}
	folder, err := s.client.Artifact(s.ctx, kept.ID, "out", api.Page{})
	s.must(err)
	for _, e := range folder.Entries {
		if e.Name == "tool" && !e.Executable || e.Name == "link" && e.Target != "tool" {
			t.Errorf("%+v came back", e)
		}
	}
}

// TestJobsShareATreeAndNotWhatTheyMakeOfIt: rows 07-A12, 07-I10, 07-I12, case B88.
func TestJobsShareATreeAndNotWhatTheyMakeOfIt(t *testing.T) {
	s := newStory(t)
	s.agent("one", 4, "")
	source := s.source(map[string]string{"a/b": "as it was"}, "cow")
	var runs []*api.Run
	for range 8 {
		run, _ := s.shell("grep -q 'as it was' a/b && echo mine > a/b && rm -r a && echo x > c", source)
		runs = append(runs, run)
	}
	for _, run := range runs {
		classOf(t, s.ended(run), "Succeeded", "Succeeded")
	}
	run, _ := s.shell("! echo mine > a/b && ! rm a/b && cat a/b", s.source(map[string]string{"a/b": "as it was"}, "ro"))
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
