package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
)

func (a *app) casCommand() *cobra.Command {
	return console.Group("cas", "Look at the daemon's store of objects", a.casStat(), a.casVerify(), a.casExplain())
}

func (a *app) casStat() *cobra.Command {
	return &cobra.Command{
		Use: "stat", Short: "Show what the store has, and how much room is left", Args: cobra.NoArgs,
		Example: "  forgeyard cas stat\n  forgeyard cas stat -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			s, err := client.ObjectStat(cmd.Context())
			if err != nil {
				return err
			}
			return a.print().Show(s, func(w io.Writer) {
				console.Field(w, "Objects", fmt.Sprintf("%d, %s", s.Objects, about(s.Bytes)))
				console.Field(w, "Held by projects", fmt.Sprint(s.Held))
				console.Field(w, "Arriving", forge.Bytes(s.Arriving).String())
				console.Field(w, "Set aside as damaged", fmt.Sprint(s.Quarantined))
				console.Field(w, "Free", fmt.Sprintf("%s; below %s nothing is taken", about(s.Free), about(s.KeptFree)))
				switch {
				case s.Full:
					console.Field(w, "Room", "full: objects are refused until there is room again")
				case s.Low:
					console.Field(w, "Room", "low: make room before it is full")
				}
			})
		},
	}
}

// about writes a size as people say it.
func about(n uint64) string {
	b := forge.Bytes(n)
	for _, unit := range []forge.Bytes{forge.TiB, forge.GiB, forge.MiB, forge.KiB} {
		if b >= 10*unit {
			return (b / unit * unit).String()
		}
	}
	return b.String()
}

func (a *app) casVerify() *cobra.Command {
	var shallow bool
	cmd := &cobra.Command{
		Use: "verify", Short: "Read every object again; what is damaged is set aside", Args: cobra.NoArgs,
		Example: "  forgeyard cas verify",
		Long: `Read every object of the store again. What is damaged is set aside: it is missing from then on, and
whoever has it can send it again. The exit code is 1 where something was wrong.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			for event, err := range client.VerifyObjects(cmd.Context(), !shallow) {
				if err != nil {
					return err
				}
				done, err := a.verified(event)
				if done || err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&shallow, "shallow", false, "look at names and sizes only")
	return cmd
}

// verified prints one event of a verification. The last one has its result.
func (a *app) verified(event api.Event) (done bool, err error) {
	switch event.Name {
	case api.EventFinding:
		var f api.ObjectFinding
		if err := event.Decode(&f); err != nil {
			return false, err
		}
		if a.output == "json" {
			return false, a.print().Event(f)
		}
		_, err := fmt.Fprintf(a.env.Stdout, "%s: %s\n", console.Plain(f.Path), console.Plain(f.What))
		return false, err
	case api.EventEnd:
		var r api.ObjectReport
		if err := event.Decode(&r); err != nil {
			return true, err
		}
		if a.output == "json" {
			err = a.print().Event(r)
		} else {
			_, err = fmt.Fprintf(a.env.Stdout, "%d objects, %v read, %d wrong\n", r.Objects, forge.Bytes(r.Bytes), r.Findings)
		}
		switch {
		case err != nil:
		case r.Problem != "":
			err = program.Exit(program.CodeInfrastructure, fmt.Errorf("the verification ended early: %s", r.Problem))
		case r.Findings > 0:
			err = program.Exit(program.CodeFailed, nil)
		}
		return true, err
	}
	return false, nil
}

func (a *app) casExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain OBJECT", Short: "Show who holds an object, and what it is a part of", Args: cobra.ExactArgs(1),
		Example: "  forgeyard cas explain b3:HEX:SIZE",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			e, err := client.ExplainObject(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print().Show(e, func(w io.Writer) {
				console.Field(w, "Object", e.Ref)
				console.Field(w, "On disk", map[bool]string{true: "yes", false: "no"}[e.OnDisk])
				for _, h := range e.Holders {
					console.Field(w, "Held by", fmt.Sprintf("project %s, since %s, last used %s", h.Project, when(h.AddedAt), when(h.TouchedAt)))
				}
				for _, u := range e.Uses {
					console.Field(w, "Kept by", fmt.Sprintf("run %s, job %s, attempt %s, output %d", u.Run, u.Job, u.Attempt, u.Output))
				}
			})
		},
	}
}
