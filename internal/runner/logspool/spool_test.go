package logspool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zeebo/blake3"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/runner/logspool"
)

func create(t testing.TB, cfg logspool.Config) (*logspool.Spool, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "spool")
	s, err := logspool.Create(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	})
	return s, dir
}

func seal(t testing.TB, s *logspool.Spool) forge.LogSeal {
	t.Helper()
	got, err := s.Seal(9)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// copied is what a daemon would have of a log.
type copied struct {
	next   forge.LogSeq
	bytes  uint64
	hash   *blake3.Hasher
	output map[forge.LogStream]*bytes.Buffer
	events []forge.StepEvent
}

func newCopy() *copied {
	return &copied{next: 1, hash: blake3.New(), output: map[forge.LogStream]*bytes.Buffer{
		forge.LogStdout: {}, forge.LogStderr: {}, forge.LogAgent: {}, forge.LogStructured: {},
	}}
}

// take takes a frame as the daemon does: each once, in order.
func (c *copied) take(t testing.TB, f forge.LogFrame) {
	t.Helper()
	if err := f.Validate(); err != nil {
		t.Fatalf("frame %d: %v", f.Seq, err)
	}
	if f.Seq < c.next {
		return
	}
	if f.Seq > c.next {
		t.Fatalf("frame %d came where %d was due", f.Seq, c.next)
	}
	c.next++
	c.bytes += uint64(len(f.Bytes))
	_, _ = c.hash.Write(f.Bytes)
	c.output[f.Stream].Write(f.Bytes)
	if f.Stream == forge.LogStructured {
		e, err := logv1.DecodeEvent(f.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		c.events = append(c.events, e)
	}
}

// readAll reads to the end.
func (c *copied) readAll(t testing.TB, s *logspool.Spool, from forge.LogSeq) {
	t.Helper()
	r := s.Reader(from)
	defer r.Close()
	for {
		frames, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			c.take(t, f)
		}
	}
}

func (c *copied) seal() forge.LogSeal {
	s := forge.LogSeal{Last: c.next - 1, Bytes: c.bytes}
	if s.Last > 0 {
		c.hash.Sum(s.Hash[:0])
	}
	return s
}

func (c *copied) lost() (n uint64) {
	for _, e := range c.events {
		if gap, ok := e.(forge.Gap); ok {
			n += gap.Bytes
		}
	}
	return n
}

func TestTheSealIsThatOfEveryFrameInOrder(t *testing.T) {
	s, _ := create(t, logspool.Config{})
	s.Event(forge.StepStarted{Step: 0}, 1)
	s.Append(forge.LogStdout, []byte("out"), 2)
	s.Append(forge.LogStderr, []byte("err"), 3)
	s.Append(forge.LogStdout, bytes.Repeat([]byte("x"), 3*forge.MaxLogPayload+5), 4)
	s.Append(forge.LogAgent, []byte("agent"), 5)
	got := seal(t, s)
	daemon := newCopy()
	daemon.readAll(t, s, 1)
	if got != daemon.seal() {
		t.Errorf("the spool seals %+v, the daemon %+v", got, daemon.seal())
	}
	if want := forge.LogSeq(1 + 1 + 1 + 4 + 1); got.Last != want {
		t.Errorf("last frame is %d, want %d", got.Last, want)
	}
	s.Append(forge.LogStdout, []byte("late"), 6)
	if again := seal(t, s); again != got {
		t.Errorf("sealed again it is %+v, first %+v", again, got)
	}
}

func TestAnEmptyLogHasASealOfZeros(t *testing.T) {
	s, _ := create(t, logspool.Config{})
	if got := seal(t, s); got != (forge.LogSeal{}) {
		t.Errorf("seal %+v, want zeros", got)
	}
}

// TestALogIsReadOnFromAnyFrameThatIsNotAcknowledged cuts the stream at random, takes up at the last acknowledgement, and
// compares. Case B57.
func TestALogIsReadOnFromAnyFrameThatIsNotAcknowledged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s, dir := create(t, logspool.Config{Bound: logspool.MinBound, Policy: logspool.Block})
	var want bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintln(&want, i)
	}
	go func() {
		defer s.Seal(1)
		for p := want.Bytes(); len(p) > 0; {
			n := min(1+rng.IntN(9000), len(p))
			s.Append(forge.LogStdout, p[:n], 1)
			p = p[n:]
		}
	}()
	daemon := newCopy()
	cuts := rand.New(rand.NewPCG(3, 4))
	for done := false; !done; {
		r := s.Reader(daemon.next)
		for left := cuts.IntN(40); left > 0 && !done; left-- {
			frames, err := r.Next(t.Context())
			if done = errors.Is(err, io.EOF); done {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frames[:1+cuts.IntN(len(frames))] {
				daemon.take(t, f)
			}
			if cuts.IntN(3) == 0 {
				break // cut: some of what was read never arrived
			}
			for _, f := range frames {
				daemon.take(t, f)
			}
			s.Ack(daemon.next)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(daemon.output[forge.LogStdout].Bytes(), want.Bytes()) {
		t.Errorf("%d bytes came of %d", daemon.bytes, want.Len())
	}
	if got := seal(t, s); got != daemon.seal() {
		t.Errorf("the spool seals %+v, the daemon %+v", got, daemon.seal())
	}
	s.Ack(daemon.next)
	if files, err := filepath.Glob(filepath.Join(dir, "0*")); err != nil || len(files) != 1 {
		t.Errorf("with all acknowledged there are %d files, %v", len(files), err)
	}
}

func TestWhatIsAcknowledgedIsForgotten(t *testing.T) {
	s, _ := create(t, logspool.Config{Bound: logspool.MinBound})
	for range 12 {
		s.Append(forge.LogStdout, make([]byte, forge.MaxLogPayload), 1)
	}
	before := s.Used()
	s.Ack(s.Next())
	if after := s.Used(); after >= before/2 {
		t.Errorf("the spool holds %v, before the acknowledgement %v", after, before)
	}
	r := s.Reader(1)
	defer r.Close()
	if _, err := r.Next(t.Context()); !errors.Is(err, logspool.ErrAcknowledged) {
		t.Errorf("reading what was acknowledged: %v", err)
	}
	s.Ack(1 << 40) // of frames that never were
	s.Append(forge.LogStdout, []byte("x"), 1)
	last := s.Reader(s.Next() - 1)
	defer last.Close()
	if frames, err := last.Next(t.Context()); err != nil || len(frames) != 1 {
		t.Errorf("after an acknowledgement of what never was: %v, %v", frames, err)
	}
}

// TestWhatAKilledProcessHasWrittenIsReadAgain cuts the last file at every length of its last frame.
func TestWhatAKilledProcessHasWrittenIsReadAgain(t *testing.T) {
	s, dir := create(t, logspool.Config{})
	s.Append(forge.LogStdout, []byte("first"), 1)
	s.Append(forge.LogStderr, []byte("second"), 2)
	path := filepath.Join(dir, fmt.Sprintf("%020d", 1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole); cut >= 0; cut-- {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		err := logspool.Replay(dir, func(f forge.LogFrame) error {
			got = append(got, fmt.Sprintf("%d %v %s", f.Seq, f.Stream, f.Bytes))
			return nil
		})
		if err != nil {
			t.Fatalf("cut to %d: %v", cut, err)
		}
		want := []string{"1 stdout first", "2 stderr second"}
		switch {
		case cut < 13+5:
			want = nil
		case cut < len(whole):
			want = want[:1]
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("cut to %d of %d: %q, want %q", cut, len(whole), got, want)
		}
	}
}

// TestWhatAKilledProcessLeftIsSentByTheNext: case B39.
func TestWhatAKilledProcessLeftIsSentByTheNext(t *testing.T) {
	s, dir := create(t, logspool.Config{Bound: logspool.MinBound, Policy: logspool.Gap})
	for i := range 12 {
		s.Append(forge.LogStdout, bytes.Repeat([]byte{byte('a' + i)}, forge.MaxLogPayload), 1)
	}
	s.Ack(4) // the first file goes
	left, err := logspool.Reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	daemon := newCopy()
	daemon.next = left.Acked()
	daemon.readAll(t, left, left.Acked())
	if daemon.next != s.Next() || left.Acked() > 4 || left.Acked() == 1 {
		t.Errorf("from %d to %d, want from at most 4 to %d", left.Acked(), daemon.next, s.Next())
	}
	if err := left.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := logspool.Reopen(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("reopened after its removal: %v", err)
	}
}

func TestAClosedSpoolLetsEverybodyGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := create(t, logspool.Config{Bound: logspool.MinBound})
		r := s.Reader(1)
		read := make(chan error)
		go func() {
			_, err := r.Next(context.Background())
			read <- err
		}()
		wrote := make(chan struct{})
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		go func() {
			s.Append(forge.LogStdout, make([]byte, 4<<20), 1)
			close(wrote)
		}()
		<-wrote
		if err := <-read; !errors.Is(err, logspool.ErrClosed) {
			t.Errorf("the reader got %v", err)
		}
	})
}

