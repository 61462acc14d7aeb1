package standalone

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/forgeyard/forgeyard/internal/cli"
	"github.com/forgeyard/forgeyard/internal/daemon"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
)

// lookSocket is where a daemon is asked that was started for a look. Find does not know it: nobody is to give work to a
// daemon that has no agent.
const lookSocket = "look.sock"

// Look implements cli.Local.
func (y Yard) Look(ctx context.Context, o cli.LocalOptions) (endpoint string, leave func() error, err error) {
	_, err = os.Stat(filepath.Join(o.Data, "daemon"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil, nil
	}
	err = y.untilOwned(ctx, o.Data, func() error {
		endpoint, leave, err = y.look(ctx, o)
		return err
	}, func(owner string) error {
		endpoint, leave = owner, func() error { return nil }
		return nil
	})
	return endpoint, leave, err
}

// look runs a daemon until leave is called.
func (y Yard) look(ctx context.Context, o cli.LocalOptions) (endpoint string, leave func() error, err error) {
	settings := y.daemonConfig(o)
	settings.Socket = lookSocket
	d, err := daemon.New(settings)
	if err != nil {
		return "", nil, err
	}
	serving := start(context.WithoutCancel(ctx), "daemon", func(error) {}, d.Run)
	select {
	case <-d.Ready():
	case <-serving.ended:
		return "", nil, serving.err
	}
	if endpoint = d.Addresses().Socket; endpoint == "" {
		return "", nil, errors.Join(tooLong(o.Data), serving.close())
	}
	return endpoint, serving.close, nil
}

// untilOwned calls own, which makes this process the owner of a data folder, until another process owns it and answers: then
// use is called with that one's endpoint. A process that starts, ends or only looks holds the folder and does not answer. For
// that long, at most handOver, it waits.
func (y Yard) untilOwned(ctx context.Context, data string, own func() error, use func(endpoint string) error) error {
	patience := time.NewTimer(handOver)
	defer patience.Stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		err := own()
		if !errors.Is(err, store.ErrLocked) {
			return err
		}
		if endpoint := y.Find(data); endpoint != "" {
			return use(endpoint)
		}
		select {
		case <-tick.C:
		case <-patience.C:
			return err
		case <-ctx.Done():
			return err
		}
	}
}
