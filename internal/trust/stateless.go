package trust

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
)

// StatelessKey lets a daemon that was started again tell its peers that it has forgotten their connections. It does not
// leave the daemon.
type StatelessKey [32]byte

// Format prints a placeholder for every verb.
func (StatelessKey) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

func newStatelessKey() StatelessKey {
	var k StatelessKey
	_, _ = rand.Read(k[:]) // never fails: it ends the process instead
	return k
}

// LoadStatelessKey reads the key from the CA's folder.
func LoadStatelessKey(dir string) (StatelessKey, error) {
	path := filepath.Join(dir, statelessFile)
	raw, err := readSecret(path)
	if err != nil {
		return StatelessKey{}, fmt.Errorf("load the key of stateless resets: %w", err)
	}
	defer clear(raw)
	if len(raw) != len(StatelessKey{}) {
		return StatelessKey{}, fmt.Errorf("load the key of stateless resets: %s has %d bytes, not %d", path, len(raw), len(StatelessKey{}))
	}
	return StatelessKey(raw), nil
}
