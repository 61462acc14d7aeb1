package sandbox

import (
	"context"
	"errors"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// Usage asks the launcher what the sandbox has used so far. The guest's keeper asks at the end of each step, to name a step
// that the kernel ended for want of memory. The error is ErrEnded once the sandbox is done.
func (b *Box) Usage(ctx context.Context) (cgroup.Usage, error) {
	_ = ctx
	select {
	case <-b.Done():
		return b.End().Usage, nil
	default:
		return cgroup.Usage{}, errors.New("sandbox: is being built")
	}
}
