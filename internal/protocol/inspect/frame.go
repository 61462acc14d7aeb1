package inspect

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
	"github.com/forgeyard/forgeyard/postcard"
)

// Error says what is wrong with an input, where, and what to do.
type Error struct {
	Offset int64  // of the frame, header or field, from the start of the input
	What   string // in one sentence, without anything of the input
	Do     string
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("at byte %d: %s; %s", e.Offset, e.What, e.Do)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// What to do.
const (
	doRegistry = "compare with the registry in protocols/internal/agent-daemon.md: another build may know it"
	doWhole    = "give the whole frame: 8 bytes of header and as many of body as it says"
	doCapture  = "capture the stream from its first byte"
	doSender   = "the sender does not keep to the wire struct of this build: compare its schema and version"
)

// Frame takes one whole frame apart.
func Frame(raw []byte) (Node, error) {
	in := &counter{r: strings.NewReader(string(raw))}
	node, _, err := frame(in, protocol.NewFrameReader(in))
	if errors.Is(err, io.EOF) {
		return node, &Error{What: "there is no frame", Do: doWhole, Err: err}
	}
	if err == nil && in.n < int64(len(raw)) {
		return node, &Error{Offset: in.n, What: "there are bytes behind the frame", Do: doWhole}
	}
	return node, err
}

// Body takes the body of a frame apart whose tag is known from elsewhere.
func Body(tag protocol.Tag, raw []byte) (Node, error) {
	node, _, err := body(protocol.Header{Length: uint32(len(raw)), Tag: tag}, raw, 0)
	return node, err
}

// frame reads the next frame. io.EOF means that there is none.
func frame(in *counter, frames *protocol.FrameReader) (Node, protocol.Message, error) {
	start := in.n
	header, err := frames.Next()
	if err != nil {
		return Node{}, nil, readError(start, err)
	}
	raw, err := frames.Body()
	if err != nil {
		return Node{}, nil, readError(start, err)
	}
	defer frames.Wipe()
	return body(header, raw, start+protocol.HeaderBytes)
}

func readError(start int64, err error) error {
	var v *protocol.Violation
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Offset: start, What: "the input ends within a frame that begins here", Do: doWhole, Err: err}
	case errors.As(err, &v):
		return &Error{Offset: start, What: v.Error(), Do: doRegistry, Err: err}
	default:
		return &Error{Offset: start, What: "the input cannot be read", Do: "try again", Err: err}
	}
}

func body(header protocol.Header, raw []byte, at int64) (Node, protocol.Message, error) {
	env, message, err := wire.Decode(header, raw)
	if err != nil {
		return Node{}, nil, bodyError(header, raw, at, err)
	}
	info, _ := protocol.LookupTag(header.Tag)
	return Node{Name: info.Name, Shape: Struct, Kids: []Node{
		{Name: "Type", Shape: Text, Value: fmt.Sprintf("%04x", uint16(info.ID))},
		{Name: "Schema", Shape: Plain, Value: fmt.Sprint(info.Schema)},
		{Name: "Bytes", Shape: Plain, Value: fmt.Sprint(len(raw))},
		Tree("Envelope", env),
		Tree("Payload", message),
	}}, message, nil
}

// bodyError finds the place: the codec counts from the start of the envelope or of the payload.
func bodyError(header protocol.Header, raw []byte, at int64, err error) error {
	e := &Error{Offset: at, What: err.Error(), Do: doSender, Err: err}
	var v *protocol.Violation
	if errors.As(err, &v) && v.Fault == protocol.FaultUnsupported {
		e.Do = doRegistry
	}
	var codec *postcard.Error
	if !errors.As(err, &codec) || codec.Offset < 0 {
		return e
	}
	e.Offset += int64(codec.Offset)
	if _, payload, err := protocol.Open(header.Tag, raw); err == nil {
		e.Offset += int64(len(raw) - len(payload))
	}
	return e
}

// Stream takes a captured stream apart, from its header on, and calls show with each part. Bytes of objects are counted
// and left out.
func Stream(r io.Reader, show func(Node)) error {
	in := &counter{r: r}
	kind, err := streamHeader(in, show)
	if err != nil {
		return err
	}
	frames := protocol.NewFrameReader(in)
	for {
		node, message, err := frame(in, frames)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		show(node)
		if err := checkStream(kind, message, in.n); err != nil {
			return err
		}
		if run, ok := message.(*casv1.CasHeaderV1); ok {
			if err := skip(in, run.Encoded, show); err != nil {
				return err
			}
		}
	}
}

func streamHeader(in *counter, show func(Node)) (protocol.StreamKind, error) {
	h, err := protocol.ReadStreamHeader(in)
	if err != nil {
		return 0, &Error{What: err.Error(), Do: doCapture, Err: err}
	}
	head, ok := wire.NewStreamHead(h.Kind)
	if !ok {
		return 0, &Error{Offset: 4, What: "the kind of the stream is not known", Do: doRegistry}
	}
	if err := h.Decode(head); err != nil {
		return 0, &Error{Offset: protocol.StreamHeaderBytes, What: err.Error(), Do: doSender, Err: err}
	}
	show(Node{Name: "Stream", Shape: Struct, Kids: []Node{
		{Name: "Kind", Shape: Text, Value: h.Kind.String()},
		{Name: "Schema", Shape: Plain, Value: fmt.Sprint(h.Schema)},
		Tree("Header", head),
	}})
	return h.Kind, nil
}

// checkStream finds a message on a kind of stream where it may not be.
func checkStream(kind protocol.StreamKind, m protocol.Message, end int64) error {
	info, _ := protocol.LookupTag(m.Tag())
	if info.Streams.Has(kind) {
		return nil
	}
	return &Error{
		Offset: end, What: fmt.Sprintf("%s may not travel on a %v stream", info.Name, kind),
		Do: "the frame that ends here is a violation of its sender's",
	}
}

func skip(in *counter, n uint64, show func(Node)) error {
	start := in.n
	if _, err := io.CopyN(io.Discard, in, int64(n)); err != nil {
		return &Error{Offset: start, What: "the input ends within the bytes of an object", Do: doWhole, Err: err}
	}
	if n > 0 {
		show(Node{Name: "Object bytes", Shape: Plain, Value: fmt.Sprint(n)})
	}
	return nil
}

// counter counts what was read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
