package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
)

func (a *app) runsCommand() *cobra.Command {
	return console.Group("runs", "List, show, watch and cancel runs", a.runsList(), a.runsShow(), a.runsWatch(), a.runsCancel())
}

// pageFlags adds the flags of a list.
func pageFlags(cmd *cobra.Command, p *api.Page) {
	cmd.Flags().IntVar(&p.Limit, "limit", api.DefaultPage, fmt.Sprintf("most entries, at most %d", api.MaxPage))
	cmd.Flags().StringVar(&p.Cursor, "after", "", "go on where an earlier list ended")
}

// more tells a person how to go on with a list.
func (a *app) more(cmd *cobra.Command, next string) {
	if next != "" && a.output != "json" {
		a.note("There is more: %s --after %s", cmd.CommandPath(), next)
	}
}

func (a *app) runsList() *cobra.Command {
	var filter api.RunFilter
	var page api.Page
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List runs, newest first", Args: cobra.NoArgs,
		Example: "  forgeyard runs list --state Failed --limit 10\n  forgeyard runs list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			list, err := client.Runs(cmd.Context(), filter, page)
			if err != nil {
				return err
			}
			defer a.more(cmd, list.Next)
			return a.print().Show(list, func(w io.Writer) {
				console.Row(w, "RUN", "STATE", "NAME", "JOBS", "CREATED", "TOOK")
				for _, r := range list.Items {
					console.Row(w, r.ID, r.State, r.Name, jobCounts(r.Counts), when(r.CreatedAt), took(r.CreatedAt, r.EndedAt))
				}
			})
		},
	}
	cmd.Flags().StringVar(&filter.State, "state", "", "only those in this state: Planned, Running, Succeeded, Failed, Cancelled, Error")
	cmd.Flags().StringVar(&filter.Project, "project", "", "only those of this project")
	pageFlags(cmd, &page)
	return cmd
}

// jobCounts writes how many jobs are in which state, those first that are further along.
func jobCounts(counts map[string]int) string {
	var parts []string
	for _, state := range []string{"Failed", "Cancelled", "Succeeded", "Skipped", "Active", "Offered", "Ready", "Waiting"} {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(state)))
		}
	}
	return strings.Join(parts, ", ")
}

func (a *app) runsShow() *cobra.Command {
	return &cobra.Command{
		Use: "show RUN", Short: "Show a run and its jobs", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			run, err := client.Run(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print().Show(run, func(w io.Writer) { describeRun(w, run) })
		},
	}
}

func describeRun(w io.Writer, r *api.Run) {
	console.Field(w, "Run", r.ID)
	console.Field(w, "Name", r.Name)
	console.Field(w, "Project", r.Project)
	console.Field(w, "State", r.State)
	console.Field(w, "Reason", r.Reason)
	console.Field(w, "Created", when(r.CreatedAt))
	console.Field(w, "Ended", when(r.EndedAt))
	fmt.Fprintln(w)
	console.Row(w, "JOB", "ID", "STATE", "ATTEMPTS", "REASON")
	for _, j := range r.Jobs {
		console.Row(w, j.Key, j.ID, j.State, fmt.Sprint(j.Attempts), j.Reason)
	}
}

func (a *app) runsWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch RUN", Short: "Show the changes of a run until it ends, and end as it ends", Args: cobra.ExactArgs(1),
		Long: "Show the changes of a run until it ends, and end with its exit code.\nCtrl-C leaves the run alone; see \"forgeyard runs cancel\".",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			return a.watchRun(cmd.Context(), client, args[0])
		},
	}
}

func (a *app) watchRun(ctx context.Context, client *api.Client, id string) error {
	told := map[string]string{} // the state of each thing that was shown last: a stream that is opened anew begins with all of them
	for e, err := range client.Watch(ctx, id) {
		if err != nil {
			return err
		}
		if known, err := isKnown(told, e); known || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if err := a.showChange(e); err != nil {
			return err
		}
	}
	run, err := client.Run(ctx, id)
	if err != nil {
		return err
	}
	return a.exit(run)
}

// isKnown reports whether a change was shown already, and takes down that it is now.
func isKnown(told map[string]string, e api.Event) (bool, error) {
	if e.Name != api.EventChange {
		return false, nil
	}
	var c api.RunEvent
	if err := e.Decode(&c); err != nil {
		return false, err
	}
	known := told[c.ID] == c.To
	told[c.ID] = c.To
	return known, nil
}

