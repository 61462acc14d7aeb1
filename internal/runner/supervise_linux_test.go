package runner

import "github.com/forgeyard/forgeyard/internal/executor/process"

// supervise lets this test's executable be what the executor starts.
func supervise() { process.Supervise() }
