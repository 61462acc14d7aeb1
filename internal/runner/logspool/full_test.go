package logspool_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/runner/logspool"
)

// TestAFullSpoolHoldsTheWorkloadBack: T10, and the first half of B59.
func TestAFullSpoolHoldsTheWorkloadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := create(t, logspool.Config{Bound: logspool.MinBound, Policy: logspool.Block})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 64 {
				s.Append(forge.LogStdout, make([]byte, forge.MaxLogPayload), 1)
			}
		}()
		synctest.Wait()
		if s.Used() > logspool.MinBound {
			t.Errorf("the spool holds %v, its bound is %v", s.Used(), logspool.MinBound)
		}
		select {
		case <-done:
			t.Fatal("four times the bound was appended without waiting")
		default:
		}
		stopped := s.Next()
		s.Ack(stopped)
		synctest.Wait()
		if s.Next() == stopped {
			t.Error("an acknowledgement lets nothing more in")
		}
		s.Unblock()
		<-done
		got := seal(t, s)
		daemon := newCopy()
		daemon.next = stopped
		daemon.readAll(t, s, stopped)
		kept := uint64(daemon.output[forge.LogStdout].Len()) + uint64(stopped-1)*forge.MaxLogPayload
		if kept+daemon.lost() != 64*forge.MaxLogPayload || daemon.lost() == 0 {
			t.Errorf("kept %d and a gap of %d, together not %d", kept, daemon.lost(), 64*forge.MaxLogPayload)
		}
		if got.Last != daemon.next-1 {
			t.Errorf("sealed at %d, read to %d", got.Last, daemon.next-1)
		}
	})
}

func TestAFullSpoolThatDropsSaysHowMuchAtThePlace(t *testing.T) {
	s, _ := create(t, logspool.Config{Bound: logspool.MinBound, Policy: logspool.Gap})
	line := bytes.Repeat([]byte("0123456789abcdef"), 64)
	const lines = 4096
	daemon := newCopy()
	for i := range lines {
		s.Append(forge.LogStdout, line, forge.WallTime(i))
		if i == lines/2 { // the daemon comes back once
			r := s.Reader(daemon.next)
			for daemon.next < s.Next() {
				frames, err := r.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range frames {
					daemon.take(t, f)
				}
			}
			r.Close()
			s.Ack(daemon.next)
		}
		if s.Used() > logspool.MinBound {
			t.Fatalf("the spool holds %v", s.Used())
		}
	}
	got := seal(t, s)
	daemon.readAll(t, s, daemon.next)
	if got != daemon.seal() {
		t.Errorf("the spool seals %+v, the daemon %+v", got, daemon.seal())
	}
	kept := uint64(daemon.output[forge.LogStdout].Len())
	if kept+daemon.lost() != lines*uint64(len(line)) || kept == lines*uint64(len(line)) {
		t.Errorf("kept %d, gaps %d, written %d", kept, daemon.lost(), lines*len(line))
	}
	if len(daemon.events) != 2 {
		t.Errorf("%d gaps, want one for each time that the spool was full", len(daemon.events))
	}
}

// TestALogOverItsLimitKeepsHeadAndTail: case B50.
func TestALogOverItsLimitKeepsHeadAndTail(t *testing.T) {
	const limit = 64 * forge.KiB
	s, _ := create(t, logspool.Config{Limit: limit})
	var all bytes.Buffer
	for i := 0; all.Len() < 1<<20; i++ {
		line := fmt.Sprintf("line %d\n", i)
		all.WriteString(line)
		s.Append(forge.LogStream(1+i%2), []byte(line), 1)
	}
	s.Event(forge.StepFinished{Result: forge.StepResult{Class: forge.Succeeded}}, 2)
	seal(t, s)
	var got []byte
	var gap, gaps uint64
	notices := 0
	r := s.Reader(1)
	defer r.Close()
	for {
		frames, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			if f.Stream != forge.LogStructured {
				got = append(got, f.Bytes...)
				continue
			}
			switch e, _ := logv1.DecodeEvent(f.Bytes); e := e.(type) {
			case forge.Gap:
				gap, gaps = uint64(len(got)), gaps+e.Bytes
			case forge.Notice:
				notices++
			}
		}
	}
	if gap != uint64(limit-limit/4) || len(got) > int(limit) {
		t.Errorf("the head has %d bytes, head and tail %d; the limit is %d", gap, len(got), limit)
	}
	if !bytes.HasPrefix(all.Bytes(), got[:gap]) || !bytes.HasSuffix(all.Bytes(), got[gap:]) || len(got) == int(gap) {
		t.Error("head and tail are not the beginning and the end of the output")
	}
	if uint64(len(got))+gaps != uint64(all.Len()) || notices != 1 {
		t.Errorf("%d bytes and a gap of %d are not %d; %d notices", len(got), gaps, all.Len(), notices)
	}
}

func TestALogAtItsLimitLosesNothing(t *testing.T) {
	for _, extra := range []int{0, 1} {
		s, _ := create(t, logspool.Config{Limit: 64 * forge.KiB})
		want := bytes.Repeat([]byte("a"), 48<<10)
		s.Append(forge.LogStdout, want, 1)
		s.Append(forge.LogStdout, bytes.Repeat([]byte("b"), 16<<10+extra), 1)
		seal(t, s)
		daemon := newCopy()
		daemon.readAll(t, s, 1)
		if daemon.lost() != uint64(extra) {
			t.Errorf("%d bytes over its limit, the log lost %d", extra, daemon.lost())
		}
	}
}

// TestADiskThatTakesNothingCostsOutputAndSaysSo takes the folder away under the spool: T07 from the log's side.
func TestADiskThatTakesNothingCostsOutputAndSaysSo(t *testing.T) {
	s, dir := create(t, logspool.Config{})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s.Append(forge.LogStdout, []byte("lost"), 1)
	if s.Err() == nil {
		t.Error("nobody is told that the disk takes nothing")
	}
	for i := range 20 {
		s.Event(forge.Notice{Level: forge.LevelError, Text: fmt.Sprint("the disk is full, ", i)}, 1)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Append(forge.LogStdout, []byte("kept"), 2)
	seal(t, s)
	daemon := newCopy()
	daemon.readAll(t, s, 1)
	if daemon.lost() != 4 || daemon.output[forge.LogStdout].String() != "kept" {
		t.Errorf("gap %d, output %q", daemon.lost(), daemon.output[forge.LogStdout])
	}
	said := 0
	for _, e := range daemon.events {
		if n, ok := e.(forge.Notice); ok && n.Text == fmt.Sprint("the disk is full, ", said) {
			said++
		}
	}
	if said != 8 {
		t.Errorf("%d notices were said at the end: %+v", said, daemon.events)
	}
}
