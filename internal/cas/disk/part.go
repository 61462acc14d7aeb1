package disk

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

const (
	// markEvery is after how many bytes a part is marked. A process that is killed loses at most that much of it.
	markEvery = 4 << 20
	// maxMarks bounds the marks that are read again.
	maxMarks = 1 << 16
	markSize = 8 + digest.Size

	marksEnding = ".marks"
)

// Part is an object that arrives in pieces, in order and over any number of connections and processes. One goroutine
// uses it.
//
// Beside the bytes stands a list of marks, each an offset and the digest of all bytes before it. The state of the hash
// cannot be stored, so whoever continues hashes what is there again, believes it up to the last mark that is right, and
// cuts off the rest: neither a crash nor a damaged disk can slip bytes into it.
type Part struct {
	s    *Store
	ref  digest.Ref
	path string

	there  bool // the object is in the store
	f      file
	marks  file
	hash   *digest.Hash
	held   uint64
	marked uint64
	over   bool // committed or forgotten
	closed bool
	fault  error // of a write that may have left something behind
}

// Part continues an object where it stopped, or begins it. It waits while another holds it. Of an object that is there
// already it holds everything. The caller closes it.
func (s *Store) Part(ctx context.Context, ref digest.Ref) (*Part, error) {
	if s.options.ReadOnly {
		return nil, ErrReadOnly
	}
	if err := s.claim(ctx, ref); err != nil {
		return nil, err
	}
	p := &Part{s: s, ref: ref, path: filepath.Join(s.layout.parts(), refToName(ref))}
	err := p.open(ctx)
	if err != nil {
		s.unclaim(ref)
		return nil, fmt.Errorf("part of object %v: %w", ref, noRoom(err))
	}
	return p, nil
}

