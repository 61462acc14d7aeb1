package protocol_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/protocoltest"
)

func someFrame(t testing.TB, id protocol.TypeID) []byte {
	t.Helper()
	frame, err := protocoltest.Samples(id)[1].Frame()
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

// TestAFrameIsLaidOutAsDocumented is byte for byte, so that nothing else has to be trusted.
func TestAFrameIsLaidOutAsDocumented(t *testing.T) {
	re := [16]byte{0: 0xbb}
	env := protocol.EnvelopeV1{
		Protocol: protocol.Version{Major: 1, Minor: 300}, MessageID: [16]byte{0: 0xaa}, CorrelationID: &re, SentAt: 64,
		Trace: &protocol.TraceV1{TraceID: [16]byte{0: 0xcc}, SpanID: [8]byte{0: 0xdd}},
	}
	got, err := protocol.AppendFrame(nil, env, &protocol.ErrorV1{Code: 4, Retry: 3, Text: "hi"})
	want := "00000044" + "0802" + "01" + "00" + // length, type, schema, reserved: big-endian
		"01" + "ac02" + // major, minor: varints
		"aa000000000000000000000000000000" + "01bb000000000000000000000000000000" + // ids, the second an option
		"8001" + // 64, zigzag
		"01" + "cc000000000000000000000000000000" + "dd00000000000000" + // trace, an option
		"04" + "03" + "026869" // the payload
	if err != nil || hex.EncodeToString(got) != want {
		t.Errorf("%x, %v\nwant %s", got, err, want)
	}
}

func TestAnOversizedFrameIsRefusedBeforeItsBodyIsRead(t *testing.T) {
	for _, info := range protocol.Registry() {
		var raw [protocol.HeaderBytes]byte
		binary.BigEndian.PutUint16(raw[4:], uint16(info.ID))
		raw[6] = info.Schema
		binary.BigEndian.PutUint32(raw[:], info.Max)
		if h, err := protocol.ParseHeader(raw); err != nil || h.Length != info.Max {
			t.Errorf("%s at its limit: %v, %v", info.Name, h, err)
		}
		binary.BigEndian.PutUint32(raw[:], info.Max+1)
		_, err := protocol.NewFrameReader(bytes.NewReader(raw[:])).Next()
		var v *protocol.Violation
		if !errors.As(err, &v) || v.Fault != protocol.FaultTooLarge || v.Reason() != forge.CloseFrameTooLarge {
			t.Errorf("%s one past its limit: %v, want a violation", info.Name, err)
		}
	}
}

func TestAnUnknownTypeGetsLittleRoom(t *testing.T) {
	for _, tag := range []string{"0303" + "01", "0201" + "02", "0900" + "01", "ffff" + "ff"} {
		raw, err := hex.DecodeString("00000801" + tag + "00")
		if err != nil {
			t.Fatal(err)
		}
		var v *protocol.Violation
		if _, err := protocol.ParseHeader([protocol.HeaderBytes]byte(raw)); !errors.As(err, &v) || v.Fault != protocol.FaultTooLarge {
			t.Errorf("%s: %v", tag, err)
		}
	}
}

// TestAnAnnouncedBodyCostsNothingUntilItComes counts what a peer can make a reader allocate by announcing much and
// sending little.
func TestAnAnnouncedBodyCostsNothingUntilItComes(t *testing.T) {
	header := [protocol.HeaderBytes]byte{0, 4, 0, 0, 0x01, 0x10, 1, 0} // Register, 256 KiB
	sent := append(header[:], 1, 2, 3)
	used := testing.AllocsPerRun(10, func() {
		frames := protocol.NewFrameReader(bytes.NewReader(sent))
		if _, err := frames.Next(); err != nil {
			t.Fatal(err)
		}
		if _, err := frames.Body(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%v, want io.ErrUnexpectedEOF", err)
		}
	})
	bytesUsed := protocoltest.BytesAllocated(func() {
		frames := protocol.NewFrameReader(bytes.NewReader(sent))
		_, _ = frames.Next()
		_, _ = frames.Body()
	})
	if bytesUsed > raceFactor*20<<10 {
		t.Errorf("%d bytes in %v allocations, want at most 20 KiB", bytesUsed, used)
	}
}

func TestFramesArriveWholeHoweverTheyAreCut(t *testing.T) {
	types := []protocol.TypeID{protocol.TypeHeartbeat, protocol.TypeResume, protocol.TypeLogFrame}
	var stream []byte
	for _, id := range types {
		stream = append(stream, someFrame(t, id)...)
	}
	for name, r := range map[string]io.Reader{
		"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		"end with data": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		frames := protocol.NewFrameReader(r)
		for _, id := range types {
			h, err := frames.Next()
			if err != nil || h.Tag.Type != id {
				t.Fatalf("%s: %v, %v; want %v", name, h, err, id)
			}
			body, err := frames.Body()
			if err != nil || !bytes.Equal(body, someFrame(t, id)[protocol.HeaderBytes:]) {
				t.Errorf("%s: %v: %d bytes, %v", name, id, len(body), err)
			}
		}
		if _, err := frames.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v, want io.EOF", name, err)
		}
	}
}

