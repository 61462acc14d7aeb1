package protocoltest

import (
	"bytes"
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
	"github.com/forgeyard/forgeyard/postcard"
)

// Fuzz is the body of every message's fuzz target. The seeds are its samples, which are its golden vectors, and each of
// them cut short, with a bit turned and with a byte behind it; they run with every test. Whatever the input: no panic,
// the encoding of what was decoded is the input, and what Validate accepts converts to the domain and can be sent again.
func Fuzz[M protocol.Message](f *testing.F) {
	f.Helper()
	var none M
	tag := none.Tag()
	for _, s := range Samples(tag.Type) {
		payload, err := postcard.Marshal(s.Message)
		if err != nil {
			f.Fatal(err)
		}
		seed(f, payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) { fuzzPayload(t, tag, payload) })
}

func seed(f *testing.F, payload []byte) {
	if len(payload) > 4<<10 {
		payload = payload[:4<<10] // the head of a long one: its counts are what is interesting
	}
	f.Add(payload)
	f.Add(append(bytes.Clone(payload), 0))
	if len(payload) == 0 {
		return
	}
	f.Add(payload[:len(payload)/2])
	for _, at := range []int{0, len(payload) / 3, len(payload) - 1} {
		turned := bytes.Clone(payload)
		turned[at] ^= 0x80
		f.Add(turned)
	}
}

func fuzzPayload(t *testing.T, tag protocol.Tag, payload []byte) {
	w, ok := wire.New(tag)
	if !ok {
		t.Fatalf("%v has no wire struct", tag)
	}
	if err := protocol.Unmarshal(payload, w); err != nil {
		if !isMalformed(err) {
			t.Fatalf("decoding failed with %v, which is no violation", err)
		}
		return
	}
	again, err := postcard.Marshal(w)
	if err != nil || !bytes.Equal(again, payload) {
		t.Fatalf("decoded and encoded again: %d bytes, %v; the input has %d", len(again), err, len(payload))
	}
	valid := w.Validate() == nil
	d, ok := w.(protocol.Domain)
	if !ok {
		return
	}
	m, err := d.Domain()
	if (err == nil) != valid {
		t.Fatalf("Validate says %v, the conversion %v", valid, err)
	}
	if !valid {
		return
	}
	if _, err := wire.FromDomain(m); err != nil {
		t.Fatalf("what was received cannot be sent: %v", err)
	}
}
