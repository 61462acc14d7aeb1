package launch_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// needImages skips where attempts have no disks of their own.
func needImages(t *testing.T, y *yard) {
	t.Helper()
	report := y.Report()
	if !report.Has(sandbox.LevelDiskImage) {
		t.Skip(report.Sorry(sandbox.LevelDiskImage))
	}
}

// onDisk gives an order a disk, on which it insists.
func onDisk(limit forge.Bytes, o *sandbox.Order) {
	o.Limits.Disk = limit
	o.Need = append(o.Need, sandbox.LevelDiskImage)
}

const disk = 64 * forge.MiB

// Case B87: not one file system block beyond the limit, wherever it is written.
func TestAJobIsToldThatItsDiskIsFullAtItsLimit(t *testing.T) {
	y := open(t, nil)
	needImages(t, y)
	for _, place := range []string{"/work/big", "/tmp/big", "/work/home/big", "/work/source/big"} {
		t.Run(place, func(t *testing.T) {
			tree := treeOfTests(t, "source")
			before := allocated(t, filepath.Dir(tree))
			r := y.make(fmt.Sprintf(`set -e
				head -c %d /dev/zero >%s
				head -c %d /dev/zero >>%s 2>/work/said && exit 7
				grep -q 'No space left' /work/said || : # there may be no room for that either
				stat -c %%s %s; exit 5`, disk, place, forge.MiB, place, place), func(o *sandbox.Order) {
				onDisk(disk, o)
				o.Layers = []sandbox.Layer{{Mount: "source", Folder: tree, Writable: true}}
			})
			end := r.wait(t)
			size, err := strconv.ParseInt(strings.TrimSpace(r.output()), 10, 64)
			if end.Exit != 5 || err != nil || size < int64(disk) || size >= int64(disk+forge.MiB) {
				t.Errorf("%+v, %q", end, r.output())
			}
			if left, _, err := r.Disk().Room(); err != nil || left > 0 || r.Disk().Limit != disk {
				t.Errorf("%v are left of %v, %v", left, r.Disk().Limit, err)
			}
			if after := allocated(t, filepath.Dir(tree)); after != before {
				t.Errorf("the folders of the machine take %d bytes more", after-before)
			}
			must(t, r.Close())
		})
	}
}

// allocated is what a folder takes of the machine's disk.
func allocated(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	must(t, filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil {
			bytes += statOf(info).Blocks * 512
		}
		return err
	}))
	return bytes
}

func TestAJobWithoutADiskIsNotHeldBack(t *testing.T) { // the control of the above
	y := open(t, nil)
	r := y.make(fmt.Sprintf("head -c %d /dev/zero >big && stat -c %%s big", disk+forge.MiB), nil)
	if end := r.wait(t); end.Exit != 0 || r.output() != fmt.Sprintf("%d\n", disk+forge.MiB) || r.Disk() != nil {
		t.Errorf("%+v, %q, %v", end, r.output(), r.Disk())
	}
}

func TestNamesOnADiskAreBoundedToo(t *testing.T) {
	y := open(t, nil)
	needImages(t, y)
	r := y.make(`python3 -c '
import errno, os
n = 0
try:
    while n < 1000000:
        os.close(os.open("f%d" % n, os.O_CREAT | os.O_WRONLY)); n += 1
except OSError as e:
    print(n, errno.errorcode[e.errno])
'`, func(o *sandbox.Order) { onDisk(disk, o) })
	end := r.wait(t)
	var n int
	var why string
	_, err := fmt.Sscan(r.output(), &n, &why)
	most := int(disk / 4096)
	if end.Exit != 0 || err != nil || why != "ENOSPC" || n > most || n < most*9/10 {
		t.Errorf("%+v: %q, at most %d", end, r.output(), most)
	}
	if _, names, err := r.Disk().Room(); err != nil || names > 0 {
		t.Errorf("%d names are left, %v", names, err)
	}
	must(t, r.Close())
}

