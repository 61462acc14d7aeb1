package jobspec_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/postcard"
)

func encode(t interface {
	Helper()
	Fatal(...any)
}, spec forge.JobSpec,
) []byte {
	t.Helper()
	b, err := jobspec.Encode(spec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestASpecIsDecodedAsItWasEncoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := anySpec(t)
		b := encode(t, spec)
		back, err := jobspec.Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(spec, back); diff != "" {
			t.Fatal(diff)
		}
		if again := encode(t, back); !bytes.Equal(again, b) {
			t.Fatal("the same specification has two spellings")
		}
	})
}

func TestWhateverBytesAreAcceptedAreTheOnlySpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := encode(t, anySpec(t))
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "where")] = rapid.Byte().Draw(t, "byte")
		}
		checkOneSpelling(t, b)
	})
}

// checkOneSpelling checks that bytes which are accepted are those that Encode writes.
func checkOneSpelling(t interface {
	Helper()
	Fatal(...any)
}, b []byte,
) {
	t.Helper()
	spec, err := jobspec.Decode(b)
	if err != nil {
		return
	}
	if again := encode(t, spec); !bytes.Equal(again, b) {
		t.Fatal("accepted bytes are not those that are written")
	}
}

func TestNoPrefixOfASpecAndNothingBehindItIsAccepted(t *testing.T) {
	b := encode(t, fullSpec())
	for n := range b {
		if _, err := jobspec.Decode(b[:n]); !errors.Is(err, postcard.ErrTruncated) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	if _, err := jobspec.Decode(append(bytes.Clone(b), 0)); !errors.Is(err, postcard.ErrTrailing) {
		t.Errorf("one byte more: %v", err)
	}
}

func TestEveryByteOfASpecIsInItsID(t *testing.T) {
	b := encode(t, fullSpec())
	id := jobspec.ID(b)
	for i := range b {
		b[i] ^= 1
		if jobspec.ID(b) == id {
			t.Fatalf("byte %d is not in the id", i)
		}
		if _, err := jobspec.Open(id, b); !errors.Is(err, jobspec.ErrMismatch) {
			t.Fatalf("byte %d is changed: %v", i, err)
		}
		b[i] ^= 1
	}
	if spec, err := jobspec.Open(id, b); err != nil || spec.Job != fullSpec().Job {
		t.Errorf("the exact bytes: %v", err)
	}
	if id == forge.JobSpecID(digest.Of(b)) {
		t.Error("the id is that of a plain file with the same bytes")
	}
}

func TestAnotherCommandIsAnotherID(t *testing.T) {
	spec := fullSpec()
	seen := map[forge.JobSpecID]bool{jobspec.ID(encode(t, spec)): true}
	for _, change := range []func(*forge.JobSpec){
		func(s *forge.JobSpec) { s.Steps[0].Script += " " },
		func(s *forge.JobSpec) { s.Steps[1].Argv[0] = "/bin/sh" },
		func(s *forge.JobSpec) { s.Steps[0].Shell[0] = "sh" },
		func(s *forge.JobSpec) { s.Network = forge.NetworkHost },
		func(s *forge.JobSpec) { s.Constraints.Trust = forge.TrustProtected },
		func(s *forge.JobSpec) { s.Secrets[0].Ref.Version = 9 },
	} {
		changed := fullSpec()
		change(&changed)
		id := jobspec.ID(encode(t, changed))
		if seen[id] {
			t.Error("a changed command has an old id")
		}
		seen[id] = true
	}
}

func TestTheSizeOfASpecIsBoundedBeforeItIsLookedAt(t *testing.T) {
	big := make([]byte, forge.MaxSpecBytes+1)
	if _, err := jobspec.Decode(big); !errors.Is(err, jobspec.ErrTooLarge) {
		t.Errorf("Decode: %v", err)
	}
	if _, err := jobspec.Open(jobspec.ID(big), big); !errors.Is(err, jobspec.ErrTooLarge) {
		t.Errorf("Open: %v", err)
	}
	if _, err := jobspec.Decode(big[:forge.MaxSpecBytes]); errors.Is(err, jobspec.ErrTooLarge) {
		t.Errorf("at the bound: %v", err)
	}
}

// sized returns a specification of exactly so many bytes.
func sized(t *testing.T, size int) forge.JobSpec {
	spec := fullSpec()
	spec.Steps = spec.Steps[:1]
	for len(spec.Steps) < 4 {
		step := spec.Steps[0]
		step.ID, step.Script = "", strings.Repeat("x", forge.MaxScript)
		spec.Steps = append(spec.Steps, step)
	}
	last := &spec.Steps[0].Script
	*last = strings.Repeat("x", 100_000)
	b, err := jobspec.Encode(spec)
	if err != nil {
		t.Fatal(err)
	}
	*last = strings.Repeat("x", 100_000+size-len(b))
	return spec
}

func TestASpecHoldsAtItsBoundOfBytesAndNotOnePastIt(t *testing.T) {
	b := encode(t, sized(t, forge.MaxSpecBytes))
	if len(b) != forge.MaxSpecBytes {
		t.Fatalf("%d bytes", len(b))
	}
	if _, err := jobspec.Decode(b); err != nil {
		t.Error(err)
	}
	if _, err := jobspec.Encode(sized(t, forge.MaxSpecBytes+1)); !errors.Is(err, jobspec.ErrTooLarge) {
		t.Error(err)
	}
}

func TestWhatIsNotValidIsNeitherWrittenNorRead(t *testing.T) {
	bad := fullSpec()
	bad.Timeouts.Run = 0
	if _, err := jobspec.Encode(bad); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("Encode: %v", err)
	}
	for name, spoil := range map[string]func(*jobspec.SpecV1){
		"no time to run":               func(s *jobspec.SpecV1) { s.Timeouts.Run = 0 },
		"a time beyond all clocks":     func(s *jobspec.SpecV1) { s.Timeouts.Run = math.MaxUint64 },
		"a time that wraps around":     func(s *jobspec.SpecV1) { s.Timeouts.Run = math.MaxInt64/uint64(time.Millisecond) + 1 },
		"a step limit of zero":         func(s *jobspec.SpecV1) { zero := uint64(0); s.Steps[0].Timeout = &zero },
		"no steps":                     func(s *jobspec.SpecV1) { s.Steps = nil },
		"no program":                   func(s *jobspec.SpecV1) { s.Steps[1].Program.Argv.Args = nil },
		"a folder outside":             func(s *jobspec.SpecV1) { s.Steps[0].Dir = "../.." },
		"a folder of the host":         func(s *jobspec.SpecV1) { s.Outputs[0].Base = "/etc" },
		"an output of the host":        func(s *jobspec.SpecV1) { s.Outputs[0].Patterns[0] = "/etc/shadow" },
		"a network nobody knows":       func(s *jobspec.SpecV1) { s.Network = 200 },
		"a trust class nobody knows":   func(s *jobspec.SpecV1) { s.Constraints.Trust = 9 },
		"an agent's variable":          func(s *jobspec.SpecV1) { s.Env[0].Name = "FORGEYARD_ATTEMPT" },
		"a secret without a name":      func(s *jobspec.SpecV1) { s.Secrets[0].Name = "" },
		"a secret without a place":     func(s *jobspec.SpecV1) { *s.Secrets[0].Target.Env = "" },
		"an input that is not there":   func(s *jobspec.SpecV1) { s.Inputs[0].Tree.Digest = [32]byte{} },
		"more memory than exists":      func(s *jobspec.SpecV1) { s.Resources.Memory = math.MaxUint64 },
		"infrastructure listed to try": func(s *jobspec.SpecV1) { s.Retry.On = []uint8{uint8(forge.RetryInfra)} },
	} {
		var wire jobspec.SpecV1
		if err := postcard.Unmarshal(encode(t, fullSpec()), &wire); err != nil {
			t.Fatal(err)
		}
		spoil(&wire)
		b, err := postcard.Marshal(&wire)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := jobspec.Decode(b); !errors.Is(err, forge.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnotherVersionIsNamedAsSuch(t *testing.T) {
	b := encode(t, fullSpec())
	for _, version := range []byte{0, 2, 127, 128, 255} {
		b[0] = version
		if _, err := jobspec.Decode(b); !errors.Is(err, jobspec.ErrVersion) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestADecodedSpecKeepsNoPartOfItsBytes(t *testing.T) {
	b := encode(t, fullSpec())
	spec, err := jobspec.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	if diff := cmp.Diff(fullSpec(), spec); diff != "" {
		t.Error(diff)
	}
}

func FuzzDecode(f *testing.F) {
	for _, g := range goldens() {
		b, err := jobspec.Encode(g.spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) { checkOneSpelling(t, b) })
}
