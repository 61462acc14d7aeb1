package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// Folders below the one that is given to the child, for its overlay.
const (
	lowerDir  = "lower"
	upperDir  = "upper"
	workDir   = "work"
	mergedDir = "merged"
)

const fdUserNS = 3 // in the child that mounts: a user namespace with mapped ids

// errand is what a child is told on its stdin.
type errand struct {
	Hold   bool   `json:",omitempty"` // only wait until stdin ends, so that its user namespace lives
	Folder string `json:",omitempty"` // to mount below
	Host   string `json:",omitempty"` // the mount namespace of the parent, which must not be its own
	IDs    bool   `json:",omitempty"` // a user namespace was handed in
}

// answer is what it found, each as the text of an error or empty.
type answer struct {
	Overlay string
	IDMap   string
}

// Child is the child that mounts: the program calls it when it has the arguments that Options
// name, and nothing else. It refuses to mount unless it is in a mount namespace of its own,
// from which nothing reaches its parent's.
func Child(in io.Reader, out io.Writer) error {
	var e errand
	if err := json.NewDecoder(in).Decode(&e); err != nil {
		return fmt.Errorf("the errand: %w", err)
	}
	if e.Hold {
		_, err := io.Copy(io.Discard, in)
		return err
	}
	if err := alone(e.Host); err != nil {
		return err
	}
	a := answer{Overlay: text(overlay(e.Folder))}
	if e.IDs {
		a.IDMap = text(idMapped(e.Folder))
	}
	return json.NewEncoder(out).Encode(a)
}

// alone makes sure that this process may mount without anybody else seeing it.
func alone(host string) error {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	if host == "" || own == host {
		return errors.New("this is no mount namespace of its own; nothing is mounted")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if bytes.Contains(mounts, []byte(" shared:")) {
		return errors.New("mounts of this namespace would be seen in others; nothing is mounted")
	}
	return nil
}

// overlay mounts a folder over another and writes to it.
func overlay(folder string) error {
	at := func(name string) string { return filepath.Join(folder, name) }
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", at(lowerDir), at(upperDir), at(workDir))
	if mapped() {
		options += ",userxattr" // Others are root's.
	}
	if err := unix.Mount("overlay", at(mergedDir), "overlay", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return fmt.Errorf("mount an overlay: %w", err)
	}
	err := os.WriteFile(filepath.Join(at(mergedDir), "file"), []byte("x"), 0o600)
	return errors.Join(err, unix.Unmount(at(mergedDir), unix.MNT_DETACH))
}

// mapped says whether this process is in a user namespace below the first one.
func mapped() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && !strings.HasSuffix(strings.TrimSpace(string(text)), " 4294967295")
}

// idMapped makes a detached mount of a folder in which ids are mapped, and lets it go.
func idMapped(folder string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("clone a mount: %w", err)
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: fdUserNS})
	if err != nil {
		err = fmt.Errorf("map the ids of a mount: %w", err)
	}
	return errors.Join(err, unix.Close(fd))
}

// mounts sends a child on its errand and judges what it found.
func (o *Options) mounts(ctx context.Context, scratch string) []Finding {
	root := os.Geteuid() == 0
	found, err := o.send(ctx, scratch, root)
	if err != nil {
		return []Finding{
			weak("overlay", "cannot be tried: "+err.Error(), ""),
			weak("id-mapped mounts", "cannot be tried: "+err.Error(), ""),
		}
	}
	return []Finding{overlayOf(found.Overlay), idMappedOf(found.IDMap, root)}
}

// copied is what a job pays without one of the two.
const copied = "; workspaces are copied instead, which is slower"

// overlayOf judges overlays.
func overlayOf(problem string) Finding {
	if problem == "" {
		return ok("overlay", "")
	}
	return weak("overlay", problem+copied, "modprobe overlay; as a user other than root it takes a kernel of 5.11 or later, and a file system with extended attributes")
}

// idMappedOf judges mounts with mapped ids.
func idMappedOf(problem string, root bool) Finding {
	switch {
	case !root:
		return weak("id-mapped mounts", "only root can make them"+copied, "run the agent as root")
	case problem != "":
		return weak("id-mapped mounts", problem+copied, "use a kernel of 5.19 or later, and a file system that knows them: ext4, xfs, btrfs, tmpfs")
	}
	return ok("id-mapped mounts", "")
}

// send starts the child in namespaces of its own and hears what it found.
func (o *Options) send(ctx context.Context, scratch string, root bool) (answer, error) {
	var a answer
	for _, name := range []string{lowerDir, upperDir, workDir, mergedDir} {
		if err := os.Mkdir(filepath.Join(scratch, name), 0o700); err != nil {
			return a, err
		}
	}
	host, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	e := errand{Folder: scratch, Host: host, IDs: root}
	cmd, err := o.child(ctx, e)
	if err != nil {
		return a, err
	}
	cmd.SysProcAttr = ownMounts(root)
	if root {
		ns, release, err := o.idNamespace(ctx)
		if err != nil {
			return a, err
		}
		defer release()
		cmd.ExtraFiles = []*os.File{ns}
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	told, err := cmd.Output()
	if err != nil {
		return a, fmt.Errorf("%w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return a, json.Unmarshal(told, &a)
}

// ownMounts are the namespaces of the child. As root its mounts are made private; else it is
// root of a user namespace with one id, where they are so by themselves.
func ownMounts(root bool) *syscall.SysProcAttr {
	if root {
		return &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	}
	one := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: one(os.Geteuid()), GidMappings: one(os.Getegid()), Pdeathsig: syscall.SIGKILL,
	}
}

// idNamespace makes a user namespace with mapped ids, kept by a child until it is released.
func (o *Options) idNamespace(ctx context.Context) (*os.File, func(), error) {
	cmd, err := o.child(ctx, errand{Hold: true})
	if err != nil {
		return nil, nil, err
	}
	many := []syscall.SysProcIDMap{{HostID: doctorIDs, Size: sandbox.SlotIDs}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, UidMappings: many, GidMappings: many, Pdeathsig: syscall.SIGKILL,
	}
	keep, hold, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdin = io.MultiReader(cmd.Stdin, keep)
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("a user namespace: %w", err), keep.Close(), hold.Close())
	}
	stop := func() {
		_ = hold.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = keep.Close()
	}
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	if err != nil {
		stop()
		return nil, nil, err
	}
	return ns, func() { _ = ns.Close(); stop() }, nil
}

// child is this program with the arguments of a child, and its errand.
func (o *Options) child(ctx context.Context, e errand) (*exec.Cmd, error) {
	told, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", o.Child...)
	cmd.Args[0] = os.Args[0] // by which some programs know what they are
	cmd.Env, cmd.Dir, cmd.Stdin = []string{}, "/", bytes.NewReader(told)
	return cmd, nil
}

// text is the text of an error, or nothing.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
