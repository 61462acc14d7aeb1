package disk

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Finding is something wrong that Verify came across.
type Finding struct {
	Ref  digest.Ref // zero where the name is none
	Path string
	Err  error // a *cas.CorruptError, or what is odd about the file
}

// Report sums up a verification.
type Report struct {
	Objects  uint64
	Bytes    forge.Bytes // that were read
	Findings uint64
}

// Verify looks at every object: its name and kind, and deep also its bytes. Each finding is told to found; what is damaged
// goes to quarantine. found may be nil; its error ends the work.
func (s *Store) Verify(ctx context.Context, deep bool, found func(Finding) error) (Report, error) {
	v := verification{s: s, deep: deep, found: found}
	err := s.eachObject(ctx, 0, v.look)
	return v.report, err
}

// Scrub verifies objects deep, from somewhere in the store on, until it has read so many bytes or all of it. Called now and
// then it comes by everywhere.
func (s *Store) Scrub(ctx context.Context, bytes forge.Bytes, found func(Finding) error) (Report, error) {
	v := verification{s: s, deep: true, found: found, most: bytes}
	err := s.eachObject(ctx, rand.IntN(256), v.look)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return v.report, err
}

var errEnough = errors.New("enough was read")

type verification struct {
	s      *Store
	deep   bool
	found  func(Finding) error
	most   forge.Bytes // 0: everything
	report Report
}

func (v *verification) look(path string, c candidate, odd error) error {
	if odd == nil {
		v.report.Objects++
		if v.deep {
			odd = v.read(c.ref)
		}
	} else {
		c.ref = digest.Ref{}
	}
	if odd != nil {
		v.report.Findings++
		if v.found != nil {
			if err := v.found(Finding{c.ref, path, odd}); err != nil {
				return err
			}
		}
	}
	if v.most > 0 && v.report.Bytes >= v.most {
		return errEnough
	}
	return nil
}

// read reads an object to its end. Its size is the file's, so a file that was cut shows by its digest.
func (v *verification) read(ref digest.Ref) error {
	f, err := v.s.files.open(v.s.path(ref.Digest))
	if errors.Is(err, os.ErrNotExist) {
		return nil // given up meanwhile
	}
	if err != nil {
		return v.s.unreadable(ref, err)
	}
	r := &reader{s: v.s, ref: ref, f: f, hash: hashes.Get().(*digest.Hash), left: ref.Bytes}
	r.hash.Reset()
	n, err := r.WriteTo(io.Discard)
	v.report.Bytes += forge.Bytes(n)
	if err == nil && ref.Bytes == 0 && ref != digest.RefOf(nil) {
		err = v.s.damaged(ref, f, nil)
	}
	var corrupt *cas.CorruptError
	if err := errors.Join(err, r.Close()); errors.As(err, &corrupt) {
		return corrupt
	}
	return err
}
