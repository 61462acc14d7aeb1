package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/cas"
	casdisk "github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
)

// forgetful is a daemon's store that loses what it is told to lose.
type forgetful struct {
	cas.Store
	dir  string
	full atomic.Bool // it takes nothing any more
}

func newForgetful(t *testing.T) *forgetful {
	t.Helper()
	dir := t.TempDir()
	s, err := casdisk.Open(dir, casdisk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &forgetful{Store: s, dir: dir}
}

func (f *forgetful) lose(ref digest.Ref) error {
	hex := ref.Digest.String()[len("b3:"):]
	return os.Remove(filepath.Join(f.dir, "b3", hex[:2], hex))
}

func (f *forgetful) holds(ref digest.Ref) bool {
	missing, err := f.Missing(context.Background(), []digest.Ref{ref})
	return err == nil && len(missing) == 0
}

var errQuota = errors.New("no more of this attempt")

func (f *forgetful) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	if f.full.Load() {
		return errQuota
	}
	return f.Store.Put(ctx, ref, r)
}

// missing begins a job with an output, of which the daemon loses the tree before the completion comes: as often as it is
// asked, it says whether it has it. lost is told after the loss.
func missing(t *testing.T, store *forgetful, lost func(y *yard)) (*yard, *running, forge.AttemptContext) {
	y := newYard(t, &runnertest.Machine{Run: func(_ context.Context, w *runnertest.Workload) forge.Result {
		if err := os.WriteFile(filepath.Join(w.Folder, forge.SourceDir, "built"), []byte("built"), 0o600); err != nil {
			t.Error(err)
		}
		return forge.Result{Class: forge.Succeeded}
	}})
	first := true
	y.daemon.Answer = func(c *runnertest.Conn, f forge.Frame) bool {
		m, ok := f.Body.(*forge.Completion)
		if !ok || len(m.Outputs) == 0 {
			return false
		}
		if first {
			first = false
			y.must(store.lose(m.Outputs[0].Ref))
			lost(y)
		}
		if store.holds(m.Outputs[0].Ref) {
			return false
		}
		y.must(c.Reply(f, &forge.Error{Code: forge.ErrorNotYetRef, Retry: forge.RetryDelayed}))
		return true
	}
	agent := y.start(func(c *Config) { c.InPlace = func(forge.AttemptContext) cas.Store { return store } })
	s := spec()
	s.Outputs = []forge.Output{{
		Name: "built", Base: forge.SourceDir, Patterns: []string{"built"}, When: forge.WhenSuccess, MaxBytes: forge.MiB, MaxFiles: 10, Required: true,
	}}
	return y, agent, y.daemon.Offer(y.daemon.Synced(), s)
}

// completions are those that came of an attempt, each as often as it came.
func (y *yard) completions(c forge.AttemptContext) (all []*forge.Completion) {
	for _, f := range y.daemon.Frames() {
		if m, ok := f.Body.(*forge.Completion); ok && m.Context == c {
			all = append(all, m)
		}
	}
	return all
}

// TestAnAgentBringsAnOutputAgainThatWasLostBeforeItsCompletion: rows 07-T264, 07-I17. The same completion is asked once more.
func TestAnAgentBringsAnOutputAgainThatWasLostBeforeItsCompletion(t *testing.T) {
	for name, alsoHere := range map[string]bool{"from its cache": false, "from the job's files": true} {
		t.Run(name, func(t *testing.T) {
			store := newForgetful(t)
			y, agent, c := missing(t, store, func(y *yard) {
				if alsoHere {
					objects, err := filepath.Glob(filepath.Join(y.state, objectsName, "cache", "b3", "*", "*"))
					y.must(err)
					for _, path := range objects {
						y.must(os.Remove(path))
					}
				}
			})
			y.daemon.Until("the completion is taken", func() bool { return len(y.completions(c)) == 2 })
			agent.untilIdle()
			all := y.completions(c)
			if diff := cmp.Diff(all[0], all[1]); diff != "" || !store.holds(all[0].Outputs[0].Ref) {
				t.Errorf("the second completion is another: %s", diff)
			}
			if n, _ := agent.objects.InUse(); n != 0 {
				t.Errorf("the cache keeps %d objects for an attempt that is over", n)
			}
			y.nothingLeft()
		})
	}
}

// TestAJobWhoseOutputIsLostForGoodEndsAsNotUploaded: the daemon takes nothing more of the attempt.
func TestAJobWhoseOutputIsLostForGoodEndsAsNotUploaded(t *testing.T) {
	store := newForgetful(t)
	y, agent, c := missing(t, store, func(*yard) { store.full.Store(true) })
	y.daemon.Until("another completion comes", func() bool { return len(y.completions(c)) == 2 })
	agent.untilIdle()
	all := y.completions(c)
	want := *all[0]
	want.Message, want.Outputs, want.Capture = all[1].Message, nil, forge.UploadFailed
	want.Hash = want.ResultHash()
	if diff := cmp.Diff(&want, all[1]); diff != "" || want.Message == all[0].Message || want.Outcome() != forge.UploadFailed {
		t.Error(diff)
	}
	y.nothingLeft()
}

// TestALogThatIsSealedIsNotSentAgain: a daemon refuses such a stream as that of a stale lease, which it is not.
func TestALogThatIsSealedIsNotSentAgain(t *testing.T) {
	y := newYard(t, &runnertest.Machine{})
	answers := false // of the goroutines of connections, one after the other
	y.daemon.Answer = func(_ *runnertest.Conn, f forge.Frame) bool {
		_, is := f.Body.(*forge.Completion)
		return is && !answers
	}
	agent := y.start(nil)
	conn := y.daemon.Synced()
	c := y.daemon.Offer(conn, spec())
	y.daemon.Until("a completion", func() bool { return len(y.completions(c)) == 1 })
	before := y.daemon.Log(c.Attempt).Streams
	conn.Road.Break()
	again := y.daemon.Synced(conn)
	y.daemon.Until("the completion again", func() bool { return len(y.completions(c)) == 2 })
	if n := y.daemon.Log(c.Attempt).Streams; n != before {
		t.Errorf("the log came over %d streams before it was sealed and %d after", before, n-before)
	}
	y.daemon.Say(again, &forge.CompletionAck{Attempt: c.Attempt, Message: y.completions(c)[0].Message, Answer: forge.CompletionAccepted})
	agent.untilIdle()
}
