package cli

import (
	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
)

func (a *app) runsRetry() *cobra.Command {
	var all, failed bool
	var o jobOptions
	cmd := &cobra.Command{
		Use: "retry RUN [JOB…]", Short: "Run again what failed in a run, with what needed it", Args: cobra.MinimumNArgs(1),
		Long: `Run again the jobs of a run that failed or were cancelled, and those that need any of them; or
the jobs that are named, by their keys, with what they need and have not got; or all jobs. That
is a new run, and the old one stays as it was. What is not run again is taken over: results,
outputs and artifacts.

The source, the pipeline file and what git said are those of the old run. Secrets are those of
today. Like "forgeyard run", this follows the run and ends as it ends.`,
		Example: `  forgeyard runs retry 01JB4Z                what failed
  forgeyard runs retry 01JB4Z deploy         one job, and what needs it
  forgeyard runs retry 01JB4Z --all
  forgeyard runs retry 01JB4Z --detach       print the new run's id and leave`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (all || failed) && len(args) > 1 || all && failed {
				return console.Usage("say --failed, --all or which jobs: one of them")
			}
			if len(args[0]) < api.MinIDPrefix {
				return console.Usage("%q is no id of a run: write at least its first %d digits\nSee what there is: forgeyard runs list", args[0], api.MinIDPrefix)
			}
			o.source.dir = sourceNone // it has the source of the old run
			return a.run(cmd.Context(), &api.RunRequest{Retry: &api.RetryRequest{Run: args[0], All: all, Jobs: args[1:]}}, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&failed, "failed", false, "the jobs that failed or were cancelled, as when nothing is said")
	f.BoolVar(&all, "all", false, "every job")
	f.BoolVarP(&o.detach, "detach", "d", false, "print the new run's id and leave; needs a server")
	f.BoolVar(&o.raw, "raw", false, "print the output byte for byte, also on a terminal")
	o.local.add(f)
	return cmd
}
