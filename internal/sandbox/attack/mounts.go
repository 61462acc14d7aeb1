//go:build linux

package attack

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// own is a folder to which the sandbox's root may write as well as a step: the attempt's own knows only the step's id.
const own = "/dev/shm"

// mountPoint makes a folder to mount on. It is in the sandbox's memory, and a mount is gone with the sandbox.
func mountPoint(name string) string {
	dir := filepath.Join(own, name)
	_ = os.Mkdir(dir, 0o700) // what follows fails without it
	return dir
}

// mountMemory mounts a file system.
func mountMemory(*Target) Verdict {
	if err := unix.Mount("tmpfs", mountPoint("mount"), "tmpfs", unix.MS_NODEV, "size=4096"); err != nil {
		return denied("mount", err)
	}
	return worked("mounted a tmpfs")
}

// mountProc mounts a /proc of its own, in which nothing is masked.
func mountProc(*Target) Verdict {
	if err := unix.Mount("proc", mountPoint("proc"), "proc", 0, ""); err != nil {
		return denied("mount proc", err)
	}
	return worked("mounted a proc")
}

// mountNew mounts by the newer calls.
func mountNew(*Target) Verdict {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return denied("open a file system", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return denied("create it", err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return denied("make a mount of it", err)
	}
	defer unix.Close(fd)
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, mountPoint("new"), unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return denied("attach it", err)
	}
	return worked("attached a new mount")
}

// cloneTree copies the tree of mounts, from which it would take what it likes.
func cloneTree(*Target) Verdict {
	fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE)
	if err != nil {
		return denied("copy the tree", err)
	}
	_ = unix.Close(fd)
	return worked("copied the tree of mounts")
}

// remount makes the decoy's mount writable and writes.
func remount(t *Target) Verdict {
	if err := unix.Mount("", DecoyDir, "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
		return denied("remount", err)
	}
	return writeReadOnly(t)
}

// setMountAttributes does so by the newer call.
func setMountAttributes(t *Target) Verdict {
	attr := &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, DecoyDir, 0, attr); err != nil {
		return denied("change the mount", err)
	}
	return writeReadOnly(t)
}

// uncover takes a mount away to see what is under it.
func uncover(*Target) Verdict {
	if err := unix.Unmount(DecoyDir, unix.MNT_DETACH); err != nil {
		return denied("unmount", err)
	}
	return worked("unmounted %s", DecoyDir)
}

// pivot makes another mount the root.
func pivot(*Target) Verdict {
	if err := unix.PivotRoot(own, mountPoint("old")); err != nil {
		return denied("pivot", err)
	}
	return worked("%s is the root", own)
}

// changeRoot does the first step of the classical way out.
func changeRoot(*Target) Verdict {
	if err := unix.Chroot(mountPoint("root")); err != nil {
		return denied("chroot", err)
	}
	return worked("changed the root")
}

// enterNamespaces joins the namespaces of pid 1.
func enterNamespaces(*Target) Verdict {
	fd, err := unix.PidfdOpen(initPid, 0)
	if err != nil {
		return denied("open pid 1", err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWUTS); err != nil {
		return denied("enter pid 1's namespace", err)
	}
	return worked("entered a namespace")
}
