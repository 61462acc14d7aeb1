package process_test

import (
	"os"
	"testing"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/executortest"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestMain(m *testing.M) {
	process.Supervise()
	if _, ok := os.LookupEnv(process.HeadlessVar); ok {
		process.Headless()
	}
	if text, ok := os.LookupEnv(agentVar); ok {
		if err := beAgent(text); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

func newExecutor(t *testing.T, state string) executor.Executor {
	t.Helper()
	e, err := process.New(process.Config{State: state})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestProcessesPassTheSuite(t *testing.T) {
	executortest.Run(t, executortest.Options{New: newExecutor, Kind: forge.SandboxProcess, Supervised: true, Keeps: []string{"mark"}})
}
