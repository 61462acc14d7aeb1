package runner

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/runner/attempt"
)

// A daemon that asks for logs of attempts which were never here makes the agent remember nothing.
func TestALogThatIsNotHereIsNotRememberedWhenItIsAskedFor(t *testing.T) {
	a := &Agent{attempts: map[forge.AttemptID]*attempt.Attempt{}, logsFrom: map[forge.AttemptID]forge.LogSeq{}}
	for range 100 {
		a.resumeLog(nil, ident.New[forge.AttemptID](), 3)
	}
	if len(a.logsFrom) > 0 {
		t.Errorf("%d are remembered", len(a.logsFrom))
	}
}
