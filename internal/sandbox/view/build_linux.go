package view

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is a view that stands. It belongs to one goroutine.
type Root struct {
	plan   Plan
	top    *os.File // the root's own mount
	hidden bool
}

// Hidden reports whether /proc keeps the processes of other ids to itself; old kernels cannot for one mount alone.
func (r *Root) Hidden() bool { return r.hidden }

// Build makes the root and moves into it; the host's root is gone afterwards. handed are Open's files in their order, which
// Build closes. After an error the process must end: it may stand between two roots.
func Build(p Plan, handed []*os.File) (*Root, error) {
	defer closeAll(handed)
	if err := inside(p.HostNS); err != nil {
		return nil, err
	}
	mask := unix.Umask(0) // modes below are meant as they are written
	defer unix.Umask(mask)
	b := builder{plan: p, handed: handed}
	defer func() { closeAll(b.opened) }()
	r, err := b.build()
	if err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	return r, nil
}

// builder holds what is open while a root is built.
type builder struct {
	plan   Plan
	handed []*os.File
	opened []*os.File
	parts  []part
	hidden bool
}

// part is a mount that waits to be attached in the root.
type part struct {
	mount *os.File
	place string // below the root, without a slash in front
}

func (b *builder) build() (*Root, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("keep mounts to this namespace: %w", err)
	}
	top, err := memory(attrPlain, rootBytes, rootInodes, 0o755)
	if err != nil {
		return nil, err
	}
	for _, step := range []func(*os.File) error{b.furnish, b.sources, b.systems, enter, b.assemble, b.cover} {
		if err := step(top); err != nil {
			top.Close()
			return nil, err
		}
	}
	return &Root{plan: b.plan, top: top, hidden: b.hidden}, nil
}

// furnish makes the root's own folders, files and links, and the places that mounts need.
func (b *builder) furnish(top *os.File) error {
	at := int(top.Fd())
	for _, f := range b.plan.Folders {
		if err := unix.Mkdirat(at, inRoot(f.Path), f.Mode); err != nil {
			return fmt.Errorf("make folder %s: %w", f.Path, err)
		}
	}
	for _, l := range b.plan.Links {
		if err := unix.Symlinkat(l.Target, at, inRoot(l.Path)); err != nil {
			return fmt.Errorf("make link %s: %w", l.Path, err)
		}
	}
	for _, f := range b.plan.Files {
		if err := write(top, inRoot(f.Path), f.Content); err != nil {
			return err
		}
	}
	for _, name := range b.plan.Devices {
		if err := write(top, "dev/"+name, nil); err != nil {
			return err
		}
	}
	return b.places(top)
}

// places makes the files that single files of the host are bound onto.
func (b *builder) places(top *os.File) error {
	for _, bind := range b.plan.Binds {
		if !bind.File || b.inner(bind) {
			continue
		}
		if err := write(top, inRoot(bind.Target), nil); err != nil {
			return err
		}
	}
	for defence, place := range withoutDefence {
		if !b.plan.Switches.off(defence) {
			continue
		}
		if err := unix.Mkdirat(int(top.Fd()), inRoot(place), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// withoutDefence is where the host's root and /proc are shown if defences are switched off.
var withoutDefence = map[string]string{DefenceMinimalRoot: "/host", DefenceOwnProc: "/host-proc"}

// inner reports whether a bind's place is in another bind, and so not ours to make.
func (b *builder) inner(bind Bind) bool {
	for _, outer := range b.plan.Binds {
		if rest, in := below(bind.Target, outer.Target); in && rest != "" {
			return true
		}
	}
	return false
}

// sources opens all that is shown of the host, while the host's root is still there.
func (b *builder) sources(*os.File) error {
	handed := b.handed
	for _, bind := range b.plan.Binds {
		if bind.Handed {
			if len(handed) == 0 {
				return fmt.Errorf("%s was to be handed over and was not", bind.Source)
			}
			b.add(handed[0], bind.Target)
			handed = handed[1:]
			continue
		}
		if err := b.copied(bind.Source, bind.Target, b.plan.bindAttrs()); err != nil {
			return err
		}
	}
	for _, name := range b.plan.Devices {
		if err := b.copied("/dev/"+name, "/dev/"+name, attrDevice); err != nil {
			return err
		}
	}
	for defence, source := range map[string]string{DefenceMinimalRoot: "/", DefenceOwnProc: "/proc"} {
		if !b.plan.Switches.off(defence) {
			continue
		}
		if err := b.copied(source, withoutDefence[defence], 0); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) add(mount *os.File, place string) {
	b.parts = append(b.parts, part{mount, inRoot(place)})
}

func (b *builder) copied(source, target string, attrs uint64) error {
	f, err := tree(unix.AT_FDCWD, source, attrs)
	if err != nil {
		return err
	}
	b.own(f, target)
	return nil
}

func (b *builder) own(f *os.File, target string) {
	b.opened = append(b.opened, f)
	b.add(f, target)
}

// systems makes the sandbox's own file systems. The new /proc needs the old one still in sight: the kernel gives no more of it
// than its maker could see.
func (b *builder) systems(*os.File) error {
	proc, err := b.proc()
	if err != nil {
		return err
	}
	b.own(proc, "/proc")
	pts, err := fresh("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, option{"ptmxmode", "0666"}, option{"mode", "0620"}, option{"max", "64"})
	if err != nil {
		return err
	}
	b.own(pts, PtsDir)
	shm, err := memory(int(b.plan.plainAttrs()), b.plan.Shm, shmInodes(b.plan), 0o1777)
	if err != nil {
		return err
	}
	b.own(shm, ShmDir)
	secrets, err := memory(attrData, b.plan.Secrets, secretsInodes, 0o700,
		option{"uid", strconv.Itoa(b.plan.UID)}, option{"gid", strconv.Itoa(b.plan.GID)})
	if err != nil {
		return err
	}
	b.own(secrets, SecretsDir)
	return nil
}

// shmInodes bounds the files of /dev/shm, which take kernel memory too: one per page of it.
func shmInodes(p Plan) int { return int(p.Shm/4096) + 1 }

// proc mounts /proc, with others' processes hidden where the kernel can do that for one mount.
func (b *builder) proc() (*os.File, error) {
	const attrs = attrData
	if !b.plan.Switches.off(DefenceHiddenProc) {
		// Not "invisible", which hides nothing from the group 0 of the host, to which a single id may belong.
		if f, err := fresh("proc", attrs, option{"hidepid", "ptraceable"}); err == nil {
			b.hidden = true
			return f, nil
		}
	}
	return fresh("proc", attrs)
}

// enter makes the new root this namespace's root and lets go of the old one.
func enter(top *os.File) error {
	// Any folder that is there will do as the place: what it covers is open already, and is gone with the old root.
	err := unix.MoveMount(int(top.Fd()), "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("attach the new root: %w", err)
	}
	if err := unix.Fchdir(int(top.Fd())); err != nil {
		return fmt.Errorf("go to the new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change to the new root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's root: %w", err)
	}
	return os.Chdir("/")
}

// assemble attaches the parts, outer ones first.
func (b *builder) assemble(top *os.File) error {
	for _, p := range b.parts {
		if err := attach(p.mount, top, p.place); err != nil {
			return err
		}
	}
	return nil
}

func inRoot(path string) string { return strings.TrimPrefix(path, "/") }

// write makes a file that all may read.
func write(top *os.File, place string, content []byte) error {
	fd, err := unix.Openat(int(top.Fd()), place, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return fmt.Errorf("make file /%s: %w", place, err)
	}
	f := os.NewFile(uintptr(fd), "/"+place)
	_, err = f.Write(content)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
