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
	"github.com/forgeyard/forgeyard/internal/display"
	"github.com/forgeyard/forgeyard/internal/display/terminal"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// patience is how long a job may wait for a runner before a person is told why, and how often the reason is looked at.
const patience = 3 * time.Second

// lastWord is how long the request to cancel a run may still take when the user leaves.
const lastWord = 2 * time.Second

// A follower shows a run from its start to its end.
type follower struct {
	app    *app
	client *api.Client
	run    string
	out    printer
	raw    bool               // bytes go to the terminal as they are
	why    string             // the reason for waiting that was told last
	many   bool               // the run has several jobs, whose lines are told apart
	board  *board             // what there is to show
	screen *terminal.Terminal // where the jobs are drawn; nil where they are not

	hopeless hopeless
}

func (a *app) follower(client *api.Client, run string, raw bool) *follower {
	f := &follower{app: a, client: client, run: run, out: a.printer(raw), raw: raw}
	f.board = newBoard(f)
	return f
}

// errLeft is the cause with which following ends when the user leaves a run alone.
var errLeft = errors.New("left")

// toTheEnd follows the run until it has ended, and ends as it does. When ctx ends the run is cancelled and followed on;
// when the program is forced it is left. Nothing is followed beyond the end of serving.
func (f *follower) toTheEnd(ctx, serving context.Context) error {
	follow, leave := context.WithCancelCause(serving)
	defer leave(nil)
	closeScreen := f.open("Ctrl-C cancels")
	defer closeScreen() //nolint:errcheck // the terminal is gone, and with it who would read that
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
		begin := "\n" // behind what a terminal echoes of the key
		if f.screen != nil {
			begin = ""
		}
		f.app.note("%scancelling; press Ctrl-C again to %s", begin, again)
		f.board.hint("cancelling; Ctrl-C again: " + again)
		_, err := f.client.CancelRun(cancelling, f.run)
		cancelled <- err
	})
	err := f.watchMany(follow)
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
	_ = closeScreen() // likewise
	f.report(run)
	f.result(run)
	f.tellHidden(follow, run)
	if f.hopeless.err != nil {
		return program.Exit(program.CodeInfrastructure, f.hopeless.err)
	}
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

// result says how the run ended.
func (f *follower) result(run *api.Run) {
	if f.app.output == "json" {
		_ = f.app.print().Event(shown{Name: "run", Data: run}) // standard output is gone: the code is left
		return
	}
	text := "run " + run.State
	reason := run.Reason
	if len(run.Jobs) == 1 && run.Jobs[0].State != "Succeeded" && run.Jobs[0].Reason != "" {
		reason = reasonOf(&run.Jobs[0])
		if j := f.board.jobs[run.Jobs[0].ID]; j != nil && j.State == run.Jobs[0].State {
			reason = reasonOf(j) // which knows the attempts
		}
	}
	if reason != "" {
		text += ": " + reason
	}
	if run.CreatedAt != nil && run.EndedAt != nil {
		text += in(display.Took(run.EndedAt.Sub(*run.CreatedAt)))
	}
	f.tell(f.style().RunEnds(run.State == "Succeeded", console.Cell(text)))
}

// A printer shows the events of a log.
type printer struct {
	app            *app
	of             string // whose log it is, where there are several
	attempt        string // for tools, likewise
	stdout, stderr io.Writer
	behind         bool // a person was told that what is shown lags
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
	ID      string `json:"id,omitempty"`
	Job     string `json:"job,omitempty"` // whose log it is of, where several are shown
	Name    string `json:"name"`
	Attempt string `json:"attempt,omitempty"` // the id of the one whose log it is of, likewise
	Data    any    `json:"data"`
}

// event shows one event.
func (p *printer) event(e api.Event) error {
	if p.app.output == "json" {
		return p.app.print().Event(shown{ID: e.ID, Job: p.of, Attempt: p.attempt, Name: e.Name, Data: e.Data})
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
