package native

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

// goBin is where the distribution of Go is installed by default, and defaultPath what PATH ends with (D11).
const (
	goBin       = "/usr/local/go/bin"
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// checkView tries whether a view can be shown.
func checkView(v *sandbox.View) error {
	o := view.Options{Hide: v.Hide, Network: forge.NetworkNone}
	for _, m := range v.ReadOnly {
		o.ReadOnly = append(o.ReadOnly, view.Bind{Source: m.Source, Target: m.Target})
	}
	if _, err := view.New(view.Machine(), o); err != nil {
		return &BadView{Err: err}
	}
	return nil
}

// viewOf is what steps see besides what every sandbox shows.
func viewOf(cfg *Config) sandbox.View {
	v := sandbox.View{Hide: cfg.Hide}
	for _, path := range slices.Concat(cfg.Toolchains, cfg.ReadOnly) {
		source, target, _ := strings.Cut(path, ":")
		if m := (sandbox.Mount{Source: source, Target: target}); !slices.Contains(v.ReadOnly, m) {
			v.ReadOnly = append(v.ReadOnly, m)
		}
	}
	v.Path = Path(cfg.Toolchains)
	for _, folder := range cfg.Path {
		if shown(folder, v.ReadOnly) && !slices.Contains(v.Path, folder) {
			v.Path = append(v.Path, folder)
		}
	}
	return v
}

// systemFolders are what every sandbox shows of programs (D11).
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/opt"}

// shown reports whether a sandbox shows a folder of this machine, wherever links lead.
func shown(folder string, more []sandbox.Mount) bool {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	tops := slices.Clone(systemFolders)
	for _, m := range more {
		if m.Target == "" {
			tops = append(tops, m.Source)
		}
	}
	return slices.ContainsFunc(tops, func(top string) bool {
		return below(folder, top) && slices.ContainsFunc(tops, func(t string) bool { return below(real, t) })
	})
}

func below(path, top string) bool {
	relative, err := filepath.Rel(top, path)
	return err == nil && filepath.IsLocal(relative)
}

// systemPath is the PATH of a step that sets none, behind the toolchains'.
func systemPath() []string {
	path := filepath.SplitList(defaultPath)
	if isFolder(goBin) {
		path = append([]string{goBin}, path...)
	}
	return path
}