func TestABoundThatCannotHoldAFrameIsRefused(t *testing.T) {
	if _, err := logspool.Create(t.TempDir(), logspool.Config{Bound: logspool.MinBound - 1}); err == nil {
		t.Error("a spool that is too small was made")
	}
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%020d", 1)), b, 0o600); err != nil {
			t.Fatal(err)
		}
		next := forge.LogSeq(1)
		err := logspool.Replay(dir, func(f forge.LogFrame) error {
			if f.Seq != next || len(f.Bytes) == 0 || len(f.Bytes) > forge.MaxLogPayload || !f.Stream.Valid() {
				t.Errorf("a frame that cannot be: %d of %d bytes", f.Seq, len(f.Bytes))
			}
			next++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkSpool writes through the spool; BenchmarkPlainFile is its limit. The figure to hold is half of that.
func BenchmarkSpool(b *testing.B) {
	for _, size := range []int{256 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			s, _ := create(b, logspool.Config{Bound: 4 * forge.GiB})
			p := bytes.Repeat([]byte("a line of a log that is about this long\n"), size/40)
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				s.Append(forge.LogStdout, p, 1)
				if s.Used() > 64*forge.MiB {
					s.Ack(s.Next())
				}
			}
		})
	}
}

func BenchmarkPlainFile(b *testing.B) {
	for _, size := range []int{256 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			file, err := os.Create(filepath.Join(b.TempDir(), "plain"))
			if err != nil {
				b.Fatal(err)
			}
			defer file.Close()
			p := bytes.Repeat([]byte("a line of a log that is about this long\n"), size/40)
			b.SetBytes(int64(len(p)))
			written := 0
			for b.Loop() {
				if _, err := file.Write(p); err != nil {
					b.Fatal(err)
				}
				if written += len(p); written > 64<<20 {
					written = 0
					if err := file.Truncate(0); err != nil {
						b.Fatal(err)
					}
					if _, err := file.Seek(0, 0); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