// What the folder held before is there, with its modes; so are layers, and what was written is read when all is dead.
func TestADiskHoldsWhatTheFolderHeldAndKeepsWhatTheJobWrote(t *testing.T) {
	y := open(t, nil)
	needImages(t, y)
	needOverlay(t, y)
	source, vendor := treeOfTests(t, "source"), treeOfTests(t, "vendor")
	before := [2]digest.Digest{fingerprint(t, source), fingerprint(t, vendor)}
	var folder string
	r := y.make(`set -e
		cat made/of/agent; stat -c '%u %a' made/of/agent made/of
		cd source; ./link; echo more >>file; rm -r sub/deep; mkdir sub/deep; echo new >sub/deep/new; mv sub moved
		stat -c '%u:%g' . file moved
		! (echo x >/work/vendor/file) 2>/dev/null
		python3 -c 'import random; random.seed(7); open("/work/big", "wb").write(random.randbytes(20000000))'
		sha256sum </work/big`, func(o *sandbox.Order) {
		onDisk(disk, o)
		folder = o.Folder
		must(t, os.MkdirAll(filepath.Join(folder, "made/of"), 0o750))
		must(t, os.WriteFile(filepath.Join(folder, "made/of/agent"), []byte("before\n"), 0o640))
		o.Layers = []sandbox.Layer{{Mount: "source", Folder: source, Writable: true}, {Mount: "vendor", Folder: vendor}}
	})
	end := r.wait(t)
	lines := strings.Split(r.output(), "\n")
	if end.Exit != 0 || len(lines) != 9 || strings.Join(lines[:7], ",") != "before,1000 640,1000 750,tool of source,1000:1000,1000:1000,1000:1000" {
		t.Fatalf("%+v\n%s", end, r.output())
	}
	root, err := r.Files()
	must(t, err)
	for name, want := range map[string]string{
		"made/of/agent": "before\n", "source/file": "source\nmore\n", "source/moved/deep/new": "new\n", "vendor/file": "vendor\n",
	} {
		if got, err := root.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	big, err := root.ReadFile("big")
	if err != nil || sha256Of(big)+"  -" != lines[7] {
		t.Errorf("20 MB are read as %d with the sum %s, %v; it was %s", len(big), sha256Of(big), err, lines[7])
	}
	if err := root.WriteFile("big", nil, 0o600); err == nil {
		t.Error("the agent's view can be written")
	}
	if _, err := os.Lstat(filepath.Join(folder, "big")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was written is in the machine's folder: %v", err)
	}
	must(t, errors.Join(root.Close(), r.Close()))
	if after := [2]digest.Digest{fingerprint(t, source), fingerprint(t, vendor)}; after != before {
		t.Error("a folder below a layer has changed")
	}
}

func TestTwoDisksAtOnceAreTwo(t *testing.T) {
	y := open(t, nil)
	needImages(t, y)
	script := func(fill string) string {
		return fmt.Sprintf("echo here; read x </dev/null; head -c %s /dev/zero >big; stat -c %%s big", fill)
	}
	full := y.make(script("200M"), func(o *sandbox.Order) { onDisk(disk, o) })
	other := y.make(script("50M"), func(o *sandbox.Order) { onDisk(disk, o) })
	if end := other.wait(t); end.Exit != 0 || !strings.HasSuffix(other.output(), "\n52428800\n") {
		t.Errorf("the one that keeps to its limit: %+v, %s", end, other.output())
	}
	full.wait(t)
	if left, _, err := full.Disk().Room(); err != nil || left > 0 {
		t.Errorf("the other has %v left, %v", left, err)
	}
	must(t, errors.Join(full.Close(), other.Close()))
}

// What a job may not have and cannot get must not be waited for: the machine's disk is smaller than the limit.
func TestADiskThatTheMachineHasNoRoomForIsNotMade(t *testing.T) {
	y := open(t, nil)
	needImages(t, y)
	o, begin := y.order(task{Argv: []string{"/bin/true"}})
	var s unix.Statfs_t
	must(t, unix.Statfs(o.Folder, &s))
	o.Limits.Disk = forge.Bytes(s.Bavail)*forge.Bytes(s.Bsize) + forge.GiB
	b, err := y.Make(t.Context(), o)
	must(t, err)
	if r := begin(b); r.wait(t).Exit != 0 || r.Disk() != nil {
		t.Errorf("%+v, %v", r.End(), r.Disk())
	}
	o, _ = y.order(task{Argv: []string{"/bin/true"}})
	o.Limits.Disk = 8192 * forge.TiB
	o.Need = []sandbox.Level{sandbox.LevelDiskImage}
	if b, err := y.Make(t.Context(), o); err == nil || !strings.Contains(err.Error(), "disk-image") {
		t.Errorf("%v, %v", b, err)
	}
}

// images lists the files behind loop devices that have no name any more, which are those of disks.
func images(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	must(t, err)
	var found []string
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			found = append(found, filepath.Base(filepath.Dir(filepath.Dir(path)))+": "+strings.TrimSpace(string(text)))
		}
	}
	return found
}

// behind lists those in a folder.
func behind(t *testing.T, dir string) (found []string) {
	t.Helper()
	for _, image := range images(t) {
		if strings.Contains(image, dir) {
			found = append(found, image)
		}
	}
	return found
}

// 07§137, case B12.
func TestNothingIsLeftOfTheDisksOfAKilledAgentOrLauncher(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has disks for attempts")
	}
	for _, what := range []string{"agent", "launcher", "both", "nobody"} {
		t.Run(what, func(t *testing.T) {
			l := life{Pool: 2, Disk: disk, Script: `head -c 40M /dev/zero >big; ` + forever}
			a := l.start(t, 0)
			if line := a.hear("opened"); !strings.Contains(line, string(sandbox.LevelDiskImage)) {
				t.Skip("attempts have no disks of their own here")
			}
			a.hear("running")
			base := filepath.Dir(a.life.State)
			if got := behind(t, base); len(got) == 0 {
				t.Errorf("its disk is not to be seen: %v", images(t))
			}
			eventually(t, "two further disks wait", func() bool { return len(behind(t, base)) == 3 })
			launcher := launcherOf(a.life.State)
			if what == "launcher" || what == "both" {
				signal(t, launcher, unix.SIGKILL)
			}
			if what == "agent" || what == "both" {
				a.kill(t)
			} else {
				_ = a.in.Close()
			}
			eventually(t, "no disk is left", func() bool { return len(behind(t, base)) == 0 })
			mounts, err := os.ReadFile("/proc/self/mountinfo")
			must(t, err)
			if strings.Contains(string(mounts), base) {
				t.Errorf("mounts are left:\n%s", mounts)
			}
			must(t, os.RemoveAll(a.life.Folder))
		})
	}
}

func sha256Of(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }
