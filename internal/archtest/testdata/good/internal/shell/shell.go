// Package shell carries out.
package shell

import (
	_ "context"

	_ "example.com/good/internal/core"
	_ "example.com/good/internal/heavy"
	_ "example.com/good/internal/leaf"
)
