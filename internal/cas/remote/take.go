package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
)

// taker is an upload stream on the daemon: its reader takes what comes in order, workers store the small objects.
type taker struct {
	conn  *Connection
	v     *voice
	scope Scope
	in    *intake

	small *whole // that is arriving
	part  Part   // of a large object that is arriving
	ref   digest.Ref
	at    uint64 // of part

	workers *semaphore.Weighted
	storing sync.WaitGroup
	mu      sync.Mutex
	failed  error // of a worker
}

// whole is a small object as it arrives.
type whole struct {
	ref  digest.Ref
	b    []byte
	at   uint64
	give func() // its memory
}

// takeUploads serves an upload stream until its peer ends it.
func (c *Connection) takeUploads(ctx context.Context, v *voice, scope Scope) error {
	give, err := c.memory.take(ctx, chunkBytes)
	if err != nil {
		return err
	}
	defer give()
	t := &taker{
		conn: c, v: v, scope: scope, in: newIntake(v, c.server.coder, &c.server.count, c.memory),
		workers: semaphore.NewWeighted(maxWorkers),
	}
	err = t.read(ctx)
	if errors.Is(err, io.EOF) {
		if err = nil; t.small != nil {
			err = errInside
		}
	}
	if err != nil {
		v.r.Stop(codeOf(err).Outward()) // the workers need not be waited for before the peer stops
	}
	t.storing.Wait()
	if t.small != nil {
		t.small.give()
	}
	return errors.Join(err, t.closePart(), t.failure())
}

func (t *taker) read(ctx context.Context) error {
	for {
		m, err := t.v.next()
		if err != nil {
			return err
		}
		if err := t.failure(); err != nil {
			return err
		}
		switch m := m.(type) {
		case *casv1.NeedObjectsV1:
			err = t.need(ctx, m)
		case *casv1.CasHeaderV1:
			err = t.header(ctx, m)
		default:
			err = errTurn
		}
		if err != nil {
			return err
		}
	}
}

// need answers which objects are missing.
func (t *taker) need(ctx context.Context, m *casv1.NeedObjectsV1) error {
	refs := make([]digest.Ref, len(m.Objects))
	for i, o := range m.Objects {
		refs[i] = o.Domain()
	}
	missing, err := t.scope.Missing(ctx, refs)
	if err != nil {
		return err
	}
	answer := &casv1.MissingObjectsV1{Objects: make([]protocol.RefV1, len(missing))}
	for i, ref := range missing {
		answer.Objects[i] = protocol.NewRef(ref)
	}
	return t.v.say(answer)
}

// header takes a run, or an announcement.
func (t *taker) header(ctx context.Context, h *casv1.CasHeaderV1) error {
	ref := h.Object.Domain()
	switch {
	case t.small != nil && t.small.ref != ref:
		return errGap
	case ref.Bytes > Small && h.Length == 0:
		return t.announced(ctx, h, ref)
	case ref.Bytes > Small:
		return t.large(ctx, h, ref)
	default:
		return t.smallRun(ctx, h, ref)
	}
}

// announced begins a large object and says what of it is here.
func (t *taker) announced(ctx context.Context, h *casv1.CasHeaderV1, ref digest.Ref) error {
	if h.Offset != 0 || !t.in.acks {
		return errTurn
	}
	done, err := t.begin(ctx, ref)
	if done || err != nil {
		return err
	}
	return t.v.say(stateOf(ref, t.at))
}

// begin opens a part in place of the last one. It reports true where the peer has been told that there is nothing to send.
func (t *taker) begin(ctx context.Context, ref digest.Ref) (done bool, err error) {
	if err := t.closePart(); err != nil {
		return false, err
	}
	part, err := t.scope.Part(ctx, ref, func() { t.v.reset(protocol.ResetResumeLater) })
	if err != nil {
		return true, answer(t.v, ref, err)
	}
	t.part, t.ref, t.at = part, ref, part.Held()
	return false, nil
}

func (t *taker) closePart() error {
	if t.part == nil {
		return nil
	}
	part := t.part
	t.part = nil
	return part.Close()
}

