package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of an upload.
const (
	uploadWorkers = 4 // requests at a time
	// uploadTries is how often in a row a request may fail on its way without any progress.
	uploadTries = 8
	// batchFill is how many bytes of objects go into one batch, which has room for their references too.
	batchFill = MaxBatchBytes - MaxBatchObjects*maxRefText
	// maxRefText is how long the line before an object is at most.
	maxRefText = 96
)

// Objects is what a project of the daemon holds, as a cas.Store. Small objects travel many at a time, a large one has a request of
// its own, which goes on after a cut from where the daemon has it. All methods may be called by many at once. Their errors are
// those of package cas, a *Problem, the source's, or the context's.
type Objects struct {
	client  *Client
	project forge.ProjectName
}

// Objects returns what a project holds; of the default project where none is named.
func (c *Client) Objects(project forge.ProjectName) *Objects {
	if project == "" {
		project = forge.DefaultProject
	}
	return &Objects{client: c, project: project}
}

// Missing implements cas.Sink.
func (o *Objects) Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	var all []digest.Ref
	refs = cas.Distinct(refs, func(digest.Ref) bool { return true })
	for len(refs) > 0 {
		n := min(len(refs), MaxMissing)
		some, err := o.ask(ctx, refs[:n])
		if err != nil {
			return nil, err
		}
		all, refs = append(all, some...), refs[n:]
	}
	return all, nil
}

func (o *Objects) ask(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	request := MissingRequest{Project: string(o.project), Refs: make([]string, len(refs))}
	for i, ref := range refs {
		request.Refs[i] = ref.String()
	}
	answer, err := fetch[MissingAnswer](ctx, o.client, call{method: http.MethodPost, path: "cas:missing", body: request})
	if err != nil {
		return nil, err
	}
	missing := make([]digest.Ref, len(answer.Missing))
	for i, text := range answer.Missing {
		if missing[i], err = digest.ParseRef(text); err != nil {
			return nil, NewProblem(CodeUnreadableAnswer, "%q is no object", clip(text))
		}
	}
	return missing, nil
}

// HasTree reports whether the project has a tree with all below it.
func (o *Objects) HasTree(ctx context.Context, t forge.TreeRef) (bool, error) {
	request := MissingRequest{Project: string(o.project), Tree: &Tree{Root: t.Root.String(), Files: t.Files, Bytes: Size(t.Bytes), Depth: t.Depth}}
	answer, err := fetch[MissingAnswer](ctx, o.client, call{method: http.MethodPost, path: "cas:missing", body: request})
	return err == nil && answer.Complete != nil && *answer.Complete, err
}

// Put implements cas.Sink. A large object whose upload is cut is lost unless r can seek; CopyFrom goes on.
func (o *Objects) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	seeker, seeks := r.(io.Seeker)
	start := int64(0)
	if seeks {
		var err error
		start, err = seeker.Seek(0, io.SeekCurrent)
		seeks = err == nil
	}
	opened := false
	return o.upload(ctx, ref, func() (io.ReadCloser, error) {
		switch {
		case seeks:
			if _, err := seeker.Seek(start, io.SeekStart); err != nil {
				return nil, err
			}
		case opened:
			return nil, errors.New("the upload was cut, and the bytes cannot be read again")
		}
		opened = true
		return io.NopCloser(&exact{r: r, ref: ref, hash: digest.NewHash()}), nil
	})
}

// exact gives the bytes of an object, the last of them only once it has seen that all together are the object and nothing comes
// behind them: the daemon may have the beginning from another upload, and would complete an object that is not what r gives.
type exact struct {
	r    io.Reader
	ref  digest.Ref
	hash *digest.Hash
	read uint64
}

func (e *exact) Read(p []byte) (int, error) {
	n, err := e.take(p)
	if err == nil && e.read >= e.ref.Bytes {
		var more [1]byte
		for err == nil && e.read <= e.ref.Bytes {
			_, err = e.take(more[:])
		}
	}
	switch {
	case err != nil && err != io.EOF:
		return 0, err
	case e.read > e.ref.Bytes:
		return 0, &cas.MismatchError{Ref: e.ref, Got: digest.Ref{Bytes: e.read}}
	case err == io.EOF && e.hash.Ref() != e.ref:
		return 0, &cas.MismatchError{Ref: e.ref, Got: e.hash.Ref()}
	}
	return n, err
}

func (e *exact) take(p []byte) (int, error) {
	n, err := e.r.Read(p)
	_, _ = e.hash.Write(p[:n]) // takes everything
	e.read += uint64(n)        //nolint:gosec // a count
	return n, err
}

// CopyFrom implements cas.CopierFrom.
func (o *Objects) CopyFrom(ctx context.Context, src cas.Source, refs []digest.Ref) error {
	missing, err := o.Missing(ctx, refs)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(uploadWorkers)
	var batch []digest.Ref
	size := uint64(0)
	send := func() {
		some := batch
		batch, size = nil, 0
		if len(some) > 0 {
			group.Go(func() error { return o.sendBatch(ctx, src, some) })
		}
	}
	for _, ref := range missing {
		if ref.Bytes > MaxBatchObject {
			group.Go(func() error {
				return o.upload(ctx, ref, func() (io.ReadCloser, error) { return src.Open(ctx, ref) })
			})
			continue
		}
		if len(batch) == MaxBatchObjects || size+ref.Bytes > batchFill {
			send()
		}
		batch, size = append(batch, ref), size+ref.Bytes
	}
	send()
	return group.Wait()
}

