package view

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Attach shows the attempt's folder, a tree of mounts attached nowhere, at WorkDir and its folder tmp at TempDir. It makes tmp
// and home in it, for steps, where they are missing. The caller closes folder.
func (r *Root) Attach(folder *os.File) error {
	if err := r.attachWork(folder); err != nil {
		return fmt.Errorf("view: show the attempt's folder: %w", err)
	}
	return nil
}

func (r *Root) attachWork(folder *os.File) error {
	if r.top == nil {
		return errors.New("the view is sealed")
	}
	place := inRoot(WorkDir)
	if err := attach(folder, r.top, place); err != nil {
		return err
	}
	if err := setAttrs(folder, r.plan.plainAttrs(), true); err != nil {
		return err
	}
	for _, name := range []string{"home", "tmp"} {
		if err := r.forSteps(folder, name); err != nil {
			return err
		}
	}
	tmp, err := placeAt(folder, "tmp")
	if err != nil {
		return err
	}
	defer tmp.Close()
	shown, err := tree(int(tmp.Fd()), "", r.plan.plainAttrs())
	if err != nil {
		return err
	}
	defer shown.Close()
	return attach(shown, r.top, inRoot(TempDir))
}

// forSteps makes a folder of the attempt, unless it is there.
func (r *Root) forSteps(folder *os.File, name string) error {
	err := unix.Mkdirat(int(folder.Fd()), name, 0o700)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make %s/%s: %w", WorkDir, name, err)
	}
	err = unix.Fchownat(int(folder.Fd()), name, r.plan.UID, r.plan.GID, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return fmt.Errorf("give %s/%s to steps: %w", WorkDir, name, err)
	}
	return nil
}

// Seal makes the root read-only. Nothing can be attached afterwards.
func (r *Root) Seal() error {
	if r.top == nil {
		return nil
	}
	defer func() { r.top = nil }()
	defer r.top.Close()
	if r.plan.Switches.off(DefenceReadOnlyRoot) {
		return nil
	}
	if err := setAttrs(r.top, unix.MOUNT_ATTR_RDONLY, false); err != nil {
		return fmt.Errorf("view: seal the root: %w", err)
	}
	return nil
}
