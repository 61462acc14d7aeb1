package access

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Forge makes the text of a token with a known id and another secret.
func Forge(t *testing.T, id forge.AccessTokenID) string {
	t.Helper()
	text, _ := mint(id)
	return string(text.Reveal())
}
