package sim

import (
	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// operation is one transaction on a lease as its daemon saw it: when it asked, when it heard, and what.
type operation struct {
	lease  forge.LeaseID
	cmd    authority.Command
	answer authority.Answer
	fate   fate
	call   int64
	ret    int64
}

func (w *World) noteOperation(t *txn, answer authority.Answer, f fate) {}

func (w *World) checkHistory() {}
