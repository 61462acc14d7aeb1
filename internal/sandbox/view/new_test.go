package view_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

// fakeHost is a machine in a map: a value that begins with "->" is a link, one that ends in a slash a folder, else a file's
// content. Folders that only root reaches begin with "!".
type fakeHost map[string]string

func (h fakeHost) Look(at string) view.Entry {
	value, ok := h[at]
	switch {
	case !ok:
		return view.Entry{}
	case strings.HasPrefix(value, "->"):
		return view.Entry{Kind: view.IsLink, Target: value[2:]}
	case strings.HasSuffix(value, "/"):
		return view.Entry{Kind: view.IsFolder, Open: !strings.HasPrefix(value, "!")}
	}
	return view.Entry{Kind: view.IsFile, Open: true}
}

func (h fakeHost) Real(at string) (string, view.Entry) {
	for range 8 {
		e := h.Look(at)
		if e.Kind != view.IsLink {
			return at, e
		}
		if path.IsAbs(e.Target) {
			at = e.Target
		} else {
			at = path.Join(path.Dir(at), e.Target)
		}
	}
	return at, view.Entry{}
}

func (h fakeHost) Glob(pattern string) []string {
	var found []string
	for at := range h {
		if ok, _ := path.Match(pattern, at); ok {
			found = append(found, at)
		}
	}
	slices.Sort(found)
	return found
}

func (h fakeHost) Read(at string, _ int) []byte { return []byte(h[at]) }

// debian is a host whose programs are all in /usr.
func debian() fakeHost {
	return fakeHost{
		"/usr": "/", "/usr/bin": "/", "/usr/lib": "/", "/usr/local": "/", "/usr/local/go": "/", "/opt": "/", "/opt/yard": "/",
		"/bin": "->usr/bin", "/lib": "->usr/lib", "/lib64": "->usr/lib64",
		"/bin/bash": "x",
		"/etc/ssl":  "/", "/etc/ld.so.cache": "x", "/etc/ld.so.preload": "x", "/etc/shadow": "secret", "/etc/java-17-openjdk": "/",
		"/etc/resolv.conf": "->/run/resolv.conf", "/run/resolv.conf": "nameserver 10.0.0.1\n",
		"/usr/lib/os-release": "x",
		"/data/go":            "/", "/data/link": "->/data/go", "/root/tools": "!/", "/var/lib/forgeyard": "!/", "/srv": "/",
		"/srv/agent": "!/", "/proc": "/", "/proc/sys": "/",
	}
}

