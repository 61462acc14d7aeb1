//go:build linux

package attack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// What an attack on inputs finds. Both places show the same folder of the host, so that a change which comes through one of
// them is seen in the other.
const (
	ReadOnlyDir = "/work/input" // an input that may only be read
	CopyDir     = "/work/copy"  // an input that the job may change for itself
	TreeFile    = "file"        // in both, and in TreeFolder
	TreeFolder  = "folder"
	TreeText    = "what every attempt reads\n" // in each TreeFile

	layersDir = "/work/.forgeyard/layers"
	upper     = layersDir + "/1/upper" // of CopyDir, which is the second layer
)

func treeAttacks() []Attack {
	list := []Attack{
		{Name: "remount-input", Item: ItemInputs, Threat: "S15", Defences: on(Seccomp, NoRights), Also: on(Landlock), Root: true, Trees: true, run: remountInput},
		{Name: "open-input-by-handle", Item: ItemInputs, Threat: "S15", NoControl: hostRootOnly, Trees: true, run: openInputByHandle},
		{Name: "link-input-out", Item: ItemInputs, Threat: "S15", NoControl: "no link leads from one mount to another, whatever is switched off", Trees: true, run: linkInputOut},
		{Name: "find-input", Item: ItemInputs, Threat: "S15", Defences: on(NotShown), Trees: true, run: findInput},
		{Name: "open-node-of-input", Item: ItemInputs, Threat: "S18", Defences: on(NoDevices), Trees: true, run: openNodeOfInput},
		{Name: "make-node-in-layer", Item: ItemLayers, Threat: "S18", NoControl: hostRootOnly, Trees: true, run: makeNodeInLayer},
		{Name: "reach-layers", Item: ItemLayers, Threat: "S15", Defences: on(CoveredLayers), Trees: true, run: reachLayers},
		{Name: "take-layer-away", Item: ItemLayers, Threat: "S15", Defences: on(CoveredLayers), Trees: true, Single: true, run: takeLayerAway},
		{Name: "forge-whiteout", Item: ItemLayers, Threat: "S18", Defences: on(CoveredLayers, Landlock), Trees: true, Single: true, run: forgeWhiteout},
		{Name: "forge-opaque", Item: ItemLayers, Threat: "S18", Defences: on(CoveredLayers), Trees: true, Single: true, run: forgeOpaque},
		{Name: "uncover-layers", Item: ItemLayers, Threat: "S15", Defences: on(Seccomp, Landlock, NoRights), Root: true, Trees: true, run: uncoverLayers},
		{Name: "read-object", Item: ItemStore, Threat: "S16", Defences: on(NotShown), run: readObject},
	}
	for _, c := range changes() {
		list = append(list,
			Attack{Name: c.name + "-input", Item: ItemInputs, Threat: "S15", Defences: on(ReadOnlyTrees), Trees: true, run: func(*Target) Verdict { return changeIn(ReadOnlyDir, c) }},
			Attack{Name: c.name + "-through-copy", Item: ItemLayers, Threat: "S15", Defences: on(OwnLayers), Trees: true, run: func(*Target) Verdict { return changeIn(CopyDir, c) }},
		)
	}
	return list
}

// change is a way to change an input.
type change struct {
	name string
	make func(dir string) error
}

func changes() []change {
	return []change{
		{"write", func(dir string) error { return os.WriteFile(dir+"/"+TreeFile, []byte("defaced"), 0) }},
		{"truncate", func(dir string) error { return os.Truncate(dir+"/"+TreeFile, 0) }},
		{"chmod", func(dir string) error { return os.Chmod(dir+"/"+TreeFile, 0o777) }},
		{"rename-over", renameOver},
		{"link-in", func(dir string) error { return os.Link(dir+"/"+TreeFile, dir+"/hard") }},
		{"map", mapShared},
		{"reopen", reopen},
		{"remove-from", func(dir string) error { return os.RemoveAll(dir + "/" + TreeFolder) }},
	}
}

// changeIn makes a change, and looks whether those who only read the input see it.
func changeIn(dir string, c change) Verdict {
	before, err := look()
	if err != nil {
		return denied("look at the input", err)
	}
	made := c.make(dir)
	after, err := look()
	if err != nil {
		return denied("look at the input again", err)
	}
	if before != after {
		return worked("others read %q, and not %q", after, before)
	}
	return denied(c.name+": the input is as it was", made)
}

// look describes an input as others see it.
func look() (string, error) {
	text := ""
	entries, err := os.ReadDir(ReadOnlyDir)
	for _, e := range entries {
		info, infoErr := e.Info()
		if err = errors.Join(err, infoErr); infoErr == nil {
			text += fmt.Sprintf("%s %v;", e.Name(), info.Mode())
		}
	}
	data, readErr := os.ReadFile(ReadOnlyDir + "/" + TreeFile)
	return text + string(data), errors.Join(err, readErr)
}

func renameOver(dir string) error {
	if err := os.WriteFile(dir+"/other", []byte("other"), 0o600); err != nil {
		return err
	}
	return os.Rename(dir+"/other", dir+"/"+TreeFile)
}

