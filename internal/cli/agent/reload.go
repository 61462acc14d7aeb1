package agent

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/forgeyard/forgeyard/config"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// A Reloader applies settings that may change while the agent runs (07§220). Its methods may be called by several
// goroutines.
type Reloader struct {
	mu  sync.Mutex
	app *app // nil until the agent runs
	log *slog.Logger
}

func (r *Reloader) start(a *app, log *slog.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.app, r.log = a, log
}

// Reload reads the settings again, applies what can be applied, and says what cannot. Settings that are wrong change
// nothing.
func (r *Reloader) Reload(context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.app == nil {
		return
	}
	in, err := r.app.input()
	if err != nil {
		r.log.Error("the settings were not reloaded", telemetry.KeyError, err)
		return
	}
	next, err := config.LoadAgent(in)
	if err != nil {
		r.log.Error("the settings were not reloaded: they are wrong", telemetry.KeyError, err)
		return
	}
	safe, restart := config.Changes(&r.app.settings, &next)
	if level, err := telemetry.ParseLevel(next.Log.Level); err == nil { // it was validated
		r.app.env.Level.Set(level)
		r.app.settings.Log.Level = next.Log.Level
	}
	r.log.Info("the settings were reloaded", "changed", strings.Join(safe, ","))
	if len(restart) > 0 {
		r.log.Warn("some settings change only with a restart", "changed", strings.Join(restart, ","))
	}
}
