package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/agents"
	"github.com/forgeyard/forgeyard/internal/daemon/secrets"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// openSecrets makes the secrets ready. A key that is wrong does not keep the daemon from starting: jobs without secrets need
// none.
func (d *Daemon) openSecrets(ctx context.Context, _ *program.Stack, p *parts) error {
	p.secrets = secrets.New(p.store, filepath.Join(d.cfg.Dir, keyFile), d.cfg.Log)
	err := p.secrets.Check(ctx)
	var wrong *secrets.KeyError
	if errors.As(err, &wrong) {
		d.cfg.Log.Error("no job gets its secrets", telemetry.KeyError, err)
		return nil
	}
	return err
}

// secretSource is the secrets as the edge to the agents asks for them.
type secretSource struct{ secrets *secrets.Secrets }

// Secret implements agents.SecretSource.
func (s secretSource) Secret(ctx context.Context, of forge.AttemptContext, ref forge.SecretRef) (forge.Secret, forge.SecretRef, time.Duration, error) {
	value, given, err := s.secrets.Deliver(ctx, of, ref)
	if errors.Is(err, secrets.ErrNone) {
		err = agents.ErrNoSecret
	}
	return value, given, secrets.KeptFor, err
}
