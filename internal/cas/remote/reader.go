package remote

import (
	"context"
	"io"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// reader is an object as it comes, over as many connections as it takes. One goroutine uses it.
type reader struct {
	ctx   context.Context //nolint:containedctx // of the Open that it belongs to, as its contract says
	store *Store
	ref   digest.Ref
	p     patience

	over *session // nil between streams
	in   *intake
	got  uint64 // bytes that have come
	at   uint64 // where the stream stands: at got, or before it where it had to start over
	run  []byte // of these, what was not read
	buf  []byte
	hash *digest.Hash
	err  error
}

// Open implements cas.Source. The bytes come while they are read; ctx bounds the reading too.
func (s *Store) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	r := &reader{ctx: ctx, store: s, ref: ref, p: patience{client: s.client}, hash: digest.NewHash()}
	if err := r.more(); err != nil {
		r.drop()
		return nil, err
	}
	return r, nil
}

func (r *reader) Read(b []byte) (int, error) {
	for r.err == nil && len(r.run) == 0 && len(b) > 0 {
		if r.got == r.ref.Bytes {
			r.err = r.verdict()
		} else {
			r.err = r.more()
		}
	}
	if len(r.run) == 0 {
		return 0, r.err
	}
	n := copy(b, r.run)
	r.run = r.run[n:]
	return n, nil
}

func (r *reader) verdict() error {
	if r.hash.Ref() != r.ref {
		return &cas.CorruptError{Ref: r.ref, Where: daemonStore}
	}
	return io.EOF
}

// more reads the next run, on a new stream where that is needed.
func (r *reader) more() error {
	for {
		err := r.try()
		if err == nil {
			return nil
		}
		r.drop()
		if err := r.p.after(r.ctx, err); err != nil {
			return err
		}
	}
}

func (r *reader) try() error {
	if r.over == nil {
		over, err := r.store.open(r.ctx, protocol.StreamCASDownload)
		if err != nil {
			return err
		}
		client := r.store.client
		r.over, r.in = over, newIntake(over.voice, client.coder, &client.count, client.memory)
		if r.at = r.got; !over.acks {
			r.at = 0
		}
		if err := over.ask(r.ref, r.got); err != nil {
			return err
		}
	}
	h, err := r.over.header(r.ref)
	if err != nil {
		return err
	}
	if err := r.in.check(h, r.at); err != nil {
		return err
	}
	if h.Length == 0 && r.ref.Bytes > 0 {
		return errGap
	}
	if uint64(cap(r.buf)) < h.Length {
		r.buf = make([]byte, h.Length)
	}
	run := r.buf[:h.Length]
	if err := r.in.into(r.ctx, h, run); err != nil {
		return err
	}
	r.took(run)
	return nil
}

// took keeps what is new of a run.
func (r *reader) took(run []byte) {
	old := min(r.got-r.at, uint64(len(run)))
	r.at += uint64(len(run))
	r.run = run[old:]
	r.got += uint64(len(r.run))
	_, _ = r.hash.Write(r.run) // never fails
	_ = r.in.ack(r.ref, r.at)  // where it does not arrive, the next read finds out
	if r.got == r.ref.Bytes {
		r.store.client.count.objects.Add(1)
		_ = r.over.s.Close() // everything was heard
		r.drop()
	}
}

// drop gives the stream back.
func (r *reader) drop() {
	if r.over != nil {
		r.over.end()
		r.over = nil
	}
}

// Close implements io.Closer. It may be called before everything was read.
func (r *reader) Close() error {
	r.drop()
	if r.err == nil {
		r.err = io.ErrClosedPipe
	}
	r.run = nil
	return nil
}
