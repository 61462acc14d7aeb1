package runner

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/runner/admin"
)

func newClient(t *testing.T, state string) *admin.Client {
	t.Helper()
	c := admin.NewClient(state)
	t.Cleanup(c.Close)
	return c
}