// mapShared writes into a file as memory.
func mapShared(dir string) error {
	return withFile(dir+"/"+TreeFile, unix.O_RDWR, func(fd int) error {
		memory, err := unix.Mmap(fd, 0, len(TreeText), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		copy(memory, "evil")
		return errors.Join(unix.Msync(memory, unix.MS_SYNC), unix.Munmap(memory))
	})
}

// reopen opens a file to read before it has a copy, and by way of that descriptor to write.
func reopen(dir string) error {
	return withFile(dir+"/"+TreeFile, unix.O_RDONLY, func(fd int) error {
		return withFile(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR, func(again int) error {
			_, err := unix.Write(again, []byte("reopened"))
			return err
		})
	})
}

func withFile(name string, flags int, do func(fd int) error) error {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return errors.Join(do(fd), unix.Close(fd))
}

// remountInput makes the mount of an input one that can be written.
func remountInput(*Target) Verdict {
	err := unix.MountSetattr(unix.AT_FDCWD, ReadOnlyDir, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		err = unix.Mount("", ReadOnlyDir, "", unix.MS_REMOUNT|unix.MS_BIND, "")
	}
	if err != nil {
		return denied("mount the input again", err)
	}
	return worked("the input can be written")
}

// openInputByHandle opens a file of an input by its number.
func openInputByHandle(*Target) Verdict {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, ReadOnlyDir+"/"+TreeFile, 0)
	if err != nil {
		return denied("ask for the file's handle", err)
	}
	err = withFile("/work", unix.O_RDONLY, func(at int) error {
		fd, err := unix.OpenByHandleAt(at, handle, unix.O_RDWR)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
	if err != nil {
		return denied("open the file by its handle", err)
	}
	return worked("opened a file of the input by its handle")
}

// linkInputOut gives a file of an input another name, where it could be written.
func linkInputOut(*Target) Verdict {
	for _, dir := range []string{ReadOnlyDir, CopyDir} {
		for _, name := range []string{own + "/stolen", CopyDir + "/stolen"} {
			if dir == filepath.Dir(name) {
				continue
			}
			if err := os.Link(dir+"/"+TreeFile, name); err == nil {
				return worked("%s is a name of the input's file", name)
			}
		}
	}
	return denied("give it another name", os.Link(ReadOnlyDir+"/"+TreeFile, own+"/stolen"))
}

// findInput looks for the folder that an input is on the host, by what the table of mounts tells.
func findInput(t *Target) Verdict {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return denied("read the table of mounts", err)
	}
	places := []string{t.Tree}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], "/work") {
			places = append(places, fields[3]) // where it is on its file system
		}
	}
	for _, place := range places {
		if data, readErr := os.ReadFile(place + "/" + TreeFile); readErr == nil && string(data) == TreeText {
			return worked("the input is at %s", place)
		} else if readErr != nil {
			err = readErr
		}
	}
	return denied("find the input", err)
}

// openNodeOfInput opens the node of a device that came with an input.
func openNodeOfInput(*Target) Verdict {
	var err error
	for _, dir := range []string{ReadOnlyDir, CopyDir} {
		if err = withFile(dir+"/"+FileNull, unix.O_RDWR, func(int) error { return nil }); err == nil {
			return worked("opened a device in %s", dir)
		}
	}
	return denied("open the device", err)
}

// makeNodeInLayer makes the node of a device where the agent reads outputs.
func makeNodeInLayer(*Target) Verdict {
	if err := unix.Mknod(CopyDir+"/node", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		return denied("make a node", err)
	}
	return worked("made a node")
}

// reachLayers looks for what holds the layers.
func reachLayers(*Target) Verdict {
	entries, err := os.ReadDir(layersDir)
	if err != nil || len(entries) == 0 {
		return denied("nothing is there", err)
	}
	return worked("there are %v", entries)
}

// takeLayerAway puts another folder in the place of a layer's upper half.
func takeLayerAway(*Target) Verdict {
	if err := os.Rename(upper, filepath.Dir(upper)+"/taken"); err != nil {
		return denied("rename the upper half", err)
	}
	return worked("the upper half has another name")
}

// forgeWhiteout makes by hand what says that something of the input was removed.
func forgeWhiteout(*Target) Verdict {
	var err error
	for _, dir := range []string{upper, CopyDir} {
		if err = unix.Mknod(dir+"/hidden", unix.S_IFCHR, 0); err == nil {
			return worked("made a whiteout in %s", dir)
		}
	}
	return denied("make a whiteout", err)
}

// forgeOpaque sets by hand what says that a folder hides what is below it, or is another one.
func forgeOpaque(*Target) Verdict {
	_ = os.Mkdir(upper+"/"+TreeFolder, 0o700)
	var last error
	for _, dir := range []string{upper, CopyDir} {
		for name, value := range map[string]string{"opaque": "y", "redirect": "/", "metacopy": ""} {
			for _, space := range []string{"user.overlay.", "trusted.overlay."} {
				if err := unix.Setxattr(dir+"/"+TreeFolder, space+name, []byte(value), 0); err != nil {
					last = err
				}
			}
		}
	}
	data, err := os.ReadFile(CopyDir + "/" + TreeFolder + "/" + TreeFile)
	if err != nil || string(data) != TreeText {
		return worked("what is in the folder is no longer seen: %v", err)
	}
	return denied("the folder is as it was", last)
}

// uncoverLayers takes off what is over the layers, or the layer itself.
func uncoverLayers(*Target) Verdict {
	err := unix.Unmount(layersDir, unix.MNT_DETACH)
	if err == nil {
		return worked("the layers are uncovered")
	}
	if unix.Unmount(CopyDir, unix.MNT_DETACH) == nil {
		return worked("a layer is gone")
	}
	return denied("take the cover off", err)
}

// readObject reads a file of an agent's store.
func readObject(t *Target) Verdict { return t.readSecret(t.Object) }
