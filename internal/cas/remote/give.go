package remote

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
)

// want is a request of a download stream.
type want struct {
	ref  digest.Ref
	from uint64
}

// giver is a download stream on the daemon: its reader takes requests and acknowledgements, a goroutine answers the former in
// order.
type giver struct {
	v     *voice
	scope Scope
	out   *sender
	asked chan want
}

// giveDownloads serves a download stream until its peer ends it.
func (c *Connection) giveDownloads(ctx context.Context, v *voice, scope Scope) error {
	give, err := c.memory.take(ctx, senderBytes)
	if err != nil {
		return err
	}
	defer give()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := &giver{
		v: v, scope: scope, out: newSender(v, c.pace, c.server.coder, &c.server.count),
		asked: make(chan want, MaxAsked),
	}
	defer g.out.close()
	var once sync.Once
	var first error
	fail := func(err error) { // and wake the other one
		once.Do(func() {
			first = err
			v.reset(codeOf(err).Outward())
			cancel(err)
		})
	}
	var answering sync.WaitGroup
	answering.Go(func() {
		if err := g.answer(ctx); err != nil && !errors.Is(err, errLeft) {
			fail(err)
		}
	})
	if err := g.read(); !errors.Is(err, io.EOF) {
		fail(err)
	}
	close(g.asked)
	cancel(errLeft)
	answering.Wait()
	return first
}

// errLeft says that the peer has ended its direction: it has heard all that it wants to.
var errLeft = errors.New("the peer has ended the stream")

// read takes what the peer says.
func (g *giver) read() error {
	for {
		m, err := g.v.next()
		if err != nil {
			return err
		}
		var w want
		switch m := m.(type) {
		case *casv1.CasRangeStateV1:
			w = want{m.Object.Domain(), prefix(m)}
			if g.out.acked(w.ref, w.from) {
				continue
			}
		case *casv1.CasHeaderV1:
			if m.Length > 0 || m.Offset > 0 {
				return errTurn
			}
			w = want{ref: m.Object.Domain()}
		default:
			return errTurn
		}
		select {
		case g.asked <- w:
		default:
			return errFlood
		}
	}
}

// answer answers requests until there are no more.
func (g *giver) answer(ctx context.Context) error {
	for w := range g.asked {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := g.give(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

// give sends an object, or says why not.
func (g *giver) give(ctx context.Context, w want) (err error) {
	r, err := g.scope.Open(ctx, w.ref)
	if err != nil {
		return answer(g.v, w.ref, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	rest, err := wound(w.ref, r, w.from)
	if err == nil {
		err = g.out.send(ctx, w.ref, w.from, rest)
	}
	var l *localError
	if errors.As(err, &l) {
		return answer(g.v, w.ref, l.err) // in place of the last run
	}
	return err
}

// wound returns a reader of an object from an offset on. Where the object is a file, what comes before is not read again:
// the peer hashes the whole, and asks from the start where it was wrong.
func wound(ref digest.Ref, r io.Reader, from uint64) (io.Reader, error) {
	if f, ok := r.(cas.Filer); ok && from > 0 && from <= ref.Bytes {
		return io.NewSectionReader(f.File(), int64(from), int64(ref.Bytes-from)), nil //nolint:gosec // at most protocol.MaxObject
	}
	return r, skip(ref, r, from)
}
