package logs_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

var ctx = context.Background()

func open(t testing.TB, dir string, rows logs.Rows) *logs.Store {
	t.Helper()
	s, err := logs.Open(logs.Config{Dir: dir, Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fixture is one attempt with an open store of logs.
type fixture struct {
	t     testing.TB
	dir   string
	table *table
	store *logs.Store
	forge.AttemptContext
	wrote []forge.LogFrame // all that was appended
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, dir: t.TempDir(), table: newTable()}
	f.AttemptContext = f.table.begin(64 * forge.MiB)
	f.store = open(t, f.dir, f.table)
	t.Cleanup(func() { _ = f.store.Close() })
	return f
}

// restart closes the store without any care and opens another on what is there.
func (f *fixture) restart() {
	f.t.Helper()
	if err := f.store.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.store = open(f.t, f.dir, f.table)
}

// frames makes frames from texts, numbered from what was written on.
func (f *fixture) frames(texts ...string) []forge.LogFrame {
	var list []forge.LogFrame
	for i, text := range texts {
		list = append(list, forge.LogFrame{
			Seq: forge.LogSeq(len(f.wrote) + i + 1), Stream: forge.LogStdout, Bytes: []byte(text), Time: forge.WallTime(1000 + i),
		})
	}
	return list
}

// append appends frames that must be stored.
func (f *fixture) append(texts ...string) {
	f.t.Helper()
	frames := f.frames(texts...)
	next, err := f.store.Append(ctx, f.Runner, f.Attempt, frames)
	if err != nil {
		f.t.Fatal(err)
	}
	f.wrote = append(f.wrote, frames...)
	if next != forge.LogSeq(len(f.wrote)+1) {
		f.t.Fatalf("next is %d after %d frames", next, len(f.wrote))
	}
}

func collect(frames *[]forge.LogFrame) func(forge.LogFrame) error {
	return func(f forge.LogFrame) error {
		f.Bytes = bytes.Clone(f.Bytes)
		*frames = append(*frames, f)
		return nil
	}
}

// check compares what is read with what was written, and the row's hash with that of all bytes.
func (f *fixture) check() {
	f.t.Helper()
	var read []forge.LogFrame
	if err := f.store.Read(ctx, f.Attempt, 0, collect(&read)); err != nil {
		f.t.Fatal(err)
	}
	if !slices.EqualFunc(read, f.wrote, equal) {
		f.t.Fatalf("read %d frames that differ from the %d written", len(read), len(f.wrote))
	}
	var all []byte
	for _, one := range f.wrote {
		all = append(all, one.Bytes...)
	}
	row := f.table.row(f.Attempt)
	if len(all) > 0 && row.Hash != digest.Of(all) || row.Bytes != uint64(len(all)) {
		f.t.Fatalf("the row has %d bytes with %v, written were %d with %v", row.Bytes, row.Hash, len(all), digest.Of(all))
	}
}

func equal(a, b forge.LogFrame) bool {
	return a.Seq == b.Seq && a.Stream == b.Stream && a.Time == b.Time && bytes.Equal(a.Bytes, b.Bytes)
}

// Cases B52 and B53.
func TestBytesAreKeptAsTheyWereWritten(t *testing.T) {
	f := newFixture(t)
	random := make([]byte, forge.MaxLogPayload)
	_, _ = rand.Read(random)
	texts := []string{"a\x00b", "\xff\xfe\xc3", "\r 1%\r 2%\n", string(random), "no line end"}
	f.append(texts...)
	f.check()
	f.restart()
	f.check()
	if f.textFrom(logs.Place{}) != strings.Join(texts, "") {
		t.Error("the text is not what was written")
	}
}

// Case B57.
func TestAFrameThatComesAgainIsStoredOnce(t *testing.T) {
	f := newFixture(t)
	f.append("1", "2", "3")
	all := append(slices.Clone(f.wrote), f.frames("4", "5")...)
	for _, batch := range [][]forge.LogFrame{all[:2], all[1:4], all[:4], all[3:]} {
		next, err := f.store.Append(ctx, f.Runner, f.Attempt, batch)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(4, batch[len(batch)-1].Seq+1); next != want {
			t.Errorf("next is %d, not %d", next, want)
		}
	}
	f.wrote = all
	f.check()
}

func TestAHoleIsRefused(t *testing.T) {
	f := newFixture(t)
	f.append("1")
	late := f.frames("2", "3", "4")
	for _, batch := range [][]forge.LogFrame{late[1:], {late[0], late[2]}} {
		if next, err := f.store.Append(ctx, f.Runner, f.Attempt, batch); !errors.Is(err, logs.ErrHole) || next != 2 {
			t.Errorf("%d, %v", next, err)
		}
	}
	f.check()
}

// Case B31.
func TestAnotherRunnersLogIsNotThere(t *testing.T) {
	f := newFixture(t)
	f.append("mine")
	if _, err := f.store.Append(ctx, ident.New[forge.RunnerID](), f.Attempt, f.frames("theirs")); !errors.Is(err, logs.ErrForeign) {
		t.Error(err)
	}
	if _, err := f.store.Append(ctx, f.Runner, ident.New[forge.AttemptID](), f.frames("none")); !errors.Is(err, logs.ErrForeign) {
		t.Error(err)
	}
	f.check()
}

func TestASealedLogTakesNothingMore(t *testing.T) {
	f := newFixture(t)
	f.append("1", "2")
	wrong := seal(f.table, f.AttemptContext)
	wrong.Seal.Last++
	if answer, err := f.store.Seal(ctx, wrong); err != nil || answer.NotYet != forge.ErrorNotYetLog {
		t.Fatalf("%+v, %v", answer, err)
	}
	f.append("3")
	if answer, err := f.store.Seal(ctx, seal(f.table, f.AttemptContext)); err != nil || !answer.Done {
		t.Fatalf("%+v, %v", answer, err)
	}
	for range 2 {
		if _, err := f.store.Append(ctx, f.Runner, f.Attempt, f.frames("4")); !errors.Is(err, logs.ErrSealed) {
			t.Error(err)
		}
		f.check()
		f.restart()
	}
}

func TestAnEmptyLogIsSealedAndRead(t *testing.T) {
	f := newFixture(t)
	if answer, err := f.store.Seal(ctx, seal(f.table, f.AttemptContext)); err != nil || !answer.Done {
		t.Fatalf("%+v, %v", answer, err)
	}
	if err := f.store.Follow(ctx, f.Attempt, 0, func(forge.LogFrame) error { return errors.New("a frame") }); err != nil {
		t.Error(err)
	}
}

// Row I08: whatever a crash leaves behind the stored frames, they are read as they were and the log goes on.
func TestWhatACrashLeavesBehindTheStoredFramesIsCut(t *testing.T) {
	f := newFixture(t)
	f.append("first", "second")
	f.table.lose(false)
	lost := f.frames("third, of which nobody heard", "fourth")
	if _, err := f.store.Append(ctx, f.Runner, f.Attempt, lost); err == nil {
		t.Fatal("a lost commit was no error")
	}
	_ = f.store.Close()
	path := f.store.SegmentPath(f.Attempt, 1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stored := len(whole) - 2*24 - len(lost[0].Bytes) - len(lost[1].Bytes)
	for cut := stored; cut <= len(whole); cut++ {
		torn := slices.Clone(whole[:cut])
		if cut > stored {
			torn[cut-1] ^= byte(cut % 3) // now and then the last sector is garbage besides
		}
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		f.store = open(t, f.dir, f.table)
		f.check()
		if next, err := f.store.Append(ctx, f.Runner, f.Attempt, f.frames("x")[:0]); err != nil || next != 3 {
			t.Fatalf("cut at %d: %d, %v", cut, next, err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != int64(stored) {
			t.Fatalf("cut at %d: %v bytes are left of %d, %v", cut, info.Size(), stored, err)
		}
		_ = f.store.Close()
	}
	f.store = open(t, f.dir, f.table)
	f.append("third again", "and on")
	f.check()
}

func TestARowThatSaysMoreThanTheDiskIsReported(t *testing.T) {
	damage := map[string]func(path string, data []byte) error{
		"short":  func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)-1], 0o600) },
		"gone":   func(path string, _ []byte) error { return os.Remove(path) },
		"turned": func(path string, data []byte) error { data[40] ^= 1; return os.WriteFile(path, data, 0o600) },
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.append("first", "second")
			_ = f.store.Close()
			path := f.store.SegmentPath(f.Attempt, 1)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := harm(path, data); err != nil {
				t.Fatal(err)
			}
			f.store = open(t, f.dir, f.table)
			if _, err := f.store.Append(ctx, f.Runner, f.Attempt, f.frames("third")); !errors.Is(err, logs.ErrCorrupt) {
				t.Errorf("append: %v", err)
			}
			if err := f.store.Read(ctx, f.Attempt, 0, func(forge.LogFrame) error { return nil }); !errors.Is(err, logs.ErrCorrupt) {
				t.Errorf("read: %v", err)
			}
		})
	}
}

