package launch_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// treeOfTests makes a folder as the cache of trees has them.
func treeOfTests(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for _, d := range []string{"", "sub", "sub/deep"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte(name+"\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "sub", "tool"), []byte("#!/bin/sh\necho tool of "+name+"\n"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "sub", "deep", "gone"), []byte("gone"), 0o644))
	must(t, os.Symlink("sub/tool", filepath.Join(dir, "link")))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// print is what a folder looks like, in every respect that a job could change.
func fingerprint(t *testing.T, dir string) digest.Digest {
	t.Helper()
	var all strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			content, err = os.ReadFile(path)
		}
		st := statOf(info)
		fmt.Fprintf(&all, "%s %v %d %d %d %d %v %q\n", path, info.Mode(), st.Uid, st.Gid, st.Nlink, st.Ino, info.ModTime(), content)
		return err
	}))
	return digest.Of([]byte(all.String()))
}

// needOverlay skips where this machine cannot put layers over folders.
func needOverlay(t *testing.T, y *yard) {
	t.Helper()
	report := y.Report()
	if !report.Has(sandbox.LevelOverlay) {
		t.Skip(report.Sorry(sandbox.LevelOverlay))
	}
}

func TestLayersAreSeenAndWrittenAndTheFolderBelowStaysAsItIs(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		needOverlay(t, y)
		source, vendor := treeOfTests(t, "source"), treeOfTests(t, "vendor")
		before := [2]digest.Digest{fingerprint(t, source), fingerprint(t, vendor)}
		r := y.make(`set -e
			cd /work/source
			stat -c '%u:%g %a' . file sub/tool
			./link
			echo more >>file; rm -r sub/deep; mkdir sub/deep; echo new >sub/deep/new; chmod 700 sub/tool; mv sub moved; ln file hard
			cat file; ls moved moved/deep
			cd ../third/vendor; cat file; sub/tool
			! (echo x >file) 2>/dev/null; ! mkdir x 2>/dev/null; ! rm file 2>/dev/null; ! touch file 2>/dev/null
			find /work/.forgeyard/layers; ! rmdir /work/.forgeyard/layers 2>/dev/null; ! mv /work/.forgeyard/layers /work/x 2>/dev/null
			echo made >/work/made`, func(o *sandbox.Order) {
			o.Layers = []sandbox.Layer{
				{Mount: "source", Folder: source, Writable: true},
				{Mount: "third/vendor", Folder: vendor},
			}
		})
		end := r.wait(t)
		want := "1000:1000 755\n1000:1000 644\n1000:1000 755\ntool of source\nsource\nmore\nmoved:\ndeep\ntool\n\nmoved/deep:\nnew\n" +
			"vendor\ntool of vendor\n/work/.forgeyard/layers\n"
		if end.Exit != 0 || r.output() != want {
			t.Errorf("%+v\n%s\nwant\n%s", end, r.output(), want)
		}
		if after := [2]digest.Digest{fingerprint(t, source), fingerprint(t, vendor)}; after != before {
			t.Error("a folder below a layer has changed")
		}
		root, err := r.Files()
		must(t, err)
		for name, want := range map[string]string{
			"source/file": "source\nmore\n", "source/hard": "source\nmore\n", "source/moved/deep/new": "new\n", "third/vendor/file": "vendor\n", "made": "made\n",
		} {
			if got, err := root.ReadFile(name); err != nil || string(got) != want {
				t.Errorf("%s holds %q, %v", name, got, err)
			}
		}
		if _, err := root.Lstat("source/sub"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was moved: %v", err)
		}
		if err := root.WriteFile("made", nil, 0o600); err == nil {
			t.Error("the agent's view can be written")
		}
		must(t, root.Close())
		must(t, r.Close())
	})
}

func statOf(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

// The agent's own folder is the launcher's to write, so nothing that stands there may lead it elsewhere.
func TestLayersThatHaveNoSafePlaceAreRefused(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		needOverlay(t, y)
		tree, victim := treeOfTests(t, "tree"), t.TempDir()
		for name, change := range map[string]func(o *sandbox.Order){
			"up":            func(o *sandbox.Order) { o.Layers[0].Mount = "../x" },
			"absolute":      func(o *sandbox.Order) { o.Layers[0].Mount = "/x" },
			"all of it":     func(o *sandbox.Order) { o.Layers[0].Mount = "." },
			"not clean":     func(o *sandbox.Order) { o.Layers[0].Mount = "a//b" },
			"its own":       func(o *sandbox.Order) { o.Layers[0].Mount = sandbox.LayersDir + "/0" },
			"one in other":  func(o *sandbox.Order) { o.Layers = append(o.Layers, sandbox.Layer{Mount: "place/in", Folder: tree}) },
			"relative tree": func(o *sandbox.Order) { o.Layers[0].Folder = "tree" },
			"no tree":       func(o *sandbox.Order) { o.Layers[0].Folder += "/none" },
			"a file":        func(o *sandbox.Order) { o.Layers[0].Folder += "/file" },
			"a link":        func(o *sandbox.Order) { plant(t, o.Folder, "place", victim) },
			"below a link":  func(o *sandbox.Order) { plant(t, o.Folder, "a", victim); o.Layers[0].Mount = "a/b" },
			"own by a link": func(o *sandbox.Order) { plant(t, o.Folder, sandbox.OwnDir, victim) },
			"a file there":  func(o *sandbox.Order) { must(t, os.WriteFile(filepath.Join(o.Folder, "place"), nil, 0o600)) },
		} {
			o, begin := y.order(task{Argv: []string{"/bin/true"}})
			o.Layers = []sandbox.Layer{{Mount: "place", Folder: tree, Writable: true}}
			change(o)
			b, err := y.Make(t.Context(), o)
			begin(b)
			var se *sandbox.SetupError
			if !errors.As(err, &se) || errors.Is(err, sandbox.ErrNoLayers) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if left, err := os.ReadDir(victim); err != nil || len(left) > 0 {
			t.Errorf("through links came %v, %v", left, err)
		}
		if end := y.make("exit 3", nil).wait(t); end.Exit != 3 {
			t.Errorf("afterwards a sandbox ends with %+v", end)
		}
	})
}

// Nothing of a layer is to be seen on the host, not even while the sandbox runs.
func TestLayersAreNoMountsOfTheHost(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		needOverlay(t, y)
		tree, folder := treeOfTests(t, "tree"), ""
		r := y.make("echo running; sleep 1000", func(o *sandbox.Order) {
			folder = o.Folder
			o.Layers = []sandbox.Layer{{Mount: "place", Folder: tree, Writable: true}}
		})
		r.wait4(t, "running")
		for _, pid := range []int{os.Getpid(), launcherOf(y.state)} {
			mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
			must(t, err)
			if strings.Contains(string(mounts), folder) {
				t.Errorf("process %d has mounts in the attempt's folder:\n%s", pid, mounts)
			}
		}
		if left, err := os.ReadDir(filepath.Join(folder, "place")); err != nil || len(left) != 0 {
			t.Errorf("the host sees %v, %v", left, err)
		}
		r.Kill()
		r.wait(t)
		must(t, r.Close())
		must(t, os.RemoveAll(folder))
	})
}
