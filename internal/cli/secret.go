package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func (a *app) secretCommand() *cobra.Command {
	var project string
	cmd := console.Group("secret", "Set, list and remove the secrets that jobs may use",
		a.secretSet(&project), a.secretList(&project), a.secretRemove(&project))
	cmd.PersistentFlags().StringVar(&project, "project", string(forge.DefaultProject), "project whose secrets are meant")
	return cmd
}

func (a *app) secretSet(project *string) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Store a value as the newest version of a secret", Args: cobra.ExactArgs(1),
		Long: `Store a value as the newest version of a secret. Jobs that start from now on get it, those that are tried
again too; older versions are kept, and a job gets one of them by NAME@VERSION.

The value comes from standard input, which on a terminal is asked for without being shown, or from a
file; it never stands on the command line. The line break behind a value of one line is left out; a
value of several lines, and a file, is taken as it is. It cannot be read back.`,
		Example: "  forgeyard secret set codecov/token\n  printf %s \"$TOKEN\" | forgeyard secret set codecov/token\n  forgeyard secret set deploy/key --file ~/.ssh/deploy",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := secretName(args[0]); err != nil {
				return err
			}
			client, err := a.ask()
			if err != nil {
				return err
			}
			value, err := a.secretValue(cmd, args[0], file)
			if err != nil {
				return err
			}
			defer value.Zero()
			s, err := client.SetSecret(cmd.Context(), *project, args[0], value)
			if err != nil {
				return err
			}
			return a.print().Show(s, func(w io.Writer) { console.Row(w, fmt.Sprintf("secret %s is set, version %d", s.Name, s.Version)) })
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "file with the value")
	return cmd
}

// secretName refuses what is no name before a value is asked for.
func secretName(name string) error {
	if err := (forge.SecretRef{Name: name}).Validate(); err != nil {
		return console.Usage("%v\nA secret is named as in codecov/token", err)
	}
	return nil
}

// secretValue reads a value from where the user has it. The caller wipes it.
func (a *app) secretValue(cmd *cobra.Command, name, file string) (forge.Secret, error) {
	text, err := a.readSecret(cmd, name, file)
	defer func() { clear(text) }()
	if err != nil {
		return forge.Secret{}, err
	}
	value := text
	if file == "" {
		value = oneLine(text)
	}
	switch {
	case len(value) == 0:
		return forge.Secret{}, console.Usage("the value is empty\nTo remove a secret: forgeyard secret rm %s", name)
	case len(value) > forge.MaxSecret:
		return forge.Secret{}, console.Usage("the value has more than %d bytes, the most that a secret may have", forge.MaxSecret)
	}
	return forge.NewSecret(value), nil
}

func (a *app) readSecret(cmd *cobra.Command, name, file string) (text []byte, err error) {
	in := a.env.Stdin
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read the value: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		in = f
	} else if terminal, ok := in.(*os.File); ok && isTerminal(terminal) {
		return askHidden(cmd.Context(), terminal, a.env.Stderr, "Value of "+name+": ")
	}
	// The end of a line stands behind the longest value as well.
	text, err = io.ReadAll(io.LimitReader(in, forge.MaxSecret+3))
	if err != nil {
		err = fmt.Errorf("read the value: %w", err)
	}
	return text, err
}

// oneLine leaves out the line break behind a value of one line. A text of several lines, as a key is, needs its last one.
func oneLine(text []byte) []byte {
	line := bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	if bytes.ContainsRune(line, '\n') {
		return text
	}
	return line
}

func (a *app) secretList(project *string) *cobra.Command {
	var page api.Page
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List secrets by name, without their values", Args: cobra.NoArgs,
		Example: "  forgeyard secret list\n  forgeyard secret list --project web -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			list, err := client.Secrets(cmd.Context(), *project, page)
			if err != nil {
				return err
			}
			defer a.more(cmd, list.Next)
			return a.print().Show(list, func(w io.Writer) {
				console.Row(w, "SECRET", "VERSION", "KEPT", "SET", "BY")
				for _, s := range list.Items {
					newest := api.SecretVersion{}
					if len(s.Versions) > 0 {
						newest = s.Versions[0]
					}
					console.Row(w, s.Name, fmt.Sprint(s.Version), fmt.Sprint(len(s.Versions)), when(newest.CreatedAt), newest.By)
				}
			})
		},
	}
	pageFlags(cmd, &page)
	return cmd
}

func (a *app) secretRemove(project *string) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME[@VERSION]", Aliases: []string{"remove", "delete"}, Short: "Remove a secret, or one version of it", Args: cobra.ExactArgs(1),
		Example: "  forgeyard secret rm codecov/token\n  forgeyard secret rm codecov/token@1",
		Long:    "Remove a secret with all of its versions, or one version. A job that names it fails from then on; one that has it\nalready keeps it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := forge.ParseSecretRef(args[0])
			if err != nil {
				return console.Usage("%v\nSee what there is: forgeyard secret list", err)
			}
			client, err := a.ask()
			if err != nil {
				return err
			}
			if err := client.DeleteSecret(cmd.Context(), *project, ref); err != nil {
				if isCode(err, api.CodeNotFound) {
					return fmt.Errorf("project %s has no secret %v\nSee what there is: forgeyard secret list --project %s", *project, ref, *project)
				}
				return err
			}
			a.note("secret %v is removed", ref)
			return nil
		},
	}
}

// secretUses reads what a command says about secrets: VARIABLE=REFERENCE.
func secretUses(words []string) ([]api.SecretUse, error) {
	var uses []api.SecretUse
	for _, word := range words {
		name, ref, ok := strings.Cut(word, "=")
		if !ok || name == "" || ref == "" {
			// What was written may be the value itself, so it is not repeated.
			return nil, console.Usage("--secret: write VARIABLE=NAME, the name being one of: forgeyard secret list")
		}
		uses = append(uses, api.SecretUse{Env: name, Ref: ref})
	}
	return uses, nil
}
