package cas

import (
	"context"
	"fmt"
	"io"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// Check makes a reader of bytes that should be an object keep to the contract of Source.Open: it gives no byte beyond the
// object's size, and io.EOF only if all of them were the object. Errors of r are passed on as they are. Closing it closes r.
func Check(ref digest.Ref, r io.ReadCloser, where string) io.ReadCloser {
	return &checked{ref: ref, r: r, where: where, hash: digest.NewHash(), left: ref.Bytes}
}

type checked struct {
	ref   digest.Ref
	r     io.ReadCloser
	where string
	hash  *digest.Hash
	left  uint64
	err   error // what every further Read returns
}

func (c *checked) Read(p []byte) (int, error) {
	if c.err != nil || len(p) == 0 {
		return 0, c.err
	}
	var beyond [1]byte
	if c.left == 0 {
		p = beyond[:] // the end has to come now
	} else if uint64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.r.Read(p)
	if c.left == 0 && n > 0 {
		c.err = &CorruptError{Ref: c.ref, Where: c.where}
		return 0, c.err
	}
	_, _ = c.hash.Write(p[:n])
	c.left -= uint64(n)
	if err == io.EOF && c.hash.Ref() != c.ref {
		err = &CorruptError{Ref: c.ref, Where: c.where}
	}
	c.err = err
	return n, err
}

func (c *checked) Close() error { return c.r.Close() }

// ReadAll returns the bytes of an object of at most so many, all of them checked.
func ReadAll(ctx context.Context, src Source, ref digest.Ref, most uint64) ([]byte, error) {
	if ref.Bytes > most {
		return nil, fmt.Errorf("object %v is larger than the %d bytes that were expected at most", ref, most)
	}
	r, err := src.Open(ctx, ref)
	if err != nil {
		return nil, named(ref, err)
	}
	defer r.Close()
	// What is taken at once is bounded: that many bytes are promised, but perhaps none will come.
	data := make([]byte, 0, min(ref.Bytes, 1<<20)+1)
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, named(ref, err)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// named adds which object an error is about.
func named(ref digest.Ref, err error) error { return fmt.Errorf("object %v: %w", ref, err) }
