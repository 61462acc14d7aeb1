package logs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// newLong is a fixture with a log of three segments, the last of which grows. Half of it cannot be compressed.
func newLong(t *testing.T) *fixture {
	f := newFixture(t)
	f.store.SetSync(func(*os.File) error { return nil })
	random := rand.NewChaCha8([32]byte{})
	for i := range 45 {
		noise := make([]byte, 30_000)
		_, _ = random.Read(noise)
		var texts []string
		for j := range 12 {
			texts = append(texts, strings.Repeat(fmt.Sprintf("line %d of %d\r\n", j, i), 1500)[:15_000+j], string(noise[:20_000+j]))
		}
		f.append(texts...)
	}
	return f
}

func (f *fixture) seal() {
	f.t.Helper()
	if answer, err := f.store.Seal(ctx, seal(f.table, f.AttemptContext)); err != nil || !answer.Done {
		f.t.Fatalf("%+v, %v", answer, err)
	}
}

// segments lists the files of the log.
func (f *fixture) segments() (names []string) {
	f.t.Helper()
	files, err := os.ReadDir(f.dir + "/" + f.Attempt.String())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, one := range files {
		names = append(names, strings.TrimLeft(one.Name(), "0"))
	}
	return names
}

// second is the first frame of the second segment.
func (f *fixture) second() forge.LogSeq {
	for seq := forge.LogSeq(2); ; seq++ {
		for _, path := range []string{f.store.SegmentPath(f.Attempt, seq), f.store.PackedPath(f.Attempt, seq)} {
			if _, err := os.Stat(path); err == nil {
				return seq
			}
		}
	}
}

// readFrom reads from some frames on, in all segments and at their edges.
func (f *fixture) readFrom() {
	f.t.Helper()
	edge := f.second()
	for _, from := range []forge.LogSeq{1, 2, 17, edge - 1, edge, edge + 1, forge.LogSeq(len(f.wrote) - 1), forge.LogSeq(len(f.wrote))} {
		var got []forge.LogFrame
		if err := f.store.Read(ctx, f.Attempt, from, collect(&got)); err != nil {
			f.t.Fatalf("from %d: %v", from, err)
		}
		if !slices.EqualFunc(got, f.wrote[from-1:], equal) {
			f.t.Fatalf("from %d: %d frames, not the %d", from, len(got), len(f.wrote)-int(from)+1)
		}
	}
}

func TestSegmentsThatWillNotGrowArePackedAndReadTheSame(t *testing.T) {
	f := newLong(t)
	plain, err := os.ReadFile(f.store.SegmentPath(f.Attempt, 1))
	if err != nil {
		t.Fatal(err)
	}
	f.store.Pack(ctx)
	if got := f.segments(); len(got) != 3 || got[0] != "1.zst" || !strings.HasSuffix(got[1], ".zst") || strings.Contains(got[2], ".") {
		t.Fatalf("files: %q", got)
	}
	packed, err := os.ReadFile(f.store.PackedPath(f.Attempt, 1))
	if err != nil || len(packed) > len(plain)*2/3 {
		t.Fatalf("%d bytes of %d, %v", len(packed), len(plain), err)
	}
	decoder, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	var out bytes.Buffer
	if _, err := out.ReadFrom(decoder); err != nil || !bytes.Equal(out.Bytes(), plain) {
		t.Errorf("any decoder makes %d bytes of it, not the %d of the plain segment, %v", out.Len(), len(plain), err)
	}
	f.check()
	f.readFrom()
	f.append("and on")
	f.restart()
	f.check()
	f.append("and on, after a start")
	f.seal()
	f.store.Pack(ctx)
	if got := f.segments(); len(got) != 3 || !strings.HasSuffix(got[2], ".zst") {
		t.Fatalf("files of a sealed log: %q", got)
	}
	f.check()
	f.restart()
	f.check()
	f.readFrom()
}

