package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// jobOptions are what the flags of run say about the job.
type jobOptions struct {
	script     bool
	name       string
	env        []string
	secrets    []string
	timeout    time.Duration
	cpu        string
	memory     string
	disk       string
	labels     []string
	pool       string
	os, arch   string
	network    string
	sandbox    string
	retryInfra uint8
	detach     bool
	raw        bool
	key        string // of the submission
	local      localFlags
	source     sourceFlags
}

// jobKey is the key of the one job of a run that was started with a command.
const jobKey = "run"

func (a *app) runCommand() *cobra.Command {
	var o jobOptions
	cmd := &cobra.Command{
		Use:   "run [JOB…] | run [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run the pipeline of this repository, or one command, and end as it ends",
		Long: `Run the jobs of the repository's .forgeyard.yml, or those that are named and whatever they need;
or run one command as a job. Print the output as it comes, and end with the run's exit code:
0 success, 1 failed, 2 cancelled, 3 infrastructure.

Where no server is named, daemon and agent run in this process, in a data folder of this
user. A second "forgeyard run" at the same time asks the first. There the job sees the programs
of this machine and what --read-only adds; it has no network unless it asks for --network host.

The job starts from the files of the git repository around the working directory, those that
git does not ignore, and GIT_SHA, GIT_BRANCH and so on tell it the commit. Elsewhere it starts
without files, unless --source names a folder. What it changes of them is its own.
--output-files keeps what it makes.

Ctrl-C cancels the run and waits for its end. A second Ctrl-C leaves it alone.`,
		Example: `  forgeyard run                                            all jobs of .forgeyard.yml
  forgeyard run test lint                                  these, and what they need
  forgeyard run -- go test ./...
  forgeyard run -c 'make && make test | tee out'
  forgeyard run --label linux --cpu 4 --memory 8GiB --timeout 30m -- make
  forgeyard run --env CI=1 --env HOME_TOWN -- ./deploy     HOME_TOWN comes from this environment
  forgeyard run --detach -- ./nightly                      print the run's id and leave`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() > 0 && !o.script {
				return console.Usage("%s stands before --, and a command behind it: jobs of the pipeline and a command are two runs", console.Plain(args[0]))
			}
			if !o.script && cmd.ArgsLenAtDash() < 0 {
				return a.runPipeline(cmd, args, o)
			}
			request, err := a.request(o, args, cmd)
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), request, o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.script, "script", "c", false, "the argument is a script for sh -e")
	f.StringVar(&o.name, "name", "", "title of the run, for people")
	f.StringArrayVarP(&o.env, "env", "e", nil, "variable of the job as NAME=VALUE, or NAME to pass on this command's own; repeatable")
	f.StringArrayVar(&o.secrets, "secret", nil, "variable of the job that gets a secret, as VARIABLE=NAME or VARIABLE=NAME@VERSION; repeatable")
	f.DurationVar(&o.timeout, "timeout", 0, "longest run time of the job, as in 30m")
	f.StringVar(&o.cpu, "cpu", "", "cores, as in 2 or 0.5")
	f.StringVar(&o.memory, "memory", "", "memory, as in 4GiB")
	f.StringVar(&o.disk, "disk", "", "disk, as in 20GiB")
	f.StringArrayVar(&o.labels, "label", nil, "label that the runner must have; repeatable")
	f.StringVar(&o.pool, "pool", "", "pool of the runner")
	f.StringVar(&o.os, "os", "", "operating system of the runner, as in linux")
	f.StringVar(&o.arch, "arch", "", "processor of the runner, as in amd64")
	f.StringVar(&o.network, "network", "", "network of the job: none or host")
	f.StringVar(&o.sandbox, "sandbox", "", "what confines the job: native, which is the default, oci, or process (nothing; the runner's owner must allow it)")
	f.Uint8Var(&o.retryInfra, "retry-infra", 0, "how often to try again when the machine is at fault")
	f.BoolVarP(&o.detach, "detach", "d", false, "print the run's id and leave; needs a server")
	f.BoolVar(&o.raw, "raw", false, "print the output byte for byte, also on a terminal")
	o.local.add(f)
	o.source.add(f)
	return cmd
}

