//go:build linux

package e2e_test

import (
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/relay"
)

// Case B97: a job sees nothing of the host's or of its agent's surroundings, and nothing that a job before it has left.
func TestAJobFindsNothingOfTheHostOrOfTheJobBefore(t *testing.T) {
	s := newStory(t)
	agent, _ := s.counted("one", 1, "AWS_SECRET_ACCESS_KEY=canary", "SSH_AUTH_SOCK=/tmp/canary.sock", "TZ=Pacific/Kiritimati")
	run, _ := s.shell(`echo mine >/tmp/left; echo mine >/dev/shm/left; echo mine >"$HOME/left"; echo kept`)
	classOf(t, s.ended(run), "Succeeded", "Succeeded")
	run, _ = s.shell(`ls -A /tmp /dev/shm "$HOME"; date +%Z; echo "HOME is $HOME"
		env | grep -c -e AWS_ -e SSH_ -e canary
		for f in /run/docker.sock /var/run/docker.sock ` + agent.Folder + ` ` + s.fleet.Folder + `/daemon; do test -e $f && echo "sees $f"; done; true`)
	a := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	log := s.log(a.ID)
	for _, want := range []string{"\nUTC\n", "HOME is " + forge.WorkRoot + "/home\n", "\n0\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in\n%s", want, log)
		}
	}
	if strings.Contains(log, "left") || strings.Contains(log, "sees") {
		t.Errorf("it sees what is not its own:\n%s", log)
	}
}

// Cases B06, T51: an agent that is killed while it fetches inputs knows of them again from its next lease, and nothing half is
// taken for whole.
func TestAnAgentThatIsKilledWhileItFetchesRunsTheJobAfterAll(t *testing.T) {
	s := newStory(t)
	agent, road := s.counted("one", 1)
	source := haul{files: 400}.source(s)
	s.must(road.Set(relay.Settings{Rate: 256 << 10}))
	run, job := s.shell(`find d* -type f -print0 | LC_ALL=C sort -z | xargs -0 cat | sha256sum`, source.as("ro"),
		func(spec *api.JobSpec) { spec.Retry = &api.Retry{Infra: number(uint8(1))} })
	first := s.attempt(job, forge.AttemptPreparing)
	s.must(fleet.Await(s.ctx, "some of the inputs to come", func() (bool, error) { return road.Stats().Down.Bytes > 512<<10, nil }))
	agent.Kill()
	s.must(road.Set(relay.Settings{}))
	s.must(agent.Start())
	ended := s.ended(run)
	last := classOf(t, ended, "Succeeded", "Succeeded")
	if last.ID == first.ID || ended.AllAttempts[0].State != "Lost" {
		t.Errorf("the first attempt is %s, and the last is %s", ended.AllAttempts[0].State, last.ID)
	}
	if log := s.log(last.ID); !strings.HasPrefix(log, source.sum) {
		t.Errorf("it has read other bytes than %s: %s", source.sum, log)
	}
}
