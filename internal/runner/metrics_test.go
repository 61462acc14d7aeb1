package runner

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

func TestTheFiguresOfAnAgentTellItsTurnsItsSpoolAndWhatWasLeft(t *testing.T) {
	state := t.TempDir()
	registry := telemetry.NewMetrics()
	m := NewMetrics(registry, state)
	says := func(lines ...string) {
		t.Helper()
		w := httptest.NewRecorder()
		registry.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		for _, line := range lines {
			if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
				t.Errorf("it does not say %s", line)
			}
		}
	}
	says("forgeyard_agent_log_spool_bytes 0", "forgeyard_agent_workspace_cleanup_failures_total 0")

	whole, never := ident.New[forge.AttemptID](), ident.New[forge.AttemptID]()
	m.connected()
	m.preparing(whole)
	m.preparing(never)
	m.holds(2)
	m.prepared(whole)
	if err := os.MkdirAll(filepath.Join(state, spoolName, whole.String()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, spoolName, whole.String(), "1"), make([]byte, 1234), 0o600); err != nil {
		t.Fatal(err)
	}
	says("forgeyard_agent_active_jobs 2", "forgeyard_agent_connections_total 1", "forgeyard_agent_log_spool_bytes 1234",
		"forgeyard_agent_prepare_seconds_count 1")

	says("forgeyard_agent_objects_total 0")
	m.moves(func() remote.Figures { return remote.Figures{Objects: 3, Sent: 20, Received: 40} })
	says("forgeyard_agent_objects_total 3", "forgeyard_agent_object_sent_bytes_total 20", "forgeyard_agent_object_received_bytes_total 40")

	m.cleaning(whole)
	m.cleaning(whole) // asked again
	m.cleaned(whole, nil)
	m.cleaning(never)
	m.cleaned(never, errors.New("busy"))
	says("forgeyard_agent_cleanup_seconds_count 2", "forgeyard_agent_workspace_cleanup_failures_total 1",
		"forgeyard_agent_prepare_seconds_count 1")
	if len(m.since) != 0 {
		t.Errorf("%d turns are kept of attempts that are gone", len(m.since))
	}
}

func TestWithoutFiguresNothingIsCounted(t *testing.T) {
	var m *Metrics
	id := ident.New[forge.AttemptID]()
	m.connected()
	m.holds(1)
	m.preparing(id)
	m.prepared(id)
	m.cleaning(id)
	m.cleaned(id, nil)
}
