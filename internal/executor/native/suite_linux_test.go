package native_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/executortest"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/attack"
)

func TestMain(m *testing.M) {
	attack.Play()
	native.Main()
	if text, ok := os.LookupEnv(agentVar); ok {
		if err := beAgent(text); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// suite is what the suite has to know of sandboxes.
func suite(open func(t *testing.T, state string) executor.Executor) executortest.Options {
	return executortest.Options{
		New: open, Kind: forge.SandboxNative, Supervised: true, Keeps: []string{sandbox.LockFile},
		Work: sandbox.WorkDir, Temp: sandbox.TempDir, Confined: true,
	}
}

// openExecutor opens an executor of which this test sees to the end.
func openExecutor(t *testing.T, cfg native.Config) *native.Executor {
	t.Helper()
	if cfg.State == "" {
		cfg.State = filepath.Join(t.TempDir(), "state")
	}
	e, err := native.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error("close: ", err)
		}
	})
	return e
}

func TestSandboxesPassTheSuite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("ids are mapped by root; the other test of the suite runs")
	}
	executortest.Run(t, suite(func(t *testing.T, state string) executor.Executor {
		t.Helper()
		return openExecutor(t, native.Config{State: state})
	}))
}

func TestSandboxesWithASingleIDPassTheSuite(t *testing.T) {
	executortest.Run(t, suite(func(t *testing.T, state string) executor.Executor {
		t.Helper()
		return openExecutor(t, native.Config{State: state, Rootless: true})
	}))
}
