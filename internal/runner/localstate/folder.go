// Package localstate is the state folder of an agent: what one process leaves for the next, and what keeps two of them
// apart.
//
//	lock         held while a process lives: a folder has one owner
//	identity     the folder's id, what it is bound to, and how often a process has started on it
//	journal/     one small file for each attempt of which anything is left
//	quarantine/  files that could not be read, set aside and never believed
//
// Other packages keep their own files beside these: keys and certificates, workspaces, spools.
//
// The identity names this very folder. It holds only together with the folder's inode number and birth time, so a
// copy has another one, and a daemon can tell a restart from a clone. Where a file system knows no birth time, its own
// id stands in: then a copy on the same file system still differs by its inode, and one on another by that id.
// A whole disk that was copied block by block cannot be told apart here; the daemon sees its other boot.
//
// The journal is a help and never an authority (07§39). It holds no secret.
//
// A Folder starts no goroutine. Its methods are called by one goroutine at a time.
package localstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// ErrInUse is returned by Open where another process holds the folder.
var ErrInUse = errors.New("localstate: another agent process runs on this state folder")

// The names in the folder.
const (
	lockName       = "lock"
	identityName   = "identity"
	journalName    = "journal"
	quarantineName = "quarantine"
	tempPrefix     = ".tmp-"
)

// maxQuarantined is how many files are set aside at most; of more, the newest are not kept.
const maxQuarantined = 64

// Folder is a state folder that this process holds.
type Folder struct {
	path     string
	lock     *os.File
	identity identity
	boot     forge.BootID
	setAside []Quarantined
	fault    func(point string) error // for tests: called where a crash could come, and ends the write as one would
}

// Quarantined is a file that was not believed.
type Quarantined struct {
	File string // where it is now, within the folder; empty if it was not kept
	Err  error
}

// Open takes the folder for this process, makes it if it is not there, and counts the start. The count is on the disk
// before Open returns. The error is ErrInUse while another process lives.
func Open(path string) (*Folder, error) { return open(path, nil) }

func open(path string, fault func(string) error) (f *Folder, err error) {
	path, err = prepare(path)
	if err != nil {
		return nil, err
	}
	lock, err := takeLock(filepath.Join(path, lockName))
	if err != nil {
		return nil, err
	}
	f = &Folder{path: path, lock: lock, fault: fault}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	for _, name := range []string{journalName, quarantineName} {
		if err := os.MkdirAll(filepath.Join(path, name), 0o700); err != nil {
			return nil, fmt.Errorf("open state folder: %w", err)
		}
	}
	if err := f.sweepTemps(); err != nil {
		return nil, err
	}
	if err := f.start(); err != nil {
		return nil, err
	}
	f.boot, err = bootID()
	return f, err
}

// takeLock opens a file and locks it until it is closed, also by the end of the process.
func takeLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state folder: %w", err)
	}
	err = disk.Lock(file)
	switch {
	case err == nil:
		return file, nil
	case errors.Is(err, disk.ErrLocked):
		err = fmt.Errorf("%w: %s", ErrInUse, path)
	default:
		err = fmt.Errorf("lock state folder: %w", err)
	}
	return nil, errors.Join(err, file.Close())
}

// prepare makes the folder, private to its owner. One of another user, who could put anything into it, is refused.
func prepare(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("open state folder: %w", err)
	}
	if err := disk.PrivateFolder(path); err != nil {
		return "", fmt.Errorf("open state folder: %w", err)
	}
	return path, nil
}

// sweepTemps removes what writes that were cut off have left.
func (f *Folder) sweepTemps() error {
	for _, dir := range []string{f.path, f.in(journalName)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("open state folder: %w", err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), tempPrefix) {
				if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("open state folder: %w", err)
				}
			}
		}
	}
	return nil
}

func (f *Folder) in(name ...string) string {
	return filepath.Join(append([]string{f.path}, name...)...)
}

// Path is where the folder is, absolute.
func (f *Folder) Path() string { return f.path }

// ID names the folder.
func (f *Folder) ID() forge.StateFolderID { return f.identity.folder }

// Starts is how many processes have started on this folder, this one included.
func (f *Folder) Starts() uint64 { return f.identity.starts }

// Boot names the boot of the host. Where the system does not tell, it is another one for each process: then nothing of
// an earlier process is taken for dead before its lease has expired.
func (f *Folder) Boot() forge.BootID { return f.boot }

// Quarantined lists what was set aside since Open.
func (f *Folder) Quarantined() []Quarantined { return f.setAside }

// Close gives the folder back. Idempotent.
func (f *Folder) Close() error {
	if f.lock == nil {
		return nil
	}
	err := f.lock.Close() // the lock goes with the descriptor; the file stays, so that all lock the same one
	f.lock = nil
	return err
}

// quarantine sets a file aside.
func (f *Folder) quarantine(path string, why error) {
	q := Quarantined{Err: fmt.Errorf("%s: %w", filepath.Base(path), why)}
	defer func() { f.setAside = append(f.setAside, q) }()
	if kept, err := os.ReadDir(f.in(quarantineName)); err == nil && len(kept) < maxQuarantined {
		to := fmt.Sprintf("%s.%d.%d", filepath.Base(path), f.identity.starts, len(f.setAside))
		if err := os.Rename(path, f.in(quarantineName, to)); err == nil {
			q.File = filepath.Join(quarantineName, to)
			return
		}
	}
	if err := os.RemoveAll(path); err != nil {
		q.Err = errors.Join(q.Err, err)
	}
}
