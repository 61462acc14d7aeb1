//go:build unix

package program

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A diary notes in which order things ended.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, s)
}

// until returns a part that runs until it is stopped, and notes that.
func (d *diary) until(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		<-ctx.Done()
		d.note(name)
		return ctx.Err()
	}
}

func TestAStackStopsUsersBeforeWhatTheyUse(t *testing.T) {
	var d diary
	ctx, cancel := context.WithCancel(t.Context())
	s := NewStack(ctx, nil)
	s.Close("store", func() error { d.note("store"); return nil })
	s.Go("control", d.until("control"))
	s.Go("agents", d.until("agents"))
	s.Close("socket", func() error { d.note("socket"); return nil })
	s.Go("http", d.until("http"))
	cancel()
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"http", "socket", "agents", "control", "store"}, d.lines); diff != "" {
		t.Error(diff)
	}
	if err := s.Stop(); err != nil || len(d.lines) != 5 {
		t.Errorf("stopping again: %v, %v", err, d.lines)
	}
}

func TestAPartThatEndsEndsTheStack(t *testing.T) {
	var d diary
	broken := errors.New("disk on fire")
	s := NewStack(t.Context(), nil)
	s.Go("store", d.until("store"))
	s.Go("agents", func(context.Context) error { return broken })
	err := s.Wait(t.Context())
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "agents: ") {
		t.Errorf("err = %v", err)
	}
	if diff := cmp.Diff([]string{"store"}, d.lines); diff != "" {
		t.Error(diff)
	}
}

func TestAPartThatEndsWithoutAReasonIsAnError(t *testing.T) {
	s := NewStack(t.Context(), nil)
	s.Go("agents", func(context.Context) error { return nil })
	if err := s.Wait(t.Context()); err == nil || err.Error() != "agents: ended by itself" {
		t.Errorf("err = %v", err)
	}
}

func TestErrorsOfStoppingAreTold(t *testing.T) {
	s := NewStack(t.Context(), nil)
	flush, last := errors.New("flush"), errors.New("last words")
	s.Close("store", func() error { return flush })
	s.Go("agents", func(ctx context.Context) error { <-ctx.Done(); return last })
	if err := s.Stop(); !errors.Is(err, flush) || !errors.Is(err, last) {
		t.Errorf("err = %v", err)
	}
}

func TestAPanicInAPartEndsTheProgramWithItsCode(t *testing.T) {
	var out bytes.Buffer
	code := Run(t.Context(), Options{Name: "p", Stderr: &out}, func(ctx context.Context, _ *Program) error {
		s := NewStack(ctx, nil)
		s.Go("agents", func(context.Context) error { panic("a bug in a part") })
		return s.Wait(ctx)
	})
	if code != CodePanic || !strings.Contains(out.String(), "a bug in a part") {
		t.Errorf("code %d, printed %q", code, &out)
	}
}

func TestAStackIsBounded(t *testing.T) {
	s := NewStack(t.Context(), nil)
	for range MaxParts {
		s.Close("x", func() error { return nil })
	}
	defer func() {
		if recover() == nil {
			t.Error("one part too many was taken")
		}
	}()
	s.Close("x", func() error { return nil })
}