// request makes the run that the flags and arguments describe.
func (a *app) request(o jobOptions, args []string, cmd *cobra.Command) (*api.RunRequest, error) {
	step := api.Step{Argv: args}
	switch {
	case len(args) == 0:
		return nil, console.Usage("no command to run\nWrite it behind --, as in: forgeyard run -- make test; without --, it is the pipeline of this repository")
	case o.script && len(args) > 1:
		return nil, console.Usage("-c takes one script; quote it, as in: forgeyard run -c 'make && make test'")
	case o.script:
		step = api.Step{Script: args[0]}
	}
	if err := o.source.check(); err != nil {
		return nil, err
	}
	outputs, err := o.source.outputsOf()
	if err != nil {
		return nil, err
	}
	spec := api.JobSpec{Steps: []api.Step{step}, Network: o.network, Outputs: outputs}
	if o.sandbox != "" {
		spec.Sandbox = &api.Sandbox{Kind: o.sandbox}
	}
	env, err := a.environment(o.env)
	if err != nil {
		return nil, err
	}
	spec.Env = env
	if spec.Secrets, err = secretUses(o.secrets); err != nil {
		return nil, err
	}
	if spec.Resources, err = o.resources(); err != nil {
		return nil, err
	}
	if o.timeout != 0 {
		limit := api.Duration(o.timeout)
		spec.Timeouts = &api.Timeouts{Run: &limit}
	}
	if cmd.Flags().Changed("retry-infra") {
		spec.Retry = &api.Retry{Infra: &o.retryInfra}
	}
	if len(o.labels) > 0 || o.pool != "" || o.os != "" || o.arch != "" {
		spec.Constraints = &api.Constraints{OS: o.os, Arch: o.arch, Labels: o.labels, Pool: o.pool}
	}
	// What is wrong with it is told before anything is started for it.
	if _, err := spec.Forge(api.SpecContext{Project: forge.DefaultProject, Key: jobKey, Trust: forge.TrustUntrusted}); err != nil {
		return nil, console.Usage("this cannot be a job: %v", err)
	}
	return &api.RunRequest{Name: o.name, Jobs: []api.JobRequest{{Key: jobKey, Spec: spec}}}, nil
}

func (a *app) environment(words []string) (map[string]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	env := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			value = a.env.Getenv(name)
		}
		if name == "" {
			return nil, console.Usage("--env %q: write NAME=VALUE, or NAME alone", word)
		}
		env[name] = value
	}
	return env, nil
}

func (o jobOptions) resources() (*api.Resources, error) {
	var r api.Resources
	if o.cpu != "" {
		r.CPU = new(api.Cores)
		if err := r.CPU.UnmarshalText([]byte(o.cpu)); err != nil {
			return nil, console.Usage("--cpu: %v", err)
		}
	}
	for flag, size := range map[string]struct {
		text string
		into **api.Size
	}{"--memory": {o.memory, &r.Memory}, "--disk": {o.disk, &r.Disk}} {
		if size.text == "" {
			continue
		}
		*size.into = new(api.Size)
		if err := (*size.into).UnmarshalText([]byte(size.text)); err != nil {
			return nil, console.Usage("%s: %v", flag, err)
		}
	}
	if r == (api.Resources{}) {
		return nil, nil
	}
	return &r, nil
}

// run submits to the daemon that was named, to the one that owns this user's folder, or to one in this process.
func (a *app) run(ctx context.Context, request *api.RunRequest, o jobOptions) error {
	o.key = rand.Text()
	client, err := a.connect()
	if err != nil {
		return err
	}
	if client != nil {
		if err := o.local.elsewhere(); err != nil {
			return err
		}
		return a.submit(ctx, context.WithoutCancel(ctx), client, request, o)
	}
	data, err := a.dataDir()
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := a.runHere(ctx, data, request, o)
		if left := (*ownerLeft)(nil); try == submitTries || !errors.As(err, &left) {
			return err
		}
	}
}

// ownerLeft is the error of a submission to another process of this machine that was about to stop, and has not said that it took
// it. It may be repeated, with the same key.
type ownerLeft struct{ error }

func (e *ownerLeft) Unwrap() error { return e.error }

