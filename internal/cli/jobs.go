package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// ofCommands are flags of run that say something about the job of one command; a pipeline says it in its file.
var ofCommands = []string{
	"env", "timeout", "cpu", "memory", "disk", "label", "pool", "os", "arch", "network", "retry-infra", "output-files", "download", "source-mode", "secret",
}

// runPipeline runs the jobs of the repository's pipeline file: all, or those that are wanted and whatever they need.
func (a *app) runPipeline(cmd *cobra.Command, wanted []string, o jobOptions) error {
	for _, flag := range ofCommands {
		if cmd.Flags().Changed(flag) {
			return console.Usage("--%s is for a command behind --; of a pipeline, its file says that", flag)
		}
	}
	p, err := a.readPipeline("")
	if errors.Is(err, errNoPipeline) && len(wanted) > 0 {
		return console.Usage("%v\nTo run a command, write it behind --, as in: forgeyard run -- %s", err, console.Plain(strings.Join(wanted, " ")))
	}
	if err != nil {
		return err
	}
	file, err := a.parsePipeline(p)
	if err != nil {
		return err
	}
	if _, err := file.Expand(pipeline.Facts{}, wanted); err != nil {
		return console.Usage("%v", err)
	}
	if o.source.dir == "" {
		o.source.dir = filepath.Dir(p.Name) // a pipeline runs on what stands beside it, in a repository of git or not
	}
	return a.run(cmd.Context(), &api.RunRequest{
		Name: o.name, Pipeline: &api.PipelineRequest{File: p.Name, Text: string(p.Text), Jobs: wanted, Sandbox: o.sandbox},
	}, o)
}

// watchMany shows the changes of the run's jobs and the logs of all attempts, each line with the name of its job in front.
func (f *follower) watchMany(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan api.Event)
	ended := make(chan error, 1)
	go func() {
		defer close(events)
		ended <- f.pump(ctx, events)
	}()
	b := board{f: f, jobs: map[string]*api.Job{}, told: map[string]string{}}
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

// A board shows a run of several jobs. Its goroutines, one for each log, belong to watchMany.
type board struct {
	f    *follower
	jobs map[string]*api.Job // by id, as they were last seen
	told map[string]string   // the state of each job that was told last
	logs sync.WaitGroup

	mu  sync.Mutex // for whole lines, and what follows
	err error      // the first of a log
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
	for i := range run.Jobs {
		b.see(&run.Jobs[i])
	}
	return nil
}

// see tells of a job that has come into another state.
func (b *board) see(j *api.Job) {
	b.jobs[j.ID] = j
	if b.told[j.ID] == j.State {
		return
	}
	b.told[j.ID] = j.State
	switch j.State {
	case "Succeeded":
		b.say(j, "succeeded"+in(took(j.CreatedAt, j.EndedAt)))
	case "Failed":
		b.say(j, "failed: "+j.Reason)
	case "Cancelled":
		b.say(j, "cancelled")
	case "Skipped":
		b.say(j, "skipped: "+j.Reason)
	}
}

func in(t string) string {
	if t == "" {
		return ""
	}
	return " (" + t + ")"
}

// say tells something about a job.
func (b *board) say(j *api.Job, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.f.app.output == "json" {
		_ = b.f.app.print().Event(shown{Name: "job", Job: jobTitle(j), Data: j}) // standard output is gone: the code is left
		return
	}
	b.f.app.note("%s: %s", jobTitle(j), console.Plain(text))
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
	return console.Plain(name)
}

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
	job := b.jobs[a.Job]
	if job == nil {
		if job, err = b.job(ctx, a.Job); err != nil {
			return err
		}
	}
	out := b.f.out
	lines := []*lineWriter{{b: b, to: out.stdout, prefix: jobTitle(job) + " | "}, {b: b, to: out.stderr, prefix: jobTitle(job) + " | "}}
	out.stdout, out.stderr, out.of = lines[0], lines[1], jobTitle(job)
	b.logs.Go(func() {
		for e, err := range b.f.client.Log(ctx, id, api.LogOptions{Follow: true}) {
			if err == nil {
				err = b.show(&out, e)
			}
			if err != nil {
				b.failed(err)
				break
			}
		}
		for _, l := range lines {
			l.flush()
		}
	})
	return nil
}

// show shows one event of a log. What is JSON is a line of its own.
func (b *board) show(out *printer, e api.Event) error {
	if b.f.app.output == "json" {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	return out.event(e)
}

func (b *board) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && !errors.Is(err, context.Canceled) {
		b.err = err
	}
}

// tellWhy says why jobs wait for a runner, each reason once.
func (b *board) tellWhy(ctx context.Context) {
	for id, j := range b.jobs {
		if b.told[id] != "Ready" {
			continue
		}
		why, err := b.f.client.ExplainJob(ctx, id)
		if err != nil || why.State != "Ready" || why.Summary == b.f.why {
			continue // it is only a remark
		}
		b.f.why = why.Summary
		b.say(j, "waiting: "+why.Summary)
	}
}

// A lineWriter writes whole lines with a prefix. A line that has no end yet waits for it, at most maxLine bytes of it.
type lineWriter struct {
	b      *board
	to     io.Writer
	prefix string
	rest   []byte
}

const maxLine = 8 << 10

func (l *lineWriter) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 && len(l.rest) < maxLine {
			return len(p), nil
		}
		end, next := i, i+1
		if i < 0 {
			end, next = maxLine, maxLine // a piece of it, as a line
		}
		if err := l.line(l.rest[:end]); err != nil {
			return 0, err
		}
		l.rest = append(l.rest[:0], l.rest[next:]...)
	}
}

func (l *lineWriter) line(text []byte) error {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	_, err := fmt.Fprintf(l.to, "%s%s\n", l.prefix, text)
	return err
}

func (l *lineWriter) flush() {
	if len(l.rest) > 0 {
		_ = l.line(l.rest) // standard output is gone: the code is left
		l.rest = nil
	}
}
