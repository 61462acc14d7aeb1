package logv1_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
)

var events = []forge.StepEvent{
	forge.StepStarted{Step: 3},
	forge.StepFinished{Result: forge.StepResult{Index: 3, Class: forge.ExitCode, ExitCode: 7, Start: 1_700_000_000_123, Duration: 4 * time.Second}},
	forge.StepFinished{Result: forge.StepResult{Index: 255, Class: forge.Signal, Signal: 9}},
	forge.Annotation{Level: forge.LevelError, Step: 1, File: "a/b.go", Line: 7, Column: 9, Text: "undefined: x\nsecond line"},
	forge.Gap{Bytes: 1 << 40},
	forge.Notice{Level: forge.LevelWarning, Text: "the log limit was reached"},
}

func TestEveryStepEventComesBackFromItsBytes(t *testing.T) {
	for _, e := range events {
		b, err := logv1.EncodeEvent(e)
		if err != nil {
			t.Fatalf("encode %#v: %v", e, err)
		}
		got, err := logv1.DecodeEvent(b)
		if err != nil {
			t.Fatalf("decode %#v: %v", e, err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("the event changed on its way (-sent +got):\n%s", diff)
		}
		for n := range b {
			if _, err := logv1.DecodeEvent(b[:n]); !errors.Is(err, logv1.ErrEvent) {
				t.Errorf("%#v cut to %d bytes: %v, want ErrEvent", e, n, err)
			}
		}
	}
}

func TestTheBytesOfStepEventsAreWhatTheDocumentSays(t *testing.T) {
	for _, test := range []struct {
		event forge.StepEvent
		want  []byte
	}{
		{forge.StepStarted{Step: 1}, []byte{1, 1}},
		{forge.Gap{Bytes: 300}, []byte{4, 0xac, 0x02}},
		{forge.Notice{Level: forge.LevelNotice, Text: "a"}, []byte{5, 1, 1, 'a'}},
	} {
		b, err := logv1.EncodeEvent(test.event)
		if err != nil || !bytes.Equal(b, test.want) {
			t.Errorf("%#v is % x, %v; want % x", test.event, b, err, test.want)
		}
	}
}

func TestStepEventsThatCannotBeAreRefusedBothWays(t *testing.T) {
	for _, e := range []forge.StepEvent{
		forge.StepStarted{Step: forge.MaxSteps},
		forge.Gap{},
		forge.Notice{Level: forge.LevelNotice},
		forge.Notice{Level: forge.LevelNotice, Text: strings.Repeat("x", forge.MaxNotice+1)},
	} {
		if _, err := logv1.EncodeEvent(e); !errors.Is(err, logv1.ErrEvent) {
			t.Errorf("encode %#v: %v, want ErrEvent", e, err)
		}
	}
	for _, b := range [][]byte{nil, {0}, {6, 0}, {4, 0}, {5, 9, 1, 'a'}, {1, 1, 1}} {
		if e, err := logv1.DecodeEvent(b); !errors.Is(err, logv1.ErrEvent) {
			t.Errorf("decode % x: %#v, %v, want ErrEvent", b, e, err)
		}
	}
}

func FuzzStepEvent(f *testing.F) {
	for _, e := range events {
		b, err := logv1.EncodeEvent(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := logv1.DecodeEvent(b)
		if err != nil {
			return
		}
		again, err := logv1.EncodeEvent(e)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("% x reads as %#v and that is written % x, %v", b, e, again, err)
		}
	})
}
