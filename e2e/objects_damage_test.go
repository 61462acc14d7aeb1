//go:build linux

package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/fleet"
)

// Names of figures of an agent.
const (
	objectsMoved  = "forgeyard_agent_objects_total"
	bytesReceived = "forgeyard_agent_object_received_bytes_total"
)

// flip changes one byte of an object in a store of objects.
func flip(t *testing.T, store string, ref digest.Ref) {
	t.Helper()
	path := stored(store, ref)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o444); err != nil { // as root, or whoever damages a disk
		t.Fatal(err)
	}
}

// stored is where a store has an object.
func stored(store string, ref digest.Ref) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(ref.String(), "b3:"), ":")
	return filepath.Join(store, "b3", name[:2], name)
}

// reading is a run of a job that says the sum of some files' bytes.
func reading(files string, from source) *api.RunRequest {
	return fleet.Shell("cat "+files+" | sha256sum", from.as("cow"), once)
}

func sum256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// once is a job of one attempt.
func once(spec *api.JobSpec) { spec.Retry = &api.Retry{Infra: number(uint8(0))} }

// notices returns what the agent has told the reader of an attempt's log, besides the workload's own words.
func (s *story) notices(attempt string) string {
	s.t.Helper()
	var text strings.Builder
	for event, err := range s.client.Log(s.ctx, attempt, api.LogOptions{}) {
		s.must(err)
		if event.Name == api.EventNotice {
			fmt.Fprintf(&text, "%s\n", event.Data)
		}
	}
	return text.String()
}

// Case B85, threat S15. A byte of an input is turned over in the daemon's store: no job sees it, its attempt says which object
// it is, and whoever has the file mends it by sending it again.
func TestADamagedInputIsNamedAndMendedByWhoeverHasIt(t *testing.T) {
	s := newPatientStory(t)
	s.counted("one", 1)
	for what, size := range map[string]int{"small": 5000, "large": 3 << 20} {
		content := castest.Bytes(uint64(size), size)
		ref := digest.RefOf(content)
		files := map[string]string{"a": string(content), "b": what}
		source := s.plant(files)
		flip(t, filepath.Join(s.fleet.Daemon.Folder, "cas"), ref)

		run, _ := s.shell("cat a > /dev/null; echo it ran", source.as("cow"), once)
		ended := classOf(t, s.ended(run), "Failed", "CorruptInput")
		if said := s.notices(ended.ID); !strings.Contains(said, ref.String()) {
			t.Errorf("%s: the attempt does not name %v: %s", what, ref, said)
		}
		if log := s.log(ended.ID); strings.Contains(log, "it ran") {
			t.Errorf("%s: it ran", what)
		}

		_, err := s.client.Submit(s.ctx, reading("a", source), "")
		var problem *api.Problem
		if !errors.As(err, &problem) || problem.Code != api.CodeInvalid || !strings.Contains(err.Error(), ref.String()) {
			t.Errorf("%s: a run of what is missing now: %v", what, err)
		}
		if again := s.plant(files); again.tree != source.tree {
			t.Errorf("%s: it is another tree now", what)
		}
		mended := classOf(t, s.ended(s.submit(reading("a", source))), "Succeeded", "Succeeded")
		if log := s.log(mended.ID); !strings.Contains(log, sum256(content)) {
			t.Errorf("%s: after it was mended the job has read %s", what, log)
		}
	}
	left, err := os.ReadDir(filepath.Join(s.fleet.Daemon.Folder, "cas", "quarantine"))
	if s.must(err); len(left) != 2 {
		t.Errorf("%d files are in quarantine", len(left))
	}
}

// Case B85, threat S15, claims 07§42 and 07§90. What an agent has fetched once is not fetched again; what its own disk has
// damaged since is, and nothing else.
func TestAnAgentHealsItsOwnObjectsAndFetchesNothingTwice(t *testing.T) {
	s := newPatientStory(t)
	agent, _ := s.counted("one", 1)
	cache := filepath.Join(agent.Folder, "objects", "cache")
	content, small := castest.Bytes(1, 3<<20), castest.Bytes(2, 5000)
	files := map[string]string{"a": string(content), "b": string(small)}
	from := s.plant(files)
	read := func(want string, from source) {
		t.Helper()
		ended := classOf(t, s.ended(s.submit(reading("a b", from))), "Succeeded", "Succeeded")
		if log := s.log(ended.ID); !strings.Contains(log, want) {
			t.Errorf("the job has read %s", log)
		}
	}
	both := sum256(append(append([]byte(nil), content...), small...))
	read(both, from)
	if got := s.figure(agent, bytesReceived); got != int64(from.bytes) {
		t.Errorf("%d bytes came for %d", got, from.bytes)
	}
	read(both, from)
	if got := s.figure(agent, bytesReceived); got != int64(from.bytes) {
		t.Errorf("the same files again cost %d bytes", got-int64(from.bytes))
	}

	flip(t, cache, digest.RefOf(content))
	flip(t, cache, digest.RefOf(small))
	files["c"] = "so that it is another tree"
	other := s.plant(files)
	before := s.figure(agent, bytesReceived)
	read(both, other)
	fresh := int64(other.bytes - uint64(len(content)+len(small)))
	if got := s.figure(agent, bytesReceived) - before - fresh; got != int64(len(content)+len(small)) {
		t.Errorf("%d bytes came for the %d that were damaged", got, len(content)+len(small))
	}
	for _, b := range [][]byte{content, small} {
		if healed, err := os.ReadFile(stored(cache, digest.RefOf(b))); err != nil || digest.RefOf(healed) != digest.RefOf(b) {
			t.Errorf("the agent's own store is not whole again: %v", err)
		}
	}
}

// Case B88. Twenty jobs alike begin at once on one agent that has nothing yet: each object comes once.
func TestTwentyJobsAlikeFetchEachObjectOnce(t *testing.T) {
	const jobs = 20
	s := newPatientStory(t)
	agent, _ := s.counted("one", jobs)
	files := map[string]string{"large": string(castest.Bytes(1, 3<<20))}
	for i := range 100 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = string(castest.Bytes(uint64(i), 100+i*50))
	}
	source := s.plant(files)
	request := &api.RunRequest{}
	for i := range jobs {
		one := reading("large d*/*", source).Jobs[0]
		one.Key = fmt.Sprintf("job-%d", i)
		slim(&one.Spec)
		request.Jobs = append(request.Jobs, one)
	}
	run, err := s.fleet.Daemon.AwaitRun(s.ctx, s.client, s.submit(request).ID)
	s.must(err)
	for _, j := range run.Jobs {
		job, err := s.client.Job(s.ctx, j.ID)
		s.must(err)
		if classOf(t, job, "Succeeded", "Succeeded"); len(job.AllAttempts) != 1 {
			t.Errorf("%s took %d attempts", job.Key, len(job.AllAttempts))
		}
	}
	if got := s.figure(agent, bytesReceived); got != int64(source.bytes) {
		t.Errorf("%d bytes came for %d", got, source.bytes)
	}
	if got := s.figure(agent, objectsMoved); got != int64(source.objects) {
		t.Errorf("%d objects came for %d", got, source.objects)
	}
}
