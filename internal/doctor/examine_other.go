//go:build !linux

package doctor

import (
	"context"
	"errors"
	"io"
	"runtime"
)

// Examine says that there are no walls here.
func Examine(context.Context, Options) Report {
	return Report{Findings: []Finding{missing("sandbox",
		"jobs cannot be confined on "+runtime.GOOS+": the sandbox is made of what Linux has",
		"run an agent on Linux; here jobs run only where --allow-unsandboxed (policy.allow_unconfined of an agent) says so")}}
}

// Child is for Linux.
func Child(io.Reader, io.Writer) error {
	return errors.New("there is nothing to try on " + runtime.GOOS)
}
