package spelling_test

import (
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/spelling"
)

// Case B93: a key with a typing error is met with the one that was meant.
func TestTheWordThatWasMeantIsFound(t *testing.T) {
	keys := []string{"needs", "name", "env", "timeout", "steps", "runner"}
	for word, want := range map[string]string{
		"timout": "timeout", "tiemout": "timeout", "setps": "steps", "need": "needs", "names": "name", "runer": "runner",
		"x": "", "elephant": "", "": "", strings.Repeat("a", 65): "",
	} {
		if got := spelling.Nearest(word, keys); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
