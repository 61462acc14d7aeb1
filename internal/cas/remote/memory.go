package remote

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// memory is room for bytes that were received and are not stored yet: one connection's share of what all have.
type memory struct {
	own, all *semaphore.Weighted // own may be nil
}

// errNoMemory says that there was no room for too long.
var errNoMemory = errors.New("no memory for more objects now")

// take waits for room, not for long. The caller gives it back once.
func (m memory) take(ctx context.Context, n int) (give func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, memoryWithin, errNoMemory)
	defer cancel()
	if m.own != nil {
		if err := m.own.Acquire(ctx, int64(n)); err != nil {
			return nil, context.Cause(ctx)
		}
	}
	if err := m.all.Acquire(ctx, int64(n)); err != nil {
		m.giveOwn(n)
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		m.all.Release(int64(n))
		m.giveOwn(n)
	}), nil
}

// loan is bytes for a run on its way through. Bytes made anew for each run would be collected all the time, and their pages given
// back to the system and asked for again, which takes a fifth of the receiver's processor.
type loan struct {
	b    []byte
	full *[mostRun]byte // nil where b is longer than our runs are
}

var loans = sync.Pool{New: func() any { return new([mostRun]byte) }}

// lend returns n bytes, which hold anything. Whoever has them counts them.
func lend(n uint64) loan {
	if n > mostRun {
		return loan{b: make([]byte, n)}
	}
	full := loans.Get().(*[mostRun]byte)
	return loan{full[:n], full}
}

// back ends the use of a loan.
func (l loan) back() {
	if l.full != nil {
		loans.Put(l.full)
	}
}

func (m memory) giveOwn(n int) {
	if m.own != nil {
		m.own.Release(int64(n))
	}
}
