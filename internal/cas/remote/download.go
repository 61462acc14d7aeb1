package remote

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
)

const (
	// askAhead is how many small objects are asked for ahead of what has come.
	askAhead = 128
	// storers is how many small objects are stored at once.
	storers = 32
)

// CopyTo implements cas.CopierTo. A large object goes into a part of dst, if dst has such, and is then taken up even by
// another process.
func (s *Store) CopyTo(ctx context.Context, dst cas.Sink, refs []digest.Ref) error {
	missing, err := dst.Missing(ctx, refs)
	if err != nil {
		return err
	}
	small, large := bySize(missing)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1 + parallel)
	if len(small) > 0 {
		g.Go(func() error { return s.fetchSmall(ctx, dst, small) })
	}
	for _, ref := range large {
		g.Go(func() error { return s.fetchLarge(ctx, dst, ref) })
	}
	return g.Wait()
}

// fetchSmall fetches small objects behind each other.
func (s *Store) fetchSmall(ctx context.Context, dst cas.Sink, left []digest.Ref) error {
	return s.on(ctx, protocol.StreamCASDownload, func(ctx context.Context, over *session) (err error) {
		left, err = over.fetch(ctx, dst, left)
		return err
	})
}

// fetcher fetches small objects over one stream: a goroutine asks, another reads what comes, workers store it.
type fetcher struct {
	*session
	in      *intake
	dst     cas.Sink
	room    *semaphore.Weighted // for requests
	workers *semaphore.Weighted
	storing sync.WaitGroup
	fail    func(error)

	mu     sync.Mutex
	stored map[digest.Ref]bool
}

