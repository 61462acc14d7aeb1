package logs_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"

	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// mix gives every third frame to the agent, every fifth to step events and every second of the rest to stderr.
func (f *fixture) mix(texts ...string) (output []byte) {
	f.t.Helper()
	frames := f.frames(texts...)
	for i := range frames {
		switch one := &frames[i]; {
		case one.Seq%3 == 0:
			one.Stream = forge.LogAgent
		case one.Seq%5 == 0:
			one.Stream = forge.LogStructured
		case one.Seq%2 == 0:
			one.Stream = forge.LogStderr
			output = append(output, one.Bytes...)
		default:
			output = append(output, one.Bytes...)
		}
	}
	if _, err := f.store.Append(ctx, f.Runner, f.Attempt, frames); err != nil {
		f.t.Fatal(err)
	}
	f.wrote = append(f.wrote, frames...)
	return output
}

func (f *fixture) output() *logs.Output {
	f.t.Helper()
	o, err := f.store.Output(ctx, f.Attempt)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = o.Close() })
	return o
}

// Case B58, from the disk's side: the output is one sequence of bytes, read from any place.
func TestTheOutputIsReadFromAnyByteOn(t *testing.T) {
	f := newFixture(t)
	f.store.SetSync(func(*os.File) error { return nil })
	var want []byte
	for i := range 500 {
		want = append(want, f.mix(string(bytes.Repeat([]byte{byte(i), '\n', 0xff}, 3000+i*7)), "\x00", "short\r\n", "x")...)
	}
	for _, packed := range []bool{false, true} {
		if packed {
			f.seal()
			f.store.Pack(ctx)
			f.restart()
		}
		o := f.output()
		if o.Size() != int64(len(want)) {
			t.Fatalf("%d bytes, not %d", o.Size(), len(want))
		}
		if got, err := io.ReadAll(o); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes that are not the %d, %v", len(got), len(want), err)
		}
		for i := range 60 {
			at := int64(len(want)) * int64(i) / 59
			part := make([]byte, min(100_000, len(want)-int(at)))
			if _, err := o.Seek(at, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(o, part); err != nil && at < int64(len(want)) || !bytes.Equal(part, want[at:at+int64(len(part))]) {
				t.Fatalf("%d bytes from %d on are others, %v", len(part), at, err)
			}
		}
		for seq := forge.LogSeq(1); int(seq) <= len(f.wrote)+1; seq += 97 {
			n, err := o.OutputTo(logs.Place{Seq: seq, Skip: 1})
			wantN := int64(0)
			for _, one := range f.wrote[:min(int(seq), len(f.wrote))] {
				if one.Stream != forge.LogStdout && one.Stream != forge.LogStderr {
					continue
				}
				if one.Seq == seq {
					wantN++
				} else {
					wantN += int64(len(one.Bytes))
				}
			}
			if err != nil || n != wantN {
				t.Fatalf("before frame %d are %d bytes, not %d, %v", seq, n, wantN, err)
			}
		}
	}
}

func TestTheOutputKeepsToTheContractOfReaders(t *testing.T) {
	f := newFixture(t)
	want := f.mix("one\n", "two\n", "agent", "three\n", "event", "agent", "seven")
	if err := iotest.TestReader(f.output(), want); err != nil {
		t.Error(err)
	}
}

func TestTheOutputIsWhatWasStoredWhenItWasOpened(t *testing.T) {
	f := newFixture(t)
	want := f.mix("one\n", "two\n")
	o := f.output()
	f.mix("later", "even later\n")
	if got, err := io.ReadAll(o); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := o.Seek(-1, io.SeekStart); err == nil {
		t.Error("there is something before the beginning")
	}
	empty := newFixture(t).output()
	if got, err := io.ReadAll(empty); err != nil || len(got) != 0 || empty.Size() != 0 {
		t.Errorf("an empty log has %q, %v", got, err)
	}
}

func TestTheOutputSaysWhatItFailedWith(t *testing.T) {
	f := newFixture(t)
	f.mix("one\n", "two\n")
	path := f.store.SegmentPath(f.Attempt, 1)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	o := f.output()
	if _, err := io.ReadAll(o); !errors.Is(err, logs.ErrCorrupt) || !errors.Is(o.Err(), logs.ErrCorrupt) {
		t.Errorf("%v, %v", err, o.Err())
	}
}
