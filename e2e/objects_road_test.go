//go:build linux

package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/relay"
)

const (
	// nightly makes the stories tell that take minutes.
	nightly = "FORGEYARD_NIGHTLY"
	// mostAgain is how many bytes of objects one cut may cost.
	mostAgain = 8 << 20
	inMemory  = "/dev/shm"
)

// memory is where many files are made and removed soon, where this machine has such a place and room in it for so many bytes.
func memory(bytes uint64) (base string) {
	var room syscall.Statfs_t
	if syscall.Statfs(inMemory, &room) != nil || room.Bavail*uint64(room.Bsize) < bytes { //nolint:gosec // never negative
		return ""
	}
	return inMemory
}

// A haul is what a job reads and leaves over a bad road.
type haul struct {
	files, artifact int
	rate            int64  // of the road, bytes a second
	every           uint64 // bytes that the road carries from one cut to the next
	room            uint64 // bytes on disk
	within          time.Duration
}

// TestAJobsFilesAreExactOverARoadThatIsCut: rows 07-G10, 07-G17, 09-T176, threat S22. Thousands of files go to an agent behind a
// road that is cut until its connection is given up, again and again, and a large one comes back from it.
func TestAJobsFilesAreExactOverARoadThatIsCut(t *testing.T) {
	haul{files: 5000, artifact: 64 << 20, rate: 24 << 20, every: 24 << 20, room: 1 << 30, within: storyWithin}.tell(t)
}

// The same with 50,000 files and an artifact of 1 GiB.
func TestALargeJobsFilesAreExactOverARoadThatIsCut(t *testing.T) {
	if os.Getenv(nightly) == "" {
		t.Skip("takes minutes: make haul")
	}
	haul{files: 50_000, artifact: 1 << 30, rate: 24 << 20, every: 64 << 20, room: 10 << 30, within: 20 * time.Minute}.tell(t)
}

func (h haul) tell(t *testing.T) {
	s := newStoryOn(t, stage{scale: fleet.Patient, base: memory(h.room), within: h.within})
	agent, road := s.counted("one", 1)
	source := h.source(s)
	s.must(road.Set(relay.Settings{Rate: h.rate}))
	start := time.Now()
	run, job := s.shell(fmt.Sprintf(`set -eo pipefail
		./link
		echo "read $(find d* -type f -print0 | LC_ALL=C sort -z | xargs -0 cat | sha256sum)"
		find d* -type f | LC_ALL=C sort > names
		rm -r d0; mkdir out
		head -c %d /dev/urandom > out/large
		cp names tool out; ln -s tool out/link
		echo "made $(sha256sum < out/large)"`, h.artifact), source.as("cow"), keeps("out", "out/**"))
	cuts := s.cutting(agent, road, h.every)
	done := s.ended(run)
	made := cuts.end()
	took := time.Since(start)
	ended := classOf(t, done, "Succeeded", "Succeeded")
	if len(done.AllAttempts) != 1 {
		t.Errorf("it took %d attempts", len(done.AllAttempts))
	}
	if log := s.log(ended.ID); !strings.Contains(log, "read "+source.sum) {
		t.Errorf("the job has read other bytes than %s:\n%s", source.sum, log)
	}
	back := h.check(s, job, ended.ID, source)
	h.account(s, agent, road, made, source.bytes, back, took)
}

// account checks what was sent twice.
func (h haul) account(s *story, agent *fleet.Agent, road *fleet.Road, cuts int, there, back uint64, took time.Duration) {
	s.t.Helper()
	down, up := s.figure(s.fleet.Daemon, "forgeyard_transport_object_sent_bytes_total"), s.figure(agent, "forgeyard_agent_object_sent_bytes_total")
	links := s.figure(agent, "forgeyard_agent_connections_total")
	stats := road.Stats()
	s.t.Logf("%s: %d cuts, %d connections; of %d bytes down %d were sent again, of %d up %d; the road carried %d and %d",
		took.Round(time.Second), cuts, links, there, down-int64(there), back, up-int64(back), stats.Down.Bytes, stats.Up.Bytes)
	if least := int((there + back) / (2 * h.every)); cuts < least || int(links) < cuts {
		s.t.Errorf("%d cuts have broken %d connections; it takes at least %d to say something", cuts, links-1, least)
	}
	if again := down - int64(there) + up - int64(back); down < int64(there) || up < int64(back) || again > int64(cuts)*mostAgain {
		s.t.Errorf("%d bytes of objects were sent again for %d cuts", again, cuts)
	}
}

