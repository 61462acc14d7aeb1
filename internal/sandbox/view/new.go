package view

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// New plans the view of a host. It fails where a bind's source is missing, where its target would cover something of ours,
// or where it would show what Options.Hide names.
func New(host Host, o Options) (Plan, error) {
	p := planner{host: host, o: o, plan: Plan{
		Devices:  slices.Clone(devices),
		Masks:    slices.Clone(masked),
		ReadOnly: slices.Clone(settings),
		Shm:      cmp.Or(o.Shm, DefaultShm),
		Secrets:  cmp.Or(o.Secrets, DefaultSecrets),
		UID:      o.UID,
		GID:      o.GID,
		HostNS:   o.HostNS,
		Switches: o.Switches,
	}}
	p.system()
	p.etc()
	for _, b := range o.ReadOnly {
		if err := p.extra(b); err != nil {
			return Plan{}, err
		}
	}
	if err := p.hide(); err != nil {
		return Plan{}, err
	}
	return p.done()
}

type planner struct {
	host Host
	o    Options
	plan Plan
}

// system adds the folders of programs. Where the host has links, as for /bin on most of today's, the root has the same.
func (p *planner) system() {
	for _, dir := range programs {
		p.add(dir)
	}
	for _, dir := range append([]string{"/bin", "/sbin"}, p.host.Glob("/lib*")...) {
		e := p.host.Look(dir)
		if e.Kind == IsLink {
			p.plan.Links = append(p.plan.Links, Link{Path: dir, Target: e.Target})
			continue
		}
		p.add(dir)
	}
}

// etc adds what programs read in /etc: the host's folders that say nothing of its owner, and our own files.
func (p *planner) etc() {
	for _, pattern := range settingsOfHost {
		for _, found := range p.host.Glob(pattern) {
			if !slices.Contains(leftOut, found) {
				p.add(found)
			}
		}
	}
	p.plan.Files = append(p.plan.Files, ownFiles(p.host, p.o)...)
	for _, l := range ownLinks {
		if p.host.Look(path.Join(path.Dir(l.Path), l.Target)).Kind != Absent || l.Always {
			p.plan.Links = append(p.plan.Links, l.Link)
		}
	}
}

// add binds a path of the host at the same place, if it is there.
func (p *planner) add(at string) {
	real, e := p.host.Real(at)
	if e.Kind == Absent {
		return
	}
	p.bind(Bind{Source: real, Target: at}, e)
}

func (p *planner) bind(b Bind, e Entry) {
	b.File = e.Kind != IsFolder
	b.Handed = p.o.Mapped && !e.Open
	p.plan.Binds = append(p.plan.Binds, b)
}

// extra adds a bind of the configuration.
func (p *planner) extra(b Bind) error {
	if !clean(b.Source) {
		return fmt.Errorf("view: the folder %q to show must be a clean absolute path", b.Source)
	}
	target := cmp.Or(b.Target, b.Source)
	if !clean(target) {
		return fmt.Errorf("view: the place %q to show %s at must be a clean absolute path", target, b.Source)
	}
	if err := p.free(target); err != nil {
		return fmt.Errorf("view: show %s: %w", b.Source, err)
	}
	real, e := p.host.Real(b.Source)
	if e.Kind == Absent {
		return fmt.Errorf("view: %s is to be shown and does not exist: make it, or take it out of the configuration", b.Source)
	}
	for _, of := range notShown {
		if _, in := below(real, of); in || real == "/" {
			return fmt.Errorf("view: %s is never shown to work", real)
		}
	}
	return p.place(Bind{Source: real, Target: target}, e)
}

// place adds a bind whose target may be in the root, where we make the place for it, or in another bind, where the place must
// be there already.
func (p *planner) place(b Bind, e Entry) error {
	within := p.covering(b.Target)
	if within == nil {
		p.bind(b, e)
		return nil
	}
	rest, _ := below(b.Target, within.Target)
	there, have := p.host.Real(within.Source + rest)
	switch {
	case there == b.Source:
		return nil // shown already
	case rest == "":
		return fmt.Errorf("view: %s and %s are both to be shown at %s", within.Source, b.Source, b.Target)
	case there != within.Source+rest || have.Kind != e.Kind:
		return fmt.Errorf("view: %s cannot be shown at %s, which is inside of %s and not there", b.Source, b.Target, within.Source)
	}
	p.bind(b, e)
	return nil
}

