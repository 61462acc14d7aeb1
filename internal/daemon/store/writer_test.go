package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// hooked opens a store with hooks, closed by the test's end.
func hooked(t *testing.T, h hooks) *Store {
	t.Helper()
	s, err := open(t.Context(), t.TempDir(), Options{}.withDefaults(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// held is a store whose writer stands inside a transaction, so that whatever is asked meanwhile waits.
type held struct {
	*Store
	release  chan struct{}
	commits  atomic.Int64
	atCommit func() // set before let
	first    chan error
}

func hold(t *testing.T) *held {
	t.Helper()
	h := &held{release: make(chan struct{}), first: make(chan error, 1)}
	h.Store = hooked(t, hooks{batchTime: time.Hour, beforeCommit: func() {
		h.commits.Add(1)
		if h.atCommit != nil {
			h.atCommit()
		}
	}})
	standing := make(chan struct{})
	go func() {
		h.first <- h.Update(context.Background(), ClassLease, func(*Tx) error {
			close(standing)
			<-h.release
			return nil
		})
	}()
	<-standing
	return h
}

// let lets the writer go on and takes the answer of what held it.
func (h *held) let(t *testing.T) {
	t.Helper()
	close(h.release)
	if err := <-h.first; err != nil {
		t.Fatalf("the request that held the writer: %v", err)
	}
}

// queued adds a request and returns where its answer will be. It does not wait.
func (h *held) queued(t *testing.T, class Class, change func(*Tx) error) *request {
	t.Helper()
	r := &request{run: change, done: make(chan struct{})}
	if err := h.writer.queue.add(class, r); err != nil {
		t.Fatal(err)
	}
	return r
}

func event(kind string) func(*Tx) error {
	return func(tx *Tx) error { return tx.AppendAudit(AuditEvent{Kind: kind}) }
}

// kinds lists the audit events that are stored, oldest first.
func kinds(t *testing.T, s *Store) []string {
	t.Helper()
	var kinds []string
	err := s.View(t.Context(), func(v *View) error {
		events, _, err := v.Audits(0, MaxPage)
		for _, e := range events {
			kinds = append(kinds, e.Kind)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(kinds)
	return kinds
}

func TestRequestsThatWaitTogetherShareACommitAndEachItsOwnFate(t *testing.T) {
	h := hold(t)
	errOwn := errors.New("does not like it")
	good1 := h.queued(t, ClassState, event("good 1"))
	bad := h.queued(t, ClassState, func(tx *Tx) error { return errors.Join(event("bad")(tx), errOwn) })
	panics := h.queued(t, ClassState, func(tx *Tx) error {
		_ = event("panicked")(tx)
		panic("a bug in a rule")
	})
	taken := h.queued(t, ClassState, func(tx *Tx) error {
		// A statement that the engine refuses, overlooked by its caller.
		_, _ = tx.exec(`INSERT INTO audit (seq, at, kind, actor, runner, subject, detail) VALUES (NULL, 0, '', '', '', '', '')`)
		_ = event("after an error")(tx)
		return nil
	})
	good2 := h.queued(t, ClassState, event("good 2"))
	h.let(t)
	for _, r := range []*request{good1, bad, panics, taken, good2} {
		<-r.done
	}
	if good1.err != nil || good2.err != nil {
		t.Errorf("the good ones got %v and %v", good1.err, good2.err)
	}
	if !errors.Is(bad.err, errOwn) || panics.err == nil || !strings.Contains(panics.err.Error(), "a bug in a rule") || taken.err == nil {
		t.Errorf("the bad ones got %v, %v and %v", bad.err, panics.err, taken.err)
	}
	if got := kinds(t, h.Store); !slices.Equal(got, []string{"good 1", "good 2"}) {
		t.Errorf("stored: %q", got)
	}
	if n := h.commits.Load(); n != 1 {
		t.Errorf("%d commits for six requests that waited together", n)
	}
}

func TestOfWhatWaitsLeasesGoFirstAndRestLast(t *testing.T) {
	h := hold(t)
	var order []Class
	var all []*request
	for _, class := range []Class{ClassRest, ClassState, ClassRest, ClassLease, ClassState, ClassLease} {
		all = append(all, h.queued(t, class, func(*Tx) error { order = append(order, class); return nil }))
	}
	h.let(t)
	for _, r := range all {
		<-r.done
	}
	if want := []Class{1, 1, 2, 2, 3, 3}; !slices.Equal(order, want) {
		t.Errorf("they ran in the order %v", order)
	}
}

func TestNoClassStarvesWhileAnotherFillsEveryTransaction(t *testing.T) {
	h := hold(t)
	var before atomic.Int64
	rest := int64(-1)
	var all []*request
	for range 2 * MaxBatchRequests {
		all = append(all, h.queued(t, ClassLease, func(*Tx) error { before.Add(1); return nil }))
	}
	all = append(all, h.queued(t, ClassRest, func(*Tx) error { rest = before.Load(); return nil }))
	h.let(t)
	for _, r := range all {
		<-r.done
	}
	if rest < 0 || rest > MaxBatchRequests {
		t.Errorf("a request of the last class ran after %d of the first", rest)
	}
}

func TestATransactionTakesOnNoMoreThanItsBounds(t *testing.T) {
	var inTransaction, most, rows, mostRows int
	h := &held{}
	h.Store = hooked(t, hooks{beforeCommit: func() {
		most, mostRows = max(most, inTransaction), max(mostRows, rows)
		inTransaction, rows = 0, 0
	}})
	var all []*request
	for range 3 * MaxBatchRequests {
		all = append(all, h.queued(t, ClassState, func(*Tx) error { inTransaction++; return nil }))
	}
	for range 100 {
		all = append(all, h.queued(t, ClassState, func(tx *Tx) error {
			rows += 20
			for range 10 { // two rows each: the event and its counter
				if err := event("e")(tx); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for _, r := range all {
		<-r.done
		if r.err != nil {
			t.Fatal(r.err)
		}
	}
	if most > MaxBatchRequests || mostRows > MaxBatchRows+20 {
		t.Errorf("a transaction had %d requests and %d rows", most, mostRows)
	}
}

func TestAQueueThatIsFullSaysSo(t *testing.T) {
	h := hold(t)
	var all []*request
	for range MaxQueued {
		all = append(all, h.queued(t, ClassRest, func(*Tx) error { return nil }))
	}
	if err := h.writer.queue.add(ClassRest, &request{}); !errors.Is(err, ErrBusy) {
		t.Errorf("one more than the queue holds: %v", err)
	}
	urgent := h.queued(t, ClassLease, func(*Tx) error { return nil })
	h.let(t)
	for _, r := range append(all, urgent) {
		<-r.done
		if r.err != nil {
			t.Fatal(r.err)
		}
	}
}

func TestARequestIsTakenBackOnlyWhileItWaits(t *testing.T) {
	h := hold(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller has gone")
	answer := make(chan error, 1)
	go func() { answer <- h.Update(ctx, ClassState, event("taken back")) }()
	for h.writer.queue.empty() {
		runtime.Gosched() // until the request is in the queue
	}
	cancel(gone)
	if err := <-answer; !errors.Is(err, gone) || errors.Is(err, ErrUnknown) {
		t.Errorf("taken back while it waited: %v", err)
	}
	h.let(t)
	running, cancelRunning := context.WithCancel(t.Context())
	if err := h.Update(running, ClassState, func(tx *Tx) error { cancelRunning(); return event("ran")(tx) }); err != nil {
		t.Errorf("cancelled while it ran: %v", err)
	}
	if got := kinds(t, h.Store); !slices.Equal(got, []string{"ran"}) {
		t.Errorf("stored: %q", got)
	}
}

func TestNoAnswerComesBeforeTheCommit(t *testing.T) {
	h := hold(t)
	var requests []*request
	early := 0
	h.atCommit = func() {
		for _, r := range requests {
			select {
			case <-r.done:
				early++
			default:
			}
		}
	}
	for range 10 {
		requests = append(requests, h.queued(t, ClassLease, func(tx *Tx) error {
			_, err := tx.Do(&authority.Touch{Fence: authority.Fence{Runner: forge.RunnerID{ULID: forge.ULID{1}}}})
			return err
		}))
	}
	h.let(t)
	for _, r := range requests {
		<-r.done
	}
	if n := h.commits.Load(); early > 0 || n != 1 {
		t.Errorf("%d of %d answers were there before their commit, of %d", early, len(requests), n)
	}
}

func TestACommitOfUnknownFateIsNeverAcknowledgedAndEndsAllWriting(t *testing.T) {
	fail := false
	s := hooked(t, hooks{commit: func() error {
		if fail {
			return errors.New("the disk said something odd")
		}
		return nil
	}})
	if err := s.Update(t.Context(), ClassState, event("before")); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), ClassState, func(tx *Tx) error { fail = true; return event("unknown")(tx) }); !errors.Is(err, ErrUnknown) {
		t.Fatalf("a commit that failed oddly: %v", err)
	}
	<-s.Failed()
	if err := s.Update(t.Context(), ClassLease, event("after")); !errors.Is(err, ErrFailed) || errors.Is(err, ErrUnknown) {
		t.Errorf("a request after it: %v", err)
	}
	if got := kinds(t, s); !slices.Equal(got, []string{"before"}) {
		t.Errorf("stored: %q", got)
	}
}

func TestADiskThatIsFullChangesNothingAndTheStoreGoesOn(t *testing.T) {
	s := hooked(t, hooks{})
	if err := s.Update(t.Context(), ClassState, event("before")); err != nil {
		t.Fatal(err)
	}
	var pages int64
	err := s.Update(t.Context(), ClassState, func(tx *Tx) error {
		if _, err := tx.find("PRAGMA page_count", nil, num(&pages)); err != nil {
			return err
		}
		_, err := tx.find(fmt.Sprintf("PRAGMA max_page_count(%d)", pages), nil, num(&pages))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	large := func(tx *Tx) error {
		return tx.AppendAudit(AuditEvent{Kind: "large", Detail: strings.Repeat("x", 1<<20)})
	}
	if err := s.Update(t.Context(), ClassState, large); !errors.Is(err, ErrFull) || errors.Is(err, ErrUnknown) {
		t.Errorf("no room: %v", err)
	}
	if err := s.Update(t.Context(), ClassState, func(tx *Tx) error {
		_, err := tx.find("PRAGMA max_page_count(1000000)", nil, num(&pages))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), ClassState, large); err != nil {
		t.Errorf("with room again: %v", err)
	}
	if got := kinds(t, s); !slices.Equal(got, []string{"before", "large"}) {
		t.Errorf("stored: %q", got)
	}
}

func TestCloseAnswersEverybody(t *testing.T) {
	h := hold(t)
	waiting := h.queued(t, ClassState, event("waits"))
	var closing sync.WaitGroup
	closing.Go(func() { _ = h.Close() })
	h.let(t)
	closing.Wait()
	<-waiting.done
	if err := h.Update(t.Context(), ClassState, event("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("a request after Close: %v", err)
	}
	if err := h.View(t.Context(), func(*View) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("a view after Close: %v", err)
	}
}