// claim waits until nobody else holds the part of an object.
func (s *Store) claim(ctx context.Context, ref digest.Ref) error {
	for {
		s.mu.Lock()
		busy, ok := s.arrival[ref]
		if !ok {
			s.arrival[ref] = make(chan struct{})
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *Store) unclaim(ref digest.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.arrival[ref])
	delete(s.arrival, ref)
}

// open finds out how much is there.
func (p *Part) open(ctx context.Context) (err error) {
	if p.there, err = p.s.have(p.ref); err != nil {
		return err
	}
	if p.there {
		p.held = p.ref.Bytes
		return nil
	}
	if err := p.claimRoom(ctx); err != nil {
		return err
	}
	if p.f, err = p.s.files.resume(p.path); err == nil {
		p.marks, err = p.s.files.resume(p.path + marksEnding)
	}
	if err == nil {
		err = p.rehash(ctx)
	}
	if err != nil {
		p.s.release(p.ref.Bytes, 0)
		return errors.Join(err, p.closeFiles())
	}
	p.s.land(p.held)
	return nil
}

// claimRoom reserves room for the whole object, in which what is there already has its place.
func (p *Part) claimRoom(ctx context.Context) error {
	var has uint64
	if info, err := p.s.files.stat(p.path); err == nil {
		has = info.bytes
	}
	p.s.lose(has)
	err := p.s.reserve(ctx, p.ref.Bytes)
	if err != nil {
		p.s.mu.Lock()
		p.s.room.stored += has
		p.s.mu.Unlock()
	}
	return err
}

// rehash believes what is there up to the last good mark.
func (p *Part) rehash(ctx context.Context) error {
	info, err := p.f.Stat()
	if err != nil {
		return err
	}
	list, err := io.ReadAll(io.LimitReader(p.marks, maxMarks*markSize))
	if err != nil {
		return err
	}
	good := 0
	p.hash = digest.NewHash()
	for good < len(list)/markSize {
		at, want := readMark(list[good*markSize:])
		if at <= p.held || at > p.ref.Bytes || at > uint64(info.Size()) {
			break
		}
		n, err := io.Copy(p.hash, io.LimitReader(p.f, int64(at-p.held)))
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if uint64(n) != at-p.held || p.hash.Ref().Digest != want {
			return p.cut(good, true)
		}
		p.held = at
		good++
	}
	return p.cut(good, false)
}

// cut removes what is behind the last good mark, and hashes the rest anew if the hash has seen more.
func (p *Part) cut(good int, spoilt bool) error {
	if p.marked = p.held; spoilt {
		p.hash.Reset()
		if _, err := p.f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(p.hash, io.LimitReader(p.f, int64(p.held))); err != nil {
			return err
		}
	}
	err := errors.Join(p.f.Truncate(int64(p.held)), p.marks.Truncate(int64(good*markSize)))
	_, e1 := p.f.Seek(int64(p.held), io.SeekStart)
	_, e2 := p.marks.Seek(int64(good*markSize), io.SeekStart)
	return errors.Join(err, e1, e2)
}

func readMark(b []byte) (uint64, digest.Digest) {
	return binary.LittleEndian.Uint64(b), digest.Digest(b[8:markSize])
}

// Held is how many bytes from the first on are there: the next byte to write is that at Held.
func (p *Part) Held() uint64 { return p.held }

// Write appends bytes. Bytes beyond the object's size are refused with a *cas.MismatchError, and none of them is taken.
func (p *Part) Write(b []byte) (int, error) {
	switch {
	case p.fault != nil:
		return 0, p.fault
	case p.closed || p.over:
		return 0, os.ErrClosed
	case uint64(len(b)) > p.ref.Bytes-p.held:
		return 0, &cas.MismatchError{Ref: p.ref, Got: digest.Ref{Bytes: p.held + uint64(len(b))}}
	}
	n := 0
	for n < len(b) {
		// Up to the next mark only, so that a mark stands wherever one is due.
		piece := b[n:min(len(b), n+int(p.marked+p.s.markEvery-p.held))]
		if err := p.s.writeAll(context.Background(), p.f, piece); err != nil {
			p.fault = fmt.Errorf("part of object %v: %w", p.ref, err)
			return n, p.fault
		}
		_, _ = p.hash.Write(piece)
		p.s.land(uint64(len(piece)))
		n += len(piece)
		p.held += uint64(len(piece))
		if p.held == p.marked+p.s.markEvery {
			if err := p.mark(); err != nil {
				p.fault = fmt.Errorf("part of object %v: %w", p.ref, err)
				return n, p.fault
			}
		}
	}
	return n, nil
}

// mark notes that what is held is right.
func (p *Part) mark() error {
	if p.held == p.marked {
		return nil
	}
	record := binary.LittleEndian.AppendUint64(make([]byte, 0, markSize), p.held)
	sum := p.hash.Ref().Digest
	if err := p.s.writeAll(context.Background(), p.marks, append(record, sum[:]...)); err != nil {
		return err
	}
	p.marked = p.held
	return nil
}

// Commit makes the object of the bytes held, as Put does. Where they are another object, or not all of it, everything is
// forgotten and the error is a *cas.MismatchError. Close is still to be called.
func (p *Part) Commit(context.Context) error {
	switch {
	case p.there:
		return nil
	case p.over || p.closed:
		return os.ErrClosed
	case p.fault != nil:
		return p.fault
	}
	p.over = true
	if got := p.hash.Ref(); got != p.ref {
		return errors.Join(&cas.MismatchError{Ref: p.ref, Got: got}, p.forget())
	}
	err := errors.Join(p.f.Chmod(0o444), p.s.ensure(p.ref.Digest), p.closeFiles())
	if err != nil {
		return noRoom(errors.Join(err, p.forget()))
	}
	err = p.s.settle(written{p.ref, p.path})
	p.there = err == nil
	if err := p.s.files.remove(p.path + marksEnding); err != nil {
		p.s.log.Warn("the marks of a part stay until the next start", "object", p.ref.String(), "error", err)
	}
	return err
}

// forget removes everything that has arrived.
func (p *Part) forget() error {
	err := errors.Join(p.closeFiles(), p.s.files.remove(p.path+marksEnding), p.s.files.remove(p.path))
	p.s.release(p.ref.Bytes, p.held)
	return err
}

// Close keeps what was written, for the next Part of the same object. After Commit it keeps nothing.
func (p *Part) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	defer p.s.unclaim(p.ref)
	if p.there || p.over {
		return nil
	}
	var err error
	if p.s.options.Durable {
		err = p.f.Sync()
	}
	err = errors.Join(err, p.mark(), p.closeFiles())
	p.s.keep(p.held)
	p.s.release(p.ref.Bytes-p.held, 0)
	return noRoom(err)
}

func (p *Part) closeFiles() error {
	var err error
	for _, f := range []file{p.f, p.marks} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	p.f, p.marks = nil, nil
	return err
}

// refToName and nameToRef spell a reference as the name of a file.
func refToName(ref digest.Ref) string {
	return fmt.Sprintf("%s.%d", hex.EncodeToString(ref.Digest[:]), ref.Bytes)
}

func nameToRef(name string) string { return strings.ReplaceAll(name, ".", ":") }
