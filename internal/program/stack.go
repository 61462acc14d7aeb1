package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// MaxParts bounds the parts of a Stack.
const MaxParts = 64

// errStop is the cause with which a Stack cancels a part whose turn to stop has come.
var errStop = errors.New("stopped in its turn")

// A Stack holds the parts of a program in the order in which they were started and stops them in the reverse one, each
// only when all that came after it have ended: a user stops before what it uses.
//
//	stack := program.NewStack(ctx, log)
//	stack.Close("store", store.Close)
//	stack.Go("agents", agents.Run)
//	return stack.Wait(ctx)
//
// Go and Close are called by one goroutine, before Wait.
type Stack struct {
	base  context.Context
	log   *slog.Logger
	parts []*part
	first chan *part // the first part that ended, with room for one
	once  sync.Once
}

type part struct {
	name   string
	cancel context.CancelCauseFunc // nil for what is only closed
	close  func() error
	ended  chan struct{}
	err    error // set before ended is closed
}

// NewStack returns an empty stack. Its parts get the values of ctx, not its end: they end in their turn.
func NewStack(ctx context.Context, log *slog.Logger) *Stack {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Stack{base: context.WithoutCancel(ctx), log: log, first: make(chan *part, 1)}
}

// Go starts a part on a goroutine of its own. It runs until its context is cancelled; a part that ends before ends the
// whole stack. A panic in it is an error like others, and ends the process with CodePanic if it reaches Run.
func (s *Stack) Go(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancelCause(s.base)
	p := &part{name: name, cancel: cancel, ended: make(chan struct{})}
	s.push(p)
	go func() {
		defer close(p.ended)
		p.err = guard(func() error { return run(ctx) })
		select {
		case s.first <- p:
		default: // another one was first
		}
	}()
}

// Close puts something on the stack that does not run but is closed in its turn.
func (s *Stack) Close(name string, closing func() error) {
	s.push(&part{name: name, close: closing})
}

func (s *Stack) push(p *part) {
	if len(s.parts) == MaxParts {
		panic(fmt.Sprintf("program: more than %d parts", MaxParts))
	}
	s.parts = append(s.parts, p)
}

// Wait blocks until ctx is cancelled or a part ends, then stops all parts and returns their errors, that of the part that
// ended by itself first. A part that ends by itself without an error is one: parts run until they are stopped.
func (s *Stack) Wait(ctx context.Context) error {
	var early error
	select {
	case <-ctx.Done():
	case p := <-s.first:
		if early = p.err; early == nil {
			early = errors.New("ended by itself")
		}
		early = fmt.Errorf("%s: %w", p.name, early)
		p.err = nil
	}
	return errors.Join(early, s.Stop())
}

// Stop stops all parts, the last one first, and returns what they ended with, except for being stopped. It returns when
// all goroutines of the stack have ended. Stopping again does nothing.
func (s *Stack) Stop() error {
	var err error
	s.once.Do(func() {
		for i := len(s.parts) - 1; i >= 0; i-- {
			if e := s.parts[i].stop(); e != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", s.parts[i].name, e))
			}
			s.log.Debug("stopped", "component", s.parts[i].name)
		}
	})
	return err
}

// stop ends one part and waits for it.
func (p *part) stop() error {
	if p.close != nil {
		return guard(p.close)
	}
	p.cancel(errStop)
	<-p.ended
	if errors.Is(p.err, context.Canceled) || errors.Is(p.err, errStop) {
		return nil
	}
	return p.err
}
