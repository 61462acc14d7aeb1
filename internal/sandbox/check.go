package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// named reports whether a sandbox can have a name. It is no expression, which would be compiled by each process of a sandbox.
func named(name string) bool {
	const inner = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	return name != "" && len(name) <= MaxName && name[0] != '-' && strings.Trim(name, inner) == ""
}

// check fills in defaults and refuses what cannot be.
func (c *Config) check() error {
	if os.Geteuid() != 0 {
		c.Rootless = true
	}
	if c.UIDBase == 0 {
		c.UIDBase = DefaultUIDBase
	}
	if c.Slots == 0 {
		c.Slots = DefaultSlots
	}
	switch {
	case !filepath.IsAbs(c.State):
		return fmt.Errorf("the state folder of the launcher, %q, is not an absolute path", c.State)
	case c.Program != "" && !filepath.IsAbs(c.Program):
		return fmt.Errorf("the program of the launcher, %q, is not an absolute path", c.Program)
	case c.Slots < 1 || c.Slots > MaxSlots:
		return fmt.Errorf("%d slots for sandboxes; 1 to %d can be", c.Slots, MaxSlots)
	case c.Pool < 0 || c.Pool > MaxPool:
		return fmt.Errorf("%d sandboxes that wait; 0 to %d can be", c.Pool, MaxPool)
	case !c.Rootless && uint64(c.UIDBase)+uint64(Ranges(c.Slots, c.Pool))*SlotIDs > 1<<32-1:
		return fmt.Errorf("%d sandboxes with %d ids each do not fit above id %d", Ranges(c.Slots, c.Pool), SlotIDs, c.UIDBase)
	case !c.Rootless && c.UIDBase < SlotIDs:
		return fmt.Errorf("ids from %d on are those of the host's users; take a higher base", c.UIDBase)
	}
	return c.View.check()
}

// Ranges is how many sandboxes there can be at one moment: those that run, those that wait, those that waited with an older
// view and are ending, and the first one.
func Ranges(slots, pool int) int { return slots + 2*pool + 1 }

func (v *View) check() error {
	if len(v.ReadOnly) > MaxMounts || len(v.Path) > MaxMounts || len(v.Hide) > MaxMounts {
		return fmt.Errorf("a view with %d mounts and %d folders for PATH; at most %d", len(v.ReadOnly), len(v.Path), MaxMounts)
	}
	for _, m := range v.ReadOnly {
		if !filepath.IsAbs(m.Source) || (m.Target != "" && !filepath.IsAbs(m.Target)) {
			return fmt.Errorf("a view shows %q as %q; both must be absolute paths", m.Source, m.Target)
		}
	}
	for _, dir := range v.Path {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("a view has %q in PATH, which is not an absolute path", dir)
		}
	}
	return nil
}

func (o *Order) check() error {
	switch {
	case !named(o.Name):
		return fmt.Errorf("%q cannot be the name of a sandbox", o.Name)
	case !filepath.IsAbs(o.Folder):
		return fmt.Errorf("the folder of a sandbox, %q, is not an absolute path", o.Folder)
	case !o.Network.Valid():
		return errors.New("an order without a network")
	case o.Keeper == nil || o.Stdout == nil || o.Stderr == nil:
		return errors.New("an order without its files")
	case len(o.Layers) > MaxLayers:
		return fmt.Errorf("%d layers, at most %d", len(o.Layers), MaxLayers)
	case len(o.Guest) > MaxGuest:
		return fmt.Errorf("%d bytes for the guest, at most %d", len(o.Guest), MaxGuest)
	case o.Deadline == 0 || o.Deadline == forge.Never:
		return errors.New("an order without a deadline")
	}
	return checkLayers(o.Layers)
}

func checkLayers(layers []Layer) error {
	text := 0
	for i := range layers {
		l := &layers[i]
		text += len(l.Mount) + len(l.Folder)
		switch {
		case text > MaxLayerText:
			return fmt.Errorf("the paths of layers have more than %d bytes", MaxLayerText)
		case l.Mount == "." || !filepath.IsLocal(l.Mount) || path.Clean(l.Mount) != l.Mount:
			return fmt.Errorf("a layer at %q, which is no path below %s", l.Mount, WorkDir)
		case overlaps(l.Mount, OwnDir):
			return fmt.Errorf("a layer at %q; %s/%s is the sandbox's own", l.Mount, WorkDir, OwnDir)
		case !filepath.IsAbs(l.Folder):
			return fmt.Errorf("a layer over %q, which is not an absolute path", l.Folder)
		}
		for _, other := range layers[:i] {
			if overlaps(l.Mount, other.Mount) {
				return fmt.Errorf("layers at %q and %q, one within the other", l.Mount, other.Mount)
			}
		}
	}
	return nil
}

// overlaps reports whether two paths are the same, or one is within the other.
func overlaps(a, b string) bool {
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}
