package enrolltest

import (
	"context"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Memory is an enroll.Store without a database, and the other half of one: what administrators do.
type Memory struct {
	mu      sync.Mutex
	tokens  map[trust.TokenHash]*token
	runners map[forge.RunnerID]*enroll.Runner
	keys    map[trust.KeyID]forge.RunnerID
	certs   []*certificate // in the order of their recording
}

type token struct {
	end    time.Time
	runner forge.RunnerID // that it is bound to, or has made
	key    trust.KeyID    // that has used it
}

type certificate struct {
	enroll.Certificate
	used, superseded bool
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		tokens: map[trust.TokenHash]*token{}, runners: map[forge.RunnerID]*enroll.Runner{},
		keys: map[trust.KeyID]forge.RunnerID{},
	}
}

// AddToken implements Admin.
func (m *Memory) AddToken(hash trust.TokenHash, end time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[hash] = &token{end: end}
}

// BindToken adds a token that enrols a runner again, with another key.
func (m *Memory) BindToken(hash trust.TokenHash, end time.Time, runner forge.RunnerID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens[hash] = &token{end: end, runner: runner}
}

// SetRunner implements Admin.
func (m *Memory) SetRunner(id forge.RunnerID, disabled, revoked bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runners[id].Disabled, m.runners[id].Revoked = disabled, revoked
}

// Runners returns how many runners there are.
func (m *Memory) Runners() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.runners)
}

// Recorded returns the certificates of a runner, in the order of their recording.
func (m *Memory) Recorded(id forge.RunnerID) []enroll.Certificate {
	m.mu.Lock()
	defer m.mu.Unlock()
	var certs []enroll.Certificate
	for _, c := range m.certs {
		if c.Runner == id {
			certs = append(certs, c.Certificate)
		}
	}
	return certs
}

// Forget loses every certificate, as a restore from an older copy does.
func (m *Memory) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.certs = nil
}

// RedeemToken implements enroll.Store.
func (m *Memory) RedeemToken(_ context.Context, r enroll.Redemption) (enroll.Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tokens[r.Token]
	used := t != nil && t.key != trust.KeyID{}
	owner := m.keys[r.Key]
	switch {
	case t == nil:
		return enroll.Grant{}, enroll.ErrTokenUnknown
	case used && t.key != r.Key:
		return enroll.Grant{}, enroll.ErrTokenUsed
	case !used && !r.Now.Before(t.end):
		return enroll.Grant{}, enroll.ErrTokenExpired
	case !owner.IsZero() && owner != t.runner:
		return enroll.Grant{}, enroll.ErrKeyTaken
	}
	if !t.runner.IsZero() {
		if err := m.standingLocked(t.runner); err != nil {
			return enroll.Grant{}, err
		}
	}
	if t.runner.IsZero() {
		t.runner = ident.New[forge.RunnerID]()
		m.runners[t.runner] = &enroll.Runner{ID: t.runner}
	}
	if !used {
		m.bindLocked(r.Key, t.runner)
		t.key = r.Key
	}
	return enroll.Grant{Runner: t.runner, Name: r.Name, Again: used}, nil
}

// bindLocked gives a runner a key in place of the one it had.
func (m *Memory) bindLocked(key trust.KeyID, runner forge.RunnerID) {
	for old, owner := range m.keys {
		if owner == runner {
			delete(m.keys, old)
		}
	}
	m.keys[key] = runner
}

func (m *Memory) standingLocked(id forge.RunnerID) error {
	switch r := m.runners[id]; {
	case r == nil:
		return nil
	case r.Revoked:
		return enroll.ErrRunnerRevoked
	case r.Disabled:
		return enroll.ErrRunnerDisabled
	default:
		return nil
	}
}

// RunnerByKey implements enroll.Store.
func (m *Memory) RunnerByKey(_ context.Context, key trust.KeyID) (enroll.Runner, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok := m.keys[key]
	if !ok {
		return enroll.Runner{}, enroll.ErrKeyUnknown
	}
	return *m.runners[id], nil
}

// RecordCertificate implements enroll.Store.
func (m *Memory) RecordCertificate(_ context.Context, c enroll.Certificate) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys[c.Key] != c.Runner {
		return enroll.ErrKeyUnknown
	}
	if m.runners[c.Runner].Revoked {
		return enroll.ErrRunnerRevoked
	}
	m.recordLocked(c)
	return nil
}

func (m *Memory) recordLocked(c enroll.Certificate) *certificate {
	for _, have := range m.certs {
		if have.Serial == c.Serial {
			return have
		}
	}
	added := &certificate{Certificate: c}
	m.certs = append(m.certs, added)
	if r := m.runners[c.Runner]; r != nil && c.NotAfter.After(r.NotAfter) {
		r.NotAfter = c.NotAfter
	}
	return added
}

// UseCertificate implements enroll.Store.
func (m *Memory) UseCertificate(_ context.Context, c enroll.Certificate, _ time.Time) (enroll.Use, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.standingLocked(c.Runner); err != nil {
		return enroll.Use{}, err
	}
	before := len(m.certs)
	used := m.recordLocked(c)
	if used.superseded {
		return enroll.Use{}, enroll.ErrSuperseded
	}
	use := enroll.Use{First: !used.used, Unrecorded: len(m.certs) > before}
	used.used = true
	for _, older := range m.certs {
		if older == used {
			break
		}
		older.superseded = older.superseded || older.Runner == c.Runner
	}
	return use, nil
}
