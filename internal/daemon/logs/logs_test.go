package logs_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
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
	var text bytes.Buffer
	if err := f.store.Text(ctx, f.Attempt, 0, false, &text); err != nil {
		t.Fatal(err)
	}
	if text.String() != strings.Join(texts, "") {
		t.Error("the text is not what was written")
	}
}

func TestTheTextHasNoStepEvents(t *testing.T) {
	f := newFixture(t)
	frames := f.frames("out", "event", "err", "agent")
	frames[1].Stream, frames[2].Stream, frames[3].Stream = forge.LogStructured, forge.LogStderr, forge.LogAgent
	if _, err := f.store.Append(ctx, f.Runner, f.Attempt, frames); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := f.store.Text(ctx, f.Attempt, 0, false, &text); err != nil || text.String() != "outerragent" {
		t.Errorf("%q, %v", text.String(), err)
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

func TestALogIsReadFromAnyFrameOn(t *testing.T) {
	f := newFixture(t)
	line := strings.Repeat("x", 30_000)
	for range 30 { // three segments, one of them not full
		f.append(slices.Repeat([]string{line}, 20)...)
	}
	read := func(what string) {
		t.Helper()
		for _, from := range []int{1, 2, 9, 250, 279, 280, 281, 599, 600} {
			var got []forge.LogFrame
			if err := f.store.Read(ctx, f.Attempt, forge.LogSeq(from), collect(&got)); err != nil {
				t.Fatalf("%s from %d: %v", what, from, err)
			}
			if !slices.EqualFunc(got, f.wrote[from-1:], equal) {
				t.Fatalf("%s from %d: %d frames, not the %d", what, from, len(got), len(f.wrote)-from+1)
			}
		}
	}
	read("open")
	f.restart()
	read("opened again")
	index := f.store.SegmentPath(f.Attempt, 1) + ".idx"
	data, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	for at := range data {
		if at%37 != 0 {
			continue
		}
		bad := slices.Clone(data)
		bad[at] ^= 4
		_ = f.store.Close()
		if err := os.WriteFile(index, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		f.store = open(t, f.dir, f.table)
		if err := f.store.Read(ctx, f.Attempt, 600, func(forge.LogFrame) error { return nil }); err != nil {
			t.Fatalf("with a damaged index at %d: %v", at, err)
		}
	}
	if err := os.Remove(index); err != nil {
		t.Fatal(err)
	}
	f.restart()
	read("without an index")
	f.append("and on")
	f.check()
}

// Case B61: a follower that does not keep up lags, misses nothing, and holds nobody up.
func TestAFollowerThatLagsHoldsNobodyUp(t *testing.T) {
	f := newFixture(t)
	f.append("0")
	var read []forge.LogFrame
	started, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		take, first := collect(&read), true
		ended <- f.store.Follow(ctx, f.Attempt, 0, func(one forge.LogFrame) error {
			if first {
				close(started)
				<-goOn
				first = false
			}
			return take(one)
		})
	}()
	<-started
	for i := range 100 {
		f.append(fmt.Sprint(i))
	}
	if _, err := f.store.Seal(ctx, seal(f.table, f.AttemptContext)); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-ended; err != nil || !slices.EqualFunc(read, f.wrote, equal) {
		t.Errorf("%d frames of %d, %v", len(read), len(f.wrote), err)
	}
}

func TestManyFollowersReadWhatIsAppendedAndEndWithTheSeal(t *testing.T) {
	f := newFixture(t)
	const followers = 20
	reads, ended := make([][]forge.LogFrame, followers), make(chan error, followers)
	for i := range followers {
		go func() { ended <- f.store.Follow(ctx, f.Attempt, forge.LogSeq(i), collect(&reads[i])) }()
	}
	for i := range 200 {
		f.append(fmt.Sprint(i))
	}
	if _, err := f.store.Seal(ctx, seal(f.table, f.AttemptContext)); err != nil {
		t.Fatal(err)
	}
	for range followers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for i, read := range reads {
		if !slices.EqualFunc(read, f.wrote[max(i, 1)-1:], equal) {
			t.Errorf("follower %d read %d frames", i, len(read))
		}
	}
}

func TestAFollowerHearsOfAFrameWhenItIsStored(t *testing.T) {
	f := newFixture(t)
	heard, ended := make(chan forge.LogSeq), make(chan error, 1)
	go func() {
		ended <- f.store.Follow(ctx, f.Attempt, 0, func(one forge.LogFrame) error { heard <- one.Seq; return nil })
	}()
	for i := range 10 {
		f.append(fmt.Sprint(i))
		if seq := <-heard; int(seq) != i+1 {
			t.Fatalf("frame %d, not %d", seq, i+1)
		}
	}
	if _, err := f.store.Seal(ctx, seal(f.table, f.AttemptContext)); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAFollowerEndsWithItsContextAndWithTheStore(t *testing.T) {
	f := newFixture(t)
	f.append("1")
	gone := errors.New("gone")
	c, cancel := context.WithCancelCause(ctx)
	err := f.store.Follow(c, f.Attempt, 0, func(forge.LogFrame) error { cancel(gone); return nil })
	if !errors.Is(err, gone) {
		t.Error(err)
	}
	ended, started := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- f.store.Follow(ctx, f.Attempt, 0, func(forge.LogFrame) error { close(started); return nil })
	}()
	<-started
	_ = f.store.Close()
	if err := <-ended; !errors.Is(err, logs.ErrClosed) {
		t.Error(err)
	}
}

// Case B50, on the daemon's side of an agent that does not keep its limit.
func TestBytesBeyondTheQuotaAreCountedAndToldToTheReader(t *testing.T) {
	f := newFixture(t)
	f.AttemptContext = f.table.begin(forge.MinLogLimit)
	room := int(forge.MinLogLimit) + logs.Slack
	piece := strings.Repeat("x", forge.MaxLogPayload)
	for len(f.wrote)*forge.MaxLogPayload < room {
		f.append(piece)
	}
	over := f.frames(piece, "tail")
	if next, err := f.store.Append(ctx, f.Runner, f.Attempt, over); !errors.Is(err, logs.ErrQuota) || int(next) != len(f.wrote)+1 {
		t.Fatalf("%d, %v", next, err)
	}
	f.check()
	f.restart()
	f.table.endLost(f.Lease)
	seen := map[forge.AttemptID]forge.Instant{}
	f.store.CloseEnded(ctx, 1, seen)
	f.store.CloseEnded(ctx, forge.Instant(1).Add(logs.CloseAfter-1), seen)
	if f.table.row(f.Attempt).Sealed {
		t.Fatal("the log was closed early")
	}
	f.store.CloseEnded(ctx, forge.Instant(1).Add(logs.CloseAfter), seen)
	var last forge.LogFrame
	err := f.store.Follow(ctx, f.Attempt, 0, func(one forge.LogFrame) error {
		last = one
		last.Bytes = bytes.Clone(one.Bytes)
		return nil
	})
	if err != nil || last.Stream != forge.LogStructured || int(last.Seq) != len(f.wrote)+1 {
		t.Fatalf("%+v, %v", last, err)
	}
	if want := gap(t, uint64(len(piece)+len("tail"))); !bytes.Equal(last.Bytes, want) {
		t.Errorf("the marker is %x, not %x", last.Bytes, want)
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

func TestTheTailBeginsWithWholeLines(t *testing.T) {
	f := newFixture(t)
	for i := range 300 {
		f.append(fmt.Sprintf("%d\n", i), strings.Repeat("y", 9000)+"\n")
	}
	for _, lines := range []int{0, 1, 2, 3, 99, 600, 1000} {
		from, err := f.store.Tail(ctx, f.Attempt, lines)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := f.store.Text(ctx, f.Attempt, from, false, &text); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text.String(), "\n"); got != min(lines, 600) {
			t.Errorf("%d lines from frame %d on, not %d", got, from, lines)
		}
	}
}

func TestLogsThatNobodyUsesMakeRoom(t *testing.T) {
	f := newFixture(t)
	const open = 100
	f.store.SetBounds(open, open)
	var all []forge.AttemptContext
	for i := range open + 50 {
		c := f.table.begin(0)
		all = append(all, c)
		frame := forge.LogFrame{Seq: 1, Stream: forge.LogStdout, Bytes: fmt.Append(nil, i)}
		f.store.SetSync(func(*os.File) error { return nil })
		if _, err := f.store.Append(ctx, c.Runner, c.Attempt, []forge.LogFrame{frame}); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range all[:60] {
		frame := forge.LogFrame{Seq: 2, Stream: forge.LogStdout, Bytes: []byte("!")}
		if next, err := f.store.Append(ctx, c.Runner, c.Attempt, []forge.LogFrame{frame}); err != nil || next != 3 {
			t.Fatalf("log %d: %d, %v", i, next, err)
		}
	}
}

// Ten thousand attempts print at once: there are fewer files than that, and no log is read again for each of its appends.
func TestLogsShareFilesAndNoneIsReadAgainForThat(t *testing.T) {
	f := newFixture(t)
	const files, many = 8, 50
	f.store.SetBounds(logs.MaxOpen, files)
	f.store.SetSync(func(*os.File) error { return nil })
	all := make([]forge.AttemptContext, many)
	for i := range all {
		all[i] = f.table.begin(0)
	}
	for seq := range forge.LogSeq(4) {
		for i, c := range all {
			frame := forge.LogFrame{Seq: seq + 1, Stream: forge.LogStdout, Bytes: fmt.Append(nil, i)}
			if next, err := f.store.Append(ctx, c.Runner, c.Attempt, []forge.LogFrame{frame}); err != nil || next != seq+2 {
				t.Fatalf("log %d: %d, %v", i, next, err)
			}
			if open := f.store.Files(); open > files {
				t.Fatalf("%d files are open, not %d", open, files)
			}
		}
	}
	if looks := f.table.looks(); looks > 2*many { // once to open it, once to recover it
		t.Errorf("rows were read %d times for %d logs", looks, many)
	}
	if err := f.store.Close(); err != nil || f.store.Files() != 0 {
		t.Errorf("%d files are open after the end, %v", f.store.Files(), err)
	}
}

// A segment that was given back before it was full has an index like any other.
func TestASegmentOfWhichNoFileIsOpenGetsItsIndex(t *testing.T) {
	f := newFixture(t)
	f.store.SetBounds(logs.MaxOpen, 0)
	f.store.SetSync(func(*os.File) error { return nil })
	piece := strings.Repeat("x", forge.MaxLogPayload)
	for len(f.wrote)*forge.MaxLogPayload <= logs.SegmentBytes {
		f.append(piece)
	}
	if _, err := os.Stat(f.store.SegmentPath(f.Attempt, 1) + ".idx"); err != nil {
		t.Error(err)
	}
	f.check()
}

// Frames of one byte each would take 25 times their bytes on the disk.
func TestFramesHaveAQuotaBesidesTheirBytes(t *testing.T) {
	f := newFixture(t)
	f.AttemptContext = f.table.begin(forge.MinLogLimit)
	f.store.SetSync(func(*os.File) error { return nil })
	most := (int(forge.MinLogLimit) + logs.Slack) / logs.RecordBytes
	texts := make([]string, most)
	for i := range texts {
		texts[i] = "x"
	}
	f.append(texts...)
	if next, err := f.store.Append(ctx, f.Runner, f.Attempt, f.frames("x")); !errors.Is(err, logs.ErrQuota) || int(next) != most+1 {
		t.Fatalf("%d, %v", next, err)
	}
}

// Case T13: 20 restarts in the middle of a log leave its transcript exact.
func TestTheTranscriptIsExactAfterTwentyRestarts(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		for j := range 10 {
			f.append(fmt.Sprintf("round %d line %d\n", i, j))
		}
		f.restart()
	}
	f.check()
}

// Rows I08 and I09: random appends, repeats, lost answers, failing disks and crashes; what is read is what was
// acknowledged, and then what was sent.
func TestAnyHistoryKeepsTheTranscript(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "logs")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		tab := newTable()
		c := tab.begin(0)
		s := open(t, dir, tab)
		defer func() { _ = s.Close() }()
		var sent []forge.LogFrame // acknowledged or not
		acked := forge.LogSeq(1)
		r.Repeat(map[string]func(*rapid.T){
			"append": func(r *rapid.T) {
				for range rapid.IntRange(0, 5).Draw(r, "frames") {
					text := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(r, "bytes")
					sent = append(sent, forge.LogFrame{Seq: forge.LogSeq(len(sent) + 1), Stream: forge.LogStdout, Bytes: text})
				}
				from := rapid.IntRange(0, int(acked)-1).Draw(r, "from")
				next, err := s.Append(ctx, c.Runner, c.Attempt, sent[from:])
				if err != nil {
					r.Fatal(err)
				}
				acked = next
			},
			"lost": func(r *rapid.T) {
				tab.lose(rapid.Bool().Draw(r, "committed"))
				sent = append(sent, forge.LogFrame{Seq: forge.LogSeq(len(sent) + 1), Stream: forge.LogStderr, Bytes: []byte("lost")})
				if _, err := s.Append(ctx, c.Runner, c.Attempt, sent[acked-1:]); err == nil {
					r.Fatal("no error")
				}
			},
			"crash": func(r *rapid.T) {
				_ = s.Close()
				path := s.SegmentPath(c.Attempt, 1)
				if file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600); err == nil {
					_, _ = file.Write(rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(r, "garbage"))
					_ = file.Close()
				}
				s = open(t, dir, tab)
			},
			"": func(r *rapid.T) {
				var read []forge.LogFrame
				if err := s.Read(ctx, c.Attempt, 0, collect(&read)); err != nil {
					r.Fatal(err)
				}
				if len(read) < int(acked)-1 || len(read) > len(sent) || !slices.EqualFunc(read, sent[:len(read)], equal) {
					r.Fatalf("%d frames are read, %d were acknowledged, %d sent", len(read), acked-1, len(sent))
				}
			},
		})
	})
}

func gap(t *testing.T, n uint64) []byte {
	t.Helper()
	event, err := logv1.EncodeEvent(forge.Gap{Bytes: n})
	if err != nil {
		t.Fatal(err)
	}
	return event
}
