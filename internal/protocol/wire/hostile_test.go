package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
	"github.com/forgeyard/forgeyard/postcard"
)

func TestEveryRegisteredTypeHasAWireStruct(t *testing.T) {
	tags := wire.Tags()
	registry := protocol.Registry()
	if len(tags) != len(registry) {
		t.Fatalf("%d wire structs, %d registered types", len(tags), len(registry))
	}
	for i, info := range registry {
		if want := (protocol.Tag{Type: info.ID, Schema: info.Schema}); tags[i] != want {
			t.Errorf("%v, want %v", tags[i], want)
		}
		if i > 0 && registry[i-1].ID >= info.ID {
			t.Errorf("%v does not stand in its order", info.ID)
		}
		if info.Max > protocol.MaxBody {
			t.Errorf("%v may be larger than any body", info.ID)
		}
	}
	if _, ok := wire.New(protocol.Tag{Type: protocol.TypeHello, Schema: 2}); ok {
		t.Error("an unknown schema has a wire struct")
	}
}

// TestDecodingAllocatesNoMoreThanItsTypeMay gives each type the dearest inputs there are: a message with every list full
// whose last byte is missing, and as many bytes as the type may have that read as counts and small numbers.
func TestDecodingAllocatesNoMoreThanItsTypeMay(t *testing.T) {
	for _, info := range protocol.Registry() {
		tag := protocol.Tag{Type: info.ID, Schema: info.Schema}
		largest, err := postcard.Marshal(protocoltest.Samples(info.ID)[2].Message)
		if err != nil {
			t.Fatal(err)
		}
		inputs := [][]byte{
			largest[:max(len(largest)-1, 0)],
			bytes.Repeat([]byte{1}, int(info.Max)),
			bytes.Repeat([]byte{0x7f}, int(info.Max)),
			append(bytes.Repeat([]byte{0xff}, 9), bytes.Repeat([]byte{1}, int(info.Max)-9)...),
		}
		for i, input := range inputs {
			used := protocoltest.BytesAllocated(func() {
				w, _ := wire.New(tag)
				_ = protocol.Unmarshal(input, w)
			})
			if most := uint64(16*info.Max) + uint64(len(input)) + 8<<10; used > most {
				t.Errorf("%s, input %d: %d bytes allocated, at most %d", info.Name, i, used, most)
			}
		}
	}
}

// TestMalformedFramesAreViolationsAndNeverPanics turns every bit of short frames, one at a time.
func TestMalformedFramesAreViolationsAndNeverPanics(t *testing.T) {
	for _, info := range protocol.Registry() {
		frame, err := protocoltest.Samples(info.ID)[0].Frame()
		if err != nil {
			t.Fatal(err)
		}
		for bit := range 8 * min(len(frame), 400) {
			turned := bytes.Clone(frame)
			turned[bit/8] ^= 1 << (bit % 8)
			checkHostile(t, turned)
		}
	}
}

func checkHostile(t *testing.T, stream []byte) {
	t.Helper()
	frames := protocol.NewFrameReader(bytes.NewReader(stream))
	header, err := frames.Next()
	if err != nil {
		return
	}
	body, err := frames.Body()
	if err != nil {
		return
	}
	var v *protocol.Violation
	if _, err = wire.DecodeFrame(header, body); err != nil && !errors.As(err, &v) {
		t.Errorf("%v: %v is no violation", header.Tag, err)
	}
}

func TestWhatWasNotNegotiatedIsUnsupportedAndSaysWhichRequestItWas(t *testing.T) {
	frame, err := protocoltest.Samples(protocol.TypeLeaseAccept)[1].Frame()
	if err != nil {
		t.Fatal(err)
	}
	want := protocoltest.Samples(protocol.TypeLeaseAccept)[1].Envelope().ID()
	for _, tag := range []protocol.Tag{{Type: 0x0303, Schema: 1}, {Type: 0x0fff, Schema: 1}, {Type: protocol.TypeLeaseAccept, Schema: 2}} {
		binary.BigEndian.PutUint16(frame[4:], uint16(tag.Type))
		frame[6] = tag.Schema
		header, err := protocol.ParseHeader([protocol.HeaderBytes]byte(frame))
		if err != nil {
			t.Fatal(err)
		}
		_, err = wire.DecodeFrame(header, frame[protocol.HeaderBytes:])
		var v *protocol.Violation
		if !errors.As(err, &v) || v.Reason() != forge.CloseUnsupported || v.Re != want {
			t.Errorf("%v: %v, about %v", tag, err, v)
		}
	}
	if answer, err := protocol.Unsupported().Domain(); err != nil || answer.(*forge.Error).Code != forge.ErrorUnsupported {
		t.Errorf("the answer to it is %v, %v", answer, err)
	}
}

func TestAMessageKeepsItsIDWhenItIsSentAgain(t *testing.T) {
	f := forge.Frame{ID: completion().Message, Body: completion()}
	var sent [][]byte
	for _, at := range []int64{1_700_000_000_000, 1_700_000_050_000} {
		raw, err := wire.EncodeFrame(nil, f, protocol.Current, at)
		if err != nil {
			t.Fatal(err)
		}
		header, err := protocol.ParseHeader([protocol.HeaderBytes]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.DecodeFrame(header, raw[protocol.HeaderBytes:])
		if err != nil || got.ID != f.ID || got.Body.(*forge.Completion).Message != f.ID {
			t.Errorf("%v, %v", got.ID, err)
		}
		sent = append(sent, raw)
	}
	if bytes.Equal(sent[0], sent[1]) || len(sent[0]) != len(sent[1]) {
		t.Error("the two transmissions differ in more or less than their time")
	}
	f.ID = id[forge.MessageID](77)
	raw, err := wire.EncodeFrame(nil, f, protocol.Current, 0)
	if err != nil {
		t.Fatal(err)
	}
	header, _ := protocol.ParseHeader([protocol.HeaderBytes]byte(raw))
	if _, err := wire.DecodeFrame(header, raw[protocol.HeaderBytes:]); err == nil {
		t.Error("a completion under another id than its own was taken")
	}
}

func TestAnAnswerNamesItsRequest(t *testing.T) {
	ask, answer := id[forge.MessageID](1), id[forge.MessageID](2)
	for _, f := range []forge.Frame{
		{ID: ask, Body: &forge.LeaseAccept{Context: attempt(nil), Nonce: 1}},
		{ID: answer, Re: ask, Body: &forge.LeaseAcceptAck{Lease: id[forge.LeaseID](3), Nonce: 1, Refused: forge.RefusedExpired}},
	} {
		raw, err := wire.EncodeFrame(nil, f, protocol.Current, 0)
		if err != nil {
			t.Fatal(err)
		}
		header, _ := protocol.ParseHeader([protocol.HeaderBytes]byte(raw))
		if got, err := wire.DecodeFrame(header, raw[protocol.HeaderBytes:]); err != nil || got.Re != f.Re || got.ID != f.ID {
			t.Errorf("%v re %v, %v", got.ID, got.Re, err)
		}
	}
}