// Wherever packing was when the machine stopped, the log is whole, and packing is done by the next process.
func TestAStopWhilePackingLosesNothing(t *testing.T) {
	f := newLong(t)
	path, packedPath := f.store.SegmentPath(f.Attempt, 1), f.store.PackedPath(f.Attempt, 1)
	plain, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.store.Pack(ctx)
	packed, err := os.ReadFile(packedPath)
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]map[string][]byte{
		"before":          {path: plain},
		"while writing":   {path: plain, packedPath + ".new": packed[:len(packed)/2]},
		"before renaming": {path: plain, packedPath + ".new": packed},
		"before removing": {path: plain, packedPath: packed},
		"while removing":  {path: plain[:100], packedPath: packed},
		"spoiled beside":  {path: plain, packedPath: packed[:len(packed)-1]},
	} {
		_ = f.store.Close()
		for _, p := range []string{path, packedPath, packedPath + ".new"} {
			_ = os.Remove(p)
			if data, ok := files[p]; ok {
				if err := os.WriteFile(p, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		f.store = open(t, f.dir, f.table)
		f.check()
		if name == "spoiled beside" || name == "while removing" {
			f.append("and on") // recovery removes what does not count
			f.check()
		}
		f.store.Pack(ctx)
		f.check()
		if got := f.segments(); got[0] != "1.zst" || name != "before removing" && strings.HasPrefix(got[1], "1.") {
			t.Errorf("%s: files %q", name, got)
		}
	}
}

func TestASpoiledPackedSegmentIsAnErrorAndNeverOtherBytes(t *testing.T) {
	f := newLong(t)
	f.store.Pack(ctx)
	path := f.store.PackedPath(f.Attempt, 1)
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 14 {
		bad := slices.Clone(packed)
		at := len(bad) * i / 10
		if i >= 10 {
			at = len(bad) - 1 - (i-10)*400 // the index
		}
		bad[at] ^= 0x10
		if i == 13 {
			bad = bad[:len(bad)/2]
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		f.restart()
		var got []forge.LogFrame
		err := f.store.Read(ctx, f.Attempt, 0, collect(&got))
		if len(got) > len(f.wrote) || !slices.EqualFunc(got, f.wrote[:len(got)], equal) {
			t.Fatalf("turned at %d: other frames were read", at)
		}
		if !errors.Is(err, logs.ErrCorrupt) && (err != nil || len(got) != len(f.wrote)) {
			t.Fatalf("turned at %d: %d frames of %d, %v", at, len(got), len(f.wrote), err)
		}
		if _, err := f.store.Append(ctx, f.Runner, f.Attempt, f.frames("x")); err == nil {
			t.Fatalf("turned at %d: the log goes on", at)
		}
	}
}

// A few bytes that decode to very many are decoded no further than what the index says.
func TestABlockIsDecodedToItsLengthOrNotAtAll(t *testing.T) {
	f := newFixture(t)
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	bomb := encoder.EncodeAll(make([]byte, 256<<20), nil)
	allocated := testing.AllocsPerRun(1, func() {
		for _, n := range []int{1, 1000, 300_000} {
			if _, err := f.store.DecodeBlock(bomb, n); !errors.Is(err, logs.ErrCorrupt) {
				t.Errorf("256 MiB in %d bytes: %v", n, err)
			}
		}
	})
	if allocated > 200 {
		t.Errorf("%v allocations", allocated)
	}
	small := encoder.EncodeAll(make([]byte, 999), nil)
	for n, good := range map[int]bool{998: false, 999: true, 1000: false} {
		if _, err := f.store.DecodeBlock(small, n); (err == nil) != good {
			t.Errorf("999 bytes as %d: %v", n, err)
		}
	}
}

// Reading a range decodes the blocks of that range: damage anywhere else is not seen.
func TestARangeIsReadWithoutWhatStandsBeforeIt(t *testing.T) {
	f := newLong(t)
	f.store.Pack(ctx)
	edge := f.second()
	path := f.store.PackedPath(f.Attempt, 1)
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(packed, make([]byte, len(packed)*9/10))
	if err := os.WriteFile(path, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	f.restart()
	var got []forge.LogFrame
	if err := f.store.Read(ctx, f.Attempt, edge-2, collect(&got)); err != nil || !slices.EqualFunc(got, f.wrote[edge-3:], equal) {
		t.Errorf("%d frames, %v", len(got), err)
	}
	if err := f.store.Read(ctx, f.Attempt, 1, func(forge.LogFrame) error { return nil }); !errors.Is(err, logs.ErrCorrupt) {
		t.Errorf("from the beginning: %v", err)
	}
}

func TestAReaderGoesOnWhileItsSegmentIsPacked(t *testing.T) {
	f := newLong(t)
	edge := f.second()
	var got []forge.LogFrame
	take := collect(&got)
	err := f.store.Read(ctx, f.Attempt, 0, func(one forge.LogFrame) error {
		if one.Seq == 3 || one.Seq == edge+1 {
			f.store.Pack(ctx)
		}
		return take(one)
	})
	if err != nil || !slices.EqualFunc(got, f.wrote, equal) {
		t.Errorf("%d frames of %d, %v", len(got), len(f.wrote), err)
	}
	if _, err := os.Stat(f.store.SegmentPath(f.Attempt, 1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the plain segment: %v", err)
	}
}

// A database that was put back to an older copy knows less than the disk has: what it does not know is cut, packed or not.
func TestADatabaseThatIsOlderThanTheDiskCutsPackedSegmentsToo(t *testing.T) {
	f := newLong(t)
	f.store.Pack(ctx)
	keep := int(f.second()) - 40
	f.table.back(f.Attempt, f.wrote[:keep])
	f.wrote = f.wrote[:keep]
	f.restart()
	f.check()
	f.append("other words")
	f.check()
	f.restart()
	f.check()
	if got := f.segments(); slices.Contains(got, "1.zst") {
		t.Errorf("files: %q", got)
	}
}
