package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/program"
)

func (a *app) contextCommand() *cobra.Command {
	cmd := console.Group("context", "Save the servers that you use", a.contextAdd(), a.contextUse(), a.contextList(), a.contextRemove())
	cmd.Long = "Save the servers that you use, so that --server can be left out.\nThey stand in forgeyard/contexts.json below XDG_CONFIG_HOME (~/.config). Tokens stay in files of their own."
	return cmd
}

// maxContextName bounds the name of a context in bytes.
const maxContextName = 64

// contextName is compiled by who needs it: every start of the command would wait for it.
var contextName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) })

// maxToken bounds a token that is read from standard input.
const maxToken = 4 << 10

func (a *app) contextAdd() *cobra.Command {
	return &cobra.Command{
		Use: "add NAME --server URL [--token-file FILE]", Short: "Save a server, and use it from now on", Args: cobra.ExactArgs(1),
		Long: "Save a server under a name, and use it from now on. With --token-file - the token is read\nfrom standard input and kept in a file that only you can read.",
		Example: `  forgeyard context add work --server https://ci.example.org --token-file ~/work.token
  ssh ci sudo cat /var/lib/forgeyard/admin.token | forgeyard context add work --server https://ci.example.org --token-file -`,
		RunE: func(_ *cobra.Command, args []string) error { return a.addContext(args[0]) },
	}
}

func (a *app) addContext(name string) error {
	if len(name) > maxContextName || !contextName().MatchString(name) {
		return console.Usage("%q is no name for a context: use letters, digits, dots and dashes, at most %d", name, maxContextName)
	}
	if a.server == "" {
		return console.Usage("say which server: forgeyard context add %s --server URL", name)
	}
	if _, err := api.NewClient(a.server, api.Options{}); err != nil {
		return console.Usage("%v", err)
	}
	saved, err := a.contexts()
	if err != nil {
		return err
	}
	i := saved.index(name)
	if i < 0 && len(saved.Contexts) == MaxContexts {
		return fmt.Errorf("there are %d contexts already\nRemove one: forgeyard context rm NAME", MaxContexts)
	}
	c := savedContext{Name: name, Server: a.server}
	if c.TokenFile, err = a.keepToken(name); err != nil { // last: it may take the place of a token that is good
		return err
	}
	if i >= 0 {
		saved.Contexts[i] = c
	} else {
		saved.Contexts = append(saved.Contexts, c)
	}
	saved.Current = name
	if err := a.save(saved); err != nil {
		return err
	}
	a.note("using %s (%s)", name, c.Server)
	return nil
}

// keepToken returns the file of the token that was given: the one that was named, or one that it writes what comes on
// standard input to.
func (a *app) keepToken(name string) (string, error) {
	switch a.tokenFile {
	case "":
		return "", nil
	case "-":
	default:
		if _, err := api.ReadToken(a.tokenFile); err != nil {
			return "", program.Exit(program.CodeAuth, err)
		}
		return filepath.Abs(a.tokenFile)
	}
	text, err := io.ReadAll(io.LimitReader(a.env.Stdin, maxToken))
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if _, err := api.ParseToken(text, "standard input"); err != nil {
		return "", program.Exit(program.CodeAuth, err)
	}
	dir, err := a.configDir()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, name+".token")
	return file, keep("the token", file, text)
}

func (a *app) contextUse() *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Use a saved server from now on", Args: cobra.ExactArgs(1),
		Example: "  forgeyard context use work",
		RunE: func(_ *cobra.Command, args []string) error {
			saved, err := a.contexts()
			if err != nil {
				return err
			}
			if saved.index(args[0]) < 0 {
				return console.Usage("there is no context %q\nSee what there is: forgeyard context list", args[0])
			}
			saved.Current = args[0]
			return a.save(saved)
		},
	}
}

func (a *app) contextList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the saved servers", Args: cobra.NoArgs,
		Example: "  forgeyard context list",
		RunE: func(*cobra.Command, []string) error {
			saved, err := a.contexts()
			if err != nil {
				return err
			}
			return a.print().Show(saved, func(w io.Writer) {
				console.Row(w, "USED", "NAME", "SERVER", "TOKEN FILE")
				for _, c := range saved.Contexts {
					used := ""
					if c.Name == saved.Current {
						used = "*"
					}
					console.Row(w, used, c.Name, c.Server, c.TokenFile)
				}
			})
		},
	}
}

func (a *app) contextRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Forget a saved server", Args: cobra.ExactArgs(1),
		Example: "  forgeyard context rm work",
		RunE: func(_ *cobra.Command, args []string) error {
			saved, err := a.contexts()
			if err != nil {
				return err
			}
			i := saved.index(args[0])
			if i < 0 {
				return console.Usage("there is no context %q\nSee what there is: forgeyard context list", args[0])
			}
			saved.Contexts = append(saved.Contexts[:i], saved.Contexts[i+1:]...)
			if saved.Current == args[0] {
				saved.Current = ""
			}
			if err := a.save(saved); err != nil {
				return err
			}
			return a.dropToken(args[0])
		},
	}
}

// dropToken removes the token that a context kept, if it kept one.
func (a *app) dropToken(name string) error {
	dir, err := a.configDir()
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, name+".token")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the token: %w", err)
	}
	return nil
}
