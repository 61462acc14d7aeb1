package launch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
	"github.com/forgeyard/forgeyard/internal/sandbox/image"
)

// namespaceLevels are given wherever a sandbox can be built at all.
var namespaceLevels = []sandbox.Level{
	sandbox.LevelUserNamespace, sandbox.LevelPIDNamespace, sandbox.LevelMountNamespace, sandbox.LevelNetworkNamespace,
	sandbox.LevelIPCNamespace, sandbox.LevelUTSNamespace,
}

// levels finds out which walls this machine gives, once a sandbox was built, which waits. hidden says whether its /proc
// hides.
func (l *launcher) levels(c *cell, hidden bool) sandbox.Report {
	r := sandbox.Report{Levels: slices.Clone(namespaceLevels)}
	add := func(level sandbox.Level, given bool, why, mend string) {
		switch {
		case given && !r.Has(level):
			r.Levels = append(r.Levels, level)
		case !given:
			r.Missing = append(r.Missing, sandbox.Missing{Level: level, Why: why, Mend: mend})
		}
	}
	add(sandbox.LevelMappedUIDs, !l.cfg.Rootless, "the agent does not run as root, so that sandboxes have its own id", "run the agent as root")
	add(sandbox.LevelHiddenProc, hidden, "this kernel cannot hide processes in one /proc alone", "use Linux 5.8 or later")
	for _, f := range confine.Probe() {
		level := sandbox.Level(f.Name)
		if level == sandbox.LevelSeccomp || level == sandbox.LevelLandlock || level == sandbox.LevelLandlockScopes {
			add(level, f.Have, f.Why, f.Mend)
		}
	}
	for _, g := range []struct {
		level sandbox.Level
		grant cgroup.Grant
	}{
		{sandbox.LevelCgroupMemory, l.groups.Memory}, {sandbox.LevelCgroupCPU, l.groups.CPU}, {sandbox.LevelCgroupPids, l.groups.Pids},
	} {
		add(g.level, g.grant.Given, g.grant.Why, g.grant.Mend)
	}
	add(sandbox.LevelDiskWatch, true, "", "")
	l.addDisks(add)
	if err := c.tryLayers(); err != nil {
		add(sandbox.LevelOverlay, false, err.Error(), "keep the state folder on ext4, xfs, btrfs or tmpfs, and use Linux 5.19 or later")
	} else {
		add(sandbox.LevelOverlay, true, "", "")
	}
	return r
}

// addDisks says whether attempts have disks of their own.
func (l *launcher) addDisks(add func(level sandbox.Level, given bool, why, mend string)) {
	switch {
	case l.cfg.NoImages:
		add(sandbox.LevelDiskImage, false, "the configuration wants none", "set sandbox.disk_images in the agent's configuration")
	case l.disks == nil:
		add(sandbox.LevelDiskImage, false, "only root can mount them, and sandboxes have the agent's single id", "run the agent as root")
	default:
		err := <-l.diskErr
		mend := "have loop devices and ext4 in the kernel, and the state folder on ext4, xfs, btrfs or tmpfs"
		if errors.Is(err, image.ErrNoProgram) {
			mend = "install e2fsprogs"
		}
		if err != nil {
			add(sandbox.LevelDiskImage, false, err.Error(), mend)
			return
		}
		add(sandbox.LevelDiskImage, true, "", "")
	}
}

// tryLayers puts a layer over an empty folder beside the launcher's records, as for an attempt.
func (c *cell) tryLayers() (err error) {
	dir, err := os.MkdirTemp(c.l.cfg.State, "layers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	below, folder := filepath.Join(dir, "below"), filepath.Join(dir, "folder")
	if err := errors.Join(os.Mkdir(below, 0o755), os.Mkdir(folder, 0o755)); err != nil {
		return err
	}
	layers := []sandbox.Layer{{Mount: "layer", Folder: below, Writable: true}}
	mount, err := c.folder(folder, layers)
	if err != nil {
		return err
	}
	defer func() { _ = mount.Close() }()
	inside, outside, err := c.layered(mount, folder, layers)
	if err != nil {
		return err
	}
	return errors.Join(inside.Close(), outside.Close())
}
