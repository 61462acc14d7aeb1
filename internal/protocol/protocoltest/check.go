package protocoltest

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
	"github.com/forgeyard/forgeyard/postcard"
)

// Message runs the checks that every message has to pass: each sample survives its bytes and its domain value, each
// beginning of its bytes is refused and so is a byte too many, each list and text is refused one past its limit. Each
// function of bad spoils a typical sample; Validate must refuse that, and the encoder with it.
func Message[M protocol.Message](t *testing.T, bad map[string]func(M)) {
	t.Helper()
	var none M
	id := none.Tag().Type
	samples := Samples(id)
	if len(samples) < 3 {
		t.Fatalf("%v has %d samples, not at least three", id, len(samples))
	}
	for _, s := range samples {
		t.Run(s.Name, func(t *testing.T) { checkSample(t, s) })
	}
	t.Run("limits", func(t *testing.T) { checkLimits(t, samples) })
	for name, spoil := range bad {
		t.Run(name, func(t *testing.T) {
			w := Samples(id)[1].Message.(M)
			spoil(w)
			if err := w.Validate(); !errors.Is(err, protocol.ErrInvalid) {
				t.Errorf("Validate() = %v, want ErrInvalid", err)
			}
			if _, err := protocol.AppendFrame(nil, Samples(id)[1].Envelope(), w); err == nil {
				t.Error("it was encoded all the same")
			}
		})
	}
}

func checkSample(t *testing.T, s Sample) {
	t.Helper()
	frame, err := s.Frame()
	if err != nil {
		t.Fatal(err)
	}
	header, body := readFrame(t, frame)
	env, got, err := wire.Decode(header, body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Envelope(), env); diff != "" {
		t.Errorf("envelope, -sent +received:\n%s", diff)
	}
	if diff := diffMessages(s.Message, got); diff != "" {
		t.Errorf("-sent +received:\n%s", diff)
	}
	payload, err := postcard.Marshal(s.Message)
	if err != nil {
		t.Fatal(err)
	}
	checkPrefixes(t, s.Message.Tag(), payload)
	checkDomain(t, s.Message)
	info, _ := protocol.LookupTag(s.Message.Tag())
	if worst := len(payload) + headSize; s.Name == "largest" && worst > int(info.Max) {
		t.Errorf("with the longest envelope it has %d bytes, at most %d", worst, info.Max)
	}
}

// diffMessages compares by value, without a word of what is in a secret.
func diffMessages(want, got protocol.Message) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b protocol.SecretV1) bool { return bytes.Equal(a.Reveal(), b.Reveal()) }))
}

func readFrame(t *testing.T, frame []byte) (protocol.Header, []byte) {
	t.Helper()
	frames := protocol.NewFrameReader(bytes.NewReader(frame))
	header, err := frames.Next()
	if err != nil {
		t.Fatal(err)
	}
	body, err := frames.Body()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := frames.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the frame: %v, want io.EOF", err)
	}
	return header, body
}

// checkPrefixes: of a long payload the beginnings are sampled, since each costs as much as it is long.
func checkPrefixes(t *testing.T, tag protocol.Tag, payload []byte) {
	t.Helper()
	step := 1 + len(payload)/1024
	for n := 0; n < len(payload); n += step {
		w, _ := wire.New(tag)
		if err := protocol.Unmarshal(payload[:n], w); !isMalformed(err) {
			t.Fatalf("the first %d of %d bytes: %v, want a violation", n, len(payload), err)
		}
	}
	w, _ := wire.New(tag)
	if err := protocol.Unmarshal(append(bytes.Clone(payload), 0), w); !errors.Is(err, postcard.ErrTrailing) {
		t.Errorf("a byte too many: %v, want %v", err, postcard.ErrTrailing)
	}
}

func isMalformed(err error) bool {
	var v *protocol.Violation
	return errors.As(err, &v) && v.Fault == protocol.FaultMalformed
}

// checkDomain: a wire struct is what its domain value converts to.
func checkDomain(t *testing.T, w protocol.Message) {
	t.Helper()
	d, ok := w.(protocol.Domain)
	if !ok {
		return
	}
	m, err := d.Domain()
	if err != nil {
		t.Fatal(err)
	}
	back, err := wire.FromDomain(m)
	if err != nil {
		t.Fatal(err)
	}
	if unknown := hasUnknown(reflect.ValueOf(w).Elem()); unknown {
		return // an unknown number has become the one that it is read as
	}
	if diff := diffMessages(w, back); diff != "" {
		t.Errorf("-wire +wire of its domain value:\n%s", diff)
	}
}

// hasUnknown reports whether v holds the number 255 of an enumeration or the code of a newer peer.
func hasUnknown(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if hasUnknown(v.Field(i)) {
				return true
			}
		}
	case reflect.Uint8, reflect.Uint32:
		_, named := v.Interface().(interface{ String() string })
		return named && (v.Uint() == 255 || v.Uint() == 1<<32-1)
	}
	return false
}

// BytesAllocated returns how many bytes f allocates, the least of a few runs: others allocate at the same time.
func BytesAllocated(f func()) uint64 {
	least := uint64(1<<64 - 1)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
