//go:build linux

package attack_test

import (
	"os"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox/attack"
	"github.com/forgeyard/forgeyard/internal/sandbox/launch"
)

// TestMain is, besides the tests, everything that they start: attacks, launchers, and the first processes of sandboxes.
func TestMain(m *testing.M) {
	attack.Play()
	launch.Main(guest)
	code := m.Run()
	if err := world.close(); err != nil {
		println("remove the decoys:", err.Error())
		code = max(code, 1)
	}
	os.Exit(code)
}
