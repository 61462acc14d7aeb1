package cgroup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

const (
	markBytes   = 6 // of the hash that is the mark
	folderWord  = "forgeyard-"
	agentSuffix = ".agent"
	maxClaims   = 8 // tries to make a folder while others sweep
)

// find looks for control groups in which this process may make groups.
func find(cfg Config, mark string) hierarchy {
	if cgroups.IsCgroup2UnifiedMode() {
		return findV2(cfg, mark)
	}
	return findV1(mark)
}

// markOf makes the mark of an agent's state folder: of its path, and of which file that is, so
// that two containers that share a kernel and a habit differ.
func markOf(state string) (string, error) {
	path, err := filepath.Abs(state)
	if err != nil {
		return "", fmt.Errorf("state folder: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("state folder: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", fmt.Errorf("state folder %s: %w", path, err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", path, st.Dev, st.Ino))
	return hex.EncodeToString(sum[:markBytes]), nil
}

// folder is the name of the folder below which an agent's groups are.
func folder(mark string) string { return folderWord + mark }

// claim makes a folder for groups, or takes over one that an earlier agent made, and holds a
// lock on it for as long as the file is open: whoever could lock it alone knows that its owner
// is dead. The lock goes with the process, however that ends.
func claim(dir string, magic int64) (*os.File, error) {
	for range maxClaims {
		if err := folderIn(dir, magic); err != nil {
			return nil, err
		}
		f, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // Somebody sweeps.
		}
		if err != nil {
			return nil, err
		}
		if err := flock(f, unix.LOCK_SH); err == nil && still(f, dir) {
			return f, nil
		}
		_ = f.Close()
	}
	return nil, fmt.Errorf("%s is removed again and again", dir)
}

// folderIn makes a folder in a cgroup, or finds that it is there, and says whether groups can
// be made below it. The parent must be a cgroup: a path that is computed from a container's
// view may end elsewhere.
func folderIn(dir string, magic int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(dir), &st); err != nil {
		return fmt.Errorf("%s: %w", filepath.Dir(dir), err)
	}
	if int64(st.Type) != magic {
		return fmt.Errorf("%s is not a control group", filepath.Dir(dir))
	}
	err := os.Mkdir(dir, dirMode)
	if errors.Is(err, fs.ErrExist) {
		err = unix.Access(dir, unix.W_OK)
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err // The path is said below, shorter.
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no right to make groups in %s: %w", filepath.Dir(dir), err)
	}
	return nil
}

// flock locks an open folder.
func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// still says whether a path leads to an open folder.
func still(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(open, now)
}

// release lets the folders go. They can be swept from then on.
func (h *hierarchy) release() error {
	var errs []error
	for _, f := range h.held {
		if err := f.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// discard undoes the finding of a place that gives nothing.
func (h *hierarchy) discard() {
	_ = h.release()
	for _, base := range h.base {
		_ = os.Remove(base) // It stays when it was another's and is in use.
	}
	h.report.Version, h.report.Parent = None, ""
}

// denied is a report in which nothing is given, for one reason.
func denied(why, mend string) Report {
	no := Grant{Why: why, Mend: mend}
	return Report{Memory: no, Swap: no, CPU: no, Pids: no, Freeze: no}
}
