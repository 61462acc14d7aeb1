package objects

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Project is what one project holds: a cas.Store. It is had by name whether or not there is such a project yet.
type Project struct {
	objects *Objects
	name    forge.ProjectName
}

// Project returns a project's view of the store.
func (o *Objects) Project(name forge.ProjectName) *Project { return &Project{o, name} }

// Open implements cas.Source.
func (p *Project) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	held, err := p.objects.held(ctx, p.name, []digest.Ref{ref})
	if err != nil {
		return nil, err
	}
	if !held[0] {
		return nil, cas.ErrNotFound
	}
	return p.objects.disk.Open(ctx, ref)
}

// Missing implements cas.Sink. An object that only another project holds is missing, and the disk is not asked about it.
func (p *Project) Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	held, err := p.objects.held(ctx, p.name, refs)
	if err != nil {
		return nil, err
	}
	var has, missing []digest.Ref
	for i, ref := range refs {
		if held[i] {
			has = append(has, ref)
		} else {
			missing = append(missing, ref)
		}
	}
	gone, err := p.objects.disk.Missing(ctx, has) // damaged since, and set aside
	if err != nil {
		return nil, err
	}
	if len(gone) > 0 {
		away := make(map[digest.Ref]bool, len(gone))
		for _, ref := range gone {
			away[ref] = true
		}
		missing = missing[:0]
		for i, ref := range refs {
			if !held[i] || away[ref] {
				missing = append(missing, ref)
			}
		}
	}
	return cas.Distinct(missing, func(digest.Ref) bool { return true }), nil
}

// Put implements cas.Sink. Of an object that the project does not hold, all bytes are read, also where the disk has them: that
// somebody knows a digest does not make the object theirs.
func (p *Project) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	missing, err := p.Missing(ctx, []digest.Ref{ref})
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := take(ctx, p.objects.disk.Put, ref, r); err != nil {
		return err
	}
	return p.objects.hold(ctx, p.name, missing)
}

// take gives an object to put, which is the disk's, and has read all of r when it returns nil.
func take(ctx context.Context, put cas.PutFunc, ref digest.Ref, r io.Reader) error {
	counted := &counted{r: r}
	if err := put(ctx, ref, counted); err != nil {
		return err
	}
	switch {
	case counted.n == ref.Bytes:
		return nil // and the disk has verified it
	case counted.n == 0:
		return prove(ctx, ref, r) // the disk has it
	default:
		return fmt.Errorf("%w: %v", remote.ErrBusy, ref)
	}
}

// counted counts what is read.
type counted struct {
	r io.Reader
	n uint64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += uint64(n)
	return n, err
}

// prove reads an object that is here already from whoever says to have it too.
func prove(ctx context.Context, ref digest.Ref, r io.Reader) error {
	proof := remote.Prove(ref)
	if _, err := io.Copy(proof, r); err != nil {
		return err
	}
	return proof.Commit(ctx)
}

// CopyFrom implements cas.CopierFrom: what the disk lacks goes there many at a time, and rows are written in hundreds.
func (p *Project) CopyFrom(ctx context.Context, src cas.Source, refs []digest.Ref) error {
	missing, err := p.Missing(ctx, refs)
	if err != nil {
		return err
	}
	b := p.objects.disk.Batch()
	put := func(ctx context.Context, ref digest.Ref, r io.Reader) error { return take(ctx, b.Put, ref, r) }
	err = cas.Each(ctx, missing, fetchers, func(ctx context.Context, ref digest.Ref) error {
		return cas.CopyToHasher(ctx, put, src, ref)
	})
	if err := errors.Join(err, b.Commit(ctx)); err != nil {
		return err
	}
	return p.objects.hold(ctx, p.name, missing)
}

// fetchers is how many objects are read at once.
const fetchers = 4

// Part continues an object that arrives in pieces, or begins it. Only pieces of this project are taken up again. See
// remote.Scope; yield may be nil.
func (p *Project) Part(ctx context.Context, ref digest.Ref, yield func()) (remote.Part, error) {
	return p.part(ctx, ref, "", yield)
}

// part is Part for whoever is named by who: a second call for the same makes the first give way.
func (p *Project) part(ctx context.Context, ref digest.Ref, who string, yield func()) (_ remote.Part, err error) {
	missing, err := p.Missing(ctx, []digest.Ref{ref})
	if err != nil {
		return nil, err
	}
	if len(missing) == 0 {
		return nil, remote.ErrPresent
	}
	leave, err := p.objects.turns.take(ctx, ref, string(p.name)+" "+who, yield)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	on, err := p.objects.disk.Part(ctx, ref)
	if err != nil {
		return nil, err
	}
	part := &part{Part: on, project: p, ref: ref, leave: leave}
	if on.Held() == 0 {
		err = p.objects.own(ref, p.name)
	} else if !p.objects.owns(ref, p.name) {
		part.proof, part.left = remote.Prove(ref), on.Held()
	}
	if err != nil {
		return nil, errors.Join(err, on.Close())
	}
	return part, nil
}
