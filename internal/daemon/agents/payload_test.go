package agents_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
)

func packer(t *testing.T) func(plain []byte) string {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true)) // which states the length
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = encoder.Close() })
	return func(plain []byte) string { return string(encoder.EncodeAll(plain, nil)) }
}

// The log is what the payloads decode to, and so is its seal.
func TestACompressedLogStreamIsStoredPlain(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p, c := w.running()
	pack := packer(t)
	large := strings.Repeat("a line of a log\n", forge.MaxLogPayload/16)
	log := p.openLogAs(c, 1, logv1.EncodingZstd)
	w.must(log.write(pack([]byte("\xff\x00")), pack([]byte(large)), pack([]byte("end"))))
	p.acked(c.Attempt, 4)
	if text := w.log(c.Attempt); text != "\xff\x00"+large+"end" {
		t.Errorf("%d bytes are stored, not %d", len(text), len(large)+5)
	}
	// One that comes again, in the other encoding, is the same frame.
	again := p.openLog(c, 3)
	w.must(again.write("end", " of it"))
	p.acked(c.Attempt, 5)
	p.finish(c, []byte("\xff\x00"+large+"end of it"), 4)
}

// A payload that is not what it says ends its stream; what came before is stored, and nothing of it.
func TestAPayloadThatDoesNotDecodeEndsItsStream(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p, c := w.running()
	pack := packer(t)
	good := pack(bytes.Repeat([]byte("good "), 1000))
	bomb := pack(make([]byte, 1<<30)[:64<<20])
	stored := []byte("\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello") // of five bytes
	for name, payload := range map[string]string{
		"a bomb": bomb, "plain": "plain", "cut off": good[:len(good)-1], "one byte over": pack(make([]byte, forge.MaxLogPayload+1)),
		"two frames": good + good, "no length": "\x28\xb5\x2f\xfd\x00\x58\x29\x00\x00hello", "another length": strings.Replace(string(stored), "\x20\x05", "\x20\x06", 1),
		"too long for its length": strings.Replace(string(stored), "\x20\x05", "\x20\x04", 1),
		"nothing":                 pack(nil) + "\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00", "a frame to skip": "\x50\x2a\x4d\x18\x01\x00\x00\x00x",
	} {
		if len(payload) > forge.MaxLogPayload {
			payload = payload[:forge.MaxLogPayload]
		}
		next := forge.LogSeq(1)
		if p.acks[c.Attempt] > 0 {
			next = p.acks[c.Attempt]
		}
		log := p.openLogAs(c, next, logv1.EncodingZstd)
		w.must(log.write(good))
		p.acked(c.Attempt, next+1)
		_ = log.write(payload)
		if code := log.reset(); code != protocol.ResetMalformed {
			t.Errorf("%s: reset with %v", name, code)
		}
		if text := w.log(c.Attempt); len(text) != int(next)*5000 {
			t.Errorf("%s: %d bytes are stored of %d frames", name, len(text), next)
		}
	}
	log := p.openLogAs(c, p.acks[c.Attempt], logv1.EncodingZstd)
	w.must(log.write(string(stored)))
	p.acked(c.Attempt, p.acks[c.Attempt]+1)
	if text := w.log(c.Attempt); !strings.HasSuffix(text, "good hello") {
		t.Errorf("after that: %q", text[max(0, len(text)-20):])
	}
}

// A compressed stream needs the feature.
func TestACompressedLogStreamIsRefusedWhereItWasNotAgreed(t *testing.T) {
	w := newWorld(t)
	w.begin()
	runner := w.runner(1)
	p := w.process(runner)
	p.terms = protocol.Terms{Versions: protocol.Supported(), Features: protocol.FeatureSet{protocol.FeatureLogResume}}
	p.connect()
	w.place(w.job(), runner)
	c := p.take()
	log := p.openLogAs(c, 1, logv1.EncodingZstd)
	_ = log.write(packer(t)([]byte("good in itself")))
	if code := log.reset(); code != protocol.ResetMalformed {
		t.Errorf("reset with %v", code)
	}
	plain := p.openLog(c, 1)
	w.must(plain.write("plain"))
	p.acked(c.Attempt, 2)
	if text := w.log(c.Attempt); text != "plain" {
		t.Errorf("stored is %q", text)
	}
}
