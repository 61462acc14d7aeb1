package core

import "github.com/forgeyard/forgeyard/internal/forge"

// recovery names what earlier processes held. It is sent after the resync of a process that has killed all of it: the
// daemon may then end those leases at once instead of waiting for them.
func (a *Agent) recovery() *forge.RecoverAttempts {
	m := &forge.RecoverAttempts{Runner: a.cfg.Runner, Session: a.cfg.Session}
	for _, r := range a.previous[:min(len(a.previous), forge.MaxRecovered)] {
		item := forge.RecoveredAttempt{Context: r.Context, Killed: a.killed}
		if r.Completion != nil && r.State == forge.AttemptCompleting {
			item.Completion, item.Hash = r.Completion.Message, r.Completion.Hash
		}
		m.Previous = append(m.Previous, item)
	}
	return m
}

// recovered: whatever the daemon decided, those attempts are over here.
func (a *Agent) recovered(re forge.MessageID) {
	if _, ok := a.answered(re, requestRecover, 0); !ok {
		return
	}
	n := min(len(a.previous), forge.MaxRecovered)
	for _, r := range a.previous[:n] {
		a.emit(CleanUp{Attempt: r.Context.Attempt})
	}
	a.previous = a.previous[n:]
	a.link.recover = len(a.previous) > 0
}
