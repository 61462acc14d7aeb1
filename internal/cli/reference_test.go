package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forgeyard/forgeyard/internal/api"
)

var update = flag.Bool("update", false, "write the reference of commands anew")

// each calls visit for every command that people see, in the order of the tree.
func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			each(sub, visit)
		}
	}
}

// Whoever asks a command for help is told what it does, how it is typed, and what each flag means.
func TestEveryCommandHasHelp(t *testing.T) {
	each((&app{}).root(), func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		switch {
		case cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || cmd.Short[:1] != strings.ToUpper(cmd.Short[:1]):
			t.Errorf("%s: its line %q is none that begins with a capital and ends without a stop", path, cmd.Short)
		case !cmd.HasSubCommands() && cmd.Example == "":
			t.Errorf("%s has no example", path)
		case cmd.Args == nil && cmd.Name() != "logs" && cmd.Name() != "download" && !strings.Contains(cmd.Use, "…"):
			t.Errorf("%s takes any arguments, and does not say so", path)
		}
		for _, line := range strings.Split(cmd.Long+"\n"+cmd.Example, "\n") {
			if len([]rune(line)) > 140 {
				t.Errorf("%s: a line of its help has %d characters: %s", path, len([]rune(line)), line)
			}
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if strings.TrimSpace(f.Usage) == "" {
				t.Errorf("%s --%s does not say what it is for", path, f.Name)
			}
		})
		cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) {
			if strings.TrimSpace(f.Usage) == "" {
				t.Errorf("%s --%s does not say what it is for", path, f.Name)
			}
		})
	})
}

// reference describes all commands.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(`# All commands

What "forgeyard COMMAND --help" prints, made from the commands themselves: ` + "`go test ./internal/cli -run Reference -update`" + ` writes
this page anew. [cli.md](cli.md) is the one to begin with.

`)
	each(root, func(cmd *cobra.Command) {
		if cmd != root {
			fmt.Fprintf(&b, "%s- [%s](#%s): %s\n", strings.Repeat("  ", strings.Count(cmd.CommandPath(), " ")-1), cmd.CommandPath(), anchor(cmd), cmd.Short)
		}
	})
	each(root, func(cmd *cobra.Command) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", cmd.CommandPath(), cmp.Or(cmd.Long, cmd.Short+"."))
		if cmd.Runnable() && !cmd.HasSubCommands() {
			fmt.Fprintf(&b, "\n    %s\n", cmd.UseLine())
		}
		if len(cmd.Aliases) > 0 {
			fmt.Fprintf(&b, "\nAlso: %s.\n", strings.Join(cmd.Aliases, ", "))
		}
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", dedent(cmd.Example))
		}
		flags(&b, cmd)
	})
	return b.String()
}

func anchor(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func dedent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func flags(b *strings.Builder, cmd *cobra.Command) {
	var all []*pflag.Flag
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			all = append(all, f)
		}
	})
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b *pflag.Flag) int { return strings.Compare(a.Name, b.Name) })
	b.WriteString("\n| Flag | Meaning |\n| --- | --- |\n")
	for _, f := range all {
		name := "`--" + f.Name
		if kind, _ := pflag.UnquoteUsage(f); kind != "" {
			name += " " + strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(kind, "Array"), "Slice"))
		}
		name += "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		_, usage := pflag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			usage += " (default `" + f.DefValue + "`)"
		}
		fmt.Fprintf(b, "| %s | %s |\n", name, strings.ReplaceAll(usage, "|", "\\|"))
	}
}

func TestTheReferenceIsThatOfTheCommands(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "cli-reference.md")
	want := reference((&app{}).root())
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != want {
		t.Errorf("docs/cli-reference.md is not what the commands say (%v); write it anew: go test ./internal/cli -run Reference -update", err)
	}
}

// inJSON are the commands whose whole result is one JSON value with -o json, and arguments to try each with.
var inJSON = map[string]string{
	"artifact list": "01JB4Z", "cache list": "", "cache rm": "--all --yes", "cas explain": "b3:x", "cas stat": "", "context list": "",
	"job show": "01JB4Z", "job why": "01JB4Z", "runner list": "", "runner show": "one", "runner why": "one", "runner drain": "one", "runner resume": "one",
	"runner disable": "one", "runner enable": "one", "runner revoke": "one", "runs cancel": "01JB4Z", "runs list": "", "runs show": "01JB4Z", "secret list": "",
	"token list": "", "token whoami": "", "transport protocols": "", "transport sessions": "", "transport status": "", "version": "",
}

// elsewhere are commands that print events, or nothing, or whose JSON other tests try.
var elsewhere = []string{
	"artifact download", "artifact get", "cas verify", "completion", "context add", "context rm", "context use", "doctor", "init", "lint", "logs", "plan",
	"run", "runner create", "runner delete", "runner enroll-token", "runs retry", "runs watch", "secret rm", "secret set", "token create", "token rm",
	"toolchain allow", "toolchain list", "toolchain rm", "transport doctor", "up",
}

// Every command is on one of the two lists, so that a new one is thought of.
func TestResultsAreJSONWhereThatIsAskedFor(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", api.TypeJSON)
		fmt.Fprint(w, `{"items": [], "id": "01JB4Z", "version": "1"}`)
	}))
	defer server.Close()
	home := t.TempDir()
	each((&app{}).root(), func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "forgeyard ")
		args, ours := inJSON[path]
		if cmd.HasSubCommands() || slices.Contains(elsewhere, path) {
			return
		}
		if !ours {
			t.Errorf("%s is not known here: say whether it prints JSON", path)
			return
		}
		var out, remarks bytes.Buffer
		env := Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &remarks, Version: "1", Getenv: func(name string) string {
			return map[string]string{"FORGEYARD_SERVER": server.URL, "HOME": home}[name]
		}}
		words := slices.Concat(strings.Fields(path), strings.Fields(args), []string{"-o", "json"})
		if err := Main(t.Context(), nil, env, words); err != nil || !json.Valid(out.Bytes()) || remarks.Len() > 0 {
			t.Errorf("%q: %v\n%s\n%s", words, err, out.String(), remarks.String())
		}
	})
}
