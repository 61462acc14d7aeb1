package remote

import (
	"context"
	"errors"
	"io"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
)

// intake takes runs from one stream and acknowledges them. One goroutine uses it.
type intake struct {
	v      *voice
	coder  *coder
	count  *counters
	memory memory
	acks   bool

	unacked int // encoded bytes
	chunk   []byte
}

// chunkBytes is the memory of an intake besides what it takes from memory.
const chunkBytes = 64 << 10

func newIntake(v *voice, coder *coder, count *counters, m memory) *intake {
	return &intake{
		v: v, coder: coder, count: count, memory: m,
		acks: v.link.Features().Has(protocol.FeatureCASRange), chunk: make([]byte, chunkBytes),
	}
}

// fault is what the peer did wrong on a stream, with the code that it costs.
type fault struct {
	code protocol.ResetCode
	why  string
}

func (f *fault) Error() string { return f.why }

var (
	errGap     = &fault{protocol.ResetBadRange, "a run that does not go on where the last one ended"}
	errEncoded = &fault{protocol.ResetMalformed, "a compressed run that was not negotiated"}
	errBomb    = &fault{protocol.ResetMalformed, "a run that does not decode to its length"}
	errTurn    = &fault{protocol.ResetMalformed, "a message that does not belong here"}
	errFlood   = &fault{protocol.ResetLimit, "more requests than may wait"}
	errInside  = &fault{protocol.ResetMalformed, "an end within a run"}
)

// check looks at a header before anything of its run is read.
func (i *intake) check(h *casv1.CasHeaderV1, at uint64) error {
	switch {
	case h.Offset != at:
		return errGap
	case !i.v.link.Features().Has(h.Encoding.Needs()):
		return errEncoded
	}
	return nil
}

// into reads the bytes of a run into memory that is as long as the run.
func (i *intake) into(ctx context.Context, h *casv1.CasHeaderV1, dst []byte) error {
	if h.Encoding == casv1.EncodingPlain {
		if err := i.raw(dst); err != nil {
			return err
		}
	} else if err := i.inflate(ctx, h, dst); err != nil {
		return err
	}
	i.took(h)
	return nil
}

func (i *intake) inflate(ctx context.Context, h *casv1.CasHeaderV1, dst []byte) error {
	give, err := i.memory.take(ctx, int(h.Encoded)) //nolint:gosec // at most about MaxRun, as Validate says
	if err != nil {
		return err
	}
	defer give()
	encoded := lend(h.Encoded)
	defer encoded.back()
	if err := i.raw(encoded.b); err != nil {
		return err
	}
	if i.coder.decode(h.Encoding, dst, encoded.b) != nil {
		return errBomb
	}
	return nil
}

// through reads the bytes of a run and writes them to w as they come. An error of w is a *localError.
func (i *intake) through(ctx context.Context, h *casv1.CasHeaderV1, w io.Writer) error {
	if h.Encoding != casv1.EncodingPlain {
		give, err := i.memory.take(ctx, int(h.Length)) //nolint:gosec // at most MaxRun
		if err != nil {
			return err
		}
		defer give()
		plain := lend(h.Length)
		defer plain.back()
		if err := i.into(ctx, h, plain.b); err != nil {
			return err
		}
		return local(w.Write(plain.b))
	}
	for left := h.Length; left > 0; {
		b := i.chunk[:min(left, chunkBytes)]
		if err := i.raw(b); err != nil {
			return err
		}
		if err := local(w.Write(b)); err != nil {
			return err
		}
		left -= uint64(len(b))
	}
	i.took(h)
	return nil
}

func local(_ int, err error) error {
	if err != nil {
		return &localError{err}
	}
	return nil
}

// raw reads raw bytes. The end of the stream may not come among them.
func (i *intake) raw(b []byte) error {
	err := i.v.raw(b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errInside
	}
	return err
}

func (i *intake) took(h *casv1.CasHeaderV1) {
	i.unacked += int(h.Encoded) //nolint:gosec // at most about MaxRun
	i.count.received.Add(h.Length)
	i.count.wireGot.Add(h.Encoded)
}

// ack says what is held of the object whose run came last, where that is due.
func (i *intake) ack(ref digest.Ref, held uint64) error {
	if !i.acks || i.unacked == 0 || i.unacked < ackAfter && i.v.in.Buffered() > 0 {
		return nil
	}
	i.unacked = 0
	return i.v.say(stateOf(ref, held))
}
