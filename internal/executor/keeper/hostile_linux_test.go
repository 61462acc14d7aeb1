package keeper

import (
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// impostor is a host whose keeper says what a test wants.
type impostor struct {
	agent  *os.File
	gone   chan struct{} // nil: nobody knows before Wait returns
	killed chan struct{}
	once   sync.Once
	said   chan struct{} // closed when all reports are on their way
	events events        // of the attempt's log
}

func (i *impostor) Wait() Death {
	<-i.killed
	_ = i.agent.Close()
	return Death{Signal: killSignal}
}
func (i *impostor) Gone() <-chan struct{}             { return i.gone }
func (i *impostor) Kill()                             { i.once.Do(func() { close(i.killed) }) }
func (i *impostor) Bounded() bool                     { return false }
func (i *impostor) Pid() int                          { return os.Getpid() }
func (i *impostor) Files() (*os.Root, error)          { return os.OpenRoot(os.TempDir()) }
func (i *impostor) Close() error                      { return nil }
func (i *impostor) MoveDeadline(forge.Instant)        {}
func (i *impostor) Finished(forge.StepResult) Finding { return Finding{} }

// events are what stands in a log besides output. They are read once the attempt is over.
type events struct{ all []forge.StepEvent }

func (e *events) Write(forge.LogStream, []byte) {}
func (e *events) Event(event forge.StepEvent)   { e.all = append(e.all, event) }

// deceive prepares an attempt of one step with a keeper that is ready and answers a start with some reports.
func deceive(t *testing.T, reports ...Report) executor.Workload {
	t.Helper()
	return deceiveBy(t, &impostor{killed: make(chan struct{})}, reports...)
}

func deceiveBy(t *testing.T, i *impostor, reports ...Report) executor.Workload {
	t.Helper()
	i.said = make(chan struct{})
	order := &executor.Order{
		Context: forge.AttemptContext{Attempt: ident.New[forge.AttemptID]()},
		Spec:    forge.JobSpec{Steps: []forge.Step{{Name: "x"}}},
		Policy:  forge.DefaultLeasePolicy(), Deadline: clock.Boot().Add(time.Hour), Output: &i.events,
	}
	w, err := Prepare(t.Context(), Job{
		Order: order, Plan: &Plan{Steps: []Step{plain}, Run: time.Millisecond, Grace: time.Millisecond}, Over: func() {}, Log: slog.New(slog.DiscardHandler),
		patience: time.Millisecond,
		Open: func(ends Ends) (Host, error) {
			fd, err := unix.FcntlInt(ends.Agent.Fd(), unix.F_DUPFD_CLOEXEC, 3)
			if err == nil {
				err = unix.SetNonblock(fd, true) // so that closing it ends who reads
			}
			if err != nil {
				return nil, err
			}
			i.agent = os.NewFile(uintptr(fd), "agent")
			go i.play(reports)
			return i, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Of the host's end the attempt's is a part, and who waits for the attempt does not wait for all of it.
func TestAnAttemptIsOverWhenNothingOfItLivesAndCloseWaitsForItsHost(t *testing.T) {
	i := &impostor{gone: make(chan struct{}), killed: make(chan struct{})}
	w := deceiveBy(t, i, Report{Running: true}, Report{Over: &executor.Outcome{Result: forge.Result{Class: forge.Succeeded}}})
	if err := w.Start(nil); err != nil {
		t.Fatal(err)
	}
	<-i.said
	close(i.gone)
	<-w.Done()
	if o := w.Outcome(); o.Result.Class != forge.Succeeded {
		t.Errorf("%+v", o)
	}
	closed := make(chan error)
	go func() { closed <- w.Close() }()
	select {
	case <-closed:
		t.Error("it was closed while its host had not ended")
	case <-time.After(20 * time.Millisecond): // the wrong one closes at once
	}
	i.Kill()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// The first step begins in the log before its keeper hears of the start, which can be too late for it.
func TestAFirstStepThatBeganAndWasNotStartedEndsInTheLog(t *testing.T) {
	i := &impostor{killed: make(chan struct{})}
	over := executor.Outcome{StopSeen: forge.CancelUser, Result: forge.Result{Class: forge.Cancelled}}
	w := deceiveBy(t, i, Report{Running: true}, Report{Over: &over})
	if err := w.Start(nil); err != nil {
		t.Fatal(err)
	}
	<-i.said
	i.Kill()
	<-w.Done()
	o := w.Outcome()
	if o.Result.Class != forge.Cancelled || len(o.Result.Steps) != 1 || o.Result.Steps[0].Class != forge.Cancelled {
		t.Errorf("%+v", o)
	}
	if len(i.events.all) != 2 || i.events.all[0] != (forge.StepStarted{}) {
		t.Fatalf("%+v", i.events.all)
	}
	if end, ok := i.events.all[1].(forge.StepFinished); !ok || end.Result.Class != forge.Cancelled {
		t.Errorf("%+v", i.events.all[1])
	}
}

// play ends with its socket.
func (i *impostor) play(reports []Report) {
	m := newMessages(i.agent)
	for {
		var q Request
		if m.next(&q) != nil {
			return
		}
		say := reports
		if q.Setup != nil {
			say = []Report{{Ready: true}}
		} else if q.Start == nil {
			continue
		}
		for r := range say {
			if writeMessage(i.agent, &say[r]) != nil {
				return
			}
		}
		if q.Start != nil {
			close(i.said)
		}
	}
}

// A step can hold its keeper up, by stopping who is between fork and program.
func TestAKeeperThatHangsIsKilledOnceItsAttemptTookTooLong(t *testing.T) {
	w := deceive(t, Report{Running: true})
	if err := w.Start(nil); err != nil {
		t.Fatal(err)
	}
	<-w.Done()
	if o := w.Outcome(); o.Result.Class != forge.TimedOut || o.Result.Limit != 1 {
		t.Errorf("%+v", o)
	}
}

func TestAKeeperThatLiesIsKilledAndItsAgentLives(t *testing.T) {
	step := uint16(1)
	for what, lies := range map[string][]Report{
		"ready again":             {{Ready: true}},
		"running twice":           {{Running: true}, {Running: true}},
		"a step that is not":      {{Running: true}, {Starting: &step}},
		"the end of one":          {{Running: true}, {Finished: &forge.StepResult{Index: 1, Class: forge.Succeeded}}},
		"an outcome with one":     {{Running: true}, {Over: &executor.Outcome{Result: forge.Result{Class: forge.Succeeded, Steps: []forge.StepResult{{Index: 9, Class: forge.Succeeded}}}}}},
		"an outcome that is none": {{Running: true}, {Over: &executor.Outcome{}}},
		"more than there is to":   append([]Report{{Running: true}}, make([]Report, mostReports(1))...),
	} {
		t.Run(what, func(t *testing.T) {
			w := deceive(t, lies...)
			_ = w.Start(nil) // it may be over already
			<-w.Done()
			if o := w.Outcome(); o.Result.Class != forge.Signal {
				t.Errorf("%+v", o)
			}
		})
	}
}
