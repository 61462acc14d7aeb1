package standalone

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cli"
	"github.com/forgeyard/forgeyard/internal/disk"
)

// passingFile stands in a data folder whose owner serves only until the runs of its users have ended. Where it is found by
// the next owner, that one was killed, and so was whoever wanted those runs.
const passingFile = "passing"

// mostOrphans is how many runs are asked for at once.
const mostOrphans = 100

// takeOver ends what an owner left that was killed, unless that was one who stays: its runs go on. Nothing works for the
// daemon yet, so that no job of theirs begins again. It notes what kind of owner this one is.
func takeOver(ctx context.Context, client *api.Client, o cli.LocalOptions, since time.Time) error {
	path := filepath.Join(o.Data, passingFile)
	_, err := os.Lstat(path)
	if err == nil {
		err = cancelBefore(ctx, client, since, o.Orphan)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if o.Stays {
		return forget(o.Data)
	}
	return disk.WriteFile(path, nil, 0o600)
}

// forget takes back that the owner of a folder serves only for a while.
func forget(data string) error {
	err := os.Remove(filepath.Join(data, passingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// cancelBefore cancels the runs that were made before an instant and have not ended.
func cancelBefore(ctx context.Context, client *api.Client, since time.Time, tell func(run string)) error {
	for _, state := range unfinishedStates {
		page := api.Page{Limit: mostOrphans}
		for more := true; more; more = page.Cursor != "" {
			list, err := client.Runs(ctx, api.RunFilter{State: state}, page)
			if err != nil {
				return err
			}
			for i := range list.Items {
				run := &list.Items[i]
				if run.CreatedAt == nil || !run.CreatedAt.Before(since) {
					continue // of somebody who is as quick as this process
				}
				if _, err := client.CancelRun(ctx, run.ID); err != nil {
					return err
				}
				if tell != nil {
					tell(run.ID)
				}
			}
			page.Cursor = list.Next
		}
	}
	return nil
}
