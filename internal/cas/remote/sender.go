package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
)

// sender writes objects on one stream. One goroutine sends; another may say what was acknowledged.
type sender struct {
	v     *voice
	pace  *pacer
	coder *coder
	zstd  bool
	count *counters

	run, room []byte // of one run: plain, and encoded

	mu   sync.Mutex
	away []away // not acknowledged, in the order in which they left
	over bool
}

// away is a run that was not acknowledged yet.
type away struct {
	ref    digest.Ref
	end    uint64
	flight *flight
}

// senderBytes is the memory of a sender.
const senderBytes = 2 * mostRun

func newSender(v *voice, pace *pacer, coder *coder, count *counters) *sender {
	features := v.link.Features()
	if !features.Has(protocol.FeatureCASRange) {
		pace = nil // nothing is acknowledged
	}
	return &sender{
		v: v, pace: pace, coder: coder, zstd: features.Has(protocol.FeatureCASZstd), count: count,
		run: make([]byte, mostRun), room: make([]byte, 0, mostRun),
	}
}

// localError is an error of this end: of what is read from or stored into here. Trying again over another connection does
// not help.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

// send writes what is left of an object from an offset on, to which r is wound. r verifies the whole: the last run
// leaves only after r has said io.EOF. Errors of r are a *localError.
func (s *sender) send(ctx context.Context, ref digest.Ref, from uint64, r io.Reader) error {
	ch := choice{zstd: s.zstd}
	for {
		n := int(min(ref.Bytes-from, uint64(s.pace.run()))) //nolint:gosec // at most mostRun
		run := s.run[:n]
		if _, err := io.ReadFull(r, run); err != nil {
			return &localError{short(ref, err)}
		}
		last := from+uint64(n) == ref.Bytes
		if last {
			if err := ends(ref, r); err != nil {
				return &localError{err}
			}
		}
		if err := s.write(ctx, ref, from, run, &ch); err != nil {
			return err
		}
		if from += uint64(n); last {
			s.count.objects.Add(1)
			return nil
		}
	}
}

// short names a reader that ended too early. A reader that verifies says so itself.
func short(ref digest.Ref, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &cas.CorruptError{Ref: ref, Where: "what was to be sent", Err: io.ErrUnexpectedEOF}
	}
	return err
}

// ends reads the end of an object, at which its reader has verified it.
func ends(ref digest.Ref, r io.Reader) error {
	one := make([]byte, 1)
	for {
		n, err := r.Read(one)
		switch {
		case n > 0:
			return &cas.MismatchError{Ref: ref, Got: digest.Ref{Bytes: ref.Bytes + 1}}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// write writes one run, once the road has room.
func (s *sender) write(ctx context.Context, ref digest.Ref, from uint64, run []byte, ch *choice) error {
	encoded, encoding := s.coder.encode(run, s.room, ch)
	f, err := s.admit(ctx, len(encoded))
	if err != nil {
		return err
	}
	if !s.leave(away{ref, from + uint64(len(run)), f}) {
		s.pace.drop(f)
		return context.Cause(ctx)
	}
	s.count.sent.Add(uint64(len(run)))
	s.count.wireSent.Add(uint64(len(encoded)))
	return s.v.run(&casv1.CasHeaderV1{
		Object: protocol.NewRef(ref), Offset: from, Length: uint64(len(run)), Encoding: encoding, Encoded: uint64(len(encoded)),
	}, encoded)
}

// admit waits for room on the road. While it waits, what this stream has on its way may land, which lets it through too.
func (s *sender) admit(ctx context.Context, n int) (*flight, error) {
	return s.pace.admit(ctx, n, s.idle)
}

// idle reports whether nothing of this stream is on its way.
func (s *sender) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.away {
		if a.flight != nil && a.flight.bytes > 0 {
			return false
		}
	}
	return true
}

func (s *sender) leave(a away) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	if s.pace != nil {
		s.away = append(s.away, a)
	}
	return true
}

// acked notes that the receiver holds an object up to an offset, and so has all that left before. It reports false for an
// object of which nothing is on its way.
func (s *sender) acked(ref digest.Ref, held uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, n := false, 0
	for i, a := range s.away {
		if a.ref == ref {
			if known = true; a.end <= held {
				n = i + 1
			}
		}
	}
	landed := append([]away(nil), s.away[:n]...)
	s.away = append(s.away[:0], s.away[n:]...)
	for _, a := range landed {
		s.pace.land(a.flight)
	}
	return known
}

// close forgets what is on its way: nothing more is acknowledged on this stream.
func (s *sender) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, a := range s.away {
		s.pace.drop(a.flight)
	}
	s.away = nil
}

// prefix is how much of an object a range state says is held from the first byte on.
func prefix(m *casv1.CasRangeStateV1) uint64 {
	if len(m.Held) == 0 || m.Held[0].Offset != 0 {
		return 0
	}
	return m.Held[0].Length
}

// stateOf says that the first bytes of an object are held.
func stateOf(ref digest.Ref, held uint64) *casv1.CasRangeStateV1 {
	m := &casv1.CasRangeStateV1{Object: protocol.NewRef(ref)}
	if held > 0 {
		m.Held = []casv1.RangeV1{{Length: held}}
	}
	return m
}

// skip reads past what the receiver holds.
func skip(ref digest.Ref, r io.Reader, n uint64) error {
	if n == 0 {
		return nil
	}
	if got, err := io.CopyN(io.Discard, r, int64(n)); err != nil { //nolint:gosec // at most protocol.MaxObject
		return &localError{short(ref, fmt.Errorf("read past the first %d of %d bytes: %w", got, n, err))}
	}
	return nil
}
