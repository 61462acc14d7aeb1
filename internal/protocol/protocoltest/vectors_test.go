package protocoltest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/inspect"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
)

var update = flag.Bool("update", false, "write the vectors and fingerprints of the current version anew")

const howToChange = `
The bytes of a message are what other versions read. Until the first release, run
	go test ./internal/protocol/protocoltest -update
and commit the vectors together with the change. After it, put a V2 with a new schema number beside the released
struct; see protocols/internal/compatibility.md.`

// current is the folder that -update writes and that these tests compare with.
var current = filepath.Join(protocoltest.Root, protocoltest.VectorDir())

func TestVectorsAreTheBytesOfThisBuild(t *testing.T) {
	for _, info := range protocol.Registry() {
		f, err := protocoltest.NewVectors(info)
		if err != nil {
			t.Errorf("%s: %v", info.Name, err)
			continue
		}
		compareFile(t, protocoltest.VectorFileName(info), f)
	}
	heads, err := protocoltest.NewHeadVectors()
	if err != nil {
		t.Fatal(err)
	}
	compareFile(t, protocoltest.HeadFileName, heads)
}

// compareFile compares bytes and meaning; how a recipe was compressed does not matter.
func compareFile(t *testing.T, name string, want inspect.VectorFile) {
	t.Helper()
	path := filepath.Join(current, name)
	if *update {
		writeFile(t, path, want)
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v%s", err, howToChange)
		return
	}
	got, err := inspect.ParseVectors(data)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	normalize(t, &got)
	normalize(t, &want)
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("%s, -committed +this build:\n%s%s", name, diff, howToChange)
	}
}

func normalize(t *testing.T, f *inspect.VectorFile) {
	t.Helper()
	for i := range f.Vectors {
		v := &f.Vectors[i]
		if _, err := v.Raw(); err != nil {
			t.Error(err)
		}
		v.Deflate = ""
		if v.Meaning != nil {
			var tight bytes.Buffer
			if err := json.Compact(&tight, v.Meaning); err != nil {
				t.Fatalf("%s: %v", v.ID, err)
			}
			v.Meaning = tight.Bytes()
		}
	}
}

func writeFile(t *testing.T, path string, f inspect.VectorFile) {
	t.Helper()
	data, err := protocoltest.EncodeVectors(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAChangedWireStructNeedsANewSchema(t *testing.T) {
	got, err := protocoltest.Fingerprints()
	if err != nil {
		t.Fatal(err)
	}
	compareText(t, protocoltest.FingerprintFileName, got)
}

func TestANumberKeepsItsMeaning(t *testing.T) {
	got := protocoltest.Enumerations()
	if strings.Count(got, "\n") < 100 {
		t.Errorf("only %d numbers were found", strings.Count(got, "\n"))
	}
	compareText(t, protocoltest.EnumerationFileName, got)
}

func compareText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(current, name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v%s", err, howToChange)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s, -committed +this build:\n%s%s", name, diff, howToChange)
	}
}

func TestATagHasTheSameFingerprintInEveryVersion(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(protocoltest.Root, "protocols", "vectors", "*", protocoltest.FingerprintFileName))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fingerprints: %v", err)
	}
	known := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			cells := strings.Split(line, "\t")
			if strings.HasPrefix(line, "#") || len(cells) != 5 {
				continue
			}
			tag := cells[0] + ", schema " + cells[1]
			if before, ok := known[tag]; ok && before != cells[3] {
				t.Errorf("%s: %s has another shape than in another version%s", path, tag, howToChange)
			}
			known[tag] = cells[3]
		}
	}
}

// TestEveryReleasedVectorDecodes is about all versions there are: a build reads what any of them wrote.
func TestEveryReleasedVectorDecodes(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(protocoltest.Root, "protocols", "vectors", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	for _, dir := range dirs {
		files, err := protocoltest.VectorFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range files {
			for _, v := range f.Vectors {
				if f.Type != "" {
					checkVector(t, f, v)
				} else if _, err := f.Tree(v); err != nil {
					t.Errorf("%s: %s: %v", name, v.ID, err)
				}
			}
		}
	}
}

// checkVector decodes a frame with the codec alone, and encodes it again.
func checkVector(t *testing.T, f inspect.VectorFile, v inspect.Vector) {
	t.Helper()
	raw, err := v.Raw()
	if err != nil {
		t.Error(err)
		return
	}
	frames := protocol.NewFrameReader(bytes.NewReader(raw))
	header, err := frames.Next()
	if err != nil {
		t.Errorf("%s: %v", v.ID, err)
		return
	}
	body, err := frames.Body()
	if err != nil {
		t.Errorf("%s: %v", v.ID, err)
		return
	}
	env, message, err := wire.Decode(header, body)
	if err != nil {
		t.Errorf("%s: %v", v.ID, err)
		return
	}
	if again, err := protocol.AppendFrame(nil, env, message); err != nil || !bytes.Equal(again, raw) {
		t.Errorf("%s: encoded again it has other bytes (%v)", v.ID, err)
	}
	if f.Schema != header.Tag.Schema {
		t.Errorf("%s: the file says schema %d, the frame %d", v.ID, f.Schema, header.Tag.Schema)
	}
}
