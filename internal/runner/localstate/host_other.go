//go:build !linux

package localstate

import (
	"os"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// bootID is another one for each process: this system is built for, and does not tell its boots apart yet.
func bootID() (forge.BootID, error) { return ident.New[forge.BootID](), nil }

// fingerprintOf knows nothing here by which a copy could be told: the identity is that of whoever has the file. The
// daemon still keeps two processes apart, by their sessions and start counters.
func fingerprintOf(path string) (fingerprint, error) {
	_, err := os.Stat(path)
	return fingerprint{}, err
}
