package runner

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func newPayloads(t *testing.T) *payloads {
	t.Helper()
	encoder, err := newPayloadEncoder()
	if err != nil {
		t.Fatal(err)
	}
	return &payloads{encoder: encoder}
}

// Whatever a payload is, one frame that states its length decodes to it, and fits.
func TestEveryPayloadDecodesToItself(t *testing.T) {
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	random := rand.NewChaCha8([32]byte{1})
	z := newPayloads(t)
	for n := 1; n <= forge.MaxLogPayload; n = n*3/2 + 1 {
		noise := make([]byte, n)
		_, _ = random.Read(noise)
		for what, p := range map[string][]byte{"zeros": make([]byte, n), "text": bytes.Repeat([]byte("ok  \tpkg/a\t0.1s\n"), n/16+1)[:n], "noise": noise} {
			b, err := z.append([]byte("before"), p)
			if err != nil && n <= forge.MaxLogPayload-storedHead {
				t.Fatalf("%d bytes of %s: %v", n, what, err)
			}
			if err != nil {
				continue
			}
			b = b[len("before"):]
			var head zstd.Header
			if err := head.Decode(b); err != nil || !head.HasFCS || head.FrameContentSize != uint64(n) || len(b) > forge.MaxLogPayload {
				t.Fatalf("%d bytes of %s: %+v, %v in %d bytes", n, what, head, err, len(b))
			}
			if back, err := decoder.DecodeAll(b, nil); err != nil || !bytes.Equal(back, p) {
				t.Fatalf("%d bytes of %s: %d bytes are back, %v", n, what, len(back), err)
			}
		}
	}
}

// Output that does not shrink is hardly ever tried again, and output that does is compressed again soon.
func TestPayloadsThatDoNotShrinkAreSeldomTried(t *testing.T) {
	random := rand.NewChaCha8([32]byte{2})
	noise := make([]byte, 32<<10)
	_, _ = random.Read(noise)
	z := newPayloads(t)
	tries := 0
	for range 1000 {
		if z.rest == 0 {
			tries++
		}
		b, err := z.append(nil, noise)
		if err != nil || len(b) > len(noise)+storedHead {
			t.Fatalf("%d bytes for %d, %v", len(b), len(noise), err)
		}
	}
	if tries > 25 {
		t.Errorf("%d of 1000 payloads were tried", tries)
	}
	text := bytes.Repeat([]byte("a line\n"), 5000)
	soon := 0
	for ; soon <= zstdRest; soon++ {
		if b, err := z.append(nil, text); err != nil || len(b) < len(text)/10 {
			break
		}
	}
	if soon > zstdRest {
		t.Error("text is not compressed again after noise")
	}
	if b, err := z.append(nil, text); err != nil || len(b) > len(text)/10 {
		t.Errorf("%d bytes for %d of text, %v", len(b), len(text), err)
	}
	full := make([]byte, forge.MaxLogPayload)
	_, _ = random.Read(full)
	if b, err := z.append(nil, full); !errors.Is(err, errNotZstd) {
		t.Errorf("a full payload of noise has %d bytes, %v", len(b), err)
	}
}
