package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// MaxQueued bounds the requests of one class that wait for the writer. Each is a goroutine of its caller, so the bound is
// far above what an honest daemon has.
const MaxQueued = 8192

// classes is the number of classes; a class less one is its place in the queue's lists.
const classes = 3

// request is a change on its way through the writer. It is taken back by its caller or taken on by the writer, whoever is
// first; once it is taken on, its caller waits for done.
type request struct {
	run   func(*Tx) error
	taken atomic.Bool
	err   error
	done  chan struct{} // closed when err is final
}

// queue holds what waits for the writer, by class.
type queue struct {
	mu      sync.Mutex
	waiting [classes][]*request
	closed  bool
	wake    chan struct{} // holds a value when something was added
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

func (q *queue) add(class Class, r *request) error {
	if class < ClassLease || class > ClassRest {
		return fmt.Errorf("store: there is no request class %d", class)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	list := &q.waiting[class-1]
	switch {
	case q.closed:
		return ErrClosed
	case len(*list) >= MaxQueued:
		return ErrBusy
	}
	*list = append(*list, r)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

// pop takes on the first request that waits in one of the classes, the lowest class first, or returns nil. Requests that
// were taken back are dropped on the way.
func (q *queue) pop(from, to Class) (*request, Class) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for class := from; class <= to; class++ {
		list := &q.waiting[class-1]
		for len(*list) > 0 {
			r := (*list)[0]
			(*list)[0] = nil
			*list = (*list)[1:]
			if r.taken.CompareAndSwap(false, true) {
				return r, class
			}
		}
	}
	return nil, 0
}

// empty reports whether nothing waits.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, list := range q.waiting {
		if len(list) > 0 {
			return false
		}
	}
	return true
}

// wait blocks until something waits, and reports false where ctx ended first.
func (q *queue) wait(ctx context.Context) bool {
	for q.empty() {
		select {
		case <-q.wake:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// close refuses everything that comes from now on, and answers what waits with ErrClosed.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	for {
		r, _ := q.pop(ClassLease, ClassRest)
		if r == nil {
			return
		}
		r.finish(ErrClosed)
	}
}

func (r *request) finish(err error) {
	r.err = err
	close(r.done)
}
