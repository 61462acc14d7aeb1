package sandbox

import (
	"context"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// Usage asks the launcher what the sandbox has used so far. The guest's keeper asks at the end of each step, to name a step
// that the kernel ended for want of memory. Once the sandbox is done it is that of its End.
func (b *Box) Usage(ctx context.Context) (cgroup.Usage, error) {
	b.asking.Lock() // one question at a time, so that an answer is that of the last one
	defer b.asking.Unlock()
	select {
	case <-b.usage: // of a question that was given up
	default:
	}
	b.launcher.tell(&Request{Usage: b.id})
	select {
	case u := <-b.usage:
		return u, nil
	case <-b.done:
		return b.end.Usage, nil
	case <-ctx.Done():
		return cgroup.Usage{}, context.Cause(ctx)
	}
}

// used takes an answer, if somebody waits for it.
func (b *Box) used(u cgroup.Usage) {
	select {
	case b.usage <- u:
	default:
	}
}