// large takes a run of a large object.
func (t *taker) large(ctx context.Context, h *casv1.CasHeaderV1, ref digest.Ref) error {
	if !t.in.acks && h.Offset == 0 && h.Length > 0 { // nothing was announced, and nothing is taken up again
		return t.unannounced(ctx, h, ref)
	}
	if t.part == nil || t.ref != ref {
		return errGap
	}
	if err := t.in.check(h, t.at); err != nil {
		return err
	}
	if err := t.in.through(ctx, h, t.part); err != nil {
		return t.refused(ref, err)
	}
	t.at += h.Length
	if t.at < ref.Bytes {
		return t.in.ack(ref, t.at)
	}
	err := t.part.Commit(ctx)
	if err == nil {
		t.conn.server.count.objects.Add(1)
	}
	t.in.unacked = 0
	return errors.Join(answer(t.v, ref, err), t.closePart())
}

// refused ends an object that cannot be stored while its runs come: the rest of them is on its way, so the stream ends with
// it.
func (t *taker) refused(ref digest.Ref, err error) error {
	var l *localError
	if !errors.As(err, &l) {
		return err
	}
	outcome, ok := outcomeOf(l.err)
	switch {
	case !ok:
		return err
	case outcome == casv1.OutcomeStorageFull:
		return &fault{protocol.ResetStorageFull, l.Error()}
	case outcome == casv1.OutcomeQuota:
		return &fault{protocol.ResetQuota, l.Error()}
	case outcome == casv1.OutcomeStaleLease:
		return ErrStale
	default:
		return &fault{protocol.ResetDigestMismatch, "the bytes of " + ref.String() + " are not that object"}
	}
}

// unannounced begins a large object of a peer that knows no range states, from its start.
func (t *taker) unannounced(ctx context.Context, h *casv1.CasHeaderV1, ref digest.Ref) error {
	part, err := t.scope.Part(ctx, ref, func() { t.v.reset(protocol.ResetResumeLater) })
	switch {
	case errors.Is(err, ErrPresent):
		part = Prove(ref)
	case err != nil:
		return t.refused(ref, &localError{err})
	case part.Held() > 0:
		part = &again{Part: part, left: part.Held()}
	}
	if err := errors.Join(t.closePart(), t.in.check(h, 0)); err != nil {
		return errors.Join(err, part.Close())
	}
	t.part, t.ref, t.at = part, ref, 0
	if err := t.in.through(ctx, h, t.part); err != nil {
		return t.refused(ref, err)
	}
	t.at = h.Length
	return nil
}

// smallRun takes a run of a small object, and hands the object on once it is whole.
func (t *taker) smallRun(ctx context.Context, h *casv1.CasHeaderV1, ref digest.Ref) error {
	if t.small == nil {
		if h.Offset != 0 || h.Length == 0 && ref.Bytes > 0 {
			return errGap
		}
		give, err := t.conn.memory.take(ctx, max(int(ref.Bytes), 1)) //nolint:gosec // at most Small
		if err != nil {
			return err
		}
		t.small = &whole{ref: ref, b: make([]byte, ref.Bytes), give: give}
	}
	w := t.small
	if h.Length == 0 && ref.Bytes > 0 {
		return errGap // runs of nothing, for ever
	}
	if err := t.in.check(h, w.at); err != nil {
		return err
	}
	if err := t.in.into(ctx, h, w.b[w.at:w.at+h.Length]); err != nil {
		return err
	}
	if w.at += h.Length; w.at == ref.Bytes {
		t.small = nil
		if err := t.store(ctx, w); err != nil {
			return err
		}
	}
	return t.in.ack(ref, w.at)
}

// store hands a small object to a worker.
func (t *taker) store(ctx context.Context, w *whole) error {
	if err := t.workers.Acquire(ctx, 1); err != nil {
		w.give()
		return context.Cause(ctx)
	}
	t.storing.Go(func() {
		defer t.workers.Release(1)
		err := t.scope.Put(ctx, w.ref, bytes.NewReader(w.b))
		w.give()
		if err == nil {
			t.conn.server.count.objects.Add(1)
		}
		if err := answer(t.v, w.ref, err); err != nil {
			t.fail(err)
		}
	})
	return nil
}

// fail ends the stream for the error of a worker. Its reader may be waiting, so it is woken.
func (t *taker) fail(err error) {
	t.mu.Lock()
	first := t.failed == nil
	if first {
		t.failed = err
	}
	t.mu.Unlock()
	if first {
		t.v.reset(codeOf(err).Outward())
	}
}

func (t *taker) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}
