// Package random makes things up.
package random

import (
	_ "crypto/rand"  // want outside "imports crypto/rand"
	_ "hash/maphash" // want outside "imports hash/maphash"
	_ "math/rand/v2" // want outside "imports math/rand/v2"

	"github.com/oklog/ulid/v2"
)

func id() ulid.ULID { return ulid.Make() } // want random "ulid.Make"

func now() uint64 { return ulid.Now() } // want clock "ulid.Now"
