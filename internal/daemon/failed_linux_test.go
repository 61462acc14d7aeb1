package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/program"
)

// loseDisk makes every write to the database's log fail, under the descriptors that the engine writes to.
func (w *world) loseDisk() {
	w.t.Helper()
	wal, err := filepath.EvalSymlinks(filepath.Join(w.cfg.Dir, "state.db-wal"))
	w.must(err)
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	w.must(err)
	defer func() { _ = unix.Close(null) }()
	descriptors, err := os.ReadDir("/proc/self/fd")
	w.must(err)
	for _, e := range descriptors {
		fd, err := strconv.Atoi(e.Name())
		w.must(err)
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && target == wal {
			w.must(unix.Dup3(null, fd, unix.O_CLOEXEC))
		}
	}
}

// TestADaemonThatCannotKnowWhatIsStoredEnds: after a commit whose fate nobody knows nothing is written any more. A daemon that
// stayed would look alive and do nothing; one that ends is started again, and reads what is there.
func TestADaemonThatCannotKnowWhatIsStoredEnds(t *testing.T) {
	w := newWorld(t)
	d, err := daemon.New(w.cfg)
	w.must(err)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	go func() { ended <- d.Run(ctx) }()
	select {
	case <-d.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	w.client = w.over(d.Addresses().Socket, "")
	w.loseDisk()
	_, err = w.client.CreateToken(w.ctx, &api.TokenRequest{})
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != api.CodeUnknownOutcome && p.Code != api.CodeUnavailable && p.Code != api.CodeUnreachable {
		t.Errorf("a request meanwhile: %v", err)
	}
	if err := <-ended; !errors.Is(err, store.ErrFailed) || program.Code(err) != program.CodeFailed {
		t.Errorf("it ended with %v, code %d", err, program.Code(err))
	}
	w.begin() // on what is there
}
