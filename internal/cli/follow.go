package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// patience is how long a job may wait for a runner before a person is told why, and how often the reason is looked at.
const patience = 3 * time.Second

// lastWord is how long the request to cancel a run may still take when the user leaves.
const lastWord = 2 * time.Second

// A follower shows a run of one job from its start to its end.
type follower struct {
	app    *app
	client *api.Client
	run    string
	out    printer
	why    string // the reason for waiting that was told last
	many   bool   // the run has several jobs, whose lines are told apart
}

func (a *app) follower(client *api.Client, run string, raw bool) *follower {
	return &follower{app: a, client: client, run: run, out: a.printer(raw)}
}

// errLeft is the cause with which following ends when the user leaves a run alone.
var errLeft = errors.New("left")

// toTheEnd follows the run until it has ended, and ends as it does. When ctx ends the run is cancelled and followed on;
// when the program is forced it is left. Nothing is followed beyond the end of serving.
func (f *follower) toTheEnd(ctx, serving context.Context) error {
	follow, leave := context.WithCancelCause(serving)
	defer leave(nil)
	stop := context.AfterFunc(f.app.program.Force(), func() { leave(errLeft) })
	defer stop()
	cancelling, giveUp := context.WithCancel(serving) // beyond the second interrupt, or an impatient user's word is lost
	defer giveUp()
	stopGivingUp := context.AfterFunc(follow, func() { time.AfterFunc(lastWord, giveUp) })
	defer stopGivingUp()
	cancelled := make(chan error, 1)
	stopCancel := context.AfterFunc(ctx, func() {
		again := "leave the run alone"
		if f.app.own {
			again = "end everything at once"
		}
		f.app.note("\ncancelling; press Ctrl-C again to %s", again)
		_, err := f.client.CancelRun(cancelling, f.run)
		cancelled <- err
	})
	watch := f.watch
	if f.many {
		watch = f.watchMany
	}
	err := watch(follow)
	asked := false
	if !stopCancel() {
		switch e := <-cancelled; {
		case e == nil:
			asked = true
		case err == nil && !isCode(e, api.CodeConflict):
			f.app.note("cancel: %v", e)
		}
	}
	f.out.close()
	if errors.Is(context.Cause(follow), errLeft) {
		return f.left(asked)
	}
	if err != nil {
		return err
	}
	run, err := f.client.Run(follow, f.run)
	if err != nil {
		return err
	}
	f.result(run)
	return f.app.exit(run)
}

// left is the end of following a run that goes on without the user. Where daemon and agent are in this process, they have
// ended by the time that it is read.
func (f *follower) left(asked bool) error {
	what := "the run goes on"
	if asked {
		what = "the run was asked to stop"
	}
	if !f.app.own {
		return program.Exit(program.CodePending, fmt.Errorf("left; %s\nSee its end: forgeyard runs watch %s", what, f.run))
	}
	if !asked {
		what = "the run goes on with the next start"
	}
	return program.Exit(program.CodeCancelled, fmt.Errorf(
		"ended at once, and nothing is left running; %s\nSee its end after the next start: forgeyard up, then forgeyard runs show %s", what, f.run))
}

// streams is what a person was told about the streams of this command, of which there may be two at once.
type streams struct {
	mu   sync.Mutex
	lost bool
}

// streamed tells that the streams have broken, or that they go on: once each, however many there are.
func (a *app) streamed(broke error) {
	a.streams.mu.Lock()
	known := a.streams.lost == (broke != nil)
	a.streams.lost = broke != nil
	a.streams.mu.Unlock()
	switch {
	case known:
	case broke != nil:
		a.note("[%v; this goes on when the daemon is back]", broke)
	default:
		a.note("[the daemon is back; going on]")
	}
}

// watch shows the changes of the run, and in between the logs of its attempts.
func (f *follower) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan api.Event)
	ended := make(chan error, 1)
	go func() {
		defer close(events)
		ended <- f.pump(ctx, events)
	}()
	err := f.consume(ctx, events)
	cancel()
	for range events { // until the goroutine has ended
	}
	if e := <-ended; err == nil && !errors.Is(e, context.Canceled) {
		err = e
	}
	return err
}

