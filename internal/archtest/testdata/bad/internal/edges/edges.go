// Package edges imports what it may not.
package edges

import (
	_ "example.com/bad/codec"
	_ "example.com/bad/internal/clock"           // want import "internal/edges may not import internal/clock"
	_ "example.com/bad/internal/edges/edgestest" // want testkit "internal/edges/edgestest is a test kit"
	_ "example.com/bad/internal/leaf"
	_ "modernc.org/sqlite" // want driver "imports modernc.org/sqlite"
)
