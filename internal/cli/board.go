package cli

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/display"
)

// maxWhy bounds the waiting jobs, and those that run, whose reasons are asked for at a time.
const maxWhy = 4

// A board shows a run while it goes on: the changes of its jobs and the logs of all attempts, each line with the name of its
// job in front where there are several. Its goroutines, one for each log, belong to watchMany.
type board struct {
	f    *follower
	jobs map[string]*api.Job // by id, as they were last seen
	told map[string]string   // the state of each job that was told last; attempts that are shown
	whys map[string]string   // the reason of each job for waiting that was told last
	logs sync.WaitGroup

	mu     sync.Mutex // for whole lines of what is no terminal, and for what follows
	view   display.Run
	places map[string]int         // of jobs in view, by id
	shown  map[string]*attemptLog // the newest of each job, by the job's id
	notes  display.Notes
	err    error // the first of a log
}

func newBoard(f *follower) *board {
	return &board{
		f: f, jobs: map[string]*api.Job{}, told: map[string]string{}, whys: map[string]string{}, places: map[string]int{}, shown: map[string]*attemptLog{},
		view: display.Run{Begun: time.Now()},
	}
}

// watchMany shows the changes of the run's jobs and the logs of all attempts until the run has ended.
func (f *follower) watchMany(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan api.Event)
	ended := make(chan error, 1)
	go func() {
		defer close(events)
		ended <- f.pump(ctx, events)
	}()
	b := f.board
	err := b.consume(ctx, events)
	if err != nil {
		cancel() // else logs of attempts that go on would be waited for
	}
	b.logs.Wait() // each log ends by itself when its attempt has
	cancel()
	for range events { // until the goroutine has ended
	}
	if e := <-ended; err == nil && !errors.Is(e, context.Canceled) {
		err = e
	}
	return errors.Join(err, b.err)
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

func (b *board) consume(ctx context.Context, events <-chan api.Event) error {
	waiting := time.NewTicker(patience)
	defer waiting.Stop()
	if err := b.look(ctx); err != nil {
		return err
	}
	for {
		select {
		case e, ok := <-events:
			if !ok || e.Name == api.EventEnd {
				return b.look(ctx) // what a gap in the changes has hidden
			}
			var change api.RunEvent
			if err := e.Decode(&change); err != nil {
				return err
			}
			switch change.Kind {
			case "job":
				if _, err := b.job(ctx, change.ID); err != nil {
					return err
				}
			case "attempt":
				if err := b.attempt(ctx, change.ID); err != nil {
					return err
				}
			}
		case <-waiting.C:
			b.tellWhy(ctx)
			b.weigh(ctx)
		}
	}
}

// job reads one job, and tells of its state if that is new.
func (b *board) job(ctx context.Context, id string) (*api.Job, error) {
	j, err := b.f.client.Job(ctx, id)
	if err == nil {
		b.see(j)
	}
	return j, err
}

// look reads all jobs.
func (b *board) look(ctx context.Context) error {
	run, err := b.f.client.Run(ctx, b.f.run)
	if err != nil {
		return err
	}
	if len(run.Jobs) > 1 && !b.f.many { // only before the first log is shown: from then on logs read it
		b.f.many = true
	}
	if run.CreatedAt != nil {
		b.mu.Lock()
		b.view.Begun = *run.CreatedAt
		b.mu.Unlock()
	}
	for i := range run.Jobs {
		b.see(&run.Jobs[i])
	}
	return nil
}

// see tells of a job that has come into another state.
func (b *board) see(j *api.Job) {
	if known := b.jobs[j.ID]; known != nil && known.State == j.State && len(known.AllAttempts) > len(j.AllAttempts) {
		known.Allowed = j.Allowed // which is found out later than its end
		j = known                 // it was seen closer
	}
	b.jobs[j.ID] = j
	b.row(j)
	if b.told[j.ID] == j.State {
		return
	}
	b.told[j.ID] = j.State
	if b.f.app.output == "json" {
		b.mu.Lock()
		defer b.mu.Unlock()
		short := *j
		short.Definition = nil                                                        // which is long, and does not change
		_ = b.f.app.print().Event(shown{Name: "job", Job: jobTitle(j), Data: &short}) // standard output is gone: the code is left
		return
	}
	if !b.f.many {
		return // the end of the run says it
	}
	style := b.f.style()
	switch title := jobTitle(j); j.State {
	case "Succeeded":
		b.f.tell(style.JobEnds(title, display.Succeeded, "succeeded"+in(b.took(j))))
	case "Failed":
		b.f.tell(style.JobEnds(title, display.Failed, "failed: "+console.Cell(reasonOf(j))))
	case "Cancelled":
		b.f.tell(style.JobEnds(title, display.Cancelled, "cancelled"))
	case "Skipped":
		b.f.tell(style.JobEnds(title, display.Skipped, "skipped: "+console.Cell(j.Reason)))
	}
}

