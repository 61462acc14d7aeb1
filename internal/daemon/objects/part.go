package objects

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// part is an object that arrives in pieces, for one project. Where the pieces on the disk are another project's, or all of
// the object is there, it holds nothing in the eyes of whoever sends, and every byte has to come.
type part struct {
	*disk.Part
	project *Project
	ref     digest.Ref
	leave   func()

	proof remote.Part // nil: the pieces are this project's
	left  uint64      // of the pieces on the disk, what is still to be passed over
}

// Held implements remote.Part.
func (p *part) Held() uint64 {
	if p.proof != nil {
		return 0
	}
	return p.Part.Held()
}

// Write implements remote.Part.
func (p *part) Write(b []byte) (int, error) {
	if p.proof == nil {
		return p.Part.Write(b)
	}
	if _, err := p.proof.Write(b); err != nil {
		return 0, err
	}
	old := min(p.left, uint64(len(b)))
	p.left -= old
	if old == uint64(len(b)) {
		return len(b), nil
	}
	n, err := p.Part.Write(b[old:])
	return int(old) + n, err //nolint:gosec // at most len(b)
}

// Commit implements remote.Part.
func (p *part) Commit(ctx context.Context) error {
	if p.proof != nil {
		if err := p.proof.Commit(ctx); err != nil {
			return err
		}
	}
	if err := p.Part.Commit(ctx); err != nil {
		return err
	}
	p.project.objects.disown(p.ref)
	return p.project.objects.hold(ctx, p.project.name, []digest.Ref{p.ref})
}

// Close implements remote.Part.
func (p *part) Close() error {
	defer p.leave()
	return p.Part.Close()
}

func (o *Objects) ownerFile(ref digest.Ref) string {
	return filepath.Join(o.dir, ownersDir, hex.EncodeToString(ref.Digest[:]))
}

// own notes whose the pieces of an object are, before the first is written. Where the note is lost, the pieces are nobody's.
func (o *Objects) own(ref digest.Ref, project forge.ProjectName) error {
	err := os.WriteFile(o.ownerFile(ref), []byte(project), 0o600)
	if err == nil {
		return nil
	}
	o.disown(ref) // it may be half of a name
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w: %w", cas.ErrFull, err)
	}
	return fmt.Errorf("note whose object arrives: %w", err)
}

func (o *Objects) owns(ref digest.Ref, project forge.ProjectName) bool {
	owner, err := os.ReadFile(o.ownerFile(ref))
	return err == nil && string(owner) == string(project)
}

func (o *Objects) disown(ref digest.Ref) {
	if err := os.Remove(o.ownerFile(ref)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.log.Warn("a note of an object that has arrived stays", "error", err)
	}
}

// turnWithin is how long one who sends an object waits for another who does.
const turnWithin = 2 * time.Second

// turns lets one at a time send an object. Whoever comes again under the same name is a newer connection of the same sender:
// the older one may not know yet that it is dead, and gives way.
type turns struct {
	mu  sync.Mutex
	now map[digest.Ref]*turn
}

type turn struct {
	who   string
	yield func()
	over  chan struct{}
}

// take waits for a turn. leave ends it.
func (t *turns) take(ctx context.Context, ref digest.Ref, who string, yield func()) (leave func(), err error) {
	timer := time.NewTimer(turnWithin)
	defer timer.Stop()
	mine := &turn{who: who, yield: yield, over: make(chan struct{})}
	for {
		other, giveWay := t.try(ref, mine)
		if other == nil {
			return sync.OnceFunc(func() { t.end(ref, mine) }), nil
		}
		if giveWay != nil {
			giveWay()
		}
		select {
		case <-other.over:
		case <-timer.C:
			return nil, fmt.Errorf("%w: %v", remote.ErrBusy, ref)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// try takes the turn, or returns whose it is, and how to make that one give way where it should and was not told to yet.
func (t *turns) try(ref digest.Ref, mine *turn) (other *turn, giveWay func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	other = t.now[ref]
	if other == nil {
		if t.now == nil {
			t.now = map[digest.Ref]*turn{}
		}
		t.now[ref] = mine
		return nil, nil
	}
	if other.who == mine.who {
		giveWay, other.yield = other.yield, nil
	}
	return other, giveWay
}

func (t *turns) end(ref digest.Ref, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.now, ref)
	close(mine.over)
}
