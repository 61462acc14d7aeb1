package view

import (
	"os"

	"golang.org/x/sys/unix"
)

// Open opens the binds of a plan that must be handed over, in the plan's order, as trees of mounts that are attached nowhere.
// The launcher calls it with its own rights; the caller closes the files, each of which serves one Build.
func Open(p Plan) ([]*os.File, error) {
	var opened []*os.File
	for _, b := range p.Binds {
		if !b.Handed {
			continue
		}
		f, err := tree(unix.AT_FDCWD, b.Source, p.bindAttrs())
		if err != nil {
			closeAll(opened)
			return nil, err
		}
		opened = append(opened, f)
	}
	return opened, nil
}

// bindAttrs are the flags of what is shown of the host.
func (p Plan) bindAttrs() uint64 {
	attrs := uint64(0)
	if !p.Switches.off(DefenceReadOnlyBinds) {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	return attrs | p.plainAttrs()
}

// plainAttrs are the flags of everything but /proc and devices.
func (p Plan) plainAttrs() uint64 {
	attrs := uint64(0)
	if !p.Switches.off(DefenceNoSetUID) {
		attrs |= unix.MOUNT_ATTR_NOSUID
	}
	if !p.Switches.off(DefenceNoDevices) {
		attrs |= unix.MOUNT_ATTR_NODEV
	}
	return attrs
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
