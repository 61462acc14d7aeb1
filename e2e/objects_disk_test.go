//go:build linux

package e2e_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/relay"
)

// agentDisk is a disk on which an agent is well while it is empty: with less than 512 MiB it takes no jobs.
const agentDisk = 700 << 20

// again lets a job be tried again when its machine is at fault.
func again(spec *api.JobSpec) { spec.Retry = &api.Retry{Infra: number(uint8(3))} }

// failed waits until the first attempt of a job has ended, and returns it.
func (s *story) failed(job string) (first *api.Attempt) {
	s.t.Helper()
	s.must(fleet.Await(s.ctx, "the first attempt of job "+job+" to end", func() (bool, error) {
		now, err := s.client.Job(s.ctx, job)
		if err != nil || len(now.AllAttempts) == 0 {
			return false, err
		}
		first = &now.AllAttempts[0]
		return first.Ended, nil
	}))
	return first
}

// blames checks that an attempt has ended with a class, and tells its reader of the full disk of its agent.
func (s *story) blames(a *api.Attempt, class forge.Class, agent *fleet.Agent) {
	s.t.Helper()
	s.must(fleet.Await(s.ctx, "the log of the attempt", func() (bool, error) {
		now, err := s.client.Attempt(s.ctx, a.ID)
		return err == nil && now.Log != nil && now.Log.Sealed, err
	}))
	said := s.notices(a.ID)
	if a.Class != class.String() || !strings.Contains(said, "no space left on device") || !strings.Contains(said, agent.Folder) {
		s.t.Errorf("the attempt ended as %s and says %q", a.Class, said)
	}
}

// beyond waits until a figure of a program is beyond a value.
func (s *story) beyond(of figured, name string, value float64) {
	s.t.Helper()
	s.must(fleet.Await(s.ctx, name+" to grow", func() (bool, error) {
		all, err := of.Figures(s.ctx)
		return all[name] > value, err
	}))
}

// tidy waits until an agent has nothing on its disk of any attempt, nor half an object.
func (s *story) tidy(a *fleet.Agent) {
	s.t.Helper()
	var left []string
	s.must(fleet.Await(s.ctx, "the agent to have nothing left", func() (bool, error) {
		left = nil
		for _, folder := range []string{"work", "spool", "objects/cache/parts", "objects/cache/tmp"} {
			err := filepath.WalkDir(filepath.Join(a.Folder, folder), func(path string, d fs.DirEntry, err error) error {
				if err == nil && path != filepath.Join(a.Folder, folder) {
					left = append(left, path)
				}
				return nil
			})
			if err != nil {
				return false, err
			}
		}
		return len(left) == 0, nil
	}))
}

// The disk of an agent fills while an input comes: the attempt says so, and the job runs by itself once there is room. Cases
// B87, T07, claim 07§42.
func TestAnInputThatFillsTheAgentsDiskComesWhenThereIsRoom(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	s := newStoryOn(t, stage{scale: fleet.Fast, within: storyWithin, disks: disks{"one": agentDisk}})
	agent, road := s.counted("one", 1, "FORGEYARD_AGENT_CACHE_MIN_FREE=0B")
	large := castest.Bytes(1, 48<<20)
	source := s.plant(map[string]string{"large": string(large), "small": "x"})
	s.must(road.Set(relay.Settings{Rate: 8 << 20}))
	run := s.submit(fleet.Shell("cat large | sha256sum", source.as("cow"), slim, again))
	s.beyond(agent, bytesReceived, 8<<20)
	ear, err := agent.Listen()
	s.must(err)
	free := ballast(t, agent.Folder, 0)
	s.must(ear.Await(s.ctx, "an attempt could not be prepared")) // its end may wait for room in the journal
	free()
	first := s.failed(run.Jobs[0].ID)
	s.blames(first, forge.DiskInsufficient, agent)
	ended := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	if log := s.log(ended.ID); !strings.Contains(log, sum256(large)) {
		t.Errorf("the job has read %s", log)
	}
	s.tidy(agent)
}

// The disk of an agent fills while outputs are captured.
func TestOutputsThatFillTheAgentsDiskAreKeptWhenThereIsRoom(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	s := newStoryOn(t, stage{scale: fleet.Fast, within: storyWithin, disks: disks{"one": agentDisk}})
	agent, _ := s.counted("one", 1, "FORGEYARD_AGENT_CACHE_MIN_FREE=0B")
	run, job := s.shell(`head -c 50331648 /dev/urandom > large; sha256sum < large; note made x; until has go; do sleep 0.1; done`,
		slim, again, keeps("large", "large"))
	s.file(s.path("made"))
	free := ballast(t, agent.Folder, 8<<20)
	s.must(writeFile(s.path("go")))
	first := s.failed(job)
	free()
	s.blames(first, forge.UploadFailed, agent)
	ended := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	if log := s.log(ended.ID); !strings.Contains(log, sum256(s.artifact(s.kept(job).ID, "large"))) {
		t.Errorf("the file is not the one of %s", log)
	}
	s.tidy(agent)
}

