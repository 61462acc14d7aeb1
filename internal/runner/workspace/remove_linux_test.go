package workspace_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/runner/workspace"
)

// Cases B73 and B41: whoever the agent is, and whatever it was left.
func TestEveryKindOfThingIsRemoved(t *testing.T) {
	for what, leave := range map[string]func(t *testing.T, path string) error{
		"a pipe": func(_ *testing.T, path string) error { return unix.Mkfifo(filepath.Join(path, "pipe"), 0) },
		"a socket": func(_ *testing.T, path string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(path, "s")})
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			return l.Close()
		},
		"a device": func(t *testing.T, path string) error {
			if err := unix.Mknod(filepath.Join(path, "null"), unix.S_IFCHR, int(unix.Mkdev(1, 3))); err != nil {
				t.Skip("devices cannot be made here:", err)
			}
			return nil
		},
		"folders of others": func(t *testing.T, path string) error {
			if os.Getuid() != 0 {
				t.Skip("only root gives files away")
			}
			sub := filepath.Join(path, "a", "b")
			return errors.Join(os.MkdirAll(sub, 0o700), os.WriteFile(filepath.Join(sub, "c"), nil, 0o4755), os.Chown(filepath.Join(sub, "c"), 1234, 1234),
				os.Chown(sub, 1234, 1234), os.Chmod(sub, 0), os.Chown(filepath.Join(path, "a"), 5678, 5678), os.Chmod(filepath.Join(path, "a"), 0o500))
		},
		"a folder that can only be read": func(_ *testing.T, path string) error {
			return errors.Join(os.Mkdir(filepath.Join(path, "a"), 0o700), os.Mkdir(filepath.Join(path, "a", "b"), 0), os.Chmod(filepath.Join(path, "a"), 0o500))
		},
		"names of every byte": func(_ *testing.T, path string) (err error) {
			for b := 1; b < 256; b++ {
				if b != '/' && b != '.' {
					err = errors.Join(err, os.Mkdir(filepath.Join(path, string([]byte{byte(b)})), 0o700))
				}
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			r, dir := open(t)
			id, path := made(t, r)
			must(t, leave(t, path))
			must(t, r.Remove(id))
			nothingLeft(t, r, dir)
		})
	}
}

func TestATreeTenThousandDeepIsRemoved(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand folders within each other")
	}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm") // a disk takes long to make them
	}
	r, dir := open(t)
	id, path := made(t, r)
	fd, err := unix.Open(path, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range 10_000 {
		must(t, unix.Mkdirat(fd, "d", 0o700))
		next, err := unix.Openat(fd, "d", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, errors.Join(err, unix.Close(fd)))
		fd = next
	}
	must(t, unix.Close(fd))
	must(t, r.Remove(id))
	nothingLeft(t, r, dir)
}

// A process that is killed while it removes leaves what the next one goes on with (case B41).
func TestARemovalSurvivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	half := filepath.Join(dir, ".gone-half")
	for i := range 20 {
		sub := filepath.Join(half, strconv.Itoa(i))
		must(t, os.MkdirAll(sub, 0o700))
		for j := range 100 {
			must(t, os.WriteFile(filepath.Join(sub, strconv.Itoa(j)), nil, 0))
		}
	}
	for range 5 {
		cmd := helper(t, "sweep", dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		_, err = bufio.NewReader(out).ReadString('\n') // it begins
		must(t, errors.Join(err, cmd.Process.Kill()))
		_ = cmd.Wait()
	}
	r, err := workspace.Open(dir, workspace.Options{})
	must(t, err)
	_, err = r.Sweep(t.Context(), none)
	must(t, err)
	nothingLeft(t, r, dir)
	must(t, r.Close())
}

