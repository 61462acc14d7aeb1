package protocol_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
)

func TestEveryKindOfStreamHeaderSurvivesItsBytes(t *testing.T) {
	for _, s := range protocoltest.StreamHeads() {
		raw, err := protocol.AppendStreamHeader(nil, s.Kind, s.Head)
		if err != nil {
			t.Fatal(err)
		}
		h, err := protocol.ReadStreamHeader(bytes.NewReader(append(raw, "rest"...)))
		if err != nil || h.Kind != s.Kind {
			t.Fatalf("%s: %v, %v", s.Name, h, err)
		}
		head, _ := wire.NewStreamHead(h.Kind)
		if err := h.Decode(head); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if diff := cmp.Diff(s.Head, head); diff != "" {
			t.Errorf("%s: %s", s.Name, diff)
		}
		for n := range raw {
			if _, err := protocol.ReadStreamHeader(bytes.NewReader(raw[:n])); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
				t.Errorf("%s, %d of %d bytes: %v", s.Name, n, len(raw), err)
			}
		}
	}
}

// TestABadStreamHeaderEndsThatStreamOnly also holds the layout, byte for byte.
func TestABadStreamHeaderEndsThatStreamOnly(t *testing.T) {
	const ids = "00000000000000000000000000000001"
	good := "46593153" + "03" + "01" + "0020" + ids + ids // FY1S, CasDownload, schema, length
	for name, text := range map[string]string{
		"magic":         "46593253" + "03" + "01" + "0020" + ids + ids,
		"kind 0":        "46593153" + "00" + "01" + "0020" + ids + ids,
		"reserved kind": "46593153" + "05" + "01" + "0020" + ids + ids,
		"kind 128":      "46593153" + "80" + "01" + "0020" + ids + ids,
		"schema":        "46593153" + "03" + "02" + "0020" + ids + ids,
		"length":        "46593153" + "03" + "01" + "0401" + ids + ids,
		"a byte more":   "46593153" + "03" + "01" + "0021" + ids + ids + "00",
		"a byte less":   "46593153" + "03" + "01" + "001f" + ids + ids,
		"no lease":      "46593153" + "03" + "01" + "0020" + ids + "00000000000000000000000000000000",
	} {
		var v *protocol.Violation
		err := decodeHead(t, text)
		if !errors.As(err, &v) || v.Severity() != protocol.SeverityStream || v.Reset() != protocol.ResetMalformed {
			t.Errorf("%s: %v, want a violation of the stream", name, err)
		}
	}
	if err := decodeHead(t, good); err != nil {
		t.Error(err)
	}
}

func decodeHead(t *testing.T, text string) error {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	h, err := protocol.ReadStreamHeader(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	head, _ := wire.NewStreamHead(h.Kind)
	return h.Decode(head)
}

func TestThreeBadStreamHeadersAMinuteCloseTheConnection(t *testing.T) {
	at := func(s int) forge.Instant { return forge.Instant(time.Hour).Add(time.Duration(s) * time.Second) }
	for _, test := range []struct {
		seconds []int
		want    bool
	}{
		{[]int{0, 1}, false},
		{[]int{0, 1, 2}, true},
		{[]int{0, 30, 60}, true},
		{[]int{0, 30, 61}, false},
		{[]int{0, 30, 61, 62, 63}, true},
	} {
		var bad protocol.BadStreams
		got := false
		for _, s := range test.seconds {
			got = bad.Note(at(s))
		}
		if got != test.want {
			t.Errorf("at %v: %v, want %v", test.seconds, got, test.want)
		}
	}
}

// FuzzStreamHeader: no header makes the reader panic, take more than its own bytes, or mean two things.
func FuzzStreamHeader(f *testing.F) {
	for _, s := range protocoltest.StreamHeads() {
		raw, err := protocol.AppendStreamHeader(nil, s.Kind, s.Head)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
		f.Add(raw[:len(raw)/2])
		f.Add(append(bytes.Clone(raw), raw...))
	}
	f.Add([]byte("FY1S\x02\x01\xff\xff"))
	f.Add([]byte("FY1S\x05\x00\x00\x00"))
	f.Add([]byte("FY1S\x00\x00\x00\x00"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bytes.NewReader(stream)
		h, err := protocol.ReadStreamHeader(r)
		if err != nil {
			return
		}
		head, ok := wire.NewStreamHead(h.Kind)
		if !ok {
			t.Fatalf("a header of kind %v was read", h.Kind)
		}
		if h.Decode(head) != nil {
			return
		}
		again, err := protocol.AppendStreamHeader(nil, h.Kind, head)
		if err != nil || !bytes.Equal(again, stream[:len(stream)-r.Len()]) {
			t.Fatalf("encoded again: %x, %v; it was %x", again, err, stream)
		}
	})
}
