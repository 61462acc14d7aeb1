package cli

import (
	"context"
	_ "embed"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// completeWithin bounds what a person waits for who has pressed a key.
const completeWithin = 2 * time.Second

// The scripts are our own and not cobra's: those evaluate what was typed, so that the key runs $(…) and what follows a ;.
var (
	//go:embed completion.bash
	bashCompletion string
	//go:embed completion.zsh
	zshCompletion string
	//go:embed completion.fish
	fishCompletion string
)

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print what makes a shell complete the words of this command",
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: []string{"bash", "zsh", "fish"},
		Long: `Print a script for a shell, which then completes commands and flags, jobs of the pipeline file of
this folder, and ids of runs, names of runners, secrets, caches and contexts as the daemon knows
them. No daemon is started for that.`,
		Example: `  source <(forgeyard completion bash)                          in this shell, or in ~/.bashrc
  forgeyard completion zsh > "${fpath[1]}/_forgeyard"
  forgeyard completion fish > ~/.config/fish/completions/forgeyard.fish`,
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := io.WriteString(a.env.Stdout, map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[args[0]])
			return err
		},
	}
}

// A completer lists what a word can become. Each may have a description behind a tab.
type completer func(cmd *cobra.Command, args []string) []cobra.Completion

// complete gives the commands of the tree and their flags what they complete.
func (a *app) complete(root *cobra.Command) {
	for path, of := range map[string]completer{
		"run": a.pipelineJobs, "plan": a.pipelineJobs,
		"runs show": first(a.runIDs), "runs watch": first(a.runIDs), "runs cancel": first(a.runIDs), "runs retry": a.runThenJobs,
		"logs": a.runThenJobs, "job show": first(a.jobIDs), "job why": first(a.jobIDs),
		"artifact list": first(a.runIDs), "artifact get": first(a.runIDs), "artifact download": first(a.runIDs),
		"runner show": first(a.runnerNames), "runner why": first(a.runnerNames), "runner drain": first(a.runnerNames), "runner resume": first(a.runnerNames),
		"runner disable": first(a.runnerNames), "runner enable": first(a.runnerNames), "runner delete": first(a.runnerNames), "runner revoke": first(a.runnerNames),
		"context use": first(a.contextNames), "context rm": first(a.contextNames), "secret rm": first(a.secretNames), "secret set": first(a.secretNames),
		"cache rm": a.cacheKeys, "cache list": none,
	} {
		if cmd := commandAt(root, path); cmd != nil {
			cmd.ValidArgsFunction = filtered(of)
		}
	}
	for path, values := range map[string][]cobra.Completion{
		"runs list --state": {"Planned", "Running", "Succeeded", "Failed", "Cancelled", "Error"},
		"run --network":     {"none", "host"},
		"run --sandbox":     {"native", "process"},
		"run --source-mode": {"cow", "ro"},
		"up --log-level":    {"debug", "info", "warn", "error"},
		"init --from":       {"github", "gitlab", "woodpecker"},
	} {
		path, flag, _ := strings.Cut(path, " --")
		if cmd := commandAt(root, path); cmd != nil && cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // it has none yet
		}
	}
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("context", filtered(a.contextNames))
	_ = root.MarkPersistentFlagDirname("data")
}

// commandAt finds a command by the words behind the program's name; nil where there is none.
func commandAt(root *cobra.Command, path string) *cobra.Command {
	cmd := root
	for word := range strings.FieldsSeq(path) {
		var next *cobra.Command
		for _, c := range cmd.Commands() {
			if c.Name() == word {
				next = c
			}
		}
		if cmd = next; cmd == nil {
			return nil
		}
	}
	return cmd
}

