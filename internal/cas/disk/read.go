package disk

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// keepQuarantined bounds the files in quarantine: the last few tell what is wrong with a disk.
const keepQuarantined = 16

// Open implements cas.Source. The reader is a cas.Sound and an io.WriterTo. Objects of at most 256 KiB are in memory and
// checked when Open returns; the reader of a larger one is a cas.Filer.
func (s *Store) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	f, err := s.files.open(s.path(ref.Digest))
	if errors.Is(err, os.ErrNotExist) {
		return nil, cas.ErrNotFound
	}
	if err != nil {
		return nil, s.unreadable(ref, err)
	}
	info, err := f.look()
	if err != nil {
		return nil, errors.Join(s.unreadable(ref, err), f.Close())
	}
	if !info.regular || info.bytes != ref.Bytes {
		return nil, errors.Join(cas.ErrNotFound, f.Close()) // another size is another object, or none that is whole
	}
	s.used(ref, info.modified)
	if ref.Bytes > bufferBytes {
		r := &reader{s: s, ref: ref, f: f, hash: hashes.Get().(*digest.Hash), left: ref.Bytes}
		r.hash.Reset()
		return r, nil
	}
	return s.openShort(ref, f)
}

// openShort reads an object into memory, checks it and closes its file.
func (s *Store) openShort(ref digest.Ref, f object) (io.ReadCloser, error) {
	buffer := buffers.Get().(*[bufferBytes]byte)
	n, _, err := fill(f, buffer[:ref.Bytes])
	if err != nil || digest.RefOf(buffer[:n]) != ref {
		err = s.damaged(ref, f, err)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		buffers.Put(buffer)
		return nil, err
	}
	return &short{buffer: buffer, data: buffer[:n]}, nil
}

// short is a reader of an object that is in memory and known to be right.
type short struct {
	buffer *[bufferBytes]byte
	data   []byte
}

func (r *short) Read(p []byte) (int, error) {
	if r.buffer == nil {
		return 0, os.ErrClosed
	}
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

func (r *short) WriteTo(w io.Writer) (int64, error) {
	if r.buffer == nil {
		return 0, os.ErrClosed
	}
	if len(r.data) == 0 {
		return 0, nil
	}
	n, err := w.Write(r.data)
	r.data = r.data[n:]
	return int64(n), err
}

// Sound implements cas.Sound.
func (r *short) Sound() bool { return true }

func (r *short) Close() error {
	if r.buffer == nil {
		return nil
	}
	buffers.Put(r.buffer)
	r.buffer, r.data = nil, nil
	return nil
}

// reader is a reader of an object that is checked as it goes.
type reader struct {
	s    *Store
	ref  digest.Ref
	f    object
	hash *digest.Hash // nil once it was given back
	left uint64
	err  error // what every further Read returns
}

func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	if r.left == 0 {
		r.err = io.EOF
		return 0, r.err
	}
	if uint64(len(p)) > r.left {
		p = p[:r.left]
	}
	n, err := r.f.Read(p)
	_, _ = r.hash.Write(p[:n])
	r.left -= uint64(n)
	switch {
	case r.left == 0 && r.hash.Ref() != r.ref, err == io.EOF && r.left > 0:
		r.err = r.s.damaged(r.ref, r.f, nil)
	case err != nil && r.left > 0:
		r.err = r.s.damaged(r.ref, r.f, err)
	}
	return n, r.err
}

func (r *reader) WriteTo(w io.Writer) (written int64, err error) {
	buffer := buffers.Get().(*[bufferBytes]byte)
	defer buffers.Put(buffer)
	for {
		n, err := r.Read(buffer[:])
		if n > 0 {
			m, err := w.Write(buffer[:n])
			written += int64(m)
			if err != nil {
				return written, err
			}
		}
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}
	}
}

// Sound implements cas.Sound.
func (r *reader) Sound() bool { return false }

// File implements cas.Filer.
func (r *reader) File() *os.File { return r.f.osFile() }

func (r *reader) Close() error {
	if r.hash == nil {
		return nil
	}
	hashes.Put(r.hash)
	r.hash, r.err = nil, cmp.Or[error](r.err, os.ErrClosed)
	return r.f.Close()
}

func (s *Store) unreadable(ref digest.Ref, err error) error {
	return &cas.CorruptError{Ref: ref, Where: s.layout.dir, Err: err}
}

// damaged takes an object out of the store whose file holds other bytes, or cannot be read, and says so. The object is
// absent from then on; if that cannot be done, whoever reads it finds out again.
func (s *Store) damaged(ref digest.Ref, f object, cause error) error {
	fault := s.unreadable(ref, cause)
	if s.options.ReadOnly {
		return fault
	}
	err := s.isolate(ref, f)
	s.log.Error("an object of the store is damaged", "object", ref.String(), "store", s.layout.dir, "error", cause, "quarantine", err)
	return fault
}

// isolate moves the file of a damaged object to quarantine, if it is still the one that was read: another may have been
// put there since.
func (s *Store) isolate(ref digest.Ref, f object) error {
	path := s.path(ref.Digest)
	read, err := f.look()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stands, err := s.files.stat(path)
	if err != nil || !read.identity.is(stands.identity) {
		return err
	}
	name := fmt.Sprintf("%020d-%s", s.now().UnixNano(), hex.EncodeToString(ref.Digest[:]))
	if err := s.files.rename(path, filepath.Join(s.layout.quarantine(), name)); err != nil {
		return err
	}
	s.room.stored -= min(s.room.stored, stands.bytes)
	return s.trimQuarantine()
}

// trimQuarantine removes the oldest files beyond what is kept.
func (s *Store) trimQuarantine() error {
	list, err := s.files.list(s.layout.quarantine())
	if err != nil || len(list) <= keepQuarantined {
		return err
	}
	slices.SortFunc(list, func(a, b os.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, old := range list[:len(list)-keepQuarantined] {
		err = errors.Join(err, s.files.remove(filepath.Join(s.layout.quarantine(), old.Name())))
	}
	return err
}
