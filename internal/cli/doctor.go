package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/doctor"
	"github.com/forgeyard/forgeyard/internal/program"
)

// doctorChild is the command by which the doctor starts this program as its child.
const doctorChild = "mounts"

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what this machine can do for jobs, and how to mend what it cannot", Args: cobra.NoArgs,
		Long: `Check what this machine can do for jobs: the walls around them, their bounds, the disk, the
clock, toolchains that they would not see, each with what mends it. Nothing is changed.

Ends with 0 if jobs can be confined here, and with 1 if not. For the way to a daemon see
"forgeyard transport doctor".`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
	cmd.AddCommand(&cobra.Command{
		Use: doctorChild, Short: "Try mounts in a mount namespace of its own", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error { return doctor.Child(a.env.Stdin, a.env.Stdout) },
	})
	return cmd
}

func (a *app) doctor(ctx context.Context) error {
	data, err := a.dataDir()
	if err != nil {
		return err
	}
	date, err := a.date()
	if err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	r := doctor.Examine(ctx, doctor.Options{
		Folder: data, Path: a.env.Getenv("PATH"), Home: a.home(), Toolchains: s.Toolchains, Date: date, Child: []string{"doctor", doctorChild},
	})
	if err := a.print().Show(r, r.Table); err != nil {
		return err
	}
	a.note("%s", r.Summary())
	if !r.Confined {
		return program.Exit(program.CodeFailed, nil)
	}
	return nil
}

// date asks the daemon that was named for the time of day; nil if none was.
func (a *app) date() (func(context.Context) (time.Time, error), error) {
	client, err := a.connect()
	if client == nil || err != nil {
		return nil, err
	}
	return client.Date, nil
}
