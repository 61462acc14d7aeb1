//go:build !linux && !darwin

package cli

import (
	"context"
	"io"
	"os"

	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

func isTerminal(f *os.File) bool { return telemetry.IsTerminal(f) }

// askHidden refuses: here nobody could be asked without showing the answer.
func askHidden(context.Context, *os.File, io.Writer, string) ([]byte, error) {
	return nil, console.Usage("on this system a value is not asked for: give it on standard input, or with --file")
}