// A source is files that stand in the daemon's store.
type source struct {
	tree    api.Tree
	objects int    // that are different
	bytes   uint64 // of them
	sum     string // of the files' bytes in the order of their paths
	names   string // their paths
}

// source puts files into the daemon's store, in folders that begin with a d, and a link to a program besides.
func (h haul) source(s *story) source {
	s.t.Helper()
	files := map[string]string{}
	for i := range h.files {
		files[fmt.Sprintf("d%d/f%d", i%(h.files/50), i)] = fmt.Sprintf("%d\n%s", i, castest.Bytes(uint64(i), i*7919%8192))
	}
	sum, names := sha256.New(), &strings.Builder{}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		sum.Write([]byte(files[path]))
		fmt.Fprintln(names, path)
	}
	files["tool*"], files["link"] = "#!/bin/sh\necho from the tool\n", "-> tool"
	made := s.plant(files)
	made.sum, made.names = hex.EncodeToString(sum.Sum(nil)), names.String()
	return made
}

// plant puts files into the daemon's store, as a client does, many at a time.
func (s *story) plant(files map[string]string) source {
	s.t.Helper()
	here := castest.NewMemory()
	t, _ := castest.Tree(s.t, here, files)
	s.must(cas.Copy(s.ctx, s.client.Objects(""), here, here.Refs()))
	made := source{tree: api.Tree{Root: t.Root.String(), Files: t.Files, Bytes: api.Size(t.Bytes), Depth: t.Depth}}
	made.objects = len(here.Refs())
	for _, ref := range here.Refs() {
		made.bytes += ref.Bytes
	}
	return made
}

// as makes it the source of a job.
func (f source) as(mode string) func(*api.JobSpec) {
	return func(spec *api.JobSpec) {
		spec.Inputs = []api.Input{{Mount: forge.SourceDir, Mode: mode, Tree: f.tree}}
	}
}

// check compares what was kept with what the job has made, and returns how many bytes of it were new to the daemon.
func (h haul) check(s *story, job, attempt string, from source) (fresh uint64) {
	s.t.Helper()
	kept := s.kept(job)
	sum := sha256.New()
	in, err := s.client.ArtifactFile(s.ctx, kept.ID, "out/large")
	s.must(err)
	n, err := io.Copy(sum, in)
	s.must(err)
	s.must(in.Close())
	if log := s.log(attempt); n != int64(h.artifact) || !strings.Contains(log, "made "+hex.EncodeToString(sum.Sum(nil))) {
		s.t.Errorf("the large file came back with %d bytes and the sum %x:\n%s", n, sum.Sum(nil), log)
	}
	if names := s.artifact(kept.ID, "out/names"); string(names) != from.names {
		s.t.Errorf("the job has seen %d files", bytes.Count(names, []byte("\n")))
	}
	folder, err := s.client.Artifact(s.ctx, kept.ID, "out", api.Page{})
	s.must(err)
	for _, e := range folder.Entries {
		if e.Name == "tool" && !e.Executable || e.Name == "link" && e.Target != "tool" {
			s.t.Errorf("%+v came back", e)
		}
	}
	return uint64(n) + uint64(len(from.names))
}

// slim makes a job of which many fit on a machine.
func slim(spec *api.JobSpec) {
	spec.Resources = &api.Resources{CPU: number(api.Cores(50)), Memory: number(api.Size(64 << 20)), Disk: number(api.Size(256 << 20))}
}

// counted adds an agent behind a relay, with figures.
func (s *story) counted(name string, slots int, env ...string) (*fleet.Agent, *fleet.Road) {
	s.t.Helper()
	road, err := s.fleet.Road(1)
	s.must(err)
	a, err := s.fleet.AddAgent(s.ctx, name, slots, road.Addr())
	s.must(err)
	a.Env = append([]string{fleet.WithFigures}, env...)
	s.must(a.Start())
	s.must(a.AwaitOnline(s.ctx))
	return a, road
}