func (a *app) showChange(e api.Event) error {
	if a.output == "json" {
		return a.print().Event(shown{ID: e.ID, Name: e.Name, Data: e.Data})
	}
	if e.Name == api.EventEnd {
		var run api.Run
		if err := e.Decode(&run); err != nil {
			return err
		}
		fmt.Fprintln(a.env.Stdout, console.Cell(strings.TrimSpace("run "+run.State+" "+run.Reason)))
		return nil
	}
	var c api.RunEvent
	if err := e.Decode(&c); err != nil {
		return err
	}
	words := []string{when(c.At), c.Kind}
	if c.Kind != "run" {
		words = append(words, c.Job)
	}
	words = append(words, c.ID, c.To)
	if c.Why != "" {
		words = append(words, "("+c.Why+")")
	}
	fmt.Fprintln(a.env.Stdout, console.Cell(strings.Join(words, " ")))
	return nil
}

func (a *app) runsCancel() *cobra.Command {
	return &cobra.Command{
		Use: "cancel RUN", Short: "Ask for the end of every job of a run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			run, err := client.CancelRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print().Show(run, func(w io.Writer) { console.Row(w, "run "+run.ID+" "+run.State+", cancel requested") })
		},
	}
}

func (a *app) jobCommand() *cobra.Command {
	why := &cobra.Command{
		Use: "why JOB", Short: "Say why a job waits, or why it ended as it did", Args: cobra.ExactArgs(1),
		Long:    "Say why a job is where it is: what it waits for, and for every runner the first thing that keeps it from taking the job.",
		Example: "  forgeyard job why 01JB4Z",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			why, err := client.ExplainJob(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print().Show(why, func(w io.Writer) { explainJob(w, why) })
		},
	}
	show := &cobra.Command{
		Use: "show JOB", Short: "Show a job and its attempts", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			job, err := client.Job(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print().Show(job, func(w io.Writer) { describeJob(w, job) })
		},
	}
	return console.Group("job", "Show jobs, and why they wait", show, why)
}

func describeJob(w io.Writer, j *api.Job) {
	console.Field(w, "Job", j.Key)
	console.Field(w, "ID", j.ID)
	console.Field(w, "Run", j.Run)
	console.Field(w, "State", j.State)
	console.Field(w, "Reason", j.Reason)
	fmt.Fprintln(w)
	console.Row(w, "ATTEMPT", "ID", "STATE", "CLASS", "RUNNER", "REASON")
	for _, t := range j.AllAttempts {
		console.Row(w, fmt.Sprint(t.Number), t.ID, t.State, t.Class, t.RunnerName, t.Reason)
	}
}

func explainJob(w io.Writer, e *api.Explanation) {
	console.Field(w, "State", e.State)
	console.Field(w, "Why", e.Summary)
	for _, d := range e.Details {
		fmt.Fprintf(w, "\t%s\n", console.Cell(d))
	}
	if e.Ahead > 0 {
		console.Field(w, "Ahead", fmt.Sprintf("%d older jobs", e.Ahead))
	}
	if len(e.Runners) == 0 {
		return
	}
	fmt.Fprintln(w)
	console.Row(w, "RUNNER", "WHY NOT")
	for _, r := range e.Runners {
		console.Row(w, r.Name, misses(r.Misses))
	}
}

func misses(all []api.Miss) string {
	var texts []string
	for _, m := range all {
		texts = append(texts, m.Text)
	}
	return strings.Join(texts, "; ")
}

