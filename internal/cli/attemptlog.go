package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/display"
)

// attempt begins to show the log of an attempt that was not shown yet.
func (b *board) attempt(ctx context.Context, id string) error {
	if b.told[id] != "" {
		return nil
	}
	b.told[id] = "shown"
	a, err := b.f.client.Attempt(ctx, id)
	if err != nil {
		return err
	}
	job, err := b.job(ctx, a.Job)
	if err != nil {
		return err
	}
	l := b.newLog(a, job)
	b.logs.Go(func() {
		for e, err := range b.f.client.Log(ctx, id, api.LogOptions{Follow: true}) {
			if err == nil {
				err = l.event(e)
			}
			if err != nil {
				b.failed(err)
				break
			}
		}
		b.failed(l.flush())
	})
	return nil
}

// An attemptLog shows the log of one attempt. It belongs to one goroutine, and to whoever has waited for that.
type attemptLog struct {
	b       *board
	job     *api.Job
	printer printer
	style   display.Style
	prefix  string // of each line; empty where the bytes are passed on as they are
	bare    bool   // the bytes are passed on as they are
	reader  display.Reader
	steps   []api.Step
	at      time.Time // of what came last
	said    bool      // a line under way is shown

	step  string // that runs
	begun time.Time
	tail  display.Tail // of it
	fails []failedStep
	later bool // something came behind the step that failed
}

// failedStep is a step that failed, with its last lines.
type failedStep struct {
	name   string
	result api.StepResult
	lines  []string
	cut    bool
}

// maxFailed bounds the failed steps of an attempt whose lines are kept.
const maxFailed = 8

func (b *board) newLog(a *api.Attempt, job *api.Job) *attemptLog {
	l := &attemptLog{b: b, job: job, printer: b.f.out, style: b.f.style()}
	b.update(job.ID, func(v *display.Job) { v.Begun, v.Ended = time.Time{}, time.Time{} }) // the next step says when
	l.printer.of, l.printer.attempt = jobTitle(job), a.ID
	if job.Definition != nil {
		l.steps = job.Definition.Steps
	}
	l.reader.Colourless = b.f.app.env.Getenv("NO_COLOR") != ""
	if b.f.app.output != "json" && !b.f.many {
		l.printer.of = ""
	}
	b.mu.Lock()
	b.shown[job.ID] = l
	place, titles := b.places[job.ID], 0
	for i := range b.view.Jobs {
		titles = max(titles, display.Width(b.view.Jobs[i].Title))
	}
	b.mu.Unlock()
	if b.f.screen == nil {
		titles = 0
	}
	switch {
	case b.f.many:
		l.prefix = l.style.Prefix(place, jobTitle(job), min(titles, maxPrefix))
	case b.f.screen == nil:
		l.bare = true
	}
	if a.Number > 1 && b.f.app.output != "json" {
		b.f.tell(l.prefix + fmt.Sprintf("attempt %d", a.Number) + lastReason(job, a.Number))
	}
	return l
}

// maxPrefix bounds how far titles are filled up, in columns.
const maxPrefix = 24

// lastReason is why the attempt before was not the last one.
func lastReason(job *api.Job, number uint32) string {
	for i := range job.AllAttempts {
		if t := &job.AllAttempts[i]; t.Number == number-1 && t.Reason != "" {
			return ", for the one before: " + console.Cell(t.Reason)
		}
	}
	return ""
}

// event shows one event.
func (l *attemptLog) event(e api.Event) error {
	if l.printer.app.output == "json" {
		l.b.mu.Lock()
		defer l.b.mu.Unlock()
		return l.printer.event(e)
	}
	switch e.Name {
	case api.EventOutput:
		return l.output(e)
	case api.EventStepStarted, api.EventStepFinished:
		var step api.LogStep
		if err := e.Decode(&step); err != nil {
			return err
		}
		if e.Name == api.EventStepStarted {
			return l.begin(&step)
		}
		return l.finish(&step)
	case api.EventAnnotation:
		var n api.LogNote
		if err := e.Decode(&n); err != nil {
			return err
		}
		return l.item(display.Item{Kind: display.Remark, Note: display.Note{
			Level: display.ParseLevel(n.Level), File: console.Cell(n.File), Line: int(n.Line), Column: int(n.Column), Text: console.Cell(n.Text),
		}}, false)
	case api.EventEnd:
		var end api.LogEnd
		if err := e.Decode(&end); err != nil {
			return err
		}
		if t := &end.Attempt; t.Ended && !end.Complete && t.StartedAt != nil {
			l.printer.note("[the log may lack its end]")
		}
		return nil // the end of the job says how it ended
	}
	return l.printer.event(e)
}

// output takes a piece of the workload's output.
func (l *attemptLog) output(e api.Event) error {
	var o api.LogOutput
	if err := e.Decode(&o); err != nil {
		return err
	}
	if o.At != nil {
		l.at = *o.At
	}
	stderr := o.Stream != "stdout"
	if l.bare {
		if err := l.pass(e); err != nil {
			return err
		}
	}
	for _, i := range l.reader.Read(stderr, o.Data(), l.at) {
		if err := l.item(i, stderr); err != nil {
			return err
		}
	}
	if l.b.f.screen != nil {
		said := strings.ReplaceAll(l.reader.Said(stderr), "\t", " ")
		if said != "" || l.said {
			l.said = said != ""
			l.b.update(l.job.ID, func(v *display.Job) { v.Said = said })
		}
	}
	return nil
}

