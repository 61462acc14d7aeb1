package runner

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Metrics counts what only the agent sees (07§184, 07§185). A nil one counts nothing. Its methods may be called by several
// goroutines at once.
type Metrics struct {
	active             *telemetry.Gauge
	connections, dirty *telemetry.Counter
	prepare, cleanUp   *telemetry.Histogram

	moved remote.Meter

	mu    sync.Mutex
	since map[turn]forge.Instant // turns under way; of the attempts that the agent holds
}

// turn is one turn of one attempt.
type turn struct {
	attempt forge.AttemptID
	of      *telemetry.Histogram
}

// NewMetrics makes the metrics in a registry, once for a process. The spool of the state folder is measured whenever
// somebody looks.
func NewMetrics(m *telemetry.Metrics, state string) *Metrics {
	buckets := []float64{.005, .02, .1, .5, 1, 5, 15, 60, 300}
	m.GaugeFunc("forgeyard_agent_log_spool_bytes", "Logs on this disk that are not with the daemon yet, or not dropped yet.",
		func() float64 { return float64(sizeOf(filepath.Join(state, spoolName))) })
	all := &Metrics{
		active:      m.Gauge("forgeyard_agent_active_jobs", "Attempts that have something on this machine."),
		connections: m.Counter("forgeyard_agent_connections_total", "Connections to a daemon that were made."),
		dirty:       m.Counter("forgeyard_agent_workspace_cleanup_failures_total", "Clean-ups that left something to the sweeper."),
		prepare:     m.Histogram("forgeyard_agent_prepare_seconds", "How long workspaces took to be made.", buckets),
		cleanUp:     m.Histogram("forgeyard_agent_cleanup_seconds", "How long it took to remove what attempts had left.", buckets),
		since:       map[turn]forge.Instant{},
	}
	objects := func(name, help string, of func(remote.Figures) uint64) {
		m.CounterFunc(name, help, func() float64 { return float64(of(all.moved.Figures())) })
	}
	objects("forgeyard_agent_objects_total", "Objects that went whole between this agent and its daemon.",
		func(f remote.Figures) uint64 { return f.Objects })
	objects("forgeyard_agent_object_sent_bytes_total", "Bytes of objects that were sent, also those that a broken connection has lost.",
		func(f remote.Figures) uint64 { return f.Sent })
	objects("forgeyard_agent_object_received_bytes_total", "Bytes of objects that came.",
		func(f remote.Figures) uint64 { return f.Received })
	all.connections.Add(0) // so that they are there from the beginning
	all.dirty.Add(0)
	return all
}

// moves names who counts the objects that this agent moves.
func (m *Metrics) moves(figures func() remote.Figures) {
	if m != nil {
		m.moved.Watch(figures)
	}
}

// sizeOf adds the files below a folder up. What goes away meanwhile counts nothing.
func sizeOf(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error { // a figure: what cannot be read is left out
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return bytes
}

func (m *Metrics) connected() {
	if m != nil {
		m.connections.Inc()
	}
}

func (m *Metrics) holds(attempts int) {
	if m != nil {
		m.active.Set(float64(attempts))
	}
}

func (m *Metrics) preparing(id forge.AttemptID) {
	if m != nil {
		m.begin(turn{id, m.prepare})
	}
}

func (m *Metrics) prepared(id forge.AttemptID) {
	if m != nil {
		m.end(turn{id, m.prepare})
	}
}

func (m *Metrics) cleaning(id forge.AttemptID) {
	if m != nil {
		m.begin(turn{id, m.cleanUp})
	}
}

// cleaned is the end of an attempt: of what it never came to, nothing is kept.
func (m *Metrics) cleaned(id forge.AttemptID, err error) {
	if m == nil {
		return
	}
	if err != nil {
		m.dirty.Inc()
	}
	m.end(turn{id, m.cleanUp})
	m.mu.Lock()
	delete(m.since, turn{id, m.prepare})
	m.mu.Unlock()
}

func (m *Metrics) begin(t turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, under := m.since[t]; !under {
		m.since[t] = clock.Boot()
	}
}

func (m *Metrics) end(t turn) {
	m.mu.Lock()
	from, under := m.since[t]
	delete(m.since, t)
	m.mu.Unlock()
	if under {
		t.of.Observe(clock.Boot().Sub(from).Seconds())
	}
}