// took is how long a job ran; the last attempt of it, where there were several.
func (b *board) took(j *api.Job) string {
	if n := len(j.AllAttempts); n > 0 {
		if t := &j.AllAttempts[n-1]; t.StartedAt != nil && t.EndedAt != nil {
			return display.Took(t.EndedAt.Sub(*t.StartedAt))
		}
	}
	return ""
}

// reasonOf is why a job failed, in short.
func reasonOf(j *api.Job) string {
	reason := strings.TrimPrefix(j.Reason, "its last attempt failed: ")
	if j.Allowed {
		reason += ", which is allowed"
	}
	return reason
}

// in writes a time in brackets.
func in(t string) string {
	if t == "" {
		return ""
	}
	return " (" + t + ")"
}

// states are the states of jobs as they are shown.
var states = map[string]display.State{
	"Waiting": display.Waiting, "Ready": display.Ready, "Offered": display.Ready, "Active": display.Running, "Succeeded": display.Succeeded,
	"Failed": display.Failed, "Cancelled": display.Cancelled, "Skipped": display.Skipped,
}

// row brings the line of a job up to date.
func (b *board) row(j *api.Job) {
	b.mu.Lock()
	defer b.f.redraw()
	defer b.mu.Unlock()
	at, known := b.places[j.ID]
	if !known {
		at = len(b.view.Jobs)
		b.places[j.ID] = at
		title := jobTitle(j)
		if j.Key == jobKey && len(j.Leg) == 0 {
			title = "" // of a command; its step says what it is
		}
		b.view.Jobs = append(b.view.Jobs, display.Job{Title: title})
	}
	v := &b.view.Jobs[at]
	if v.State == states[j.State] && v.State == display.Ready {
		return // with its reason
	}
	v.State, v.Why = states[j.State], ""
	switch v.State {
	case display.Waiting:
		var needs []string
		for _, n := range j.Needs {
			needs = append(needs, n.Job)
		}
		v.Why = console.Cell("needs " + strings.Join(needs, ", "))
	case display.Ready:
		v.Why = "waits for a runner"
	case display.Failed, display.Skipped:
		v.Why = console.Cell(reasonOf(j))
	}
	ended := time.Now()
	if n := len(j.AllAttempts); n > 0 {
		if t := &j.AllAttempts[n-1]; t.StartedAt != nil {
			v.Begun = *t.StartedAt
			if t.EndedAt != nil {
				ended = *t.EndedAt
			}
		}
	}
	if j.Ended && !v.Begun.IsZero() {
		v.Ended, v.Step, v.Said = ended, "", ""
	}
}

// update changes the line of a job.
func (b *board) update(job string, change func(*display.Job)) {
	b.mu.Lock()
	defer b.f.redraw()
	defer b.mu.Unlock()
	if at, ok := b.places[job]; ok {
		change(&b.view.Jobs[at])
	}
}

// block draws the jobs for a terminal.
func (b *board) block(style display.Style) func(width, height int, now time.Time) []string {
	return func(width, height int, now time.Time) []string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return style.Block(&b.view, width, height, now)
	}
}

// hint says what a key does from here on.
func (b *board) hint(text string) {
	b.mu.Lock()
	b.view.Hint = text
	b.mu.Unlock()
	b.f.redraw()
}

// runs reports whether a job runs now.
func (b *board) runs() bool {
	for _, j := range b.jobs {
		if j.State == "Active" {
			return true
		}
	}
	return false
}

// jobTitle is a job with its leg, as lines name it.
func jobTitle(j *api.Job) string {
	name := j.Key
	var values []string
	for _, v := range j.Leg {
		values = append(values, v.Value)
	}
	if len(values) > 0 {
		name += " (" + strings.Join(values, ", ") + ")"
	}
	return console.Cell(name)
}

func (b *board) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && !errors.Is(err, context.Canceled) {
		b.err = err
	}
}

// tellWhy says why jobs wait for a runner, or for theirs to come back: each reason once.
func (b *board) tellWhy(ctx context.Context) {
	asked := map[string]int{}
	for id, j := range b.jobs {
		state := b.told[id]
		if state != "Ready" && state != "Active" || asked[state] == maxWhy {
			continue
		}
		asked[state]++
		why, err := b.f.client.ExplainJob(ctx, id)
		gone := err == nil && why.State == "Active" && len(why.Waiting) > 0 // for its runner to come back
		if err != nil || why.State != "" && why.State != "Ready" && !gone {
			continue // it is only a remark
		}
		summary := console.Cell(why.Summary)
		b.update(id, func(v *display.Job) { v.Why = summary })
		if summary == b.whys[id] || summary == b.f.why || b.f.screen != nil && b.runs() && !gone {
			continue // where jobs are drawn and others run, it stands beside its job
		}
		b.f.why, b.whys[id] = summary, summary
		text := "waiting: " + summary
		if b.f.many {
			text = jobTitle(j) + ": " + text
		}
		if b.f.app.output != "json" {
			b.f.tell(text)
		}
	}
}
