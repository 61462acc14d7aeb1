package keeper

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestAMessageIsReadInWhateverPiecesItComes(t *testing.T) {
	step := uint16(7)
	want := []Request{{Go: &step}, {Stop: forge.CancelUser}, {Start: &Start{Secrets: []Secret{{Env: "A", Value: []byte("\xff\x00")}}}}}
	var all bytes.Buffer
	for i := range want {
		if err := writeMessage(&all, &want[i]); err != nil {
			t.Fatal(err)
		}
	}
	for size := 1; size < all.Len(); size++ {
		m := newMessages(nil)
		var got []Request
		for piece := all.Bytes(); len(piece) > 0; piece = piece[min(size, len(piece)):] {
			m.feed(piece[:min(size, len(piece))])
			for {
				var q Request
				ok, err := m.take(&q)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				got = append(got, q)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("pieces of %d bytes: %s", size, diff)
		}
	}
}

func TestAMessageThatIsTooLongIsRefusedBeforeItIsRead(t *testing.T) {
	m := newMessages(nil)
	m.feed(binary.BigEndian.AppendUint32(nil, maxMessage+1))
	if _, err := m.take(&Request{}); !errors.Is(err, errMessage) {
		t.Errorf("take: %v", err)
	}
	big := Request{Start: &Start{Secrets: []Secret{{Value: make([]byte, maxMessage)}}}}
	if err := writeMessage(io.Discard, &big); !errors.Is(err, errMessage) {
		t.Errorf("write: %v", err)
	}
}

func FuzzMessagesNeverPanicNorReadBeyondTheirBound(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Add([]byte("\x00\x00\x00\x09{\"Stop\":1}"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		m := newMessages(bytes.NewReader(text))
		for {
			var q Request
			if m.next(&q) != nil {
				return
			}
		}
	})
}
