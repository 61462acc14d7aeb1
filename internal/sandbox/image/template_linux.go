package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

const (
	blockBytes = 4096
	inodeBytes = 256
	maxInodes  = 1 << 24
	minInodes  = 256
	// names is how many bytes of a limit there is a name for: as many as files with something in them have room.
	nameBytes = blockBytes
	// What an image has beyond its limit when it is made: the folders of an attempt are in it before its first step.
	spare = 256 * forge.KiB
	// maxRounds bounds how often mkfs is asked, until what it makes has the size that is wanted.
	maxRounds    = 6
	maxTemplates = 4
	mkfsWithin   = time.Minute
	maxSaid      = 1 << 10 // bytes of what mkfs prints
)

// template is what mkfs writes for a limit: a sparse file in memory.
type template struct {
	limit forge.Bytes
	file  *os.File
	size  int64
}

// template returns the one for a limit, which it makes if there is none. It needs mu.
func (m *Maker) template(limit forge.Bytes) (*template, error) {
	for i, t := range m.templates {
		if t.limit == limit {
			m.templates = append(append(m.templates[:i:i], m.templates[i+1:]...), t)
			return t, nil
		}
	}
	t, err := m.format(limit)
	if err != nil {
		return nil, err
	}
	if len(m.templates) == maxTemplates {
		m.templates = m.templates[1:] // somebody may be copying it: the runtime closes its file
	}
	m.templates = append(m.templates, t)
	return t, nil
}

// format has mkfs make a template that holds the limit. How much of a size the file system takes for itself only the kernel
// says, so it is asked. That jumps where one more group of blocks begins, so that an image may have more room than it is to have.
func (m *Maker) format(limit forge.Bytes) (*template, error) {
	size, more := firstSize(limit), int64(spare)
	for range maxRounds {
		t, room, err := m.formatted(limit, size)
		if err != nil {
			return nil, err
		}
		if room >= limit+spare {
			return t, nil
		}
		_ = t.file.Close() // it is in memory
		size += int64(limit+spare-room) + more
		size -= size % blockBytes
		more *= 4
	}
	return nil, errors.New("mkfs.ext4 makes none of this size")
}

// formatted returns a template of a size, and the room in it.
func (m *Maker) formatted(limit forge.Bytes, size int64) (t *template, room forge.Bytes, err error) {
	fd, err := unix.MemfdCreate("template", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, 0, fmt.Errorf("file in memory: %w", err)
	}
	t = &template{limit: limit, file: os.NewFile(uintptr(fd), "template"), size: size}
	if err = t.file.Truncate(size); err == nil {
		err = m.mkfs(t)
	}
	if err == nil {
		room, err = t.room()
	}
	if err != nil {
		return nil, 0, errors.Join(err, t.file.Close())
	}
	return t, room, nil
}

// inodes is how many names an image has for a limit.
func inodes(limit forge.Bytes) int64 { return int64(min(max(limit/nameBytes, minInodes), maxInodes)) }

// journal is the size of an image's journal.
func journal(limit forge.Bytes) forge.Bytes {
	if limit < 256*forge.MiB {
		return 4 * forge.MiB
	}
	return 32 * forge.MiB
}

// firstSize is about the size that an image for a limit has.
func firstSize(limit forge.Bytes) int64 {
	const (
		group     = 128 * forge.MiB // of blocks, which has two blocks for what is free
		reserved  = 16 * forge.MiB  // by the kernel at most, or one part in fifty
		bookkeeps = 3 * blockBytes
	)
	size := limit + 2*spare + journal(limit) + forge.Bytes(inodes(limit)*inodeBytes)
	size += size / group * bookkeeps
	size += min(reserved, size/49) + 64*forge.KiB
	return int64(size - size%blockBytes)
}

// features are all that the file systems have, whatever the machine's own defaults are.
const features = "none,has_journal,ext_attr,dir_index,filetype,extent,64bit,flex_bg,sparse_super,large_file,huge_file,dir_nlink,extra_isize,uninit_bg"

// mkfs formats a template.
func (m *Maker) mkfs(t *template) error {
	program, err := Program()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), mkfsWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-q", "-F", "-b", strconv.Itoa(blockBytes), "-I", strconv.Itoa(inodeBytes),
		"-N", strconv.FormatInt(inodes(t.limit), 10), "-m", "0", "-O", features, "-J", "size="+strconv.Itoa(int(journal(t.limit)/forge.MiB)),
		"-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", "/proc/self/fd/3")
	cmd.Args[0] = "mke2fs" // by the other name it looks for a configuration of that
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "MKE2FS_CONFIG=/dev/null", "LC_ALL=C"}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{t.file}
	said, printed, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = said.Close() }()
	cmd.Stdout, cmd.Stderr = printed, printed
	err = m.Start(cmd)
	_ = printed.Close()
	if err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	text, _ := io.ReadAll(io.LimitReader(said, maxSaid))
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(string(text)))
	}
	return nil
}

// Program finds mkfs.ext4.
func Program() (string, error) {
	for _, folder := range []string{"/usr/sbin", "/sbin", "/usr/bin", "/usr/local/sbin"} {
		path := folder + "/mkfs.ext4"
		if unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", ErrNoProgram
}

// ErrNoProgram says that this machine cannot format.
var ErrNoProgram = errors.New("there is no mkfs.ext4")

// room is what a file system of the template has for files.
func (t *template) room() (forge.Bytes, error) {
	device, err := attach(t.file, unix.LO_FLAGS_READ_ONLY)
	if err != nil {
		return 0, err
	}
	defer func() { _ = device.Close() }()
	mounted, err := mountDevice(device, "ro")
	if err != nil {
		return 0, err
	}
	defer func() { _ = mounted.Close() }()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(mounted.Fd()), &s); err != nil {
		return 0, err
	}
	return forge.Bytes(s.Bavail) * forge.Bytes(s.Bsize), nil
}

// copyTo makes an empty file what the template is, sparse as it is.
func (t *template) copyTo(to *os.File) error {
	if err := to.Truncate(t.size); err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	from := int(t.file.Fd())
	for at := int64(0); ; {
		begin, err := unix.Seek(from, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		if err != nil {
			return err
		}
		if at, err = unix.Seek(from, begin, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := io.CopyBuffer(io.NewOffsetWriter(to, begin), onlyReads{io.NewSectionReader(t.file, begin, at-begin)}, buffer); err != nil {
			return err
		}
	}
}

// onlyReads keeps package io from asking for another way to copy.
type onlyReads struct{ io.Reader }
