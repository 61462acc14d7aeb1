package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/config"
	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/doctor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func (a *app) toolchainCommand() *cobra.Command {
	cmd := console.Group("toolchain", "Allow the jobs of this machine to see toolchains below your home folder",
		a.toolchainAllow(), a.toolchainList(), a.toolchainRemove())
	cmd.Long = `Allow the jobs that "forgeyard run" and "forgeyard up" run on this machine to see toolchains below
your home folder, such as those of nvm, pyenv or rustup. Jobs see nothing else of it. They can read a
toolchain and not change it, and its programs come first in their PATH.

The folders stand in forgeyard/local.yaml below XDG_CONFIG_HOME (~/.config). "forgeyard doctor" names
those of your PATH that jobs do not see. On other machines it is a setting of the agent:
sandbox.toolchains.`
	return cmd
}

func (a *app) toolchainAllow() *cobra.Command {
	return &cobra.Command{
		Use: "allow FOLDER…", Short: "Let jobs see toolchains", Args: cobra.MinimumNArgs(1),
		Example: "  forgeyard toolchain allow ~/.nvm/versions/node/v22.11.0\n  forgeyard toolchain allow ~/.pyenv",
		RunE: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				if err := a.allowToolchain(arg); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) allowToolchain(arg string) error {
	folder, err := filepath.Abs(arg)
	if err != nil {
		return err
	}
	switch info, err := os.Stat(folder); {
	case err != nil:
		return console.Usage("%s is not there: %v", console.Plain(folder), cause(err))
	case !info.IsDir():
		return console.Usage("%s is no folder\nName the one that the toolchain is in, as in %s", console.Plain(folder), console.Plain(filepath.Dir(filepath.Dir(folder))))
	}
	for _, own := range a.private() {
		if under(own.folder, folder) {
			return console.Usage("with %s jobs would see %s\nName the folder of the toolchain alone", console.Plain(folder), own.what)
		}
	}
	if _, err := a.settings(); err != nil { // what is wrong with the file is told before it is changed
		return err
	}
	file, done, err := a.writeSettings(func(text []byte) ([]byte, bool, error) { return config.WithToolchain(text, folder, true) })
	switch {
	case err != nil:
		return err
	case !done:
		a.note("jobs see %s already", console.Plain(folder))
	default:
		a.note("jobs see %s from the next run on (%s)", console.Plain(folder), console.Plain(file))
	}
	return nil
}

// A privateFolder is one that no toolchain may have in it, and what is in it.
type privateFolder struct{ folder, what string }

func (a *app) private() (all []privateFolder) {
	if home := a.home(); home != "" {
		all = append(all, privateFolder{home, "all of your home folder"}, privateFolder{filepath.Join(home, ".ssh"), "your keys for SSH"})
	}
	if dir, err := a.configDir(); err == nil {
		all = append(all, privateFolder{dir, "your tokens for daemons"})
	}
	if dir, err := a.dataDir(); err == nil {
		all = append(all, privateFolder{dir, "what other jobs have kept"})
	}
	return all
}

func (a *app) toolchainList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the toolchains that jobs see", Args: cobra.NoArgs,
		Example: "  forgeyard toolchain list",
		RunE: func(*cobra.Command, []string) error {
			s, err := a.settings()
			if err != nil {
				return err
			}
			folders := append([]string{}, s.Toolchains...)
			return a.print().Show(folders, func(w io.Writer) {
				for _, folder := range folders {
					console.Row(w, folder)
				}
			})
		},
	}
}

func (a *app) toolchainRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm FOLDER", Short: "Hide a toolchain from jobs again", Args: cobra.ExactArgs(1),
		Example: "  forgeyard toolchain rm ~/go",
		RunE: func(_ *cobra.Command, args []string) error {
			folder, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			names := []string{args[0], folder} // as a person may have written it in the file, too
			if relative, err := filepath.Rel(a.home(), folder); err == nil && filepath.IsLocal(relative) {
				names = append(names, "~/"+filepath.ToSlash(relative))
			}
			for _, name := range names {
				_, done, err := a.writeSettings(func(text []byte) ([]byte, bool, error) { return config.WithToolchain(text, name, false) })
				if done || err != nil {
					return err
				}
			}
			return console.Usage("%s is not allowed\nSee what is: forgeyard toolchain list", console.Plain(folder))
		},
	}
}

