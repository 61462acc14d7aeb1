package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func (a *app) cacheCommand() *cobra.Command {
	var project string
	cmd := console.Group("cache", "List and forget the caches of jobs", a.cacheList(&project), a.cacheRemove(&project))
	cmd.PersistentFlags().StringVar(&project, "project", string(forge.DefaultProject), "project whose caches they are")
	return cmd
}

func (a *app) cacheList(project *string) *cobra.Command {
	var page api.Page
	cmd := &cobra.Command{
		Use: "list [PREFIX]", Aliases: []string{"ls"}, Short: "List caches by key", Args: cobra.MaximumNArgs(1),
		Long: `List the caches of a project, or those whose keys begin so. Runs of one class of trust do not find
those of another, so the same key may stand there more than once.`,
		Example: "  forgeyard cache list\n  forgeyard cache list go-\n  forgeyard cache list -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			var f api.CacheFilter
			if len(args) > 0 {
				f.Prefix = args[0]
			}
			list, err := client.Caches(cmd.Context(), *project, f, page)
			if err != nil {
				return err
			}
			defer a.more(cmd, list.Next)
			return a.print().Show(list, func(w io.Writer) {
				console.Row(w, "CACHE", "TRUST", "FILES", "SIZE", "MADE", "LAST FOUND")
				for i := range list.Items {
					c := &list.Items[i]
					console.Row(w, c.Key, c.Trust, count(&c.Files), size(&c.Bytes), when(c.CreatedAt), when(c.UsedAt))
				}
			})
		},
	}
	pageFlags(cmd, &page)
	return cmd
}

func (a *app) cacheRemove(project *string) *cobra.Command {
	var prefix string
	var all, yes bool
	cmd := &cobra.Command{
		Use: "rm KEY… | --prefix TEXT | --all", Aliases: []string{"remove", "delete"}, Short: "Forget caches, so that jobs fill them anew",
		Long: `Forget caches by their keys, or those whose keys begin so, or all of the project. The next job that
asks for one starts without it and fills it anew. A job that runs keeps what it has.

What may be several needs a word: on a terminal it is asked for, elsewhere --yes has to say it.
The daemon's store keeps the objects, so that this frees no disk.`,
		Example: "  forgeyard cache rm go-1.26-4f2a\n  forgeyard cache rm --prefix npm- --yes\n  forgeyard cache rm --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			if chosen := len(args) > 0; chosen == (all || prefix != "") || all && prefix != "" {
				return console.Usage("say which caches: their keys, --prefix or --all, one of them\nSee what there is: forgeyard cache list")
			}
			client, err := a.ask()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.removeCaches(cmd, client, *project, api.CacheFilter{Prefix: prefix, All: all}, yes)
			}
			sum := &api.CachesRemoved{}
			for _, key := range args {
				gone, err := client.RemoveCaches(cmd.Context(), *project, api.CacheFilter{Key: key})
				if isCode(err, api.CodeNotFound) {
					return fmt.Errorf("project %s has no cache %q\nSee what there is: forgeyard cache list --project %s", *project, key, *project)
				}
				if err != nil {
					return err
				}
				sum.Removed, sum.Bytes = sum.Removed+gone.Removed, sum.Bytes+gone.Bytes
			}
			return a.cachesRemoved(sum)
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "those whose keys begin so")
	cmd.Flags().BoolVar(&all, "all", false, "all of the project")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// removeCaches forgets what may be many, once somebody has said so.
func (a *app) removeCaches(cmd *cobra.Command, client *api.Client, project string, f api.CacheFilter, yes bool) error {
	if !yes {
		what := fmt.Sprintf("every cache of project %s", project)
		if f.Prefix != "" {
			what = fmt.Sprintf("every cache of project %s whose key begins with %q", project, f.Prefix)
		}
		if err := a.confirm("Forget "+what+"?", "forgets "+what); err != nil {
			return err
		}
	}
	gone, err := client.RemoveCaches(cmd.Context(), project, f)
	if err != nil {
		return err
	}
	return a.cachesRemoved(gone)
}

func (a *app) cachesRemoved(gone *api.CachesRemoved) error {
	if a.output == "json" {
		return a.print().Value(gone)
	}
	if gone.Removed == 0 {
		a.note("there was none")
		return nil
	}
	a.note("forgotten: %d, %s", gone.Removed, cmp.Or(size(&gone.Bytes), "0 B"))
	return nil
}

// confirm asks a person. Where there is no terminal to ask at, it is an error that says how to do without.
func (a *app) confirm(question, does string) error {
	in, ok := a.env.Stdin.(*os.File)
	if !ok || !isTerminal(in) {
		return console.Usage("this %s; say --yes, since there is no terminal to ask at", does)
	}
	fmt.Fprintf(a.env.Stderr, "%s [y/N] ", console.Plain(question))
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return console.Usage("nothing was done")
	}
	return nil
}
