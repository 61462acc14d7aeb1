package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/disk"
)

// latestFile is where the id of the run is kept that was started last in this repository, or "" where there is no place for
// it.
func (a *app) latestFile() string {
	index := a.sourceIndex(".")
	if index == "" {
		return ""
	}
	return index + ".run"
}

// remember keeps which run was started here. It is a convenience: where it cannot be kept, the latest run of all takes its place.
func (a *app) remember(run string) {
	if file := a.latestFile(); file != "" {
		_ = disk.WriteFile(file, []byte(run), 0o600)
	}
}

// latestRun is the run that was started last in this repository, as far as this daemon knows it, else of all. A person is told
// which it is.
func (a *app) latestRun(ctx context.Context, client *api.Client) (*api.Run, error) {
	run, err := a.remembered(ctx, client)
	if run == nil && err == nil {
		run, err = newestRun(ctx, client)
	}
	if err != nil {
		return nil, err
	}
	words := []string{"the latest run: " + run.ID, run.Name, run.State}
	a.note("%s", strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", "))
	return run, nil
}

// remembered is nil where nothing was started here, or another daemon did it.
func (a *app) remembered(ctx context.Context, client *api.Client) (*api.Run, error) {
	file := a.latestFile()
	if file == "" {
		return nil, nil
	}
	id, err := os.ReadFile(file)
	if err != nil || !mayBeID(string(id)) {
		return nil, nil
	}
	run, err := client.Run(ctx, string(id))
	if isCode(err, api.CodeNotFound) {
		return nil, nil
	}
	return run, err
}

func newestRun(ctx context.Context, client *api.Client) (*api.Run, error) {
	list, err := client.Runs(ctx, api.RunFilter{}, api.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, errors.New("nothing has run yet\nStart with: forgeyard run")
	}
	return client.Run(ctx, list.Items[0].ID)
}
