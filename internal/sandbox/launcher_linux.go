package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
)

// closePatience is how long a launcher that was told to end may take before it is killed.
const closePatience = 10 * time.Second

// Launcher makes sandboxes. Its methods may be called from several goroutines at once.
type Launcher struct {
	cfg     Config
	process *process
	report  Report
	speaks  uint64         // what the launcher says that it speaks; of the reader of answers
	ready   chan error     // takes one value, the launcher's answer to its configuration
	ended   chan struct{}  // closed when the launcher has ended and every box is done
	helpers sync.WaitGroup // listen, watch, complain, and what is done beside
	deaths  *deaths

	mu    sync.Mutex
	boxes map[uint64]*Box
	last  uint64
	gone  bool // the launcher has ended, or is about to
	aside int  // what is done beside now
}

// Open ends what an earlier launcher on the same state folder has left, starts one, and builds the first sandbox, so that
// an error says that none can be built here. The caller closes it. ctx bounds the opening alone.
func Open(ctx context.Context, cfg Config) (*Launcher, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	lock, err := takeLock(ctx, cfg.State)
	if err != nil {
		return nil, err
	}
	l := &Launcher{cfg: cfg, ready: make(chan error, 1), ended: make(chan struct{}), boxes: map[uint64]*Box{}}
	if l.deaths, err = watchDeaths(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	l.process, err = start(cmp.Or(cfg.Program, itself), cfg.Rootless, lock)
	if err := errors.Join(err, lock.Close()); err != nil { // the launcher's duplicate keeps it
		return nil, errors.Join(err, l.deaths.close())
	}
	l.helpers.Go(l.watch)
	l.helpers.Go(l.listen)
	l.helpers.Go(l.complain)
	if err := l.configure(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// configure tells the launcher how to be, and waits until it is.
func (l *Launcher) configure(ctx context.Context) error {
	c := &l.cfg
	var own unix.Stat_t
	if err := unix.Stat("/proc/self/ns/mnt", &own); err != nil {
		return fmt.Errorf("the agent's mount namespace: %w", err)
	}
	err := l.process.conn.Send(&Request{Configure: &Configure{
		State: c.State, View: c.View, Pool: c.Pool, Slots: c.Slots, UIDBase: c.UIDBase, Rootless: c.Rootless,
		NoCgroups: c.NoCgroups, NoImages: c.NoImages, Switches: c.Switches, Agent: os.Getpid(), MountNS: own.Ino,
	}})
	if err != nil {
		return fmt.Errorf("configure the launcher: %w", err)
	}
	select {
	case err := <-l.ready:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the first sandbox: %w", context.Cause(ctx))
	}
}

// Report says which walls this machine gives.
func (l *Launcher) Report() Report { return l.report }

// Ended closes when the launcher has ended, by Close or by itself, and every box is done.
func (l *Launcher) Ended() <-chan struct{} { return l.ended }

// SetView changes what sandboxes see from now on. Those that wait are made anew.
func (l *Launcher) SetView(view View) error {
	if err := view.check(); err != nil {
		return err
	}
	return l.process.conn.Send(&Request{View: &view})
}

// Make makes a sandbox whose guest runs. The caller keeps its own descriptors of the files and closes them. An error is a
// *SetupError; then nothing of the sandbox is alive. ctx bounds the making, not the sandbox.
func (l *Launcher) Make(ctx context.Context, o *Order) (*Box, error) {
	request, err := l.request(o)
	if err != nil {
		return nil, &SetupError{Err: err}
	}
	guest, err := guestFile(o.Guest)
	if err != nil {
		return nil, &SetupError{Err: err}
	}
	defer func() { _ = guest.Close() }()
	b, err := l.add(ctx)
	if err != nil {
		return nil, &SetupError{Err: err}
	}
	request.ID, b.folder, b.limit = b.id, request.Folder, o.Limits.Disk
	if err := l.process.conn.Send(&Request{Make: request}, o.Keeper, o.Stdout, o.Stderr, guest); err != nil {
		l.remove(b.id)
		return nil, &SetupError{Err: errors.Join(ErrEnded, err)}
	}
	select {
	case err = <-b.made:
	case <-ctx.Done():
		b.Kill()
		err = <-b.made
	}
	switch {
	case ctx.Err() != nil: // also where it was made at the same moment
		if err == nil {
			b.Kill()
			<-b.done
			err = b.Close()
		}
		return nil, &SetupError{Err: errors.Join(context.Cause(ctx), err)}
	case err != nil:
		return nil, err
	}
	return b, nil
}

// request checks an order and puts it into words.
func (l *Launcher) request(o *Order) (*MakeRequest, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	folder, err := filepath.EvalSymlinks(o.Folder)
	if err != nil {
		return nil, err
	}
	layers := slices.Clone(o.Layers)
	for i := range layers {
		if layers[i].Folder, err = filepath.EvalSymlinks(layers[i].Folder); err != nil {
			return nil, err
		}
	}
	return &MakeRequest{
		Name: o.Name, Folder: folder, Network: o.Network, Limits: o.Limits, Policy: o.Policy, Deadline: o.Deadline, Need: o.Need,
		Layers: layers,
	}, nil
}

// guestFile is a file in memory, because the bytes may be too many for a packet.
func guestFile(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "guest")
	if _, err := f.Write(content); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// add makes a box for an order. Where one that is dead still has the slot that it needs, it waits for that.
func (l *Launcher) add(ctx context.Context) (*Box, error) {
	for {
		b, dying, err := l.tryAdd()
		if dying == nil {
			return b, err
		}
		select {
		case <-dying.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryAdd makes a box, or returns one that is dead and has not given its slot back.
func (l *Launcher) tryAdd() (b, dying *Box, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return nil, nil, ErrEnded
	}
	if len(l.boxes) >= l.cfg.Slots {
		for _, b := range l.boxes {
			if b.isDead() {
				return nil, b, nil
			}
		}
	}
	l.last++
	b = &Box{
		launcher: l, id: l.last, made: make(chan error, 1), dead: make(chan struct{}), done: make(chan struct{}),
		usage: make(chan cgroup.Usage, 1),
	}
	l.boxes[b.id] = b
	return b, nil, nil
}

// remove takes a box out of the list, and returns it.
func (l *Launcher) remove(id uint64) *Box {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.boxes[id]
	delete(l.boxes, id)
	return b
}

func (l *Launcher) box(id uint64) *Box {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.boxes[id]
}

// maxBeside bounds what is done beside at a time.
const maxBeside = 4

// beside does some work that nobody waits for but Close, or does it at once where there is too much of it.
func (l *Launcher) beside(work func()) {
	l.mu.Lock()
	now := l.gone || l.aside == maxBeside
	if !now {
		l.aside++
		l.helpers.Go(func() {
			work()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.aside--
		})
	}
	l.mu.Unlock()
	if now {
		work()
	}
}

// tell says something that has no effect on a launcher that has ended: then everything ends anyway.
func (l *Launcher) tell(r *Request) { _ = l.process.conn.Send(r) }

// listen takes what the launcher says, until it has ended, and ends what it has left.
func (l *Launcher) listen() {
	defer close(l.ended)
	for {
		var a Answer
		files, err := l.process.conn.Receive(&a)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				l.log(slog.LevelError, "the launcher of sandboxes is not understood", "error", err)
			}
			break
		}
		packet.CloseFiles(l.hear(&a, files))
	}
	l.abandon()
}

// hear takes one answer, and returns the files that it had no use for.
func (l *Launcher) hear(a *Answer, files []*os.File) []*os.File {
	switch {
	case a.Speaks != 0:
		l.speaks = a.Speaks
	case l.speaks != Revision:
		l.readied(&StrangerError{Program: l.cfg.Program, Speaks: l.speaks})
	case a.Ready != nil:
		l.report = *a.Ready
		l.readied(nil)
	case a.Failed != "":
		l.readied(errors.New(a.Failed))
	case a.Made != nil:
		if b := l.box(a.Made.ID); b != nil && b.pidfd == nil && b.take(a.Made, files) {
			files = nil
			if err := l.deaths.add(b.pidfd, b.id); err != nil { // its end is known when the launcher says so
				l.log(slog.LevelWarn, "the end of a sandbox is not watched", "error", err)
			}
			b.made <- nil
		}
	case a.Refused != nil:
		if b := l.remove(a.Refused.ID); b != nil && b.pidfd == nil {
			b.made <- a.Refused.err()
		}
	case a.Ended != nil:
		if b := l.remove(a.Ended.ID); b != nil && b.pidfd != nil {
			b.finish(a.Ended.End)
		}
	case a.Used != nil:
		if b := l.box(a.Used.ID); b != nil {
			b.used(a.Used.Usage)
		}
	case a.Notice != "":
		l.log(slog.LevelWarn, "launcher of sandboxes", "says", a.Notice)
	}
	return files
}

// watch tells boxes of their ends, until the launcher has ended.
func (l *Launcher) watch() {
	for {
		id, err := l.deaths.next()
		if err != nil {
			return
		}
		if b := l.box(id); b != nil {
			b.die()
		}
	}
}

func (l *Launcher) readied(err error) {
	select {
	case l.ready <- err:
	default:
	}
}

// err turns a refusal into an error.
func (r *Refused) err() error {
	e := &SetupError{Level: r.Level, Err: errors.New(r.Text)}
	switch {
	case r.NoSlot:
		e.Err = ErrNoSlot
	case r.Flat:
		e.Err = fmt.Errorf("%w: %s", ErrNoLayers, r.Text)
	case r.NoDisk:
		e.Err = fmt.Errorf("%s: %w", r.Text, unix.ENOSPC)
	}
	return e
}

// abandon ends the launcher, if it has not, and every box that it said nothing about.
func (l *Launcher) abandon() {
	l.mu.Lock()
	l.gone = true
	left := l.boxes
	l.boxes = map[uint64]*Box{}
	l.mu.Unlock()
	_ = l.process.conn.Close() // which ends it
	killer := time.AfterFunc(closePatience, func() { _ = l.process.cmd.Process.Kill() })
	err := l.process.cmd.Wait()
	killer.Stop()
	if err != nil {
		l.log(slog.LevelError, "the launcher of sandboxes has ended", "error", err)
	}
	for _, b := range left {
		b.orphaned()
	}
	_ = l.deaths.close() // nothing was written
	l.readied(ErrEnded)
}

// complain hands on what the launcher's runtime prints, which it does only when it breaks.
func (l *Launcher) complain() {
	defer func() { _ = l.process.stderr.Close() }()
	r := bufio.NewReaderSize(l.process.stderr, 4<<10)
	for range maxComplaints {
		line, err := r.ReadString('\n')
		if line != "" {
			l.log(slog.LevelError, "launcher of sandboxes", "prints", line)
		}
		if err != nil {
			return
		}
	}
	_, _ = io.Copy(io.Discard, r)
}

// maxComplaints bounds the lines of a launcher that breaks.
const maxComplaints = 200

func (l *Launcher) log(level slog.Level, text string, args ...any) {
	if l.cfg.Log != nil {
		l.cfg.Log.Log(context.Background(), level, text, args...)
	}
}

// Close kills every sandbox, waits until all are done, and ends the launcher. It may be called more than once.
func (l *Launcher) Close() error {
	l.mu.Lock()
	l.gone = true
	l.mu.Unlock()
	err := l.process.conn.CloseWrite()
	l.helpers.Wait()
	return err
}