// pass passes the bytes on as they are. An attempt of which nothing was heard for long may still speak beside the next one.
func (l *attemptLog) pass(e api.Event) error {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	return l.printer.output(e)
}

// item shows a line, and keeps what is told again at the end.
func (l *attemptLog) item(i display.Item, stderr bool) error {
	switch i.Kind {
	case display.Remark:
		l.b.mu.Lock()
		l.b.notes.Add(jobTitle(l.job), i.Note)
		l.b.mu.Unlock()
		fallthrough
	case display.Text:
		line, _ := l.style.Item("", display.Item{Kind: i.Kind, Text: i.Text, Note: i.Note})
		l.tail.Add(line)
		l.later = len(l.fails) > 0
	}
	if l.bare {
		return nil
	}
	if line, ok := l.style.Item(l.prefix, i); ok {
		return l.line(line, stderr)
	}
	return nil
}

// line shows a whole line.
func (l *attemptLog) line(text string, stderr bool) error {
	if screen := l.b.f.screen; screen != nil {
		return screen.Print(text)
	}
	to := l.printer.stdout
	if stderr {
		to = l.printer.stderr
	}
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	_, err := io.WriteString(to, text+"\n")
	return err
}

// flush shows lines that have no end.
func (l *attemptLog) flush() error {
	for _, i := range l.reader.Flush(l.at) {
		if err := l.item(i, false); err != nil {
			return err
		}
	}
	return nil
}

// headed reports whether steps have headings: not the only one of a command.
func (l *attemptLog) headed() bool { return l.b.f.many || len(l.steps) > 1 }

// begin shows that a step begins.
func (l *attemptLog) begin(s *api.LogStep) error {
	l.step, l.begun, l.tail = stepName(l.steps, s), time.Now(), display.Tail{}
	if s.At != nil {
		l.begun = *s.At
	}
	l.later = len(l.fails) > 0
	step := l.step
	if len(l.steps) > 1 {
		step = fmt.Sprintf("%d/%d %s", s.Step+1, len(l.steps), step)
	}
	l.b.update(l.job.ID, func(v *display.Job) {
		v.Step, v.Said = step, ""
		if v.Begun.IsZero() {
			v.Begun = l.begun
		}
	})
	if !l.headed() {
		return nil
	}
	return l.line(l.style.StepBegins(l.prefix, int(s.Step)+1, len(l.steps), l.step), true)
}

// finish shows how a step ended.
func (l *attemptLog) finish(s *api.LogStep) error {
	if err := l.flush(); err != nil || s.Result == nil {
		return err
	}
	why := whyEnded(s.Result)
	if why != "" && len(l.fails) < maxFailed {
		lines, cut := l.tail.Lines()
		l.fails = append(l.fails, failedStep{name: l.step, result: *s.Result, lines: lines, cut: cut})
	}
	took := time.Duration(0)
	if s.Result.Duration != nil {
		took = time.Duration(*s.Result.Duration)
	}
	if line, ok := l.style.StepEnds(l.prefix, l.step, why, took); ok && l.headed() {
		return l.line(line, true)
	}
	return nil
}

// whyEnded says in short why a step did not end well; nothing of one that did.
func whyEnded(r *api.StepResult) string {
	switch {
	case r.Class == "Succeeded" || r.Class == "":
		return ""
	case r.Class == "ExitCode" && r.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *r.ExitCode)
	case r.Class == "Signal" && r.Signal != nil:
		return fmt.Sprintf("ended by signal %d", *r.Signal)
	}
	return console.Cell(r.Class)
}

// maxStepName bounds the name of a step that has none, in characters.
const maxStepName = 60

// stepName is the name of a step, or what it runs.
func stepName(steps []api.Step, s *api.LogStep) string {
	if s.Name != "" {
		return console.Cell(s.Name)
	}
	if int(s.Step) >= len(steps) {
		return fmt.Sprintf("step %d", s.Step+1)
	}
	step := &steps[s.Step]
	text := strings.Join(step.Argv, " ")
	if step.Script != "" {
		text, _, _ = strings.Cut(strings.TrimSpace(step.Script), "\n")
	}
	text = console.Cell(text)
	if name := []rune(text); len(name) > maxStepName {
		text = string(name[:maxStepName-1]) + "…"
	}
	return text
}

// failure is the job's failure as the end of the run tells it again.
func (l *attemptLog) failure(j *api.Job) display.Failure {
	f := display.Failure{Title: jobTitle(j), Why: console.Cell(reasonOf(j)), All: "forgeyard logs " + j.ID}
	f.Lines, f.Cut = l.tail.Lines()
	if len(l.fails) > 0 {
		s := &l.fails[len(l.fails)-1]
		for i := range l.fails { // steps whose failure is allowed come before, those that always run come behind
			if l.fails[i].result.Class == j.Class {
				s = &l.fails[i]
				if n := len(j.AllAttempts); n > 0 && sameCode(s.result.ExitCode, j.AllAttempts[n-1].ExitCode) {
					break
				}
			}
		}
		f.Step, f.Lines, f.Cut = s.name, s.lines, s.cut
	}
	return f
}

func sameCode(a, b *int) bool { return a != nil && b != nil && *a == *b }
