package castest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// Memory is a store in memory that counts what is read and can be made to lie. All methods may be called by many at once.
type Memory struct {
	mu    sync.Mutex
	data  map[digest.Ref][]byte
	reads map[digest.Ref]int
	spoil func(digest.Ref, io.Reader) io.Reader
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{data: make(map[digest.Ref][]byte), reads: make(map[digest.Ref]int)}
}

// Add stores an object.
func (m *Memory) Add(data []byte) digest.Ref {
	ref := digest.RefOf(data)
	m.Set(ref, data)
	return ref
}

// Set stores bytes under a name that need not be theirs.
func (m *Memory) Set(ref digest.Ref, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data[ref] = slices.Clone(data)
}

// Remove takes an object away.
func (m *Memory) Remove(ref digest.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.data, ref)
}

// Spoil puts something between the bytes of every object and who reads it, before they are checked. Nil takes it away.
func (m *Memory) Spoil(with func(digest.Ref, io.Reader) io.Reader) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spoil = with
}

// Data returns an object's bytes.
func (m *Memory) Data(ref digest.Ref) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.data[ref]
	return data, ok
}

// Refs returns the names of all objects, in no order.
func (m *Memory) Refs() []digest.Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.data))
}

// Reads says how often each object was opened.
func (m *Memory) Reads() map[digest.Ref]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.reads)
}

// Opened is how often any object was opened.
func (m *Memory) Opened() (n int) {
	for _, times := range m.Reads() {
		n += times
	}
	return n
}

// Open implements cas.Source.
func (m *Memory) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.data[ref]
	if !ok {
		return nil, cas.ErrNotFound
	}
	m.reads[ref]++
	r := io.Reader(bytes.NewReader(data))
	if m.spoil != nil {
		r = m.spoil(ref, r)
	}
	return cas.Check(ref, io.NopCloser(r), "memory"), nil
}

// Missing implements cas.Sink.
func (m *Memory) Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return cas.Distinct(refs, func(ref digest.Ref) bool { _, ok := m.data[ref]; return !ok }), nil
}

// Put implements cas.Sink.
func (m *Memory) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	if _, ok := m.Data(ref); ok {
		return nil
	}
	var data bytes.Buffer
	n, err := io.Copy(&data, io.LimitReader(r, int64(min(ref.Bytes, 1<<62))+1))
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case uint64(n) > ref.Bytes:
		return &cas.MismatchError{Ref: ref, Got: digest.Ref{Bytes: uint64(n)}}
	}
	if got := digest.RefOf(data.Bytes()); got != ref {
		return &cas.MismatchError{Ref: ref, Got: got}
	}
	m.Set(ref, data.Bytes())
	return nil
}
