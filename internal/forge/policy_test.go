package forge_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestLocalPolicyObjectsToEachThingItForbids(t *testing.T) {
	open := forge.LocalPolicy{AllowHostNetwork: true, AllowUnconfined: true}
	for _, test := range []struct {
		path   string
		policy func(*forge.LocalPolicy)
		spec   func(*forge.JobSpec)
	}{
		{"network", func(p *forge.LocalPolicy) { p.AllowHostNetwork = false }, func(s *forge.JobSpec) { s.Network = forge.NetworkHost }},
		{"sandbox", func(p *forge.LocalPolicy) { p.AllowUnconfined = false }, func(s *forge.JobSpec) { s.Sandbox.Kind = forge.SandboxProcess }},
		{"resources.cpu", func(p *forge.LocalPolicy) { p.MostPerJob.CPU = 2000 }, func(s *forge.JobSpec) { s.Resources.CPU = 2001 }},
		{"resources.memory", func(p *forge.LocalPolicy) { p.MostPerJob.Memory = forge.GiB }, func(s *forge.JobSpec) { s.Resources.Memory = forge.GiB + 1 }},
		{"resources.disk", func(p *forge.LocalPolicy) { p.MostPerJob.Disk = forge.GiB }, func(s *forge.JobSpec) { s.Resources.Disk = forge.GiB + 1 }},
		{"resources.slots", func(p *forge.LocalPolicy) { p.MostPerJob.Slots = 1 }, func(s *forge.JobSpec) { s.Resources.Slots = 2 }},
		{"processes", func(p *forge.LocalPolicy) { p.MostProcesses = 9 }, func(s *forge.JobSpec) { s.Processes = 10 }},
		{"timeouts.run", func(p *forge.LocalPolicy) { p.LongestRun = time.Minute }, func(s *forge.JobSpec) { s.Timeouts.Run = time.Minute + 1 }},
		{"connectivity.extra", func(p *forge.LocalPolicy) { p.LongestOffline = time.Minute }, func(s *forge.JobSpec) { s.Connectivity.Extra = time.Minute + 1 }},
	} {
		policy, spec := open, fullSpec()
		test.spec(&spec)
		if reason, err := policy.Check(&spec); reason != 0 || err != nil {
			t.Errorf("%s: an open policy objects: %v, %v", test.path, reason, err)
		}
		test.policy(&policy)
		reason, err := policy.Check(&spec)
		if diff := cmp.Diff([]string{test.path}, paths(t, err)); diff != "" || reason != forge.RejectLocalPolicy {
			t.Errorf("%v: %s", reason, diff)
		}
	}
}

func TestALimitOfLocalPolicyIsKeptAtItself(t *testing.T) {
	spec := fullSpec()
	exact := forge.LocalPolicy{
		MostPerJob: spec.Resources, MostProcesses: spec.Processes, LongestRun: spec.Timeouts.Run, LongestOffline: spec.Connectivity.Extra,
	}
	if reason, err := exact.Check(&spec); err != nil {
		t.Errorf("%v, %v", reason, err)
	}
}

func anyPolicy(t *rapid.T, label string) forge.LocalPolicy {
	few := rapid.Uint64Range(0, 3)
	return forge.LocalPolicy{
		AllowHostNetwork: rapid.Bool().Draw(t, label), AllowUnconfined: rapid.Bool().Draw(t, label),
		MostPerJob: forge.Resources{
			CPU: forge.MilliCPU(few.Draw(t, label)), Memory: forge.Bytes(few.Draw(t, label)),
			Disk: forge.Bytes(few.Draw(t, label)), Slots: uint32(few.Draw(t, label)),
		},
		MostProcesses: uint32(few.Draw(t, label)), LongestRun: time.Duration(few.Draw(t, label)),
		LongestOffline: time.Duration(few.Draw(t, label)),
	}
}

func anySmallSpec(t *rapid.T) forge.JobSpec {
	s, few := fullSpec(), rapid.Uint64Range(1, 3)
	s.Network = forge.Network(rapid.Uint8Range(1, 2).Draw(t, "network"))
	s.Sandbox.Kind = forge.SandboxKind(rapid.Uint8Range(1, 3).Draw(t, "sandbox"))
	s.Resources = forge.Resources{
		CPU: forge.MilliCPU(few.Draw(t, "cpu")), Memory: forge.Bytes(few.Draw(t, "memory")),
		Disk: forge.Bytes(few.Draw(t, "disk")), Slots: uint32(few.Draw(t, "slots")),
	}
	s.Processes = uint32(few.Draw(t, "processes"))
	s.Timeouts.Run, s.Connectivity.Extra = time.Duration(few.Draw(t, "run")), time.Duration(few.Draw(t, "extra"))
	return s
}

