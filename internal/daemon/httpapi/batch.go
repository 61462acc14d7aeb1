package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// maxRefLine bounds the line before an object.
const maxRefLine = 128

// putBatch stores many small objects.
func (s *Server) putBatch(w http.ResponseWriter, r *http.Request, in *intake) error {
	project, err := s.project(r.URL.Query().Get("project"))
	if err != nil {
		return err
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != api.TypeObjects {
		return api.NewProblem(api.CodeMediaType, "send it with Content-Type: %s", api.TypeObjects)
	}
	in.body = http.MaxBytesReader(w, r.Body, api.MaxBatchBytes)
	body, err := decoded(r.Header.Get("Content-Encoding"), in)
	if err != nil {
		return err
	}
	defer body.Close()
	b, err := readBatch(body)
	if err != nil {
		return err
	}
	if err := project.CopyFrom(r.Context(), b.good, b.refs); err != nil {
		return err
	}
	s.reply(w, r, http.StatusOK, api.BatchAnswer{Objects: b.results})
	return nil
}

// batch is a batch that was read to its end.
type batch struct {
	good    offered
	refs    []digest.Ref // of good
	results []api.BatchResult
}

// readBatch takes a batch apart. What is not the object that it should be is noted and left out.
func readBatch(r io.Reader) (*batch, error) {
	in := bufio.NewReaderSize(r, maxRefLine)
	b := &batch{good: offered{}, results: []api.BatchResult{}}
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF && len(line) == 0:
			return b, nil
		case err == io.EOF || errors.Is(err, bufio.ErrBufferFull):
			return nil, api.NewProblem(api.CodeMalformed, "object %d: there is no reference on a line of its own before it", len(b.results))
		case err != nil:
			return nil, err
		}
		ref, err := digest.ParseRef(string(line[:len(line)-1]))
		switch {
		case err != nil:
			return nil, api.NewProblem(api.CodeMalformed, "object %d: %v", len(b.results), err)
		case ref.Bytes > api.MaxBatchObject:
			return nil, api.NewProblem(api.CodeTooLarge, "object %v: one of more than %d bytes has a PUT of its own", ref, api.MaxBatchObject)
		case len(b.results) == api.MaxBatchObjects:
			return nil, api.NewProblem(api.CodeTooLarge, "a batch has at most %d objects", api.MaxBatchObjects)
		}
		data := make([]byte, ref.Bytes)
		if _, err := io.ReadFull(in, data); err != nil {
			if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
				err = api.NewProblem(api.CodeMalformed, "object %v: the body ends within it", ref)
			}
			return nil, err
		}
		b.add(ref, data)
	}
}

func (b *batch) add(ref digest.Ref, data []byte) {
	result := api.BatchResult{Ref: ref.String()}
	if got := digest.RefOf(data); got != ref {
		result.Code, result.Detail = api.CodeDigest, (&cas.MismatchError{Ref: ref, Got: got}).Error()
	} else {
		b.good[ref] = data
		b.refs = append(b.refs, ref)
	}
	b.results = append(b.results, result)
}

// offered is verified objects of a batch.
type offered map[digest.Ref][]byte

// Open implements cas.Source.
func (m offered) Open(_ context.Context, ref digest.Ref) (io.ReadCloser, error) {
	data, ok := m[ref]
	if !ok {
		return nil, cas.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// decoded is a batch's body without its encoding.
func decoded(encoding string, in io.Reader) (io.ReadCloser, error) {
	switch encoding {
	case "", "identity":
		return io.NopCloser(in), nil
	case api.EncodingZstd:
	default:
		return nil, api.NewProblem(api.CodeMediaType, "send it with Content-Encoding: %s, or with none", api.EncodingZstd)
	}
	narrow := &inflation{src: in}
	var err error
	narrow.dec, err = zstd.NewReader(&narrow.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	narrow.in.r = in
	return narrow, err
}

// maxWindow bounds how far back an encoded batch may refer, which a decoder keeps in memory.
const maxWindow = 8 << 20

// inflation decodes, within the bounds of a batch and of its ratio: the first bytes are free.
type inflation struct {
	src io.Reader
	in  counting
	dec *zstd.Decoder
	out int64
}

// freeBytes may come out of an encoded body before its ratio counts.
const freeBytes = 256 << 10

func (f *inflation) Read(p []byte) (int, error) {
	n, err := f.dec.Read(p)
	f.out += int64(n)
	switch {
	case f.out > api.MaxBatchBytes:
		return 0, api.NewProblem(api.CodeTooLarge, "it decodes to more than %d bytes", api.MaxBatchBytes)
	case f.out > freeBytes+api.MaxRatio*f.in.n:
		return 0, api.NewProblem(api.CodeTooLarge, "a byte of it decodes to more than %d", api.MaxRatio)
	case err != nil && err != io.EOF && f.in.err == nil:
		return n, api.NewProblem(api.CodeMalformed, "it is not %s: %v", api.EncodingZstd, err)
	case err != nil && err != io.EOF:
		return n, f.in.err
	}
	return n, err
}

func (f *inflation) Close() error {
	f.dec.Close()
	return nil
}

// counting counts what was read, and keeps the error that ended it.
type counting struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}
