package disk

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A part that became read-only before its process ended is taken up again by who is not root, too.
func TestAPartThatNobodyMayWriteIsTakenUpByItsOwner(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "part")
	if err := os.WriteFile(path, []byte("all of it"), 0o444); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 { // files are looked at as somebody without rights would
		const nobody = 65534
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chown(d, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Setfsuid(0) }()
		if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			_ = f.Close()
			t.Fatal("the test cannot tell one from the other")
		}
	}
	f, err := (&system{}).resume(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
