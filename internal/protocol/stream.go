package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/postcard"
)

// StreamKind says what a stream is for (09§40).
type StreamKind uint8

// The kinds. 0 and everything from 128 on are reserved.
const (
	StreamControl     StreamKind = 1
	StreamLog         StreamKind = 2
	StreamCASDownload StreamKind = 3
	StreamCASUpload   StreamKind = 4
	StreamDiagnostic  StreamKind = 5 // reserved
	StreamSecret      StreamKind = 6
	StreamDevice      StreamKind = 7 // reserved
	StreamSigning     StreamKind = 8 // reserved
)

// StreamInfo is what is known of a kind of streams. All streams are opened by the peer of the daemon.
type StreamInfo struct {
	Kind   StreamKind
	Name   string
	Schema uint8 // of its header; 0 where this build opens none
	Family Family
	When   Stage // states of the connection in which it may be opened
}

var streams = []StreamInfo{
	{StreamControl, "Control", 1, FamilySession, whileNegotiating},
	{StreamLog, "Log", 1, FamilyLog, whileWorking},
	{StreamCASDownload, "CasDownload", 1, FamilyCAS, whileWorking},
	{StreamCASUpload, "CasUpload", 1, FamilyCAS, whileWorking},
	{StreamDiagnostic, "Diagnostic", 0, FamilyHealth, 0},
	{StreamSecret, "Secret", 1, FamilySecret, whileWorking},
	{StreamDevice, "Device", 0, FamilyDevice, 0},
	{StreamSigning, "Signing", 0, FamilySigning, 0},
}

// StreamKinds returns every kind, ascending.
func StreamKinds() []StreamInfo { return append([]StreamInfo(nil), streams...) }

// Info returns what is known of a kind.
func (k StreamKind) Info() (StreamInfo, bool) {
	if k == 0 || int(k) > len(streams) {
		return StreamInfo{}, false
	}
	return streams[k-1], true
}

func (k StreamKind) String() string {
	if info, ok := k.Info(); ok {
		return info.Name
	}
	return fmt.Sprintf("stream kind %d", uint8(k))
}

// StreamHeaderBytes is the length of the fixed part of a stream's header.
const StreamHeaderBytes = 8

var streamMagic = [4]byte{'F', 'Y', '1', 'S'}

// StreamHeader begins a stream: "FY1S" | kind u8 | schema u8 | length u16, big-endian, and that many bytes of Postcard.
type StreamHeader struct {
	Kind   StreamKind
	Schema uint8
	Body   []byte
}

// StreamHead is the Postcard part of a stream's header: a pointer to the wire struct of its kind.
type StreamHead interface{ Validate() error }

// ControlHeaderV1 is the head of the control stream, which has nothing to say: Hello follows.
type ControlHeaderV1 struct{}

// Validate implements StreamHead.
func (*ControlHeaderV1) Validate() error { return nil }

// AppendStreamHeader appends the header of a stream to dst. It is written at once: a peer sees no stream before its
// first byte.
func AppendStreamHeader(dst []byte, kind StreamKind, head StreamHead) ([]byte, error) {
	info, ok := kind.Info()
	if !ok || info.Schema == 0 {
		return dst, fmt.Errorf("encode stream header: %v is not opened by this build", kind)
	}
	if err := head.Validate(); err != nil {
		return dst, fmt.Errorf("encode header of %v: %w", kind, err)
	}
	out := append(append(dst, streamMagic[:]...), byte(kind), info.Schema, 0, 0)
	out, err := postcard.Append(out, head)
	if err != nil {
		return dst, fmt.Errorf("encode header of %v: %w", kind, err)
	}
	length := len(out) - len(dst) - StreamHeaderBytes
	if length > MaxStreamHeader {
		return dst, fmt.Errorf("encode header of %v: %d bytes, at most %d", kind, length, MaxStreamHeader)
	}
	binary.BigEndian.PutUint16(out[len(dst)+6:], uint16(length))
	return out, nil
}

// ReadStreamHeader reads the header of a stream that the peer opened. A header that is wrong is a *Violation of the
// stream alone; io.ErrUnexpectedEOF, or io.EOF before the first byte, mean that the peer gave up.
func ReadStreamHeader(r io.Reader) (StreamHeader, error) {
	var raw [StreamHeaderBytes]byte
	if _, err := io.ReadFull(r, raw[:]); err != nil {
		return StreamHeader{}, fmt.Errorf("read stream header: %w", err)
	}
	h := StreamHeader{Kind: StreamKind(raw[4]), Schema: raw[5]}
	length := binary.BigEndian.Uint16(raw[6:])
	if err := h.check([4]byte(raw[:]), length); err != nil {
		return h, &Violation{Fault: FaultHeader, Stream: h.Kind, Err: err}
	}
	h.Body = make([]byte, length)
	if _, err := io.ReadFull(r, h.Body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return h, fmt.Errorf("read stream header: %w", err)
	}
	return h, nil
}

func (h StreamHeader) check(magic [4]byte, length uint16) error {
	info, ok := h.Kind.Info()
	switch {
	case magic != streamMagic:
		return errors.New("it does not begin with FY1S")
	case !ok || info.Schema == 0:
		return errors.New("its kind is not known")
	case h.Schema != info.Schema:
		return errors.New("the schema of its header is not known")
	case length > MaxStreamHeader:
		return fmt.Errorf("its header has %d bytes, at most %d", length, MaxStreamHeader)
	}
	return nil
}

// Decode decodes and validates the Postcard part into the wire struct of the kind.
func (h StreamHeader) Decode(head StreamHead) error {
	err := postcard.Options{MaxDepth: MaxDepth, MaxAlloc: MaxStreamHeader}.Unmarshal(h.Body, head)
	if err == nil {
		err = head.Validate()
	}
	if err != nil {
		return &Violation{Fault: FaultHeader, Stream: h.Kind, Err: err}
	}
	return nil
}

// BadStreams counts wrong stream headers of one connection. Its zero value has counted none.
type BadStreams struct {
	at [BadStreamsPerMinute]forge.Instant
}

// Note counts one more and reports whether there were BadStreamsPerMinute within a minute, which closes the connection
// with PROTOCOL. now is after the boot of this machine, so it is not zero.
func (b *BadStreams) Note(now forge.Instant) bool {
	copy(b.at[:], b.at[1:])
	b.at[len(b.at)-1] = now
	return b.at[0] != 0 && now.Sub(b.at[0]) <= minute
}