// Nothing is acknowledged that the disk did not take, and what it did not take is taken later.
func TestADiskThatFailsLosesNothingThatWasAcknowledged(t *testing.T) {
	f := newFixture(t)
	f.append("1")
	f.store.SetSync(func(*os.File) error { return syscall.EIO })
	if next, err := f.store.Append(ctx, f.Runner, f.Attempt, f.frames("2")); !errors.Is(err, syscall.EIO) || next != 2 {
		t.Fatalf("%d, %v", next, err)
	}
	f.store.SetSync(func(file *os.File) error { return file.Sync() })
	f.store.SetWrite(func(file *os.File, p []byte, at int64) error {
		_, _ = file.WriteAt(p[:len(p)/2], at)
		return syscall.ENOSPC
	})
	if _, err := f.store.Append(ctx, f.Runner, f.Attempt, f.frames("2", "3")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	f.check()
	f.store.SetWrite(func(file *os.File, p []byte, at int64) error { _, err := file.WriteAt(p, at); return err })
	f.append("2", "3")
	f.check()
}

// The row is never ahead of the disk: the transaction begins after the sync.
func TestTheRowMovesOnlyAfterTheDiskHasTheBytes(t *testing.T) {
	f := newFixture(t)
	synced := false
	f.store.SetSync(func(file *os.File) error {
		synced = true
		if next := f.table.row(f.Attempt).Next; next != 1 {
			t.Errorf("the row is at %d before the sync", next)
		}
		return file.Sync()
	})
	f.append("1", "2")
	if !synced {
		t.Error("nothing was synced")
	}
}

func TestAnAnswerThatWasLostCostsNoFrame(t *testing.T) {
	for _, committed := range []bool{false, true} {
		f := newFixture(t)
		f.append("1")
		f.table.lose(committed)
		again := f.frames("2", "3")
		if _, err := f.store.Append(ctx, f.Runner, f.Attempt, again); !errors.Is(err, errLost) {
			t.Fatal(err)
		}
		if next, err := f.store.Append(ctx, f.Runner, f.Attempt, again); err != nil || next != 4 {
			t.Fatalf("committed %v: %d, %v", committed, next, err)
		}
		f.wrote = append(f.wrote, again...)
		f.check()
	}
}

// After an attempt was lost its runner may send the rest for a while; then the log is closed.
func TestTheRestOfALostAttemptIsTakenUntilTheLogIsClosed(t *testing.T) {
	f := newFixture(t)
	f.append("1")
	f.table.endLost(f.Lease)
	seen := map[forge.AttemptID]forge.Instant{}
	f.store.CloseEnded(ctx, 1, seen)
	f.append("the rest")
	f.store.CloseEnded(ctx, forge.Instant(1).Add(logs.CloseAfter), seen)
	if _, err := f.store.Append(ctx, f.Runner, f.Attempt, f.frames("too late")); !errors.Is(err, logs.ErrSealed) {
		t.Error(err)
	}
	f.store.CloseEnded(ctx, forge.Instant(2).Add(logs.CloseAfter), seen)
	if len(seen) != 0 {
		t.Error("a closed log is still remembered")
	}
	f.check()
}

func TestRunEndsWithItsContext(t *testing.T) {
	f := newFixture(t)
	c, cancel := context.WithCancel(ctx)
	cancel()
	if err := f.store.Run(c); err != nil {
		t.Error(err)
	}
}
