package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/image"
)

// disks are the file systems that attempts have for themselves. Some wait ready for orders like the last one: to make one
// takes several times as long as all the rest of an order.
type disks struct {
	maker  image.Maker
	most   int
	wanted chan struct{} // takes one

	mu    sync.Mutex
	like  diskKey
	in    *os.File // the folder where those that wait were made; nil before the first
	ready []*image.Image
}

// diskKey says for which orders a disk is.
type diskKey struct {
	device uint64 // of the machine, where it lies
	limit  forge.Bytes
}

// errNoDisk says that an attempt cannot have a disk of its own now, and must do without.
var errNoDisk = errors.New("no disk of its own")

// newDisks makes none yet. Its goroutine ends with the process.
func newDisks(c *cloner, most int) *disks {
	d := &disks{maker: image.Maker{Start: c.help}, most: most, wanted: make(chan struct{}, 1)}
	go d.fill()
	return d
}

// help starts a program that ends with the launcher.
func (c *cloner) help(cmd *exec.Cmd) (err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan struct{})
	c.jobs <- func() {
		defer close(done)
		err = cmd.Start()
	}
	<-done
	return err
}

// take returns a disk in the folder above an attempt's, where the machine has all the room that the attempt may want. An
// error of the kind errNoDisk says that it does not.
func (d *disks) take(folder string, limit forge.Bytes) (*image.Image, error) {
	if limit < image.MinLimit || limit > image.MaxLimit {
		return nil, fmt.Errorf("%w: one has %v to %v, and not %v", errNoDisk, image.MinLimit, image.MaxLimit, limit)
	}
	in, err := openFolder(filepath.Dir(folder))
	if err != nil {
		return nil, err
	}
	key, err := keyOf(in, limit)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	ready := d.pop(in, key)
	d.refill()
	if ready != nil {
		return ready, nil
	}
	defer func() { _ = in.Close() }()
	return d.maker.Make(in, limit)
}

// keyOf looks at the disk of a folder.
func keyOf(in *os.File, limit forge.Bytes) (diskKey, error) {
	var st unix.Stat_t
	var s unix.Statfs_t
	if err := errors.Join(unix.Fstat(int(in.Fd()), &st), unix.Fstatfs(int(in.Fd()), &s)); err != nil {
		return diskKey{}, err
	}
	if left := forge.Bytes(s.Bavail) * forge.Bytes(s.Bsize); left < limit {
		return diskKey{}, fmt.Errorf("%w: the machine's own has %v left, and the limit is %v", errNoDisk, left, limit)
	}
	return diskKey{st.Dev, limit}, nil
}

// pop returns a disk that waits. From now on those wait that are like it: in is kept for them if it returns one.
func (d *disks) pop(in *os.File, key diskKey) *image.Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.like != key {
		d.drop()
		d.like = key
	}
	if d.in == nil {
		if again, err := unix.FcntlInt(in.Fd(), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			d.in = os.NewFile(uintptr(again), in.Name())
		}
	}
	if len(d.ready) == 0 {
		return nil
	}
	_ = in.Close()
	last := len(d.ready) - 1
	found := d.ready[last]
	d.ready = d.ready[:last]
	return found
}

// drop gives up all that wait. It needs mu.
func (d *disks) drop() {
	for _, image := range d.ready {
		_ = image.Close()
	}
	d.ready = nil
	if d.in != nil {
		_ = d.in.Close()
		d.in = nil
	}
}

// refill has disks made, when what was just ordered has had its turn.
func (d *disks) refill() {
	select {
	case d.wanted <- struct{}{}:
	default:
	}
}

// fill makes disks that wait.
func (d *disks) fill() {
	for range d.wanted {
		time.Sleep(refillPause)
		for d.add() {
		}
	}
}

// add makes one, unless there are enough, or there cannot be one now: the next order tries again.
func (d *disks) add() bool {
	d.mu.Lock()
	key, in, enough := d.like, d.in, d.in == nil || len(d.ready) >= d.most
	if !enough {
		again, err := unix.FcntlInt(in.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		in, enough = os.NewFile(uintptr(again), in.Name()), err != nil
	}
	d.mu.Unlock()
	if enough {
		return false
	}
	made, err := d.maker.Make(in, key.limit)
	_ = in.Close()
	if err != nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.like != key || len(d.ready) >= d.most {
		_ = made.Close()
		return d.like != key
	}
	d.ready = append(d.ready, made)
	return true
}

// try makes a small one beside the launcher's records, to see whether that can be done here.
func (d *disks) try(state string) error {
	in, err := os.Open(state)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	made, err := d.maker.Make(in, image.MinLimit)
	if err != nil {
		return err
	}
	return made.Close()
}

// disk returns the disk that an order is to have, or nil where it has none of its own. Its error is where it must have one.
func (c *cell) disk(e *errand) (*image.Image, error) {
	if e.Limits.Disk == 0 || !c.l.report.Has(sandbox.LevelDiskImage) {
		return nil, nil
	}
	made, err := c.l.disks.take(e.Folder, e.Limits.Disk)
	if err == nil {
		return made, nil
	}
	for _, level := range e.Need {
		if level == sandbox.LevelDiskImage {
			return nil, fmt.Errorf("wall %q: %w", level, err)
		}
	}
	if !errors.Is(err, errNoDisk) {
		c.l.notice("a sandbox does without a disk of its own: %v", err)
	}
	return nil, nil
}

// maxMirrored bounds what an attempt's folder holds before its disk does.
const maxMirrored = 100_000

// mirror makes in a new file system what there is in an attempt's folder: folders, and small files of the agent's.
func mirror(folder, disk *os.File) error {
	from, err := os.OpenRoot(handle(folder))
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenRoot(handle(disk))
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	n := 0
	return fs.WalkDir(from.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if n++; n > maxMirrored {
			return fmt.Errorf("more than %d files are in it already", maxMirrored)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return mirrorOne(from, to, name, info)
	})
}

func mirrorOne(from, to *os.Root, name string, info fs.FileInfo) error {
	var err error
	switch {
	case name == ".":
	case info.IsDir():
		err = to.Mkdir(name, 0o700)
	case info.Mode().IsRegular():
		var content []byte
		if content, err = from.ReadFile(name); err == nil {
			err = to.WriteFile(name, content, 0o600)
		}
	default:
		err = fmt.Errorf("%s is neither a file nor a folder", name)
	}
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && (st.Uid != 0 || st.Gid != 0) {
		if err := to.Lchown(name, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	return to.Chmod(name, info.Mode().Perm())
}
