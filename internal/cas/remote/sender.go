package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	count *counters

	slots [2]slot // one is read and encoded while the other is on its way out

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

// slot is the memory of one run.
type slot struct{ plain, room []byte } // as it is, and encoded

// senderBytes is the memory of a sender.
const senderBytes = 2 * 2 * mostRun // and the few bytes more that an encoding without success takes

func newSender(v *voice, pace *pacer, coder *coder, count *counters) *sender {
	features := v.link.Features()
	if !features.Has(protocol.FeatureCASRange) {
		pace = nil // nothing is acknowledged
	}
	return &sender{v: v, pace: pace, coder: coder, count: count}
}

// compression is how the next run should be compressed, if that pays: as short as can be where the road is what is waited for,
// and cheaply where it would be zstd.
func (s *sender) compression() casv1.EncodingV1 {
	order := []casv1.EncodingV1{casv1.EncodingZstd, casv1.EncodingSnappy}
	if s.pace.fast() {
		slices.Reverse(order)
	}
	for _, e := range order {
		if s.v.link.Features().Has(e.Needs()) {
			return e
		}
	}
	return casv1.EncodingPlain
}

// localError is an error of this end: of what is read from or stored into here. Trying again over another connection does
// not help.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

// run is one run of an object, ready to leave.
type run struct {
	from     uint64
	plain    int
	encoded  []byte
	encoding casv1.EncodingV1
	last     bool
}

// send writes what is left of an object from an offset on, to which r is wound. r verifies the whole: the last run
// leaves only after r has said io.EOF. Errors of r are a *localError.
func (s *sender) send(ctx context.Context, ref digest.Ref, from uint64, r io.Reader) error {
	ch := &choice{}
	if left := ref.Bytes - from; s.length(left, ch) == left { // it leaves in one run
		next, err := s.prepare(&s.slots[0], ref, from, left, r, ch)
		if err == nil {
			err = s.write(ctx, ref, next)
		}
		return err
	}
	return s.pipeline(ctx, ref, from, r, ch)
}

// pipeline prepares a run while the one before it is written.
func (s *sender) pipeline(ctx context.Context, ref digest.Ref, from uint64, r io.Reader, ch *choice) (err error) {
	ready, stop := make(chan run), make(chan struct{})
	var failed error // once ready is closed
	go func() {
		defer close(ready)
		for at, i := from, 0; ; i++ {
			next, err := s.prepare(&s.slots[i%len(s.slots)], ref, at, s.length(ref.Bytes-at, ch), r, ch)
			if failed = err; err != nil {
				return
			}
			select {
			case ready <- next: // after which the one before it has been written
			case <-stop:
				return
			}
			if at += uint64(next.plain); next.last { //nolint:gosec // at most mostRun
				return
			}
		}
	}()
	for next := range ready {
		if err = s.write(ctx, ref, next); err != nil {
			break
		}
	}
	close(stop)
	for range ready { // until it has let go of r
	}
	if err == nil {
		err = failed
	}
	return err
}

// length is how long the next run should be of what is left: what compresses may be longer.
func (s *sender) length(left uint64, ch *choice) uint64 {
	return min(left, uint64(min(float64(s.pace.run())*ch.won(), mostRun)))
}

// prepare reads and encodes the next run, of n bytes.
func (s *sender) prepare(in *slot, ref digest.Ref, from, n uint64, r io.Reader, ch *choice) (run, error) {
	if in.plain == nil {
		in.plain, in.room = make([]byte, mostRun), make([]byte, 0, roomFor(mostRun))
	}
	plain := in.plain[:n]
	if _, err := io.ReadFull(r, plain); err != nil {
		return run{}, &localError{short(ref, err)}
	}
	next := run{from: from, plain: int(n), last: from+n == ref.Bytes} //nolint:gosec // at most mostRun
	if next.last {
		if err := ends(ref, r); err != nil {
			return run{}, &localError{err}
		}
	}
	next.encoded, next.encoding = s.coder.encode(plain, in.room, s.compression(), ch)
	return next, nil
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
func (s *sender) write(ctx context.Context, ref digest.Ref, r run) error {
	f, err := s.admit(ctx, len(r.encoded))
	if err != nil {
		return err
	}
	end := r.from + uint64(r.plain) //nolint:gosec // at most mostRun
	if !s.leave(away{ref, end, f}) {
		s.pace.drop(f)
		return context.Cause(ctx)
	}
	s.count.sent.Add(end - r.from)
	s.count.wireSent.Add(uint64(len(r.encoded)))
	err = s.v.run(&casv1.CasHeaderV1{
		Object: protocol.NewRef(ref), Offset: r.from, Length: end - r.from, Encoding: r.encoding, Encoded: uint64(len(r.encoded)),
	}, r.encoded)
	if err == nil && r.last {
		s.count.objects.Add(1)
	}
	return err
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
