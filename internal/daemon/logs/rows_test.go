package logs_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errLost = errors.New("the answer was lost")

// table is a database of logs: the rules of package authority over rows in memory.
type table struct {
	mu       sync.Mutex
	rows     map[forge.AttemptID]logs.Row
	leases   map[forge.LeaseID]authority.Lease
	loseNext int  // how many of the next transactions have no answer
	commit   bool // whether those happen all the same
	reads    int
}

// looks is how often a row was read.
func (t *table) looks() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reads
}

func newTable() *table {
	return &table{rows: map[forge.AttemptID]logs.Row{}, leases: map[forge.LeaseID]authority.Lease{}}
}

// begin makes an attempt with an empty log.
func (t *table) begin(limit forge.Bytes) forge.AttemptContext {
	c := forge.AttemptContext{
		Job: ident.New[forge.JobID](), Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID](),
		Spec: forge.SpecID([]byte("spec")), Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[c.Attempt] = logs.Row{Log: authority.Log{Attempt: c.Attempt, Runner: c.Runner, Next: 1}, Limit: limit}
	t.leases[c.Lease] = authority.Lease{Context: c, State: forge.LeaseAccepted}
	return c
}

func (t *table) row(attempt forge.AttemptID) authority.Log {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[attempt].Log
}

// lose lets the next transaction go without an answer.
func (t *table) lose(committed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loseNext, t.commit = 1, committed
}

func (t *table) endLost(lease forge.LeaseID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leases[lease]
	l.State = forge.LeaseLost
	t.leases[lease] = l
}

func (t *table) Do(_ context.Context, cmd authority.Command) (authority.Answer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var r authority.Rows
	for _, key := range cmd.Keys(nil) {
		switch key.Table {
		case authority.TableLog:
			row, found := t.rows[forge.AttemptID{ULID: key.ID}]
			r.Log = authority.Row[authority.Log]{Value: row.Log, Found: found}
		case authority.TableLease:
			l, found := t.leases[forge.LeaseID{ULID: key.ID}]
			r.Lease = authority.Row[authority.Lease]{Value: l, Found: found}
		case authority.TableSession:
			if seal, ok := cmd.(*authority.SealLog); ok {
				s := authority.Session{Runner: seal.Fence.Runner, Session: seal.Fence.Session, TransportSeq: seal.Fence.TransportSeq}
				r.Session = authority.Row[authority.Session]{Value: s, Found: true}
			}
		}
	}
	answer := cmd.Apply(&r)
	if t.loseNext > 0 {
		t.loseNext--
		if !t.commit {
			return authority.Answer{}, errLost
		}
		defer func() { t.commit = false }()
	}
	if r.Log.Dirty {
		row := t.rows[r.Log.Value.Attempt]
		row.Log = r.Log.Value
		t.rows[r.Log.Value.Attempt] = row
	}
	if t.commit {
		return authority.Answer{}, errLost
	}
	return answer, nil
}

func (t *table) Log(_ context.Context, attempt forge.AttemptID) (logs.Row, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads++
	row, found := t.rows[attempt]
	return row, found, nil
}

func (t *table) Unsealed(context.Context, time.Time) ([]logs.Ended, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ended []logs.Ended
	for _, l := range t.leases {
		if l.State.Ended() && !t.rows[l.Context.Attempt].Log.Sealed {
			ended = append(ended, logs.Ended{Lease: l.Context.Lease, Attempt: l.Context.Attempt})
		}
	}
	return ended, nil
}

func seal(t *table, c forge.AttemptContext) *authority.SealLog {
	row := t.row(c.Attempt)
	return &authority.SealLog{
		Fence:   authority.Fence{Runner: c.Runner, Session: c.Session, TransportSeq: 1},
		Context: c, Seal: forge.LogSeal{Last: row.Next - 1, Bytes: row.Bytes, Hash: row.Hash},
	}
}

// back puts a row back to what it was after some frames.
func (t *table) back(attempt forge.AttemptID, frames []forge.LogFrame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.rows[attempt]
	var all []byte
	for _, f := range frames {
		all = append(all, f.Bytes...)
	}
	row.Log.Next, row.Log.Bytes, row.Log.Hash = forge.LogSeq(len(frames)+1), uint64(len(all)), digest.Of(all)
	t.rows[attempt] = row
}
