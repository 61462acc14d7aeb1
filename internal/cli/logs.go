package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
)

// maxTail bounds the last lines that are asked for.
const maxTail = 100_000

// logOptions are what the flags of logs say.
type logOptions struct {
	follow, raw, failed bool
	timestamps          bool
	step                string
	tail, attempt       int
	search              string
	ignoreCase          bool
}

func (a *app) logsCommand() *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use: "logs [RUN|ATTEMPT] [JOB…]", Short: "Print logs of a run, of jobs, or of one attempt",
		Long: `Print the logs of a run's jobs, of each its newest attempt, one job after the other. Jobs are
named by their keys or ids; without any, it is all of them. Without a run, it is the latest one.
Where there are several jobs, each line begins with the name of its own.

--failed leaves the jobs that failed, and of them the steps that did. Steps are named, or
counted from 1. On a terminal, control sequences other than colours are left out; --raw prints
the output byte for byte, as does anything but a terminal.`,
		Example: `  forgeyard logs                             the latest run
  forgeyard logs --failed                    what failed in it, and nothing else
  forgeyard logs test                        the job test of the latest run
  forgeyard logs 01JB4Z test --step unit     one step of a job
  forgeyard logs 01JB4Z --grep 'error:' -i   lines with a text, in all jobs
  forgeyard logs 01JB4Z --tail 50 -t         the last 50 lines of each job, with their times
  forgeyard logs -f 01JB4Z                   go on until the run ends
  forgeyard logs --raw 01JB4Z > log.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			client, err := a.ask()
			if err != nil {
				return err
			}
			return a.logs(cmd.Context(), client, args, &o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "go on until the attempt, or the run, ends")
	f.BoolVar(&o.raw, "raw", false, "print byte for byte, also on a terminal")
	f.BoolVar(&o.failed, "failed", false, "only the steps that failed, of the jobs that failed")
	f.BoolVarP(&o.timestamps, "timestamps", "t", false, "begin each line with its time, in UTC")
	f.StringVar(&o.step, "step", "", "only this step: its name or id, or its number, counted from 1")
	f.IntVar(&o.tail, "tail", 0, "only so many last lines, of each job")
	f.StringVar(&o.search, "grep", "", "only the lines in which this text stands")
	f.StringVar(&o.search, "search", "", "the same as --grep")
	_ = f.MarkHidden("search")
	f.BoolVarP(&o.ignoreCase, "ignore-case", "i", false, "take capitals and small letters of --grep alike")
	f.IntVar(&o.attempt, "attempt", 0, "the attempt of this number, instead of the newest")
	return cmd
}

// check refuses what cannot go together.
func (o *logOptions) check() error {
	switch {
	case o.search != "" && o.follow:
		return console.Usage("--grep looks through what there is: leave out --follow")
	case o.failed && o.follow:
		return console.Usage("--failed is about what has ended: leave out --follow")
	case o.failed && o.step != "":
		return console.Usage("--failed chooses the steps: leave out --step")
	case o.raw && (o.timestamps || o.search != ""):
		return console.Usage("--raw is the output as it is: leave out --timestamps and --grep")
	case o.ignoreCase && o.search == "":
		return console.Usage("-i is about --grep: write the text that is looked for")
	case o.tail < 0 || o.tail > maxTail:
		return console.Usage("--tail %d: from 1 to %d lines", o.tail, maxTail)
	case o.tail > 0 && o.follow && o.lines():
		return console.Usage("--tail with --follow shows the whole of each line: leave out --step and --timestamps")
	case o.attempt < 0:
		return console.Usage("--attempt %d: attempts are numbered from 1", o.attempt)
	}
	if n, err := strconv.Atoi(o.step); err == nil && (n < 1 || n > 1<<15) {
		return console.Usage("--step %d: steps are numbered from 1", n)
	}
	return nil
}

// lines reports whether the output is taken apart here, by steps or by lines.
func (o *logOptions) lines() bool { return o.step != "" || o.failed || o.timestamps }

// logs prints what is asked for.
func (a *app) logs(ctx context.Context, client *api.Client, args []string, o *logOptions) error {
	found, err := a.findLogs(ctx, client, args)
	if err != nil {
		return err
	}
	if o.follow {
		if err := a.moves(found.run); err != nil {
			return err
		}
	}
	if o.follow && found.attempt == nil && len(found.jobs) > 1 {
		if o.lines() || o.tail > 0 {
			return console.Usage("with --follow, name one job: it has %s", keysOf(found.run))
		}
		return a.followLogs(ctx, client, found.run.ID, o.raw)
	}
	targets, err := found.targets(ctx, client, o)
	if err != nil {
		return err
	}
	switch {
	case len(targets) == 0 && o.failed:
		a.note("no job of run %s has failed", found.run.ID)
		return nil
	case len(targets) == 0:
		return fmt.Errorf("nothing of run %s has begun yet\nSee why: forgeyard runs show %s", found.run.ID, found.run.ID)
	}
	matches := 0
	for i := range targets {
		n, err := a.logOf(ctx, client, &targets[i], o)
		if err != nil {
			return err
		}
		matches += n
	}
	if o.search != "" && matches == 0 {
		return fmt.Errorf("no line of the log has %q", o.search)
	}
	return nil
}

// followLogs shows all jobs of a run until it ends. It leaves the run alone, and ends well however the run does.
func (a *app) followLogs(ctx context.Context, client *api.Client, run string, raw bool) error {
	f := a.follower(client, run, raw)
	f.many = true
	closeScreen := f.open(leavesAlone)
	err := f.watchMany(ctx)
	f.out.close()
	return errors.Join(err, closeScreen())
}

// logOf prints the log of one attempt, and says in how many lines of it was found what is looked for.
func (a *app) logOf(ctx context.Context, client *api.Client, t *target, o *logOptions) (int, error) {
	if o.search != "" && !o.lines() && o.tail == 0 {
		return a.searchLog(ctx, client, t, o)
	}
	options := api.LogOptions{Follow: o.follow}
	if !o.lines() && o.search == "" {
		options.Tail = o.tail
		if o.raw && !o.follow && a.output != "json" {
			return 0, client.CopyRawLog(ctx, a.env.Stdout, t.attempt.ID, options)
		}
	}
	v := a.logView(t, o)
	defer v.close()
	for e, err := range client.Log(ctx, t.attempt.ID, options) {
		if err == nil {
			err = v.event(e)
		}
		if err != nil {
			return 0, err
		}
	}
	return v.matches, errors.Join(v.finish(), v.unknownStep(o.step))
}

// searchLog prints the lines in which a text was found, as the daemon finds them.
func (a *app) searchLog(ctx context.Context, client *api.Client, t *target, o *logOptions) (found int, err error) {
	v := a.logView(t, o)
	defer v.close()
	q := api.LogQuery{Text: o.search, IgnoreCase: o.ignoreCase, Limit: api.MaxPage}
	for {
		page, err := client.SearchLog(ctx, t.attempt.ID, q)
		if err != nil {
			return found, err
		}
		for i := range page.Items {
			if err := v.match(&page.Items[i]); err != nil {
				return found, err
			}
		}
		if found += len(page.Items); !page.More {
			return found, nil
		}
		q.After = page.Next
	}
}

// holds reports whether a text stands in a line.
func (o *logOptions) holds(line []byte) bool {
	if o.search == "" {
		return true
	}
	if o.ignoreCase {
		return bytes.Contains(bytes.ToLower(line), bytes.ToLower([]byte(o.search)))
	}
	return bytes.Contains(line, []byte(o.search))
}