func (a *app) logsCommand() *cobra.Command {
	var o struct {
		follow, raw bool
		step        int
		tail        int
		attempt     int
		search      string
		ignoreCase  bool
	}
	cmd := &cobra.Command{
		Use: "logs RUN|JOB|ATTEMPT", Short: "Print the log of an attempt", Args: cobra.ExactArgs(1),
		Long: `Print the log of an attempt: that of the id, or the newest one of a job, or of the first job
of a run. On a terminal, control sequences other than colours are left out; --raw prints
the output byte for byte, as does anything but a terminal. --search prints the lines in
which a text stands, as the daemon finds them.`,
		Example: "  forgeyard logs -f 01JB4Z\n  forgeyard logs --raw 01JB4Z > log.txt\n  forgeyard logs --step 2 01JB4Z\n" +
			"  forgeyard logs --search 'error:' -i 01JB4Z",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			if o.step < -1 || o.step > 1<<15 {
				return console.Usage("--step %d: steps are numbered from 0", o.step)
			}
			if o.search != "" && (o.follow || o.step >= 0 || o.tail > 0) {
				return console.Usage("--search looks through the whole log: leave out --follow, --step and --tail")
			}
			attempt, err := findAttempt(cmd.Context(), client, args[0], o.attempt)
			if err != nil {
				return err
			}
			if o.search != "" {
				return a.searchLog(cmd.Context(), client, attempt, api.LogQuery{Text: o.search, IgnoreCase: o.ignoreCase, Limit: api.MaxPage}, o.raw)
			}
			options := api.LogOptions{Follow: o.follow, Tail: o.tail}
			p := a.printer(o.raw)
			if o.step >= 0 {
				p.one, p.only, p.step = true, uint16(o.step), ^uint16(0)
			}
			if o.raw && o.step < 0 && a.output != "json" {
				if !o.follow {
					return client.CopyRawLog(cmd.Context(), a.env.Stdout, attempt, options)
				}
				p.stderr = p.stdout // as in a raw log, in which both are one; only events can be taken up again where they broke
			}
			return printLog(cmd.Context(), client, attempt, options, p)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "go on until the attempt ends")
	f.BoolVar(&o.raw, "raw", false, "print byte for byte, also on a terminal")
	f.IntVar(&o.step, "step", -1, "only this step, counted from 0")
	f.IntVar(&o.tail, "tail", 0, "only so many last lines")
	f.StringVar(&o.search, "search", "", "only the lines in which this text stands")
	f.BoolVarP(&o.ignoreCase, "ignore-case", "i", false, "search in capitals and small letters alike")
	f.IntVar(&o.attempt, "attempt", 0, "the attempt of this number, instead of the newest")
	return cmd
}

// findAttempt returns the id of the attempt that is meant by the id of an attempt, a job or a run.
func findAttempt(ctx context.Context, client *api.Client, id string, number int) (string, error) {
	if len(id) < api.MinIDPrefix {
		return "", console.Usage("%q is no id of a run, a job or an attempt: write at least its first %d digits", id, api.MinIDPrefix)
	}
	job := id
	if number == 0 {
		t, err := client.Attempt(ctx, id)
		if err == nil {
			return t.ID, nil
		}
		if !isCode(err, api.CodeNotFound) {
			return "", err
		}
	}
	if run, err := client.Run(ctx, id); err == nil && len(run.Jobs) > 0 {
		job = run.Jobs[0].ID
	} else if err != nil && !isCode(err, api.CodeNotFound) {
		return "", err
	}
	j, err := client.Job(ctx, job)
	if job == id && isCode(err, api.CodeNotFound) {
		return "", api.NewProblem(api.CodeNotFound, "there is no run, job or attempt %s", id)
	}
	if err != nil {
		return "", err
	}
	if number == 0 && j.CurrentAttempt != "" {
		return j.CurrentAttempt, nil
	}
	i := slices.IndexFunc(j.AllAttempts, func(t api.Attempt) bool { return int(t.Number) == number })
	if i < 0 {
		return "", fmt.Errorf("job %s has no such attempt yet\nSee why: forgeyard job why %s", j.Key, j.ID)
	}
	return j.AllAttempts[i].ID, nil
}

// searchLog prints the lines in which a text was found.
func (a *app) searchLog(ctx context.Context, client *api.Client, attempt string, q api.LogQuery, raw bool) error {
	p := a.printer(raw)
	defer p.close()
	found := 0
	for {
		page, err := client.SearchLog(ctx, attempt, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := p.match(&page.Items[i]); err != nil {
				return err
			}
		}
		if found += len(page.Items); !page.More {
			break
		}
		q.After = page.Next
	}
	if found == 0 {
		return fmt.Errorf("no line of the log has %q", q.Text)
	}
	return nil
}

func printLog(ctx context.Context, client *api.Client, attempt string, o api.LogOptions, p printer) error {
	defer p.close()
	for e, err := range client.Log(ctx, attempt, o) {
		if err != nil {
			return err
		}
		if err := p.event(e); err != nil {
			return err
		}
	}
	return nil
}

// writeSecret writes what only this user may read into a file that is not there yet.
func writeSecret(file, text string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text+"\n")
	return errors.Join(err, f.Close())
}
