package view

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// cover puts something empty over what must not be seen, and makes settings read-only.
func (b *builder) cover(top *os.File) error {
	if !b.plan.Switches.off(DefenceHide) {
		for _, hidden := range b.plan.Hide {
			if err := blank(top, inRoot(hidden)); err != nil {
				return err
			}
		}
	}
	if !b.plan.Switches.off(DefenceMaskedProc) {
		for _, name := range b.plan.Masks {
			if err := blank(top, "proc/"+name); err != nil {
				return err
			}
		}
	}
	if !b.plan.Switches.off(DefenceReadOnlyProc) {
		for _, name := range b.plan.ReadOnly {
			if err := readOnly(top, "proc/"+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// blank covers a folder with an empty one and anything else with /dev/null. What is not there needs no cover.
func blank(top *os.File, place string) error {
	at, err := placeAt(top, place)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer at.Close()
	kind, err := kindAt(at)
	if err != nil {
		return err
	}
	cover, err := nothing(top, kind)
	if err != nil {
		return err
	}
	defer cover.Close()
	return attach(cover, top, place)
}

func nothing(top *os.File, kind Kind) (*os.File, error) {
	if kind == IsFolder {
		return memory(attrData|unix.MOUNT_ATTR_RDONLY, 4096, 2, 0o555)
	}
	return tree(int(top.Fd()), "dev/null", attrDevice)
}

// readOnly binds a folder onto itself, read-only.
func readOnly(top *os.File, place string) error {
	f, err := tree(int(top.Fd()), place, unix.MOUNT_ATTR_RDONLY)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make /%s read-only: %w", place, err)
	}
	defer f.Close()
	return attach(f, top, place)
}
