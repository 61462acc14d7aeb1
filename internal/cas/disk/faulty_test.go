package disk

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// faulty is the file system of this machine, seen by a process that ends at a step, or with steps that fail. It keeps
// account of what was not flushed, which a power cut may take.
type faulty struct {
	system

	mu    sync.Mutex
	steps int
	end   int                // the step at which everything ends; 0: never
	fail  func(string) error // for a step by its name, or nil
	short bool               // writes take a part only
	bytes map[string]bool    // files whose bytes are not flushed
	names map[string]bool    // files whose names are not flushed
}

func newFaulty() *faulty {
	return &faulty{bytes: make(map[string]bool), names: make(map[string]bool)}
}

var errEnded = errors.New("the process has ended")

// step counts, and says whether it still happens.
func (f *faulty) step(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps++
	if f.end > 0 && f.steps >= f.end {
		return errEnded
	}
	if f.fail != nil {
		return f.fail(name)
	}
	return nil
}

func (f *faulty) note(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// cut takes what a power cut may take: half the bytes and all the names that were not flushed.
func (f *faulty) cut(t *testing.T) {
	t.Helper()
	for path := range f.bytes {
		if info, err := os.Stat(path); err == nil {
			err := errors.Join(os.Chmod(path, 0o600), os.Truncate(path, info.Size()/2), os.Chmod(path, info.Mode()))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for path := range f.names {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func (f *faulty) create(path string) (io.WriteCloser, error) {
	if err := f.step("create"); err != nil {
		return nil, err
	}
	w, err := f.system.create(path)
	if err != nil {
		return nil, err
	}
	f.note(func() { f.bytes[path] = true })
	return &faultyWriter{f, w}, nil
}

type faultyWriter struct {
	f *faulty
	w io.WriteCloser
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	if err := w.f.step("write"); err != nil {
		n, _ := w.w.Write(p[:len(p)/2]) // the half that came through
		return n, err
	}
	if w.f.short && len(p) > 1 {
		p = p[:len(p)/2]
	}
	return w.w.Write(p)
}

func (w *faultyWriter) Close() error { return errors.Join(w.f.step("close"), w.w.Close()) }

type faultyFile struct {
	f *faulty
	file
}

func (f *faulty) resume(path string) (file, error) {
	if err := f.step("resume"); err != nil {
		return nil, err
	}
	inner, err := f.system.resume(path)
	if err != nil {
		return nil, err
	}
	f.note(func() { f.bytes[path] = true })
	return &faultyFile{f, inner}, nil
}

func (f *faulty) open(path string) (object, error) {
	if err := f.step("open"); err != nil {
		return nil, err
	}
	inner, err := f.system.open(path)
	if err != nil {
		return nil, err
	}
	return &faultyObject{inner, f}, nil
}

// faultyObject is a file that is read.
type faultyObject struct {
	object
	f *faulty
}

func (o *faultyObject) Read(p []byte) (int, error) { return o.f.read(o.object, p) }

func (f *faulty) read(from io.Reader, p []byte) (int, error) {
	if err := f.step("read"); err != nil {
		return 0, err
	}
	if f.short && len(p) > 1 {
		p = p[:len(p)/2]
	}
	return from.Read(p)
}

func (w *faultyFile) Write(p []byte) (int, error) {
	if err := w.f.step("write"); err != nil {
		n, _ := w.file.Write(p[:len(p)/2])
		return n, err
	}
	return w.file.Write(p)
}

func (w *faultyFile) Read(p []byte) (int, error) { return w.f.read(w.file, p) }

func (w *faultyFile) Chmod(mode os.FileMode) error {
	if err := w.f.step("chmod"); err != nil {
		return err
	}
	return w.file.Chmod(mode)
}

func (w *faultyFile) Sync() error {
	if err := w.f.step("sync"); err != nil {
		return err
	}
	return w.file.Sync()
}

func (f *faulty) rename(from, to string) error {
	if err := f.step("rename"); err != nil {
		return err
	}
	if err := f.system.rename(from, to); err != nil {
		return err
	}
	f.note(func() {
		if f.bytes[from] {
			f.bytes[to] = true
		}
		delete(f.bytes, from)
		f.names[to] = true
	})
	return nil
}

func (f *faulty) remove(path string) error {
	if err := f.step("remove"); err != nil {
		return err
	}
	return f.system.remove(path)
}

func (f *faulty) mkdir(path string) error {
	if err := f.step("mkdir"); err != nil {
		return err
	}
	return f.system.mkdir(path)
}

func (f *faulty) syncFile(path string) error {
	if err := f.step("sync file"); err != nil {
		return err
	}
	f.note(func() { delete(f.bytes, path) })
	return nil
}

func (f *faulty) syncFolder(path string) error {
	if err := f.step("sync folder"); err != nil {
		return err
	}
	f.note(func() {
		maps.DeleteFunc(f.names, func(name string, _ bool) bool { return filepath.Dir(name) == path })
	})
	return nil
}

func (f *faulty) syncAll(string) error {
	if err := f.step("sync all"); err != nil {
		return err
	}
	f.note(func() { clear(f.bytes); clear(f.names) })
	return nil
}
