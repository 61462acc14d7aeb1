package sandbox

import (
	"context"
	"errors"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Launcher makes sandboxes. Its methods may be called from several goroutines at once.
type Launcher struct{}

// Open ends what an earlier launcher on the same state folder has left, starts one, and builds the first sandbox, so that
// an error says that none can be built here. The caller closes it.
func Open(ctx context.Context, cfg Config) (*Launcher, error) {
	_, _ = ctx, cfg
	return nil, errors.New("sandbox: is being built")
}

// Report says which walls this machine gives.
func (l *Launcher) Report() Report { return Report{} }

// SetView changes what sandboxes see from now on. Those that wait are made anew.
func (l *Launcher) SetView(ctx context.Context, view View) error { _, _ = ctx, view; return nil }

// Make makes a sandbox whose guest runs. The caller keeps its own descriptors of the files and closes them. An error is a
// *SetupError; then nothing of the sandbox is alive. ctx bounds the making, not the sandbox.
func (l *Launcher) Make(ctx context.Context, o *Order) (*Box, error) {
	_, _ = ctx, o
	return nil, errors.New("sandbox: is being built")
}

// Close kills every sandbox and ends the launcher.
func (l *Launcher) Close() error { return nil }

// Box is a sandbox. Its methods may be called from several goroutines at once and at any time.
type Box struct{}

// MoveDeadline passes a later deadline on, to the launcher and to the guest.
func (b *Box) MoveDeadline(deadline forge.Instant) { _ = deadline }

// Kill ends all of it at once.
func (b *Box) Kill() {}

// Done closes when nothing of it is alive and its control group is gone.
func (b *Box) Done() <-chan struct{} { return nil }

// End says how it ended. It may be called once Done is closed.
func (b *Box) End() End { return End{} }

// Pid is the host's id of its pid 1.
func (b *Box) Pid() int { return 0 }
