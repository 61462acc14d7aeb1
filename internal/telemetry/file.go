package telemetry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Bounds of a log file.
const (
	// MinFileBytes is the least size at which a file may be rotated: below it a file would hold a few records.
	MinFileBytes = 4 << 10
	// MaxFilesKept bounds how many rotated files may stand beside the current one.
	MaxFilesKept = 100
)

// A File is a log file with a bound: when it is full it is renamed to name.1, the one before to name.2 and so on, and
// those past the number to keep are deleted. Together they never take more than (keep+1) × max bytes, whatever is written
// and whatever fails: what cannot be written is lost, never the disk (case B59).
//
// It may be used by many goroutines. Only one File of a name may be open, in all processes.
type File struct {
	name string
	max  int64
	keep int

	mu   sync.Mutex
	file *os.File // nil once closed, or while it could not be opened
	size int64
	done bool
}

// OpenFile opens or creates a log file with mode 0600 and appends to it. maxBytes bounds each file, keep is how many old
// ones stay. The caller closes it.
func OpenFile(name string, maxBytes int64, keep int) (*File, error) {
	if maxBytes < MinFileBytes {
		return nil, fmt.Errorf("log file %s: %d bytes a file are too few, at least %d are needed", name, maxBytes, MinFileBytes)
	}
	if keep < 0 || keep > MaxFilesKept {
		return nil, fmt.Errorf("log file %s: cannot keep %d old files, only 0 to %d", name, keep, MaxFilesKept)
	}
	f := &File{name: name, max: maxBytes, keep: keep}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.openLocked(os.O_APPEND); err != nil {
		return nil, err
	}
	f.sweepLocked()
	return f, nil
}

// Write appends one record. A record longer than a whole file is cut. After an error the record is lost and the next
// Write tries anew.
func (f *File) Write(record []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done {
		return 0, fs.ErrClosed
	}
	cut := record[:min(int64(len(record)), f.max)]
	if err := f.makeRoomLocked(int64(len(cut))); err != nil {
		return 0, err
	}
	n, err := f.file.Write(cut)
	f.size += int64(n)
	if err != nil {
		return n, fmt.Errorf("log file: %w", err)
	}
	return len(record), nil
}

// Close closes the file. Closing again does nothing.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = true
	return f.closeLocked()
}

func (f *File) makeRoomLocked(n int64) error {
	if f.file == nil {
		if err := f.openLocked(os.O_APPEND); err != nil {
			return err
		}
	}
	if f.size+n <= f.max {
		return nil
	}
	return f.rotateLocked()
}

// rotateLocked starts an empty file. Where the old one cannot be moved away it is emptied: the bound is worth more than
// the records.
func (f *File) rotateLocked() error {
	if err := f.closeLocked(); err != nil {
		return err
	}
	if f.keep > 0 {
		for i := f.keep; i > 1; i-- {
			// A gap in the row of old files is not an error, and a file that cannot be moved is overwritten or stays.
			_ = os.Rename(f.old(i-1), f.old(i))
		}
		_ = os.Rename(f.name, f.old(1))
	}
	return f.openLocked(os.O_TRUNC)
}

// sweepLocked deletes old files past the number to keep, left by an earlier configuration.
func (f *File) sweepLocked() {
	for i := f.keep + 1; i <= MaxFilesKept; i++ {
		_ = os.Remove(f.old(i)) // most are not there; one that cannot be removed is no reason not to start
	}
}

func (f *File) openLocked(how int) error {
	if err := os.MkdirAll(filepath.Dir(f.name), 0o700); err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	file, err := os.OpenFile(f.name, os.O_CREATE|os.O_WRONLY|how, 0o600)
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("log file: %w", err), file.Close())
	}
	f.file, f.size = file, info.Size()
	return nil
}

func (f *File) closeLocked() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	if err != nil {
		return fmt.Errorf("log file: %w", err)
	}
	return nil
}

func (f *File) old(i int) string { return fmt.Sprintf("%s.%d", f.name, i) }