func planned(t *testing.T, h fakeHost, o view.Options) view.Plan {
	t.Helper()
	if o.Network == 0 {
		o.Network = forge.NetworkNone
	}
	o.UID, o.GID = 1000, 1000
	p, err := view.New(h, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheViewIsProgramsAndHarmlessSettings(t *testing.T) {
	p := planned(t, debian(), view.Options{})
	want := []view.Bind{
		{Source: "/etc/java-17-openjdk", Target: "/etc/java-17-openjdk"},
		{Source: "/etc/ld.so.cache", Target: "/etc/ld.so.cache", File: true},
		{Source: "/etc/ssl", Target: "/etc/ssl"},
		{Source: "/opt", Target: "/opt"},
		{Source: "/usr", Target: "/usr"},
	}
	if diff := cmp.Diff(want, p.Binds); diff != "" {
		t.Error(diff)
	}
	for _, l := range []view.Link{{Path: "/bin", Target: "usr/bin"}, {Path: "/lib64", Target: "usr/lib64"}, {Path: "/etc/os-release", Target: "../usr/lib/os-release"}} {
		if !slices.Contains(p.Links, l) {
			t.Errorf("no link %v", l)
		}
	}
}

func TestFoldersComeBeforeWhatIsInThem(t *testing.T) {
	p := planned(t, debian(), view.Options{ReadOnly: []view.Bind{{Source: "/srv", Target: "/tools"}, {Source: "/data/go", Target: "/tools/agent"}, {Source: "/data/go", Target: "/a/b/c"}}})
	made := map[string]bool{"/": true}
	for _, f := range p.Folders {
		if !made[path.Dir(f.Path)] {
			t.Errorf("%s before the folder it is in", f.Path)
		}
		made[f.Path] = true
	}
	for i, b := range p.Binds {
		for _, later := range p.Binds[i+1:] {
			if strings.HasPrefix(b.Target, later.Target+"/") {
				t.Errorf("%s before %s, which would cover it", b.Target, later.Target)
			}
		}
	}
}

func file(p view.Plan, at string) string {
	for _, f := range p.Files {
		if f.Path == at {
			return string(f.Content)
		}
	}
	return ""
}

func TestOnlyAJobWithTheHostsNetworkHasItsResolver(t *testing.T) {
	if got := file(planned(t, debian(), view.Options{}), "/etc/resolv.conf"); !strings.Contains(got, "nameserver 127.0.0.1\n") {
		t.Errorf("without a network the resolver is %q", got)
	}
	if got := file(planned(t, debian(), view.Options{Network: forge.NetworkHost}), "/etc/resolv.conf"); got != "nameserver 10.0.0.1\n" {
		t.Errorf("with the host's network the resolver is %q", got)
	}
}

func TestConfigurationAddsFolders(t *testing.T) {
	p := planned(t, debian(), view.Options{Mapped: true, ReadOnly: []view.Bind{
		{Source: "/data/link"},
		{Source: "/root/tools", Target: "/tools"},
		{Source: "/usr/local/go"}, // in /usr already
		{Source: "/data/go", Target: "/usr/local/go"},
	}})
	for _, want := range []view.Bind{
		{Source: "/data/go", Target: "/data/link"},
		{Source: "/root/tools", Target: "/tools", Handed: true},
		{Source: "/data/go", Target: "/usr/local/go"},
	} {
		if !slices.Contains(p.Binds, want) {
			t.Errorf("no bind %+v", want)
		}
	}
	if len(p.Binds) != 8 {
		t.Errorf("%d binds: %+v", len(p.Binds), p.Binds)
	}
}

func TestWhatCannotBeShownIsRefusedAndSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		bind view.Bind
		says string
	}{
		"missing":         {view.Bind{Source: "/nowhere"}, "does not exist"},
		"relative":        {view.Bind{Source: "data"}, "clean absolute path"},
		"dots":            {view.Bind{Source: "/data/../etc"}, "clean absolute path"},
		"relative target": {view.Bind{Source: "/data/go", Target: "go"}, "clean absolute path"},
		"processes":       {view.Bind{Source: "/proc", Target: "/x"}, "never shown"},
		"root target":     {view.Bind{Source: "/data/go", Target: "/"}, "cover"},
		"work":            {view.Bind{Source: "/data/go", Target: "/work/go"}, "belongs to the sandbox"},
		"over dev":        {view.Bind{Source: "/data/go", Target: "/dev"}, "belongs to the sandbox"},
		"own file":        {view.Bind{Source: "/run/resolv.conf", Target: "/etc/passwd"}, "file of the sandbox"},
		"own folder":      {view.Bind{Source: "/data/go", Target: "/etc"}, "file of the sandbox"},
		"through a link":  {view.Bind{Source: "/data/go", Target: "/bin/go"}, "is a link"},
		"another":         {view.Bind{Source: "/data/go", Target: "/opt"}, "both to be shown"},
		"no place":        {view.Bind{Source: "/data/go", Target: "/usr/local/rust"}, "not there"},
		"hidden":          {view.Bind{Source: "/srv/agent"}, "must not see"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := view.New(debian(), view.Options{Network: forge.NetworkNone, ReadOnly: []view.Bind{c.bind}, Hide: []string{"/srv/agent"}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestTheAgentsFoldersAreCoveredWhereABindWouldShowThem(t *testing.T) {
	p := planned(t, debian(), view.Options{
		ReadOnly: []view.Bind{{Source: "/srv", Target: "/tools"}},
		Hide:     []string{"/srv/agent", "/opt/yard", "/var/lib/forgeyard", "/not/there"},
	})
	if diff := cmp.Diff([]string{"/opt/yard", "/tools/agent"}, p.Hide); diff != "" {
		t.Error(diff)
	}
}

func TestAFolderThatWouldCoverAnotherIsRefused(t *testing.T) {
	_, err := view.New(debian(), view.Options{Network: forge.NetworkNone, ReadOnly: []view.Bind{
		{Source: "/data/go", Target: "/tools/go"}, {Source: "/srv", Target: "/tools"},
	}})
	if err == nil || !strings.Contains(err.Error(), "would cover /tools/go") {
		t.Errorf("got %v", err)
	}
}

func TestBindsAreBounded(t *testing.T) {
	h := debian()
	o := view.Options{Network: forge.NetworkNone}
	for len(o.ReadOnly) <= view.MaxBinds {
		at := path.Join("/many", strings.Repeat("x", len(o.ReadOnly)+1))
		h[at] = "/"
		o.ReadOnly = append(o.ReadOnly, view.Bind{Source: at})
	}
	if _, err := view.New(h, o); err == nil {
		t.Error("a plan of too many binds was made")
	}
}