// hidden returns the folder of a program that the user has below home and jobs do not see, and what to allow; "" where there
// is none, or one that jobs see as well.
func hidden(program, path, home string, allowed []string) (at, allow string) {
	if home == "" || program != filepath.Base(program) {
		return "", ""
	}
	for _, dir := range filepath.SplitList(path) {
		info, err := os.Stat(filepath.Join(dir, program))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if !under(dir, home) {
			continue // of the system's folders, which jobs see
		}
		if slices.ContainsFunc(allowed, func(a string) bool { return under(dir, a) }) {
			return "", ""
		}
		return filepath.Join(dir, program), doctor.Toolchain(dir, home)
	}
	return "", ""
}

func under(path, folder string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(relative)
}

// sought reads the name of a program that was not found from a line that a shell or this agent has written.
func sought(line string) string {
	for _, end := range []string{": command not found", ": not found", ": not found in PATH", ": No such file or directory"} {
		before, ok := strings.CutSuffix(strings.TrimSpace(line), end)
		if !ok {
			continue
		}
		word := before[strings.LastIndexAny(before, " \t:")+1:]
		word = strings.Trim(word, `'"`+"‘’`")
		if err := (forge.EnvVar{Name: "X", Value: word}).Validate(); err == nil && word != "" && !strings.ContainsRune(word, filepath.Separator) {
			return word
		}
	}
	return ""
}

// tellHidden says which programs the failed jobs of a run have looked for in vain that this user has below home (D12). It is
// only a remark: where a log cannot be read, nothing is said.
func (f *follower) tellHidden(ctx context.Context, run *api.Run) {
	home := f.app.home()
	if !f.app.here || home == "" || f.app.output == "json" {
		return
	}
	s, err := f.app.settings()
	if err != nil {
		return
	}
	told := map[string]bool{}
	for _, j := range run.Jobs {
		if j.State != "Failed" {
			continue
		}
		for _, program := range f.sought(ctx, j.ID) {
			at, allow := hidden(program, f.app.env.Getenv("PATH"), home, s.Toolchains)
			if at != "" && !told[program] && len(told) < maxHints {
				told[program] = true
				f.app.note("%s", hint(program, at, allow, home))
			}
		}
	}
}

// Bounds of hints.
const (
	lastLines = 40 // of a log that are looked at
	maxHints  = 4  // programs that are named
)

// sought are the programs that the end of a failed job's log says were not found.
func (f *follower) sought(ctx context.Context, job string) (programs []string) {
	j, err := f.client.Job(ctx, job)
	if err != nil || len(j.AllAttempts) == 0 {
		return nil
	}
	var text strings.Builder
	for e, err := range f.client.Log(ctx, j.AllAttempts[len(j.AllAttempts)-1].ID, api.LogOptions{Tail: lastLines}) {
		if err != nil {
			return nil
		}
		var output api.LogOutput
		var note api.LogNote
		switch {
		case e.Name == api.EventOutput && e.Decode(&output) == nil:
			text.Write(output.Data())
		case e.Name == api.EventNotice && e.Decode(&note) == nil:
			text.WriteString(note.Text + "\n")
		}
	}
	for line := range strings.Lines(text.String()) {
		if program := sought(line); program != "" {
			programs = append(programs, program)
		}
	}
	return programs
}

// shorter writes a path below home with a tilde.
func shorter(path, home string) string {
	if relative, err := filepath.Rel(home, path); home != "" && err == nil && filepath.IsLocal(relative) && relative != "." {
		return "~/" + filepath.ToSlash(relative)
	}
	return path
}

// hint says what to do about a program that jobs do not see.
func hint(program, at, allow, home string) string {
	return fmt.Sprintf("%s is in %s, which jobs do not see; allow them to: forgeyard toolchain allow %s",
		console.Plain(program), console.Plain(shorter(filepath.Dir(at), home)), console.Plain(shorter(allow, home)))
}
