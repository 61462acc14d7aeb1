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
	return console.Group("runs", "List, show, watch, cancel and retry runs", a.runsList(), a.runsShow(), a.runsWatch(), a.runsCancel(), a.runsRetry())
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
				retries := slices.ContainsFunc(list.Items, func(r api.Run) bool { return r.RetryOf != "" })
				row := func(retryOf string, cells ...string) {
					if retries {
						cells = append(cells, retryOf)
					}
					console.Row(w, cells...)
				}
				row("RETRY OF", "RUN", "STATE", "NAME", "JOBS", "CREATED", "TOOK")
				for _, r := range list.Items {
					row(r.RetryOf, r.ID, r.State, r.Name, jobCounts(r.Counts), when(r.CreatedAt), took(r.CreatedAt, r.EndedAt))
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
		Long:    "Show a run with its jobs. Of one that tries another again, also what it took over from that.",
		Example: "  forgeyard runs show 01JB4Z\n  forgeyard runs show 01JB4Z -o json",
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
	console.Field(w, "Retry of", r.RetryOf)
	fmt.Fprintln(w)
	console.Row(w, "JOB", "ID", "STATE", "ATTEMPTS", "REASON")
	for i := range r.Jobs {
		j := &r.Jobs[i]
		console.Row(w, jobTitle(j), j.ID, j.State, fmt.Sprint(j.Attempts), reasonOf(j))
	}
	if len(r.Taken) == 0 {
		return
	}
	fmt.Fprintln(w)
	console.Row(w, "TAKEN OVER", "ID", "STATE", "FROM RUN", "REASON")
	for i := range r.Taken {
		j := &r.Taken[i]
		console.Row(w, jobTitle(j), j.ID, j.State, j.Run, reasonOf(j))
	}
}

func (a *app) runsWatch() *cobra.Command {
	return &cobra.Command{
		Use: "watch RUN", Short: "Show the changes of a run until it ends, and end as it ends", Args: cobra.ExactArgs(1),
		Long:    "Show the changes of a run until it ends, and end with its exit code.\nCtrl-C leaves the run alone; see \"forgeyard runs cancel\".",
		Example: "  forgeyard runs watch 01JB4Z",
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
	if a.looks {
		run, err := client.Run(ctx, id)
		if err == nil {
			err = a.moves(run)
		}
		if err != nil {
			return err
		}
	}
	if _, ok := a.live(); ok {
		run, err := client.Run(ctx, id)
		if err != nil {
			return err
		}
		if !run.Ended {
			return a.watchLive(ctx, client, run.ID)
		}
	}
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
		Example: "  forgeyard runs cancel 01JB4Z",
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
		Long:    "Say why a job is where it is: what it waits for, and for every runner the first thing that keeps it from taking the job.\nThe id of a run does where the run has one job.",
		Example: "  forgeyard job why 01JB4Z",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			why, err := ofJob(cmd.Context(), client, args[0], client.ExplainJob)
			if err != nil {
				return err
			}
			return a.print().Show(why, func(w io.Writer) { explainJob(w, why) })
		},
	}
	show := &cobra.Command{
		Use: "show JOB", Short: "Show a job and its attempts", Args: cobra.ExactArgs(1),
		Example: "  forgeyard job show 01JB4Z\n  forgeyard job show 01JB4Z -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			job, err := ofJob(cmd.Context(), client, args[0], client.Job)
			if err != nil {
				return err
			}
			return a.print().Show(job, func(w io.Writer) { describeJob(w, job) })
		},
	}
	return console.Group("job", "Show jobs, and why they wait", show, why)
}

// ofJob asks about a job. Where there is none of that id, but a run of one job, it is that job.
func ofJob[T any](ctx context.Context, client *api.Client, id string, ask func(context.Context, string) (T, error)) (T, error) {
	got, err := ask(ctx, id)
	if p := (*api.Problem)(nil); !errors.As(err, &p) || p.Code != api.CodeNotFound {
		return got, err
	}
	run, noRun := client.Run(ctx, id)
	switch {
	case noRun != nil: // what was said about the job stands
		return got, err
	case len(run.Jobs) == 1:
		return ask(ctx, run.Jobs[0].ID)
	}
	return got, console.Usage("%s is a run of several jobs, and this is about one of them\nSee their ids: forgeyard runs show %[1]s", id)
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

// writeSecret writes what only this user may read into a file that is not there yet.
func writeSecret(file, text string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text+"\n")
	return errors.Join(err, f.Close())
}
