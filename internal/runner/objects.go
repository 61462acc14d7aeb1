package runner

import (
	"context"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/runner/objects"
)

// openObjects opens what moves objects, in a folder of the state folder.
func (a *Agent) openObjects(dir string) (*objects.Objects, error) {
	cfg := objects.Config{Dir: dir, Far: a.cfg.InPlace, InPlace: a.cfg.InPlace != nil, Limits: a.cfg.Keep, Log: a.cfg.Log}
	if !cfg.InPlace {
		client := remote.New(remote.ClientConfig{Link: a.working, Log: a.cfg.Log})
		a.cfg.Metrics.moves(client.Figures)
		cfg.Far = func(of forge.AttemptContext) cas.Store { return client.For(of) }
	}
	return objects.Open(cfg)
}

// working waits for a connection on which streams of work may be opened, and returns the newest.
func (a *Agent) working(ctx context.Context) (*link.Link, error) {
	for {
		c, moved := a.connection()
		var working <-chan struct{}
		if c != nil {
			working = c.link.Working()
		}
		select {
		case <-working:
			if c.link.Context().Err() == nil {
				return c.link, nil
			}
		case <-moved:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
