package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
)

// parallel is how many large objects one call moves at once, besides its small ones.
const parallel = 3

// Missing implements cas.Sink.
func (s *Store) Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	left := unique(refs)
	if len(left) == 0 {
		return nil, nil
	}
	var missing []digest.Ref
	err := s.on(ctx, protocol.StreamCASUpload, func(_ context.Context, over *session) error {
		for len(left) > 0 {
			batch := left[:min(len(left), casv1.MaxObjects)]
			some, err := over.need(batch)
			if err != nil {
				return err
			}
			missing, left = append(missing, some...), left[len(batch):]
		}
		return nil
	})
	return missing, err
}

// need asks which objects of one batch are missing.
func (over *session) need(batch []digest.Ref) ([]digest.Ref, error) {
	question := &casv1.NeedObjectsV1{Objects: make([]protocol.RefV1, len(batch))}
	for i, ref := range batch {
		question.Objects[i] = protocol.NewRef(ref)
	}
	if err := over.say(question); err != nil {
		return nil, err
	}
	m, err := over.next()
	if err != nil {
		return nil, err
	}
	answer, ok := m.(*casv1.MissingObjectsV1)
	if !ok || !answer.Answers(question) {
		return nil, errTurn
	}
	missing := make([]digest.Ref, len(answer.Objects))
	for i, o := range answer.Objects {
		missing[i] = o.Domain()
	}
	return missing, nil
}

// CopyFrom implements cas.CopierFrom: it asks what is missing, and sends that.
func (s *Store) CopyFrom(ctx context.Context, src cas.Source, refs []digest.Ref) error {
	missing, err := s.Missing(ctx, refs)
	if err != nil {
		return err
	}
	small, large := bySize(missing)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1 + parallel)
	if len(small) > 0 {
		g.Go(func() error { return s.sendSmall(ctx, src, small) })
	}
	for _, ref := range large {
		g.Go(func() error { return s.sendLarge(ctx, src, ref) })
	}
	return g.Wait()
}

// Put implements cas.Sink. Where the connection ends while a large object is sent, r has to be an io.Seeker for it to go on;
// else the error is ErrInterrupted.
func (s *Store) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	if ref.Bytes > Small {
		return s.sendLarge(ctx, &offered{r: r}, ref)
	}
	n := max(int64(ref.Bytes), 1) //nolint:gosec // at most Small
	if s.client.memory.all.Acquire(ctx, n) != nil {
		return context.Cause(ctx)
	}
	defer s.client.memory.all.Release(n)
	b := make([]byte, ref.Bytes)
	from := &verified{ref: ref, r: r, hash: digest.NewHash()}
	if _, err := io.ReadFull(from, b); err != nil {
		return err
	}
	if err := ends(ref, from); err != nil {
		return err
	}
	return s.sendSmall(ctx, inMemory(b), []digest.Ref{ref})
}

// sendSmall sends small objects behind each other.
func (s *Store) sendSmall(ctx context.Context, src cas.Source, left []digest.Ref) error {
	first := true
	return s.on(ctx, protocol.StreamCASUpload, func(ctx context.Context, over *session) (err error) {
		if !first { // some may have been stored without our having heard of it
			if left, err = over.stillMissing(left); err != nil || len(left) == 0 {
				return err
			}
		}
		first = false
		left, err = over.exchange(ctx, left, func(ctx context.Context, out *sender, ref digest.Ref) error {
			return out.from(ctx, src, ref, 0)
		})
		return err
	})
}

func (over *session) stillMissing(refs []digest.Ref) (missing []digest.Ref, err error) {
	for len(refs) > 0 {
		batch := refs[:min(len(refs), casv1.MaxObjects)]
		some, err := over.need(batch)
		if err != nil {
			return refs, err
		}
		missing, refs = append(missing, some...), refs[len(batch):]
	}
	return missing, nil
}

// sendLarge sends one object on streams of its own, each from where the daemon holds it. What it holds may be of somebody
// whose bytes were wrong: then the daemon forgets it, and the object is sent once more, from its start.
func (s *Store) sendLarge(ctx context.Context, src cas.Source, ref digest.Ref) error {
	resumed, err := s.sendRest(ctx, src, ref)
	var corrupt *cas.CorruptError
	if resumed && errors.As(err, &corrupt) && corrupt.Where == daemonStore {
		_, err = s.sendRest(ctx, src, ref)
	}
	return err
}

// sendRest sends what the daemon lacks of an object. It reports whether that was not all of it.
func (s *Store) sendRest(ctx context.Context, src cas.Source, ref digest.Ref) (resumed bool, err error) {
	err = s.on(ctx, protocol.StreamCASUpload, func(ctx context.Context, over *session) error {
		held, done, err := over.announce(ref)
		if done || err != nil {
			return err
		}
		resumed = resumed || held > 0
		_, err = over.exchange(ctx, []digest.Ref{ref}, func(ctx context.Context, out *sender, ref digest.Ref) error {
			return out.from(ctx, src, ref, held)
		})
		return err
	})
	return resumed, err
}