// fetch returns those that were not stored.
func (over *session) fetch(ctx context.Context, dst cas.Sink, refs []digest.Ref) ([]digest.Ref, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := over.store.client
	f := &fetcher{
		session: over, in: newIntake(over.voice, client.coder, &client.count, client.memory), dst: dst,
		room: semaphore.NewWeighted(askAhead), workers: semaphore.NewWeighted(storers), stored: map[digest.Ref]bool{},
		fail: func(err error) {
			cancel(err)
			over.reset(protocol.ResetCancelled) // which wakes whoever reads or writes
		},
	}
	var asking sync.WaitGroup
	asking.Go(func() {
		if err := f.ask(ctx, refs); err != nil {
			f.fail(err)
		}
	})
	for _, ref := range refs {
		if err := f.take(ctx, ref); err != nil {
			f.fail(err)
			break
		}
	}
	asking.Wait()
	f.storing.Wait()
	var left []digest.Ref
	for _, ref := range refs {
		if !f.stored[ref] {
			left = append(left, ref)
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	return left, context.Cause(ctx)
}

func (f *fetcher) ask(ctx context.Context, refs []digest.Ref) error {
	for _, ref := range refs {
		if f.room.Acquire(ctx, 1) != nil {
			return context.Cause(ctx)
		}
		if err := f.session.ask(ref, 0); err != nil {
			return err
		}
	}
	return nil
}

// ask asks for an object of which the first bytes are held.
func (over *session) ask(ref digest.Ref, held uint64) error {
	if over.acks {
		return over.say(stateOf(ref, held))
	}
	return over.say(&casv1.CasHeaderV1{Object: protocol.NewRef(ref), Encoding: casv1.EncodingPlain})
}

// header reads the header of the next run of an object, or why there is none.
func (over *session) header(ref digest.Ref) (*casv1.CasHeaderV1, error) {
	m, err := over.next()
	if err != nil {
		return nil, err
	}
	switch m := m.(type) {
	case *casv1.CasHeaderV1:
		if m.Object.Domain() == ref {
			return m, nil
		}
	case *casv1.CasResultV1:
		if m.Object.Domain() == ref {
			if err, _ := errorOf(ref, m.Outcome); err != nil {
				return nil, err
			}
		}
	}
	return nil, errTurn
}

// take reads one small object and hands it to a worker.
func (f *fetcher) take(ctx context.Context, ref digest.Ref) error {
	give, err := f.store.client.memory.take(ctx, max(int(ref.Bytes), 1)) //nolint:gosec // at most Small
	if err != nil {
		return err
	}
	b := make([]byte, ref.Bytes)
	if err := f.read(ctx, ref, b); err != nil {
		give()
		return err
	}
	f.room.Release(1)
	if f.workers.Acquire(ctx, 1) != nil {
		give()
		return context.Cause(ctx)
	}
	f.storing.Go(func() {
		defer f.workers.Release(1)
		defer give()
		if err := f.dst.Put(ctx, ref, bytes.NewReader(b)); err != nil {
			f.fail(&localError{blame(ref, err)})
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stored[ref] = true
		f.store.client.count.objects.Add(1)
	})
	return nil
}

// blame names the daemon for bytes that are not the object.
func blame(ref digest.Ref, err error) error {
	var mismatch *cas.MismatchError
	if errors.As(err, &mismatch) && mismatch.Ref == ref {
		return &cas.CorruptError{Ref: ref, Where: daemonStore}
	}
	return err
}

func (f *fetcher) read(ctx context.Context, ref digest.Ref, b []byte) error {
	for at := uint64(0); ; {
		h, err := f.header(ref)
		if err != nil {
			return err
		}
		if err := f.in.check(h, at); err != nil {
			return err
		}
		if h.Length == 0 && ref.Bytes > 0 {
			return errGap
		}
		if err := f.in.into(ctx, h, b[at:at+h.Length]); err != nil {
			return err
		}
		at += h.Length
		if err := f.in.ack(ref, at); err != nil {
			return err
		}
		if at == ref.Bytes {
			return nil
		}
	}
}

// parts is a store that takes objects in pieces.
type parts interface {
	Part(ctx context.Context, ref digest.Ref) (*disk.Part, error)
}

// fetchLarge fetches one object on streams of its own.
func (s *Store) fetchLarge(ctx context.Context, dst cas.Sink, ref digest.Ref) error {
	into, ok := dst.(parts)
	if !ok {
		r, err := s.Open(ctx, ref)
		if err != nil {
			return err
		}
		return errors.Join(blame(ref, dst.Put(ctx, ref, r)), r.Close())
	}
	err := s.fetchPart(ctx, into, ref)
	var mismatch *cas.MismatchError
	if errors.As(err, &mismatch) { // an old beginning may have been at fault: once more, from the start
		err = s.fetchPart(ctx, into, ref)
	}
	return blame(ref, err)
}

func (s *Store) fetchPart(ctx context.Context, dst parts, ref digest.Ref) (err error) {
	part, err := dst.Part(ctx, ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, part.Close()) }()
	err = s.on(ctx, protocol.StreamCASDownload, func(ctx context.Context, over *session) error {
		return over.fill(ctx, part, ref)
	})
	if err != nil {
		return err
	}
	if err := part.Commit(ctx); err != nil {
		return err
	}
	s.client.count.objects.Add(1)
	return nil
}

// fill reads the runs that a part lacks.
func (over *session) fill(ctx context.Context, part Part, ref digest.Ref) error {
	if part.Held() == ref.Bytes {
		return nil
	}
	if !over.acks && part.Held() > 0 {
		part = &again{Part: part, left: part.Held()}
	}
	client := over.store.client
	in := newIntake(over.voice, client.coder, &client.count, client.memory)
	at := part.Held()
	if err := over.ask(ref, at); err != nil {
		return err
	}
	for at < ref.Bytes {
		h, err := over.header(ref)
		if err != nil {
			return err
		}
		if h.Length == 0 {
			return errGap
		}
		if err := in.check(h, at); err != nil {
			return err
		}
		if err := in.through(ctx, h, part); err != nil {
			return err
		}
		at += h.Length
		if err := in.ack(ref, at); err != nil {
			return err
		}
	}
	return nil
}