// What an agent without rights may not remove it says once, tries again, and keeps from nothing else.
func TestWhatCannotBeRemovedIsReportedOnceAndTriedAgain(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	const nobody = 65534
	dir := t.TempDir()
	bad, others := filepath.Join(dir, ".gone-bad"), filepath.Join(dir, ".gone-bad", "a", "others")
	must(t, os.MkdirAll(others, 0o700))
	must(t, os.WriteFile(filepath.Join(others, "file"), nil, 0o600))
	for _, name := range []string{"a/one", "z", "zz"} {
		must(t, os.MkdirAll(filepath.Join(bad, name), 0o700))
	}
	for _, at := range []string{dir, bad, filepath.Join(bad, "a"), filepath.Join(bad, "a/one"), filepath.Join(bad, "z"), filepath.Join(bad, "zz")} {
		must(t, os.Chown(at, nobody, nobody))
	}
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	cmd := helper(t, "sweep", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.Output()
	must(t, err)
	lines := strings.Split(string(out), "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[1], "removed 0, failed 1, sweep workspaces: remove "+bad) || !strings.HasPrefix(lines[2], "removed 0, failed 1, sweep") {
		t.Errorf("it said %s", out)
	}
	if left, err := filepath.Glob(bad + "/*"); err != nil || fmt.Sprint(left) != "["+bad+"/a]" {
		t.Errorf("what could be removed was not: %v, %v", left, err)
	}
	must(t, os.Chown(others, nobody, nobody))
	cmd = helper(t, "sweep", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err = cmd.Output()
	if err != nil || !strings.Contains(string(out), "removed 1, failed 0, <nil>") {
		t.Errorf("then it said %s, %v", out, err)
	}
}

// A job with the rights of its host can leave mounts. What is in them is not the job's.
func TestWhatIsMountedInAWorkspaceIsUnmountedAndNotEmptied(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root mounts")
	}
	dir, outside := t.TempDir(), t.TempDir()
	precious := filepath.Join(outside, "precious")
	must(t, os.WriteFile(precious, []byte("x"), 0o600))
	cmd := helper(t, "mounts", dir)
	cmd.Env = append(cmd.Env, helperOutside+"="+outside)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.Output()
	if err != nil {
		t.Skip("no namespace of mounts here:", err)
	}
	if !strings.Contains(string(out), "removed 2, failed 0, <nil>") {
		t.Errorf("it said %s", out)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("a file outside is gone: %v", err)
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("left: %v, %v", entries, err)
	}
}

const helperOutside = "FORGEYARD_TEST_WORKSPACE_OUTSIDE"

// mounts leaves mounts of every kind in its own namespace, and sweeps.
func mounts() {
	outside, work := os.Getenv(helperOutside), filepath.Join(os.Getenv(helperDir), ident.New[forge.AttemptID]().String())
	whole := filepath.Join(os.Getenv(helperDir), ident.New[forge.AttemptID]().String()) // which cannot be renamed
	err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), os.Mkdir(whole, 0o700), unix.Mount(outside, whole, "", unix.MS_BIND, ""))
	for _, name := range []string{"twice", "tmp", "locked/inner"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(work, name), 0o700))
	}
	file := filepath.Join(work, "file")
	err = errors.Join(err, os.WriteFile(file, nil, 0o600), os.WriteFile(filepath.Join(work, "twice", "below"), nil, 0o600),
		unix.Mount(outside, filepath.Join(work, "twice"), "", unix.MS_BIND, ""),
		unix.Mount(outside, filepath.Join(work, "twice"), "", unix.MS_BIND, ""),
		unix.Mount(outside, filepath.Join(work, "locked", "inner"), "", unix.MS_BIND, ""),
		unix.Mount("tmpfs", filepath.Join(work, "tmp"), "tmpfs", 0, ""),
		os.WriteFile(filepath.Join(work, "tmp", "file"), nil, 0o600),
		unix.Mount(filepath.Join(outside, "precious"), file, "", unix.MS_BIND, ""))
	if err != nil {
		fmt.Println(err)
		return
	}
	if f, err := os.Open(filepath.Join(work, "locked")); err == nil { // so that the kernel speaks of rights before it speaks of mounts
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0x10)
		_ = f.Close()
	}
	sweep()
}

// Case B87: to remove things takes nothing that a full disk has not.
func TestAFullDiskKeepsNothingFromBeingRemoved(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root mounts")
	}
	cmd := helper(t, "full", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.Output()
	if err != nil {
		t.Skip("no namespace of mounts here:", err)
	}
	if string(out) != "begins\nremoved 2, failed 0, <nil>\nremoved 0, failed 0, <nil>\n" {
		t.Errorf("it said %s", out)
	}
}

// full fills a disk of its own, its last entry with something deep, and sweeps.
func full() {
	dir := os.Getenv(helperDir)
	err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,nr_inodes=400"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = os.MkdirAll(filepath.Join(dir, ident.New[forge.AttemptID]().String()+strings.Repeat("/d", 200)), 0o700)
	_ = os.MkdirAll(filepath.Join(dir, ident.New[forge.AttemptID]().String()+strings.Repeat("/d", 400)), 0o700)
	if err := os.Mkdir(filepath.Join(dir, "more"), 0o700); !errors.Is(err, unix.ENOSPC) {
		fmt.Println("the disk is not full:", err)
	}
	sweep()
}