// The disk of the daemon fills while an agent uploads: the upload waits for room for as long as the job allows.
func TestAnUploadThatFillsTheDaemonsDiskGoesOnWhenThereIsRoom(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	const store = "daemon/cas"
	s := newStoryOn(t, stage{
		scale: fleet.Patient, within: storyWithin, disks: disks{store: 160 << 20}, daemon: []string{"FORGEYARD_DAEMON_CAS_MIN_FREE=16MiB"},
	})
	agent, road := s.counted("one", 1)
	s.must(road.Set(relay.Settings{Rate: 8 << 20}))
	script := "head -c 50331648 /dev/urandom > large; sha256sum < large"

	run, job := s.shell(script, once, keeps("large", "large"))
	s.beyond(s.fleet.Daemon, "forgeyard_transport_object_received_bytes_total", 8<<20)
	ear, err := s.fleet.Daemon.Listen()
	s.must(err)
	free := ballast(t, s.path(store), 0)
	s.must(ear.Await(s.ctx, "no room in the object store"))
	if a := s.attempt(job, forge.AttemptUploading, forge.AttemptCompleting, forge.AttemptFailed); a.Ended {
		t.Errorf("the attempt did not wait: %s", a.Class)
	}
	free()
	done := s.ended(run)
	ended := classOf(t, done, "Succeeded", "Succeeded")
	if log := s.log(ended.ID); !strings.Contains(log, sum256(s.artifact(s.kept(job).ID, "large"))) {
		t.Errorf("the file is not the one of %s", log)
	}

	s.must(road.Set(relay.Settings{}))
	hurry := func(spec *api.JobSpec) { spec.Timeouts = &api.Timeouts{Upload: duration(5 * time.Second)} }
	free = ballast(t, s.path(store), 0)
	run, _ = s.shell("head -c 4194304 /dev/urandom > large", once, hurry, keeps("large", "large")) // what it waits for is room alone
	late := classOf(t, s.ended(run), "Failed", "UploadFailed")
	if said := s.notices(late.ID); !strings.Contains(said, "the daemon: no room in the object store") || !strings.Contains(said, "5s") {
		t.Errorf("the attempt says %s", said)
	}
	free()
	run, _ = s.shell(script, once, keeps("large", "large"))
	classOf(t, s.ended(run), "Succeeded", "Succeeded")
	s.tidy(agent)
}

// The disk of the daemon fills while clients upload: they are told that, and what they send again once there is room goes on
// from where it was.
func TestAClientIsToldThatTheDaemonsDiskIsFull(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	const store = "daemon/cas"
	s := newStoryOn(t, stage{
		scale: fleet.Patient, within: storyWithin, disks: disks{store: 160 << 20}, daemon: []string{"FORGEYARD_DAEMON_CAS_MIN_FREE=16MiB"},
	})
	s.agent("one", 1, "")
	disk := s.path(store)

	large := castest.Bytes(1, 48<<20)
	ref := digest.RefOf(large)
	var free func()
	slow := &interrupted{r: bytes.NewReader(large), at: 20 << 20, do: func() { free = ballast(t, disk, 0) }}
	err := s.client.Objects("").Put(s.ctx, ref, slow)
	var problem *api.Problem
	if !errors.As(err, &problem) || problem.Code != api.CodeNoRoom || !errors.Is(err, cas.ErrFull) {
		t.Errorf("the upload ended with %v", err)
	}

	folder := s.path("tree")
	s.must(os.Mkdir(folder, 0o700))
	s.must(os.WriteFile(filepath.Join(folder, "file"), castest.Bytes(2, 2<<20), 0o600))
	s.must(os.WriteFile(filepath.Join(folder, "small"), []byte("small"), 0o600))
	command := []string{"run", "--source", folder, "--network", "host", "-c", "sha256sum < file"}
	out, errs, code, err := s.fleet.Run(s.ctx, command...)
	s.must(err)
	if code != 3 || !strings.Contains(errs, "make room on the daemon's disk") {
		t.Errorf("the command ended with %d, %q and %q", code, out, errs)
	}
	list, err := s.client.Runs(s.ctx, api.RunFilter{}, api.Page{})
	if s.must(err); len(list.Items) != 0 {
		t.Errorf("there are runs of what was not there: %+v", list.Items)
	}

	free()
	s.must(s.client.Objects("").Put(s.ctx, ref, bytes.NewReader(large)))
	castest.Holds(t, s.client.Objects(""), ref, large)
	out, errs, code, err = s.fleet.Run(s.ctx, command...)
	if s.must(err); code != 0 || !strings.Contains(out, sum256(castest.Bytes(2, 2<<20))) {
		t.Errorf("the command ended with %d, %q and %q", code, out, errs)
	}
	stat, err := s.client.ObjectStat(s.ctx)
	if s.must(err); stat.Arriving != 0 || stat.Quarantined != 0 || stat.Full {
		t.Errorf("the store is left as %+v", stat)
	}
}

// interrupted does something when it has been read so far.
type interrupted struct {
	r    *bytes.Reader
	at   int64
	do   func()
	once sync.Once
}

func (i *interrupted) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	if i.do != nil && i.r.Size()-int64(i.r.Len()) >= i.at {
		i.once.Do(i.do)
	}
	return n, err
}

func (i *interrupted) Seek(offset int64, whence int) (int64, error) { return i.r.Seek(offset, whence) }
