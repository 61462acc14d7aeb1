package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Measure adds up what is in a folder, on its own file system, while others may be at work in it: what comes and goes
// meanwhile may count or not. No link is followed. It returns what it has counted so far when ctx ends, with the cause.
func Measure(ctx context.Context, dir string) (Size, error) {
	var s Size
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return s, fmt.Errorf("measure %s: %w", dir, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return s, errors.Join(fmt.Errorf("measure %s: %w", dir, err), unix.Close(fd))
	}
	m := meter{size: &s, disk: st.Dev}
	if err := m.folder(ctx, fd, 1); err != nil {
		return s, fmt.Errorf("measure %s: %w", dir, err)
	}
	return s, nil
}

// meter measures one folder.
type meter struct {
	size *Size
	disk uint64
}

// folder counts what is in an open folder, which it closes. Only the end of ctx is an error.
func (m *meter) folder(ctx context.Context, fd, depth int) error {
	f := os.NewFile(uintptr(fd), "measured")
	defer func() { _ = f.Close() }()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		names, err := f.Readdirnames(256)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				m.size.Blind++
			}
			return nil
		}
		for _, name := range names {
			if err := m.name(ctx, int(f.Fd()), name, depth); err != nil {
				return err
			}
		}
	}
}

func (m *meter) name(ctx context.Context, in int, name string, depth int) error {
	var st unix.Stat_t
	if unix.Fstatat(in, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil // it has gone
	}
	bytes := uint64(st.Blocks) * 512
	folder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !folder && st.Nlink > 1 {
		bytes /= uint64(st.Nlink)
	}
	m.size.Bytes += bytes
	m.size.Files++
	if !folder || st.Dev != m.disk {
		return nil
	}
	if depth == maxMeasured {
		m.size.Blind++
		return nil
	}
	fd, err := unix.Openat(in, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // it has gone
	case err != nil:
		m.size.Blind++
		return nil
	}
	return m.folder(ctx, fd, depth+1)
}
