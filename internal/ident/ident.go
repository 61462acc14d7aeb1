// Package ident makes new identities: ULIDs whose order is that of their making within this process while its wall clock
// does not step back, and whose random part nobody can guess. Pure packages take ids with their events; the shells make them here.
package ident

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/forgeyard/forgeyard/internal/forge"
)

var (
	mu      sync.Mutex
	entropy = ulid.Monotonic(rand.Reader, 0)
)

// New returns a new id of type T. It may be called from several goroutines at once.
func New[T ~struct{ forge.ULID }]() T {
	mu.Lock()
	defer mu.Unlock()
	for now := ulid.Timestamp(time.Now()); ; now++ {
		id, err := ulid.New(now, entropy)
		if err == nil {
			return forge.MakeID[T](forge.ULID(id))
		}
		// The random part of this millisecond has counted past its end; the next one draws a new one. Randomness itself
		// does not fail: crypto/rand ends the process instead.
	}
}

// Seed returns a random number for a pure core.
func Seed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	return binary.LittleEndian.Uint64(b[:])
}
