package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
)

// NoSandbox says that jobs cannot be confined on this machine.
type NoSandbox struct{ Err error }

func (e *NoSandbox) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NoSandbox) Unwrap() error { return e.Err }

// localFlags are about the daemon and the agent of this process.
type localFlags struct {
	unsandboxed bool
	readOnly    []string
}

func (o *localFlags) add(f *pflag.FlagSet) {
	f.BoolVar(&o.unsandboxed, "allow-unsandboxed", false, "where this machine cannot confine jobs, run them as plain processes that can read and change what you can")
	f.StringArrayVar(&o.readOnly, "read-only", nil, "file or folder of this machine that jobs may read, such as a toolchain below your home, or SOURCE:TARGET to show it elsewhere; repeatable")
}

// into puts the flags into options.
func (o *localFlags) into(local *LocalOptions) error {
	for _, word := range o.readOnly {
		source, target, placed := strings.Cut(word, ":")
		path, err := filepath.Abs(source)
		if err != nil {
			return fmt.Errorf("--read-only: %w", err)
		}
		if placed {
			path += ":" + target
		}
		local.ReadOnly = append(local.ReadOnly, path)
	}
	local.AllowUnsandboxed = o.unsandboxed
	return nil
}

// elsewhere refuses the flags for daemons that do not run in this process.
func (o *localFlags) elsewhere() error {
	switch {
	case o.unsandboxed:
		return console.Usage("--allow-unsandboxed is about this machine alone; for a job that nothing confines on another, write --sandbox process")
	case len(o.readOnly) > 0:
		return console.Usage("--read-only is about this machine alone; on others it is a setting of the agent: sandbox.read_only")
	}
	return nil
}

// offerUnsandboxed says what a user can do about a machine that cannot confine jobs.
func offerUnsandboxed(err error) error {
	if none := (*NoSandbox)(nil); errors.As(err, &none) {
		return program.Exit(program.CodeInfrastructure, fmt.Errorf("jobs cannot be confined on this machine: %w. "+
			"With --allow-unsandboxed they run all the same, as plain processes of your user that nothing keeps from reading and "+
			"changing whatever you can; say that only for code that you trust. \"forgeyard doctor\" tells what this machine lacks", none.Err))
	}
	return err
}

// localRunner is the name of the runner in a process that serves a data folder.
const localRunner = "local"

// unconfine makes a request one for plain processes.
func unconfine(request *api.RunRequest) {
	for i := range request.Jobs {
		request.Jobs[i].Spec.Sandbox = &api.Sandbox{Kind: forge.SandboxProcess.String()}
	}
	if request.Pipeline != nil {
		request.Pipeline.Sandbox = forge.SandboxProcess.String()
	}
}

// fit makes a request one that the process that serves this user's folder can carry out, if its user allows that.
func (a *app) fit(ctx context.Context, client *api.Client, request *api.RunRequest, o *jobOptions) error {
	if o.sandbox != "" {
		return nil
	}
	r, err := client.Runner(ctx, localRunner)
	if err != nil || r.Capabilities == nil || len(r.Capabilities.Sandboxes) == 0 {
		return nil // what is wrong with it is told better by the run
	}
	native := forge.SandboxNative.String()
	if slices.ContainsFunc(r.Capabilities.Sandboxes, func(s api.Sandbox) bool { return s.Kind == native }) {
		return nil
	}
	if !o.local.unsandboxed {
		return offerUnsandboxed(&NoSandbox{Err: errors.New("the process that serves your data folder found that it has no sandbox")})
	}
	unconfine(request)
	return nil
}