func TestTighteningForbidsWhatEitherPolicyForbidsAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, spec := anyPolicy(t, "a"), anyPolicy(t, "b"), anySmallSpec(t)
		_, errA := a.Check(&spec)
		_, errB := b.Check(&spec)
		_, err := a.Tighten(b).Check(&spec)
		if (err != nil) != (errA != nil || errB != nil) {
			t.Fatalf("a: %v\nb: %v\nboth: %v", errA, errB, err)
		}
		if a.Tighten(b) != b.Tighten(a) {
			t.Fatal("the order matters")
		}
	})
}

func TestAnAgentTakesNothingThatItCannotRunNow(t *testing.T) {
	ready := func() (forge.Admission, forge.JobSpec) {
		return forge.Admission{Capabilities: capable(), Free: capable().Resources}, fullSpec()
	}
	for _, test := range []struct {
		name   string
		want   forge.RejectReason
		change func(*forge.Admission, *forge.JobSpec)
		says   string
	}{
		{"all is there", 0, func(*forge.Admission, *forge.JobSpec) {}, ""},
		{"all of what is free", 0, func(a *forge.Admission, s *forge.JobSpec) { a.Free = s.Resources }, ""},
		{"the spec is not valid", forge.RejectUnsupportedSpec, func(_ *forge.Admission, s *forge.JobSpec) { s.Steps = nil }, "steps"},
		{"local policy forbids it", forge.RejectLocalPolicy, func(a *forge.Admission, _ *forge.JobSpec) { a.Policy.LongestRun = 1 }, "local policy"},
		{"the gpu is gone", forge.RejectCapabilityChanged, func(a *forge.Admission, _ *forge.JobSpec) { a.Capabilities.Devices = nil }, "device gpu 1 > 0"},
		{"a wall is gone", forge.RejectCapabilityChanged, func(a *forge.Admission, _ *forge.JobSpec) { a.Capabilities.Sandboxes[1].Levels = nil }, "native/seccomp"},
		{"memory was taken out", forge.RejectCapabilityChanged, func(a *forge.Admission, s *forge.JobSpec) { a.Capabilities.Resources.Memory = s.Resources.Memory - 1 }, "memory"},
		{"no memory is free", forge.RejectResourcePressure, func(a *forge.Admission, s *forge.JobSpec) { a.Free.Memory = s.Resources.Memory - 1 }, "busy: memory"},
		{"no slot is free", forge.RejectResourcePressure, func(a *forge.Admission, _ *forge.JobSpec) { a.Free.Slots = 0 }, "busy: slots 1 > 0 free"},
		{"the disk is full", forge.RejectDiskInsufficient, func(a *forge.Admission, _ *forge.JobSpec) { a.Free.Disk = 0 }, "busy: disk"},
	} {
		t.Run(test.name, func(t *testing.T) {
			admission, spec := ready()
			test.change(&admission, &spec)
			reason, err := admission.Check(&spec)
			if reason != test.want || (err != nil) != (test.want != 0) {
				t.Errorf("%v, %v", reason, err)
			}
			if err != nil && (!errors.Is(err, forge.ErrInvalid) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%v does not say %q", err, test.says)
			}
		})
	}
}

func TestAnAgentWithoutCachesTakesNoSpecThatNeedsOne(t *testing.T) {
	spec := fullSpec()
	a := forge.Admission{NoCaches: true}
	reason, err := a.Check(&spec)
	if diff := cmp.Diff([]string{"caches"}, paths(t, err)); diff != "" || reason != forge.RejectUnsupportedSpec {
		t.Errorf("%v: %s", reason, diff)
	}
}

func TestAnAgentLeavesLabelsToTheScheduler(t *testing.T) {
	spec := fullSpec()
	spec.Constraints.Labels = []string{"given-by-an-administrator"}
	a := forge.Admission{Capabilities: capable(), Free: capable().Resources}
	if reason, err := a.Check(&spec); err != nil {
		t.Errorf("refused for %v: %v", reason, err)
	}
}
