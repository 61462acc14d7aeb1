package native

import (
	"context"
	"errors"
	"sync"

	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// launchers is the launcher that makes sandboxes now. One that somebody has killed is replaced with the next order.
type launchers struct {
	cfg sandbox.Config

	opening sync.Mutex // one is opened at a time; held while that takes

	mu      sync.Mutex
	current *sandbox.Launcher
	closed  bool
}

func openLaunchers(ctx context.Context, cfg sandbox.Config) (*launchers, error) {
	l, err := sandbox.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &launchers{cfg: cfg, current: l}, nil
}

// living returns the launcher, which is a new one where the last has ended.
func (s *launchers) living(ctx context.Context) (*sandbox.Launcher, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	l, closed := s.current, s.closed
	s.mu.Unlock()
	select {
	case <-l.Ended():
	default:
		return l, nil
	}
	if closed {
		return nil, sandbox.ErrEnded
	}
	s.cfg.Log.Warn("the launcher of sandboxes was ended from outside; another one takes its place")
	if err := l.Close(); err != nil {
		s.cfg.Log.Warn("the launcher that ended", "error", err)
	}
	next, err := sandbox.Open(ctx, s.cfg)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = next
	return next, nil
}

// make makes a sandbox. A launcher that ends over it is replaced once.
func (s *launchers) make(ctx context.Context, o *sandbox.Order) (*sandbox.Box, error) {
	for again := false; ; again = true {
		l, err := s.living(ctx)
		if err != nil {
			return nil, err
		}
		box, err := l.Make(ctx, o)
		if err == nil || again || !errors.Is(err, sandbox.ErrEnded) {
			return box, err
		}
		<-l.Ended()
	}
}

// close ends every sandbox and waits for it.
func (s *launchers) close() error {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	already := s.closed
	s.closed = true
	l := s.current
	s.mu.Unlock()
	if already {
		return nil
	}
	return l.Close()
}
