package logs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
)

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

func gap(t *testing.T, n uint64) []byte {
	t.Helper()
	event, err := logv1.EncodeEvent(forge.Gap{Bytes: n})
	if err != nil {
		t.Fatal(err)
	}
	return event
}