// filtered leaves what begins with what was typed. Behind --, and where nothing is known, a shell completes files.
func filtered(of completer) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (some []cobra.Completion, d cobra.ShellCompDirective) {
		if n := cmd.Flags().ArgsLenAtDash(); n >= 0 && n < len(args) { // cobra sets one of its own behind the arguments
			return nil, cobra.ShellCompDirectiveDefault
		}
		for _, c := range of(cmd, args) {
			if strings.HasPrefix(strings.ToUpper(c), strings.ToUpper(typed)) {
				some = append(some, c)
			}
		}
		return some, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func none(*cobra.Command, []string) []cobra.Completion { return nil }

// first completes the first argument alone.
func first(of completer) completer {
	return func(cmd *cobra.Command, args []string) []cobra.Completion {
		if len(args) > 0 {
			return nil
		}
		return of(cmd, args)
	}
}

// known asks the daemon that is there already, if one is.
func (a *app) known(ask func(ctx context.Context, client *api.Client) ([]cobra.Completion, error)) []cobra.Completion {
	ctx, cancel := context.WithTimeout(context.Background(), completeWithin)
	defer cancel()
	client, err := a.connect()
	if err == nil && client == nil {
		data, e := a.dataDir()
		if e != nil {
			return nil
		}
		endpoint := a.env.Local.Find(data)
		if endpoint == "" {
			return nil
		}
		client, err = a.dial(endpoint)
	}
	if err != nil {
		return nil
	}
	all, err := ask(ctx, client)
	if err != nil {
		return nil // whoever presses a key wants no errors
	}
	return all
}

// described is a completion with what it stands for.
func described(word string, about ...string) cobra.Completion {
	text := strings.Join(strings.Fields(console.Cell(strings.Join(about, " "))), " ")
	return cobra.CompletionWithDesc(console.Cell(word), text)
}

func (a *app) runIDs(*cobra.Command, []string) []cobra.Completion {
	return a.known(func(ctx context.Context, client *api.Client) (all []cobra.Completion, err error) {
		list, err := client.Runs(ctx, api.RunFilter{}, api.Page{})
		if err != nil {
			return nil, err
		}
		for _, r := range list.Items {
			all = append(all, described(r.ID, r.State, r.Name, when(r.CreatedAt)))
		}
		return all, nil
	})
}

// jobIDs are the jobs of the newest runs.
func (a *app) jobIDs(*cobra.Command, []string) []cobra.Completion {
	const newest = 3
	return a.known(func(ctx context.Context, client *api.Client) (all []cobra.Completion, err error) {
		list, err := client.Runs(ctx, api.RunFilter{}, api.Page{Limit: newest})
		if err != nil {
			return nil, err
		}
		for _, r := range list.Items {
			run, err := client.Run(ctx, r.ID)
			if err != nil {
				return nil, err
			}
			for i := range run.Jobs {
				all = append(all, described(run.Jobs[i].ID, jobTitle(&run.Jobs[i]), run.Jobs[i].State))
			}
		}
		return all, nil
	})
}

// runThenJobs completes a run, and then the jobs that it has.
func (a *app) runThenJobs(cmd *cobra.Command, args []string) []cobra.Completion {
	if len(args) == 0 {
		return a.runIDs(cmd, args)
	}
	return a.known(func(ctx context.Context, client *api.Client) (all []cobra.Completion, err error) {
		run, err := client.Run(ctx, args[0])
		if err != nil {
			return nil, err
		}
		seen := map[string]bool{}
		for _, key := range args[1:] {
			seen[key] = true
		}
		for _, jobs := range [][]api.Job{run.Jobs, run.Taken} {
			for i := range jobs {
				if j := &jobs[i]; !seen[j.Key] {
					seen[j.Key] = true
					all = append(all, described(j.Key, j.State))
				}
			}
		}
		return all, nil
	})
}

func (a *app) runnerNames(*cobra.Command, []string) []cobra.Completion {
	return a.known(func(ctx context.Context, client *api.Client) (all []cobra.Completion, err error) {
		list, err := client.Runners(ctx, api.Page{Limit: api.MaxPage})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			all = append(all, described(list.Items[i].Name, list.Items[i].State))
		}
		return all, nil
	})
}

// projectOf is the project that is meant by the flags.
func projectOf(cmd *cobra.Command) string {
	if f := cmd.Flag("project"); f != nil && f.Value.String() != "" {
		return f.Value.String()
	}
	return string(forge.DefaultProject)
}

func (a *app) secretNames(cmd *cobra.Command, _ []string) []cobra.Completion {
	return a.known(func(ctx context.Context, client *api.Client) (all []cobra.Completion, err error) {
		list, err := client.Secrets(ctx, projectOf(cmd), api.Page{Limit: api.MaxPage})
		if err != nil {
			return nil, err
		}
		for _, s := range list.Items {
			all = append(all, described(s.Name))
		}
		return all, nil
	})
}

func (a *app) cacheKeys(cmd *cobra.Command, _ []string) []cobra.Completion {
	return a.known(func(ctx context.Context, client *api.Client) (all []cobra.Completion, err error) {
		list, err := client.Caches(ctx, projectOf(cmd), api.CacheFilter{}, api.Page{Limit: api.MaxPage})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			all = append(all, described(list.Items[i].Key, size(&list.Items[i].Bytes)))
		}
		return all, nil
	})
}

func (a *app) contextNames(*cobra.Command, []string) (all []cobra.Completion) {
	saved, err := a.contexts()
	if err != nil {
		return nil
	}
	for _, c := range saved.Contexts {
		all = append(all, described(c.Name, c.Server))
	}
	return all
}

// pipelineJobs are the jobs of the pipeline file that belongs to the working directory.
func (a *app) pipelineJobs(cmd *cobra.Command, args []string) (all []cobra.Completion) {
	if f := cmd.Flags().Lookup("script"); f != nil && f.Changed {
		return nil
	}
	p, err := a.readPipeline("")
	if err != nil {
		return nil
	}
	file, _ := pipeline.Parse(p.Text)
	if file == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, word := range args {
		seen[word] = true
	}
	for _, j := range file.Jobs {
		if key := string(j.Key); !seen[key] {
			about := ""
			if len(j.Needs) > 0 {
				needs := make([]string, 0, len(j.Needs))
				for _, n := range j.Needs {
					needs = append(needs, n.Job.Value)
				}
				about = "needs " + strings.Join(needs, ", ")
			}
			all = append(all, described(key, about))
		}
	}
	return all
}
