package disk

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

const (
	// bufferBytes is what is read and written at a time. An object that fits is hashed before a file is made for it.
	bufferBytes = 256 << 10
	// growBytes is by how much room is reserved for an object whose size is not known.
	growBytes = 8 << 20
)

// buffers and hashes are kept for the next object: of small ones there are many.
var (
	buffers = sync.Pool{New: func() any { return new([bufferBytes]byte) }}
	hashes  = sync.Pool{New: func() any { return digest.NewHash() }}
)

// Put implements cas.Sink.
func (s *Store) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	w, there, err := s.take(ctx, &ref, r)
	if err != nil || there {
		return err
	}
	return s.settle(w)
}

// Add stores what r gives and returns its name. It is as visible and durable as after Put.
func (s *Store) Add(ctx context.Context, r io.Reader) (digest.Ref, error) {
	w, there, err := s.take(ctx, nil, r)
	if err == nil && !there {
		err = s.settle(w)
	}
	if err != nil {
		return digest.Ref{}, err
	}
	return w.ref, nil
}

// take reads an object into a temporary file, unless it is there already. want is nil where its name is not known.
func (s *Store) take(ctx context.Context, want *digest.Ref, r io.Reader) (w written, there bool, err error) {
	if s.options.ReadOnly {
		return written{}, false, ErrReadOnly
	}
	if ctx.Err() != nil {
		return written{}, false, context.Cause(ctx)
	}
	if want != nil {
		if there, err := s.have(*want); there || err != nil {
			return written{ref: *want}, there, err
		}
	}
	buffer := buffers.Get().(*[bufferBytes]byte)
	defer buffers.Put(buffer)
	n, ended, err := fill(r, buffer[:])
	if err != nil {
		return written{}, false, err
	}
	if !ended {
		return s.takeLong(ctx, want, buffer[:], r)
	}
	return s.takeShort(ctx, want, buffer[:n])
}

// fill reads until the buffer is full or r ends.
func fill(r io.Reader, buffer []byte) (n int, ended bool, err error) {
	for n < len(buffer) {
		more, err := r.Read(buffer[n:])
		n += more
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// have reports whether an object is there, and as durable as it is going to be.
func (s *Store) have(ref digest.Ref) (bool, error) {
	there, err := s.present(ref)
	if there && err == nil {
		if g := s.flushes.of(ref); g != nil {
			<-g.done
			return g.err == nil, nil
		}
	}
	return there, err
}

// takeShort takes an object that is in memory.
func (s *Store) takeShort(ctx context.Context, want *digest.Ref, data []byte) (w written, there bool, err error) {
	w.ref = digest.RefOf(data)
	if want == nil {
		if there, err = s.have(w.ref); there || err != nil {
			return w, there, err
		}
	} else if *want != w.ref {
		return w, false, &cas.MismatchError{Ref: *want, Got: w.ref}
	}
	if err := s.reserve(ctx, w.ref.Bytes); err != nil {
		return w, false, err
	}
	err = s.ensure(w.ref.Digest)
	var f io.WriteCloser
	if err == nil {
		f, w.temp, err = s.create(ctx)
	}
	if err == nil {
		err = errors.Join(s.writeAll(ctx, f, data), f.Close())
		if err != nil {
			s.discard(w.temp)
		}
	}
	if err != nil {
		s.release(w.ref.Bytes, 0)
		return w, false, noRoom(err)
	}
	s.land(w.ref.Bytes)
	return w, false, nil
}

// takeLong takes an object that does not fit the buffer, which is full with its beginning.
func (s *Store) takeLong(ctx context.Context, want *digest.Ref, buffer []byte, r io.Reader) (w written, there bool, err error) {
	l := long{s: s, want: want, hash: hashes.Get().(*digest.Hash)}
	l.hash.Reset()
	defer hashes.Put(l.hash)
	f, temp, err := s.create(ctx)
	if err != nil {
		return written{}, false, err
	}
	w.temp = temp
	err = errors.Join(l.copy(ctx, f, buffer, r), f.Close())
	w.ref = l.hash.Ref()
	if err == nil && want != nil && *want != w.ref {
		err = &cas.MismatchError{Ref: *want, Got: w.ref}
	}
	if err == nil && want == nil {
		there, err = s.have(w.ref)
	}
	if err == nil && !there {
		err = s.ensure(w.ref.Digest)
	}
	if err != nil || there {
		s.discard(temp)
		s.release(l.reserved, l.landed)
		return w, there, noRoom(err)
	}
	s.release(l.reserved-w.ref.Bytes, 0)
	return w, false, nil
}

// long is an object on its way through a buffer.
type long struct {
	s        *Store
	want     *digest.Ref
	hash     *digest.Hash
	reserved uint64
	landed   uint64
	size     uint64
}

func (l *long) copy(ctx context.Context, f io.Writer, buffer []byte, r io.Reader) error {
	n, ended := len(buffer), false
	for {
		if err := l.write(ctx, f, buffer[:n]); err != nil || ended {
			return err
		}
		var err error
		if n, ended, err = fill(r, buffer); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func (l *long) write(ctx context.Context, f io.Writer, data []byte) error {
	l.size += uint64(len(data))
	if l.want != nil && l.size > l.want.Bytes {
		return &cas.MismatchError{Ref: *l.want, Got: digest.Ref{Bytes: l.size}}
	}
	for l.reserved < l.size {
		more := uint64(growBytes)
		if l.want != nil {
			more = l.want.Bytes
		}
		if err := l.s.reserve(ctx, more); err != nil {
			return err
		}
		l.reserved += more
	}
	_, _ = l.hash.Write(data)
	if err := l.s.writeAll(ctx, f, data); err != nil {
		return err
	}
	l.s.land(uint64(len(data)))
	l.landed = l.size
	return nil
}

// create makes a temporary file.
func (s *Store) create(ctx context.Context) (f io.WriteCloser, temp string, err error) {
	temp = filepath.Join(s.layout.temps(), strconv.FormatUint(s.temp.Add(1), 36))
	err = s.retry(ctx, bufferBytes, func() error {
		f, err = s.files.create(temp)
		return err
	})
	return f, temp, err
}

// ensure makes an object's folder.
func (s *Store) ensure(d digest.Digest) error {
	made := &s.fan[d[0]]
	if made.Load() {
		return nil
	}
	err := s.files.mkdir(s.folder(d))
	if err == nil && s.options.Durable {
		err = s.files.syncFolder(s.layout.objects())
	}
	if err == nil {
		made.Store(true)
	}
	return err
}

// writeAll writes data, making room once where the disk is full.
func (s *Store) writeAll(ctx context.Context, f io.Writer, data []byte) error {
	return s.retry(ctx, len(data), func() error {
		for len(data) > 0 {
			n, err := f.Write(data)
			data = data[n:]
			if err != nil {
				return err
			}
			if n == 0 {
				return io.ErrShortWrite
			}
		}
		return nil
	})
}