// sendBatch sends small objects, again where the road breaks: an object that is there already costs the daemon nothing.
func (o *Objects) sendBatch(ctx context.Context, src cas.Source, refs []digest.Ref) error {
	body, err := batchOf(ctx, src, refs)
	if err != nil {
		return err
	}
	header := http.Header{"Content-Type": {TypeObjects}}
	if encoded := shorter(body); encoded != nil {
		body = encoded
		header.Set("Content-Encoding", EncodingZstd)
	}
	answer := &BatchAnswer{}
	err = o.persist(ctx, func() (bool, error) {
		return false, o.client.do(ctx, call{
			method: http.MethodPost, path: "cas:batch", query: o.query(), header: header,
			raw: bytes.NewReader(body), length: int64(len(body)),
		}, answer)
	})
	if err != nil {
		return stored(refs[0], err)
	}
	if len(answer.Objects) != len(refs) {
		return NewProblem(CodeUnreadableAnswer, "a batch of %d objects has %d results", len(refs), len(answer.Objects))
	}
	for i, result := range answer.Objects {
		if result.Code != "" {
			return stored(refs[i], NewProblem(result.Code, "object %s: %s", clip(result.Ref), result.Detail))
		}
	}
	return nil
}

// batchOf reads objects into a batch.
func batchOf(ctx context.Context, src cas.Source, refs []digest.Ref) ([]byte, error) {
	var body bytes.Buffer
	for _, ref := range refs {
		body.WriteString(ref.String())
		body.WriteByte('\n')
		r, err := src.Open(ctx, ref)
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(&body, r)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
	}
	return body.Bytes(), nil
}

// upload sends one object, from where the daemon has it.
func (o *Objects) upload(ctx context.Context, ref digest.Ref, open func() (io.ReadCloser, error)) error {
	state := Upload{}
	overAgain := false
	return stored(ref, o.persist(ctx, func() (bool, error) {
		before := state.Offset
		err := o.send(ctx, ref, open, &state)
		var p *Problem
		switch {
		case err == nil && !state.Complete:
			err = NewProblem(CodeUnreachable, "the daemon has %d of %d bytes", state.Offset, ref.Bytes)
		case errors.As(err, &p) && p.Code == CodeDigest && before > 0 && !overAgain:
			// What it had may have been wrong, and it has forgotten that now.
			overAgain, state = true, Upload{}
			err = NewProblem(CodeUnavailable, "%s", p.Detail)
		}
		return state.Offset > before, err
	}))
}

// send sends the rest of an object in one request. state is what the daemon has, also after an error as far as it is known.
func (o *Objects) send(ctx context.Context, ref digest.Ref, open func() (io.ReadCloser, error), state *Upload) error {
	r, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if _, err := io.CopyN(io.Discard, r, int64(state.Offset)); err != nil { //nolint:gosec // it was at most the object's size
		return err
	}
	body := &watched{r: r}
	answer, err := o.client.send(ctx, call{
		method: http.MethodPut, path: one("cas", ref.String()), query: o.query(),
		header: http.Header{"Content-Type": {TypeRawLog}, HeaderUploadOffset: {strconv.FormatUint(state.Offset, 10)}},
		raw:    body, length: int64(ref.Bytes - state.Offset), //nolint:gosec // an object of more is never made
	})
	if broken := body.broken(); broken != nil {
		if err == nil {
			_ = answer.Body.Close()
		}
		return broken
	}
	if err != nil {
		state.Offset = o.offset(ctx, ref, state.Offset)
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(state); err != nil {
		return unreachable(ctx, err)
	}
	if state.Offset > ref.Bytes {
		return NewProblem(CodeUnreadableAnswer, "the daemon has %d bytes of an object of %d", state.Offset, ref.Bytes)
	}
	return nil
}

// watched keeps the error of a source apart from those of the road. The transport may read it in a goroutine of its own.
type watched struct {
	r io.Reader

	mu  sync.Mutex
	err error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && err != io.EOF {
		w.mu.Lock()
		w.err = err
		w.mu.Unlock()
	}
	return n, err
}

func (w *watched) broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// offset asks how much of an object has come. Where that cannot be told it is what was known.
func (o *Objects) offset(ctx context.Context, ref digest.Ref, known uint64) uint64 {
	r := call{method: http.MethodHead, path: one("cas", ref.String()), query: o.query()}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url(o.client.base), nil)
	if err != nil {
		return known
	}
	o.client.sign(req)
	answer, err := o.client.http.Do(req)
	if err != nil {
		return known
	}
	_ = answer.Body.Close()
	n, err := strconv.ParseUint(answer.Header.Get(HeaderUploadOffset), 10, 63)
	if err != nil || n > ref.Bytes {
		return known
	}
	return n
}

// persist repeats what the road or a busy daemon has kept from its end, as long as something comes of it now and then.
func (o *Objects) persist(ctx context.Context, do func() (progress bool, err error)) error {
	for tries, pause := 0, firstPause; ; {
		progress, err := do()
		var p *Problem
		switch {
		case err == nil:
			return nil
		case !again(err) && !(errors.As(err, &p) && p.Code == CodeOffset):
			return err
		case progress:
			tries, pause = 0, firstPause
		default:
			tries++
		}
		if tries == uploadTries {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		pause = min(2*pause, longestPause)
	}
}

func (o *Objects) query() url.Values { return url.Values{"project": {string(o.project)}} }