// covering returns the innermost bind that a place inside is in.
func (p *planner) covering(target string) *Bind {
	var found *Bind
	for i := range p.plan.Binds {
		b := &p.plan.Binds[i]
		if _, in := below(target, b.Target); in && (found == nil || len(b.Target) > len(found.Target)) {
			found = b
		}
	}
	return found
}

// free refuses places that hold something of ours.
func (p *planner) free(target string) error {
	for _, own := range ownPlaces {
		if _, in := below(target, own); in {
			return fmt.Errorf("%s belongs to the sandbox itself: choose another place", target)
		}
		if _, over := below(own, target); over {
			return fmt.Errorf("%s would cover %s: choose another place", target, own)
		}
	}
	for _, f := range p.plan.Files {
		if _, over := below(f.Path, target); over {
			return fmt.Errorf("%s is a file of the sandbox itself: choose another place than %s", f.Path, target)
		}
	}
	for _, l := range p.plan.Links {
		if _, in := below(target, l.Path); in {
			return fmt.Errorf("%s is a link: use a place below what it leads to", l.Path)
		}
	}
	for _, b := range p.plan.Binds {
		if rest, over := below(b.Target, target); over && rest != "" {
			return fmt.Errorf("%s would cover %s: name the outer one first, or choose another place", target, b.Target)
		}
	}
	return nil
}

// hide finds where the binds would show what must not be seen.
func (p *planner) hide() error {
	for _, secret := range p.o.Hide {
		real, e := p.host.Real(secret)
		if e.Kind == Absent {
			continue
		}
		for _, b := range p.plan.Binds {
			if _, in := below(b.Source, real); in {
				return fmt.Errorf("view: %s is in %s, which work must not see: move one of them", b.Source, real)
			}
			if rest, in := below(real, b.Source); in {
				p.plan.Hide = append(p.plan.Hide, b.Target+rest)
			}
		}
	}
	return nil
}

// done adds the folders that everything stands in, orders all of it and checks the bounds.
func (p *planner) done() (Plan, error) {
	if len(p.plan.Binds) > MaxBinds {
		return Plan{}, fmt.Errorf("view: %d folders to show; at most %d", len(p.plan.Binds), MaxBinds)
	}
	slices.SortStableFunc(p.plan.Binds, func(a, b Bind) int { return strings.Compare(a.Target, b.Target) })
	folders := map[string]uint32{}
	for _, f := range ownFolders {
		folders[f.Path] = f.Mode
	}
	p.parents(folders)
	for at, mode := range folders {
		p.plan.Folders = append(p.plan.Folders, Folder{Path: at, Mode: mode})
	}
	slices.SortFunc(p.plan.Folders, func(a, b Folder) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(p.plan.Hide)
	p.plan.Hide = slices.Compact(p.plan.Hide)
	return p.plan, nil
}

// parents adds the folders above everything that stands in the root itself, and the binds' own places.
func (p *planner) parents(folders map[string]uint32) {
	add := func(at string) {
		for ; at != "/"; at = path.Dir(at) {
			if _, have := folders[at]; !have {
				folders[at] = 0o755
			}
		}
	}
	for _, b := range p.plan.Binds {
		if outer := p.covering(path.Dir(b.Target)); outer != nil {
			continue // the place is the host's
		}
		add(path.Dir(b.Target))
		if !b.File {
			add(b.Target)
		}
	}
	for _, f := range p.plan.Files {
		add(path.Dir(f.Path))
	}
	for _, l := range p.plan.Links {
		add(path.Dir(l.Path))
	}
}

func clean(at string) bool {
	return path.IsAbs(at) && path.Clean(at) == at && !strings.ContainsRune(at, 0)
}
