package launch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// vandalArg makes this program one that tries to change what is in a folder: a treeOfTests, as a sandbox sees it.
const vandalArg = "be-vandal"

// vandalism is one way to change a tree, or to get at it from another side.
type vandalism struct {
	name  string
	never bool // it is refused over a folder of the job's own too
	try   func(dir string) error
}

var vandalisms = []vandalism{
	{"write", false, func(dir string) error { return os.WriteFile(dir+"/file", []byte("defaced"), 0) }},
	{"append", false, func(dir string) error {
		return with(dir+"/file", unix.O_WRONLY|unix.O_APPEND, func(fd int) error { return write(fd, "more") })
	}},
	{"truncate", false, func(dir string) error { return os.Truncate(dir+"/sub/tool", 0) }},
	{"open to truncate", false, func(dir string) error {
		return with(dir+"/file", unix.O_RDONLY|unix.O_TRUNC, func(int) error { return nil })
	}},
	{"chmod", false, func(dir string) error { return os.Chmod(dir+"/file", 0o777) }},
	{"chmod of a folder", false, func(dir string) error { return os.Chmod(dir, 0o777) }},
	{"times", false, func(dir string) error { return unix.Utimes(dir+"/file", []unix.Timeval{{Sec: 1}, {Sec: 1}}) }},
	{"attribute", false, func(dir string) error { return unix.Setxattr(dir+"/file", "user.evil", []byte("x"), 0) }},
	{"overlay's attribute", true, func(dir string) error { return unix.Setxattr(dir+"/sub", "trusted.overlay.opaque", []byte("y"), 0) }},
	{"chown", true, func(dir string) error { return os.Chown(dir+"/file", 1, 1) }},
	{"make", false, func(dir string) error { return os.WriteFile(dir+"/new", nil, 0o600) }},
	{"mkdir", false, func(dir string) error { return os.Mkdir(dir+"/sub/new", 0o700) }},
	{"link within", false, func(dir string) error { return os.Link(dir+"/sub/tool", dir+"/hard") }},
	{"link out", true, func(dir string) error { return os.Link(dir+"/file", "/work/hard") }},
	{"link in", true, func(dir string) error { return os.Link("/work/own", dir+"/own") }},
	{"rename over", false, func(dir string) error {
		if err := os.WriteFile(dir+"/other", []byte("other"), 0o600); err != nil {
			return err
		}
		return os.Rename(dir+"/other", dir+"/file")
	}},
	{"rename out", true, func(dir string) error { return os.Rename(dir+"/file", "/work/taken") }},
	{"rename in", true, func(dir string) error { return os.Rename("/work/own", dir+"/file") }},

	{"shared mapping", false, func(dir string) error {
		return with(dir+"/sub/deep/gone", unix.O_RDWR, func(fd int) error {
			m, err := unix.Mmap(fd, 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			copy(m, "evil")
			return errors.Join(unix.Msync(m, unix.MS_SYNC), unix.Munmap(m))
		})
	}},
	{"mapping made writable", true, func(dir string) error {
		return with(dir+"/sub/deep/gone", unix.O_RDONLY, func(fd int) error {
			m, err := unix.Mmap(fd, 0, 4, unix.PROT_READ, unix.MAP_SHARED)
			if err != nil {
				return err
			}
			return unix.Mprotect(m, unix.PROT_READ|unix.PROT_WRITE)
		})
	}},
	{"hole", false, func(dir string) error {
		return with(dir+"/file", unix.O_RDWR, func(fd int) error {
			return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4)
		})
	}},
	{"opened again by /proc", true, func(dir string) error {
		return with(dir+"/link", unix.O_RDONLY, func(fd int) error {
			if st := (unix.Statfs_t{}); unix.Fstatfs(fd, &st) == nil && st.Flags&unix.ST_RDONLY == 0 {
				return errors.New("its own layer, which it may write")
			}
			return with(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR, func(int) error { return nil })
		})
	}},
	{"opened by handle", true, func(dir string) error {
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, dir+"/file", 0)
		if err != nil {
			return err
		}
		return with("/work", unix.O_RDONLY, func(at int) error {
			fd, err := unix.OpenByHandleAt(at, handle, unix.O_RDWR)
			if err != nil {
				return err
			}
			return errors.Join(write(fd, "by handle"), unix.Close(fd))
		})
	}},
	{"remount", true, func(dir string) error { return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND, "") }},
	{"remount the file system", true, func(dir string) error { return unix.Mount("", dir, "", unix.MS_REMOUNT, "") }},
	{"mount flags", true, func(dir string) error {
		return unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
	}},
	{"unmount", true, func(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }},
	{"unmount the cover", true, func(string) error { return unix.Unmount("/work/.forgeyard/layers", unix.MNT_DETACH) }},
	{"copy of the mount", true, func(dir string) error {
		_, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE)
		return err
	}},
	{"rename the place", true, func(dir string) error { return os.Rename(dir, dir+"-moved") }},
	{"upper half", true, func(string) error {
		found, _ := filepath.Glob("/work/.forgeyard/layers/*")
		if len(found) == 0 {
			return errors.New("there is nothing")
		}
		return nil
	}},
	{"immutable", true, func(dir string) error {
		return with(dir+"/file", unix.O_RDONLY, func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x10) })
	}},
	{"rename a folder", false, func(dir string) error { return os.Rename(dir+"/sub/deep", dir+"/deep") }},
	{"remove", false, func(dir string) error { return os.Remove(dir + "/file") }},
	{"remove all", false, func(dir string) error { return os.RemoveAll(dir + "/sub") }},
}

