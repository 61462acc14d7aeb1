package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox/image"
)

// diskIn makes a disk in a folder's file system, which is attached nowhere, and returns its path for this process.
func diskIn(t *testing.T, in *os.File, limit forge.Bytes) (d *Disk, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	m := image.Maker{Start: (*exec.Cmd).Start}
	i, err := m.Make(in, limit)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return &Disk{Limit: limit, root: i.Watch, device: i.Device}, fmt.Sprintf("/proc/self/fd/%d", i.Mount.Fd())
}

func openFolder(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// The machine's own disk fills up behind the job's back, which hears nothing of it. Case T26.
func TestWhatDidNotReachTheDiskIsNotTrusted(t *testing.T) {
	outer, machine := diskIn(t, openFolder(t, t.TempDir()), 48*forge.MiB)
	d, job := diskIn(t, openFolder(t, machine), 32*forge.MiB)
	if err := os.WriteFile(job+"/early", make([]byte, 4*forge.MiB), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Syncfs(int(d.root.Fd())); err != nil {
		t.Fatal(err)
	}
	if err := d.Lost(); err != nil {
		t.Errorf("while all is well: %v", err)
	}
	left, _, err := outer.Room()
	if err != nil {
		t.Fatal(err)
	}
	_ = os.WriteFile(machine+"/ballast", make([]byte, left+forge.MiB), 0o600) // which fills it
	if err := os.WriteFile(job+"/late", make([]byte, 16*forge.MiB), 0o600); err != nil {
		t.Fatal(err)
	}
	late, err := os.Open(job + "/late")
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Fdatasync(int(late.Fd())) // as the kernel does in its time; a job that does so hears of it
	_ = late.Close()
	if err := d.Lost(); err == nil {
		t.Error("nobody hears that it was lost")
	}
}