func TestAStreamThatEndsWithinAFrameIsNoCleanEnd(t *testing.T) {
	frame := someFrame(t, protocol.TypeLeaseAccept)
	for n := 1; n < len(frame); n++ {
		frames := protocol.NewFrameReader(bytes.NewReader(frame[:n]))
		_, err := frames.Next()
		if err == nil {
			_, err = frames.Body()
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes: %v, want io.ErrUnexpectedEOF", n, len(frame), err)
		}
	}
}

func TestTheReservedByteIsZero(t *testing.T) {
	frame := someFrame(t, protocol.TypeLeaseAccept)
	frame[7] = 1
	var v *protocol.Violation
	if _, err := protocol.NewFrameReader(bytes.NewReader(frame)).Next(); !errors.As(err, &v) || v.Reason() != forge.CloseMalformed {
		t.Errorf("%v, want MALFORMED", err)
	}
}

func TestWipeLeavesNothingOfASecretInTheBuffer(t *testing.T) {
	frames := protocol.NewFrameReader(bytes.NewReader(someFrame(t, protocol.TypeSecretMaterial)))
	if _, err := frames.Next(); err != nil {
		t.Fatal(err)
	}
	body, err := frames.Body()
	if err != nil || !bytes.Contains(body, []byte(protocoltest.SecretSample)) {
		t.Fatalf("the sample has no secret in it: %v", err)
	}
	frames.Wipe()
	if bytes.Contains(body, []byte(protocoltest.SecretSample)) {
		t.Error("the secret is still there")
	}
}

// FuzzFrameReader: whatever the stream, the reader finds the frames that are in it and nothing else: each fits its type,
// and what is refused is refused by its header or ends too early.
func FuzzFrameReader(f *testing.F) {
	for _, info := range protocol.Registry() {
		frame := someFrame(f, info.ID)
		f.Add(frame[:min(len(frame), 1<<10)])
		f.Add(append(bytes.Clone(frame[:min(len(frame), 512)]), frame...))
		f.Add(append(bytes.Clone(frame), frame...))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 1, 1, 0})
	f.Add([]byte{0, 0, 0, 0, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames := protocol.NewFrameReader(bytes.NewReader(stream))
		for rest := stream; ; {
			h, err := frames.Next()
			want, good := headOf(rest)
			if (err == nil) != good || good && h != want {
				t.Fatalf("%v, %v; the stream goes on with %v, %v", h, err, want, good)
			}
			if !good {
				return
			}
			rest = rest[protocol.HeaderBytes:]
			body, err := frames.Body()
			if int(h.Length) > len(rest) {
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("%d of %d bytes are there: %v", len(rest), h.Length, err)
				}
				return
			}
			if err != nil || !bytes.Equal(body, rest[:h.Length]) {
				t.Fatalf("a body of %d bytes: %d bytes, %v", h.Length, len(body), err)
			}
			rest = rest[h.Length:]
			_, _, _ = protocol.Open(h.Tag, body)
		}
	})
}

// headOf reads a header a second way.
func headOf(stream []byte) (protocol.Header, bool) {
	if len(stream) < 8 || stream[7] != 0 {
		return protocol.Header{}, false
	}
	h := protocol.Header{
		Length: uint32(stream[0])<<24 | uint32(stream[1])<<16 | uint32(stream[2])<<8 | uint32(stream[3]),
		Tag:    protocol.Tag{Type: protocol.TypeID(stream[4])<<8 | protocol.TypeID(stream[5]), Schema: stream[6]},
	}
	most := uint32(2048)
	for _, info := range protocol.Registry() {
		if info.ID == h.Tag.Type && info.Schema == h.Tag.Schema {
			most = info.Max
		}
	}
	return h, h.Length <= most
}