// announce asks what the daemon holds of a large object.
func (over *session) announce(ref digest.Ref) (held uint64, done bool, err error) {
	if !over.acks {
		return 0, false, nil
	}
	if err := over.say(&casv1.CasHeaderV1{Object: protocol.NewRef(ref), Encoding: casv1.EncodingPlain}); err != nil {
		return 0, false, err
	}
	m, err := over.next()
	if err != nil {
		return 0, false, err
	}
	switch m := m.(type) {
	case *casv1.CasRangeStateV1:
		if m.Object.Domain() == ref {
			return prefix(m), false, nil
		}
	case *casv1.CasResultV1:
		if m.Object.Domain() == ref {
			err, _ := errorOf(ref, m.Outcome)
			return 0, true, err
		}
	}
	return 0, false, errTurn
}

// from sends what is left of an object of a source.
func (s *sender) from(ctx context.Context, src cas.Source, ref digest.Ref, held uint64) error {
	r, err := src.Open(ctx, ref)
	if err != nil {
		return &localError{err}
	}
	rest, err := wound(ref, r, held)
	if err == nil {
		err = s.send(ctx, ref, held, rest)
	}
	if closing := r.Close(); err == nil && closing != nil {
		err = &localError{closing}
	}
	return err
}

// exchange sends objects and hears how each ended. It returns those of which it has not heard. The first error counts,
// whichever side of the exchange it is of.
func (over *session) exchange(
	ctx context.Context, refs []digest.Ref, send func(context.Context, *sender, digest.Ref) error,
) ([]digest.Ref, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{
		session: over, unheard: make(map[digest.Ref]bool, len(refs)), room: semaphore.NewWeighted(MaxUnheard),
		out: newSender(over.voice, over.pace, over.store.client.coder, &over.store.client.count),
	}
	for _, ref := range refs {
		x.unheard[ref] = true
	}
	defer x.out.close()
	fail := func(err error) {
		cancel(err)
		over.reset(protocol.ResetCancelled) // which wakes whoever reads or writes
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if err := x.hear(); err != nil {
			fail(err)
		}
	}()
	if err := x.say(ctx, refs, send); err != nil {
		fail(err)
	}
	<-heard
	var left []digest.Ref
	for _, ref := range refs {
		if x.unheard[ref] {
			left = append(left, ref)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	return left, context.Cause(ctx)
}

type exchange struct {
	*session
	out     *sender
	room    *semaphore.Weighted
	unheard map[digest.Ref]bool // the hearer's until it has ended
}

func (x *exchange) say(ctx context.Context, refs []digest.Ref, send func(context.Context, *sender, digest.Ref) error) error {
	for _, ref := range refs {
		if x.room.Acquire(ctx, 1) != nil {
			return context.Cause(ctx)
		}
		if err := send(ctx, x.out, ref); err != nil {
			return err
		}
	}
	return nil
}

// hear reads acknowledgements and results until there was one of each object.
func (x *exchange) hear() error {
	for len(x.unheard) > 0 {
		m, err := x.next()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *casv1.CasRangeStateV1:
			x.out.acked(m.Object.Domain(), prefix(m))
		case *casv1.CasResultV1:
			ref := m.Object.Domain()
			if !x.unheard[ref] {
				return errTurn
			}
			if err, _ := errorOf(ref, m.Outcome); err != nil {
				return err
			}
			x.out.acked(ref, ref.Bytes)
			delete(x.unheard, ref)
			x.room.Release(1)
		default:
			return errTurn
		}
	}
	return nil
}

// offered is the reader of one Put as a source.
type offered struct {
	r      io.Reader
	opened bool
}

func (o *offered) Open(_ context.Context, ref digest.Ref) (io.ReadCloser, error) {
	if o.opened {
		again, ok := o.r.(io.Seeker)
		if !ok {
			return nil, ErrInterrupted
		}
		if _, err := again.Seek(0, io.SeekStart); err != nil {
			return nil, fmt.Errorf("begin anew: %w", err)
		}
	}
	o.opened = true
	return io.NopCloser(&verified{ref: ref, r: o.r, hash: digest.NewHash()}), nil
}

// inMemory is one object as a source.
type inMemory []byte

func (b inMemory) Open(context.Context, digest.Ref) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(b)), nil
}

// verified reads what was offered for an object, and says io.EOF only where it was that.
type verified struct {
	ref  digest.Ref
	r    io.Reader
	got  uint64
	hash *digest.Hash
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	_, _ = v.hash.Write(p[:n]) // never fails
	if v.got += uint64(n); v.got > v.ref.Bytes {
		return 0, &cas.MismatchError{Ref: v.ref, Got: digest.Ref{Bytes: v.got}}
	}
	if errors.Is(err, io.EOF) {
		if got := v.hash.Ref(); got != v.ref {
			return n, &cas.MismatchError{Ref: v.ref, Got: got}
		}
	}
	return n, err
}