// pump passes the changes of the run on.
func (f *follower) pump(ctx context.Context, events chan<- api.Event) error {
	for e, err := range f.client.Watch(ctx, f.run) {
		if err != nil {
			return err
		}
		select {
		case events <- e:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (f *follower) consume(ctx context.Context, events <-chan api.Event) error {
	waiting := time.NewTicker(patience)
	defer waiting.Stop()
	var shown []string // attempts whose log was shown
	for {
		select {
		case e, ok := <-events:
			if !ok || e.Name == api.EventEnd {
				return nil
			}
			var change api.RunEvent
			if err := e.Decode(&change); err != nil {
				return err
			}
			if change.Kind != "attempt" || slices.Contains(shown, change.ID) {
				continue
			}
			shown = append(shown, change.ID)
			if err := f.log(ctx, change.ID); err != nil {
				return err
			}
		case <-waiting.C:
			f.tellWhy(ctx)
		}
	}
}

// log shows the log of one attempt to its end.
func (f *follower) log(ctx context.Context, attempt string) error {
	for e, err := range f.client.Log(ctx, attempt, api.LogOptions{Follow: true}) {
		if err != nil {
			return err
		}
		if err := f.out.event(e); err != nil {
			return err
		}
	}
	return nil
}

// tellWhy says why the run's job waits, once for each reason.
func (f *follower) tellWhy(ctx context.Context) {
	run, err := f.client.Run(ctx, f.run)
	if err != nil || len(run.Jobs) == 0 || run.Jobs[0].State != "Ready" {
		return // it is only a remark
	}
	why, err := f.client.ExplainJob(ctx, run.Jobs[0].ID)
	if err != nil || why.Summary == f.why {
		return
	}
	f.why = why.Summary
	f.app.note("waiting: %s", why.Summary)
}

// result says how the run ended.
func (f *follower) result(run *api.Run) {
	if f.app.output == "json" {
		_ = f.app.print().Event(shown{Name: "run", Data: run}) // standard output is gone: the code is left
		return
	}
	text := "run " + run.State
	if run.Reason != "" {
		text += ": " + run.Reason
	}
	if t := took(run.CreatedAt, run.EndedAt); t != "" {
		text += " (" + t + ")"
	}
	f.app.note("%s", text)
}

// A printer shows the events of a log.
type printer struct {
	app            *app
	of             string // whose log it is, where there are several
	stdout, stderr io.Writer
	only           uint16 // the step to show
	one            bool   // whether only that one is shown
	step           uint16 // the one that runs
	behind         bool   // a person was told that what is shown lags
}

// printer returns one that makes output safe wherever a terminal shows it, unless raw is asked for.
func (a *app) printer(raw bool) printer {
	p := printer{app: a, stdout: a.env.Stdout, stderr: a.env.Stderr}
	safe := console.Safe
	if a.env.Getenv("NO_COLOR") != "" {
		safe = console.Colourless
	}
	if !raw && telemetry.IsTerminal(a.env.Stdout) {
		p.stdout = safe(a.env.Stdout)
	}
	if !raw && telemetry.IsTerminal(a.env.Stderr) {
		p.stderr = safe(a.env.Stderr)
	}
	return p
}

// note tells a person something about the log.
func (p *printer) note(format string, args ...any) {
	if p.of != "" {
		format, args = "%s: %s", []any{p.of, fmt.Sprintf(format, args...)}
	}
	p.app.note(format, args...)
}

func (p *printer) close() {
	for _, w := range []io.Writer{p.stdout, p.stderr} {
		if s, ok := w.(*console.SafeWriter); ok {
			_ = s.Close() // a terminal that is gone needs no colours
		}
	}
}

// shown is one event as JSON.
type shown struct {
	ID   string `json:"id,omitempty"`
	Job  string `json:"job,omitempty"` // whose log it is of, where several are shown
	Name string `json:"name"`
	Data any    `json:"data"`
}

// event shows one event.
func (p *printer) event(e api.Event) error {
	if e.Name == api.EventStepStarted || e.Name == api.EventStepFinished {
		var step api.LogStep
		if err := e.Decode(&step); err != nil {
			return err
		}
		p.step = step.Step
	}
	if p.one && p.step != p.only && e.Name != api.EventEnd {
		return nil
	}
	if p.app.output == "json" {
		return p.app.print().Event(shown{ID: e.ID, Job: p.of, Name: e.Name, Data: e.Data})
	}
	switch e.Name {
	case api.EventOutput:
		return p.output(e)
	case api.EventNotice, api.EventAnnotation:
		var n api.LogNote
		if err := e.Decode(&n); err != nil {
			return err
		}
		p.note("[%s] %s", n.Level, n.Text)
	case api.EventGap:
		var g api.LogGap
		if err := e.Decode(&g); err != nil {
			return err
		}
		what := "output is"
		if g.Bytes > 0 {
			what = fmt.Sprintf("%d bytes of output are", g.Bytes)
		}
		p.note("[%s missing here: %s]", what, g.Why)
	case api.EventLag:
		return p.lag(e)
	case api.EventEnd:
		return p.end(e)
	}
	return nil
}

// lag tells once that the log grows faster than it is shown, and that it was caught up.
func (p *printer) lag(e api.Event) error {
	var l api.LogLag
	if err := e.Decode(&l); err != nil {
		return err
	}
	switch behind := l.Bytes > 0; {
	case behind && !p.behind:
		p.note("[this is about %d MiB behind the log; nothing of it is left out]", max(l.Bytes>>20, 1))
	case !behind && p.behind:
		p.note("[this has caught up with the log]")
	}
	p.behind = l.Bytes > 0
	return nil
}

// match shows a line in which something was found.
func (p *printer) match(m *api.LogMatch) error {
	if p.app.output == "json" {
		return p.app.print().Event(m)
	}
	_, err := p.stdout.Write(append(m.Data(), '\n'))
	return err
}

func (p *printer) output(e api.Event) error {
	var o api.LogOutput
	if err := e.Decode(&o); err != nil {
		return err
	}
	w := p.stderr
	if o.Stream == "stdout" {
		w = p.stdout
	}
	_, err := w.Write(o.Data())
	return err
}

func (p *printer) end(e api.Event) error {
	var end api.LogEnd
	if err := e.Decode(&end); err != nil {
		return err
	}
	t := &end.Attempt
	if t.Ended && !end.Complete && t.StartedAt != nil {
		p.note("[the log may lack its end]")
	}
	if t.Ended && t.Class != "Succeeded" && t.Reason != "" {
		p.note("attempt %d: %s", t.Number, t.Reason)
	}
	return nil
}

// isCode reports whether err is a problem with one of the codes.
func isCode(err error, codes ...api.Code) bool {
	var p *api.Problem
	return errors.As(err, &p) && slices.Contains(codes, p.Code)
}
