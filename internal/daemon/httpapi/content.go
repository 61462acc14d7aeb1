package httpapi

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// getObject gives the bytes of an object that the project holds.
func (s *Server) getObject(w http.ResponseWriter, r *http.Request) error {
	project, ref, err := s.named(r)
	if err != nil {
		return err
	}
	return s.sendObject(w, r, project, ref, "")
}

// sendObject answers with an object: whole, or the range that is asked for, with its exact length and its reference as entity
// tag. The last bytes go out when the whole object has been read and verified, and are never sent otherwise: whoever has got
// as many as were announced has got the right ones.
func (s *Server) sendObject(w http.ResponseWriter, r *http.Request, src cas.Source, ref digest.Ref, name string) error {
	o := &object{ctx: r.Context(), src: src, ref: ref}
	defer o.close()
	if err := o.open(); err != nil {
		return err
	}
	foreign(w, name)
	h := w.Header()
	h.Set("Content-Type", api.TypeRawLog)
	h.Set("Etag", strconv.Quote(ref.String()))
	if strings.Contains(r.Header.Get("Range"), ",") {
		r.Header.Del("Range") // each range costs reading the object; all of it is an answer to them too
	}
	out := &guarded{ResponseWriter: &patient{w, http.NewResponseController(w)}, object: o, left: -1}
	http.ServeContent(out, r, "", time.Time{}, o)
	return out.err
}

// foreign sets the headers of an answer whose bytes a job has made: whoever opens it in a browser gets a file to save, and
// nothing of it runs in the name of this site (S18).
func foreign(w http.ResponseWriter, name string) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	disposition := "attachment"
	if name != "" {
		disposition = mime.FormatMediaType(disposition, map[string]string{"filename": name})
	}
	h.Set("Content-Disposition", disposition)
}

// object is an object as something to seek in. It is read from its first byte whatever is asked for, since only all of it can be
// verified.
type object struct {
	ctx  context.Context //nolint:containedctx // of the one request that this lives in
	src  cas.Source
	ref  digest.Ref
	in   io.ReadCloser // nil: not open
	read int64         // how many bytes in has given
	at   int64         // what is wanted next
}

func (o *object) open() (err error) {
	o.close()
	o.in, err = o.src.Open(o.ctx, o.ref)
	o.read = 0
	return err
}

func (o *object) close() {
	if o.in != nil {
		_ = o.in.Close() // it was only read
		o.in = nil
	}
}

// Seek implements io.Seeker.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += int64(o.ref.Bytes) //nolint:gosec // a reference to more is never stored
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d", offset)
	}
	o.at = offset
	return offset, nil
}

func (o *object) Read(p []byte) (int, error) {
	if o.read > o.at {
		if err := o.open(); err != nil {
			return 0, err
		}
	}
	if skip := o.at - o.read; skip > 0 {
		n, err := io.CopyN(io.Discard, o.in, skip)
		o.read += n
		if err != nil {
			return 0, err
		}
	}
	n, err := o.in.Read(p)
	o.read += int64(n)
	o.at = o.read
	return n, err
}

// verify reads the rest.
func (o *object) verify() error {
	n, err := io.Copy(io.Discard, o.in)
	o.read += n
	return err
}

// guarded holds the end of an answer back until its object is verified.
type guarded struct {
	http.ResponseWriter
	object *object
	left   int64 // of the answer's body; -1: it is none of the object's bytes
	err    error
}

func (g *guarded) WriteHeader(status int) {
	if n, err := strconv.ParseInt(g.Header().Get("Content-Length"), 10, 64); err == nil && (status == http.StatusOK || status == http.StatusPartialContent) {
		g.left = n
	}
	g.ResponseWriter.WriteHeader(status)
}

func (g *guarded) Write(b []byte) (int, error) {
	if g.left >= 0 && int64(len(b)) >= g.left {
		if g.err = g.object.verify(); g.err != nil {
			return 0, g.err
		}
	}
	n, err := g.ResponseWriter.Write(b)
	if g.left >= 0 {
		g.left -= int64(n)
	}
	g.err = err
	return n, err
}
