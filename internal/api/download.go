package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// Open implements cas.Source. What the road cuts goes on in another request; all of it is verified here.
func (o *Objects) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	d := &download{ctx: ctx, from: o, ref: ref}
	if err := o.persist(ctx, func() (bool, error) { return false, d.connect() }); err != nil {
		return nil, stored(ref, err)
	}
	return cas.Check(ref, d, o.client.base), nil
}

// download is an object on its way here.
type download struct {
	ctx  context.Context //nolint:containedctx // a reader has no other way to be told
	from *Objects
	ref  digest.Ref
	at   uint64
	body io.ReadCloser // nil: not connected
}

func (d *download) connect() error {
	r := call{method: http.MethodGet, path: one("cas", d.ref.String()), query: d.from.query()}
	if d.at > 0 {
		r.header = http.Header{"Range": {fmt.Sprintf("bytes=%d-", d.at)}}
	}
	answer, err := d.from.client.send(d.ctx, r)
	if err != nil {
		return err
	}
	if d.at > 0 && answer.StatusCode != http.StatusPartialContent {
		_ = answer.Body.Close()
		return NewProblem(CodeUnreadableAnswer, "%s does not answer with a part of itself", r.path)
	}
	d.body = answer.Body
	return nil
}

func (d *download) Read(p []byte) (n int, err error) {
	if d.at == d.ref.Bytes {
		return 0, io.EOF
	}
	err = d.from.persist(d.ctx, func() (bool, error) {
		if d.body == nil {
			if err := d.connect(); err != nil {
				return false, err
			}
		}
		var broke error
		if n, broke = d.body.Read(p); n > 0 || broke == nil {
			d.at += uint64(n) //nolint:gosec // a count
			return true, nil
		}
		_ = d.Close()
		return false, unreachable(d.ctx, broke)
	})
	return n, stored(d.ref, err)
}

func (d *download) Close() error {
	if d.body == nil {
		return nil
	}
	err := d.body.Close()
	d.body = nil
	return err
}

// stored makes errors of package cas of the problems that have one there.
func stored(ref digest.Ref, err error) error {
	var p *Problem
	if !errors.As(err, &p) {
		return err
	}
	switch p.Code {
	case CodeNotFound:
		return fmt.Errorf("%w: %w", cas.ErrNotFound, p)
	case CodeNoRoom:
		return fmt.Errorf("%w: %w", cas.ErrFull, p)
	case CodeDigest:
		return fmt.Errorf("%w: %w", &cas.MismatchError{Ref: ref}, p)
	case CodeDamaged:
		return &cas.CorruptError{Ref: ref, Where: "the daemon's store", Err: p}
	}
	return err
}