// figured is a program that counts.
type figured interface {
	Figures(ctx context.Context) (fleet.Figures, error)
}

// figure returns a figure of a program.
func (s *story) figure(of figured, name string) int64 {
	s.t.Helper()
	all, err := of.Figures(s.ctx)
	s.must(err)
	value, ok := all[name]
	if !ok {
		s.t.Fatalf("there is no figure %s", name)
	}
	return int64(value)
}

// cutter cuts a road while something is carried over it.
type cutter struct {
	stop func() // and wait
	made int
	err  error
}

// cutting cuts the road whenever it has carried so many bytes since it was mended, until the agent has given its connection up.
func (s *story) cutting(a *fleet.Agent, road *fleet.Road, every uint64) *cutter {
	ctx, cancel := context.WithCancel(s.ctx)
	c := &cutter{}
	var cutting sync.WaitGroup
	c.stop = func() { cancel(); cutting.Wait() }
	s.t.Cleanup(c.stop)
	cutting.Go(func() {
		defer road.Mend()
		for c.err == nil {
			carried := carriedBy(road)
			if fleet.Await(ctx, "the road to carry something", func() (bool, error) { return carriedBy(road)-carried >= every, nil }) != nil {
				return // it is over
			}
			c.err = c.cut(s.ctx, a, road)
		}
	})
	return c
}

// cut makes one cut.
func (c *cutter) cut(ctx context.Context, a *fleet.Agent, road *fleet.Road) error {
	ear, err := a.Listen()
	if err != nil {
		return err
	}
	road.Break()
	defer road.Mend()
	c.made++
	return ear.Await(ctx, `"not connected"`)
}

// end ends it and returns how many cuts were made.
func (c *cutter) end() int {
	c.stop()
	return c.made
}

func carriedBy(road *fleet.Road) uint64 {
	stats := road.Stats()
	return stats.Up.Bytes + stats.Down.Bytes
}

// A transfer fills the road, and two jobs of its agent are cancelled meanwhile: both hear of it while it goes on, and no lease
// is lost for it. Threat S22.
func TestACancelIsNotHeldUpByATransfer(t *testing.T) {
	s := newStory(t)
	agent, road := s.counted("one", 3)
	bulk, bulkJob := s.shell("until has go; do sleep 0.1; done; head -c 33554432 /dev/urandom > large", slim, once, keeps("large", "large"))
	quiet, quietJob := s.shell("echo here; sleep 600", slim, once)
	loud, loudJob := s.shell("echo here; until has loud; do sleep 0.1; done; while :; do echo a line of a log that goes on; done", slim, once)
	for _, job := range []string{quietJob, loudJob} {
		s.said(s.attempt(job, forge.AttemptRunning).ID, "here")
	}
	s.must(road.Set(relay.Settings{Rate: 256 << 10})) // the transfer is one of minutes
	s.must(writeFile(s.path("go")))
	s.beyond(agent, "forgeyard_agent_object_sent_bytes_total", 128<<10)
	s.must(writeFile(s.path("loud"))) // only now: logs go before objects, and may take the whole road
	for _, c := range []struct {
		run *api.Run
		job string
	}{{quiet, quietJob}, {loud, loudJob}} {
		_, err := s.client.CancelJob(s.ctx, c.job)
		s.must(err)
		if a := classOf(t, s.ended(c.run), "Cancelled", "Cancelled"); a.State == forge.AttemptLost.String() {
			t.Errorf("the attempt was lost instead of cancelled")
		}
		if now := s.attempt(bulkJob, forge.AttemptUploading, forge.AttemptCompleting, forge.AttemptSucceeded); now.Ended {
			t.Errorf("the transfer is over already: nothing was seen")
		}
	}
	s.must(road.Set(relay.Settings{}))
	classOf(t, s.ended(bulk), "Succeeded", "Succeeded")
	kept := s.kept(bulkJob)
	in, err := s.client.ArtifactFile(s.ctx, kept.ID, "large")
	s.must(err)
	if n, err := io.Copy(io.Discard, bufio.NewReader(in)); n != 32<<20 || err != nil {
		t.Errorf("%d bytes came: %v", n, err)
	}
	s.must(in.Close())
}