// notTaken is the error of a submission that was not accepted.
func (a *app) notTaken(err error) error {
	if a.here && !a.own && isCode(err, api.CodeUnreachable, api.CodeUnavailable, api.CodeUnknownOutcome) {
		return &ownerLeft{err}
	}
	return err
}

// runHere submits to the process that owns this user's folder, or becomes that.
func (a *app) runHere(ctx context.Context, data string, request *api.RunRequest, o jobOptions) error {
	if endpoint := a.env.Local.Find(data); endpoint != "" {
		return a.submitTo(ctx, context.WithoutCancel(ctx), endpoint, request, o, true)
	}
	if o.detach {
		return console.Usage("--detach needs a daemon that goes on: name one with --server, or start one here with forgeyard up")
	}
	local := LocalOptions{Data: data, Log: telemetry.NewLogger(a.remarks(), slog.LevelError, telemetry.Text), Orphan: a.orphan}
	if err := o.local.into(&local); err != nil {
		return err
	}
	if err := a.allow(&local); err != nil {
		return err
	}
	local.AllowUnsandboxed = local.AllowUnsandboxed || o.sandbox == forge.SandboxProcess.String()
	local.Unconfined = func(why error) {
		if o.sandbox == "" {
			a.note("not confined: %v", why)
			unconfine(request)
		}
	}
	started := a.starting()
	defer started()
	return a.ownFailed(data, offerUnsandboxed(a.env.Local.Run(ctx, a.program.Force(), local, func(serving context.Context, endpoint string) error {
		started()
		a.own = serving.Done() != nil // what never ends is another process
		return a.submitTo(ctx, serving, endpoint, request, o, false)
	})))
}

// orphan tells of a run that was left by a process that was killed.
func (a *app) orphan(run string) {
	a.note("run %s was under way when its process was killed: it ends now", run)
}

// submitTo submits to the process that serves this user's folder, which is another one where others says so.
func (a *app) submitTo(ctx, serving context.Context, endpoint string, request *api.RunRequest, o jobOptions, others bool) error {
	client, err := a.dial(endpoint)
	if err != nil {
		return err
	}
	a.here = true
	if others {
		if err := a.fit(ctx, client, request, &o); err != nil {
			return a.notTaken(err)
		}
	}
	return a.submit(ctx, serving, client, request, o)
}

// submit starts a run and follows it. The end of ctx is the user's interrupt, that of serving the daemon's.
func (a *app) submit(ctx, serving context.Context, client *api.Client, request *api.RunRequest, o jobOptions) error {
	if err := a.bring(ctx, client, request, &o.source); err != nil {
		return a.notTaken(err)
	}
	run, err := submitOnce(ctx, client, request, o.key)
	if err != nil {
		return a.notTaken(err)
	}
	a.remember(run.ID)
	if o.detach {
		if a.output == "json" {
			return a.print().Value(run)
		}
		fmt.Fprintln(a.env.Stdout, run.ID)
		return nil
	}
	a.note("run %s", run.ID)
	f := a.follower(client, run.ID, o.raw)
	err = f.toTheEnd(ctx, serving)
	if len(o.source.outputs) > 0 && serving.Err() == nil {
		err = errors.Join(err, a.kept(context.WithoutCancel(ctx), client, run.ID, o.source.into))
	}
	return err
}

// submitTries bounds how often a submission whose fate is unknown is repeated.
const submitTries = 3

// submitOnce starts a run once, also where an answer is lost: the key makes repetitions harmless.
func submitOnce(ctx context.Context, client *api.Client, request *api.RunRequest, key string) (*api.Run, error) {
	for try := 1; ; try++ {
		run, err := client.Submit(ctx, request, key)
		if err == nil || try == submitTries || !isCode(err, api.CodeUnknownOutcome, api.CodeUnavailable) {
			return run, err
		}
	}
}

// exit is the end of a command whose result is a run's.
func (a *app) exit(run *api.Run) error {
	code := program.CodePending
	if run.Ended && run.ExitCode != nil {
		code = *run.ExitCode
	}
	if code == program.CodeOK {
		return nil
	}
	return program.Exit(code, nil)
}