// vandal tries everything. It prints what should have been refused and was not.
func vandal(dir string, readOnly bool) int {
	_ = os.WriteFile("/work/own", []byte("own"), 0o600)
	for _, v := range vandalisms {
		if err := v.try(dir); err == nil && (v.never || readOnly) {
			fmt.Println(v.name, "was not refused")
		}
	}
	fmt.Println("tried", len(vandalisms))
	return 0
}

func with(path string, flags int, do func(fd int) error) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(fd), unix.Close(fd))
}

func write(fd int, text string) error {
	_, err := unix.Write(fd, []byte(text))
	return err
}

// 07§42, S15: a job cannot change what others read, whatever it is allowed to do with its own copy. As uid 0 neither.
func TestAJobCannotChangeATreeThatOthersReadToo(t *testing.T) {
	modes(t, func(t *testing.T, mode func(*sandbox.Config)) {
		y := open(t, mode)
		needOverlay(t, y)
		tools := t.TempDir()
		program, err := os.ReadFile("/proc/self/exe")
		must(t, err)
		must(t, os.WriteFile(filepath.Join(tools, "vandal"), program, 0o755))
		for _, readOnly := range []bool{false, true} {
			for _, root := range []bool{false, true} {
				tree := treeOfTests(t, "shared")
				before := fingerprint(t, tree)
				how := map[bool]string{true: "ro", false: "cow"}[readOnly]
				r := y.makeTask(task{Argv: []string{"/work/tools/vandal", vandalArg, "/work/place", how}, Root: root}, func(o *sandbox.Order) {
					o.Layers = []sandbox.Layer{{Mount: "place", Folder: tree, Writable: !readOnly}, {Mount: "tools", Folder: tools}}
				})
				end := r.wait(t)
				if want := fmt.Sprintf("tried %d\n", len(vandalisms)); end.Exit != 0 || r.output() != want {
					t.Errorf("%s, root %v: %+v\n%s", how, root, end, strings.ReplaceAll(r.output(), want, ""))
				}
				if fingerprint(t, tree) != before {
					t.Errorf("%s, root %v: the tree has changed", how, root)
				}
				must(t, r.Close())
			}
		}
	})
}
