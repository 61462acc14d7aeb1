package jobspec_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/postcard"
)

var update = flag.Bool("update", false, "write testdata anew; only while nothing has been released")

// goldenFile has a line for each specification: name, id, bytes.
const goldenFile = "testdata/specs.golden"

type golden struct {
	name string
	spec forge.JobSpec
}

func goldens() []golden {
	least := forge.DefaultJobSpec()
	least.Job = "build"
	least.Steps = []forge.Step{{Argv: []string{"make"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	deploy := least
	deploy.Job, deploy.Retry = "deploy", forge.RetryPolicy{}
	deploy.Network, deploy.Connectivity = forge.NetworkHost, forge.ConnectivityPolicy{Mode: forge.Continuous}
	deploy.Constraints = forge.Constraints{Pool: "release", Trust: forge.TrustProtected}
	deploy.Sandbox = forge.SandboxNeed{Kind: forge.SandboxOCI, Image: "debian@sha256:" + strings.Repeat("0f", 32)}
	largest := least
	largest.Job = "largest-numbers"
	largest.Resources = forge.Resources{CPU: forge.MaxCPU, Memory: forge.MaxMemory, Disk: forge.MaxDisk, Slots: forge.MaxSlots}
	largest.Processes, largest.LogLimit = forge.MaxProcesses, forge.MaxLogLimit
	largest.Timeouts = forge.Timeouts{
		Prepare: forge.MaxPhaseTimeout, Run: forge.MaxRunTimeout, Upload: forge.MaxPhaseTimeout, Grace: forge.MaxGrace,
	}
	return []golden{{"least", least}, {"full", fullSpec()}, {"deploy", deploy}, {"largest", largest}}
}

// fullSpec uses every field.
func fullSpec() forge.JobSpec {
	tree := forge.TreeRef{Root: digest.RefOf([]byte("tree")), Files: 3, Bytes: 77, Depth: 2}
	return forge.JobSpec{
		Project: "acme/site", Job: "test", Leg: forge.Leg{{Axis: "go", Value: "1.26"}, {Axis: "os", Value: "linux"}},
		Steps: []forge.Step{
			{
				ID: "unit", Name: "Unit tests", Script: "go test ./...\n", Shell: []string{"bash", "-euo", "pipefail", "-c"}, Dir: "source",
				Env: []forge.EnvVar{{Name: "GOFLAGS", Value: "-count=1"}}, Timeout: time.Minute, When: forge.WhenSuccess,
				AllowFailure: forge.AllowFailure{ExitCodes: []uint8{1, 42}},
			},
			{Argv: []string{"make", "report"}, Dir: "source/sub", When: forge.WhenAlways, AllowFailure: forge.AllowFailure{Any: true}},
		},
		Env: []forge.EnvVar{{Name: "CGO_ENABLED", Value: "0"}, {Name: "GREETING", Value: "grüß dich\n"}},
		Secrets: []forge.SecretUse{
			{Env: "TOKEN", Ref: forge.SecretRef{Name: "codecov/token"}},
			{File: "key.pem", Ref: forge.SecretRef{Name: "deploy", Version: 300}},
		},
		Inputs: []forge.Input{
			{Mount: "source", Tree: tree, Mode: forge.InputCopyOnWrite},
			{Mount: "needs/build/dist", Tree: tree, Mode: forge.InputReadOnly},
		},
		Outputs: []forge.Output{{
			Name: "report", Base: "source", Patterns: []string{"out/**", "!out/tmp/"}, Required: true,
			When: forge.WhenFailure, MaxBytes: forge.GiB, MaxFiles: 1000,
		}},
		Caches:    []forge.Cache{{Key: "go-1", Paths: []string{"home/.cache"}, Fallback: []string{"go-"}, ReadOnly: true}},
		Resources: forge.Resources{CPU: 2500, Memory: 4 * forge.GiB, Disk: 20 * forge.GiB, Slots: 2},
		Processes: 4096, Network: forge.NetworkNone,
		Sandbox: forge.SandboxNeed{Kind: forge.SandboxNative, Levels: []string{"userns", "seccomp"}},
		Constraints: forge.Constraints{
			OS: "linux", Arch: "amd64", Labels: []string{"site=berlin"}, Pool: "builders", Trust: forge.TrustTrusted,
			Devices: []forge.DeviceCount{{Kind: "gpu", Count: 1}}, Toolchains: []forge.ToolchainNeed{{ID: "go", Version: "1.26"}, {ID: "gcc"}},
		},
		Timeouts:     forge.Timeouts{Prepare: time.Minute, Run: time.Hour, Upload: 5 * time.Minute, Grace: 1500 * time.Millisecond},
		Connectivity: forge.ConnectivityPolicy{Mode: forge.OfflineAuthorized, Extra: time.Hour},
		LogLimit:     100 * forge.MiB,
		Retry:        forge.RetryPolicy{Max: 2, On: []forge.RetryWord{forge.RetryExit, forge.RetryOOM}, ExitCodes: []uint8{137}, Infra: 1},
	}
}

func TestSpecsKeepTheirBytesAndIDs(t *testing.T) {
	var text bytes.Buffer
	for _, g := range goldens() {
		b := encode(t, g.spec)
		fmt.Fprintf(&text, "%s %v %s\n", g.name, jobspec.ID(b), hex.EncodeToString(b))
	}
	compare(t, goldenFile, text.String())
}

func TestEverySpecOfTheGoldenFileIsStillRead(t *testing.T) {
	data, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	want := goldens()
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		fields := strings.Fields(line)
		b, err := hex.DecodeString(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		id, err := digest.Parse(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		spec, err := jobspec.Open(forge.JobSpecID(id), b)
		if diff := cmp.Diff(want[i].spec, spec); diff != "" || err != nil {
			t.Errorf("%s: %v %s", fields[0], err, diff)
		}
	}
}

// A changed struct under the same version makes every stored specification unreadable, or worse, readable as something
// else. What is released is never edited: write SpecV2.
func TestTheShapeOfAReleasedVersionIsFrozen(t *testing.T) {
	schema, err := postcard.Schema(reflect.TypeFor[jobspec.SpecV1]())
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "testdata/schema.golden", fmt.Sprintf("version %d\n%v\n%s\n", jobspec.Version, digest.WireSchema.Sum([]byte(schema)), schema))
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", file, diff)
	}
}
